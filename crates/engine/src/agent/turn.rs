//! The input of one agent run, and how the agent records progress, artifacts and checkpoints.

use std::{
    future::IntoFuture,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use protocol::{Artifact, ArtifactId, ContextId, Json, Message, TaskId, TraceContext};
use serde_core::{Serialize, de::DeserializeOwned};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    AgentError, AgentResult, IntoOutcome, Journal, Lost, OnCrash, Outcome, Parts, Update, UpdateSender,
    agent_message, queue::Offered,
};
use crate::{
    access::scope::Scope,
    context::Conversation,
    metrics::{BackendKind, BackendOutcome},
    runner::AskingTurn,
    skill::Calls,
};

/// The input of one agent run, and its connection to the task.
pub struct Turn {
    /// Public id of the task.
    pub task_id: TaskId,
    /// Public id of the conversation (A2A context) the task belongs to.
    pub context_id: ContextId,
    /// The id of the task's skill: the client has named it, or it was selected. `None` if there is none: the agent decides.
    pub skill: Option<String>,
    /// The message that started this turn.
    pub message: Arc<Message>,
    /// Earlier messages of this task, oldest first.
    pub history: Vec<Message>,
    /// Reads messages of earlier tasks in the same conversation.
    pub conversation: Conversation,
    /// The caller's scope.
    pub scope: Scope,
    /// Attempt number, from 1.
    pub attempt: u32,
    /// What happens to the turn if this process crashes; the same is right when a system that it calls does.
    pub on_crash: OnCrash,
    /// The same for all attempts of this turn, so that a backend can deduplicate.
    pub idempotency_key: String,
    /// Cancelled when the run is ended from outside: the client canceled the task, the run took longer than
    /// `limits.run_time`, the task became too large, the server shuts down, or another writer changed the task. The
    /// agent then has [`STOP_GRACE`](crate::STOP_GRACE) to stop before its future is dropped; its outcome is ignored.
    /// At a shutdown it may still record checkpoints and artifacts, from which the next attempt continues; otherwise
    /// what it records is answered by [`Lost`](super::Lost).
    pub cancel: CancellationToken,
    /// When the turn fails: after the run time that each attempt has anew, or at the deadline of the whole task if that
    /// is earlier.
    pub deadline: Instant,
    pub(crate) saved: Option<Bytes>,
    pub(crate) updates: UpdateSender,
    /// Of a skill that takes arguments.
    pub(crate) arguments: Option<Json>,
    /// The client has named the skill: results are named after it.
    pub(crate) is_skill_named: bool,
    pub(crate) journal: Arc<Journal>,
    pub(crate) trace: TraceContext,
    /// Of an agent that may ask.
    pub(crate) asking: Option<Arc<AskingTurn>>,
    /// Of a skill that other work of the task has called: the id of the call.
    pub(crate) call_id: Option<String>,
    pub(crate) calls: Calls,
}

impl Turn {
    /// The text parts of the message, joined by spaces.
    pub fn text(&self) -> String {
        self.message.text()
    }

    /// The arguments of the call, which the input schema of the skill allows. `None` if the skill takes messages
    /// ([`SkillInput`](crate::SkillInput)), or if the message answers a question of the turn before.
    pub fn arguments(&self) -> Option<&Json> {
        self.arguments.as_ref()
    }

    /// The messages of the conversation before one of this task, oldest first, those of its agents included: the newest
    /// ones, as many as `limits.history` allows ([`Limits::history`](crate::Limits::history)). The artifacts of an earlier
    /// task are one message of its agent.
    ///
    /// # Errors
    ///
    /// The store cannot be read.
    pub async fn conversation_before(&self, message: &Message) -> AgentResult<Vec<Message>> {
        let at = self.history.iter().position(|earlier| earlier.id == message.id);
        let own = &self.history[..at.unwrap_or(self.history.len())];
        Ok(self.conversation.before(own, self.calls.runner.limits().history).await?)
    }

    /// Builds an agent message that belongs to this task.
    pub fn reply(&self, parts: impl Into<Parts>) -> Message {
        Message {
            context_id: Some(self.context_id.clone()),
            task_id: Some(self.task_id.clone()),
            ..agent_message(parts)
        }
    }

