//! An engine with one agent, whose only skill is called over HTTP.

use std::sync::Arc;

use a2ad_outbound::{
    backends::http::{HttpConfig, HttpFunction},
    dial::Dialer,
    skill::BackendSkill,
};
use engine::{
    AgentInfo, Call, CallResponse, Catalog, Clock, Engine, Feed, Frame, Limits, OnCrash, RegisteredAgent,
    Scope, SkillSet, StreamItem, TaskStream,
};
use protocol::{
    CancelTask, Content, Event, Json, Message, Operation, Part, Reply, Role, SendMessage, Task, TaskId,
    dialect::v1,
};
use store::Sqlite;
use tempfile::TempDir;

use crate::function::with_timeout;

/// An engine with one skill.
pub(crate) struct TestServer {
    engine: Engine,
    _folder: TempDir,
}

impl TestServer {
    /// With the HTTP function `fx`.
    pub(crate) fn new(config: &HttpConfig) -> Self {
        let function = Arc::new(HttpFunction::new(config, Dialer::new()).unwrap());
        Self::with(BackendSkill::new("fx", String::new(), OnCrash::Retry, function))
    }

    pub(crate) fn with(skill: BackendSkill) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (feed, clock) = (Feed::default(), Clock::system());
        let options =
            store::SqliteOptions { sync: false, ..store::SqliteOptions::at(folder.path().join("a2ad.db")) };
        let store = Sqlite::open(&options, feed.clone(), &clock).unwrap();
        let info = AgentInfo { id: "agent".into(), ..info() };
        let registered = RegisteredAgent::new(info, SkillSet::separate([skill.into()]));
        let catalog = Catalog::new("agent", [registered]);
        let engine = Engine::start(Arc::new(store), feed, catalog, clock, Limits::default());
        Self { engine, _folder: folder }
    }

    /// Calls the skill with these arguments.
    pub(crate) async fn call(&self, arguments: &str) -> Events {
        let parts = vec![Part::data(Json::parse(arguments).unwrap())];
        let message = SendMessage::new(Message::new("m", Role::User, parts));
        match self.run(Operation::SendStreamingMessage(message)).await {
            CallResponse::Stream(stream) => Events { stream, task: None, unread: Vec::new() },
            _ => panic!("no stream"),
        }
    }

    pub(crate) async fn cancel(&self, id: &TaskId) -> Task {
        let cancel = CancelTask { id: id.clone(), metadata: None, tenant: None };
        match self.run(Operation::CancelTask(cancel)).await {
            CallResponse::Reply(Reply::Task(task)) => task,
            _ => panic!("no task"),
        }
    }

    async fn run(&self, operation: Operation) -> CallResponse {
        let call = Call::new(Scope::anonymous("default", "agent"));
        with_timeout(self.engine.call(call, operation)).await.unwrap()
    }
}

/// The events of one call, in order.
pub(crate) struct Events {
    stream: TaskStream,
    /// The task, once it is visible.
    pub(crate) task: Option<TaskId>,
    unread: Vec<String>,
}

impl Events {
    /// The next event as a line; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<String> {
        while self.unread.is_empty() {
            let StreamItem::Frames(frames) = with_timeout(self.stream.next()).await.unwrap() else {
                return None;
            };
            for frame in frames {
                match frame {
                    Frame::Snapshot { task, .. } => self.task = Some(task.id.clone()),
                    Frame::Entry { entry, .. } => self.unread.push(line(entry.event().unwrap())),
                }
            }
        }
        Some(self.unread.remove(0))
    }

    /// All events that are left.
    pub(crate) async fn rest(&mut self) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(line) = self.next().await {
            lines.push(line);
        }
        lines
    }
}

fn info() -> AgentInfo {
    AgentInfo {
        id: String::new(),
        name: "agent".into(),
        description: String::new(),
        version: "1".into(),
        input_modes: Vec::new(),
        output_modes: Vec::new(),
    }
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
            format!("{}{append}: {}", update.artifact.id, show(&update.artifact.parts))
        }
        Event::Message(message) => format!("message: {}", show(&message.parts)),
        Event::Task(_) => panic!("a log has no task entries"),
    }
}

fn show(parts: &[Part]) -> String {
    let show = |part: &Part| {
        let content = match &part.content {
            Content::Text(text) => text.clone(),
            Content::Raw(bytes) => format!("{} bytes {:?}", bytes.len(), part.filename),
            Content::Url(url) => url.clone(),
            Content::Data(json) => format!("json {}", json.as_str()),
        };
        part.media_type.as_ref().map(|kind| format!("[{kind}] {content}")).unwrap_or(content)
    };
    parts.iter().map(show).collect::<Vec<_>>().join(" | ")
}
