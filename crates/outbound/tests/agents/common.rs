//! An engine with agents to talk to, and what they say, one short line per event.

use std::{sync::Arc, time::Duration};

use a2ad_outbound::agents;
use engine::{
    Agent, AgentInfo, Agents, Answer, Call, Clock, Engine, ExecutionPolicy, Feed, Frame, Limits, Next,
    Outcome, RegisteredAgent, Scope, Turn, Updates,
};
use futures_util::{FutureExt as _, future::BoxFuture};
use protocol::{
    CancelTask, Content, Event, Message, Operation, Part, Reply, Role, SendMessage, Task, TaskId, dialect::v1,
};
use store::Sqlite;
use tempfile::TempDir;

/// How long anything may take before a test gives it up.
const PATIENCE: Duration = Duration::from_secs(20);

/// An engine that runs one agent.
pub(crate) struct House {
    engine: Engine,
    _folder: TempDir,
}

impl House {
    /// Runs the built-in agent of this name.
    pub(crate) fn of(name: &str) -> Self {
        Self::with(agents::info(name).unwrap(), agents::builtin(name).unwrap())
    }

    /// Runs the built-in agent of this name, whose tasks stay open when they are done.
    pub(crate) fn reopening(name: &str) -> Self {
        Self::with(agents::info(name).unwrap(), Arc::new(StaysOpen(agents::builtin(name).unwrap())))
    }

    /// Runs the built-in agent of this name, of which all clients want this skill.
    pub(crate) fn asked_for(name: &str, skill: &'static str) -> Self {
        Self::with(agents::info(name).unwrap(), Arc::new(Named(skill, agents::builtin(name).unwrap())))
    }

    /// Runs this agent.
    pub(crate) fn with(info: AgentInfo, agent: Arc<dyn Agent>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (feed, clock) = (Feed::default(), Clock::system());
        let options = store::Options { sync: false, ..store::Options::at(folder.path().join("a2ad.db")) };
        let store = Sqlite::open(&options, feed.clone(), &clock).unwrap();
        let agents = Agents::new([RegisteredAgent::new(AgentInfo { id: "agent".into(), ..info }, agent)]);
        let engine = Engine::start(Arc::new(store), feed, agents, clock, Limits::default());
        Self { engine, _folder: folder }
    }

    /// Says something in a task of its own.
    pub(crate) async fn say(&self, text: &str) -> Said {
        self.send(message(vec![Part::text(text)])).await
    }

    /// Says something more in a task.
    pub(crate) async fn more(&self, said: &Said, parts: Vec<Part>) -> Said {
        self.send(Message { task_id: said.task.clone(), ..message(parts) }).await
    }

    /// Says these texts in one task; gives what was seen of the last.
    pub(crate) async fn talk(&self, texts: &[&str]) -> Vec<String> {
        let mut said = Said { task: None, lines: Vec::new() };
        for text in texts {
            said = self.more(&said, vec![Part::text(*text)]).await;
        }
        said.lines
    }

    /// Sends a message and watches until the turn is over.
    pub(crate) async fn send(&self, message: Message) -> Said {
        let mut said = Said { task: message.task_id.clone(), lines: Vec::new() };
        let operation = Operation::SendStreamingMessage(SendMessage::new(message));
        let Answer::Stream(mut stream) = self.call(operation).await else { panic!("no stream") };
        while let Next::Frames(frames) = within(stream.next()).await.unwrap() {
            for frame in frames {
                match frame {
                    Frame::Snapshot { task, .. } => said.task = Some(task.id.clone()),
                    Frame::Entry { entry, .. } => said.lines.push(line(entry.event().unwrap())),
                }
            }
        }
        said
    }

    /// Sends a message and does not wait.
    pub(crate) async fn send_at_once(&self, message: Message) -> Task {
        let req = SendMessage { return_immediately: true, ..SendMessage::new(message) };
        self.task(Operation::SendMessage(req)).await
    }

    /// Sends a message; gives the task when it is settled.
    pub(crate) async fn settled(&self, message: Message) -> Task {
        self.task(Operation::SendMessage(SendMessage::new(message))).await
    }

    /// Asks for a skill by its id; gives the task when it is settled.
    pub(crate) async fn ask(&self, skill: &str, text: &str) -> Task {
        let message = message(vec![Part::text(text)]);
        let req = SendMessage { skill: Some(skill.into()), ..SendMessage::new(message) };
        self.task(Operation::SendMessage(req)).await
    }

    /// Cancels a task.
    pub(crate) async fn cancel(&self, id: &TaskId) -> Task {
        self.task(Operation::CancelTask(CancelTask { id: id.clone(), metadata: None, tenant: None })).await
    }

    async fn task(&self, operation: Operation) -> Task {
        match self.call(operation).await {
            Answer::Reply(Reply::SentTask(task) | Reply::Task(task)) => task,
            _ => panic!("no task"),
        }
    }

    async fn call(&self, operation: Operation) -> Answer {
        let call = Call::new(Scope::anonymous("default", "agent"));
        within(self.engine.call(call, operation)).await.unwrap()
    }
}

/// What a stream showed of one turn.
pub(crate) struct Said {
    /// The task, if there was one.
    pub(crate) task: Option<TaskId>,
    /// One line per event.
    pub(crate) lines: Vec<String>,
}

/// A message from a client.
pub(crate) fn message(parts: Vec<Part>) -> Message {
    Message::new("m", Role::User, parts)
}

async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes far too long")
}

fn line(event: &Event) -> String {
    match event {
        Event::Status(update) => {
            let state =
                v1::task::state_name(update.status.state).trim_start_matches("TASK_STATE_").to_lowercase();
            let said = update.status.message.as_ref().map(|message| format!(": {}", show(&message.parts)));
            format!("{state}{}", said.unwrap_or_default())
        }
        Event::Artifact(update) => {
            let append = if update.append { "+" } else { "" };
            let last = if update.last_chunk { "" } else { "…" };
            format!("artifact {}{append}: {}{last}", update.artifact.id, show(&update.artifact.parts))
        }
        Event::Message(message) => format!("message: {}", show(&message.parts)),
        Event::Task(_) => panic!("a task is no entry of a log"),
    }
}

pub(crate) fn show(parts: &[Part]) -> String {
    let show = |part: &Part| match &part.content {
        Content::Text(text) => text.clone(),
        Content::Raw(bytes) => {
            format!("{} bytes {}", bytes.len(), part.filename.as_deref().unwrap_or_default())
        }
        Content::Url(url) => url.clone(),
        Content::Data(json) => json.as_str().into(),
    };
    parts.iter().map(show).collect::<Vec<_>>().join(" | ")
}

/// An agent whose client has named a skill.
struct Named(&'static str, Arc<dyn Agent>);

impl Agent for Named {
    fn run(&self, turn: Turn, out: Updates) -> BoxFuture<'static, Outcome> {
        self.1.run(Turn { skill: Some(self.0.into()), ..turn }, out)
    }
}

/// An agent that asks for more when it is done, as if its task were opened again.
struct StaysOpen(Arc<dyn Agent>);

impl Agent for StaysOpen {
    fn run(&self, turn: Turn, out: Updates) -> BoxFuture<'static, Outcome> {
        let done = turn.reply_text("(done)");
        let outcome = self.0.run(turn, out);
        async move {
            match outcome.await {
                Outcome::Done { .. } => Outcome::NeedInput { message: done },
                other => other,
            }
        }
        .boxed()
    }

    fn policy(&self) -> ExecutionPolicy {
        self.0.policy()
    }
}
