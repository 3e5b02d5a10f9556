//! The checker of T-R1: folds the clients' ledger and the reads made after each restart into findings.
//!
//! Pure: it is given facts and tasks as read, and asks nobody. It keeps these rules:
//!
//! - *lost*: an acknowledged task is missing, an end that was seen differs later, or a number that was seen lies
//!   beyond what the server still knows;
//! - *duplicate*: one number with two contents or twice in one stream, two ends of one task, two tasks for one
//!   call, or one task for two;
//! - *gap*: a number missing in a stream, or a stream closed before its task had ended;
//! - *wrong*: an outcome the agent cannot have meant, as a section written twice by a resumed run;
//! - *stuck*: no end within the limit after the last restart;
//! - *refused*: an error, a cut connection or an answer out of form from a server nobody was killing.
//!
//! A v1 task has one turn, so "two ends of one turn" is "two ends of one task" here.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use uuid::Uuid;

use super::ledger::{Fact, Operation};
use crate::verify::view::{Outcome, View, text_digest};

/// A task is given up as poisoned at its third process death and not before.
const DEATHS_TO_FAIL: u64 = 3;

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

/// How much was seen: a verdict of nothing found is worth what was looked at.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) acknowledged: HashMap<Operation, u64>,
    pub(crate) streams: u64,
    pub(crate) frames: u64,
    pub(crate) cuts: u64,
    pub(crate) postponed: u64,
    pub(crate) reads: u64,
    pub(crate) listed: u64,
}

#[derive(Default)]
pub(crate) struct Judge {
    pub(crate) findings: Vec<Finding>,
    pub(crate) tally: Tally,
    boot: u64,
    calls: HashMap<Uuid, Call>,
    tasks: HashMap<String, Account>,
    /// The last number each stream has shown.
    streams: HashMap<Uuid, u64>,
    /// The newest number seen before each subscription was asked for.
    floors: HashMap<Uuid, u64>,
    /// What `slow-writer` made of a text the first time: each later run must make the same of it.
    written: HashMap<String, u64>,
}

struct Call {
    operation: Operation,
    text: String,
    boot: u64,
    task: Option<String>,
}

struct Account {
    call: Uuid,
    acknowledged: bool,
    /// The digest of each numbered event that any stream has shown.
    events: HashMap<u64, u64>,
    newest: u64,
    ended_at: Option<u64>,
    outcome: Option<Outcome>,
    missing: bool,
}

impl Judge {
    pub(crate) fn take(&mut self, fact: &Fact) {
        match fact {
            Fact::Booted { boot } => self.boot = *boot,
            Fact::Called { call, operation, text } => {
                let called = Call { operation: *operation, text: text.clone(), boot: self.boot, task: None };
                self.calls.insert(*call, called);
            }
            Fact::Accepted { call, task } => self.accept(*call, task),
            Fact::Subscribing { stream, task } => {
                let newest = self.tasks.get(task).map_or(0, |account| account.newest);
                self.floors.insert(*stream, newest);
            }
            Fact::Opened { stream, task, seq } => self.open(*stream, task, *seq),
            Fact::Followed { stream, task, seq, digest, ends } => match seq {
                Some(seq) => self.follow(*stream, task, *seq, *digest, *ends),
                None => self.find(Kind::Gap, format!("task {task}: an event without a number")),
            },
            Fact::ClosedEarly { task } => {
                self.find(Kind::Gap, format!("task {task}: its stream was closed before its end"));
            }
            Fact::Ended { task, outcome } => self.end(task, outcome),
            Fact::Missing { task } => self.miss(task, "given to a client, then unknown"),
            Fact::Cut => self.tally.cuts += 1,
            Fact::CutByLivingServer => {
                self.find(Kind::Refused, "a living server cut a connection".to_owned());
            }
            Fact::Postponed => self.tally.postponed += 1,
            Fact::Refused { what } => self.find(Kind::Refused, what.clone()),
        }
    }

