//! The echo agent returns what it receives.

use protocol::{Content, Json, Part, TaskState};

use super::common::{TestServer, message};

#[tokio::test]
async fn parts_are_returned_unchanged() {
    let server = TestServer::builtin("echo");
    let parts = vec![
        Part::text("hello"),
        Part::data(Json::parse(r#"{"n":9007199254740993}"#).unwrap()),
        Part { filename: Some("a.bin".into()), ..Part::new(Content::Raw(vec![0, 255])) },
        Part {
            media_type: Some("image/png".into()),
            ..Part::new(Content::Url("https://example.com/a".into()))
        },
    ];
    let task = server.send_and_wait(message(parts.clone())).await;
    assert_eq!(task.status.state, TaskState::Completed);
    assert_eq!(task.artifacts.len(), 1);
    let artifact = &task.artifacts[0];
    assert_eq!((artifact.name.as_deref(), &artifact.parts), (Some("echo-result"), &parts));
    assert_eq!(server.send_all(&["hello"]).await, ["working", "artifact echo-result: hello", "completed"]);
}

#[tokio::test]
async fn hold_keeps_the_task_working_until_canceled() {
    let server = TestServer::builtin("echo");
    let held = server.send_immediate(message(vec![Part::text("hold on")])).await;
    assert_eq!(held.status.state, TaskState::Working);
    let canceled = server.cancel(&held.id).await;
    assert_eq!((canceled.status.state, canceled.artifacts.len()), (TaskState::Canceled, 0));
}
