//! Test harness: an engine on a new store with a scripted agent, and helpers for client calls and their
//! results.

mod agent;
mod frames;
mod message;
mod recording_store;

use std::{path::Path, sync::Arc, time::Duration};

use a2ad_engine::{
    Agent, AgentInfo, AgentSettings, AuthMethods, Call, CallResponse, Catalog, Clock, DEFAULT_TENANT, Dedupe,
    DynAgent, Engine, Error, ExecutionPolicy, Feed, HiddenSkills, Limits, OnCrash, RegisteredAgent, Result,
    Resume, Retention, RunSettings, Scope, Skill, SkillSet, Store as _,
    store::{Lookup, TaskRow},
};
use protocol::{
    CancelTask, Dialect, ErrorKind, GetTask, ListTasks, Operation, Reply, SubscribeToTask, Task, TaskId,
    TaskPage, TaskState, model::AgentSkill,
};
use store::{Sqlite, SqliteOptions};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

pub(crate) use agent::{
    AgentHandle, RunningTurn, agent_message, artifact, bare_message, chunk, done, done_with, failed,
    need_input, progress, retryable_failure, save, working,
};
pub(crate) use frames::{Ending, Frames};
pub(crate) use message::{MessageBuilder, msg};
pub(crate) use recording_store::{RecordingStore, WorkFault};

/// Timeout of every wait in these tests.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// Id of the scripted agent.
const AGENT_ID: &str = "scripted";

/// Configuration of a [`TestServer`].
pub(crate) struct Setup {
    policy: ExecutionPolicy,
    limits: Limits,
    clock: Clock,
    retention: Retention,
    dedupe: Dedupe,
    skills: Vec<AgentSkill>,
    run_settings: RunSettings,
    skill_settings: Vec<(String, RunSettings)>,
    others: Vec<RegisteredAgent>,
    unregistered: Retention,
    settings: AgentSettings,
    hides_due: bool,
    hidden: Vec<Skill>,
    separate: Vec<Skill>,
    pending: Vec<String>,
}

impl Setup {
    /// An agent without `overlap`: it starts after its task is committed.
    pub(crate) fn plain() -> Self {
        Self {
            policy: ExecutionPolicy::default(),
            limits: Limits::default(),
            clock: Clock::system(),
            retention: Retention::default(),
            dedupe: Dedupe::default(),
            skills: Vec::new(),
            run_settings: RunSettings::default(),
            skill_settings: Vec::new(),
            others: Vec::new(),
            unregistered: Retention::default(),
            settings: AgentSettings::default(),
            hides_due: false,
            hidden: Vec::new(),
            separate: Vec::new(),
            pending: Vec::new(),
        }
    }

    /// An agent with `overlap`: it may start before its task is committed.
    pub(crate) fn overlapping() -> Self {
        let plain = Self::plain();
        Self { policy: plain.policy.with_overlap(true), ..plain }
    }

    pub(crate) fn on_crash(mut self, on_crash: OnCrash) -> Self {
        self.policy.on_crash = on_crash;
        self
    }

    /// Concurrent runs.
    pub(crate) fn slots(mut self, concurrent: usize) -> Self {
        self.limits.concurrent = concurrent;
        self
    }

    /// Tasks that may wait for a slot.
    pub(crate) fn queued(mut self, queued: usize) -> Self {
        self.limits.queued = queued;
        self
    }

    /// Concurrent runs of the scripted agent.
    pub(crate) fn agent_slots(mut self, concurrent: usize) -> Self {
        self.settings.concurrent = concurrent;
        self
    }

    /// Which credentials the scripted agent accepts.
    pub(crate) fn auth(mut self, auth: AuthMethods) -> Self {
        self.settings.auth = auth;
        self
    }

    /// Attempts per turn.
    pub(crate) fn attempts(mut self, attempts: u32) -> Self {
        self.limits.attempts = attempts;
        self
    }

    /// Wait limit of a blocking send.
    pub(crate) fn wait(mut self, wait: Duration) -> Self {
        self.limits.wait = Some(wait);
        self
    }

    /// Bytes of log per task.
    pub(crate) fn max_task(mut self, max_task: u64) -> Self {
        self.limits.max_task = max_task;
        self
    }

    /// Bytes of a checkpoint.
    pub(crate) fn max_saved(mut self, max_saved: u64) -> Self {
        self.limits.max_saved = max_saved;
        self
    }

