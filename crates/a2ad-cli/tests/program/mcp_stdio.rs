//! `a2ad mcp`: MCP on standard input and output, of a configuration file and of a server.

use std::{path::Path, process::Stdio};

use protocol::{ListTasks, TaskState};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use testkit::http1;
use tokio::{
    io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines},
    process::{Child, ChildStdin, ChildStdout},
};

use super::common::{Running, a2ad, client, configured, eventually, files, run, within};

const CONFIG: &str = r#"
[server]
default_agent = "one"
[skills]
echo = { builtin = "echo" }
approver = { builtin = "approver" }
plotter = { builtin = "plotter" }
[skills.sum]
description = "Adds"
command = { argv = ["python3", "-c", "import json, sys; n = json.load(sys.stdin); print(json.dumps({'sum': n['a'] + n['b']}))"] }
input_schema = { type = "object", properties = { a = { type = "number" }, b = { type = "number" } }, required = ["a", "b"] }
[agents]
one = { skills = ["echo", "sum", "plotter"] }
two = { skills = ["approver"] }
"#;

const TOOLS: [&str; 5] = ["one__echo", "one__sum", "one__plotter", "two__approver", "two__approver-auth"];

/// A running `a2ad mcp`, after the handshake.
struct Session {
    child: Child,
    input: Option<ChildStdin>,
    /// Every line of standard output is a message.
    output: Lines<BufReader<ChildStdout>>,
}