    /// Builds an artifact. Its name is its id; when the client requested a skill it has none, and the engine
    /// names it `<skill>-result`.
    pub fn new_artifact(&self, id: impl Into<ArtifactId>, parts: impl Into<Parts>) -> Artifact {
        let named = Artifact::new(id, parts.into().into());
        if self.is_skill_named { Artifact { name: None, ..named } } else { named }
    }

    /// Time until the deadline; zero after it.
    pub fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// The span of this run in the trace of the call that caused it (W3C Trace Context). An agent that calls other systems
    /// sends them its `to_string` as `traceparent`, and its [`state`](TraceContext::state) as `tracestate`.
    pub fn trace_context(&self) -> &TraceContext {
        &self.trace
    }

    /// Counts a call of another system in `/metrics`.
    pub fn count_backend_call(&self, kind: BackendKind, outcome: BackendOutcome, duration: Duration) {
        self.calls.runner.metrics().backends.count(kind, outcome, duration);
    }

    /// The turn leaves no question open that holds something: it does not count as a task that waits for its client any
    /// more, although its agent declares that it may ask ([`ExecutionPolicy::may_ask`](super::ExecutionPolicy::may_ask)).
    pub fn will_not_ask(&self) {
        if let Some(asking) = &self.asking {
            asking.end();
        }
    }

    /// Records the status `working` with a progress message.
    ///
    /// # Errors
    ///
    /// [`Lost`](super::Lost), here and in the methods below: the turn has ended meanwhile.
    pub async fn progress(&self, message: impl Into<Parts>) -> AgentResult<()> {
        self.record().progress(message).await
    }

    /// Records a complete artifact.
    pub async fn artifact(&self, artifact: Artifact) -> AgentResult<()> {
        self.record().artifact(artifact).await
    }

    /// Records the next chunk of an artifact. The first chunk creates the artifact; a chunk after its last one
    /// ([`Record::last_chunk`]), or after the complete artifact, begins it anew.
    pub async fn chunk(&self, id: impl Into<ArtifactId>, parts: impl Into<Parts>) -> AgentResult<()> {
        self.record().chunk(id, parts).await
    }

    /// Records a checkpoint: [`saved`](Self::saved) returns it in the next attempt or turn.
    ///
    /// It is queued for the next commit, not yet durable when this returns. An agent that goes on from its
    /// checkpoint within an artifact needs [`OnCrash::Resume`](super::OnCrash::Resume).
    ///
    /// # Errors
    ///
    /// [`Lost`](super::Lost), or the state cannot be written as JSON, or it is larger than `limits.max_saved`.
    pub async fn save<T: Serialize + ?Sized>(&self, state: &T) -> AgentResult<()> {
        self.record().save(state).await
    }

    /// Records a checkpoint like [`save`](Self::save), and resolves when it is on disk:
    ///
    /// ```
    /// # async fn write(turn: a2ad_engine::Turn) -> a2ad_engine::AgentResult<()> {
    /// let written: u32 = turn.saved()?.unwrap_or(0);
    /// for section in written..10 {
    ///     // Work that must not be done twice.
    ///     turn.checkpoint(&(section + 1)).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Use [`Record::commit`] to record artifacts in the same commit. Cancel safe: the state is recorded or not, as a
    /// whole.
    ///
    /// # Errors
    ///
    /// [`Lost`]: the turn is no longer this run's, so the agent should stop. A state that cannot be written as JSON, or
    /// is larger than `limits.max_saved`, fails the turn with that reason; this too is answered with `Lost`.
    pub async fn checkpoint<T: Serialize + ?Sized>(&self, state: &T) -> Result<(), Lost> {
        self.record().save(state).commit().await
    }

    /// Like [`checkpoint`](Self::checkpoint), in the agent's own encoding, for [`saved_bytes`](Self::saved_bytes).
    ///
    /// # Errors
    ///
    /// See [`checkpoint`](Self::checkpoint).
    pub async fn checkpoint_bytes(&self, state: impl Into<Bytes>) -> Result<(), Lost> {
        self.record().save_bytes(state).commit().await
    }

