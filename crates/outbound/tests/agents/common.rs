//! Test harness: an engine with one agent, and the events of a turn as short lines, one per event.

use std::{sync::Arc, time::Duration};

use a2ad_outbound::agents;
use engine::{
    Agent, AgentInfo, AgentResult, Call, CallResponse, Catalog, Clock, DynAgent, Engine, ExecutionPolicy,
    Feed, Frame, Limits, Outcome, RegisteredAgent, Scope, Skill, SkillSet, StreamItem, Turn,
};
use protocol::{
    CancelTask, Content, Event, Message, Operation, Part, Reply, Role, SendMessage, Task, TaskId, dialect::v1,
};
use store::Sqlite;
use tempfile::TempDir;

/// Timeout of every wait in these tests.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// An engine with one agent.
pub(crate) struct TestServer {
    engine: Engine,
    /// What every message names.
    skill: Option<&'static str>,
    _folder: TempDir,
}

impl TestServer {
    /// With a built-in agent.
    pub(crate) fn builtin(name: &str) -> Self {
        let agent = agents::builtin(name).unwrap();
        Self::with(agent.info().clone(), agent.skills().clone())
    }

    /// With a built-in agent whose tasks stay open when they are done.
    pub(crate) fn kept_open(name: &str) -> Self {
        let agent = agents::builtin(name).unwrap();
        let kept_open = |skill: &Arc<Skill>| Skill {
            work: DynAgent::new(KeepsTaskOpen(skill.work.clone())),
            ..Skill::clone(skill)
        };
        Self::with(agent.info().clone(), SkillSet::separate(agent.skills().iter().map(kept_open)))
    }

    /// With a built-in agent; every message names this skill.
    pub(crate) fn with_skill(name: &str, skill: &'static str) -> Self {
        Self { skill: Some(skill), ..Self::builtin(name) }
    }

    /// With any agent.
    pub(crate) fn with(info: AgentInfo, skills: impl Into<SkillSet>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (feed, clock) = (Feed::default(), Clock::system());
        let options =
            store::SqliteOptions { sync: false, ..store::SqliteOptions::at(folder.path().join("a2ad.db")) };
        let store = Sqlite::open(&options, feed.clone(), &clock).unwrap();
        let registered = RegisteredAgent::new(AgentInfo { id: "agent".into(), ..info }, skills);
        let catalog = Catalog::new("agent", [registered]);
        let engine = Engine::start(Arc::new(store), feed, catalog, clock, Limits::default());
        Self { engine, skill: None, _folder: folder }
    }

    /// Sends a text in a new task.
    pub(crate) async fn send_text(&self, text: &str) -> TurnOutput {
        self.send(message(vec![Part::text(text)])).await
    }

    /// Sends a follow-up message.
    pub(crate) async fn follow_up(&self, output: &TurnOutput, parts: Vec<Part>) -> TurnOutput {
        self.send(Message { task_id: output.task.clone(), ..message(parts) }).await
    }

    /// Sends these texts in one task; returns the events of the last turn.
    pub(crate) async fn send_all(&self, texts: &[&str]) -> Vec<String> {
        let mut output = TurnOutput { task: None, lines: Vec::new() };
        for text in texts {
            output = self.follow_up(&output, vec![Part::text(*text)]).await;
        }
        output.lines
    }

    /// Sends a message and streams until the turn ends.
    pub(crate) async fn send(&self, message: Message) -> TurnOutput {
        let mut output = TurnOutput { task: message.task_id.clone(), lines: Vec::new() };
        let request = SendMessage { skill: self.skill.map(Into::into), ..SendMessage::new(message) };
        let operation = Operation::SendStreamingMessage(request);
        let CallResponse::Stream(mut stream) = self.call(operation).await else { panic!("no stream") };
        while let StreamItem::Frames(frames) = with_timeout(stream.next()).await.unwrap() {
            for frame in frames {
                match frame {
                    Frame::Snapshot { task, .. } => output.task = Some(task.id.clone()),
                    Frame::Entry { entry, .. } => output.lines.push(line(entry.event().unwrap())),
                }
            }
        }
        output
    }