impl Session {
    async fn start(folder: &Path, arguments: &[&str]) -> Self {
        let mut command = a2ad(folder, &[&["mcp"], arguments].concat());
        command.stdin(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut session = Self { input: child.stdin.take(), output, child };
        let params = json!({
            "protocolVersion": "2025-06-18",
            "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "test", "version": "1"},
        });
        session.request(0, "initialize", params).await;
        session.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        session
    }

    async fn send(&mut self, message: Value) {
        self.send_text(&message.to_string()).await;
    }

    async fn send_text(&mut self, message: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn next(&mut self) -> Value {
        let line = within(self.output.next_line()).await.unwrap().expect("there is another message");
        serde_json::from_str(&line).unwrap_or_else(|_| panic!("not a message: {line}"))
    }

    async fn request(&mut self, id: u32, method: &str, params: Value) -> Value {
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        let response = self.next().await;
        assert_eq!(response["id"], id, "{response}");
        assert!(response["error"].is_null(), "{response}");
        response["result"].clone()
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.request(1, "tools/call", json!({"name": tool, "arguments": arguments})).await
    }

    async fn tools(&mut self) -> Vec<String> {
        let listed = self.request(2, "tools/list", json!({})).await;
        let tools = listed["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    /// The exit code after the end of its input.
    async fn end(mut self) -> Option<i32> {
        self.input = None;
        assert_eq!(within(self.output.next_line()).await.unwrap(), None);
        within(self.child.wait()).await.unwrap().code()
    }
}

async fn check_calls(session: &mut Session) {
    assert_eq!(session.tools().await, TOOLS);
    let result = session.call("one__echo", json!({"message": "hi"})).await;
    assert_eq!(result["content"], json!([{"type": "text", "text": "hi"}]));
    let result = session.call("one__sum", json!({"a": 1, "b": 41})).await;
    assert_eq!(result["structuredContent"], json!({"sum": 42}));
    let result = session.call("one__sum", json!({"a": 1})).await;
    assert!(
        result["isError"] == true && result["content"][0]["text"].as_str().unwrap().contains('b'),
        "{result}"
    );
    // A tree of values would lose digits.
    let numbers = r#"{"large":123456789012345678901234567890,"exact":1.10}"#;
    let call = format!(r#"{{"name":"one__echo","arguments":{numbers}}}"#);
    session.send_text(&format!(r#"{{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{call}}}"#)).await;
    assert_eq!(session.next().await["result"]["content"][0]["text"], numbers);
    let result = session.call("one__plotter", json!({"message": "3 1 2 as svg"})).await;
    let image = &result["content"][0];
    assert_eq!((&image["type"], &image["mimeType"]), (&json!("image"), &json!("image/svg+xml")));
    assert!(image["data"].as_str().unwrap().starts_with("PHN2Zy"), "{image}");
    // What is not a message is answered.
    session.send_text("not json").await;
    let refused = session.next().await;
    assert_eq!((&refused["error"]["code"], &refused["id"]), (&json!(-32700), &json!(null)));
    // A question is asked while the call is open.
    let call = json!({"name": "two__approver", "arguments": {"message": "jump"}});
    session.send(json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call})).await;
    let question = session.next().await;
    assert_eq!(question["method"], "elicitation/create");
    let answer = json!({"action": "accept", "content": {"answer": "approve"}});
    session.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": answer})).await;
    assert_eq!(session.next().await["result"]["content"][0]["text"], "Approved: jump");
    let listed = session.request(4, "resources/list", json!({})).await;
    assert_eq!(listed["resources"][1]["uri"], "a2a://agents/two/card");
}

#[tokio::test]
async fn agents_of_a_file_are_tools_without_a_server() {
    let folder = configured(CONFIG);
    let mut session = Session::start(folder.path(), &[]).await;
    check_calls(&mut session).await;
    assert_eq!(session.end().await, Some(0));
    // No store is left beside the file.
    let left = files(folder.path());
    assert_eq!(left, ["a2ad.toml"]);
}

#[tokio::test]
async fn agents_of_a_server_are_tools() {
    let (running, elsewhere) = (Running::configured(CONFIG).await, tempfile::tempdir().unwrap());
    let mut session = Session::start(elsewhere.path(), &["--url", &running.url()]).await;
    check_calls(&mut session).await;
    assert_eq!(session.end().await, Some(0));
    // The server has run the calls.
    running.server.wait_for_log(r#""state":"input-required""#).await.unwrap();
}

/// The server that runs with the configuration of the folder is found.
#[tokio::test]
async fn cancelled_call_is_cancelled_at_the_server() {
    let running = Running::configured(CONFIG).await;
    let mut session = Session::start(running.path(), &[]).await;
    let call = json!({"name": "one__echo", "arguments": {"message": "hold"}});
    session.send(json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call})).await;
    until(&running, "one", TaskState::Working).await;
    let cancelled = json!({"requestId": 7});
    session.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled})).await;
    until(&running, "one", TaskState::Canceled).await;
    assert_eq!(session.end().await, Some(0));
}

/// The states of the tasks of an agent.
async fn states(running: &Running, agent: &str) -> Vec<TaskState> {
    let listed = client(&running.server, agent).list_tasks(ListTasks::default()).await.unwrap();
    listed.tasks.iter().map(|task| task.status.state).collect()
}

/// Waits until the only task of an agent has this state.
async fn until(running: &Running, agent: &str, state: TaskState) {
    eventually(async || states(running, agent).await == [state]).await;
}

/// Calls a tool of the server that runs in a folder, and closes the input when the task is in this state. Then the task
/// must be canceled before the process ends.
async fn check_end_of_input(tool: &str, text: &str, state: TaskState) {
    let running = Running::configured(CONFIG).await;
    let mut session = Session::start(running.path(), &[]).await;
    let call = json!({"name": tool, "arguments": {"message": text}});
    session.send(json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call})).await;
    if state == TaskState::InputRequired {
        assert_eq!(session.next().await["method"], "elicitation/create");
    }
    let (agent, _) = tool.split_once("__").unwrap();
    until(&running, agent, state).await;
    session.input = None;
    assert_eq!(within(session.child.wait()).await.unwrap().code(), Some(0));
    assert_eq!(states(&running, agent).await, [TaskState::Canceled], "{tool}");
}

#[tokio::test]
async fn end_of_input_cancels_an_open_call() {
    check_end_of_input("one__echo", "hold", TaskState::Working).await;
}

#[tokio::test]
async fn end_of_input_cancels_an_open_question() {
    check_end_of_input("two__approver", "jump", TaskState::InputRequired).await;
}

/// A call that was sent before the end of the input is answered.
#[tokio::test]
async fn end_of_input_lets_calls_end() {
    let folder = configured(CONFIG);
    let mut session = Session::start(folder.path(), &[]).await;
    let call = json!({"name": "one__sum", "arguments": {"a": 1, "b": 41}});
    session.send(json!({"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": call})).await;
    session.input = None;
    assert_eq!(session.next().await["result"]["structuredContent"], json!({"sum": 42}));
    assert_eq!(session.end().await, Some(0));
}

