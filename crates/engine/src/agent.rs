//! The [`Agent`] trait and the types of one agent run: its input ([`Turn`]), what it records meanwhile
//! ([`Record`]) and its result ([`Outcome`]).
//!
//! A turn starts with a message and ends with an [`Outcome`]; no future outlives its turn. During the turn
//! the agent records progress, artifacts and checkpoints. Each is committed before a client can observe it,
//! and everything in one [`Record`] is committed together, so a saved checkpoint never disagrees with the
//! published events. [`Turn::checkpoint`] resolves when the state is on disk; [`Turn::step`] keeps the output of
//! finished work, so that no later attempt does it again.

mod agent_fn;
pub(crate) mod authentication;
mod call;
mod call_output;
mod call_state;
mod error;
mod journal;
mod open_question;
mod outcome;
mod parts;
mod queue;
mod turn;

use std::sync::Arc;

use futures_util::future::BoxFuture;
use protocol::TaskId;

pub use agent_fn::{AgentFn, agent_fn};
pub use call::{CallQuestion, CallResult};
pub use error::{AgentError, AgentResult, Lost};
pub use open_question::OpenQuestion;
pub use outcome::{IntoOutcome, Outcome, Update};
pub use parts::Parts;
pub(crate) use turn::CheckpointTooLarge;
pub use turn::{Record, Recording, Turn};

pub(crate) use call::outcome_of_error;
pub(crate) use call_output::CallOutput;
pub(crate) use call_state::{CallState, saved_id, state_id};
pub(crate) use journal::{Begun, Journal, JournalTooLarge, OutcomeJournal, RunningStep};
pub(crate) use outcome::message_size;
pub(crate) use parts::agent_message;
pub(crate) use queue::{UpdateReceiver, UpdateSender, queue};

use crate::access::scope::Scope;

/// Implements one or more skills. An implementation writes `async fn run(&self, turn: Turn)`; a plain async
/// function becomes an agent with [`agent_fn`].
pub trait Agent: Send + Sync + 'static {
    /// Runs one turn. When the turn is ended from outside (cancel, deadline, size limit, shutdown, loss of the
    /// lease), [`Turn::cancel`] fires; the agent has a few seconds to stop, then its future is dropped. What it returns
    /// after that signal is ignored.
    ///
    /// An error fails the task; the client sees the error's text, the log has its causes too.
    fn run(&self, turn: Turn) -> impl Future<Output = AgentResult<Outcome>> + Send;

    /// The execution policy; the engine reads it at the start of every run.
    fn policy(&self) -> ExecutionPolicy {
        ExecutionPolicy::default()
    }

    /// A task that waited for its client was canceled. An agent that keeps something for it in memory can release that;
    /// it must not block. There is no such call if another process, or an earlier one, ran the last turn.
    fn abandoned(&self, _scope: &Scope, _task: &TaskId) {}
}

/// A shared agent, for example one that a test also looks into.
impl<A: Agent> Agent for Arc<A> {
    fn run(&self, turn: Turn) -> impl Future<Output = AgentResult<Outcome>> + Send {
        A::run(self, turn)
    }

    fn policy(&self) -> ExecutionPolicy {
        A::policy(self)
    }

    fn abandoned(&self, scope: &Scope, task: &TaskId) {
        A::abandoned(self, scope, task);
    }
}

/// Any agent behind a pointer; every clone is the same agent.
#[derive(Clone)]
pub struct DynAgent(Arc<dyn ErasedAgent>);

impl DynAgent {
    /// Hides the agent's type.
    pub fn new(agent: impl Agent) -> Self {
        Self(Arc::new(agent))
    }

    /// The future of one turn. The agent is first called when the future is polled.
    pub(crate) fn start(&self, turn: Turn) -> BoxFuture<'static, AgentResult<Outcome>> {
        Arc::clone(&self.0).run_boxed(turn)
    }
}

impl Agent for DynAgent {
    async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
        self.start(turn).await
    }

    fn policy(&self) -> ExecutionPolicy {
        self.0.policy()
    }

    fn abandoned(&self, scope: &Scope, task: &TaskId) {
        self.0.abandoned(scope, task);
    }
}

/// [`Agent`] without its type; the future owns the agent.
trait ErasedAgent: Send + Sync {
    fn run_boxed(self: Arc<Self>, turn: Turn) -> BoxFuture<'static, AgentResult<Outcome>>;

    fn policy(&self) -> ExecutionPolicy;

    fn abandoned(&self, scope: &Scope, task: &TaskId);
}

impl<A: Agent> ErasedAgent for A {
    fn run_boxed(self: Arc<Self>, turn: Turn) -> BoxFuture<'static, AgentResult<Outcome>> {
        Box::pin(async move { self.run(turn).await })
    }

    fn policy(&self) -> ExecutionPolicy {
        Agent::policy(self)
    }

    fn abandoned(&self, scope: &Scope, task: &TaskId) {
        Agent::abandoned(self, scope, task);
    }
}

/// What an agent declares about its runs: how the engine may schedule and recover them. What can be set for a skill is in
/// [`RunSettings`](crate::RunSettings).
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct ExecutionPolicy {
    /// The agent has no effect outside this process, so it may run before its task is committed. Its updates
    /// then join the same commit, or are dropped with it.
    pub overlap: bool,
    /// What to do with a turn whose process crashed before the turn ended.
    pub on_crash: OnCrash,
    /// A turn may leave a question open that holds something which others wait for. It counts as a task that waits for
    /// its client ([`PrincipalCaps::interrupted`](crate::PrincipalCaps::interrupted)) until it ends, or until
    /// [`Turn::will_not_ask`].
    pub may_ask: bool,
}

impl ExecutionPolicy {
    /// Sets [`overlap`](Self::overlap).
    #[must_use]
    pub fn with_overlap(self, overlap: bool) -> Self {
        Self { overlap, ..self }
    }

    /// Sets [`on_crash`](Self::on_crash).
    #[must_use]
    pub fn with_on_crash(self, on_crash: OnCrash) -> Self {
        Self { on_crash, ..self }
    }

    /// Sets [`may_ask`](Self::may_ask).
    #[must_use]
    pub fn with_may_ask(self, may_ask: bool) -> Self {
        Self { may_ask, ..self }
    }
}

/// What to do with a turn whose process crashed before the turn ended. `Retry` and `Resume` also apply after
/// [`Outcome::retry`]. In every case a finished step ([`Turn::step`]) is never run again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnCrash {
    /// Run it again from the start, with the same idempotency key and the journal of its steps; the first chunk of
    /// each artifact replaces what the crashed run recorded.
    #[default]
    Retry,
    /// Run it again from the last checkpoint; artifact chunks are appended to what is recorded. An agent that
    /// saves how much of an artifact it has written needs this. Checkpoints and artifacts count as progress, as
    /// finished steps do under every policy: attempts are counted from the last progress.
    Resume,
    /// Fail the task, because its side effects must not happen twice, if a step had begun and not finished: the start
    /// of each step is committed before its future is polled. If every step that began has finished, the turn is run
    /// again. A turn without any recorded step counts as one step from its start to its end. The same applies when a
    /// shutdown interrupts the turn.
    Fail,
}
