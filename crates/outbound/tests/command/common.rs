//! Test harness: an engine with one skill that runs a command, and the events of a turn as short lines.

use std::{path::Path, sync::Arc, time::Duration};

use a2ad_outbound::{
    agents,
    backends::command::{CommandTool, Protocol},
    process::Launcher,
    skill::BackendSkill,
};
use engine::{
    AgentInfo, Call, CallResponse, Catalog, Clock, Engine, Feed, Frame, Limits, RegisteredAgent, STOP_GRACE,
    Scope, SkillSet, StreamItem,
};
use protocol::{
    CancelTask, Content, Event, Json, Message, Operation, Part, Reply, Role, SendMessage, SubscribeToTask,
    Task, TaskId, dialect::v1,
};
use store::{Sqlite, SqliteOptions};

/// Timeout of every wait in these tests.
const TEST_TIMEOUT: Duration = Duration::from_secs(20);

/// A command that is run by the shell of the system.
pub(crate) fn shell(script: &str) -> CommandTool {
    CommandTool::new(Launcher::default(), ["sh", "-c", script].map(Into::into).to_vec())
}

/// Like [`shell`], with the JSON lines protocol.
pub(crate) fn jsonl(script: &str) -> CommandTool {
    CommandTool { protocol: Protocol::Jsonl, ..shell(script) }
}

/// An engine whose only skill `tool` runs a command.
pub(crate) struct TestServer(Engine);

impl TestServer {
    /// With a store in this folder.
    pub(crate) fn start(folder: &Path, tool: CommandTool) -> Self {
        let skill = BackendSkill::new("tool", "A command.".into(), tool.protocol.on_crash(), Arc::new(tool));
        let (feed, clock) = (Feed::default(), Clock::system());
        let options = SqliteOptions { sync: false, ..SqliteOptions::at(folder.join("a2ad.db")) };
        let store = Sqlite::open(&options, feed.clone(), &clock).unwrap();
        let info = AgentInfo { id: "agent".into(), ..agents::builtin("echo").unwrap().info().clone() };
        let agent = RegisteredAgent::new(info, SkillSet::separate([skill.into()]));
        let catalog = Catalog::new("agent", [agent]);
        Self(Engine::start(Arc::new(store), feed, catalog, clock, Limits::default()))
    }

    /// Sends a message and collects the events until the turn ends.
    pub(crate) async fn send(&self, message: Message) -> Output {
        self.send_and_watch(message, |_, _| ()).await
    }

    /// Like [`send`](Self::send), and shows each event when it arrives.
    pub(crate) async fn send_and_watch(
        &self,
        message: Message,
        show: impl FnMut(&Option<TaskId>, &str),
    ) -> Output {
        let task = message.task_id.clone();
        self.stream(task, Operation::SendStreamingMessage(SendMessage::new(message)), show).await
    }

    /// Collects the events of a running task until its turn ends.
    pub(crate) async fn subscribe(&self, id: TaskId) -> Output {
        let operation = Operation::SubscribeToTask(SubscribeToTask { id: id.clone(), tenant: None });
        self.stream(Some(id), operation, |_, _| ()).await
    }

    async fn stream(
        &self,
        task: Option<TaskId>,
        operation: Operation,
        mut show: impl FnMut(&Option<TaskId>, &str),
    ) -> Output {
        let mut output = Output { task, lines: Vec::new() };
        let CallResponse::Stream(mut stream) = self.call(operation).await else { panic!("no stream") };
        while let StreamItem::Frames(frames) = with_timeout(stream.next()).await.unwrap() {
            for frame in frames {
                match frame {
                    Frame::Snapshot { task, .. } => output.task = Some(task.id.clone()),
                    Frame::Entry { entry, .. } => {
                        let line = line(entry.event().unwrap());
                        show(&output.task, &line);
                        // It depends on time whether the beginning of the work is shown.
                        if line != "working" {
                            output.lines.push(line);
                        }
                    }
                }
            }
        }
        output
    }

    /// The result of a task that a text starts: the last events of its turn.
    pub(crate) async fn result(&self, text: &str) -> Vec<String> {
        self.send(message(vec![Part::text(text)])).await.lines
    }

    pub(crate) async fn send_immediate(&self, message: Message) -> Task {
        let request = SendMessage { return_immediately: true, ..SendMessage::new(message) };
        self.task(Operation::SendMessage(request)).await
    }

    pub(crate) async fn get(&self, id: &TaskId) -> Task {
        self.task(Operation::GetTask(id.clone().into())).await
    }

    pub(crate) async fn cancel(&self, id: &TaskId) -> Task {
        self.task(Operation::CancelTask(CancelTask { id: id.clone(), metadata: None, tenant: None })).await
    }

    /// Ends all runs; they may take the time that an agent has to stop.
    pub(crate) async fn shut_down(&self) {
        with_timeout(self.0.drain(STOP_GRACE)).await;
    }

    async fn task(&self, operation: Operation) -> Task {
        match self.call(operation).await {
            CallResponse::Reply(Reply::SentTask(task) | Reply::Task(task)) => task,
            _ => panic!("no task"),
        }
    }

    async fn call(&self, operation: Operation) -> CallResponse {
        let call = Call::new(Scope::anonymous("default", "agent"));
        with_timeout(self.0.call(call, operation)).await.unwrap()
    }
}

/// Runs a command once with this text; the events of its turn.
pub(crate) async fn run(tool: CommandTool, text: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    TestServer::start(folder.path(), tool).result(text).await
}

/// The text of a result, in however many chunks it came.
pub(crate) fn text_of(lines: &[String]) -> String {
    let chunk = |line: &String| {
        let line = line.strip_prefix("tool-result")?.trim_start_matches('+');
        Some(line.strip_prefix(": ")?.trim_end_matches('…').to_owned())
    };
    lines.iter().filter_map(chunk).collect()
}

/// The events of one turn.
pub(crate) struct Output {
    pub(crate) task: Option<TaskId>,
    /// One line per event.
    pub(crate) lines: Vec<String>,
}

/// A client message.
pub(crate) fn message(parts: Vec<Part>) -> Message {
    Message::new("m", Role::User, parts)
}

/// A client message with one data part.
pub(crate) fn data(json: &str) -> Message {
    message(vec![Part::data(Json::parse(json).unwrap())])
}

/// The client's answer to a question.
pub(crate) fn answer(output: &Output, text: &str) -> Message {
    Message { task_id: output.task.clone(), ..Message::new("m2", Role::User, vec![Part::text(text)]) }
}

pub(crate) async fn with_timeout<F: Future>(future: F) -> F::Output {
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
            format!("{}{append}: {}{last}", update.artifact.id, show(&update.artifact.parts))
        }
        Event::Message(message) => format!("message: {}", show(&message.parts)),
        Event::Task(_) => panic!("a log has no task entries"),
    }
}

/// Parts as text; data is marked with its type.
fn show(parts: &[Part]) -> String {
    let show = |part: &Part| match &part.content {
        Content::Text(text) => text.clone(),
        Content::Data(json) => format!("json {}", json.as_str()),
        Content::Raw(_) | Content::Url(_) => panic!("a command has no files"),
    };
    parts.iter().map(show).collect::<Vec<_>>().join(" | ")
}