#[tokio::test]
async fn changed_agents_of_a_server_are_noticed() {
    let running = Running::configured(CONFIG).await;
    let file = running.path().join("a2ad.toml");
    let mut session = Session::start(running.path(), &[]).await;
    assert_eq!(session.tools().await, TOOLS);
    // A question that is open meanwhile belongs to the same task afterwards.
    let call = json!({"name": "two__approver", "arguments": {"message": "jump"}});
    session.send(json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call})).await;
    let question = session.next().await;
    let added =
        CONFIG.replace(r#"["approver"]"#, r#"["approver", "echo"]"#) + "three = { skills = [\"sum\"] }\n";
    std::fs::write(&file, added).unwrap();
    let notice = session.next().await;
    assert_eq!(notice["method"], "notifications/tools/list_changed");
    assert_eq!(session.next().await["method"], "notifications/resources/list_changed");
    let tools = session.tools().await;
    assert!(["two__echo", "three__sum"].iter().all(|tool| tools.contains(&(*tool).to_owned())), "{tools:?}");
    let result = session.call("three__sum", json!({"a": 1, "b": 1})).await;
    assert_eq!(result["structuredContent"], json!({"sum": 2}));
    let answer = json!({"action": "accept", "content": {"answer": "approve"}});
    session.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": answer})).await;
    let response = session.next().await;
    assert_eq!(response["result"]["content"][0]["text"], "Approved: jump", "{response}");
    assert_eq!(states(&running, "two").await, [TaskState::Completed]);
    assert_eq!(session.end().await, Some(0));
}

#[tokio::test]
async fn unanswered_question_cancels_the_task_at_the_server() {
    let running = Running::configured(CONFIG).await;
    let mut session = Session::start(running.path(), &[]).await;
    let call = json!({"name": "two__approver", "arguments": {"message": "jump"}});
    session.send(json!({"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call})).await;
    let question = session.next().await;
    session.send(json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})).await;
    assert_eq!(session.next().await["result"]["isError"], true);
    until(&running, "two", TaskState::Canceled).await;
    assert_eq!(session.end().await, Some(0));
}

#[tokio::test]
async fn call_over_http_has_one_log_line() {
    let Running { folder: _folder, server } = Running::configured(CONFIG).await;
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
        "name": "echo", "arguments": {"message": "secret"}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        },
    }});
    let headers = [
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
        ("mcp-protocol-version", "2026-07-28"),
        ("mcp-method", "tools/call"),
        ("mcp-name", "echo"),
    ];
    let body = body.to_string();
    let response =
        http1::request(server.address, "POST", "/a2a/one/mcp", &headers, body.as_bytes()).await.unwrap();
    let result = response.json().unwrap()["result"].clone();
    server.wait_for_log("tools/call").await.unwrap();
    let log = server.log();
    let lines: Vec<Value> = log
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|line| line["target"] == "a2ad::call")
        .collect();
    let [line] = lines.as_slice() else { panic!("{log}") };
    for (name, value) in
        [("binding", "MCP"), ("method", "tools/call"), ("agent", "one"), ("state", "completed")]
    {
        assert_eq!(line[name], value, "{line}");
    }
    assert_eq!(line["task_id"], result["_meta"]["a2ad/taskId"]);
    assert!(!log.contains("secret"), "{log}");
}

#[tokio::test]
async fn signal_ends_it() {
    let folder = configured(CONFIG);
    let mut session = Session::start(folder.path(), &[]).await;
    session.tools().await;
    let id = Pid::from_raw(session.child.id().unwrap().try_into().unwrap()).unwrap();
    kill_process(id, Signal::TERM).unwrap();
    assert_eq!(within(session.child.wait()).await.unwrap().code(), Some(0));
}

#[tokio::test]
async fn errors_are_on_stderr_and_stdout_stays_empty() {
    let folder = tempfile::tempdir().unwrap();
    for (arguments, code, expected) in [
        (&["mcp", "--url", "http://127.0.0.1:9"][..], 1, "cannot connect"),
        (&["mcp", "--url", "a b"], 2, "--url"),
        (&["mcp", "--config", "missing.toml"], 2, "missing.toml"),
        (&["mcp", "--config", "a2ad.toml", "--url", "http://127.0.0.1:9"], 2, "cannot be used with"),
    ] {
        run(folder.path(), arguments).await.fails(code, &[expected]);
    }
}