    /// Bytes of the outputs of a turn's steps.
    pub(crate) fn max_journal(mut self, max_journal: u64) -> Self {
        self.limits.max_journal = max_journal;
        self
    }

    pub(crate) fn retention(self, retention: Retention) -> Self {
        Self { retention, ..self }
    }

    pub(crate) fn dedupe(self, dedupe: Dedupe) -> Self {
        Self { dedupe, ..self }
    }

    /// Skill ids of the agent.
    pub(crate) fn skills(mut self, ids: &[&str]) -> Self {
        self.skills = ids.iter().map(|id| skill(id)).collect();
        self
    }

    /// Adds a skill that only work of the agent can call.
    pub(crate) fn hidden(mut self, skill: Skill) -> Self {
        self.hidden.push(skill);
        self
    }

    /// The agent has these skills instead, each with work of its own.
    pub(crate) fn separate(self, skills: impl IntoIterator<Item = Skill>) -> Self {
        Self { separate: skills.into_iter().collect(), ..self }
    }

    /// The agent has skills with work of their own, none of which is known until this server has started.
    pub(crate) fn starting(self, server: &str) -> Self {
        Self { pending: vec![server.into()], ..self }
    }

    /// Execution settings of the agent.
    pub(crate) fn run_settings(self, run_settings: RunSettings) -> Self {
        Self { run_settings, ..self }
    }

    /// Execution settings of one skill of the agent.
    pub(crate) fn skill_settings(mut self, skill: &str, settings: RunSettings) -> Self {
        self.skill_settings.push((skill.into(), settings));
        self
    }

    /// How long an interrupted task waits for its client.
    pub(crate) fn interrupted_ttl(mut self, interrupted_ttl: Duration) -> Self {
        self.limits.interrupted_ttl = interrupted_ttl;
        self
    }

    pub(crate) fn clock(self, clock: &Clock) -> Self {
        Self { clock: clock.clone(), ..self }
    }

    /// Adds another agent.
    pub(crate) fn with(mut self, id: &str, agent: impl Agent) -> Self {
        self.others.push(registered(id, Vec::new(), DynAgent::new(agent)));
        self
    }

    /// Retention for tasks of agents that are not registered.
    pub(crate) fn unregistered(self, unregistered: Retention) -> Self {
        Self { unregistered, ..self }
    }

    /// Reads of due work find nothing.
    pub(crate) fn hide_due(self) -> Self {
        Self { hides_due: true, ..self }
    }

    /// Opens a server in a temporary folder of its own.
    pub(crate) fn open(self) -> TestServer {
        let folder = tempfile::tempdir().unwrap();
        let server = self.open_at(folder.path());
        TestServer { _folder: Some(folder), ..server }
    }

    /// Opens a server in a folder that outlives it.
    pub(crate) fn open_at(self, folder: &Path) -> TestServer {
        self.try_open_at(folder).expect("the database is not locked")
    }

    /// Like [`Self::open_at`]; `None` if the database is locked.
    pub(crate) fn try_open_at(self, folder: &Path) -> Option<TestServer> {
        let Self { policy, limits, clock, retention, dedupe, skills, others, unregistered, settings, .. } =
            self;
        let feed = Feed::default();
        let options = SqliteOptions { sync: false, ..SqliteOptions::at(folder.join("a2ad.db")) };
        let store = Arc::new(RecordingStore::new(Sqlite::open(&options, feed.clone(), &clock).ok()?));
        if self.hides_due {
            store.hide_due();
        }
        let (script, agent) = agent::scripted_agent(policy);
        let skills = match self.separate {
            separate if separate.is_empty() && self.pending.is_empty() => {
                SkillSet::of_cards(DynAgent::new(script), skills)
            }
            separate => SkillSet::separate(separate).with_pending(self.pending),
        };
        let scripted = RegisteredAgent::new(
            info(AGENT_ID),
            skills.with_hidden(HiddenSkills::new(self.hidden, Vec::new())),
        )
        .with_retention(retention)
        .with_dedupe(dedupe)
        .with_settings(settings)
        .with_run_settings(self.run_settings);
        let scripted = self.skill_settings.into_iter().fold(scripted, |scripted, (skill, settings)| {
            scripted.with_skill(&skill, |skill| skill.run = settings)
        });
        let agents: Vec<_> = others.into_iter().chain([scripted]).collect();
        let catalog = Catalog::new(AGENT_ID, agents.clone())
            .with_tenant("elsewhere", AGENT_ID, agents)
            .with_unregistered_retention(unregistered);
        let engine = Engine::start(store.clone(), feed.clone(), catalog, clock, limits);
        Some(TestServer { engine, agent, store, feed, calls: TaskTracker::new(), _folder: None })
    }
}

