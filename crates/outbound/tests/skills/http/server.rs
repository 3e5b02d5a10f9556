//! An engine with one agent, whose only skill is called over HTTP.

use std::sync::Arc;

use a2ad_outbound::{
    backends::http::{HttpConfig, HttpFunction},
    dial::Dialer,
    skill::BackendSkill,
};
use engine::{AgentInfo, CallResponse, Frame, OnCrash, SkillSet, StreamItem, TaskStream};
use protocol::{Content, Json, Operation, Part, SendMessage, Task, TaskId};
use tempfile::TempDir;

use crate::engine_host::{EngineHost, line, message, with_timeout};

/// An engine with one skill.
pub(crate) struct TestServer {
    engine: EngineHost,
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
        let engine = EngineHost::start(folder.path(), info(), SkillSet::separate([skill.into()]));
        Self { engine, _folder: folder }
    }

    /// Calls the skill with these arguments.
    pub(crate) async fn call(&self, arguments: &str) -> Events {
        let parts = vec![Part::data(Json::parse(arguments).unwrap())];
        let message = SendMessage::new(message(parts));
        match self.engine.call(Operation::SendStreamingMessage(message)).await {
            CallResponse::Stream(stream) => Events { stream, task: None, unread: Vec::new() },
            _ => panic!("no stream"),
        }
    }

    pub(crate) async fn cancel(&self, id: &TaskId) -> Task {
        self.engine.cancel(id).await
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
                    Frame::Entry { entry, .. } => self.unread.push(line(entry.event().unwrap(), "", show)),
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
