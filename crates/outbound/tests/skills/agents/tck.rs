//! The behaviours that the conformance kits expect.

use std::time::Duration;

use a2ad_outbound::agents::{self, Tck};
use engine::DynAgent;
use protocol::{Message, Part, Role, TaskState};

use super::common::TestServer;

fn server() -> TestServer {
    let millis = Duration::from_millis;
    TestServer::with(
        agents::builtin("tck").unwrap().info().clone(),
        DynAgent::new(Tck::paced(millis(20), millis(40))),
    )
}

fn named(id: &str, text: &str) -> Message {
    Message::new(id, Role::User, vec![Part::text(text)])
}

const HELLO: &str = "completed: Hello from TCK";
const TEXT: &str = "artifact tck-result: Generated text content";
const FILE: &str = "artifact tck-result: 22 bytes output.txt";
const URL: &str = "artifact tck-result: https://example.com/output.txt";
const DATA: &str = r#"artifact tck-result: {"key":"value","count":42}"#;
const ASK: &str = "input_required: Please say more";

#[tokio::test]
async fn prefix_of_the_id_or_text_selects_the_behaviour() {
    let server = server();
    let rows: [(&str, &[&str]); 19] = [
        ("tck-complete-task", &[HELLO]),
        ("tck-artifact-text", &["working", TEXT, HELLO]),
        ("tck-artifact-file", &["working", FILE, HELLO]),
        ("tck-artifact-file-url", &["working", URL, HELLO]),
        ("tck-artifact-data", &["working", DATA, HELLO]),
        ("tck-message-response", &["message: Direct message response"]),
        ("tck-input-required", &[ASK]),
        ("tck-reject-task", &["rejected: rejected"]),
        ("tck-stream-001", &["working", TEXT, HELLO]),
        ("tck-stream-002", &[HELLO]),
        ("tck-stream-003", &["working", TEXT, HELLO]),
        ("tck-stream-ordering-001", &["working", TEXT, HELLO]),
        ("tck-stream-artifact-text", &["working", TEXT, HELLO]),
        ("tck-stream-artifact-file", &["working", FILE, HELLO]),
        (
            "tck-stream-artifact-chunked",
            &["working", "artifact chunked: chunk-1 …", "artifact chunked+: chunk-2", HELLO],
        ),
        ("test-resubscribe-message-id", &["working", HELLO]),
        ("a2ad-fail", &["failed: failed as asked"]),
        ("a2ad-panic", &["failed: the agent stopped unexpectedly"]),
        ("tck-anything-else", &[HELLO]),
    ];
    for (start, expected) in rows {
        let by_id = server.send(named(&format!("{start}-xyz"), "hello")).await;
        assert_eq!(by_id.lines, expected, "{start}");
        let by_text = server.send(named("6f0c", &format!("{start} please"))).await;
        assert_eq!(by_text.lines, expected, "{start}");
    }
    for other in ["test-1", "msg-1", ""] {
        assert_eq!(server.send(named("1", other)).await.lines, ["working", ASK], "{other}");
    }
}

#[tokio::test]
async fn waiting_task_accepts_the_same_message_id_repeatedly() {
    let server = server();
    let mut output = server.send(named("tck-input-required-xyz", "one")).await;
    for text in ["two", "three", "four"] {
        let message = Message { task_id: output.task.clone(), ..named("tck-input-required-xyz", text) };
        output = server.send(message).await;
        assert_eq!(output.lines, [ASK]);
    }
    let last = Message { task_id: output.task.clone(), ..named("tck-complete-task-xyz", "five") };
    let task = server.send_and_wait(last).await;
    assert_eq!(task.status.state, TaskState::Completed);
    let texts: Vec<String> =
        task.history.iter().filter(|message| message.role == Role::User).map(Message::text).collect();
    assert_eq!(texts, ["one", "two", "three", "four", "five"]);
}

#[tokio::test]
async fn held_and_slow_work_can_be_canceled() {
    let second = Duration::from_secs(60);
    let server = TestServer::with(
        agents::builtin("tck").unwrap().info().clone(),
        DynAgent::new(Tck::paced(second, second)),
    );
    for id in ["tck-hold-xyz", "msg-xyz", "test-resubscribe-message-id-xyz"] {
        let task = server.send_immediate(named(id, "hello")).await;
        assert_eq!(task.status.state, TaskState::Working, "{id}");
        assert_eq!(server.cancel(&task.id).await.status.state, TaskState::Canceled, "{id}");
    }
}
