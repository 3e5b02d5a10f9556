//! A house to test in: an engine on a fresh store, the test's end of its agent, and short words for what clients
//! do and see.

mod agent;
mod frames;
mod ledger;
mod say;

use std::{path::Path, sync::Arc, time::Duration};

use a2ad_engine::{
    Agent, AgentInfo, Agents, Answer, Call, Clock, Dedupe, Engine, Error, ExecutionPolicy, Feed, Limits,
    OnCrash, RegisteredAgent, Result, Resume, Retention, Scope, Store as _,
    store::{Lookup, TaskRow},
};
use protocol::{
    CancelTask, Dialect, ErrorKind, GetTask, ListTasks, Operation, Reply, SubscribeToTask, Task, TaskId,
    TaskPage, TaskState, model::AgentSkill,
};
use store::{Options, Sqlite};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::task::TaskTracker;

pub(crate) use agent::{
    Stage, Taken, answer, artifact, ask, chunk, done, done_saying, failed, progress, save, try_again, voice,
    working,
};
pub(crate) use frames::{Ending, Frames};
pub(crate) use ledger::{Ledger, Spoiled};
pub(crate) use say::{Say, say};

/// How long anything may take before a test gives it up.
const PATIENCE: Duration = Duration::from_secs(20);

/// The name of the scripted agent.
const SCRIPTED: &str = "scripted";

/// What to open a house with.
pub(crate) struct Setup {
    policy: ExecutionPolicy,
    limits: Limits,
    clock: Clock,
    retention: Retention,
    dedupe: Dedupe,
    skills: Vec<AgentSkill>,
    others: Vec<RegisteredAgent>,
    left_over: Retention,
}

impl Setup {
    /// An agent that has to wait until its task is recorded.
    pub(crate) fn plain() -> Self {
        Self {
            policy: ExecutionPolicy::default(),
            limits: Limits::default(),
            clock: Clock::system(),
            retention: Retention::default(),
            dedupe: Dedupe::default(),
            skills: Vec::new(),
            others: Vec::new(),
            left_over: Retention::default(),
        }
    }

    /// An agent that may begin before its task is recorded.
    pub(crate) fn overlapping() -> Self {
        let plain = Self::plain();
        Self { policy: ExecutionPolicy { overlap: true, ..plain.policy }, ..plain }
    }

    /// What becomes of a turn that a dead process left behind.
    pub(crate) fn on_crash(mut self, on_crash: OnCrash) -> Self {
        self.policy.on_crash = on_crash;
        self
    }

    /// Runs at a time.
    pub(crate) fn slots(mut self, concurrent: usize) -> Self {
        self.limits.concurrent = concurrent;
        self
    }

    /// Tries per turn.
    pub(crate) fn attempts(mut self, attempts: u32) -> Self {
        self.limits.attempts = attempts;
        self
    }

    /// How long a send waits.
    pub(crate) fn wait(mut self, wait: Duration) -> Self {
        self.limits.wait = Some(wait);
        self
    }

    /// Bytes of log per task.
    pub(crate) fn max_task(mut self, max_task: u64) -> Self {
        self.limits.max_task = max_task;
        self
    }

    /// How long tasks are kept.
    pub(crate) fn retention(self, retention: Retention) -> Self {
        Self { retention, ..self }
    }

    /// Which messages have a key.
    pub(crate) fn dedupe(self, dedupe: Dedupe) -> Self {
        Self { dedupe, ..self }
    }

    /// What the agent can do, by id.
    pub(crate) fn skills(mut self, ids: &[&str]) -> Self {
        self.skills = ids.iter().map(|id| skill(id)).collect();
        self
    }

    /// The time clients are told.
    pub(crate) fn clock(self, clock: &Clock) -> Self {
        Self { clock: clock.clone(), ..self }
    }

