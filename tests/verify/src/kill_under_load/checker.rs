//! The checker of kill_under_load: compares the clients' history with the reads made after each restart.
//!
//! Pure: it gets facts and tasks as read, and makes no calls. The kinds of findings:
//!
//! - *lost*: an acknowledged task is missing, a terminal state that was seen differs later, or an event number that
//!   was seen is beyond the newest the server knows;
//! - *duplicate*: one number with two contents or twice in one stream, two terminal events of one task, two tasks
//!   for one call, one task for two calls, or a step that began again after it was journaled;
//! - *gap*: a number missing in a stream, or a stream closed before its task had ended;
//! - *wrong*: an outcome the agent cannot have produced, such as a section written twice by a resumed run, or a failure
//!   of a task that made progress;
//! - *stuck*: a task that has not ended within the limit after the last restart;
//! - *refused*: an error, a lost connection or an invalid response from a server that was not being killed.
//!
//! The tasks here have one turn each, so "two ends of one turn" is "two ends of one task".

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use uuid::Uuid;

use super::history::{Fact, Operation};
use crate::step_reports::StepReports;
use crate::view::{Outcome, View, text_digest};
use crate::writer::Document;

/// A task fails as poisoned at its third process crash without progress and not before.
const CRASHES_TO_FAIL: u64 = 3;
/// Why a task may fail here: it was on probation at a crash, or it has crashed too often.
const FAILURE_REASONS: [&str; 2] = ["poisoned", "attempts"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Lost,
    Duplicate,
    Gap,
    Wrong,
    Stuck,
    Refused,
}

#[derive(Debug)]
pub(crate) struct Finding {
    pub(crate) kind: Kind,
    pub(crate) what: String,
}

/// How much was checked: a result without findings proves only that much.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) acknowledged: HashMap<Operation, u64>,
    pub(crate) streams: u64,
    pub(crate) frames: u64,
    pub(crate) cuts: u64,
}

#[derive(Default)]
pub(crate) struct Checker {
    pub(crate) findings: Vec<Finding>,
    pub(crate) tally: Tally,
    boot: u64,
    calls: HashMap<Uuid, Call>,
    tasks: HashMap<String, TaskRecord>,
    /// The last event number of each stream.
    streams: HashMap<Uuid, u64>,
    /// The newest event number seen before each subscription was requested.
    floors: HashMap<Uuid, u64>,
    /// Digest of the document `slow-writer` wrote for a text the first time; later runs must write the same.
    written: HashMap<String, u64>,
}

struct Call {
    operation: Operation,
    text: String,
    boot: u64,
    task: Option<String>,
}

struct TaskRecord {
    call: Uuid,
    acknowledged: bool,
    /// Digest of each numbered event that any stream has shown.
    events: HashMap<u64, u64>,
    newest: u64,
    ended_at: Option<u64>,
    outcome: Option<Outcome>,
    missing: bool,
}

impl Checker {
    pub(crate) fn observe(&mut self, fact: &Fact) {
        match fact {
            Fact::Booted { boot } => self.boot = *boot,
            Fact::Called { call, operation, text } => {
                let called = Call { operation: *operation, text: text.clone(), boot: self.boot, task: None };
                self.calls.insert(*call, called);
            }
            Fact::Accepted { call, task } => self.accept(*call, task),
            Fact::Subscribing { stream, task } => {
                let newest = self.tasks.get(task).map_or(0, |task_record| task_record.newest);
                self.floors.insert(*stream, newest);
            }
            Fact::Opened { stream, task, seq } => self.open(*stream, task, *seq),
            Fact::Followed { stream, task, seq, digest, ends } => match seq {
                Some(seq) => self.follow(*stream, task, *seq, *digest, *ends),
                None => self.add_finding(Kind::Gap, format!("task {task}: an event has no number")),
            },
            Fact::ClosedEarly { task } => {
                self.add_finding(
                    Kind::Gap,
                    format!("task {task}: its stream was closed before the task ended"),
                );
            }
            Fact::Ended { task, outcome } => self.end(task, outcome),
            Fact::Missing { task } => self.record_missing(task, "returned to a client, then unknown"),
            Fact::Cut => self.tally.cuts += 1,
            Fact::CutByLivingServer => {
                self.add_finding(Kind::Refused, "a running server closed a connection".to_owned());
            }
            Fact::Refused { what } => self.add_finding(Kind::Refused, what.clone()),
        }
    }

