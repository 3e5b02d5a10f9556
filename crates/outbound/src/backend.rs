//! What a backend implements: one call of a skill.
//!
//! A backend gets the arguments as validated JSON and returns a [`Reply`]; it knows nothing about tasks or dialects. A
//! call is the whole turn of its task, which the engine treats as one step: it runs again after a crash, or the task
//! fails, as the skill's `on_crash` requires.

use std::sync::Arc;

use engine::{AgentResult, Turn};
use futures_util::future::BoxFuture;
use protocol::{Json, Message, Part};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use tokio_util::sync::CancellationToken;

/// The system behind a skill.
pub trait Backend: Send + Sync + 'static {
    /// Runs one call. When the call's cancellation token fires, the backend has 5 s to stop what it started; then its
    /// future is dropped.
    ///
    /// # Errors
    ///
    /// The task fails with the text of the error. [`engine::Lost`] must be returned as it is.
    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, AgentResult<Reply>>;
}

/// One call: its arguments, its identity, and its connection to the task.
pub struct Call<'a> {
    /// Id of the skill.
    pub skill: &'a str,
    /// The arguments, which the skill's input schema allows. A JSON object, unless the skill has no input schema.
    pub arguments: &'a Json,
    /// The turn of the task. Backends use the methods of `Call` where there is one.
    pub turn: &'a Turn,
    /// What the backend kept when it asked for input or credentials; the message of the turn is the answer.
    pub(crate) state: Option<&'a Json>,
}

impl Call<'_> {
    /// The same for all attempts of this call, so that a backend can deduplicate. Sent to every backend.
    pub fn idempotency_key(&self) -> &str {
        &self.turn.idempotency_key
    }

    /// Attempt number, from 1. Sent to every backend.
    pub fn attempt(&self) -> u32 {
        self.turn.attempt
    }

    /// Fires when the call is to stop.
    pub fn cancelled(&self) -> &CancellationToken {
        &self.turn.cancel
    }

    /// The client's answer, if the backend has asked in the turn before.
    pub fn answer(&self) -> Option<&Arc<Message>> {
        self.state.map(|_| &self.turn.message)
    }

    /// What the backend kept when it asked; `None` on the first call.
    ///
    /// # Errors
    ///
    /// It was kept as another type, by another version of the program.
    pub fn state<T: DeserializeOwned>(&self) -> AgentResult<Option<T>> {
        self.state.map(|state| Ok(serde_json::from_str(state.as_str())?)).transpose()
    }

    /// Reports progress: the status `working` with this message.
    pub async fn progress(&self, parts: Vec<Part>) -> AgentResult<()> {
        self.turn.progress(parts).await
    }

    /// Appends parts to the result while the call runs; end such a call with [`Reply::Streamed`].
    pub async fn chunk(&self, parts: Vec<Part>) -> AgentResult<()> {
        let artifact = protocol::Artifact::new(result_name(self.skill), parts);
        self.turn.record().update(engine::Update::Artifact { artifact, append: true, last: false }).await
    }
}

/// The id and the name of the artifact with a skill's result.
pub fn result_name(skill: &str) -> String {
    format!("{skill}-result")
}

/// How a call ended.
#[derive(Debug)]
pub enum Reply {
    /// Completed with this result. If the skill has an output schema, the first data part is checked against it.
    Done(Vec<Part>),
    /// Completed; the result was sent with [`Call::chunk`].
    Streamed,
    /// The task fails. The parts are shown to the client.
    Failed(Failure),
    /// The arguments are not acceptable, although the schema allows them.
    Rejected(Vec<Part>),
    /// The task waits for the client's input. The next turn calls the backend again with the same arguments.
    Ask(Question),
    /// The task waits until the client has obtained credentials; otherwise like `Ask`.
    AskForCredentials(Question),
}

/// Why a call failed.
#[derive(Debug)]
pub struct Failure {
    /// For the client.
    pub parts: Vec<Part>,
    /// A stable code for programs, in `metadata.a2ad.reason` of the status message.
    pub reason: Option<&'static str>,
    /// Whether the engine may run the turn again with backoff. Only where repeating has no further effect.
    pub retryable: bool,
}

impl Reply {
    /// Fails for good with a text.
    pub fn fail(text: impl Into<String>) -> Self {
        Self::Failed(Failure { parts: vec![Part::text(text)], reason: None, retryable: false })
    }

    /// Fails; the engine may try again.
    pub fn retry(text: impl Into<String>) -> Self {
        Self::Failed(Failure { parts: vec![Part::text(text)], reason: None, retryable: true })
    }
}

/// What a backend asks the client for.
#[derive(Debug)]
pub struct Question {
    /// For the client.
    pub parts: Vec<Part>,
    /// What the backend needs to continue after the answer.
    pub state: Json,
}

/// A checkpoint of a skill that waits for an answer.
#[derive(Serialize, Deserialize)]
pub(crate) struct Waiting {
    pub(crate) arguments: Box<serde_json::value::RawValue>,
    pub(crate) state: Box<serde_json::value::RawValue>,
}
