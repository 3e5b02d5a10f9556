//! One question, one answer.

use std::time::Duration;

use protocol::{Event, Message, Part, Role, SendMessage, TaskState, TaskStatus};

use crate::{Client, Error, Follow, FollowEvent, Options, text};

/// How long an agent may take.
const PATIENCE: Duration = Duration::from_secs(5 * 60);

/// Finds the agent at this URL by its card, says `words` to it, waits for the outcome and gives its text.
///
/// A task that waits for more to be said gives its question. One that ends in any other way than well is an error,
/// as is one that needs credentials.
pub async fn call_agent(url: &str, words: &str) -> Result<String, Error> {
    tokio::time::timeout(PATIENCE, ask(url, words)).await.map_err(|_| Error::Timeout)?
}

async fn ask(url: &str, words: &str) -> Result<String, Error> {
    let (client, _) = Client::reach(url, Options::default()).await?;
    let message = Message::new(uuid::Uuid::new_v4().to_string(), Role::User, vec![Part::text(words)]);
    // An agent that makes nothing and has no word about its status may have said its answer in the history.
    let req = SendMessage { history_length: Some(1), return_immediately: true, ..SendMessage::new(message) };
    let mut follow = Follow::send(&client, req).await?;
    while let Some(heard) = follow.next().await? {
        if let FollowEvent::Event(Event::Message(message)) = heard {
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
