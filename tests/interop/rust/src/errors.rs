//! Errors arrive as the SDK's own error codes, not as transport failures.

use a2a::{Task, TaskPushNotificationConfig, TaskState, TaskStatus, error_code};

use crate::helpers::{
    cancel, for_each_binding, get, message, non_blocking, send, stream_error, subscribe, user_message,
};

fn unknown() -> Task {
    Task {
        id: "task_that_never_existed".to_owned(),
        context_id: String::new(),
        status: TaskStatus { state: TaskState::Unspecified, message: None, timestamp: None },
        artifacts: None,
        history: None,
        metadata: None,
    }
}

#[tokio::test]
async fn unknown_task_is_not_found() {
    for_each_binding(async |binding| {
        let client = binding.client("echo").await;
        let task = unknown();
        let mut more = user_message("more", Some(&task));
        more.message.context_id = None;
        for (what, error) in [
            ("get", get(&client, &task).await.unwrap_err()),
            ("cancel", cancel(&client, &task).await.unwrap_err()),
            ("send", client.send_message(&more).await.unwrap_err()),
            ("stream", stream_error(client.send_streaming_message(&more).await).await),
            ("subscribe", stream_error(subscribe(&client, &task).await).await),
        ] {
            assert_eq!(error.code, error_code::TASK_NOT_FOUND, "{what}: {error}");
        }
    })
    .await;
}

#[tokio::test]
async fn task_of_another_agent_is_not_found() {
    for_each_binding(async |binding| {
        let task = send(&binding.client("echo").await, &user_message("mine", None)).await;
        let error = get(&binding.client("approver").await, &task).await.unwrap_err();
        assert_eq!(error.code, error_code::TASK_NOT_FOUND, "{error}");
    })
    .await;
}

#[tokio::test]
async fn finished_task_rejects_subscribers_and_messages() {
    for_each_binding(async |binding| {
        let client = binding.client("echo").await;
        let task = send(&client, &user_message("done at once", None)).await;
        let more = user_message("more", Some(&task));
        for (what, error) in [
            ("send", client.send_message(&more).await.unwrap_err()),
            ("stream", stream_error(client.send_streaming_message(&more).await).await),
            ("subscribe", stream_error(subscribe(&client, &task).await).await),
        ] {
            assert_eq!(error.code, error_code::UNSUPPORTED_OPERATION, "{what}: {error}");
        }
    })
    .await;
}

#[tokio::test]
async fn message_without_parts_is_rejected_naming_the_field() {
    for_each_binding(async |binding| {
        let client = binding.client("echo").await;
        let error = client.send_message(&message(Vec::new(), None)).await.unwrap_err();
        assert_eq!(error.code, error_code::INVALID_PARAMS, "{error}");
        assert!(error.message.contains("parts"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn push_config_is_rejected_as_unsupported() {
    for_each_binding(async |binding| {
        let client = binding.client("echo").await;
        let task = send(&client, &user_message("no push", None)).await;
        let config = TaskPushNotificationConfig {
            url: "https://example.com/hook".to_owned(),
            id: None,
            task_id: task.id,
            token: None,
            authentication: None,
            tenant: None,
        };
        let error = client.create_push_config(&config).await.unwrap_err();
        assert_eq!(error.code, error_code::PUSH_NOTIFICATION_NOT_SUPPORTED, "{error}");
    })
    .await;
}

#[tokio::test]
async fn missing_required_extension_is_rejected() {
    for_each_binding(async |binding| {
        let error =
            binding.client("strict").await.send_message(&user_message("may I?", None)).await.unwrap_err();
        assert_eq!(error.code, error_code::EXTENSION_SUPPORT_REQUIRED, "{error}");
    })
    .await;
}

#[tokio::test]
async fn unsupported_output_mode_is_rejected() {
    for_each_binding(async |binding| {
        let client = binding.client("approver").await;
        let mut req = non_blocking(user_message("may I?", None));
        req.configuration.as_mut().unwrap().accepted_output_modes = Some(vec!["image/png".to_owned()]);
        let error = client.send_message(&req).await.unwrap_err();
        assert_eq!(error.code, error_code::CONTENT_TYPE_NOT_SUPPORTED, "{error}");
    })
    .await;
}
