//! What is told, whoever tells it.

use protocol::{Artifact, Content, Event, Message, Part, Role, Task, TaskState};

/// What a task is, the same in every generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) id: String,
    pub(crate) context: String,
    pub(crate) state: TaskState,
    /// What its status says.
    pub(crate) said: Option<String>,
    /// Names and texts.
    pub(crate) artifacts: Vec<(String, String)>,
    pub(crate) history: Vec<(Role, String)>,
}

impl Facts {
    pub(crate) fn of(task: &Task) -> Self {
        assert!(task.status.timestamp.is_some());
        let artifact = |artifact: &Artifact| (artifact.name.clone().unwrap_or_default(), text(artifact));
        Self {
            id: task.id.to_string(),
            context: task.context_id.to_string(),
            state: task.status.state,
            said: task.status.message.as_ref().map(Message::text),
            artifacts: task.artifacts.iter().map(artifact).collect(),
            history: task.history.iter().map(|message| (message.role, message.text())).collect(),
        }
    }
}

/// One frame of a stream.
pub(crate) struct Frame {
    pub(crate) number: u64,
    pub(crate) event: Event,
    /// It says that it is the last.
    pub(crate) last: bool,
}

impl Frame {
    /// What it tells in one line: `2 Working: text`, `3 + text` for a piece that is added to an artifact, `3 = text .`
    /// for one that is whole and the last. A task, for which the draft has no frame, is its status.
    pub(crate) fn line(&self) -> String {
        let number = self.number;
        let status = |state: TaskState, message: Option<&Message>| {
            let said = message.map_or(String::new(), |message| format!(": {}", message.text()));
            format!("{number} {state:?}{said}")
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

    /// The task it is about.
    pub(crate) fn task(&self) -> &str {
        match &self.event {
            Event::Task(task) => task.id.as_str(),
            Event::Status(update) => update.task_id.as_str(),
            Event::Artifact(update) => update.task_id.as_str(),
            Event::Message(message) => panic!("a bare message: {}", message.text()),
        }
    }
}

/// The texts of its parts, one behind the other.
fn text(artifact: &Artifact) -> String {
    let text = |part: &Part| match &part.content {
        Content::Text(text) => text.clone(),
        other => panic!("no text but {other:?}"),
    };
    artifact.parts.iter().map(text).collect()
}
