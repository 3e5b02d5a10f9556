//! One question, one answer: the simplest call.

use std::time::Duration;

use protocol::{Event, SendMessage, TaskState, TaskStatus};

use crate::{Client, ClientOptions, Error, Follow, FollowEvent, text};

/// Timeout of the whole call.
const CALL_TIMEOUT: Duration = Duration::from_secs(5 * 60);

/// Discovers the agent at this URL, sends `text` to it, waits for the task to settle and returns its text.
///
/// A task that requires input yields its question. A task that failed, was canceled or rejected, or requires
/// authentication is an error. The call is canceled after five minutes, with [`Error::Timeout`].
pub async fn call_agent(url: &str, text: &str) -> Result<String, Error> {
    tokio::time::timeout(CALL_TIMEOUT, ask(url, text)).await.map_err(|_| Error::Timeout)?
}

async fn ask(url: &str, text: &str) -> Result<String, Error> {
    let (client, _) = Client::discover_or_connect(url, ClientOptions::default()).await?;
    // An agent without artifacts and status message may have put its answer into the history.
    let req = SendMessage { history_length: Some(1), return_immediately: true, ..text.into() };
    let mut follow = Follow::send(&client, req).await?;
    while let Some(event) = follow.next().await? {
        if let FollowEvent::Event(Event::Message(message)) = event {
            return Ok(text::of_message(&message));
        }
    }
    let Some(task) = follow.task() else { return Ok(String::new()) };
    let TaskStatus { state, message, .. } = &task.status;
    match state {
        TaskState::Failed | TaskState::Canceled | TaskState::Rejected | TaskState::AuthRequired => {
            let text = message.as_ref().map(text::of_message).unwrap_or_default();
            Err(Error::Ended { state: *state, text })
        }
        TaskState::InputRequired => Ok(message.as_ref().map(text::of_message).unwrap_or_default()),
        _ => Ok(text::of_task(task)),
    }
}