    /// One more agent.
    pub(crate) fn with(mut self, id: &str, agent: impl Agent) -> Self {
        self.others.push(registered(id, Vec::new(), Arc::new(agent)));
        self
    }

    /// How long tasks of agents that are no longer here are kept.
    pub(crate) fn left_over(self, left_over: Retention) -> Self {
        Self { left_over, ..self }
    }

    /// A house of its own.
    pub(crate) fn open(self) -> House {
        let folder = tempfile::tempdir().unwrap();
        let house = self.open_at(folder.path());
        House { _folder: Some(folder), ..house }
    }

    /// A house in a folder that outlives it.
    pub(crate) fn open_at(self, folder: &Path) -> House {
        self.try_open_at(folder).expect("nobody else has the file")
    }

    /// The same, unless somebody has the file.
    pub(crate) fn try_open_at(self, folder: &Path) -> Option<House> {
        let Self { policy, limits, clock, retention, dedupe, skills, others, left_over } = self;
        let feed = Feed::default();
        let options = Options { sync: false, ..Options::at(folder.join("a2ad.db")) };
        let store = Arc::new(Ledger::new(Sqlite::open(&options, feed.clone(), &clock).ok()?));
        let (script, stage) = agent::stage(policy);
        let scripted =
            registered(SCRIPTED, skills, Arc::new(script)).with_retention(retention).with_dedupe(dedupe);
        let agents = Agents::new(others.into_iter().chain([scripted])).with_left_over(left_over);
        let engine = Engine::start(store.clone(), feed.clone(), agents, clock, limits);
        Some(House { engine, stage, store, feed, calls: TaskTracker::new(), _folder: None })
    }
}

fn skill(id: &str) -> AgentSkill {
    AgentSkill {
        id: id.into(),
        name: id.into(),
        description: String::new(),
        tags: Vec::new(),
        examples: Vec::new(),
        input_modes: Vec::new(),
        output_modes: Vec::new(),
        security_requirements: Vec::new(),
    }
}

fn registered(id: &str, skills: Vec<AgentSkill>, agent: Arc<dyn Agent>) -> RegisteredAgent {
    let info = AgentInfo {
        id: id.into(),
        name: id.into(),
        description: String::new(),
        version: "1".into(),
        skills,
        input_modes: Vec::new(),
        output_modes: Vec::new(),
    };
    RegisteredAgent::new(info, agent)
}

/// An engine, its store, and the test's end of its agent.
pub(crate) struct House {
    pub(crate) engine: Engine,
    pub(crate) stage: Stage,
    pub(crate) store: Arc<Ledger>,
    pub(crate) feed: Feed,
    /// Owns the calls made in the background.
    calls: TaskTracker,
    /// The last thing to go.
    _folder: Option<TempDir>,
}

impl House {
    pub(crate) async fn call(&self, scope: Scope, operation: Operation) -> Result<Answer> {
        self.call_as(Call::new(scope), operation).await
    }

    pub(crate) async fn call_as(&self, call: Call, operation: Operation) -> Result<Answer> {
        within(self.engine.call(call, operation)).await
    }

    async fn reply(&self, operation: Operation) -> Result<Reply> {
        self.call(scope(), operation).await.map(reply)
    }

    async fn frames(&self, operation: Operation) -> Result<Frames> {
        self.call(scope(), operation).await.map(frames)
    }

    /// Says something and waits for the answer.
    pub(crate) async fn send(&self, say: Say) -> Result<Reply> {
        self.reply(Operation::SendMessage(say.into())).await
    }

    /// Says something in a way of its own.
    pub(crate) async fn send_as(&self, call: Call, say: Say) -> Result<Answer> {
        self.call_as(call, Operation::SendMessage(say.into())).await
    }

    /// Says something in a way of its own, in the background.
    pub(crate) fn send_aside_as(&self, call: Call, say: Say) -> JoinHandle<Result<Answer>> {
        let engine = self.engine.clone();
        self.calls.spawn(async move { engine.call(call, Operation::SendMessage(say.into())).await })
    }

