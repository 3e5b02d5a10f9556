//! What a streaming call gets: frames as they come, with their numbers.

use std::{collections::VecDeque, sync::Arc};

use protocol::{ArtifactId, ErrorKind, Task, TaskStatus};

use crate::{
    error::{Error, Result},
    feed::{News, Watcher},
    log::{Entry, Kind, Seq},
};

/// One frame of a stream.
pub enum Frame {
    /// The task as of the event of this number.
    Snapshot {
        /// The number of the last event it holds.
        seq: Seq,
        /// The task.
        task: Box<Task>,
        /// Its artifacts in the order in which they first appeared, also where the task is shown without them.
        artifacts: Vec<ArtifactId>,
    },
    /// One event.
    Entry {
        /// Its number.
        seq: Seq,
        /// The event.
        entry: Arc<Entry>,
    },
}

/// What comes next on a stream.
pub enum Next {
    /// At least one frame, all that are ready.
    Frames(Vec<Frame>),
    /// Nothing more: the stream has said everything.
    End,
    /// The server drains: the client should subscribe again.
    Cut,
}

/// Which event is a stream's last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// Terminal or interrupted: the turn that was asked for is over.
    Settled,
    /// Terminal: the task is over.
    Terminal,
}

/// Frames of one task.
pub struct TaskStream {
    /// The snapshot the stream begins with; held back while it is not decided whether there is a task.
    opening: Option<Frame>,
    decided: bool,
    ready: VecDeque<(Seq, Arc<Entry>)>,
    watcher: Option<Watcher>,
    until: Until,
    /// What was there when the stream began is shown to its end, however many turns ended on the way.
    whole: Seq,
    ended: bool,
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
            whole: 0,
            ended: false,
        }
    }

    /// The stream does not end before the event of this number.
    pub(crate) fn not_before(mut self, seq: Seq) -> Self {
        self.whole = seq;
        self
    }

    /// A stream of these entries and nothing else.
    pub(crate) fn of(entries: Vec<(Seq, Arc<Entry>)>, until: Until) -> Self {
        let ready = entries.into();
        Self { opening: None, decided: true, ready, watcher: None, until, whole: 0, ended: false }
    }

    /// Shows the task with this status and nothing else: what its reader has seen of the rest is not shown again.
    pub(crate) fn status_only(mut self, status: TaskStatus) -> Self {
        if let Some(Frame::Snapshot { task, .. }) = &mut self.opening {
            task.status = status;
            task.artifacts.clear();
            task.history.clear();
            task.metadata = None;
        }
        self
    }

    /// Entries that follow the snapshot and are known already.
    pub(crate) fn followed_by(mut self, entries: impl IntoIterator<Item = (Seq, Arc<Entry>)>) -> Self {
        self.ready.extend(entries);
        self
    }

    /// It is not decided yet whether there is a task: the first frame waits for the first entry.
    pub(crate) fn undecided(mut self) -> Self {
        self.decided = false;
        self
    }

    /// The number of the first event that is shown, where that is known before anything is.
    pub fn first_seq(&self) -> Option<Seq> {
        match &self.opening {
            Some(Frame::Snapshot { seq, .. } | Frame::Entry { seq, .. }) => Some(*seq),
            None => self.ready.front().map(|(seq, _)| *seq),
        }
    }

    /// Waits for what comes next. May be dropped while waiting: nothing is lost.
    pub async fn next(&mut self) -> Result<Next> {
        loop {
            let frames = self.take_ready();
            if !frames.is_empty() {
                return Ok(Next::Frames(frames));
            }
            let Some(watcher) = self.watcher.as_mut().filter(|_| !self.ended) else { return Ok(Next::End) };
            match watcher.follow().await? {
                News::Entries(entries) => self.ready.extend(entries),
                News::Cut => return Ok(Next::Cut),
                News::Gone => return Err(gone()),
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
            if self.ended {
                break;
            }
            self.ended = seq >= self.whole && ends(self.until, entry.kind());
            frames.push(Frame::Entry { seq, entry });
        }
        frames
    }
}

/// Said where a task was forgotten while somebody still read it.
pub(crate) fn gone() -> Error {
    Error::refused(ErrorKind::TaskNotFound, "the task's time is over and it has been forgotten")
}

/// Whether a stream ends with an event of this kind. A snapshot never ends a stream.
fn ends(until: Until, kind: Kind) -> bool {
    match kind {
        Kind::Status(state) => state.is_terminal() || until == Until::Settled && state.is_interrupted(),
        Kind::Artifact => false,
        Kind::Message => true,
    }
}
