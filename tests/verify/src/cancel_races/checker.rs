//! The checker of cancel_races: everything the clients of one race received must be consistent.
//!
//! Pure: it gets replies, a task and its log as read, and makes no calls. The rules:
//!
//! - the log has consecutive numbers from 1, exactly one terminal event, and nothing after it;
//! - the events that a stream showed during the race are those of the log with the same numbers, up to the end;
//! - a cancel that succeeded returned a canceled task, and the task stays canceled; at most one cancel succeeds;
//! - a cancel that was refused as too late leaves a task that ended otherwise, or that another cancel ended;
//! - a canceled task was canceled by a client that got a success reply.

use serde_json::Value;
use testkit::json::{is_terminal, state};

use crate::rpc::Frame;
use crate::view::digest;

const CANCELED: &str = "TASK_STATE_CANCELED";
const COMPLETED: &str = "TASK_STATE_COMPLETED";

/// What the clients of a race received.
#[derive(Clone)]
pub(crate) struct Race {
    pub(crate) task: String,
    /// Time of the cancel relative to the expected completion; negative is before it.
    pub(crate) offset_micros: i64,
    pub(crate) cancels: Vec<CancelReply>,
    /// The events of the sender's own stream, if it streamed.
    pub(crate) streamed: Option<Vec<Event>>,
}

#[derive(Clone, PartialEq, Eq)]
pub(crate) enum CancelReply {
    Canceled { status: Value },
    TooLate,
}

/// One frame of a stream, reduced to what is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) seq: Option<u64>,
    pub(crate) task: String,
    /// Whether it reports that a section is being written.
    pub(crate) writes: bool,
    /// The terminal state it sets, if any.
    ends: Option<String>,
    digest: u64,
}

impl Race {
    pub(crate) fn was_canceled(&self) -> bool {
        self.cancels.iter().any(|reply| matches!(reply, CancelReply::Canceled { .. }))
    }

    /// Compares the race with the task and its whole log as read after all races.
    pub(crate) fn compare(&self, task: &Value, log: &[Event]) -> Vec<String> {
        let state = state(task);
        let mut found = one_end(log, state);
        found.extend(self.streamed.iter().flat_map(|streamed| same_events(streamed, log)));
        for reply in &self.cancels {
            if let CancelReply::Canceled { status } = reply
                && (status["state"] != CANCELED || *status != task["status"])
            {
                found.push(format!("a cancel returned {status}, the task is {}", task["status"]));
            }
        }
        let winners = self.cancels.iter().filter(|reply| **reply != CancelReply::TooLate).count();
        let expected = if winners == 0 { COMPLETED } else { CANCELED };
        if winners > 1 || state != expected {
            found.push(format!("{winners} of {} cancels succeeded, the task is {state}", self.cancels.len()));
        }
        let subject = format!("task {}, cancel at {} µs", self.task, self.offset_micros);
        found.into_iter().map(|what| format!("{subject}: {what}")).collect()
    }
}

impl Event {
    /// The first frame of a stream: the task so far.
    pub(crate) fn opening(task: &str, frame: &Frame) -> Self {
        let state = state(&frame.result["task"]);
        let ends = is_terminal(state).then(|| state.to_owned());
        Self { seq: frame.seq, task: task.to_owned(), writes: false, ends, digest: 0 }
    }

    pub(crate) fn of(task: &str, frame: &Frame) -> Self {
        let status = &frame.result["statusUpdate"]["status"];
        let state = status["state"].as_str().unwrap_or_default();
        Self {
            seq: frame.seq,
            task: task.to_owned(),
            writes: state == "TASK_STATE_WORKING" && status["message"].is_object(),
            ends: is_terminal(state).then(|| state.to_owned()),
            digest: digest(&frame.result),
        }
    }
}

/// Checks a log read from its beginning; its first frame is the task with number 0.
fn one_end(log: &[Event], state: &str) -> Vec<String> {
    let mut found = Vec::new();
    if log.iter().enumerate().any(|(number, event)| event.seq != Some(number as u64)) {
        let numbers: Vec<Option<u64>> = log.iter().map(|event| event.seq).collect();
        found.push(format!("the sequence numbers of its log are {numbers:?}"));
    }
    let ends: Vec<&str> = log.iter().skip(1).filter_map(|event| event.ends.as_deref()).collect();
    let last = log.last().and_then(|event| event.ends.as_deref());
    if ends != [state] || last != Some(state) {
        found.push(format!(
            "its log has the terminal events {ends:?}, ends with {last:?}, and the task is {state}"
        ));
    }
    found
}

/// Checks that the events of a stream after its first frame are the rest of the log.
fn same_events(streamed: &[Event], log: &[Event]) -> Option<String> {
    let first = streamed.first()?.seq?;
    let rest: Vec<&Event> = log.iter().skip(1).filter(|event| event.seq > Some(first)).collect();
    let shown: Vec<&Event> = streamed.iter().skip(1).collect();
    (shown != rest).then(|| format!("its stream showed {shown:?}, its log has {rest:?}"))
}
