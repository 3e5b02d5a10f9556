//! Refusals arrive as the SDK's own kinds of error, not as broken transport.

use a2a::{Task, TaskPushNotificationConfig, TaskState, TaskStatus, error_code};

use crate::talk::{ask, at_once, cancel, each, get, message, refusal, say, watch};

fn unknown() -> Task {
    Task {
        id: "task_that_nobody_ever_made".to_owned(),
        context_id: String::new(),
        status: TaskStatus { state: TaskState::Unspecified, message: None, timestamp: None },
        artifacts: None,
        history: None,
        metadata: None,
    }
}

#[tokio::test]
async fn an_unknown_task_is_not_found() {
    each(async |binding| {
        let client = binding.client("echo").await;
        let task = unknown();
        let mut more = say("more", Some(&task));
        more.message.context_id = None;
        for (what, error) in [
            ("get", get(&client, &task).await.unwrap_err()),
            ("cancel", cancel(&client, &task).await.unwrap_err()),
            ("send", client.send_message(&more).await.unwrap_err()),
            ("stream", refusal(client.send_streaming_message(&more).await).await),
            ("subscribe", refusal(watch(&client, &task).await).await),
        ] {
            assert_eq!(error.code, error_code::TASK_NOT_FOUND, "{what}: {error}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_task_is_unknown_to_other_agents() {
    each(async |binding| {
        let task = ask(&binding.client("echo").await, &say("mine", None)).await;
        let error = get(&binding.client("approver").await, &task).await.unwrap_err();
        assert_eq!(error.code, error_code::TASK_NOT_FOUND, "{error}");
    })
    .await;
}

#[tokio::test]
async fn a_finished_task_takes_no_subscriber_and_no_message() {
    each(async |binding| {
        let client = binding.client("echo").await;
        let task = ask(&client, &say("done at once", None)).await;
        let more = say("more", Some(&task));
        for (what, error) in [
            ("send", client.send_message(&more).await.unwrap_err()),
            ("stream", refusal(client.send_streaming_message(&more).await).await),
            ("subscribe", refusal(watch(&client, &task).await).await),
        ] {
            assert_eq!(error.code, error_code::UNSUPPORTED_OPERATION, "{what}: {error}");
        }
    })
    .await;
}

#[tokio::test]
async fn a_message_without_parts_is_refused_and_says_so() {
    each(async |binding| {
        let client = binding.client("echo").await;
        let error = client.send_message(&message(Vec::new(), None)).await.unwrap_err();
        assert_eq!(error.code, error_code::INVALID_PARAMS, "{error}");
        assert!(error.message.contains("parts"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn push_is_refused_as_unsupported() {
    each(async |binding| {
        let client = binding.client("echo").await;
        let task = ask(&client, &say("no push", None)).await;
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
async fn an_extension_that_is_required_has_to_be_known() {
    each(async |binding| {
        let error = binding.client("strict").await.send_message(&say("may I?", None)).await.unwrap_err();
        assert_eq!(error.code, error_code::EXTENSION_SUPPORT_REQUIRED, "{error}");
    })
    .await;
}

#[tokio::test]
async fn an_answer_nobody_could_read_is_not_begun() {
    each(async |binding| {
        let client = binding.client("approver").await;
        let mut req = at_once(say("may I?", None));
        req.configuration.as_mut().unwrap().accepted_output_modes = Some(vec!["image/png".to_owned()]);
        let error = client.send_message(&req).await.unwrap_err();
        assert_eq!(error.code, error_code::CONTENT_TYPE_NOT_SUPPORTED, "{error}");
    })
    .await;
}
