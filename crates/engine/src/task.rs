//! The rules of tasks as pure functions: which changes are allowed, what they record, and the resulting task.
//!
//! [`admit`] decides about messages, [`advance`] turns an agent's updates into events, [`cancel`] decides
//! about cancels, [`artifact_log`] and [`turn_start`] collect from a log what a run needs, [`earlier_artifacts`]
//! protects the artifacts of earlier turns, [`turn`] decides what each change of a run records, [`journal`] whether
//! an interrupted turn may run again, and [`fold`] builds the task from its log. Nothing here reads a clock, a store or a socket.

pub mod admit;
pub mod advance;
pub mod artifact_log;
pub mod cancel;
pub mod earlier_artifacts;
pub mod fold;
pub mod journal;
pub mod turn;
pub mod turn_start;

use protocol::{
    ContextId, Event, Json, Message, Task, TaskId, TaskState, TaskStatus, Timestamp,
    json::read::{Node, Path},
    model::StatusUpdate,
};

use crate::{
    ids::Ids,
    store::{ContextRow, TaskRow, Visibility},
};

/// The public ids of a task and its conversation.
#[derive(Clone, Debug)]
pub struct PublicIds {
    /// Task id.
    pub task: TaskId,
    /// Context id.
    pub context: ContextId,
}

impl PublicIds {
    /// The public ids of a row; client-chosen ids take precedence.
    pub fn of(ids: &Ids, row: &TaskRow) -> Self {
        let task = row.client_id.clone().unwrap_or_else(|| ids.task(row.no, row.tag));
        Self { task, context: context_name(ids, &row.context) }
    }

    /// A status update event of this task.
    pub fn status(&self, state: TaskState, message: Option<Message>, at: Timestamp) -> Event {
        Event::Status(StatusUpdate {
            task_id: self.task.clone(),
            context_id: self.context.clone(),
            status: TaskStatus { state, message, timestamp: Some(at) },
            metadata: None,
        })
    }
}

/// Metadata of the status message after an agent panic; compatibility profiles reply differently then.
pub(crate) fn panic_metadata() -> Json {
    Json::parse(r#"{"a2ad":{"cause":"panic"}}"#).expect("this is JSON")
}

/// Why the engine has failed a task or repeats a turn; part of the API as `metadata.a2ad.reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Processes crashed while the task ran.
    Poisoned,
    /// All attempts are used.
    Attempts,
    /// The server stopped while a turn ran that must not run twice.
    Interrupted,
    /// The deadline of the task has passed.
    Deadline,
    /// An attempt took longer than `limits.run_time`.
    RunTime,
    /// The task, a checkpoint or a journal is larger than its limit.
    TooLarge,
    /// An attempt failed, and the turn is tried again.
    Retry,
    /// The turn runs again after a crash.
    Crashed,
    /// The client did not reply in time.
    InputTimeout,
    /// What would have taken the client's answer is gone.
    QuestionLost,
}

impl Reason {
    /// Its name in the metadata and in the log.
    pub fn code(self) -> &'static str {
        match self {
            Self::Poisoned => "poisoned",
            Self::Attempts => "attempts",
            Self::Interrupted => "interrupted",
            Self::Deadline => "deadline",
            Self::RunTime => "run_time",
            Self::TooLarge => "too_large",
            Self::Retry => "retry",
            Self::Crashed => "crashed",
            Self::InputTimeout => "input_timeout",
            Self::QuestionLost => "elicitation_lost",
        }
    }
}

/// An attempt: its number, and how many there may be.
pub type AttemptOf = (i64, u32);

impl PublicIds {
    /// A message of the engine to the client about the task, with the reason in its metadata. The reason is logged.
    pub fn explain(&self, text: impl Into<String>, reason: Reason, attempt: Option<AttemptOf>) -> Message {
        self.with_reason(self.message(text), reason, attempt)
    }

    /// A status message with the reason in its metadata, beside what the agent has put there. The reason is logged.
    pub(crate) fn with_reason(
        &self,
        message: Message,
        reason: Reason,
        attempt: Option<AttemptOf>,
    ) -> Message {
        let (task, code, made) = (&self.task, reason.code(), attempt.map(|(made, _)| made));
        match reason {
            Reason::Retry => tracing::info!(%task, reason = code, attempt = made, "{}", message.text()),
            _ => tracing::warn!(%task, reason = code, attempt = made, "{}", message.text()),
        }
        let reason = reason_metadata(reason, attempt);
        let merged = message.metadata.as_ref().and_then(|metadata| Json::merge_objects(metadata, &reason));
        Message { metadata: Some(merged.unwrap_or(reason)), ..message }
    }
}

/// Metadata of a status message that has a [`Reason`].
fn reason_metadata(reason: Reason, attempt: Option<AttemptOf>) -> Json {
    let code = reason.code();
    let attempt = attempt.map(|(made, max)| format!(r#","attempt":{made},"attempts":{max}"#));
    let attempt = attempt.as_deref().unwrap_or_default();
    Json::parse(&format!(r#"{{"a2ad":{{"reason":"{code}"{attempt}}}}}"#)).expect("this is JSON")
}

/// Whether a task failed because its agent panicked.
pub fn failed_by_panic(task: &Task) -> bool {
    let metadata = task.status.message.as_ref().and_then(|message| message.metadata.as_ref());
    metadata == Some(&panic_metadata())
}

/// The reason, in the metadata of the status message, of a failure because what does the work cannot be reached.
pub const UNREACHABLE: &str = "unreachable";

/// Whether a task failed because what does the work is down: it cannot be reached, or each attempt failed in a way that may
/// pass.
pub fn failed_by_backend(task: &Task) -> bool {
    let metadata = task.status.message.as_ref().and_then(|message| message.metadata.as_ref());
    let reason = metadata.and_then(|metadata| {
        let own = Node::new(metadata.as_raw(), &Path::Root).object().ok()?;
        own.maybe("a2ad", |notes| notes.object()?.text("reason")).ok()?.flatten()
    });
    reason.is_some_and(|reason| [UNREACHABLE, Reason::Attempts.code()].contains(&reason.as_str()))
}

/// The public id of a conversation.
pub fn context_name(ids: &Ids, context: &ContextRow) -> ContextId {
    context.name.clone().unwrap_or_else(|| ids.context(context.first, context.tag))
}

/// State and visibility of a task, as tracked by its run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CurrentState {
    /// Current state.
    pub state: TaskState,
    /// Whether clients can see the task.
    pub visibility: Visibility,
}
