//! Operators' commands: `a2ad agents ls|enable|disable` and `a2ad ops`, on a running server and on its store.

#![allow(clippy::unwrap_used, reason = "a test fails on any error")]
#![allow(clippy::disallowed_types, reason = "documents are compared as trees")]

use std::{fs, path::Path, process::Stdio, time::Duration};

use serde_json::Value;
use tempfile::TempDir;
use testkit::{
    http1,
    process::{self, Server},
};
use tokio::process::Command;

const TIMEOUT: Duration = Duration::from_secs(30);
const CONFIG: &str = r#"
[server]
default_agent = "echo"
[skills.say]
builtin = "echo"
[agents.echo]
skills = ["say"]
[agents.other]
skills = ["say"]
[agents.off]
skills = ["say"]
enabled = false
"#;

fn a2ad(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = process::command(env!("CARGO_BIN_EXE_a2ad"));
    command.current_dir(folder).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env_remove("A2A_SECRET");
    command
}

fn configured() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a2ad.toml"), CONFIG).unwrap();
    folder
}

async fn serve(folder: &Path) -> Server {
    Server::start_command(a2ad(folder, &["serve", "--listen", "127.0.0.1:0"])).await.unwrap()
}

async fn stop(server: Server) {
    assert!(server.terminate(TIMEOUT).await.unwrap().success());
}

#[derive(Debug)]
struct Done {
    code: i32,
    out: String,
    err: String,
}

/// Runs a command of the program.
async fn run(folder: &Path, arguments: &[&str]) -> Done {
    let output = tokio::time::timeout(TIMEOUT, a2ad(folder, arguments).output()).await.unwrap().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Done { code: output.status.code().unwrap(), out: text(output.stdout), err: text(output.stderr) }
}

impl Done {
    /// The output of a command that succeeds and whose messages contain a text.
    #[track_caller]
    fn succeeds(&self, message: &str) -> &str {
        assert_eq!(self.code, 0, "{self:?}");
        assert!(self.err.contains(message), "{message:?} is not in {self:?}");
        &self.out
    }

    #[track_caller]
    fn fails(&self, code: i32, message: &str) {
        assert_eq!((self.code, self.out.as_str()), (code, ""), "{self:?}");
        assert!(self.err.contains(message), "{message:?} is not in {self:?}");
    }