    /// Says something in a dialect and watches.
    pub(crate) async fn stream_in(&self, dialect: Dialect, say: Say) -> Result<Frames> {
        self.call_as(speaking(dialect), Operation::SendStreamingMessage(say.into())).await.map(frames)
    }

    /// Says something and waits for the task it becomes.
    pub(crate) async fn send_for_task(&self, say: Say) -> Task {
        task(self.send(say).await.unwrap())
    }

    /// Says something in the background; to be [`joined`].
    pub(crate) fn send_aside(&self, say: Say) -> JoinHandle<Result<Reply>> {
        let engine = self.engine.clone();
        self.calls.spawn(async move {
            let operation = Operation::SendMessage(say.into());
            engine.call(Call::new(scope()), operation).await.map(reply)
        })
    }

    /// Says something to a task that is not yet there and does not wait: gives its id and the turn it began.
    pub(crate) async fn begin(&mut self, text: &str) -> (TaskId, Taken) {
        let task = self.send_for_task(say(text).at_once()).await;
        let turn = self.stage.turn().await;
        assert_eq!(turn.task_id, task.id);
        (task.id, turn)
    }

    /// Says something and watches.
    pub(crate) async fn stream(&self, say: Say) -> Result<Frames> {
        self.frames(Operation::SendStreamingMessage(say.into())).await
    }

    /// Watches a task.
    pub(crate) async fn subscribe(&self, id: &TaskId) -> Result<Frames> {
        self.frames(Operation::SubscribeToTask(SubscribeToTask { id: id.clone(), tenant: None })).await
    }

    /// Watches a task from where an earlier stream of it broke off.
    pub(crate) async fn resume(&self, id: &TaskId, resume: Resume) -> Result<Frames> {
        let call = Call { resume: Some(resume), ..Call::new(scope()) };
        let req = SubscribeToTask { id: id.clone(), tenant: None };
        self.call_as(call, Operation::SubscribeToTask(req)).await.map(frames)
    }

    /// Watches a task in a dialect, from where an earlier stream of it broke off if it did.
    pub(crate) async fn subscribe_in(
        &self,
        dialect: Dialect,
        id: &TaskId,
        resume: Option<Resume>,
    ) -> Result<Frames> {
        let req = SubscribeToTask { id: id.clone(), tenant: None };
        let call = Call { resume, ..speaking(dialect) };
        self.call_as(call, Operation::SubscribeToTask(req)).await.map(frames)
    }

    /// The row of a task.
    pub(crate) async fn row(&self, id: &TaskId) -> TaskRow {
        let lookup = Lookup { ours: self.store.ids().parse_task(id), name: id.clone() };
        self.store.find(&scope(), lookup).await.unwrap().unwrap().row
    }

    /// Reads a task.
    pub(crate) async fn get(&self, id: &TaskId) -> Result<Task> {
        self.get_with(id, None).await
    }

    /// Reads a task with so much history.
    pub(crate) async fn get_with(&self, id: &TaskId, history_length: Option<u32>) -> Result<Task> {
        self.reply(Operation::GetTask(GetTask { id: id.clone(), history_length, tenant: None }))
            .await
            .map(task)
    }

    /// Ends a task.
    pub(crate) async fn cancel(&self, id: &TaskId) -> Result<Task> {
        let req = CancelTask { id: id.clone(), metadata: None, tenant: None };
        self.reply(Operation::CancelTask(req)).await.map(task)
    }

    /// Ends a task in the background.
    pub(crate) fn cancel_aside(&self, id: &TaskId) -> JoinHandle<Result<()>> {
        let engine = self.engine.clone();
        let operation = Operation::CancelTask(CancelTask { id: id.clone(), metadata: None, tenant: None });
        self.calls.spawn(async move { engine.call(Call::new(scope()), operation).await.map(drop) })
    }

