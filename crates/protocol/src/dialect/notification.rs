//! The body of a push notification: in the form of the version in which its webhook was registered.

use crate::{ConfigId, Reply, Task, TaskId, json::write::Writer};

use super::{Dialect, Style};

impl Dialect {
    /// The body of a notification about a task. Before 1.0 it is the task, in 1.0 a stream frame with it.
    pub fn encode_notification(self, mut task: Task, style: Style) -> Vec<u8> {
        let form = match self {
            Self::Draft => Self::Draft,
            // Receivers of 0.3 know one form of a task, whichever binding registered the webhook.
            Self::V03 | Self::V03Proto => Self::V03,
            Self::V1 => Self::V1,
        };
        form.project(&mut task, style);
        let reply = if self.notifies_with_events() { Reply::SentTask(task) } else { Reply::Task(task) };
        let mut writer = Writer::new();
        form.encode_reply(&mut writer, &reply, style);
        writer.finish()
    }

    /// Whether a notification may be a single event instead of the task. The frames of the log are such bodies.
    pub fn notifies_with_events(self) -> bool {
        match self {
            Self::Draft | Self::V03 | Self::V03Proto => false,
            Self::V1 => true,
        }
    }

    /// Whether receivers may be asked to confirm their URL: only the draft describes how.
    pub fn confirms_webhooks(self) -> bool {
        match self {
            Self::Draft => true,
            Self::V03 | Self::V03Proto | Self::V1 => false,
        }
    }

    /// The id of a webhook that is registered without one; `None` if the server makes a new one. In the draft a task has
    /// one webhook, which registering again replaces.
    pub fn default_webhook_id(self, task: &TaskId) -> Option<ConfigId> {
        match self {
            Self::Draft => Some(ConfigId::from(task.as_str())),
            Self::V03 | Self::V03Proto | Self::V1 => None,
        }
    }

    /// The field of a send that has the webhook for its task, as a path in the parameters.
    pub fn inline_webhook_field(self) -> &'static str {
        match self {
            Self::Draft => "pushNotification",
            Self::V03 => "configuration.pushNotificationConfig",
            Self::V03Proto => "configuration.pushNotification",
            Self::V1 => "configuration.taskPushNotificationConfig",
        }
    }

    /// The media type of notifications.
    pub fn notification_media_type(self) -> &'static str {
        match self {
            Self::Draft | Self::V03 | Self::V03Proto => "application/json",
            Self::V1 => "application/a2a+json",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{TaskState, TaskStatus};

    #[test]
    fn the_task_is_bare_before_1_0_and_in_a_frame_since() {
        let body = |dialect: Dialect| {
            let status = TaskStatus { state: TaskState::Completed, message: None, timestamp: None };
            let task = Task {
                id: "t".into(),
                context_id: "c".into(),
                status,
                artifacts: Vec::new(),
                history: Vec::new(),
                metadata: None,
                created_at: None,
            };
            String::from_utf8(dialect.encode_notification(task, Style::default())).unwrap()
        };
        assert!(body(Dialect::Draft).starts_with(r#"{"id":"t""#), "{}", body(Dialect::Draft));
        assert_eq!(body(Dialect::V03), body(Dialect::V03Proto));
        assert!(body(Dialect::V03).contains(r#""kind":"task""#));
        assert!(body(Dialect::V1).starts_with(r#"{"task":{"#));
    }
}
