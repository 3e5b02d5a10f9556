//! Converts the protocol's reply, one type for all operations, to the result of one operation.
//!
//! The dialect decodes each response as the result of its operation, so another kind of reply means that the
//! agent's response was not understood.

use protocol::{AgentCard, Message, PushConfig, PushConfigPage, Reply, Task, TaskPage, Violation};

use crate::{Error, text};

/// The result of [`Client::send`](crate::Client::send). Which of the two it is, the agent decides.
#[derive(Clone, Debug, PartialEq)]
pub enum SendReply {
    /// The task that the message started or continued. It may still be running.
    Task(Task),
    /// A direct response; there is no task.
    Message(Message),
}

impl SendReply {
    /// The text of the result; see [`text::of_task`] and [`text::of_message`].
    pub fn text(&self) -> String {
        match self {
            Self::Task(task) => text::of_task(task),
            Self::Message(message) => text::of_message(message),
        }
    }

    /// The task, if there is one.
    pub fn into_task(self) -> Option<Task> {
        match self {
            Self::Task(task) => Some(task),
            Self::Message(_) => None,
        }
    }
}

pub(crate) fn sent(reply: Reply) -> Result<SendReply, Error> {
    match reply {
        Reply::SentTask(task) => Ok(SendReply::Task(task)),
        Reply::SentMessage(message) => Ok(SendReply::Message(message)),
        _ => Err(expected("a task or a message")),
    }
}

pub(crate) fn task(reply: Reply) -> Result<Task, Error> {
    match reply {
        Reply::Task(task) => Ok(task),
        _ => Err(expected("a task")),
    }
}

pub(crate) fn tasks(reply: Reply) -> Result<TaskPage, Error> {
    match reply {
        Reply::Tasks(page) => Ok(page),
        _ => Err(expected("a list of tasks")),
    }
}

pub(crate) fn push_config(reply: Reply) -> Result<PushConfig, Error> {
    match reply {
        Reply::PushConfig(config) => Ok(config),
        _ => Err(expected("a push notification config")),
    }
}

pub(crate) fn push_configs(reply: Reply) -> Result<PushConfigPage, Error> {
    match reply {
        Reply::PushConfigs(page) => Ok(page),
        _ => Err(expected("a list of push notification configs")),
    }
}

pub(crate) fn deleted(reply: &Reply) -> Result<(), Error> {
    match reply {
        Reply::Deleted => Ok(()),
        _ => Err(expected("an empty result")),
    }
}

pub(crate) fn card(reply: Reply) -> Result<AgentCard, Error> {
    match reply {
        Reply::Card(card) => Ok(*card),
        _ => Err(expected("an agent card")),
    }
}

fn expected(result: &str) -> Error {
    Error::Malformed(Violation::new("result", format_args!("expected {result}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reply_of_another_operation_is_an_error() {
        let errors = [
            (sent(Reply::Deleted).unwrap_err(), "a task or a message"),
            (task(Reply::Deleted).unwrap_err(), "a task"),
            (tasks(Reply::Deleted).unwrap_err(), "a list of tasks"),
            (push_config(Reply::Deleted).unwrap_err(), "a push notification config"),
            (push_configs(Reply::Deleted).unwrap_err(), "a list of push notification configs"),
            (deleted(&Reply::PushConfig(PushConfig::new("http://h"))).unwrap_err(), "an empty result"),
            (card(Reply::Deleted).unwrap_err(), "an agent card"),
        ];
        for (error, result) in errors {
            let expected = format!("the agent's response is not valid A2A: result: expected {result}");
            assert_eq!(error.to_string(), expected);
        }
    }
}
