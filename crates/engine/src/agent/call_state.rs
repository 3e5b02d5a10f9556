//! What is recorded of the call of a skill by other work of the same task ([`Turn::call`](super::Turn::call)).
//!
//! Three steps of the task have it, under the id of the call: the step itself, whose output is how the call has ended; its
//! state, while it has not; and the last checkpoint of the called skill. Outcome and state have the form of a task of A2A
//! 1.0, whose history are the messages of the call.

use std::collections::HashSet;

use bytes::Bytes;
use protocol::{
    Artifact, ArtifactId, Json, Message, Task, TaskId, TaskState, TaskStatus,
    dialect::v1,
    json::{
        read::{Node, Path},
        write::Writer,
    },
};

use super::{AgentError, AgentResult, CallQuestion, CallResult, Outcome};
use crate::store::{JournalStep, StepOwner};

/// The call of a skill.
#[derive(Clone)]
pub(crate) struct CallState {
    task: Task,
    /// Artifacts whose last chunk is not here: a further chunk is appended to them.
    open: HashSet<ArtifactId>,
    /// The client has got the question.
    is_shown: bool,
}

/// Id of the step with the state of a call.
pub(crate) fn state_id(call: &str) -> String {
    format!("state:{call}")
}

/// Id of the step with the checkpoint of a call.
pub(crate) fn saved_id(call: &str) -> String {
    format!("saved:{call}")
}

impl CallState {
    /// A call that begins with a message.
    pub(crate) fn new(message: Message, task: &TaskId) -> Self {
        let status = TaskStatus { state: TaskState::Working, message: None, timestamp: None };
        let context_id = message.context_id.clone().unwrap_or_else(|| "".into());
        let task = Task {
            id: task.clone(),
            context_id,
            status,
            artifacts: Vec::new(),
            history: vec![message],
            metadata: None,
            created_at: None,
        };
        Self { task, open: HashSet::new(), is_shown: false }
    }

    /// Reads what was recorded.
    pub(crate) fn decode(bytes: &[u8]) -> AgentResult<Self> {
        let unreadable = |_| AgentError::new("the recorded call of a skill cannot be read");
        let text = std::str::from_utf8(bytes).map_err(|_| unreadable(()))?;
        let task = v1::task::decode_str(text).map_err(|_| unreadable(()))?;
        let metadata = task.metadata.as_ref().map(Json::as_raw);
        let node = metadata.map(|raw| Node::new(raw, &Path::Root));
        let notes = node.and_then(|node| node.object().ok());
        let open = notes.as_ref().and_then(|notes| notes.texts("open").ok()).unwrap_or_default();
        let is_shown = notes.and_then(|notes| notes.flag("shown").ok().flatten()).unwrap_or_default();
        Ok(Self { open: open.into_iter().map(ArtifactId::from).collect(), is_shown, task })
    }

    fn encode(&self) -> Bytes {
        let mut notes = Writer::new();
        let mut open: Vec<&str> = self.open.iter().map(ArtifactId::as_str).collect();
        open.sort_unstable();
        notes.object(|out| {
            out.flag_if_set("shown", self.is_shown);
            out.texts_unless_empty("open", &open);
        });
        let notes = String::from_utf8(notes.finish()).expect("the writer was given UTF-8 only");
        let mut writer = Writer::new();
        v1::task::encode(&mut writer, &Task { metadata: Json::parse(&notes).ok(), ..self.task.clone() });
        writer.finish().into()
    }

    /// The step with this state.
    pub(crate) fn step(&self, call: &str) -> JournalStep {
        JournalStep { owner: StepOwner::Task, id: state_id(call), output: Some(self.encode()) }
    }

    /// The messages of the call so far.
    pub(crate) fn history(&self) -> &[Message] {
        &self.task.history
    }

    /// Adds the client's answer.
    pub(crate) fn answer(&mut self, message: Message) {
        self.task.history.push(message);
    }

    /// The question that waits for an answer, and whether the client has got it.
    pub(crate) fn question(&self) -> Option<(&Message, bool)> {
        let question = self.task.status.message.as_ref()?;
        self.task.status.state.is_interrupted().then_some((question, self.is_shown))
    }

    /// The call runs, again if it had asked.
    pub(crate) fn run(&mut self) {
        self.task.status = TaskStatus { state: TaskState::Working, message: None, timestamp: None };
        self.is_shown = false;
    }

    /// Adds an artifact, or its next chunk; the first one is never appended.
    pub(crate) fn add(&mut self, artifact: &Artifact, append: bool, last: bool) {
        crate::task::fold::add_artifact(
            &mut self.task.artifacts,
            artifact,
            append && self.open.contains(&artifact.id),
        );
        if last {
            self.open.remove(&artifact.id);
        } else {
            self.open.insert(artifact.id.clone());
        }
    }

    /// Ends the run of the called skill.
    pub(crate) fn end(&mut self, outcome: Outcome) {
        let (state, message) = match outcome {
            Outcome::Done { artifacts, message } => {
                artifacts.iter().for_each(|artifact| self.add(&named(artifact), false, true));
                (TaskState::Completed, message)
            }
            Outcome::Message(message) => (TaskState::Completed, Some(message)),
            Outcome::Failed { message, .. } => (TaskState::Failed, message),
            Outcome::Rejected { message } => (TaskState::Rejected, message),
            Outcome::NeedInput { message } => (TaskState::InputRequired, Some(message)),
            Outcome::NeedAuth { message } => (TaskState::AuthRequired, Some(message)),
            Outcome::With { outcome, .. } => return self.end(*outcome),
        };
        if state.is_interrupted() {
            self.task.history.extend(message.clone());
        }
        self.task.status = TaskStatus { state, message, timestamp: None };
    }

    /// The step with the outcome of a call that has ended for good.
    pub(crate) fn outcome(&self) -> Bytes {
        Self { task: Task { history: Vec::new(), ..self.task.clone() }, ..self.clone() }.encode()
    }

    /// How the call has ended; `None` while it runs.
    pub(crate) fn result(&self, call: &str, skill: &str, retryable: bool) -> Option<CallResult> {
        let Task { artifacts, status: TaskStatus { state, message, .. }, .. } = self.task.clone();
        Some(match (state, message) {
            (TaskState::Completed, message) => CallResult::Done { artifacts, message },
            (TaskState::Failed, message) => CallResult::Failed { message, retryable },
            (TaskState::Rejected, message) => CallResult::Rejected { message },
            (TaskState::InputRequired | TaskState::AuthRequired, Some(message)) => {
                let shown = Self { is_shown: true, ..self.clone() };
                CallResult::Asks(CallQuestion::new(skill, state, message, shown.step(call)))
            }
            _ => return None,
        })
    }
}

/// An artifact without a name is named after its id.
fn named(artifact: &Artifact) -> Artifact {
    Artifact { name: artifact.name.clone().or_else(|| Some(artifact.id.to_string())), ..artifact.clone() }
}
