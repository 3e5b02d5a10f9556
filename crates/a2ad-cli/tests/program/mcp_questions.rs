//! Questions of an MCP server that no client answers: what they cost other callers, and how many one caller may have.
//! The server is a real process of an older revision, which runs one call at a time.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::{
    json::{reason, state, task_id},
    process::Server,
    rpc::{Caller, Failure, message},
};

use super::common::{TIMEOUT, run, serve};

const AGENT: &str = "main";

/// `ask` asks its client for a name and returns it, `odd` with a schema of an unknown dialect; `echo` returns at once,
/// `wait` never.
const MCP_SERVER: &str = r#"
import json, sys

def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

def text(text):
    return {"content": [{"type": "text", "text": text}]}

tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("ask", "odd", "echo", "wait")]
form = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
asking = None
for line in sys.stdin:
    message = json.loads(line)
    id, method = message.get("id"), message.get("method")
    if method == "initialize":
        send(id=id, result={"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                            "serverInfo": {"name": "asking", "version": "1"}})
    elif method == "tools/list":
        send(id=id, result={"tools": tools})
    elif method == "tools/call" and message["params"]["name"] in ("ask", "odd"):
        asking = id
        odd = {"$schema": "https://schemas.example/unknown"} if message["params"]["name"] == "odd" else {}
        send(id="question", method="elicitation/create",
             params={"message": "name?", "requestedSchema": {**form, **odd}})
    elif method == "tools/call" and message["params"]["name"] == "echo":
        send(id=id, result=text("echo"))
    elif method == "tools/call":
        pass
    elif method is None and id == "question":
        if message["result"]["action"] == "accept":
            send(id=asking, result=text(message["result"]["content"]["name"]))
        elif odd:
            send(id=asking, result=text(message["result"]["action"]))
    elif id is not None:
        send(id=id, error={"code": -32601, "message": "unknown method"})
"#;

/// A server with the tools, and the keys of two callers.
struct Fixture {
    server: Server,
    keys: [String; 2],
    folder: tempfile::TempDir,
}

impl Fixture {
    /// `settings` are those of the MCP server, and further sections.
    async fn start(settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("asking.py");
        std::fs::write(&script, MCP_SERVER).unwrap();
        let config = format!(
            "[mcp.asking]\ncommand = [\"python3\", \"-S\", {script:?}]\n{settings}\n[skills.hold]\nbuiltin = \"echo\"\n\
             [agents.{AGENT}]\nskills = [\"mcp:asking/*\", \"hold\"]\nauth = [\"api-key\"]\n"
        );
        std::fs::write(folder.path().join("a2ad.toml"), config).unwrap();
        let server = serve(folder.path()).await;
        let keys = [key(folder.path(), "alice").await, key(folder.path(), "bob").await];
        Self { server, keys, folder }
    }

    async fn kill_and_restart(self) -> Self {
        self.server.kill().await.unwrap();
        Self { server: serve(self.folder.path()).await, ..self }
    }

    fn callers(&self) -> [Client<'_>; 2] {
        self.keys.each_ref().map(|key| Client { caller: Caller::new(self.server.address), key })
    }
}

async fn key(folder: &Path, owner: &str) -> String {
    run(folder, &["keys", "new", AGENT, "--owner", owner]).await.succeeds("").trim().to_owned()
}

/// One connection of a caller.
struct Client<'a> {
    caller: Caller,
    key: &'a str,
}

impl Client<'_> {
    async fn call(&mut self, method: &str, params: Value) -> Result<Value, Failure> {
        Ok(self.caller.call_with(&[("x-api-key", self.key)], AGENT, method, params).await?.result)
    }

    /// Starts a call of `ask` and does not wait for it.
    async fn ask(&mut self, number: usize) -> Result<Value, Failure> {
        Ok(self.call("SendMessage", skill_message("ask", number, true)).await?["task"].take())
    }

    /// How long a call of `echo` takes.
    async fn echo(&mut self) -> Duration {
        let begun = Instant::now();
        let task = self.call("SendMessage", skill_message("echo", 0, false)).await.unwrap()["task"].take();
        assert_eq!(state(&task), "TASK_STATE_COMPLETED", "{task}");
        begun.elapsed()
    }

    /// The task after an answer to its question.
    async fn answer(&mut self, task: &Value) -> Value {
        let mut answer = message(0, "Ada", false);
        answer["message"]["taskId"] = task["id"].clone();
        self.call("SendMessage", answer).await.unwrap()["task"].take()
    }

    /// Sends a message until it is accepted.
    async fn until_accepted(&mut self, params: Value) {
        let accepted = async {
            while self.call("SendMessage", params.clone()).await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, accepted).await.expect("the message is refused");
    }

    /// Waits until these tasks wait for their client.
    async fn until_asked(&mut self, tasks: &[Value]) {
        for task in tasks {
            self.until(task, |task| state(task) == "TASK_STATE_INPUT_REQUIRED").await;
        }
    }

    /// Waits until the task fails without an answer, because its question is lost.
    async fn until_lost(&mut self, task: &Value) {
        self.until(task, is_lost).await;
    }

    /// Waits until all tasks have lost their questions but so many, and returns these.
    async fn until_waiting(&mut self, count: usize) -> Vec<Value> {
        let waits = async {
            loop {
                let mut list = self.call("ListTasks", json!({})).await.unwrap();
                let Value::Array(mut tasks) = list["tasks"].take() else { panic!("{list}") };
                tasks.retain(|task| !is_lost(task));
                if tasks.len() == count {
                    return tasks;
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, waits).await.expect("other tasks wait")
    }

    /// Waits until the task is like this.
    async fn until(&mut self, task: &Value, condition: impl Fn(&Value) -> bool) {
        let id = task_id(task).unwrap();
        let waits = async {
            while !condition(&self.call("GetTask", json!({"id": id})).await.unwrap()) {
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, waits).await.unwrap_or_else(|_| panic!("task {id} does not change"));
    }
}

fn is_lost(task: &Value) -> bool {
    (state(task), reason(&task["status"])) == ("TASK_STATE_FAILED", Some("elicitation_lost"))
}

fn skill_message(skill: &str, number: usize, return_immediately: bool) -> Value {
    let mut params = message(number, "{}", return_immediately);
    params["message"]["messageId"] = format!("{skill}-{number}-{:?}", Instant::now()).into();
    params["metadata"] = json!({"skillId": skill});
    params
}

/// When a question kept its process for `timeout`, the call of the other key waited for all forty.
#[tokio::test(flavor = "multi_thread")]
async fn open_questions_of_one_key_do_not_delay_calls_of_another() {
    let fixture = Fixture::start("timeout = \"1s\"").await;
    let [mut alice, mut bob] = fixture.callers();
    let alone = bob.echo().await;
    for number in 0..40 {
        alice.ask(number).await.unwrap();
    }
    let during = bob.echo().await;
    alice.until_waiting(2).await;
    let after = [bob.echo().await, bob.echo().await];
    println!("echo alone {alone:?}, while 40 calls ask {during:?}, while their questions are open {after:?}");
    // All but the last may wait for the start of a process.
    assert!(during.max(after[0]) < Duration::from_secs(3), "{during:?} {after:?}");
    assert!(after[1] < Duration::from_millis(500), "{after:?}");
    // Half of four processes keep their questions.
    let waiting = alice.until_waiting(2).await;
    for task in &waiting {
        assert_eq!(state(&alice.answer(task).await), "TASK_STATE_COMPLETED");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn cap_of_interrupted_tasks_counts_calls_that_may_ask() {
    let fixture = Fixture::start("").await;
    let senders = (0..8).map(async |sender| {
        let [mut alice, _] = fixture.callers();
        let (mut accepted, mut refused) = (0, Vec::new());
        for number in 0..70 {
            let params = skill_message("wait", sender * 100 + number, true);
            match alice.call("SendMessage", params).await {
                Ok(_) => accepted += 1,
                Err(failure) => refused.push(failure),
            }
        }
        (accepted, refused)
    });
    let (accepted, refused): (Vec<usize>, Vec<_>) = join_all(senders).await.into_iter().unzip();
    let accepted: usize = accepted.iter().sum();
    println!("{accepted} of 560 accepted with interrupted = 100");
    assert_eq!(accepted, 100);
    for failure in refused.iter().flatten() {
        let Failure::Error { reason, message, .. } = failure else { panic!("{failure:?}") };
        assert!(reason == "RATE_LIMITED" && message.starts_with("100 of your tasks"), "{failure:?}");
    }
    let [_, mut bob] = fixture.callers();
    bob.ask(0).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn cap_of_interrupted_tasks_counts_calls_that_wait_for_a_run() {
    let fixture =
        Fixture::start("[limits]\nconcurrent = 4\n[limits.per_principal]\ninterrupted = 10\n").await;
    let [mut alice, _] = fixture.callers();
    let mut accepted = 0;
    for number in 0..40 {
        let params = skill_message("wait", number, true);
        accepted += u32::from(alice.call("SendMessage", params).await.is_ok());
    }
    assert_eq!(accepted, 10);
}

/// Neither do calls of the same agent count that cannot ask, nor those of a server that may not ask.
#[tokio::test(flavor = "multi_thread")]
async fn cap_of_interrupted_tasks_counts_no_other_calls() {
    let fixture = Fixture::start("[limits.per_principal]\ninterrupted = 1\n").await;
    let [mut alice, _] = fixture.callers();
    for number in 0..3 {
        let mut hold = skill_message("hold", number, true);
        hold["message"]["parts"][0]["text"] = "hold".into();
        alice.until_accepted(hold).await;
    }
    alice.ask(0).await.unwrap();
    assert!(alice.ask(1).await.is_err());

    let fixture = Fixture::start("elicitation = false\n[limits.per_principal]\ninterrupted = 1\n").await;
    let [mut alice, _] = fixture.callers();
    for number in 0..3 {
        alice.ask(number).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn question_in_a_pool_of_one_is_lost_when_another_key_calls() {
    let fixture = Fixture::start("pool = { max = 1 }").await;
    let [mut alice, mut bob] = fixture.callers();
    let asked = alice.ask(0).await.unwrap();
    alice.until_asked(std::slice::from_ref(&asked)).await;
    let delay = bob.echo().await;
    println!("echo after a question in a pool of one: {delay:?}");
    assert!(delay < Duration::from_secs(5), "{delay:?}");
    alice.until_lost(&asked).await;
}

/// What the process before has accepted waits for a run until it is claimed.
#[tokio::test(flavor = "multi_thread")]
async fn cap_of_interrupted_tasks_counts_calls_that_wait_after_a_restart() {
    let settings = "[limits]\nconcurrent = 2\n[limits.per_principal]\ninterrupted = 10\n";
    let fixture = Fixture::start(settings).await;
    let [mut alice, _] = fixture.callers();
    for number in 0..10 {
        alice.call("SendMessage", skill_message("wait", number, true)).await.unwrap();
    }
    drop(alice);
    let fixture = fixture.kill_and_restart().await;
    let [mut alice, _] = fixture.callers();
    for number in 0..3 {
        let Err(Failure::Error { message, .. }) = alice.ask(number).await else { panic!("it is accepted") };
        assert!(message.starts_with("10 of your tasks"), "{message}");
    }
}

/// It was asked for ever: each answer was refused, and the process stayed taken.
#[tokio::test(flavor = "multi_thread")]
async fn question_whose_answer_cannot_be_checked_fails_the_task_and_frees_its_process() {
    let fixture = Fixture::start("pool = { max = 1 }").await;
    let [mut alice, _] = fixture.callers();
    let params = skill_message("odd", 0, false);
    let task = alice.call("SendMessage", params).await.unwrap()["task"].take();
    assert_eq!(state(&task), "TASK_STATE_FAILED", "{task}");
    let text = task["status"]["message"]["parts"][0]["text"].as_str().unwrap();
    assert!(text.contains("cannot be checked: the server's schema is"), "{text}");
    assert!(alice.echo().await < Duration::from_secs(5));
}
