//! The engine's public API: calls in, replies and streams out.

use std::{
    sync::{Arc, Mutex, OnceLock},
    time::Duration,
};

use protocol::{
    Dialect, ErrorKind, Operation, Reply, TaskId, TaskState, Timestamp, TraceContext, dialect::Style,
    error::excerpt, model::Secret,
};

use tokio::sync::Semaphore;

use crate::{
    access::{
        access_changes::AccessChanges,
        agent_switches::{AgentSwitch, SwitchError},
        api_keys::{ApiKey, ApiKeyError, ApiKeys, NewApiKey, is_valid_name},
        principal_caps::PrincipalCaps,
        scope::Scope,
    },
    catalog::{Catalog, CurrentCatalog, RegisteredAgent},
    clock::Clock,
    error::{Error, Result},
    feed::Feed,
    ids::Ids,
    log::Seq,
    memory::{MemoryBudget, Reservation},
    metrics::{DiskUsage, PushMetrics, RunMetrics, RunnerLoad, StoreMetrics},
    operations::{
        self, PendingReply, contended_tasks::ContendedTasks, operators::OperatorTasks,
        submit::named_skill::MAX_WAITING, task_numbers::TaskNumbers,
    },
    origin::Origin,
    push::{Deliverer, Deliveries, Holds, IsRevokedPrincipal, PushSetup, Records, Worker},
    retention::Purger,
    runner::{Limits, Runner},
    store::{Lookup, Store, StoreError, Visibility},
    stream::{StreamEnd, TaskStream},
    trace::begin_trace,
};

/// Executes operations on tasks and runs the agents. Cheap to clone.
#[derive(Clone)]
pub struct Engine(Arc<EngineInner>);

pub(crate) struct EngineInner {
    purpose: Purpose,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) feed: Feed,
    pub(crate) runner: Arc<Runner>,
    pub(crate) clock: Clock,
    pub(crate) contended_tasks: ContendedTasks,
    pub(crate) task_numbers: TaskNumbers,
    /// Places for messages that name a skill which is not known yet.
    pub(crate) skill_waits: Semaphore,
    pub(crate) ids: Ids,
    pub(crate) seal_key: [u8; 32],
    api_keys: Arc<ApiKeys>,
    access_changes: AccessChanges,
    /// Set once, by who verifies the credentials that are not API keys.
    is_revoked_principal: Arc<OnceLock<Box<IsRevokedPrincipal>>>,
    /// Held while an agent is enabled or disabled.
    switching: Arc<tokio::sync::Mutex<()>>,
    memory: MemoryBudget,
    /// Set once, if notifications can be sent.
    push: OnceLock<Arc<Deliverer>>,
}

/// What an engine was started for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Serving,
    /// Only calls of operators, on a store that no server uses.
    Operators,
}

/// The context of one operation: caller, agent and request options.
#[derive(Clone, Debug)]
pub struct Call {
    /// The caller's scope; includes the agent.
    pub scope: Scope,
    /// The `Idempotency-Key` of the request; a retry with the same key is deduplicated.
    pub idempotency_key: Option<String>,
    /// Where to resume the task's event stream.
    pub resume: Option<Resume>,
    /// The endpoint and the caller's protocol version; they decide which transitions are allowed and which replies are
    /// possible.
    pub origin: Origin,
    /// How long a blocking send waits for the outcome at most, if that is less than the limit of the server.
    pub wait: Option<Duration>,
    /// After how long the response to a blocking send is [`CallResponse::Pending`]; `None`: never.
    pub pending_after: Option<Duration>,
    /// Settings of the endpoint's compatibility profile that affect tasks.
    pub task_policy: TaskPolicy,
    /// The call's memory reservation; `None` when memory is not limited.
    pub memory: Option<Arc<Reservation>>,
    /// What the caller may have at a time; default: no limit.
    pub caps: PrincipalCaps,
    /// The agent that the request was checked against; `None` looks it up in the current catalog.
    pub agent: Option<Arc<RegisteredAgent>>,
    /// The encoding options of the endpoint's compatibility profile, for the notifications of a webhook that the call
    /// registers.
    pub style: Style,
    /// The span that the call is; its runs and commits belong to the same trace.
    pub trace: TraceContext,
}