    /// Compares one task as read after a restart, or its absence, and returns whether it has ended.
    pub(crate) fn read(&mut self, id: &str, found: Option<&Value>) -> bool {
        let Some(task) = found else {
            self.record_missing(id, "acknowledged, then not found");
            return true;
        };
        let view = match View::of(task) {
            Ok(view) if view.task == id => view,
            Ok(view) => {
                return self.record_failure(format!("task {id} was requested and {} returned", view.task));
            }
            Err(what) => return self.record_failure(what),
        };
        match view.outcome() {
            Some(outcome) => {
                self.end(id, &outcome);
                true
            }
            None => {
                if let Some(before) = self.tasks.get(id).and_then(|task_record| task_record.outcome.as_ref())
                {
                    let what = format!("task {id}: was {}, is {}", before.state, view.state());
                    self.add_finding(Kind::Lost, what);
                }
                false
            }
        }
    }

    /// Registers a listed task, acknowledged or not, under the call whose message it contains.
    pub(crate) fn see_listed(&mut self, task: &Value) {
        let Some(id) = task["id"].as_str() else {
            self.record_failure(format!("the task has no id: {task}"));
            return;
        };
        let Some(call) = call_of(task) else {
            self.add_finding(Kind::Lost, format!("task {id}: the message that created it is missing"));
            return;
        };
        match self.calls.get(&call) {
            None => self.add_finding(Kind::Wrong, format!("task {id}: no client sent its message {call}")),
            Some(called) if text_of(task) != Some(called.text.as_str()) => {
                self.add_finding(
                    Kind::Lost,
                    format!("task {id}: the text of its message differs from the one sent"),
                );
            }
            Some(_) => self.bind(call, id),
        }
    }

    /// Compares one task of the last list; `listed` holds the ids the list has shown so far.
    pub(crate) fn check_listed(&mut self, task: &Value, listed: &mut HashSet<String>) {
        self.see_listed(task);
        let Some(id) = task["id"].as_str() else { return };
        if !listed.insert(id.to_owned()) {
            self.add_finding(Kind::Duplicate, format!("task {id}: twice in one list"));
        }
        self.read(id, Some(task));
    }

    /// Compares the last list with the acknowledged tasks.
    pub(crate) fn finish_list(&mut self, agent: &str, listed: &HashSet<String>, total: u64) {
        for id in self.acknowledged(agent) {
            if !listed.contains(&id) {
                self.record_missing(&id, "acknowledged, then not in the list");
            }
        }
        if total != listed.len() as u64 {
            self.add_finding(
                Kind::Wrong,
                format!("the list of {agent} has {} tasks and the total {total}", listed.len()),
            );
        }
    }

    /// Compares the tasks of `journal-writer` with what its steps have reported: none began after it was journaled, a
    /// completed task has finished all its steps, and no task has failed soon after its progress.
    pub(crate) fn check_steps(&mut self, reports: &StepReports) {
        for what in &reports.repeated {
            self.add_finding(Kind::Duplicate, what.clone());
        }
        let mut faults = Vec::new();
        for (id, task_record) in &self.tasks {
            let call = self.calls.get(&task_record.call);
            let Some(call) = call.filter(|call| call.operation == Operation::Journal) else { continue };
            let state = task_record.outcome.as_ref().map_or("", |outcome| outcome.state.as_str());
            let (journaled, crashes) = (reports.journaled(id), reports.boots_since_progress(id));
            let sections = Document::sections_of(&call.text);
            if state == "TASK_STATE_COMPLETED" && Some(journaled) != sections {
                faults.push(format!("task {id}: {journaled} journaled steps, {sections:?} expected"));
            }
            if state == "TASK_STATE_FAILED" && crashes < CRASHES_TO_FAIL {
                faults.push(format!("task {id}: failed {crashes} crashes after its last progress"));
            }
        }
        faults.into_iter().for_each(|fault| self.add_finding(Kind::Wrong, fault));
    }