    /// The last checkpoint of an earlier attempt or turn of this task.
    ///
    /// # Errors
    ///
    /// The checkpoint was saved as another type.
    pub fn saved<T: DeserializeOwned>(&self) -> AgentResult<Option<T>> {
        let Some(bytes) = self.saved_bytes() else { return Ok(None) };
        Ok(serde_json::from_slice(bytes).map(Some).map_err(UnreadableState)?)
    }

    /// The last checkpoint as it was recorded, for an agent that encodes its state itself
    /// ([`Record::save_bytes`]).
    pub fn saved_bytes(&self) -> Option<&Bytes> {
        self.saved.as_ref().filter(|bytes| !bytes.is_empty())
    }

    /// The id of a step in the journal: those of a called skill follow the id of the call.
    pub(crate) fn step_id(&self, id: String) -> String {
        match &self.call_id {
            None => id,
            Some(call) => format!("{call}/{id}"),
        }
    }

    /// Collects what is to be recorded in one commit:
    ///
    /// ```
    /// # async fn write(turn: a2ad_engine::Turn) -> a2ad_engine::AgentResult<()> {
    /// turn.record().chunk("text", "second section").save(&2).await
    /// # }
    /// ```
    pub fn record(&self) -> Record<'_> {
        Record { turn: self, updates: Vec::new(), error: None }
    }
}

/// The text is for the client, the cause for the log.
#[derive(Debug, thiserror::Error)]
#[error("the saved state of the task has another form than the agent expects")]
struct UnreadableState(#[source] serde_json::Error);

#[derive(Debug, thiserror::Error)]
#[error("the state of the task cannot be saved")]
struct UnsavableState(#[source] serde_json::Error);

#[derive(Debug, thiserror::Error)]
#[error("the agent saved a checkpoint of {size} bytes and limits.max_saved is {max} bytes")]
pub(crate) struct CheckpointTooLarge {
    size: u64,
    max: u64,
}

/// What is recorded in one commit. Await it to send it: nothing is recorded before.
///
/// The future waits while too many updates of the run are not committed yet (backpressure), and resolves
/// when the updates are queued, in order. Clients observe them when they are committed.
#[must_use = "nothing is recorded until this is awaited"]
pub struct Record<'a> {
    turn: &'a Turn,
    updates: Vec<Update>,
    error: Option<AgentError>,
}

impl Record<'_> {
    /// The status `working`, without a message.
    pub fn working(self) -> Self {
        self.update(Update::Working(None))
    }

    /// The status `working` with a progress message.
    pub fn progress(self, message: impl Into<Parts>) -> Self {
        let message = self.turn.reply(message);
        self.update(Update::Working(Some(message)))
    }

    /// A complete artifact.
    pub fn artifact(self, artifact: Artifact) -> Self {
        self.update(Update::Artifact { artifact, append: false, last: true })
    }

    /// The next chunk of an artifact; the first one creates it.
    pub fn chunk(self, id: impl Into<ArtifactId>, parts: impl Into<Parts>) -> Self {
        let artifact = self.turn.new_artifact(id, parts);
        self.update(Update::Artifact { artifact, append: true, last: false })
    }

    /// The last chunk of an artifact.
    pub fn last_chunk(self, id: impl Into<ArtifactId>, parts: impl Into<Parts>) -> Self {
        let artifact = self.turn.new_artifact(id, parts);
        self.update(Update::Artifact { artifact, append: true, last: true })
    }

    /// A checkpoint: [`Turn::saved`] returns it in the next attempt or turn.
    pub fn save<T: Serialize + ?Sized>(mut self, state: &T) -> Self {
        match serde_json::to_vec(state) {
            Ok(bytes) => self.save_bytes(bytes),
            Err(error) => {
                self.error = self.error.or(Some(UnsavableState(error).into()));
                self
            }
        }
    }

    /// A checkpoint in the agent's own encoding, for [`Turn::saved_bytes`].
    pub fn save_bytes(self, state: impl Into<Bytes>) -> Self {
        self.update(Update::Save(state.into()))
    }

    /// Removes the checkpoint, so that the next turn starts without one.
    pub fn clear_saved(self) -> Self {
        self.save_bytes(Bytes::new())
    }

    /// Sends it like `await` does, but resolves when everything in it is on disk:
    ///
    /// ```
    /// # async fn write(turn: a2ad_engine::Turn) -> a2ad_engine::AgentResult<()> {
    /// turn.record().chunk("text", "second section").save(&2).commit().await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// See [`Turn::checkpoint`].
    pub async fn commit(self) -> Result<(), Lost> {
        let Self { turn, updates, error } = self;
        if let Some(error) = error {
            turn.updates.fail(error);
            return Err(Lost);
        }
        match turn.updates.send(updates).await {
            Ok(batch) => turn.updates.committed(batch).await,
            Err(lost) => rejected(lost).await.map(drop),
        }
    }

    /// Ends the turn with everything in it and the outcome as one commit. Return the result from the agent; nothing is
    /// recorded before:
    ///
    /// ```
    /// # use a2ad_engine::{AgentResult, Outcome, Turn};
    /// async fn run(turn: Turn) -> AgentResult<Outcome> {
    ///     let draft = turn.new_artifact("draft", "Dear customer");
    ///     turn.record().artifact(draft).save("draft").then(Outcome::ask("Shall I send it?"))
    /// }
    /// ```
    ///
    /// # Errors
    ///
    /// A checkpoint in it cannot be written as JSON, or is larger than `limits.max_saved`; or the outcome is an error.
    pub fn then(self, outcome: impl IntoOutcome) -> AgentResult<Outcome> {
        if let Some(error) = self.error {
            return Err(error);
        }
        Ok(Outcome::With { updates: self.updates, outcome: Box::new(outcome.into_outcome()?) })
    }

    /// Any update but [`Update::Step`].
    pub fn update(mut self, update: Update) -> Self {
        let update = match update {
            Update::Save(state) => self.checkpoint(state),
            Update::Step(_) => {
                self.error.get_or_insert_with(|| AgentError::new("steps are recorded with Turn::step"));
                return self;
            }
            update => update,
        };
        self.updates.push(update);
        self
    }

    /// The update for a checkpoint; one that is too large makes the whole record fail.
    fn checkpoint(&mut self, state: Bytes) -> Update {
        let (size, max) = (state.len() as u64, self.turn.calls.runner.limits().max_saved);
        if size > max {
            self.error.get_or_insert_with(|| CheckpointTooLarge { size, max }.into());
        }
        Update::Save(state)
    }
}