/// Settings of a compatibility profile that affect how messages are assigned to tasks. The default follows
/// the protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TaskPolicy {
    /// A message with a context id and no task id continues the task in that context that waits for input.
    pub resume_by_context: bool,
    /// An unknown context id is rejected instead of starting a new conversation.
    pub known_contexts_only: bool,
    /// Replies contain the history even in dialects that send it only on request.
    pub always_include_history: bool,
    /// A message without valid arguments for its skill is refused instead of recorded.
    pub refuse_invalid_arguments: bool,
}

/// From where a stream is resumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resume {
    /// After the event with this number.
    After(Seq),
    /// The caller sent a `Last-Event-ID` that is not an event number of this server.
    Unknown,
}

impl Call {
    /// A call without options, over A2A in the default dialect.
    pub fn new(scope: Scope) -> Self {
        Self {
            scope,
            idempotency_key: None,
            resume: None,
            origin: Origin::default(),
            wait: None,
            pending_after: None,
            task_policy: TaskPolicy::default(),
            memory: None,
            caps: PrincipalCaps::default(),
            agent: None,
            style: Style::default(),
            trace: begin_trace(),
        }
    }

    /// The dialect whose rules for tasks apply.
    pub(crate) fn dialect(&self) -> Dialect {
        self.origin.dialect()
    }

    /// Charges tasks that were read to the call's reservation, by the size of their logs.
    pub(crate) fn charge_read(&self, log_bytes: u64) -> Result<()> {
        let Some(memory) = &self.memory else { return Ok(()) };
        memory.cover_task(log_bytes).map_err(Error::RetryLater)
    }
}

/// The result of a call.
pub enum CallResponse {
    /// A single reply.
    Reply(Reply),
    /// A stream of frames.
    Stream(TaskStream),
    /// The reply to a blocking send is still to come. Only for calls with [`Call::pending_after`].
    Pending(Box<PendingReply>),
    /// A reply or stream, and something about it that the protocol has no place for.
    Noted(ResponseNote, Box<CallResponse>),
}

/// What is reported beside a reply.
#[derive(Clone, Debug)]
pub enum ResponseNote {
    /// The message was already recorded (deduplicated retry).
    Replayed,
    /// The key that signs the notifications of the webhook that the call registered. Shown once.
    WebhookSecret(Secret),
    /// How the deliveries to the webhook that the reply shows are going.
    PushHealth(String),
    /// How many tasks the list leaves out because they are damaged.
    Unreadable(u64),
}

impl CallResponse {
    /// Ends the stream of a response when this resolves.
    #[must_use]
    pub fn ending_with(self, end: impl Future<Output = StreamEnd> + Send + 'static) -> Self {
        match self {
            Self::Stream(stream) => Self::Stream(stream.ending_with(end)),
            Self::Noted(note, response) => Self::Noted(note, Box::new(response.ending_with(end))),
            Self::Reply(reply) => Self::Reply(reply),
            Self::Pending(pending) => Self::Pending(pending),
        }
    }

    /// Adds a note, if there is one.
    pub(crate) fn with_note(self, note: Option<ResponseNote>) -> Self {
        match note {
            Some(note) => Self::Noted(note, Box::new(self)),
            None => self,
        }
    }
}

impl Engine {
    /// Starts an engine on a store that publishes to this feed.
    pub fn start(store: Arc<dyn Store>, feed: Feed, catalog: Catalog, clock: Clock, limits: Limits) -> Self {
        let engine = Self::new(Purpose::Serving, store, feed, catalog, clock, limits);
        let EngineInner { store, runner, clock, .. } = &*engine.0;
        runner.start();
        let catalog = engine.catalog().clone();
        runner.spawn_purger(Purger::new(Arc::clone(store), catalog, clock.clone(), limits));
        engine
    }

