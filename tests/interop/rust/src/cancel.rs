//! Cancellation: accepted once, final, and rejected afterwards.

use a2a::{TaskState, error_code};

use crate::helpers::{cancel, for_each_binding, get, non_blocking, send, user_message};

#[tokio::test]
async fn canceled_task_stays_canceled() {
    for_each_binding(async |binding| {
        let client = binding.client("echo").await;
        let task = send(&client, &non_blocking(user_message("hold this", None))).await;
        assert!(!task.status.state.is_terminal());
        let canceled = cancel(&client, &task).await.unwrap();
        assert_eq!((&canceled.id, &canceled.status.state), (&task.id, &TaskState::Canceled));
        assert_eq!(cancel(&client, &task).await.unwrap_err().code, error_code::TASK_NOT_CANCELABLE);
        assert_eq!(get(&client, &task).await.unwrap().status, canceled.status);
    })
    .await;
}

#[tokio::test]
async fn waiting_task_can_be_canceled() {
    for_each_binding(async |binding| {
        let client = binding.client("approver").await;
        let task = send(&client, &user_message("may I?", None)).await;
        assert_eq!(cancel(&client, &task).await.unwrap().status.state, TaskState::Canceled);
    })
    .await;
}

#[tokio::test]
async fn finished_task_is_not_cancelable_and_unchanged() {
    for_each_binding(async |binding| {
        let client = binding.client("echo").await;
        let task = send(&client, &user_message("done at once", None)).await;
        assert_eq!(cancel(&client, &task).await.unwrap_err().code, error_code::TASK_NOT_CANCELABLE);
        assert_eq!(get(&client, &task).await.unwrap(), task);
    })
    .await;
}
