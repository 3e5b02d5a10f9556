//! Gives back what it is given.

use protocol::{Content, Json, Part, TaskState};

use crate::common::{House, message};

#[tokio::test]
async fn parts_come_back_as_they_came() {
    let house = House::of("echo");
    let parts = vec![
        Part::text("hello"),
        Part::data(Json::parse(r#"{"n":9007199254740993}"#).unwrap()),
        Part { filename: Some("a.bin".into()), ..Part::new(Content::Raw(vec![0, 255])) },
        Part {
            media_type: Some("image/png".into()),
            ..Part::new(Content::Url("https://example.com/a".into()))
        },
    ];
    let task = house.settled(message(parts.clone())).await;
    assert_eq!(task.status.state, TaskState::Completed);
    assert_eq!(task.artifacts.len(), 1);
    let artifact = &task.artifacts[0];
    assert_eq!((artifact.name.as_deref(), &artifact.parts), (Some("echo-result"), &parts));
    assert_eq!(house.talk(&["hello"]).await, ["working", "artifact echo-result: hello", "completed"]);
}

#[tokio::test]
async fn what_begins_with_hold_is_held_until_cancelled() {
    let house = House::of("echo");
    let held = house.send_at_once(message(vec![Part::text("hold on")])).await;
    assert_eq!(held.status.state, TaskState::Working);
    let canceled = house.cancel(&held.id).await;
    assert_eq!((canceled.status.state, canceled.artifacts.len()), (TaskState::Canceled, 0));
}
