//! A second implementation of the step table, on plain values instead of SQL: the expected row after each step.

use std::collections::BTreeMap;

use bytes::Bytes;
use engine::{
    log::Seq,
    store::{
        Accept, Advance, Committed, Conflict, Counter, Effects, JournalChange, JournalStep, SavedState, Step,
        StepOwner, Visibility, WorkState,
    },
};
use protocol::{TaskState, Timestamp};

/// The outputs of steps, by turn and step id.
pub(crate) type Journal = BTreeMap<(StepOwner, String), Option<Bytes>>;

/// Whether a run is on probation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Probation {
    No,
    On,
    /// Its process crashed meanwhile.
    Died,
}

/// All columns of a task's row, and what is stored beside it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) state: TaskState,
    pub(crate) status_at: Timestamp,
    pub(crate) turn: i64,
    pub(crate) last_seq: Seq,
    pub(crate) size: u64,
    pub(crate) progress_size: u64,
    pub(crate) deadline: Option<Timestamp>,
    pub(crate) fence: i64,
    pub(crate) attempt: i64,
    pub(crate) deaths: i64,
    pub(crate) crashes: i64,
    pub(crate) probation: Probation,
    pub(crate) unanswered: i64,
    pub(crate) visibility: Visibility,
    pub(crate) work: WorkState,
    pub(crate) saved: Option<SavedState>,
    pub(crate) journal: Journal,
}

impl Row {
    pub(crate) fn accepted(accept: &Accept) -> Self {
        let ran = i64::from(!matches!(accept.work, WorkState::Due(_)));
        Self {
            state: accept.state,
            status_at: accept.status_at,
            turn: 1,
            last_seq: accept.log.len(),
            size: accept.log.segment().len() as u64,
            progress_size: accept.progress_size,
            deadline: accept.deadline,
            fence: ran,
            attempt: ran,
            deaths: 0,
            crashes: 0,
            probation: Probation::No,
            unanswered: 0,
            visibility: accept.visibility,
            work: accept.work,
            saved: accept.saved.clone(),
            journal: after_journal_change(&Journal::new(), &accept.journal),
        }
    }

    /// The row after a step, or the conflict that the rejected step gets.
    pub(crate) fn after(&self, advance: &Advance) -> Result<Self, Conflict> {
        let effects = advance.step.effects();
        let Effects { from, fence, held, due, max_unanswered, .. } = effects;
        let Effects { fence_step, turn_step, attempts, unanswered, work, begins_turn, probation, .. } =
            effects;
        let allowed = from.contains(self.state)
            && fence.is_none_or(|fence| fence == self.fence)
            && (!held || self.work == WorkState::Held)
            && (!due || matches!(self.work, WorkState::Due(_)))
            && self.unanswered <= max_unanswered;
        if !allowed {
            return Err(Conflict { state: Some(self.state), fence: self.fence, unanswered: self.unanswered });
        }
        let (state, status_at) = advance.status.unwrap_or((self.state, self.status_at));
        let work = work.unwrap_or(self.work);
        let repeats = matches!(advance.step, Step::Retry { .. } | Step::Release { .. }) && !advance.progress;
        let probation = match probation {
            // A crash on probation counts until the next attempt.
            _ if repeats && self.probation == Probation::Died => Probation::Died,
            _ if advance.progress || work != WorkState::Held && effects.work.is_some() => Probation::No,
            Some(true) if self.probation == Probation::No => Probation::On,
            Some(false) => Probation::No,
            Some(true) | None => self.probation,
        };
        // Resetting the attempts resets the number of crashes without progress too.
        let (attempt, deaths) = match attempts {
            _ if advance.progress => (1, 0),
            Counter::Set(to) => (to, 0),
            Counter::Add(by) => (self.attempt + by, self.deaths),
        };
        Ok(Self {
            state,
            status_at,
            turn: self.turn + turn_step,
            last_seq: self.last_seq + advance.log.len(),
            size: self.size + advance.log.segment().len() as u64,
            progress_size: self.progress_size + advance.progress_size,
            // A reopened task has that of its new turn only.
            deadline: if turn_step > 0 { advance.deadline } else { advance.deadline.or(self.deadline) },
            fence: self.fence + fence_step,
            attempt,
            deaths,
            crashes: if begins_turn { 0 } else { self.crashes },
            probation,
            unanswered: count(unanswered, self.unanswered),
            visibility: advance.visibility.unwrap_or(self.visibility),
            work,
            saved: advance.saved.clone().or_else(|| self.saved.clone()),
            journal: after_journal_change(&self.journal, &advance.journal),
        })
    }

    /// The row that the next process finds: work held by a dead process is due at once.
    pub(crate) fn after_crash(&self, now: Timestamp) -> Self {
        match self.work {
            WorkState::Held => Self {
                work: WorkState::Due(now),
                deaths: self.deaths + 1,
                crashes: self.crashes + 1,
                probation: match self.probation {
                    Probation::No => Probation::No,
                    Probation::On | Probation::Died => Probation::Died,
                },
                ..self.clone()
            },
            WorkState::Idle | WorkState::Due(_) => self.clone(),
        }
    }

    pub(crate) fn committed(&self) -> Committed {
        let size = self.size - self.progress_size;
        Committed { last_seq: self.last_seq, fence: self.fence, attempt: self.attempt, size }
    }

    /// When the task fails, if it is open then.
    pub(crate) fn deadline_if_open(&self) -> Option<Timestamp> {
        self.deadline.filter(|_| !self.state.is_terminal())
    }

    /// When the work is due, if no process holds it.
    pub(crate) fn due_at(&self) -> Option<Timestamp> {
        match self.work {
            WorkState::Due(at) => Some(at),
            WorkState::Idle | WorkState::Held => None,
        }
    }
}

fn after_journal_change(journal: &Journal, change: &JournalChange) -> Journal {
    let mut journal = journal.clone();
    match change {
        JournalChange::Keep | JournalChange::Write(_) => {}
        JournalChange::Clear => journal.clear(),
        JournalChange::EndTurn(_) => journal.retain(|(owner, _), _| *owner == StepOwner::Task),
    }
    for JournalStep { owner, id, output } in change.steps() {
        journal.insert((*owner, id.clone()), output.clone());
    }
    journal
}

fn count(counter: Counter, number: i64) -> i64 {
    match counter {
        Counter::Add(by) => number + by,
        Counter::Set(to) => to,
    }
}
