//! What a backend implements: one call of a skill.
//!
//! A backend gets the arguments as validated JSON and returns a [`Reply`]; it knows nothing about tasks or dialects. A
//! call is the whole turn of its task, which the engine treats as one step: it runs again after a crash, or the task
//! fails, as the skill's `on_crash` requires.

mod call_record;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use engine::{AgentError, AgentResult, OnCrash, Scope, Turn, Update, metrics::BackendKind};
use futures_util::future::BoxFuture;
use protocol::{Artifact, Json, Message, Part, TaskId, TraceContext, json::Raw};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::value::RawValue;
use tokio_util::sync::CancellationToken;

pub use call_record::{CallRecord, CallSummary, RecordedError};
pub(crate) use call_record::{in_one_line, text_of};

use crate::skill::message_input::MessageInput;

/// The system behind a skill.
pub trait Backend: Send + Sync + 'static {
    /// Runs one call. When the call's cancellation token fires, the backend has 5 s to stop what it started; then its
    /// future is dropped.
    ///
    /// # Errors
    ///
    /// The task fails with the text of the error. [`engine::Lost`] must be returned as it is.
    fn call<'a>(&'a self, call: Call<'a>) -> BoxFuture<'a, AgentResult<Reply>>;

    /// What kind of backend it is, for the metrics.
    fn kind(&self) -> BackendKind {
        BackendKind::Other
    }

    /// Where its calls go, for the log: a URL without its query, or a program with its arguments.
    fn target(&self) -> String {
        String::new()
    }

    /// Whether a call may stay open, with what it holds, while the client answers a question
    /// ([`engine::ExecutionPolicy::may_ask`]).
    fn may_ask(&self) -> bool {
        false
    }

    /// A task that waited for an answer was canceled: what is kept for it in memory can be released.
    fn abandoned(&self, _scope: &Scope, _task: &TaskId) {}
}

/// One call: its arguments, its identity, and its connection to the task.
pub struct Call<'a> {
    /// Id of the skill.
    pub skill: &'a str,
    /// The arguments, which the skill's input schema allows. A JSON object, unless the skill has no input schema.
    pub arguments: &'a Json,
    /// The turn of the task. Backends use the methods of `Call` where there is one.
    pub turn: &'a Turn,
    /// Of a skill that takes whole messages: what its backend gets beside or instead of the arguments.
    pub(crate) message: Option<&'a MessageInput>,
    /// What the backend kept when it asked for input or credentials, or with its last checkpoint.
    pub(crate) state: Option<&'a Json>,
    /// The turn before ended with a question; the message of this turn is the answer.
    pub(crate) answers: bool,
    /// The span of this call.
    trace: TraceContext,
    /// Whether the next chunk begins the result anew.
    begins: AtomicBool,
}

impl<'a> Call<'a> {
    pub(crate) fn new(skill: &'a str, arguments: &'a Json, turn: &'a Turn) -> Self {
        let trace = turn.trace_context().child(engine::random_span_id());
        let begins = AtomicBool::new(true);
        Self { skill, arguments, turn, message: None, state: None, answers: false, trace, begins }
    }

    /// A call that goes on with what was kept; its result goes on too.
    pub(crate) fn resumed(skill: &'a str, resumed: &'a Resumed, turn: &'a Turn) -> Self {
        let Resumed { arguments, state, answers, .. } = resumed;
        Self {
            state: Some(state),
            answers: *answers,
            begins: AtomicBool::new(false),
            ..Self::new(skill, arguments, turn)
        }
    }

    pub(crate) fn with_message(self, message: Option<&'a MessageInput>) -> Self {
        Self { message, ..self }
    }

