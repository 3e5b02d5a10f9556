//! The examples of agents in other languages: they stream, ask, and go on after `kill -9` of the server.

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use a2ad_outbound::backends::command::CommandTool;
use protocol::TaskId;

use crate::common::{TestServer, answer, data, jsonl, show};

/// Set for a process of this test that is a server: the folder with its store.
const FOLDER: &str = "COMMAND_TEST_FOLDER";
/// Set for such a process: the command, as JSON.
const ARGV: &str = "COMMAND_TEST_ARGV";

#[tokio::test]
async fn python_example_asks_streams_and_resumes_after_kill_9() {
    ask_stream_and_resume(&["python3".into(), example("jsonl-agent.py")]).await;
}

#[tokio::test]
async fn typescript_example_asks_streams_and_resumes_after_kill_9() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("agent.mjs");
    std::fs::write(&script, without_types(&std::fs::read_to_string(example("jsonl-agent.ts")).unwrap()))
        .unwrap();
    ask_stream_and_resume(&["node".into(), script.to_str().unwrap().into()]).await;
}

/// The process that is killed: a server that runs the example.
#[tokio::test]
#[ignore = "started by the other tests as a process of its own"]
async fn server_process() {
    let argv: Vec<String> = serde_json::from_str(&std::env::var(ARGV).unwrap()).unwrap();
    let server = TestServer::start(Path::new(&std::env::var(FOLDER).unwrap()), tool(&argv));
    let asked = server.send(data(r#"{"sections": 6, "seconds": 0.1}"#)).await;
    assert_eq!(asked.lines, ["input_required: Which title shall the report have?"]);
    println!("task {}", asked.task.as_ref().unwrap().as_str());
    server.send_and_watch(answer(&asked, "Rain"), |_, line| println!("event {line}")).await;
}

async fn ask_stream_and_resume(argv: &[String]) {
    let folder = tempfile::tempdir().unwrap();
    let mut process = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "examples::server_process", "--ignored", "--nocapture"])
        .env(FOLDER, folder.path())
        .env(ARGV, serde_json::to_string(argv).unwrap())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines().map(Result::unwrap);
    // The test runner writes the beginning of the line.
    let task = lines.find_map(|line| Some(TaskId::from(line.split_once("task ")?.1))).unwrap();
    assert!(lines.any(|line| line.contains("Rain, section 2")), "the server has ended");
    process.kill().unwrap();
    process.wait().unwrap();

    let server = TestServer::start(folder.path(), tool(argv));
    let output = server.subscribe(task.clone()).await;
    assert_eq!(output.lines.last().unwrap(), "completed");
    let task = server.get(&task).await;
    let [artifact] = &task.artifacts[..] else { panic!("{:?}", task.artifacts) };
    let expected: Vec<_> = (1..=6).map(|section| format!("Rain, section {section}\n")).collect();
    assert_eq!(show(&artifact.parts), expected.join(" | "));
    let resumed = output.lines.iter().filter(|line| line.starts_with("working: writing section")).count();
    assert!(resumed < 6, "it has started anew: {:?}", output.lines);
}

fn tool(argv: &[String]) -> CommandTool {
    CommandTool { argv: argv.to_vec(), ..jsonl("") }
}

fn example(name: &str) -> String {
    let root: PathBuf = [env!("CARGO_MANIFEST_DIR"), "..", "..", "examples", name].iter().collect();
    root.to_str().unwrap().into()
}

/// JavaScript for versions of Node that cannot run TypeScript.
fn without_types(script: &str) -> String {
    let mut script: String =
        script.lines().filter(|line| !line.starts_with("type ")).map(|line| format!("{line}\n")).collect();
    for annotation in [": string", ": object", ": Arguments", ": Saved"] {
        script = script.replace(annotation, "");
    }
    script
}