    /// Sends a message without waiting for the outcome.
    pub(crate) async fn send_immediate(&self, message: Message) -> Task {
        let req = SendMessage { return_immediately: true, ..SendMessage::new(message) };
        self.task(Operation::SendMessage(req)).await
    }

    /// Sends a message and waits for the settled task.
    pub(crate) async fn send_and_wait(&self, message: Message) -> Task {
        self.task(Operation::SendMessage(SendMessage::new(message))).await
    }

    /// Sends a message as another caller and waits for the settled task.
    pub(crate) async fn send_as(&self, caller: Scope, message: Message) -> Task {
        let operation = Operation::SendMessage(SendMessage::new(message));
        match with_timeout(self.engine.call(Call::new(caller), operation)).await.unwrap() {
            CallResponse::Reply(Reply::SentTask(task)) => task,
            _ => panic!("no task"),
        }
    }

    /// Requests a skill and waits for the settled task.
    pub(crate) async fn send_for_skill(&self, skill: &str, text: &str) -> Task {
        let message = message(vec![Part::text(text)]);
        let req = SendMessage { skill: Some(skill.into()), ..SendMessage::new(message) };
        self.task(Operation::SendMessage(req)).await
    }

    pub(crate) async fn cancel(&self, id: &TaskId) -> Task {
        self.task(Operation::CancelTask(CancelTask { id: id.clone(), metadata: None, tenant: None })).await
    }

    async fn task(&self, operation: Operation) -> Task {
        match self.call(operation).await {
            CallResponse::Reply(Reply::SentTask(task) | Reply::Task(task)) => task,
            _ => panic!("no task"),
        }
    }

    async fn call(&self, operation: Operation) -> CallResponse {
        let call = Call::new(Scope::anonymous("default", "agent"));
        with_timeout(self.engine.call(call, operation)).await.unwrap()
    }
}

/// The events of one turn.
pub(crate) struct TurnOutput {
    /// The task, if it is visible.
    pub(crate) task: Option<TaskId>,
    /// One line per event.
    pub(crate) lines: Vec<String>,
}

/// A client message.
pub(crate) fn message(parts: Vec<Part>) -> Message {
    Message::new("m", Role::User, parts)
}

async fn with_timeout<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(TEST_TIMEOUT, future).await.expect("test timed out")
}

fn line(event: &Event) -> String {
    match event {
        Event::Status(update) => {
            let state =
                v1::task::state_name(update.status.state).trim_start_matches("TASK_STATE_").to_lowercase();
            let output = update.status.message.as_ref().map(|message| format!(": {}", show(&message.parts)));
            format!("{state}{}", output.unwrap_or_default())
        }
        Event::Artifact(update) => {
            let append = if update.append { "+" } else { "" };
            let last = if update.last_chunk { "" } else { "…" };
            format!("artifact {}{append}: {}{last}", update.artifact.id, show(&update.artifact.parts))
        }
        Event::Message(message) => format!("message: {}", show(&message.parts)),
        Event::Task(_) => panic!("a log has no task entries"),
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

/// Wraps an agent: asks for input instead of completing, as if its task were reopened. The artifacts of the
/// outcome are parts of the question.
struct KeepsTaskOpen(DynAgent);

impl Agent for KeepsTaskOpen {
    async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
        Ok(match self.0.run(turn).await? {
            Outcome::Done { artifacts, .. } => {
                let results = artifacts.into_iter().flat_map(|artifact| artifact.parts);
                Outcome::ask([Part::text("(done)")].into_iter().chain(results).collect::<Vec<_>>())
            }
            other => other,
        })
    }

    fn policy(&self) -> ExecutionPolicy {
        self.0.policy()
    }
}
