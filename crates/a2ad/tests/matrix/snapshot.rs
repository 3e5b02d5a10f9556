//! Tasks and stream frames in a form that does not depend on the interface.

use protocol::{Artifact, Content, Event, Message, Part, Role, Task, TaskState};

/// The content of a task that every generation can express.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskSnapshot {
    pub(crate) id: String,
    pub(crate) context: String,
    pub(crate) state: TaskState,
    /// The text of the status message.
    pub(crate) status_text: Option<String>,
    /// Name and text of each artifact.
    pub(crate) artifacts: Vec<(String, String)>,
    pub(crate) history: Vec<(Role, String)>,
}

impl TaskSnapshot {
    pub(crate) fn of(task: &Task) -> Self {
        assert!(task.status.timestamp.is_some());
        let artifact = |artifact: &Artifact| (artifact.name.clone().unwrap_or_default(), text(artifact));
        Self {
            id: task.id.to_string(),
            context: task.context_id.to_string(),
            state: task.status.state,
            status_text: task.status.message.as_ref().map(Message::text),
            artifacts: task.artifacts.iter().map(artifact).collect(),
            history: task.history.iter().map(|message| (message.role, message.text())).collect(),
        }
    }
}

/// One frame of an event stream.
pub(crate) struct Frame {
    pub(crate) number: u64,
    pub(crate) event: Event,
    /// Whether the frame is marked as the last one.
    pub(crate) last: bool,
}

impl Frame {
    /// The frame in one line: `2 Working: text` for a status, `3 + text` for an appended artifact chunk, `3 = text .` for
    /// a first chunk that is also the last. A task is shown as its status, because the draft has no task frame.
    pub(crate) fn line(&self) -> String {
        let number = self.number;
        let status = |state: TaskState, message: Option<&Message>| {
            let status_text = message.map_or(String::new(), |message| format!(": {}", message.text()));
            format!("{number} {state:?}{status_text}")
        };
        match &self.event {
            Event::Task(task) => status(task.status.state, task.status.message.as_ref()),
            Event::Status(update) => status(update.status.state, update.status.message.as_ref()),
            Event::Artifact(update) => {
                let sign = if update.append { '+' } else { '=' };
                let end = if update.last_chunk { " ." } else { "" };
                format!("{number} {sign} {}{end}", text(&update.artifact).trim_end())
            }
            Event::Message(message) => format!("{number} message: {}", message.text()),
        }
    }

    /// The id of the frame's task.
    pub(crate) fn task(&self) -> &str {
        match &self.event {
            Event::Task(task) => task.id.as_str(),
            Event::Status(update) => update.task_id.as_str(),
            Event::Artifact(update) => update.task_id.as_str(),
            Event::Message(message) => panic!("a bare message: {}", message.text()),
        }
    }
}

/// The concatenated texts of the parts.
fn text(artifact: &Artifact) -> String {
    let text = |part: &Part| match &part.content {
        Content::Text(text) => text.clone(),
        other => panic!("expected text, got {other:?}"),
    };
    artifact.parts.iter().map(text).collect()
}