pub(crate) fn skill(id: &str) -> AgentSkill {
    AgentSkill { id: id.into(), name: id.into(), ..AgentSkill::default() }
}

pub(crate) fn registered(id: &str, skills: Vec<AgentSkill>, agent: DynAgent) -> RegisteredAgent {
    RegisteredAgent::new(info(id), SkillSet::of_cards(agent, skills))
}

fn info(id: &str) -> AgentInfo {
    AgentInfo {
        id: id.into(),
        name: id.into(),
        description: String::new(),
        version: "1".into(),
        input_modes: Vec::new(),
        output_modes: Vec::new(),
    }
}

/// An engine, its store, and the test's handle to its agent.
pub(crate) struct TestServer {
    pub(crate) engine: Engine,
    pub(crate) agent: AgentHandle,
    pub(crate) store: Arc<RecordingStore>,
    pub(crate) feed: Feed,
    /// Background calls.
    calls: TaskTracker,
    /// Dropped last.
    _folder: Option<TempDir>,
}

impl TestServer {
    pub(crate) async fn call(&self, scope: Scope, operation: Operation) -> Result<CallResponse> {
        self.call_as(Call::new(scope), operation).await
    }

    pub(crate) async fn call_as(&self, call: Call, operation: Operation) -> Result<CallResponse> {
        with_timeout(self.engine.call(call, operation)).await
    }

    async fn reply(&self, operation: Operation) -> Result<Reply> {
        self.call(scope(), operation).await.map(reply)
    }

    async fn frames(&self, operation: Operation) -> Result<Frames> {
        self.call(scope(), operation).await.map(frames)
    }

    /// Sends a message and waits for the reply.
    pub(crate) async fn send(&self, msg: MessageBuilder) -> Result<Reply> {
        self.reply(Operation::SendMessage(msg.into())).await
    }

    /// Sends a message with call options.
    pub(crate) async fn send_as(&self, call: Call, msg: MessageBuilder) -> Result<CallResponse> {
        self.call_as(call, Operation::SendMessage(msg.into())).await
    }

    /// Sends a message with call options, in the background.
    pub(crate) fn spawn_send_as(&self, call: Call, msg: MessageBuilder) -> JoinHandle<Result<CallResponse>> {
        let engine = self.engine.clone();
        self.calls.spawn(async move { engine.call(call, Operation::SendMessage(msg.into())).await })
    }

    /// Sends a streaming message in a dialect.
    pub(crate) async fn stream_in(&self, dialect: Dialect, msg: MessageBuilder) -> Result<Frames> {
        self.call_as(call_in(dialect), Operation::SendStreamingMessage(msg.into())).await.map(frames)
    }

    /// Sends a message and waits for its task.
    pub(crate) async fn send_for_task(&self, msg: MessageBuilder) -> Task {
        task(self.send(msg).await.unwrap())
    }

    /// Sends a message in the background; await it with [`join`].
    pub(crate) fn spawn_send(&self, msg: MessageBuilder) -> JoinHandle<Result<Reply>> {
        let engine = self.engine.clone();
        self.calls.spawn(async move {
            let operation = Operation::SendMessage(msg.into());
            engine.call(Call::new(scope()), operation).await.map(reply)
        })
    }

    /// Starts a task without waiting for its outcome; returns its id and its running turn.
    pub(crate) async fn start_task(&mut self, text: &str) -> (TaskId, RunningTurn) {
        let task = self.send_for_task(msg(text).return_immediately()).await;
        let turn = self.agent.turn().await;
        assert_eq!(turn.task_id, task.id);
        (task.id, turn)
    }

    /// Sends a streaming message.
    pub(crate) async fn stream(&self, msg: MessageBuilder) -> Result<Frames> {
        self.frames(Operation::SendStreamingMessage(msg.into())).await
    }

    /// Subscribes to a task.
    pub(crate) async fn subscribe(&self, id: &TaskId) -> Result<Frames> {
        self.frames(Operation::SubscribeToTask(SubscribeToTask { id: id.clone(), tenant: None })).await
    }