    /// The JSON object that the backend gets: the arguments, or the message with them
    /// ([`InputForm`](crate::skill::InputForm)).
    pub fn input(&self) -> &'a [u8] {
        self.message.map_or(self.arguments.as_str().as_bytes(), |message| &message.json)
    }

    /// The same for all attempts of this call, so that a backend can deduplicate. Sent to every backend.
    pub fn idempotency_key(&self) -> &str {
        &self.turn.idempotency_key
    }

    /// Attempt number, from 1. Sent to every backend.
    pub fn attempt(&self) -> u32 {
        self.turn.attempt
    }

    /// The span of this call in its trace. Sent to every backend.
    pub fn trace_context(&self) -> &TraceContext {
        &self.trace
    }

    /// Fires when the call is to stop.
    pub fn cancelled(&self) -> &CancellationToken {
        &self.turn.cancel
    }

    /// The client's answer, if the backend has asked in the turn before.
    pub fn answer(&self) -> Option<&Arc<Message>> {
        self.answers.then_some(&self.turn.message)
    }

    /// What the backend kept when it asked, or with [`checkpoint`](Self::checkpoint) in an earlier attempt; `None` on
    /// the first call.
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

    /// Like [`progress`](Self::progress), with metadata for programs.
    pub async fn progress_with(&self, parts: Vec<Part>, metadata: Json) -> AgentResult<()> {
        let message = Message { metadata: Some(metadata), ..self.turn.reply(parts) };
        self.turn.record().update(Update::Working(Some(message))).await
    }

    /// Appends parts to the result while the call runs; end such a call with [`Reply::Streamed`].
    pub async fn chunk(&self, parts: Vec<Part>) -> AgentResult<()> {
        self.record_chunk(parts, false).await
    }

    /// Like [`chunk`](Self::chunk), for the last one: a later chunk begins the result anew.
    pub async fn last_chunk(&self, parts: Vec<Part>) -> AgentResult<()> {
        self.record_chunk(parts, true).await
    }

    /// Keeps a state: [`state`](Self::state) returns it in a later attempt. It is on disk when this returns. A call that
    /// does not resume ([`OnCrash::Resume`]) begins anew in a later attempt, and its result with it, so nothing is kept.
    pub async fn checkpoint(&self, state: &Json) -> AgentResult<()> {
        if self.turn.on_crash != OnCrash::Resume {
            return Ok(());
        }
        Ok(self.turn.checkpoint(&self.kept(state)?).await?)
    }

    /// Like [`chunk`](Self::chunk) and [`checkpoint`](Self::checkpoint) in one commit, so that a later attempt neither
    /// loses nor repeats the chunk.
    pub async fn chunk_and_checkpoint(&self, parts: Vec<Part>, state: &Json) -> AgentResult<()> {
        if self.turn.on_crash != OnCrash::Resume {
            return self.chunk(parts).await;
        }
        let update = self.artifact(parts, false);
        Ok(self.turn.record().update(update).save(&self.kept(state)?).commit().await?)
    }

    async fn record_chunk(&self, parts: Vec<Part>, last: bool) -> AgentResult<()> {
        self.turn.record().update(self.artifact(parts, last)).await
    }

    fn artifact(&self, parts: Vec<Part>, last: bool) -> Update {
        let artifact = Artifact::new(result_name(self.skill), parts);
        let append = !self.begins.swap(false, Ordering::Relaxed);
        Update::Artifact { artifact, append, last }
    }

    fn kept(&self, state: &Json) -> AgentResult<Kept> {
        let during = Some(During { turn: self.turn.idempotency_key.clone(), answers: self.answers });
        let kept = Kept::with_question(self.arguments, self.message, state)?;
        Ok(Kept { during, ..kept })
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
    /// What only the log gets, such as the address that refused the connection.
    pub cause: Option<String>,
}

impl Failure {
    fn new(text: impl Into<String>, retryable: bool) -> Self {
        Self { parts: vec![Part::text(text)], reason: None, retryable, cause: None }
    }
}

impl Reply {
    /// Fails for good with a text.
    pub fn fail(text: impl Into<String>) -> Self {
        Self::Failed(Failure::new(text, false))
    }

