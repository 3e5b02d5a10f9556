//! Calls of skills by other work of the same task: what an agent uses.

use protocol::{Artifact, Content, Json, Message, TaskState};
use serde_core::Serialize;

use super::{AgentError, AgentResult, IntoOutcome, Outcome, Turn, Update};
use crate::{skill::InnerCall, store::JournalStep};

impl Turn {
    /// Runs another skill of the agent inside this task, also one that its card does not show, for the same caller and within
    /// the limits of this turn. A value that is a JSON string is sent as text, any other as data.
    ///
    /// ```
    /// use a2ad_engine::{AgentResult, IntoOutcome, Outcome, Turn};
    ///
    /// async fn quote(turn: Turn) -> AgentResult<Outcome> {
    ///     let rate = turn.call("currency-rate", &serde_json::json!({"from": "EUR", "to": "USD"})).await?;
    ///     if !rate.is_done() {
    ///         return rate.into_outcome();
    ///     }
    ///     Ok(Outcome::artifact("quote", format!("today: {}", rate.text())))
    /// }
    /// ```
    ///
    /// The journal of the task keeps how the call has ended, until the task ends: no later attempt or turn repeats it. It is
    /// identified by the skill, the arguments, and how many equal calls this turn has made before; use
    /// [`call_as`](Self::call_as) where that differs between attempts. A failure that may be tried again is not kept.
    ///
    /// The progress of the skill is that of the task. Its artifacts are in the result, and recorded only if this agent does it.
    /// Its own checkpoints, run time and [`OnCrash`](super::OnCrash) apply to the call; one that must not run twice fails after
    /// a crash.
    ///
    /// If the skill asks the client, the error carries the question, so that `?` ends this turn with it. The next turn makes the
    /// same call again, and the skill goes on with the answer. If calls that run at the same time ask, each waits for the others
    /// to end, and the client gets one question in each turn.
    ///
    /// # Errors
    ///
    /// The skill asks the client; [`Lost`](super::Lost); there is no such skill, it is running already above this call, or calls
    /// are nested deeper than 8; the arguments cannot be written as JSON.
    pub async fn call<T: Serialize + ?Sized>(&self, skill: &str, arguments: &T) -> AgentResult<CallResult> {
        answered(self.try_call(skill, arguments).await?)
    }

    /// Like [`call`](Self::call), under an id that the agent has chosen, unique in the task.
    ///
    /// # Errors
    ///
    /// As for [`call`](Self::call); the id is empty, longer than 200 bytes, or that of a call that is running.
    pub async fn call_as<T: Serialize + ?Sized>(
        &self,
        id: &str,
        skill: &str,
        arguments: &T,
    ) -> AgentResult<CallResult> {
        answered(InnerCall::named(self, id, skill, arguments)?.run().await?)
    }

    /// Like [`call`](Self::call), but a question to the client is a result too: [`CallResult::Asks`].
    ///
    /// # Errors
    ///
    /// As for [`call`](Self::call), except the question.
    pub async fn try_call<T: Serialize + ?Sized>(
        &self,
        skill: &str,
        arguments: &T,
    ) -> AgentResult<CallResult> {
        InnerCall::new(self, skill, arguments)?.run().await
    }
}

fn answered(result: CallResult) -> AgentResult<CallResult> {
    match result {
        CallResult::Asks(question) => Err(question.into()),
        ended => Ok(ended),
    }
}

/// How a called skill has ended its work ([`Turn::call`]).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum CallResult {
    /// It is done.
    Done {
        /// Its results.
        artifacts: Vec<Artifact>,
        /// Its final message.
        message: Option<Message>,
    },
    /// It has failed.
    Failed {
        /// The reason.
        message: Option<Message>,
        /// The same call may succeed later.
        retryable: bool,
    },
    /// It does not do what it was asked for.
    Rejected {
        /// The reason.
        message: Option<Message>,
    },
    /// It asks the client. Only [`Turn::try_call`] returns this.
    Asks(CallQuestion),
}

impl CallResult {
    /// Whether the skill is done.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::Done { .. })
    }

    /// The results.
    pub fn artifacts(&self) -> &[Artifact] {
        match self {
            Self::Done { artifacts, .. } => artifacts,
            Self::Failed { .. } | Self::Rejected { .. } | Self::Asks(_) => &[],
        }
    }

    /// The final message, the reason, or the question.
    pub fn message(&self) -> Option<&Message> {
        match self {
            Self::Done { message, .. } | Self::Failed { message, .. } | Self::Rejected { message } => {
                message.as_ref()
            }
            Self::Asks(question) => Some(question.message()),
        }
    }

    /// The text of the results, else of the message.
    pub fn text(&self) -> String {
        let parts = self.artifacts().iter().flat_map(|artifact| &artifact.parts);
        let texts: Vec<&str> = parts
            .filter_map(|part| match &part.content {
                Content::Text(text) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        if texts.is_empty() { self.message().map(Message::text).unwrap_or_default() } else { texts.join(" ") }
    }

    /// The first data part of the results.
    pub fn data(&self) -> Option<&Json> {
        self.artifacts().iter().flat_map(|artifact| &artifact.parts).find_map(|part| match &part.content {
            Content::Data(data) => Some(data),
            _ => None,
        })
    }
}

/// The turn ends as the called skill has.
impl IntoOutcome for CallResult {
    fn into_outcome(self) -> AgentResult<Outcome> {
        Ok(match self {
            Self::Done { artifacts, message } => Outcome::Done { artifacts, message },
            Self::Failed { message, retryable } => Outcome::Failed { message, retryable },
            Self::Rejected { message } => Outcome::Rejected { message },
            Self::Asks(question) => question.outcome(),
        })
    }
}

/// A question that a called skill asks the client. A turn that returns it, as an outcome or as an error, ends with it.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the skill {skill} asks the client: {}", .message.text())]
pub struct CallQuestion {
    skill: String,
    /// What it waits for.
    state: TaskState,
    message: Message,
    /// Records that the client has got the question.
    shown: JournalStep,
}

impl CallQuestion {
    pub(crate) fn new(skill: &str, state: TaskState, message: Message, shown: JournalStep) -> Self {
        Self { skill: skill.to_owned(), state, message, shown }
    }

    /// The question.
    pub fn message(&self) -> &Message {
        &self.message
    }

    /// Whether it asks for credentials.
    pub fn needs_credentials(&self) -> bool {
        self.state == TaskState::AuthRequired
    }

    /// Ends a turn with it.
    pub(crate) fn outcome(&self) -> Outcome {
        let message = self.message.clone();
        let outcome = match self.needs_credentials() {
            true => Outcome::NeedAuth { message },
            false => Outcome::NeedInput { message },
        };
        Outcome::With { updates: vec![Update::Step(self.shown.clone())], outcome: Box::new(outcome) }
    }
}

impl IntoOutcome for CallQuestion {
    fn into_outcome(self) -> AgentResult<Outcome> {
        Ok(self.outcome())
    }
}

/// The outcome of an error. A question of a called skill is one; an error of the engine is not the agent's: its text stays in the
/// log.
pub(crate) fn outcome_of_error(error: &AgentError) -> Outcome {
    if let Some(question) = error.downcast_ref::<CallQuestion>() {
        return question.outcome();
    }
    match error.downcast_ref::<crate::Error>() {
        None => Outcome::fail(error.to_string()),
        Some(crate::Error::Refused(refused)) => Outcome::fail(refused.message.clone()),
        Some(crate::Error::Broken(_)) => Outcome::fail("the server could not read what the agent needs"),
        Some(_) => Outcome::retry("the server could not read what the agent needs"),
    }
}
