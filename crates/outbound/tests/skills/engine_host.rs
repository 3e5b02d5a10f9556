//! An engine with one agent, calls of it, and its events as lines.

use std::{path::Path, sync::Arc, time::Duration};

use engine::{
    AgentInfo, Call, CallResponse, Catalog, Clock, Engine, Feed, Limits, RegisteredAgent, Scope, SkillSet,
};
use protocol::{
    CancelTask, Event, Message, Operation, Part, Reply, Role, SendMessage, Task, TaskId, dialect::v1,
};
use store::{Sqlite, SqliteOptions};

/// Timeout of every wait in these tests.
pub(crate) const TEST_TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) async fn with_timeout<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(TEST_TIMEOUT, future).await.expect("test timed out")
}

/// An engine with one agent, and a store in this folder.
#[derive(Clone)]
pub(crate) struct EngineHost(pub(crate) Engine);

impl EngineHost {
    pub(crate) fn start(folder: &Path, info: AgentInfo, skills: impl Into<SkillSet>) -> Self {
        let (feed, clock) = (Feed::default(), Clock::system());
        let options = SqliteOptions { sync: false, ..SqliteOptions::at(folder.join("a2ad.db")) };
        let store = Sqlite::open(&options, feed.clone(), &clock).unwrap();
        let agent = RegisteredAgent::new(AgentInfo { id: "agent".into(), ..info }, skills);
        let catalog = Catalog::new("agent", [agent]);
        Self(Engine::start(Arc::new(store), feed, catalog, clock, Limits::default()))
    }

    pub(crate) async fn call(&self, operation: Operation) -> CallResponse {
        let call = Call::new(Scope::anonymous("default", "agent"));
        with_timeout(self.0.call(call, operation)).await.unwrap()
    }

    /// The task in the reply.
    pub(crate) async fn task(&self, operation: Operation) -> Task {
        match self.call(operation).await {
            CallResponse::Reply(Reply::SentTask(task) | Reply::Task(task)) => task,
            _ => panic!("no task"),
        }
    }

    /// Sends a message without waiting for the outcome.
    pub(crate) async fn send_immediate(&self, message: Message) -> Task {
        let request = SendMessage { return_immediately: true, ..SendMessage::new(message) };
        self.task(Operation::SendMessage(request)).await
    }

    pub(crate) async fn cancel(&self, id: &TaskId) -> Task {
        self.task(Operation::CancelTask(CancelTask { id: id.clone(), metadata: None, tenant: None })).await
    }
}

/// A client message.
pub(crate) fn message(parts: Vec<Part>) -> Message {
    Message::new("m", Role::User, parts)
}

/// An event, whose parts `show` writes. A chunk that is not the last one of its artifact ends with `more`.
pub(crate) fn line(event: &Event, more: &str, show: fn(&[Part]) -> String) -> String {
    match event {
        Event::Status(update) => {
            let state =
                v1::task::state_name(update.status.state).trim_start_matches("TASK_STATE_").to_lowercase();
            let output = update.status.message.as_ref().map(|message| format!(": {}", show(&message.parts)));
            format!("{state}{}", output.unwrap_or_default())
        }
        Event::Artifact(update) => {
            let append = if update.append { "+" } else { "" };
            let last = if update.last_chunk { "" } else { more };
            format!("{}{append}: {}{last}", update.artifact.id, show(&update.artifact.parts))
        }
        Event::Message(message) => format!("message: {}", show(&message.parts)),
        Event::Task(_) => panic!("a log has no task entries"),
    }
}