    /// Adds why the call has failed, for programs, if it has.
    pub(crate) fn with_reason(self, reason: &'static str) -> Self {
        match self {
            Self::Failed(failure) => Self::Failed(Failure { reason: Some(reason), ..failure }),
            other => other,
        }
    }

    /// Fails; the engine may try again.
    pub fn retry(text: impl Into<String>) -> Self {
        Self::Failed(Failure::new(text, true))
    }

    /// Adds what only the log gets, if the call has failed.
    pub(crate) fn with_cause(self, cause: Option<String>) -> Self {
        match self {
            Self::Failed(failure) => Self::Failed(Failure { cause, ..failure }),
            other => other,
        }
    }

    /// Fails for good with a text for the client. The log also gets the error and its causes.
    pub(crate) fn fail_because(text: impl Into<String>, error: &(dyn std::error::Error + 'static)) -> Self {
        Self::fail(text).with_cause(Some(with_causes(error)))
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

/// The checkpoint of a skill: the arguments, and what its backend keeps.
#[derive(Serialize, Deserialize)]
pub(crate) struct Kept {
    arguments: Box<RawValue>,
    state: Box<RawValue>,
    /// The id of the message with which the call began, if its backend gets that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    /// Of a checkpoint within a turn; `None`: kept with a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    during: Option<During>,
}

/// Within which turn a checkpoint was recorded.
#[derive(Serialize, Deserialize)]
struct During {
    /// The idempotency key of the turn.
    turn: String,
    answers: bool,
}

/// A call that goes on with what was kept.
pub(crate) struct Resumed {
    pub(crate) arguments: Json,
    /// The id of the message with which the call began.
    pub(crate) message: Option<String>,
    pub(crate) state: Json,
    pub(crate) answers: bool,
}

impl Kept {
    /// What is kept with a question.
    pub(crate) fn with_question(
        arguments: &Json,
        message: Option<&MessageInput>,
        state: &Json,
    ) -> AgentResult<Self> {
        let message = message.map(|began| began.message.id.as_str().to_owned());
        Ok(Self { arguments: raw(arguments)?, message, state: raw(state)?, during: None })
    }

    /// The same as a checkpoint of the turn that answers the question: a later turn does not answer it again.
    pub(crate) fn answered_in(self, turn: &Turn) -> Self {
        let during = During { turn: turn.idempotency_key.clone(), answers: true };
        Self { during: Some(self.during.unwrap_or(during)), ..self }
    }

    /// Whether it was kept with a question.
    pub(crate) fn is_question(&self) -> bool {
        self.during.is_none()
    }

    /// How this turn goes on with it; `None` if an earlier turn has recorded it and ended without a question.
    pub(crate) fn resume(&self, turn: &Turn) -> AgentResult<Option<Resumed>> {
        let answers = match &self.during {
            None => true,
            Some(during) if during.turn == turn.idempotency_key => during.answers,
            Some(_) => return Ok(None),
        };
        let (arguments, state) = (json(&self.arguments)?, json(&self.state)?);
        Ok(Some(Resumed { arguments, message: self.message.clone(), state, answers }))
    }
}

/// JSON as a data part; JSON that is too large for one is text with its media type. `None` if it is not JSON.
pub(crate) fn json_part(text: &str) -> Option<Part> {
    match Json::parse(text) {
        Ok(json) => Some(Part::data(json)),
        Err(_) if Raw::parse_text(text).is_ok() => {
            Some(Part { media_type: Some("application/json".into()), ..Part::text(text) })
        }
        Err(_) => None,
    }
}

/// An error and its causes in one line, each text once.
pub(crate) fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    for cause in std::iter::successors(error.source(), |cause| cause.source()) {
        let cause = cause.to_string();
        if !text.ends_with(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    text
}

fn raw(json: &Json) -> AgentResult<Box<RawValue>> {
    Ok(RawValue::from_string(json.as_str().to_owned())?)
}

fn json(raw: &RawValue) -> AgentResult<Json> {
    Json::parse(raw.get()).map_err(|problem| AgentError::new(format!("the saved call is not {problem}")))
}