impl<'a> IntoFuture for Record<'a> {
    type Output = AgentResult<()>;
    type IntoFuture = Recording<'a>;

    fn into_future(self) -> Self::IntoFuture {
        Recording { unsent: Some(self), waiting: None }
    }
}

/// The future of a [`Record`]. It allocates only if it has to wait.
#[must_use = "nothing is recorded until this is awaited"]
pub struct Recording<'a> {
    /// `None` after the first poll.
    unsent: Option<Record<'a>>,
    waiting: Option<BoxFuture<'a, Result<u64, Lost>>>,
}

impl Future for Recording<'_> {
    type Output = AgentResult<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(Record { turn, updates, error }) = self.unsent.take() {
            if let Some(error) = error {
                return Poll::Ready(Err(error));
            }
            self.waiting = match turn.updates.try_send(updates) {
                Ok(Offered::Queued(_)) => return Poll::Ready(Ok(())),
                Ok(Offered::Full(updates)) => Some(Box::pin(turn.updates.send(updates))),
                Err(lost) => Some(Box::pin(rejected(lost))),
            };
        }
        let waiting = self.waiting.as_mut().expect("a future is not polled after it has resolved");
        waiting.as_mut().poll(cx).map_ok(drop).map_err(AgentError::from)
    }
}

/// Returns to the runtime once: an agent that ignores the error and records in a loop can then be dropped.
pub(super) async fn rejected(lost: Lost) -> Result<u64, Lost> {
    tokio::task::yield_now().await;
    Err(lost)
}
