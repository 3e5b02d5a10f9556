//! The frame stream of a streaming call.

use std::{collections::VecDeque, future, sync::Arc};

use futures_util::future::BoxFuture;
use protocol::{ArtifactId, ErrorKind, Task, TaskId};

use crate::{
    error::{Error, Result},
    feed::{FeedEvent, Watcher},
    log::{Entry, Kind, Seq},
};

/// One frame of a stream.
pub enum Frame {
    /// A snapshot of the task.
    Snapshot {
        /// Sequence number of the last event it contains.
        seq: Seq,
        /// The folded task, complete or reduced to its status.
        task: Box<Task>,
        /// Ids of the artifacts that the client has or gets with this snapshot, in order of first appearance.
        /// A resumed stream has them only in dialects that identify artifacts by their index.
        artifacts: Vec<ArtifactId>,
    },
    /// One event of the log.
    Entry {
        /// Sequence number.
        seq: Seq,
        /// The log entry, shared between streams.
        entry: Arc<Entry>,
    },
}

/// The next item of a stream.
pub enum StreamItem {
    /// All frames that are ready; at least one.
    Frames(Vec<Frame>),
    /// The stream is complete.
    End,
    /// The server is shutting down: the client should subscribe again.
    Draining,
    /// The credential of the caller has expired: the client should subscribe again with a new one.
    Expired,
}

/// Why a stream ends before its task.
pub enum StreamEnd {
    /// The credential of the caller has expired.
    Expired,
    /// The caller may not have it any more, for this reason.
    Revoked(protocol::Error),
}

/// Which event ends a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// A terminal or interrupted state: the turn has ended.
    Settled,
    /// A terminal state: the task has ended.
    Terminal,
}

/// The frames of one task.
pub struct TaskStream {
    /// The initial snapshot; held back while the task's visibility is undecided.
    opening: Option<Frame>,
    decided: bool,
    ready: VecDeque<(Seq, Arc<Entry>)>,
    watcher: Option<Watcher>,
    until: Until,
    /// Events up to this number are always streamed, however many turns ended among them.
    show_through: Seq,
    finished: bool,
    /// Resolves when the stream has to end before its task.
    end: Option<BoxFuture<'static, StreamEnd>>,
}

impl TaskStream {
    pub(crate) fn new(seq: Seq, task: Task, until: Until, watcher: Option<Watcher>) -> Self {
        let artifacts = task.artifacts.iter().map(|artifact| artifact.id.clone()).collect();
        Self {
            opening: Some(Frame::Snapshot { seq, task: Box::new(task), artifacts }),
            decided: true,
            ready: VecDeque::new(),
            watcher,
            until,
            show_through: 0,
            finished: false,
            end: None,
        }
    }

    /// The stream does not end before the event with this number.
    pub(crate) fn through(mut self, seq: Seq) -> Self {
        self.show_through = seq;
        self
    }

    /// A stream of only these entries.
    pub(crate) fn of(entries: Vec<(Seq, Arc<Entry>)>, until: Until) -> Self {
        let ready = entries.into();
        Self {
            opening: None,
            decided: true,
            ready,
            watcher: None,
            until,
            show_through: 0,
            finished: false,
            end: None,
        }
    }

    /// Ends the stream when this resolves, which is dropped with the stream.
    #[must_use]
    pub fn ending_with(self, end: impl Future<Output = StreamEnd> + Send + 'static) -> Self {
        Self { end: Some(Box::pin(end)), ..self }
    }

    /// Sets the artifacts that the client has received already, for a snapshot that omits them.
    pub(crate) fn knowing(mut self, known: Vec<ArtifactId>) -> Self {
        if let Some(Frame::Snapshot { artifacts, .. }) = &mut self.opening {
            *artifacts = known;
        }
        self
    }

    /// Adds entries that follow the snapshot and are already committed.
    pub(crate) fn followed_by(mut self, entries: impl IntoIterator<Item = (Seq, Arc<Entry>)>) -> Self {
        self.ready.extend(entries);
        self
    }

    /// The task's visibility is undecided: the first frame waits for the first entry.
    pub(crate) fn undecided(mut self) -> Self {
        self.decided = false;
        self
    }

    /// The task that the stream begins with; `None` if it begins with an event.
    pub fn task(&self) -> Option<&TaskId> {
        match &self.opening {
            Some(Frame::Snapshot { task, .. }) => Some(&task.id),
            Some(Frame::Entry { .. }) | None => None,
        }
    }

    /// The same, to add to it.
    pub fn task_mut(&mut self) -> Option<&mut Task> {
        match &mut self.opening {
            Some(Frame::Snapshot { task, .. }) => Some(task),
            Some(Frame::Entry { .. }) | None => None,
        }
    }

    /// Sequence number of the first frame, if it is already known.
    pub fn first_seq(&self) -> Option<Seq> {
        match &self.opening {
            Some(Frame::Snapshot { seq, .. } | Frame::Entry { seq, .. }) => Some(*seq),
            None => self.ready.front().map(|(seq, _)| *seq),
        }
    }

    /// Waits for the next item. Cancel safe: no frame is lost.
    pub async fn next(&mut self) -> Result<StreamItem> {
        loop {
            let frames = self.take_ready();
            if !frames.is_empty() {
                return Ok(StreamItem::Frames(frames));
            }
            let Some(watcher) = self.watcher.as_mut().filter(|_| !self.finished) else {
                return Ok(StreamItem::End);
            };
            let event = tokio::select! {
                // First, because a busy task always has another event.
                biased;
                end = ended(&mut self.end) => {
                    (self.end, self.finished) = (None, true);
                    return match end {
                        StreamEnd::Expired => Ok(StreamItem::Expired),
                        StreamEnd::Revoked(error) => Err(Error::Refused(error)),
                    };
                }
                event = watcher.follow() => event?,
            };
            match event {
                FeedEvent::Entries(entries) => self.ready.extend(entries),
                FeedEvent::Draining => return Ok(StreamItem::Draining),
                FeedEvent::Purged => return Err(purged_error()),
            }
        }
    }

    fn take_ready(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        if !self.decided {
            match self.ready.front().map(|(_, entry)| entry.kind()) {
                None => return frames,
                Some(Kind::Message) => self.opening = None,
                Some(_) => {}
            }
            self.decided = true;
        }
        frames.extend(self.opening.take());
        while let Some((seq, entry)) = self.ready.pop_front() {
            if self.finished {
                break;
            }
            self.finished = seq >= self.show_through && ends(self.until, entry.kind());
            frames.push(Frame::Entry { seq, entry });
        }
        frames
    }
}

async fn ended(end: &mut Option<BoxFuture<'static, StreamEnd>>) -> StreamEnd {
    match end {
        Some(end) => end.await,
        None => future::pending().await,
    }
}

/// The error for a task that was purged while it was being read.
pub(crate) fn purged_error() -> Error {
    Error::refused(ErrorKind::TaskNotFound, "task expired and was deleted")
}

/// Whether a stream ends with an event of this kind. A snapshot never ends a stream.
fn ends(until: Until, kind: Kind) -> bool {
    match kind {
        Kind::Status(state) => state.is_terminal() || until == Until::Settled && state.is_interrupted(),
        Kind::Artifact => false,
        Kind::Message => true,
    }
}
