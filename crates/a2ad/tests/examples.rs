//! The examples, each run as the program that a user would start.

#![allow(clippy::unwrap_used, reason = "a test fails on any error")]

use std::{path::PathBuf, process::Stdio, time::Duration};

#[cfg(feature = "mcp")]
use a2ad::client::{ClientOptions, find_card};
use a2ad::{
    Client,
    client::{SendMessage, text},
    model::{Event, TaskState},
};
use testkit::http1;
use tokio::{
    io::{AsyncBufReadExt as _, BufReader},
    process::{Child, Command},
};

/// The time limit of one operation.
const TIMEOUT: Duration = Duration::from_secs(30);

async fn with_timeout<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(TIMEOUT, future).await.expect("the operation timed out")
}

/// `cargo test -p a2ad` builds the examples beside the tests; with `--test examples` alone it does not.
fn example(name: &str) -> Command {
    let tests = std::env::current_exe().unwrap();
    let path: PathBuf = tests.parent().unwrap().with_file_name("examples").join(name);
    assert!(path.exists(), "{} is not built: run `cargo build -p a2ad --examples`", path.display());
    let mut command = Command::new(path);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    command
}

/// An example that serves; its URL is read from what it writes.
struct Serving {
    child: Child,
    url: String,
}

impl Serving {
    async fn start(name: &str, arguments: &[&str]) -> Self {
        let mut child = example(name).args(arguments).spawn().unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let url = loop {
            let line = with_timeout(lines.next_line()).await.unwrap().expect("the example wrote no URL");
            if let Some(at) = line.find("http://") {
                break line[at..].split_whitespace().next().unwrap().trim_end_matches('/').to_owned();
            }
        };
        Self { child, url }
    }

    /// SIGKILL.
    async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}

/// Runs the client of the examples; returns what it prints.
async fn run_client(arguments: &[&str]) -> String {
    let output = with_timeout(example("client").args(arguments).output()).await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn agent_answers_and_asks() {
    let server = Serving::start("agent", &["127.0.0.1:0"]).await;
    let printed = run_client(&[&server.url, "hello"]).await;
    assert!(printed.starts_with("shouting\nHELLO\n") && printed.contains("is Completed"), "{printed}");
    let printed = run_client(&[&server.url, "", "later"]).await;
    assert!(printed.starts_with("What shall I shout?\nshouting\nLATER\n"), "{printed}");
}

#[tokio::test]
async fn error_of_main_is_readable() {
    let output = with_timeout(example("agent").arg("0.0.0.0:4243").output()).await.unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(text.starts_with("Error: listening on 0.0.0.0:4243 would accept calls from anyone: nobody has decided who may call shout; "), "{text}");
}

#[tokio::test]
async fn mounted_agents_leave_the_routes_of_the_app_intact() {
    let server = Serving::start("mount", &["127.0.0.1:0"]).await;
    assert!(run_client(&[&server.url, "hello"]).await.contains("hello\n"));
    let address = server.url.trim_start_matches("http://").parse().unwrap();
    let page = http1::request(address, "GET", "/hello", &[], &[]).await.unwrap();
    assert_eq!((page.status, page.text().as_str()), (200, "hello from the app"));
}

#[cfg(feature = "mcp")]
#[tokio::test]
async fn function_is_a_skill_although_the_mcp_server_does_not_start() {
    let server = Serving::start("tools", &["127.0.0.1:0", "http://127.0.0.1:9/fx", "false"]).await;
    let found = with_timeout(find_card(&server.url, &ClientOptions::default())).await.unwrap();
    let skills: Vec<&str> = found.card.skills.iter().map(|skill| skill.id.as_str()).collect();
    assert_eq!((found.card.name.as_str(), skills), ("helper", vec!["fx"]));
}

#[tokio::test]
async fn writer_asks_once_and_resumes_after_kill() {
    let folder = tempfile::tempdir().unwrap();
    let store = folder.path().join("writer.db");
    let store = store.to_str().unwrap();
    let server = Serving::start("writer", &["127.0.0.1:0", store]).await;
    let client = Client::discover(&server.url).await.unwrap();
    let asked = with_timeout(client.send("the sea")).await.unwrap().into_task().unwrap();
    assert_eq!(asked.status.state, TaskState::InputRequired);

    let answer = SendMessage::from("8").to_task(&asked.id);
    let mut events = with_timeout(client.stream(answer)).await.unwrap();
    let mut chapters = 0;
    while chapters < 3 {
        let event = with_timeout(events.next()).await.unwrap().unwrap();
        chapters += usize::from(matches!(event, Event::Artifact(_)));
    }
    server.kill().await;

    let server = Serving::start("writer", &["127.0.0.1:0", store]).await;
    let client = Client::discover(&server.url).await.unwrap();
    let task = with_timeout(async {
        loop {
            let task = client.get_task(&asked.id).await.unwrap();
            if task.status.state.is_settled() {
                return task;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    })
    .await;
    assert_eq!(task.status.state, TaskState::Completed);
    let expected: String = (1..=8).map(|number| format!("Chapter {number} of the sea.\n")).collect();
    let written: String = task.artifacts.iter().map(|artifact| text::of_parts(&artifact.parts)).collect();
    assert_eq!(written, expected);
}

/// The agent of the documentation is the one that the tests run.
#[test]
fn documents_show_the_agent_of_the_example() {
    let example = include_str!("../examples/agent.rs");
    let start = example.find("async fn shout").unwrap();
    let agent = &example[start..start + example[start..].find("\n}\n").unwrap() + 3];
    let readme = include_str!("../../../README.md");
    let library = include_str!("../src/lib.rs").replace("//! ", "").replace("//!\n", "\n");
    assert!(readme.contains(agent) && library.contains(agent), "{agent}");
}
