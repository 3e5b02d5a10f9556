//! The frames of a stream as short lines, one per frame.

use std::collections::VecDeque;

use a2ad_engine::{Frame, StreamItem, TaskStream};
use futures_util::FutureExt as _;
use protocol::{Content, Event, Message, Part, TaskState, dialect::v1};

/// A stream, read line by line: `3 working: progress`, `4 artifact a: text`, `1 task submitted`, …
pub(crate) struct Frames {
    stream: TaskStream,
    ready: VecDeque<String>,
    /// Artifact ids of the last snapshot.
    artifact_ids: Vec<String>,
}

/// How a stream ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The stream is complete.
    End,
    /// The server is shutting down.
    Draining,
}

impl Frames {
    pub(super) fn new(stream: TaskStream) -> Self {
        Self { stream, ready: VecDeque::new(), artifact_ids: Vec::new() }
    }

    pub(crate) async fn next(&mut self) -> String {
        match super::with_timeout(self.pull()).await {
            Ok(line) => line,
            Err(ending) => panic!("{ending:?} where a frame was expected"),
        }
    }

    /// Artifact ids of the last snapshot, also when it omits the artifacts.
    pub(crate) fn artifact_ids(&self) -> Vec<&str> {
        self.artifact_ids.iter().map(String::as_str).collect()
    }

    /// All remaining lines, and how the stream ended.
    pub(crate) async fn rest(&mut self) -> (Vec<String>, Ending) {
        let mut lines = Vec::new();
        loop {
            match super::with_timeout(self.pull()).await {
                Ok(line) => lines.push(line),
                Err(ending) => return (lines, ending),
            }
        }
    }

    /// All remaining lines; the stream must end by itself.
    pub(crate) async fn lines(&mut self) -> Vec<String> {
        let (lines, ending) = self.rest().await;
        assert_eq!(ending, Ending::End);
        lines
    }

    /// Whether no frame is ready.
    pub(crate) fn is_idle(&mut self) -> bool {
        match self.pull().now_or_never() {
            None => true,
            Some(Ok(line)) => {
                self.ready.push_front(line);
                false
            }
            Some(Err(_)) => false,
        }
    }

    /// Cancel safe.
    async fn pull(&mut self) -> Result<String, Ending> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                return Ok(line);
            }
            match self.stream.next().await.unwrap() {
                StreamItem::Frames(frames) => {
                    for frame in &frames {
                        if let Frame::Snapshot { artifacts, .. } = frame {
                            self.artifact_ids = artifacts.iter().map(ToString::to_string).collect();
                        }
                        self.ready.push_back(line(frame));
                    }
                }
                StreamItem::End => return Err(Ending::End),
                StreamItem::Draining => return Err(Ending::Draining),
                StreamItem::Expired => panic!("no credential expires here"),
            }
        }
    }
}

fn line(frame: &Frame) -> String {
    match frame {
        Frame::Snapshot { seq, task, .. } => {
            let metadata = task.metadata.as_ref().map_or("", |json| json.as_str());
            let queued =
                metadata.split_once(r#""a2ad":{"queued":"#).and_then(|split| split.1.split_once('}'));
            let queued = queued.map_or(String::new(), |(place, _)| format!(" queued {place}"));
            let more = if metadata.contains(r#""gap":true"#) {
                " with a gap"
            } else if task.history.is_empty() && task.artifacts.is_empty() {
                " without history"
            } else {
                ""
            };
            format!("{seq} task {}{more}{queued}", state(task.status.state))
        }
        Frame::Entry { seq, entry } => format!("{seq} {}", event(entry.event().unwrap())),
    }
}

fn event(event: &Event) -> String {
    match event {
        Event::Status(update) => {
            format!("{}{}", state(update.status.state), message_suffix(update.status.message.as_ref()))
        }
        Event::Artifact(update) => {
            let more = if update.append { "+" } else { "" };
            format!("artifact {}{more}: {}", update.artifact.id, text(&update.artifact.parts))
        }
        Event::Message(message) => format!("message: {}", message.text()),
        Event::Task(_) => panic!("a log has no task entries"),
    }
}

fn message_suffix(message: Option<&Message>) -> String {
    message.map_or_else(String::new, |message| format!(": {}", message.text()))
}

fn state(state: TaskState) -> String {
    v1::task::state_name(state).trim_start_matches("TASK_STATE_").to_lowercase()
}

/// The text of all parts.
pub(super) fn text(parts: &[Part]) -> String {
    let texts = parts.iter().filter_map(|part| match &part.content {
        Content::Text(text) => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}