    #[track_caller]
    fn document(&self) -> Value {
        assert_eq!(self.code, 0, "{self:?}");
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

async fn card_status(server: &Server, agent: &str) -> u16 {
    let path = format!("/a2a/{agent}/.well-known/agent-card.json");
    http1::request(server.address, "GET", &path, &[], b"").await.unwrap().status
}

/// The id and the state in each line.
fn states(out: &str) -> Vec<(&str, &str)> {
    out.lines()
        .map(|line| {
            let mut columns = line.split_whitespace();
            (columns.next().unwrap(), columns.next().unwrap())
        })
        .collect()
}

const ON: &str = "on the running server";
const IN: &str = "which no server uses";

#[tokio::test]
async fn agents_are_switched_on_a_server_and_in_its_store() {
    let folder = configured();
    let server = serve(folder.path()).await;
    let ls = run(folder.path(), &["agents", "ls"]).await;
    assert_eq!(states(ls.succeeds(ON)), [("echo", "enabled"), ("off", "disabled"), ("other", "enabled")]);
    run(folder.path(), &["agents", "disable", "other"]).await.succeeds(ON);
    run(folder.path(), &["agents", "enable", "off"]).await.succeeds(ON);
    assert_eq!([card_status(&server, "other").await, card_status(&server, "off").await], [404, 200]);
    run(folder.path(), &["agents", "disable", "othr"]).await.fails(6, "there is no agent");
    stop(server).await;

    let ls = run(folder.path(), &["agents", "ls"]).await;
    assert_eq!(states(ls.succeeds(IN)), [("echo", "enabled"), ("off", "enabled"), ("other", "disabled")]);
    run(folder.path(), &["agents", "disable", "echo"]).await.succeeds(IN);
    run(folder.path(), &["agents", "disable", "othr"]).await.fails(6, "the configuration has no agent");
    let server = serve(folder.path()).await;
    for (agent, status) in [("echo", 404), ("other", 404), ("off", 200)] {
        assert_eq!(card_status(&server, agent).await, status, "{agent}");
    }
    let listed = run(folder.path(), &["agents", "ls", "--json"]).await.document();
    let echo = &listed["agents"][0];
    assert_eq!(
        (&echo["id"], &echo["enabled"], &echo["decidedBy"]),
        (&"echo".into(), &false.into(), &"operator".into())
    );
    run(folder.path(), &["agents", "enable", "echo"]).await.succeeds(ON);
    assert_eq!(card_status(&server, "echo").await, 200);
    // The command of clients is as it was.
    let url = format!("http://{}", server.address);
    let agents = run(folder.path(), &["agents", &url]).await;
    assert!(agents.succeeds("").contains("off") && !agents.out.contains("other"), "{agents:?}");
    stop(server).await;
}

/// Starts a task that works until it is cancelled; returns its id.
async fn hold(server: &Server) -> String {
    let body = br#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hold"}]},"configuration":{"returnImmediately":true}}}"#;
    let headers = [("content-type", "application/json")];
    let response = http1::request(server.address, "POST", "/a2a/echo", &headers, body).await.unwrap();
    let reply: Value = serde_json::from_slice(&response.body).unwrap();
    reply["result"]["task"]["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn tasks_are_listed_shown_and_cancelled_on_a_server_and_in_its_store() {
    let folder = configured();
    let server = serve(folder.path()).await;
    let (one, two) = (hold(&server).await, hold(&server).await);
    let ids = |out: &str| {
        out.lines().map(|line| line.split_whitespace().next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let list = run(folder.path(), &["ops", "tasks"]).await;
    assert_eq!(ids(list.succeeds(ON)), [&*two, &one]);
    let task = run(folder.path(), &["ops", "task", &one, "--json"]).await;
    task.succeeds(ON);
    assert_eq!(task.document()["owner"], "anonymous");
    run(folder.path(), &["ops", "cancel", &one]).await.succeeds(ON);
    run(folder.path(), &["ops", "cancel", &one]).await.fails(8, "");
    run(folder.path(), &["ops", "task", "task_unknown"]).await.fails(6, "a2ad ops tasks lists the ids");
    run(folder.path(), &["ops", "counts"]).await.succeeds("1 running");
    stop(server).await;

    let list = run(folder.path(), &["ops", "tasks", "--state", "canceled"]).await;
    assert_eq!(ids(list.succeeds(IN)), [&*one]);
    let counts = run(folder.path(), &["ops", "counts", "--json"]).await;
    assert_eq!(counts.document()["agents"][0]["tasks"]["canceled"], 1);
    run(folder.path(), &["ops", "cancel", &two]).await.succeeds(IN);
    let task = run(folder.path(), &["ops", "task", &two]).await.document();
    assert_eq!(
        (&task["state"], &task["task"]["status"]["state"]),
        (&"canceled".into(), &"TASK_STATE_CANCELED".into())
    );
    run(folder.path(), &["ops", "cancel", &two]).await.fails(8, "");
    let server = serve(folder.path()).await;
    let counts = run(folder.path(), &["ops", "counts", "--json"]).await.document();
    assert_eq!(
        (&counts["agents"][0]["tasks"]["canceled"], &counts["queued"], &counts["running"]),
        (&2.into(), &0.into(), &0.into())
    );
    stop(server).await;
}

/// The actions in the audit log, and the log itself.
async fn actions(folder: &Path) -> Vec<String> {
    let log = run(folder, &["audit", "--json"]).await;
    let lines = log.succeeds("a2ad.db.audit.jsonl").lines();
    lines
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["action"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn changes_and_refusals_are_in_the_audit_log() {
    use std::os::unix::fs::PermissionsExt as _;
    use tokio::io::{AsyncBufReadExt as _, BufReader};

    let folder = configured();
    run(folder.path(), &["audit"]).await.fails(1, "there is no audit log");
    let server = serve(folder.path()).await;
    let mut follow = a2ad(folder.path(), &["audit", "-f"]).kill_on_drop(true).spawn().unwrap();
    let mut followed = BufReader::new(follow.stdout.take().unwrap()).lines();
    run(folder.path(), &["agents", "disable", "other"]).await.succeeds(ON);
    run(folder.path(), &["keys", "new", "echo"]).await.succeeds(ON);
    let headers = [("authorization", "Bearer canary-of-the-audit-log")];
    for _ in 0..3 {
        let refused =
            http1::request(server.address, "GET", "/console/api/keys", &headers, b"").await.unwrap();
        assert_eq!(refused.status, 401);
    }
    fs::write(folder.path().join("a2ad.toml"), format!("{CONFIG}\n[agents.new]\nskills = [\"say\"]\n"))
        .unwrap();
    let mut seen = Vec::new();
    while !seen.iter().any(|line: &String| line.contains("configuration.reload")) {
        let line = tokio::time::timeout(TIMEOUT, followed.next_line()).await.unwrap().unwrap().unwrap();
        seen.push(line);
    }
    let of = |action: &str| {
        seen.iter().find(|line| line.contains(action)).unwrap_or_else(|| panic!("{action}: {seen:?}"))
    };
    assert!(of("agent.disable").contains("agent=other") && of("agent.disable").contains("127.0.0.1"));
    assert!(of("refused.credential").contains("reason=UNAUTHENTICATED"));
    of("server.start");
    stop(server).await;
    run(folder.path(), &["agents", "enable", "other"]).await.succeeds(IN);
    let actions = actions(folder.path()).await;
    assert_eq!(actions.first().unwrap(), "server.start");
    assert_eq!(&actions[actions.len() - 2..], ["server.stop", "agent.enable"]);
    let file = folder.path().join("a2ad.db.audit.jsonl");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(!fs::read_to_string(&file).unwrap().contains("canary"));
    follow.start_kill().unwrap();
    follow.wait().await.unwrap();
}

#[tokio::test]
async fn the_audit_log_can_be_off_or_elsewhere() {
    let folder = configured();
    for (value, file) in [("off", None), ("changes.jsonl", Some("changes.jsonl"))] {
        let config = format!("{CONFIG}\n[audit]\nfile = \"{value}\"\n");
        fs::write(folder.path().join("a2ad.toml"), config).unwrap();
        let server = serve(folder.path()).await;
        run(folder.path(), &["agents", "disable", "other"]).await.succeeds(ON);
        stop(server).await;
        assert!(!folder.path().join("a2ad.db.audit.jsonl").exists());
        if let Some(file) = file {
            assert!(fs::read_to_string(folder.path().join(file)).unwrap().contains("agent.disable"));
        }
    }
}
