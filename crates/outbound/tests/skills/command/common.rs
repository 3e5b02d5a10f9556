//! Test harness: an engine with one skill that runs a command, and the events of a turn as short lines.

use std::{path::Path, sync::Arc};

use a2ad_outbound::{
    agents,
    backends::command::{CommandTool, Protocol},
    process::Launcher,
    skill::BackendSkill,
};
use engine::{CallResponse, Frame, STOP_GRACE, SkillSet, StreamItem};
use protocol::{Content, Json, Message, Operation, Part, Role, SendMessage, SubscribeToTask, Task, TaskId};

use crate::engine_host::{EngineHost, line};

pub(super) use crate::engine_host::{message, with_timeout};

/// A command that is run by the shell of the system.
pub(crate) fn shell(script: &str) -> CommandTool {
    CommandTool::new(Launcher::default(), ["sh", "-c", script].map(Into::into).to_vec())
}

/// Like [`shell`], with the JSON lines protocol.
pub(crate) fn jsonl(script: &str) -> CommandTool {
    CommandTool { protocol: Protocol::Jsonl, ..shell(script) }
}

/// An engine whose only skill `tool` runs a command.
pub(crate) struct TestServer(EngineHost);

impl TestServer {
    /// With a store in this folder.
    pub(crate) fn start(folder: &Path, tool: CommandTool) -> Self {
        let skill = BackendSkill::new("tool", "A command.".into(), tool.protocol.on_crash(), Arc::new(tool));
        let info = agents::builtin("echo").unwrap().info().clone();
        Self(EngineHost::start(folder, info, SkillSet::separate([skill.into()])))
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
        let CallResponse::Stream(mut stream) = self.0.call(operation).await else { panic!("no stream") };
        while let StreamItem::Frames(frames) = with_timeout(stream.next()).await.unwrap() {
            for frame in frames {
                match frame {
                    Frame::Snapshot { task, .. } => output.task = Some(task.id.clone()),
                    Frame::Entry { entry, .. } => {
                        let line = line(entry.event().unwrap(), "…", show_parts);
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
        self.0.send_immediate(message).await
    }

    pub(crate) async fn get(&self, id: &TaskId) -> Task {
        self.0.task(Operation::GetTask(id.clone().into())).await
    }

    pub(crate) async fn cancel(&self, id: &TaskId) -> Task {
        self.0.cancel(id).await
    }

    /// Ends all runs; they may take the time that an agent has to stop.
    pub(crate) async fn shut_down(&self) {
        with_timeout(self.0.0.drain(STOP_GRACE)).await;
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

/// A client message with one data part.
pub(crate) fn data(json: &str) -> Message {
    message(vec![Part::data(Json::parse(json).unwrap())])
}

/// The client's answer to a question.
pub(crate) fn answer(output: &Output, text: &str) -> Message {
    Message { task_id: output.task.clone(), ..Message::new("m2", Role::User, vec![Part::text(text)]) }
}

/// Parts as text; data is marked with its type.
fn show_parts(parts: &[Part]) -> String {
    let show = |part: &Part| match &part.content {
        Content::Text(text) => text.clone(),
        Content::Data(json) => format!("json {}", json.as_str()),
        Content::Raw(_) | Content::Url(_) => panic!("a command has no files"),
    };
    parts.iter().map(show).collect::<Vec<_>>().join(" | ")
}
