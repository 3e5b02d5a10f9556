//! The checker of T-R10: what the parts of one race were told must be one story.
//!
//! Pure: it is given replies, a task and its log as read, and asks nobody. It keeps these rules:
//!
//! - the log has numbers from 1 without a gap, one event that ends the task, and nothing behind it;
//! - what a stream showed during the race is what the log has under the same numbers, up to the end;
//! - a cancel that succeeded was told of a canceled task, and the task is that for good; at most one succeeds;
//! - a cancel that came too late leaves a task that ended otherwise, or that another cancel ended;
//! - a task that was canceled was canceled by one who was told so.

use serde_json::Value;

use crate::verify::rpc::Frame;
use crate::verify::view::{digest, is_terminal};

const CANCELED: &str = "TASK_STATE_CANCELED";
const COMPLETED: &str = "TASK_STATE_COMPLETED";

/// What was told during a race.
#[derive(Clone)]
pub(crate) struct Race {
    pub(crate) task: String,
    /// When the cancel was fired, before or behind the expected end.
    pub(crate) offset_micros: i64,
    pub(crate) cancels: Vec<Reply>,
    /// The sender's own stream, if it streamed.
    pub(crate) streamed: Option<Vec<Event>>,
}

/// The reply to a cancel.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Reply {
    Canceled { status: Value },
    TooLate,
}

/// One frame of a stream, reduced to what is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    pub(crate) seq: Option<u64>,
    pub(crate) task: String,
    /// Whether it says that the task is being written.
    pub(crate) writes: bool,
    /// The state it ends the task with.
    ends: Option<String>,
    digest: u64,
}

impl Race {
    pub(crate) fn was_canceled(&self) -> bool {
        self.cancels.iter().any(|reply| matches!(reply, Reply::Canceled { .. }))
    }

    /// Compares the race with the task and its whole log as read when all is over.
    pub(crate) fn compare(&self, task: &Value, log: &[Event]) -> Vec<String> {
        let state = task["status"]["state"].as_str().unwrap_or_default();
        let mut found = one_end(log, state);
        found.extend(self.streamed.iter().flat_map(|streamed| same_story(streamed, log)));
        for reply in &self.cancels {
            if let Reply::Canceled { status } = reply
                && (status["state"] != CANCELED || *status != task["status"])
            {
                found.push(format!("a cancel was told {status}, the task is {}", task["status"]));
            }
        }
        let winners = self.cancels.iter().filter(|reply| **reply != Reply::TooLate).count();
        let expected = if winners == 0 { COMPLETED } else { CANCELED };
        if winners > 1 || state != expected {
            found.push(format!("{winners} of {} cancels succeeded, it is {state}", self.cancels.len()));
        }
        let place = format!("task {}, cancel at {} µs", self.task, self.offset_micros);
        found.into_iter().map(|what| format!("{place}: {what}")).collect()
    }
}

impl Event {
    /// The first frame of a stream: the task so far.
    pub(crate) fn opening(task: &str, frame: &Frame) -> Self {
        let state = frame.result["task"]["status"]["state"].as_str().unwrap_or_default();
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

/// A log read from its beginning: the first frame is the task and has number 0.
fn one_end(log: &[Event], state: &str) -> Vec<String> {
    let mut found = Vec::new();
    if log.iter().enumerate().any(|(number, event)| event.seq != Some(number as u64)) {
        let numbers: Vec<Option<u64>> = log.iter().map(|event| event.seq).collect();
        found.push(format!("the numbers of its log are {numbers:?}"));
    }
    let ends: Vec<&str> = log.iter().skip(1).filter_map(|event| event.ends.as_deref()).collect();
    let last = log.last().and_then(|event| event.ends.as_deref());
    if ends != [state] || last != Some(state) {
        found.push(format!("its log ends {ends:?}, last with {last:?}, and it is {state}"));
    }
    found
}

/// What a stream showed behind its first frame is the rest of the log.
fn same_story(streamed: &[Event], log: &[Event]) -> Option<String> {
    let first = streamed.first()?.seq?;
    let rest: Vec<&Event> = log.iter().skip(1).filter(|event| event.seq > Some(first)).collect();
    let shown: Vec<&Event> = streamed.iter().skip(1).collect();
    (shown != rest).then(|| format!("its stream showed {shown:?}, its log has {rest:?}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(seq: u64, ends: Option<&str>) -> Event {
        let ends = ends.map(str::to_owned);
        Event { seq: Some(seq), task: "t".to_owned(), writes: false, ends, digest: seq }
    }

    fn log(state: &str) -> Vec<Event> {
        vec![event(0, Some(state)), event(1, None), event(2, None), event(3, Some(state))]
    }

    fn task(state: &str) -> Value {
        json!({"id": "t", "status": {"state": state}})
    }

    fn told(state: &str) -> Reply {
        Reply::Canceled { status: task(state)["status"].clone() }
    }

    fn found(cancels: Vec<Reply>, streamed: Option<Vec<Event>>, state: &str, log: &[Event]) -> usize {
        let race = Race { task: "t".to_owned(), offset_micros: 0, cancels, streamed };
        race.compare(&task(state), log).len()
    }

    #[test]
    fn one_winner_and_one_story_have_no_finding() {
        let streamed = log(CANCELED)[1..].to_vec();
        assert_eq!(found(vec![told(CANCELED), Reply::TooLate], Some(streamed), CANCELED, &log(CANCELED)), 0);
        assert_eq!(found(vec![Reply::TooLate], None, COMPLETED, &log(COMPLETED)), 0);
    }

    #[test]
    fn a_reply_that_disagrees_with_the_end_is_found() {
        assert_eq!(found(vec![Reply::TooLate], None, CANCELED, &log(CANCELED)), 1);
        assert_eq!(found(vec![told(CANCELED)], None, COMPLETED, &log(COMPLETED)), 2);
        assert_eq!(found(vec![told(COMPLETED)], None, CANCELED, &log(CANCELED)), 1);
        assert_eq!(found(vec![told(CANCELED), told(CANCELED)], None, CANCELED, &log(CANCELED)), 1);
    }

    #[test]
    fn a_second_end_a_late_event_and_a_gap_are_found() {
        let late = |event: Event| log(CANCELED).into_iter().chain([event]).collect::<Vec<_>>();
        let cancels = || vec![told(CANCELED)];
        assert_eq!(found(cancels(), None, CANCELED, &late(event(4, None))), 1);
        assert_eq!(found(cancels(), None, CANCELED, &late(event(4, Some(COMPLETED)))), 1);
        let mut gap = log(CANCELED);
        gap.remove(1);
        assert_eq!(found(cancels(), None, CANCELED, &gap), 1);
    }

    #[test]
    fn a_stream_that_showed_something_else_is_found() {
        let mut streamed = log(CANCELED)[1..].to_vec();
        streamed[1].digest = 9;
        assert_eq!(found(vec![told(CANCELED)], Some(streamed), CANCELED, &log(CANCELED)), 1);
        let short = log(CANCELED)[1..3].to_vec();
        assert_eq!(found(vec![told(CANCELED)], Some(short), CANCELED, &log(CANCELED)), 1);
    }
}
