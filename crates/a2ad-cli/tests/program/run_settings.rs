//! Execution settings of skills in the configuration file, as clients of the server see them.

use std::path::Path;

use client::Client;
use protocol::{Task, TaskId, TaskState};
use testkit::process::Server;

use super::common::{self, begin, client, ended, until, within};

/// A server with this configuration file.
async fn serve(folder: &Path, config: &str) -> Server {
    std::fs::write(folder.join("a2ad.toml"), config).unwrap();
    common::serve(folder).await
}

/// The task when it has failed.
async fn failed(client: &Client, id: &TaskId) -> Task {
    let task = ended(client, id).await;
    assert_eq!(task.status.state, TaskState::Failed, "{task:?}");
    task
}

/// The text and the metadata of the status message.
fn message(task: &Task) -> (String, String) {
    let message = task.status.message.as_ref().unwrap();
    (message.text(), message.metadata.as_ref().map(|json| json.as_str().to_owned()).unwrap_or_default())
}

#[tokio::test]
async fn tasks_fail_at_the_deadline_of_their_skill_running_queued_or_waiting() {
    let config = r#"
        [limits]
        concurrent = 2
        [skills.write]
        builtin = "slow-writer"
        deadline = "1s"
        [skills.ask]
        builtin = "approver"
        deadline = "1s"
        [skills.hold]
        builtin = "echo"
        [skills.echo]
        builtin = "echo"
        deadline = "1s"
        [agents.main]
        skills = ["hold"]
        [agents.writer]
        skills = ["write"]
        [agents.asker]
        skills = ["ask"]
        [agents.echo]
        skills = ["echo"]
    "#;
    let folder = tempfile::tempdir().unwrap();
    let server = serve(folder.path(), config).await;
    let [main, writer, asker, echo] = ["main", "writer", "asker", "echo"].map(|agent| client(&server, agent));
    let waiting = begin(&asker, "delete the old backups").await;
    let without_deadline = begin(&main, "hold on").await;
    let running = begin(&writer, "the sea sections=100 delay=100ms").await;
    // Both slots are taken.
    let queued = begin(&echo, "hello").await;
    assert_eq!(queued.status.state, TaskState::Submitted);
    for (client, task) in [(&asker, waiting), (&writer, running), (&echo, queued)] {
        let (text, metadata) = message(&failed(client, &task.id).await);
        assert!(text.starts_with("the task did not end before its deadline 20"), "{text}");
        assert_eq!(metadata, r#"{"a2ad":{"reason":"deadline"}}"#);
    }
    let held = within(main.get_task(&without_deadline.id)).await.unwrap();
    assert_eq!(held.status.state, TaskState::Working);
    server.kill().await.unwrap();
}

#[tokio::test]
async fn run_time_of_a_skill_is_shorter_than_that_of_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let config = "[skills.hold]\nbuiltin = \"echo\"\nrun_time = \"200ms\"\n";
    let server = serve(folder.path(), config).await;
    let main = client(&server, "main");
    let task = begin(&main, "hold on").await;
    let (text, metadata) = message(&failed(&main, &task.id).await);
    assert_eq!(text, "the turn took longer than 200ms");
    assert_eq!(metadata, r#"{"a2ad":{"reason":"run_time"}}"#);
    server.kill().await.unwrap();
}

#[tokio::test]
async fn attempts_of_a_skill_limit_its_runs_after_a_kill() {
    let folder = tempfile::tempdir().unwrap();
    let config = "[skills.hold]\nbuiltin = \"echo\"\nattempts = 1\n";
    let server = serve(folder.path(), config).await;
    let task = begin(&client(&server, "main"), "hold on").await;
    assert_eq!(task.status.state, TaskState::Working);
    server.kill().await.unwrap();
    let server = serve(folder.path(), config).await;
    let (text, _) = message(&failed(&client(&server, "main"), &task.id).await);
    assert_eq!(text, "gave up after 1 attempts");
    server.kill().await.unwrap();
}

/// The writer is resumed unless its skill sets something else: then its artifact begins anew.
#[tokio::test]
async fn on_crash_of_a_skill_decides_what_is_kept_after_a_kill() {
    let skill = "[skills.write]\nbuiltin = \"slow-writer\"\n";
    for (config, first) in [(skill.to_owned(), true), (format!("{skill}on_crash = \"retry\"\n"), false)] {
        let folder = tempfile::tempdir().unwrap();
        let server = serve(folder.path(), &config).await;
        let main = client(&server, "main");
        let id = begin(&main, "the sea sections=20 delay=50ms").await.id;
        until(&main, &id, |task| !task.artifacts.is_empty()).await;
        server.kill().await.unwrap();
        let server = serve(folder.path(), &config).await;
        let written = ended(&client(&server, "main"), &id).await;
        assert_eq!(written.status.state, TaskState::Completed);
        let parts: Vec<_> = written.artifacts.iter().flat_map(|artifact| &artifact.parts).collect();
        assert_eq!(format!("{parts:?}").contains("Section 1 of 20"), first, "{config}{parts:?}");
        server.kill().await.unwrap();
    }
}
