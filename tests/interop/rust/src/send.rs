//! Sending without streaming, and reading back what was stored.

use a2a::{GetTaskRequest, Part, Role, TaskState};
use serde_json::json;

use crate::helpers::{
    BINDINGS, assert_ends_once, collect, for_each_binding, get, message, non_blocking, send, subscribe,
    user_message,
};

#[tokio::test]
async fn blocking_send_returns_the_finished_task() {
    for_each_binding(async |binding| {
        let req = user_message("hello", None);
        let task = send(&binding.client("echo").await, &req).await;
        assert!(!task.id.is_empty() && !task.context_id.is_empty());
        assert_eq!(task.status.state, TaskState::Completed);
        assert!(task.status.timestamp.is_some());
        let history = task.history.unwrap();
        assert_eq!((&history[0].message_id, &history[0].role), (&req.message.message_id, &Role::User));
        assert_eq!(history[0].parts, req.message.parts);
    })
    .await;
}

#[tokio::test]
async fn every_kind_of_part_is_echoed_unchanged() {
    for_each_binding(async |binding| {
        let parts = vec![
            Part::text("Grüße, 世界 \u{2028} \"quoted\""),
            Part::data(json!({"number": 1.5, "nested": [true, null, {"text": ""}], "empty": {}})),
            Part::raw((0..=255).collect())
                .with_media_type("application/octet-stream")
                .with_filename("all.bin"),
            Part::url("https://example.com/a%20b?c=d").with_media_type("image/png").with_filename("b.png"),
        ];
        let task = send(&binding.client("echo").await, &message(parts.clone(), None)).await;
        let artifacts = task.artifacts.unwrap();
        assert_eq!(artifacts.len(), 1);
        assert_eq!(artifacts[0].parts, parts);
    })
    .await;
}

#[tokio::test]
async fn stored_task_equals_the_response_in_every_binding() {
    for_each_binding(async |binding| {
        let created = send(&binding.client("echo").await, &user_message("keep this", None)).await;
        for other in BINDINGS {
            assert_eq!(get(&other.client("echo").await, &created).await.unwrap(), created, "{other:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn history_has_the_requested_length() {
    for_each_binding(async |binding| {
        let client = binding.client("echo").await;
        let task = send(&client, &user_message("remember", None)).await;
        for (length, expected) in [(0, 0), (1, 1)] {
            let req = GetTaskRequest { id: task.id.clone(), history_length: Some(length), tenant: None };
            let stored = client.get_task(&req).await.unwrap();
            assert_eq!(stored.history.unwrap_or_default().len(), expected);
        }
    })
    .await;
}

#[tokio::test]
async fn non_blocking_send_returns_before_the_end() {
    for_each_binding(async |binding| {
        let client = binding.client("slow-writer").await;
        let task = send(&client, &non_blocking(user_message("sections=5 delay=100ms", None))).await;
        assert!(matches!(task.status.state, TaskState::Submitted | TaskState::Working), "{task:?}");
        let events = collect(subscribe(&client, &task).await.unwrap()).await;
        assert_ends_once(&events, &TaskState::Completed);
    })
    .await;
}