    /// Records a task that was still open at the time limit.
    pub(crate) fn stuck(&mut self, id: &str) {
        self.add_finding(Kind::Stuck, format!("task {id}: not ended after the last restart"));
    }

    /// Records an invalid response.
    pub(crate) fn record_failure(&mut self, what: String) -> bool {
        self.add_finding(Kind::Refused, what);
        false
    }

    pub(crate) fn acknowledged(&self, agent: &str) -> Vec<String> {
        let of_agent = |(id, task_record): &(&String, &TaskRecord)| {
            task_record.acknowledged && self.agent_of(id) == Some(agent)
        };
        self.tasks.iter().filter(of_agent).map(|(id, _)| id.clone()).collect()
    }

    /// The agent of a task.
    pub(crate) fn agent_of(&self, id: &str) -> Option<&'static str> {
        Some(self.operation_of(id)?.agent())
    }

    /// Whether a listed task is held for a client of an earlier boot that never received its id, so that no client
    /// will cancel it.
    pub(crate) fn is_orphan(&self, task: &Value) -> bool {
        call_of(task).and_then(|call| self.calls.get(&call)).is_some_and(|call| {
            call.operation == Operation::Cancel && call.task.is_none() && call.boot < self.boot
        })
    }

    /// Whether a task waits for a cancel and will not end by itself.
    pub(crate) fn is_held(&self, id: &str) -> bool {
        self.operation_of(id) == Some(Operation::Cancel)
    }

    pub(crate) fn count(&self, kind: Kind) -> usize {
        self.findings.iter().filter(|finding| finding.kind == kind).count()
    }

    /// Number of distinct tasks, acknowledged or listed.
    pub(crate) fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// Number of failed tasks: allowed after three crashes, and reported as a figure.
    pub(crate) fn failed(&self) -> usize {
        let failed = |task_record: &&TaskRecord| {
            task_record.outcome.as_ref().is_some_and(|end| end.state.ends_with("_FAILED"))
        };
        self.tasks.values().filter(failed).count()
    }

    fn operation_of(&self, id: &str) -> Option<Operation> {
        let task_record = self.tasks.get(id)?;
        Some(self.calls.get(&task_record.call)?.operation)
    }

    fn accept(&mut self, call: Uuid, task: &str) {
        self.bind(call, task);
        if let Some(task_record) = self.tasks.get_mut(task)
            && !std::mem::replace(&mut task_record.acknowledged, true)
            && let Some(called) = self.calls.get(&call)
        {
            *self.tally.acknowledged.entry(called.operation).or_default() += 1;
        }
    }

    /// Checks that one call belongs to one task and one task to one call.
    fn bind(&mut self, call: Uuid, task: &str) {
        if let Some(called) = self.calls.get_mut(&call) {
            let first = called.task.get_or_insert_with(|| task.to_owned());
            if first != task {
                let what = format!("call {call}: created task {first} and task {task}");
                self.add_finding(Kind::Duplicate, what);
            }
        }
        let task_record = self.tasks.entry(task.to_owned()).or_insert_with(|| TaskRecord::of(call));
        if task_record.call != call {
            let what = format!("task {task}: returned to call {} and to call {call}", task_record.call);
            self.add_finding(Kind::Duplicate, what);
        }
    }

    fn open(&mut self, stream: Uuid, task: &str, seq: Option<u64>) {
        self.tally.streams += 1;
        let Some(seq) = seq else {
            return self
                .add_finding(Kind::Gap, format!("task {task}: the first frame of a stream has no number"));
        };
        let floor = self.floors.remove(&stream).unwrap_or_default();
        if seq < floor {
            self.add_finding(
                Kind::Lost,
                format!("task {task}: event {floor} was seen, and now {seq} is the newest"),
            );
        }
        self.streams.insert(stream, seq);
    }

    fn follow(&mut self, stream: Uuid, task: &str, seq: u64, digest: u64, ends: bool) {
        self.tally.frames += 1;
        if let Some(before) = self.streams.insert(stream, seq)
            && seq != before + 1
        {
            let kind = if seq > before { Kind::Gap } else { Kind::Duplicate };
            self.add_finding(kind, format!("task {task}: event {seq} after {before}"));
        }
        let Some(task_record) = self.tasks.get_mut(task) else { return };
        let repeated = task_record.events.insert(seq, digest).is_some_and(|before| before != digest);
        task_record.newest = task_record.newest.max(seq);
        let second_end = ends && task_record.ended_at.is_some_and(|end| end != seq);
        if ends {
            task_record.ended_at.get_or_insert(seq);
        }
        let after_end = task_record.ended_at.is_some_and(|end| task_record.newest > end);
        if repeated {
            self.add_finding(Kind::Duplicate, format!("task {task}: event {seq} has two contents"));
        }
        if second_end || after_end {
            self.add_finding(Kind::Duplicate, format!("task {task}: event {seq} after the end of the task"));
        }
    }

    fn end(&mut self, task: &str, outcome: &Outcome) {
        let Some(task_record) = self.tasks.get_mut(task) else { return };
        if let Some(before) = &task_record.outcome {
            if before != outcome {
                let what = format!("task {task}: ended {before:?}, and later {outcome:?}");
                self.add_finding(Kind::Lost, what);
            }
            return;
        }
        task_record.outcome = Some(outcome.clone());
        let Some(call) = self.calls.get(&task_record.call) else { return };
        let crashes = self.boot - call.boot;
        let fault = match (call.operation, outcome.state.as_str()) {
            (_, "TASK_STATE_FAILED") if crashes < CRASHES_TO_FAIL => {
                format!("failed after {crashes} crashes")
            }
            (_, "TASK_STATE_FAILED") if !FAILURE_REASONS.contains(&outcome.reason.as_str()) => {
                format!("failed with the reason {:?}", outcome.reason)
            }
            (_, "TASK_STATE_FAILED") | (Operation::Cancel, "TASK_STATE_CANCELED") => return,
            (Operation::Cancel, state) => format!("was held and ended {state}"),
            (Operation::Write | Operation::Journal, "TASK_STATE_COMPLETED") => {
                let first = *self.written.entry(call.text.clone()).or_insert(outcome.text);
                if first == outcome.text {
                    return;
                }
                format!("the document for {:?} differs from the first one", call.text)
            }
            (_, "TASK_STATE_COMPLETED") if outcome.text == text_digest(&call.text) => return,
            (_, "TASK_STATE_COMPLETED") => format!("the echo of {:?} has a different text", call.text),
            (_, state) => format!("ended unexpectedly as {state}"),
        };
        self.add_finding(Kind::Wrong, format!("task {task}: {fault}"));
    }

    /// Records a missing task once, however often it is read.
    fn record_missing(&mut self, task: &str, how: &str) {
        let known = self.tasks.get_mut(task);
        if known.is_none_or(|task_record| !std::mem::replace(&mut task_record.missing, true)) {
            self.add_finding(Kind::Lost, format!("task {task}: {how}"));
        }
    }

    fn add_finding(&mut self, kind: Kind, what: String) {
        self.findings.push(Finding { kind, what });
    }
}

impl TaskRecord {
    fn of(call: Uuid) -> Self {
        Self {
            call,
            acknowledged: false,
            events: HashMap::new(),
            newest: 0,
            ended_at: None,
            outcome: None,
            missing: false,
        }
    }
}

fn first_user_message(task: &Value) -> Option<&Value> {
    task["history"].as_array()?.iter().find(|message| message["role"] == "ROLE_USER")
}

fn call_of(task: &Value) -> Option<Uuid> {
    Uuid::parse_str(first_user_message(task)?["messageId"].as_str()?).ok()
}

fn text_of(task: &Value) -> Option<&str> {
    first_user_message(task)?["parts"][0]["text"].as_str()
}

#[cfg(test)]
mod tests;