    /// Compares one task as read after a restart, or its absence, and says whether it has ended.
    pub(crate) fn read(&mut self, id: &str, found: Option<&Value>) -> bool {
        self.tally.reads += 1;
        let Some(task) = found else {
            self.miss(id, "acknowledged, then not found");
            return true;
        };
        let view = match View::of(task) {
            Ok(view) if view.task == id => view,
            Ok(view) => return self.refuse(format!("task {id} was asked for and {} came", view.task)),
            Err(what) => return self.refuse(what),
        };
        match view.outcome() {
            Some(outcome) => {
                self.end(id, &outcome);
                true
            }
            None => {
                if let Some(before) = self.tasks.get(id).and_then(|account| account.outcome.as_ref()) {
                    let what = format!("task {id}: was {}, is {}", before.state, view.state());
                    self.find(Kind::Lost, what);
                }
                false
            }
        }
    }

    /// Enters a task met in a list, acknowledged or not, under the call whose message it carries.
    pub(crate) fn meet(&mut self, task: &Value) {
        self.tally.listed += 1;
        let Some(id) = task["id"].as_str() else {
            self.refuse(format!("a task without an id: {task}"));
            return;
        };
        let Some(call) = call_of(task) else {
            self.find(Kind::Lost, format!("task {id}: the message that made it is gone"));
            return;
        };
        match self.calls.get(&call) {
            None => self.find(Kind::Wrong, format!("task {id}: nobody sent its message {call}")),
            Some(called) if text_of(task) != Some(called.text.as_str()) => {
                self.find(Kind::Lost, format!("task {id}: its message has another text than was sent"));
            }
            Some(_) => self.bind(call, id),
        }
    }

    /// Compares one task of the last walk through a list; `met` holds what the walk has shown so far.
    pub(crate) fn meet_in_list(&mut self, task: &Value, met: &mut HashSet<String>) {
        self.meet(task);
        let Some(id) = task["id"].as_str() else { return };
        if !met.insert(id.to_owned()) {
            self.find(Kind::Duplicate, format!("task {id}: twice in one walk through the list"));
        }
        self.read(id, Some(task));
    }

    /// Compares what the last walk has shown with what was acknowledged.
    pub(crate) fn close_list(&mut self, agent: &str, met: &HashSet<String>, total: u64) {
        for id in self.acknowledged(agent) {
            if !met.contains(&id) {
                self.miss(&id, "acknowledged, then not in the list");
            }
        }
        if total != met.len() as u64 {
            self.find(Kind::Wrong, format!("the list of {agent} holds {} tasks and says {total}", met.len()));
        }
    }

    /// Notes what was still open when the time for it had run out.
    pub(crate) fn stuck(&mut self, id: &str) {
        self.find(Kind::Stuck, format!("task {id}: no end after the last restart"));
    }

    /// Notes an answer out of form.
    pub(crate) fn refuse(&mut self, what: String) -> bool {
        self.find(Kind::Refused, what);
        false
    }

    /// The acknowledged tasks of an agent.
    pub(crate) fn acknowledged(&self, agent: &str) -> Vec<String> {
        let of_agent =
            |(id, account): &(&String, &Account)| account.acknowledged && self.agent_of(id) == Some(agent);
        self.tasks.iter().filter(of_agent).map(|(id, _)| id.clone()).collect()
    }