    /// Resumes a task's stream.
    pub(crate) async fn resume(&self, id: &TaskId, resume: Resume) -> Result<Frames> {
        let call = Call { resume: Some(resume), ..Call::new(scope()) };
        let req = SubscribeToTask { id: id.clone(), tenant: None };
        self.call_as(call, Operation::SubscribeToTask(req)).await.map(frames)
    }

    /// Subscribes to a task in a dialect, or resumes its stream.
    pub(crate) async fn subscribe_in(
        &self,
        dialect: Dialect,
        id: &TaskId,
        resume: Option<Resume>,
    ) -> Result<Frames> {
        let req = SubscribeToTask { id: id.clone(), tenant: None };
        let call = Call { resume, ..call_in(dialect) };
        self.call_as(call, Operation::SubscribeToTask(req)).await.map(frames)
    }

    pub(crate) async fn row(&self, id: &TaskId) -> TaskRow {
        let lookup = Lookup { ours: self.store.ids().parse_task(id), name: id.clone() };
        self.store.row(&scope(), lookup).await.unwrap().unwrap()
    }

    /// Ids of the steps in the journal of a task.
    pub(crate) async fn journal(&self, id: &TaskId) -> Vec<String> {
        let work = self.store.work(self.row(id).await.no).await.unwrap().unwrap();
        let mut ids: Vec<_> = work.journal.into_iter().map(|step| step.id).collect();
        ids.sort_unstable();
        ids
    }

    pub(crate) async fn get(&self, id: &TaskId) -> Result<Task> {
        self.get_with(id, None).await
    }

    /// Reads a task with a history length.
    pub(crate) async fn get_with(&self, id: &TaskId, history_length: Option<u32>) -> Result<Task> {
        self.reply(Operation::GetTask(GetTask { id: id.clone(), history_length, tenant: None }))
            .await
            .map(task)
    }

    pub(crate) async fn cancel(&self, id: &TaskId) -> Result<Task> {
        let req = CancelTask { id: id.clone(), metadata: None, tenant: None };
        self.reply(Operation::CancelTask(req)).await.map(task)
    }

    pub(crate) fn spawn_cancel(&self, id: &TaskId) -> JoinHandle<Result<()>> {
        let engine = self.engine.clone();
        let operation = Operation::CancelTask(CancelTask { id: id.clone(), metadata: None, tenant: None });
        self.calls.spawn(async move { engine.call(Call::new(scope()), operation).await.map(drop) })
    }

    pub(crate) async fn list(&self, req: ListTasks) -> Result<TaskPage> {
        match self.reply(Operation::ListTasks(req)).await? {
            Reply::Tasks(page) => Ok(page),
            other => panic!("{other:?} where a page was expected"),
        }
    }

    /// Number of tasks in a state.
    pub(crate) async fn count(&self, state: TaskState) -> u64 {
        self.list(ListTasks { status: Some(state), ..ListTasks::default() }).await.unwrap().total_size
    }

    /// Swaps in a catalog with another scripted agent in place of the first; returns the handle to it.
    pub(crate) fn replace_agent(&self) -> AgentHandle {
        let (script, agent) = agent::scripted_agent(ExecutionPolicy::default());
        let scripted = registered(AGENT_ID, Vec::new(), DynAgent::new(script));
        self.engine.catalog().swap(Catalog::new(AGENT_ID, [scripted]));
        agent
    }

    /// Swaps in a catalog with these skills in place of those of the agent. What `pending` names has more of them.
    pub(crate) fn replace_skills(&self, skills: impl IntoIterator<Item = Skill>, pending: &[&str]) {
        let pending: Vec<String> = pending.iter().map(ToString::to_string).collect();
        let skills = SkillSet::separate(skills).with_pending(pending);
        let current = self.engine.catalog().load();
        let others = current.agents(DEFAULT_TENANT).filter(|agent| agent.info().id != AGENT_ID);
        let agents = others.map(|agent| RegisteredAgent::clone(agent));
        let replaced = RegisteredAgent::new(info(AGENT_ID), skills);
        let catalog = Catalog::new(AGENT_ID, agents.chain([replaced]));
        self.engine.catalog().swap(catalog);
    }

    /// Starts graceful shutdown in the background.
    pub(crate) fn spawn_drain(&self, grace: Duration) -> JoinHandle<()> {
        let engine = self.engine.clone();
        self.calls.spawn(async move { engine.drain(grace).await })
    }
}

/// The default scope of all calls.
pub(crate) fn scope() -> Scope {
    Scope::anonymous("default", AGENT_ID)
}