    /// An engine for the operators of a store that no server uses. It changes what they change and nothing else: it claims
    /// no work, and delivers and purges nothing. An empty catalog stands for agents that are not known: any is accepted.
    pub fn for_operators(store: Arc<dyn Store>, feed: Feed, catalog: Catalog, clock: Clock) -> Self {
        Self::new(Purpose::Operators, store, feed, catalog, clock, Limits::default())
    }

    fn new(
        purpose: Purpose,
        store: Arc<dyn Store>,
        feed: Feed,
        catalog: Catalog,
        clock: Clock,
        limits: Limits,
    ) -> Self {
        let access_changes = AccessChanges::default();
        let catalog =
            CurrentCatalog::new(catalog, store.agent_switches(), access_changes.clone(), clock.clone());
        let runner = Runner::new(Arc::clone(&store), catalog, clock.clone(), limits);
        let (ids, seal_key) = (store.ids(), store.seal_key());
        let memory = MemoryBudget::new(limits.memory);
        let task_numbers = TaskNumbers::default();
        let contended_tasks = ContendedTasks::new();
        let skill_waits = Semaphore::new(MAX_WAITING);
        let api_keys = ApiKeys::new(Arc::clone(&store)).announcing(access_changes.clone());
        let api_keys = Arc::new(api_keys);
        Self(Arc::new(EngineInner {
            purpose,
            store,
            feed,
            runner,
            clock,
            task_numbers,
            skill_waits,
            contended_tasks,
            ids,
            seal_key,
            api_keys,
            access_changes,
            is_revoked_principal: Arc::default(),
            switching: Arc::default(),
            memory,
            push: OnceLock::new(),
        }))
    }

    /// Lets clients register webhooks, and starts to deliver notifications, also those that an earlier process left.
    /// Without it, requests with webhooks are refused. Only the first call has an effect.
    pub fn start_push(&self, setup: PushSetup) {
        let deliverer = Arc::new(Deliverer {
            store: Arc::clone(&self.0.store),
            sender: setup.sender,
            records: Records::new(setup.sealer),
            policy: setup.policy,
            clock: self.0.clock.clone(),
            memory: self.0.memory.clone(),
            metrics: PushMetrics::default(),
            holds: Holds {
                catalog: self.catalog().clone(),
                api_keys: Arc::clone(&self.0.api_keys),
                changes: self.0.access_changes.clone(),
                is_revoked: Arc::clone(&self.0.is_revoked_principal),
                held: Mutex::default(),
            },
        });
        if self.0.push.set(Arc::clone(&deliverer)).is_ok() {
            self.0.runner.spawn_deliveries(Worker::new(deliverer));
        }
    }

    /// Deliveries of push notifications, for operators.
    pub fn deliveries(&self) -> Deliveries {
        Deliveries::new(Arc::clone(&self.0.store), self.0.push.get().cloned(), self.0.clock.clone())
    }

    /// What the delivery of notifications has counted; `None` if none are sent.
    pub fn push_metrics(&self) -> Option<&PushMetrics> {
        self.0.push.get().map(|push| &push.metrics)
    }

    /// Executes an operation.
    ///
    /// Dropping the future drops a watcher, never the work: once a message is committed, its run belongs to
    /// the engine.
    pub async fn call(&self, call: Call, operation: Operation) -> Result<CallResponse> {
        let scope = call.style.created_at.then(|| call.scope.clone());
        let mut response = operations::dispatch(&self.0, call, operation).await?;
        if let Some(scope) = scope {
            Box::pin(operations::created_at::add(&self.0, &scope, &mut response)).await?;
        }
        Ok(response)
    }

    /// Waits for a reply as the call would have: until the turn has ended, or for as long as the caller waits at most.
    /// Dropping the future drops a watcher, never the work.
    pub async fn reply(&self, pending: PendingReply) -> Result<Reply> {
        pending.reply(&self.0).await
    }

    /// Through which endpoint and in which dialect a task was created, if the task is visible to the caller.
    pub async fn origin(&self, scope: &Scope, id: &TaskId) -> Result<Option<Origin>> {
        let row = self.0.store.row(scope, self.0.lookup(id)).await?;
        Ok(row.filter(|row| row.visibility == Visibility::Visible).map(|row| row.origin))
    }

