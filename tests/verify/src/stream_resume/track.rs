//! The events one reader has received of one task, over all its streams, and the rules they must satisfy.
//!
//! Pure: it gets frames and the number each stream was resumed from. A stream must deliver every number once, in
//! order, starting after the number it was resumed from; one number always has the same content; a resumed stream
//! begins with the task's status only; nothing follows the terminal event.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use testkit::json::is_terminal;

use crate::rpc::Frame;
use crate::view::{Outcome, View, digest};

pub(crate) struct Track {
    pub(crate) task: String,
    pub(crate) findings: Vec<String>,
    /// Digest of each numbered event that was received.
    events: BTreeMap<u64, u64>,
    /// The first snapshot with every later event applied.
    view: View,
    newest: u64,
    stream: Stream,
}

/// The stream that is open now.
struct Stream {
    last: u64,
    shown: BTreeSet<u64>,
    ended: bool,
}

impl Stream {
    fn from(last: u64) -> Self {
        Self { last, shown: BTreeSet::new(), ended: false }
    }
}

impl Track {
    /// Starts with the first frame of the stream that created the task.
    pub(crate) fn begin(first: &Frame) -> Result<Self, String> {
        let view = View::of(&first.result["task"])?;
        let seq = first.seq.ok_or("the first frame of a stream has no number")?;
        Ok(Self {
            task: view.task.clone(),
            findings: Vec::new(),
            events: BTreeMap::new(),
            view,
            newest: seq,
            stream: Stream::from(seq),
        })
    }

    /// The newest number received so far.
    pub(crate) fn newest(&self) -> u64 {
        self.newest
    }

    /// The outcome of the task, if its end was received.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        self.view.outcome()
    }

    /// Whether the open stream has delivered the end.
    pub(crate) fn stream_has_ended(&self) -> bool {
        self.stream.ended
    }

    /// A stream was resumed from a number and began with this frame.
    pub(crate) fn resume(&mut self, from: u64, first: &Frame) {
        self.stream = Stream::from(from);
        let task = &first.result["task"];
        if task["id"] != self.task.as_str() || !task["status"]["state"].is_string() {
            self.add_finding(
                "form",
                &format!("resumed from {from}, the first frame is not a status: {}", first.result),
            );
        }
        for member in ["artifacts", "history"] {
            if task[member].as_array().is_some_and(|items| !items.is_empty()) {
                self.add_finding("form", &format!("resumed from {from}, the first frame has {member}"));
            }
        }
        if first.seq != Some(from) {
            self.add_finding(
                "form",
                &format!("resumed from {from}, the first frame has number {:?}", first.seq),
            );
        }
        if task["metadata"]["gap"] == true {
            self.add_finding("gap", &format!("resumed from {from}, within the log, a gap is flagged"));
        }
    }

    /// The open stream delivered this frame.
    pub(crate) fn follow(&mut self, frame: &Frame) {
        let Some(seq) = frame.seq else {
            return self.add_finding("form", &format!("an event has no number: {}", frame.result));
        };
        self.check_order(seq);
        if self.stream.ended {
            self.add_finding("repeated", &format!("event {seq} after the end"));
        }
        let content = digest(&frame.result);
        if self.events.insert(seq, content).is_some_and(|before| before != content) {
            self.add_finding("repeated", &format!("event {seq} has two contents"));
        }
        if seq > self.newest {
            self.newest = seq;
            if let Err(what) = self.view.apply(&frame.result) {
                self.add_finding("form", &what);
            }
        }
        self.stream.ended = is_end(&frame.result);
    }

    /// The open stream was closed properly.
    pub(crate) fn close(&mut self) {
        if !self.stream.ended {
            self.add_finding("missing", &format!("the stream was closed after event {}", self.stream.last));
        }
    }

    /// Checks a number against the numbers of the open stream.
    fn check_order(&mut self, seq: u64) {
        let last = self.stream.last;
        let seen = !self.stream.shown.insert(seq);
        self.stream.last = last.max(seq);
        if seq > last + 1 {
            self.add_finding("missing", &format!("event {seq} after {last}"));
        } else if seq <= last && seen {
            self.add_finding("repeated", &format!("event {seq} after {last}"));
        } else if seq <= last {
            self.add_finding("reordered", &format!("event {seq} after {last}"));
        }
    }

    pub(crate) fn add_finding(&mut self, kind: &str, what: &str) {
        self.findings.push(format!("{kind}: task {}: {what}", self.task));
    }
}

fn is_end(event: &Value) -> bool {
    event["statusUpdate"]["status"]["state"].as_str().is_some_and(is_terminal)
}