/// A call in a dialect with the default scope.
pub(crate) fn call_in(dialect: Dialect) -> Call {
    Call { origin: dialect.into(), ..Call::new(scope()) }
}

/// Awaits a future with the test timeout.
pub(crate) async fn with_timeout<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(TEST_TIMEOUT, future).await.expect("test timed out")
}

/// Awaits a background call.
pub(crate) async fn join<T>(handle: JoinHandle<T>) -> T {
    with_timeout(handle).await.unwrap()
}

/// The single reply of a call, replayed or not.
pub(crate) fn reply(answer: CallResponse) -> Reply {
    match answer {
        CallResponse::Reply(reply) => reply,
        CallResponse::Noted(_, answer) => reply(*answer),
        CallResponse::Stream(_) => panic!("a stream where a reply was expected"),
        CallResponse::Pending(_) => panic!("a pending reply where a reply was expected"),
    }
}

/// The frames of a call, replayed or not.
pub(crate) fn frames(answer: CallResponse) -> Frames {
    match answer {
        CallResponse::Stream(stream) => Frames::new(stream),
        CallResponse::Noted(_, answer) => frames(*answer),
        CallResponse::Reply(reply) => panic!("{reply:?} where a stream was expected"),
        CallResponse::Pending(_) => panic!("a pending reply where a stream was expected"),
    }
}

/// The task in a reply.
pub(crate) fn task(reply: Reply) -> Task {
    match reply {
        Reply::SentTask(task) | Reply::Task(task) => task,
        other => panic!("{other:?} where a task was expected"),
    }
}

/// The protocol error of a rejected call.
pub(crate) fn refusal<T>(result: Result<T>) -> protocol::Error {
    match result {
        Err(Error::Refused(error)) => error,
        Err(other) => panic!("{other:?} where a refusal was expected"),
        Ok(_) => panic!("a success where a refusal was expected"),
    }
}

/// The error kind of a rejected call.
pub(crate) fn refused<T>(result: Result<T>) -> ErrorKind {
    refusal(result).kind
}

/// The texts of a task's history.
pub(crate) fn history(task: &Task) -> Vec<String> {
    task.history.iter().map(protocol::Message::text).collect()
}

/// The text of a task's status message.
pub(crate) fn status_text(task: &Task) -> Option<String> {
    task.status.message.as_ref().map(protocol::Message::text)
}

/// The metadata of a task's status message, as JSON.
pub(crate) fn status_metadata(task: &Task) -> Option<&str> {
    task.status.message.as_ref()?.metadata.as_ref().map(protocol::Json::as_str)
}

/// The reason code of a task's status message.
pub(crate) fn reason(task: &Task) -> Option<String> {
    let metadata = task.status.message.as_ref()?.metadata.as_ref()?;
    let reason = metadata.as_str().strip_prefix(r#"{"a2ad":{"reason":""#)?;
    reason.split('"').next().map(str::to_owned)
}

/// Id and text of each artifact.
pub(crate) fn artifacts(task: &Task) -> Vec<(String, String)> {
    let each = |artifact: &protocol::Artifact| (artifact.id.to_string(), frames::text(&artifact.parts));
    task.artifacts.iter().map(each).collect()
}

/// Runs one simulated process until it is killed.
pub(crate) fn process<T>(folder: &Path, setup: Setup, body: impl AsyncFnOnce(&mut TestServer) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (result, server) = runtime.block_on(async {
        let mut server = setup.open_at(folder);
        (body(&mut server).await, server)
    });
    // The runtime is stopped first: dropping the server before would release its work gracefully.
    runtime.shutdown_timeout(Duration::from_secs(10));
    drop(server);
    result
}

/// Keeps paused tokio time from auto-advancing while threads outside the runtime work, until this is dropped.
///
/// Tokio advances paused time whenever every task waits, and a task that waits for the store's thread would
/// trigger that. A pending blocking job prevents it; if that job times out, time advances again and every
/// timeout of the test fires.
pub(crate) struct NoAutoAdvance {
    _until: std::sync::mpsc::Sender<()>,
}

pub(crate) fn prevent_auto_advance() -> NoAutoAdvance {
    let (until, dropped) = std::sync::mpsc::channel();
    tokio::task::spawn_blocking(move || {
        let _ = dropped.recv_timeout(TEST_TIMEOUT);
    });
    NoAutoAdvance { _until: until }
}