    /// Lets the work of a task start now if it is queued or due. Returns the state of the task; `None` if there is no
    /// such task, or its id was chosen by a client.
    ///
    /// Not restricted to a scope: the caller of this function has checked a signature over the id.
    pub async fn wake(&self, id: &TaskId) -> Result<Option<TaskState>> {
        match self.0.ids.parse_task(id) {
            Some((no, tag)) => self.0.runner.wake(no, tag).await,
            None => Ok(None),
        }
    }

    /// The tasks of all owners, for operators.
    pub fn operator_tasks(&self) -> OperatorTasks {
        OperatorTasks::new(Arc::clone(&self.0))
    }

    /// Whether it serves callers, and not only the operators of a store that no server uses.
    pub fn is_serving(&self) -> bool {
        self.0.purpose == Purpose::Serving
    }

    /// Whether the agents that are not in the catalog do not exist.
    pub fn knows_agents(&self) -> bool {
        let has_agents = |catalog: &Catalog| catalog.agents(catalog.default_tenant().id()).next().is_some();
        self.is_serving() || has_agents(&self.catalog().load())
    }

    fn is_unknown(&self, tenant: &str, agent: &str) -> bool {
        self.knows_agents() && self.catalog().load().get(tenant, agent).is_none()
    }

    /// The decisions of operators about agents, registered or not.
    pub fn agent_switches(&self) -> Vec<AgentSwitch> {
        self.0.store.agent_switches()
    }

    /// The catalog of agents in use; swapping it changes which agents new calls and turns get.
    pub fn catalog(&self) -> &CurrentCatalog {
        self.0.runner.catalog()
    }

    /// The API keys of the store.
    pub fn api_keys(&self) -> &Arc<ApiKeys> {
        &self.0.api_keys
    }

    /// Notices of changes of the catalog, the API keys, and of what else the server announces there.
    pub fn access_changes(&self) -> &AccessChanges {
        &self.0.access_changes
    }

    /// Sets which principals have credentials that cannot be verified any more: their webhooks are held. Only the first call
    /// has an effect.
    pub fn set_revoked_principals(&self, is_revoked: Box<IsRevokedPrincipal>) {
        let _ = self.0.is_revoked_principal.set(is_revoked);
    }

    /// Makes an API key for an agent of the catalog, as [`ApiKeys::create`] does.
    pub async fn create_api_key(
        &self,
        new: &NewApiKey<'_>,
        max: usize,
    ) -> Result<(ApiKey, Secret), ApiKeyError> {
        if self.is_unknown(new.tenant, new.agent) {
            return Err(ApiKeyError::UnknownAgent(excerpt(new.agent)));
        }
        self.0.api_keys.create(new, max, self.0.clock.now()).await
    }

    /// Revokes an API key, as [`ApiKeys::revoke`] does.
    pub async fn revoke_api_key(&self, id: &str) -> Result<bool, StoreError> {
        self.0.api_keys.revoke(id, self.0.clock.now()).await
    }

    /// Enables or disables an agent of the catalog. The decision is durable and in force when this returns. Dropping the
    /// future does not revoke it.
    pub async fn switch_agent(&self, switch: AgentSwitch) -> Result<AgentSwitch, SwitchError> {
        if self.is_unknown(&switch.tenant, &switch.agent) {
            return Err(SwitchError::UnknownAgent(excerpt(&switch.agent)));
        }
        if !is_valid_name(&switch.agent) {
            return Err(SwitchError::InvalidAgent);
        }
        // One at a time, so that memory follows the store in its order.
        let switching = Arc::clone(&self.0.switching).lock_owned().await;
        let (store, catalog, decided) = (Arc::clone(&self.0.store), self.catalog().clone(), switch.clone());
        // Not on a thread that serves requests: indexing and dropping many skills takes milliseconds.
        let switched = tokio::task::spawn_blocking(move || {
            let stored = store.set_agent_switch(decided.clone());
            drop(catalog.switch(decided));
            drop(switching);
            stored
        });
        let stored = switched.await.map_err(|_| StoreError::Unavailable("the engine has stopped".into()))?;
        stored.await?;
        Ok(switch)
    }