    /// The agent whose task this is.
    pub(crate) fn agent_of(&self, id: &str) -> Option<&'static str> {
        Some(self.operation_of(id)?.agent())
    }

    /// Whether a listed task is held for a client of an earlier boot that never learned of it, so that nobody
    /// else will cancel it.
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

    /// Distinct tasks known, acknowledged or met in a list.
    pub(crate) fn tasks(&self) -> usize {
        self.tasks.len()
    }

    /// Tasks that ended failed: allowed after three deaths, and worth a figure.
    pub(crate) fn failed(&self) -> usize {
        let failed =
            |account: &&Account| account.outcome.as_ref().is_some_and(|end| end.state.ends_with("_FAILED"));
        self.tasks.values().filter(failed).count()
    }

    fn operation_of(&self, id: &str) -> Option<Operation> {
        let account = self.tasks.get(id)?;
        Some(self.calls.get(&account.call)?.operation)
    }

    fn accept(&mut self, call: Uuid, task: &str) {
        self.bind(call, task);
        if let Some(account) = self.tasks.get_mut(task)
            && !std::mem::replace(&mut account.acknowledged, true)
            && let Some(called) = self.calls.get(&call)
        {
            *self.tally.acknowledged.entry(called.operation).or_default() += 1;
        }
    }

    /// One call, one task, both ways.
    fn bind(&mut self, call: Uuid, task: &str) {
        if let Some(called) = self.calls.get_mut(&call) {
            let first = called.task.get_or_insert_with(|| task.to_owned());
            if first != task {
                let what = format!("call {call}: made task {first} and task {task}");
                self.find(Kind::Duplicate, what);
            }
        }
        let account = self.tasks.entry(task.to_owned()).or_insert_with(|| Account::of(call));
        if account.call != call {
            let what = format!("task {task}: given to call {} and to call {call}", account.call);
            self.find(Kind::Duplicate, what);
        }
    }

    fn open(&mut self, stream: Uuid, task: &str, seq: Option<u64>) {
        self.tally.streams += 1;
        let Some(seq) = seq else {
            return self.find(Kind::Gap, format!("task {task}: a stream that opens without a number"));
        };
        let floor = self.floors.remove(&stream).unwrap_or_default();
        if seq < floor {
            self.find(
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
            self.find(kind, format!("task {task}: event {seq} after {before}"));
        }
        let Some(account) = self.tasks.get_mut(task) else { return };
        let repeated = account.events.insert(seq, digest).is_some_and(|before| before != digest);
        account.newest = account.newest.max(seq);
        let second_end = ends && account.ended_at.is_some_and(|end| end != seq);
        if ends {
            account.ended_at.get_or_insert(seq);
        }
        let after_end = account.ended_at.is_some_and(|end| account.newest > end);
        if repeated {
            self.find(Kind::Duplicate, format!("task {task}: event {seq} has two contents"));
        }
        if second_end || after_end {
            self.find(Kind::Duplicate, format!("task {task}: event {seq} although the task ended before"));
        }
    }

    fn end(&mut self, task: &str, outcome: &Outcome) {
        let Some(account) = self.tasks.get_mut(task) else { return };
        if let Some(before) = &account.outcome {
            if before != outcome {
                let what = format!("task {task}: ended {before:?}, and later {outcome:?}");
                self.find(Kind::Lost, what);
            }
            return;
        }
        account.outcome = Some(outcome.clone());
        let Some(call) = self.calls.get(&account.call) else { return };
        let deaths = self.boot - call.boot;
        let fault = match (call.operation, outcome.state.as_str()) {
            (_, "TASK_STATE_FAILED") if deaths < DEATHS_TO_FAIL => format!("failed after {deaths} deaths"),
            (_, "TASK_STATE_FAILED") | (Operation::Cancel, "TASK_STATE_CANCELED") => return,
            (Operation::Cancel, state) => format!("was held and ended {state}"),
            (Operation::Write, "TASK_STATE_COMPLETED") => {
                let first = *self.written.entry(call.text.clone()).or_insert(outcome.text);
                if first == outcome.text {
                    return;
                }
                format!("{:?} was written in another way than before", call.text)
            }
            (_, "TASK_STATE_COMPLETED") if outcome.text == text_digest(&call.text) => return,
            (_, "TASK_STATE_COMPLETED") => format!("the echo of {:?} has another text", call.text),
            (_, state) => format!("ended {state}, which nobody asked for"),
        };
        self.find(Kind::Wrong, format!("task {task}: {fault}"));
    }

    /// A missing task is one loss, however often it is looked for.
    fn miss(&mut self, task: &str, how: &str) {
        let known = self.tasks.get_mut(task);
        if known.is_none_or(|account| !std::mem::replace(&mut account.missing, true)) {
            self.find(Kind::Lost, format!("task {task}: {how}"));
        }
    }

    fn find(&mut self, kind: Kind, what: String) {
        self.findings.push(Finding { kind, what });
    }
}

impl Account {
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