    /// Lists tasks.
    pub(crate) async fn list(&self, req: ListTasks) -> Result<TaskPage> {
        match self.reply(Operation::ListTasks(req)).await? {
            Reply::Tasks(page) => Ok(page),
            other => panic!("{other:?} where a page was expected"),
        }
    }

    /// How many tasks are in a state.
    pub(crate) async fn count(&self, state: TaskState) -> u64 {
        self.list(ListTasks { status: Some(state), ..ListTasks::default() }).await.unwrap().total_size
    }

    /// Stops in good order, in the background.
    pub(crate) fn drain_aside(&self, grace: Duration) -> JoinHandle<()> {
        let engine = self.engine.clone();
        self.calls.spawn(async move { engine.drain(grace).await })
    }
}

/// The scope all calls of these tests share unless they say otherwise.
pub(crate) fn scope() -> Scope {
    Scope::anonymous("default", SCRIPTED)
}

/// A call of that scope in a dialect.
pub(crate) fn speaking(dialect: Dialect) -> Call {
    Call { dialect, ..Call::new(scope()) }
}

/// Waits, but not for ever.
pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes far too long")
}

/// Waits for something that goes on in the background.
pub(crate) async fn joined<T>(aside: JoinHandle<T>) -> T {
    within(aside).await.unwrap()
}

/// The one answer of a call, whether or not it was given before.
pub(crate) fn reply(answer: Answer) -> Reply {
    match answer {
        Answer::Reply(reply) => reply,
        Answer::Replayed(answer) => reply(*answer),
        Answer::Stream(_) => panic!("a stream where one answer was expected"),
    }
}

/// The frames of a call, whether or not it was made before.
pub(crate) fn frames(answer: Answer) -> Frames {
    match answer {
        Answer::Stream(stream) => Frames::new(stream),
        Answer::Replayed(answer) => frames(*answer),
        Answer::Reply(reply) => panic!("{reply:?} where a stream was expected"),
    }
}

/// The task a call was answered with.
pub(crate) fn task(reply: Reply) -> Task {
    match reply {
        Reply::SentTask(task) | Reply::Task(task) => task,
        other => panic!("{other:?} where a task was expected"),
    }
}

/// What a caller was refused with.
pub(crate) fn refusal<T>(result: Result<T>) -> protocol::Error {
    match result {
        Err(Error::Refused(error)) => error,
        Err(other) => panic!("{other:?} where a refusal was expected"),
        Ok(_) => panic!("a success where a refusal was expected"),
    }
}

/// The kind of refusal.
pub(crate) fn refused<T>(result: Result<T>) -> ErrorKind {
    refusal(result).kind
}

/// What was said in a task, as it shows it.
pub(crate) fn history(task: &Task) -> Vec<String> {
    task.history.iter().map(protocol::Message::text).collect()
}

/// What a task says about its state.
pub(crate) fn status_text(task: &Task) -> Option<String> {
    task.status.message.as_ref().map(protocol::Message::text)
}

/// The text of each artifact, by name.
pub(crate) fn artifacts(task: &Task) -> Vec<(String, String)> {
    let each = |artifact: &protocol::Artifact| (artifact.id.to_string(), frames::text(&artifact.parts));
    task.artifacts.iter().map(each).collect()
}

/// Keeps the paused time of a test where it is while threads outside the runtime work, until this is dropped.
///
/// Paused time runs ahead whenever every task waits, and a task that waits for the store would set it off. A
/// blocking job holds it; one that is given up lets time run, so that every timeout of the test strikes.
pub(crate) struct StandStill {
    _until: std::sync::mpsc::Sender<()>,
}

pub(crate) fn stand_still() -> StandStill {
    let (until, dropped) = std::sync::mpsc::channel();
    tokio::task::spawn_blocking(move || {
        let _ = dropped.recv_timeout(PATIENCE);
    });
    StandStill { _until: until }
}