    /// The limits that this engine was started with.
    pub fn limits(&self) -> &Limits {
        self.0.runner.limits()
    }

    /// Whether messages are refused because little disk space is left; everything else is served.
    pub fn is_low_on_space(&self) -> bool {
        self.0.store.is_low_on_space()
    }

    /// What the runs of this process have counted.
    pub fn run_metrics(&self) -> &RunMetrics {
        self.0.runner.metrics()
    }

    /// What the store has counted.
    pub fn store_metrics(&self) -> &StoreMetrics {
        self.0.store.metrics()
    }

    /// The runs in progress and the work that waits for them.
    pub fn load(&self) -> RunnerLoad {
        self.0.runner.load()
    }

    /// How much space the store uses, and how much is left for it.
    pub async fn disk_usage(&self) -> Result<DiskUsage, StoreError> {
        self.0.store.disk_usage().await
    }

    /// The memory budget shared by all calls.
    pub fn memory(&self) -> &MemoryBudget {
        &self.0.memory
    }

    /// The clock that stamps events and deadlines.
    pub fn clock(&self) -> &Clock {
        &self.0.clock
    }

    /// Resolves when the store can no longer write, with the reason.
    pub async fn failed(&self) -> String {
        self.0.store.failed().await
    }

    /// Waits until everything queued before is written; an error if the store cannot write any more.
    pub async fn flush(&self) -> Result<(), crate::Error> {
        // The store's queue is in order, so the answer to any write comes after the earlier writes.
        self.0.store.reserve(0).await?;
        Ok(())
    }

    /// Resolves when an integrity check finds the store damaged, with the findings.
    pub async fn damaged(&self) -> String {
        self.0.store.damaged().await
    }

    /// Graceful shutdown: starts no new run, waits up to `grace` for running ones, then releases the rest
    /// without spending their attempts. In the last [`STOP_GRACE`](crate::STOP_GRACE) of that time the agents are asked
    /// to stop: they may record checkpoints and artifacts, and their outcome is ignored. Streams are closed last, so that a run that ends meanwhile is
    /// streamed to its end.
    pub async fn drain(&self, grace: Duration) {
        self.0.runner.drain();
        self.0.runner.finish(grace).await;
        self.0.feed.drain();
    }

    /// How many tasks have work that is queued or was interrupted. Counts up to 10,000.
    pub async fn count_unfinished(&self) -> Result<usize, crate::Error> {
        const MAX: usize = 10_000;
        let due = self.0.store.due(Timestamp::from_millis(i64::MAX), MAX).await?;
        Ok(due.tasks.len())
    }
}

impl Drop for EngineInner {
    /// The last handle is gone: background tasks, runs and streams end, and with them the last owners of the
    /// store.
    fn drop(&mut self) {
        self.runner.abandon();
        self.feed.drain();
    }
}

impl EngineInner {
    /// The agent a call is addressed to: the one it was checked against, else the current one.
    pub(crate) fn agent(&self, call: &mut Call) -> Result<Arc<RegisteredAgent>> {
        if let Some(registered) = call.agent.take() {
            return Ok(registered);
        }
        let (tenant, agent) = (call.scope.tenant(), call.scope.agent());
        self.runner.catalog().load().get(tenant, agent).cloned().ok_or_else(|| {
            let shown = excerpt(agent);
            let text = format!("there is no agent {shown:?} here, or it is disabled");
            Error::refused(ErrorKind::AgentDisabled, text)
        })
    }

    /// How notifications are delivered; `None` if they are not.
    pub(crate) fn push(&self) -> Option<&Deliverer> {
        self.push.get().map(|push| &**push)
    }

    pub(crate) fn lookup(&self, id: &TaskId) -> Lookup {
        Lookup { ours: self.ids.parse_task(id), name: id.clone() }
    }
}
