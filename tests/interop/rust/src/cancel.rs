//! Cancelling: granted once, final, and refused ever after.

use a2a::{TaskState, error_code};

use crate::talk::{ask, at_once, cancel, each, get, say};

#[tokio::test]
async fn a_running_task_is_cancelled_for_good() {
    each(async |binding| {
        let client = binding.client("echo").await;
        let task = ask(&client, &at_once(say("hold this", None))).await;
        assert!(!task.status.state.is_terminal());
        let canceled = cancel(&client, &task).await.unwrap();
        assert_eq!((&canceled.id, &canceled.status.state), (&task.id, &TaskState::Canceled));
        assert_eq!(cancel(&client, &task).await.unwrap_err().code, error_code::TASK_NOT_CANCELABLE);
        assert_eq!(get(&client, &task).await.unwrap().status, canceled.status);
    })
    .await;
}

#[tokio::test]
async fn a_waiting_task_can_be_cancelled() {
    each(async |binding| {
        let client = binding.client("approver").await;
        let task = ask(&client, &say("may I?", None)).await;
        assert_eq!(cancel(&client, &task).await.unwrap().status.state, TaskState::Canceled);
    })
    .await;
}

#[tokio::test]
async fn a_finished_task_is_not_cancelable_and_stays_as_it_is() {
    each(async |binding| {
        let client = binding.client("echo").await;
        let task = ask(&client, &say("done at once", None)).await;
        assert_eq!(cancel(&client, &task).await.unwrap_err().code, error_code::TASK_NOT_CANCELABLE);
        assert_eq!(get(&client, &task).await.unwrap(), task);
    })
    .await;
}
