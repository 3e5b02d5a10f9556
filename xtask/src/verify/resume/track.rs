//! What one reader has been shown of one task, over all its streams, and the rules that it must keep.
//!
//! Pure: it is given frames and the number each stream was resumed from. A stream shows every number once, in
//! order, beginning with the one behind where it was resumed; one number has one content for ever; a resumed
//! stream begins with the task's status alone; nothing follows the end.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::verify::rpc::Frame;
use crate::verify::view::{Outcome, View, digest};

pub(crate) struct Track {
    pub(crate) task: String,
    pub(crate) findings: Vec<String>,
    /// The digest of each numbered event that was shown.
    events: BTreeMap<u64, u64>,
    /// The first snapshot and every event behind it, folded.
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
    /// Begins with the first frame of the stream that made the task.
    pub(crate) fn begin(first: &Frame) -> Result<Self, String> {
        let view = View::of(&first.result["task"])?;
        let seq = first.seq.ok_or("a stream that opens without a number")?;
        Ok(Self {
            task: view.task.clone(),
            findings: Vec::new(),
            events: BTreeMap::new(),
            view,
            newest: seq,
            stream: Stream::from(seq),
        })
    }

    /// The newest number shown so far.
    pub(crate) fn newest(&self) -> u64 {
        self.newest
    }

    /// How many distinct events were shown.
    pub(crate) fn events(&self) -> u64 {
        self.events.len() as u64
    }

    /// What the task ended as, if its end was shown.
    pub(crate) fn outcome(&self) -> Option<Outcome> {
        self.view.outcome()
    }

    /// Whether the stream that is open has shown the end.
    pub(crate) fn stream_has_ended(&self) -> bool {
        self.stream.ended
    }

    /// A stream was resumed from a number and began with this frame.
    pub(crate) fn resume(&mut self, from: u64, first: &Frame) {
        self.stream = Stream::from(from);
        let task = &first.result["task"];
        if task["id"] != self.task.as_str() || !task["status"]["state"].is_string() {
            self.find(
                "form",
                &format!("resumed from {from}, the first frame is no status: {}", first.result),
            );
        }
        for member in ["artifacts", "history"] {
            if task[member].as_array().is_some_and(|items| !items.is_empty()) {
                self.find("form", &format!("resumed from {from}, the first frame has {member}"));
            }
        }
        if first.seq != Some(from) {
            self.find("form", &format!("resumed from {from}, the first frame has number {:?}", first.seq));
        }
        if task["metadata"]["gap"] == true {
            self.find("gap", &format!("resumed from {from}, within the log, a gap is flagged"));
        }
    }

    /// The open stream went on with this frame.
    pub(crate) fn follow(&mut self, frame: &Frame) {
        let Some(seq) = frame.seq else {
            return self.find("form", &format!("an event without a number: {}", frame.result));
        };
        self.place(seq);
        if self.stream.ended {
            self.find("repeated", &format!("event {seq} behind the end"));
        }
        let content = digest(&frame.result);
        if self.events.insert(seq, content).is_some_and(|before| before != content) {
            self.find("repeated", &format!("event {seq} has two contents"));
        }
        if seq > self.newest {
            self.newest = seq;
            if let Err(what) = self.view.apply(&frame.result) {
                self.find("form", &what);
            }
        }
        self.stream.ended = is_end(&frame.result);
    }

    /// The open stream was closed in good order.
    pub(crate) fn close(&mut self) {
        if !self.stream.ended {
            self.find("missing", &format!("the stream was closed behind event {}", self.stream.last));
        }
    }

    /// Puts a number in its place among those of the open stream.
    fn place(&mut self, seq: u64) {
        let last = self.stream.last;
        let seen = !self.stream.shown.insert(seq);
        self.stream.last = last.max(seq);
        if seq > last + 1 {
            self.find("missing", &format!("event {seq} after {last}"));
        } else if seq <= last && seen {
            self.find("repeated", &format!("event {seq} after {last}"));
        } else if seq <= last {
            self.find("reordered", &format!("event {seq} after {last}"));
        }
    }

    pub(crate) fn find(&mut self, kind: &str, what: &str) {
        self.findings.push(format!("{kind}: task {}: {what}", self.task));
    }
}

fn is_end(event: &Value) -> bool {
    event["statusUpdate"]["status"]["state"].as_str().is_some_and(crate::verify::view::is_terminal)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn task(seq: u64, more: &Value) -> Frame {
        let mut task = json!({"id": "t", "status": {"state": "TASK_STATE_WORKING"}});
        for (name, value) in more.as_object().unwrap() {
            task[name] = value.clone();
        }
        Frame { seq: Some(seq), result: json!({ "task": task }) }
    }

    fn status(seq: u64, state: &str) -> Frame {
        let update = json!({"taskId": "t", "status": {"state": state, "n": seq}});
        Frame { seq: Some(seq), result: json!({"statusUpdate": update}) }
    }

    fn working(seq: u64) -> Frame {
        status(seq, "TASK_STATE_WORKING")
    }

    fn kinds(track: &Track) -> Vec<&str> {
        track.findings.iter().map(|finding| finding.split(':').next().unwrap()).collect()
    }

    fn begun() -> Track {
        Track::begin(&task(1, &json!({}))).unwrap()
    }

    #[test]
    fn a_stream_cut_and_resumed_keeps_the_rules() {
        let mut track = begun();
        track.follow(&working(2));
        track.follow(&working(3));
        track.resume(2, &task(2, &json!({})));
        for frame in [working(3), working(4), status(5, "TASK_STATE_COMPLETED")] {
            track.follow(&frame);
        }
        track.close();
        assert_eq!(track.findings, Vec::<String>::new());
        assert_eq!((track.newest(), track.events(), track.outcome().is_some()), (5, 4, true));
    }

    #[test]
    fn what_is_missing_repeated_or_out_of_order_is_named_so() {
        let mut track = begun();
        for seq in [2, 2, 5, 4] {
            track.follow(&working(seq));
        }
        track.close();
        assert_eq!(kinds(&track), ["repeated", "missing", "reordered", "missing"]);
    }

    #[test]
    fn one_number_has_one_content_and_nothing_follows_the_end() {
        let mut track = begun();
        track.follow(&working(2));
        track.resume(1, &task(1, &json!({})));
        track.follow(&status(2, "TASK_STATE_COMPLETED"));
        track.follow(&working(3));
        assert_eq!(kinds(&track), ["repeated", "repeated"]);
    }

    #[test]
    fn a_resumed_stream_begins_with_the_status_alone_at_its_number() {
        let mut track = begun();
        track.resume(1, &task(2, &json!({"artifacts": [{}], "metadata": {"gap": true}})));
        track.resume(1, &working(1));
        assert_eq!(kinds(&track), ["form", "form", "gap", "form"]);
    }
}
