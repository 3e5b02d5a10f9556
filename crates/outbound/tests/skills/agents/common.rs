//! Test harness: an engine with one agent, and the events of a turn as short lines, one per event.

use std::sync::Arc;

use a2ad_outbound::agents;
use engine::{
    Agent, AgentInfo, AgentResult, Call, CallResponse, DynAgent, ExecutionPolicy, Frame, Outcome, Scope,
    Skill, SkillSet, StreamItem, Turn,
};
use protocol::{Content, Event, Message, Operation, Part, Reply, SendMessage, Task, TaskId};
use tempfile::TempDir;

pub(super) use crate::engine_host::message;
use crate::engine_host::{EngineHost, with_timeout};

/// An engine with one agent.
pub(crate) struct TestServer {
    engine: EngineHost,
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
        let engine = EngineHost::start(folder.path(), info, skills);
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
        let CallResponse::Stream(mut stream) = self.engine.call(operation).await else { panic!("no stream") };
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
        self.engine.send_immediate(message).await
    }

    /// Sends a message and waits for the settled task.
    pub(crate) async fn send_and_wait(&self, message: Message) -> Task {
        self.engine.task(Operation::SendMessage(SendMessage::new(message))).await
    }

    /// Sends a message as another caller and waits for the settled task.
    pub(crate) async fn send_as(&self, caller: Scope, message: Message) -> Task {
        let operation = Operation::SendMessage(SendMessage::new(message));
        match with_timeout(self.engine.0.call(Call::new(caller), operation)).await.unwrap() {
            CallResponse::Reply(Reply::SentTask(task)) => task,
            _ => panic!("no task"),
        }
    }

    /// Requests a skill and waits for the settled task.
    pub(crate) async fn send_for_skill(&self, skill: &str, text: &str) -> Task {
        let message = message(vec![Part::text(text)]);
        let req = SendMessage { skill: Some(skill.into()), ..SendMessage::new(message) };
        self.engine.task(Operation::SendMessage(req)).await
    }

    pub(crate) async fn cancel(&self, id: &TaskId) -> Task {
        self.engine.cancel(id).await
    }
}

/// The events of one turn.
pub(crate) struct TurnOutput {
    /// The task, if it is visible.
    pub(crate) task: Option<TaskId>,
    /// One line per event.
    pub(crate) lines: Vec<String>,
}

fn line(event: &Event) -> String {
    let line = crate::engine_host::line(event, "…", show);
    if matches!(event, Event::Artifact(_)) { format!("artifact {line}") } else { line }
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
