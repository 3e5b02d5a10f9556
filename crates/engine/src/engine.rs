//! The engine as the other rooms see it: calls in, answers out.

use std::{sync::Arc, time::Duration};

use protocol::{Dialect, ErrorKind, Operation, Reply, TaskId, Timestamp, error::in_short};

use crate::{
    agents::{Agents, RegisteredAgent},
    clock::Clock,
    error::{Error, Result},
    feed::Feed,
    ids::Ids,
    log::Seq,
    memory::{MemoryBudget, Reservation},
    numbers::Numbers,
    operations,
    retention::Purger,
    runner::{Limits, Runner},
    scope::Scope,
    store::{Lookup, Store, Visibility},
    stream::TaskStream,
};

/// Decides and records what happens to tasks, and sees that the work gets done. Cheap to clone.
#[derive(Clone)]
pub struct Engine(Arc<Parts>);

pub(crate) struct Parts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) feed: Feed,
    pub(crate) runner: Arc<Runner>,
    pub(crate) clock: Clock,
    pub(crate) numbers: Numbers,
    pub(crate) ids: Ids,
    pub(crate) seal_key: [u8; 32],
    memory: MemoryBudget,
}

/// Who asks for something, and of which agent.
#[derive(Clone, Debug)]
pub struct Call {
    /// The caller's scope; it names the agent too.
    pub scope: Scope,
    /// What the caller calls this request, so that a repetition is known.
    pub idempotency_key: Option<String>,
    /// Where the caller's last stream of the task broke off.
    pub resume: Option<Resume>,
    /// The generation the caller speaks: what it may do to a task and what it can be answered depend on it.
    pub dialect: Dialect,
    /// What the door wants beyond that.
    pub task_policy: TaskPolicy,
    /// What the call has in memory; `None` where nobody counts.
    pub memory: Option<Arc<Reservation>>,
}

/// How a door treats what was said; the default is the protocol's own way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskPolicy {
    /// A message that names a conversation and no task answers the task that waits there.
    pub resume_by_context: bool,
    /// A conversation that is not known here is refused instead of begun.
    pub known_contexts_only: bool,
    /// Tasks show what was said also in a generation that shows it when asked only.
    pub whole_history: bool,
}

/// Where a stream broke off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// Behind the event of this number.
    After(Seq),
    /// Somewhere the caller cannot name in a way we know.
    Unknown,
}

impl Call {
    /// A call that asks for nothing but the operation.
    pub fn new(scope: Scope) -> Self {
        Self {
            scope,
            idempotency_key: None,
            resume: None,
            dialect: Dialect::default(),
            task_policy: TaskPolicy::default(),
            memory: None,
        }
    }

    /// Counts tasks that were read, by the size of their logs.
    pub(crate) fn has_read(&self, log_bytes: u64) -> Result<()> {
        let Some(memory) = &self.memory else { return Ok(()) };
        memory.cover_task(log_bytes).map_err(Error::Later)
    }
}

/// What a call gets.
pub enum Answer {
    /// One answer.
    Reply(Reply),
    /// Frames as they come.
    Stream(TaskStream),
    /// One of these, to a message that was sent before.
    Replayed(Box<Answer>),
}

impl Engine {
    /// Starts an engine on a store that publishes to this feed.
    pub fn start(store: Arc<dyn Store>, feed: Feed, agents: Agents, clock: Clock, limits: Limits) -> Self {
        let runner = Runner::new(Arc::clone(&store), agents, clock.clone(), limits);
        runner.start();
        runner.keep(Purger::new(Arc::clone(&store), runner.agents().clone(), clock.clone()));
        let (ids, seal_key) = (store.ids(), store.seal_key());
        let memory = MemoryBudget::new(limits.memory);
        let numbers = Numbers::default();
        Self(Arc::new(Parts { store, feed, runner, clock, numbers, ids, seal_key, memory }))
    }

    /// Does what is asked.
    ///
    /// Dropping the future drops a watcher, never the work: once a message is recorded, its run belongs to the
    /// engine.
    pub async fn call(&self, call: Call, operation: Operation) -> Result<Answer> {
        operations::dispatch(&self.0, call, operation).await
    }

    /// The dialect in which a task was made, if the caller may see it.
    pub async fn origin(&self, scope: &Scope, id: &TaskId) -> Result<Option<Dialect>> {
        let found = self.0.store.find(scope, self.0.lookup(id)).await?;
        Ok(found.filter(|found| found.row.visibility == Visibility::Visible).map(|found| found.row.origin))
    }

    /// The agents this engine runs.
    pub fn agents(&self) -> &Agents {
        self.0.runner.agents()
    }

    /// What all calls together may have in memory.
    pub fn memory(&self) -> &MemoryBudget {
        &self.0.memory
    }

    /// The engine's clock.
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// Resolves when the store can no longer write, with the reason.
    pub async fn failed(&self) -> String {
        self.0.store.failed().await
    }

    /// Resolves when the store is found to be damaged, with what was found.
    pub async fn damaged(&self) -> String {
        self.0.store.damaged().await
    }

    /// Stops in good order: takes up nothing new, lets runs finish for a while, then lets go of them without spending
    /// their attempts. Whoever still watches is sent away last: what ends meanwhile is seen to its end.
    pub async fn drain(&self, grace: Duration) {
        self.0.runner.drain();
        self.0.runner.finish(grace).await;
        self.0.feed.drain();
    }

    /// How many tasks have work that is queued or was interrupted. Counts up to 10,000.
    pub async fn count_unfinished(&self) -> Result<usize, crate::Error> {
        const MAX: usize = 10_000;
        let due = self.0.store.due(Timestamp::from_millis(i64::MAX), MAX).await?;
        Ok(due.tasks.len() + usize::from(due.suspect.is_some()))
    }
}

impl Drop for Parts {
    /// Nobody can ask any more: duties, runs and streams end, and with them the last owners of the store.
    fn drop(&mut self) {
        self.runner.abandon();
        self.feed.drain();
    }
}

impl Parts {
    /// The agent a call is for.
    pub(crate) fn agent(&self, call: &Call) -> Result<&RegisteredAgent> {
        let id = call.scope.agent();
        self.runner.agents().get(id).ok_or_else(|| {
            let shown = in_short(id);
            let text = format!("there is no agent {shown:?} here, or it is disabled");
            Error::refused(ErrorKind::AgentDisabled, text)
        })
    }

    pub(crate) fn lookup(&self, id: &TaskId) -> Lookup {
        Lookup { ours: self.ids.parse_task(id), name: id.clone() }
    }
}
