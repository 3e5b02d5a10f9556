//! A second implementation of the step table, on plain values instead of SQL: the expected row after each step.

use bytes::Bytes;
use engine::{
    log::Seq,
    store::{Accept, Advance, Committed, Conflict, Counter, Effects, Visibility, WorkState},
};
use protocol::{TaskState, Timestamp};

/// All columns of a task's row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub(crate) state: TaskState,
    pub(crate) status_at: Timestamp,
    pub(crate) turn: i64,
    pub(crate) last_seq: Seq,
    pub(crate) size: u64,
    pub(crate) fence: i64,
    pub(crate) attempt: i64,
    pub(crate) deaths: i64,
    pub(crate) unanswered: i64,
    pub(crate) visibility: Visibility,
    pub(crate) work: WorkState,
    pub(crate) saved: Option<Bytes>,
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
            fence: ran,
            attempt: ran,
            deaths: 0,
            unanswered: 0,
            visibility: accept.visibility,
            work: accept.work,
            saved: accept.saved.clone(),
        }
    }

    /// The row after a step, or the conflict that the rejected step gets.
    pub(crate) fn after(&self, advance: &Advance) -> Result<Self, Conflict> {
        let effects = advance.step.effects();
        let Effects { from, fence, held, due, max_unanswered, .. } = effects;
        let Effects { fence_step, turn_step, attempts, unanswered, work, .. } = effects;
        let allowed = from.contains(self.state)
            && fence.is_none_or(|fence| fence == self.fence)
            && (!held || self.work == WorkState::Held)
            && (!due || matches!(self.work, WorkState::Due(_)))
            && self.unanswered <= max_unanswered;
        if !allowed {
            return Err(Conflict { state: Some(self.state), fence: self.fence, unanswered: self.unanswered });
        }
        let (state, status_at) = advance.status.unwrap_or((self.state, self.status_at));
        Ok(Self {
            state,
            status_at,
            turn: self.turn + turn_step,
            last_seq: self.last_seq + advance.log.len(),
            size: self.size + advance.log.segment().len() as u64,
            fence: self.fence + fence_step,
            attempt: count(attempts, self.attempt),
            // Resetting the attempts resets the crash count too.
            deaths: if matches!(attempts, Counter::Set(_)) { 0 } else { self.deaths },
            unanswered: count(unanswered, self.unanswered),
            visibility: advance.visibility.unwrap_or(self.visibility),
            work: work.unwrap_or(self.work),
            saved: advance.saved.clone().or_else(|| self.saved.clone()),
        })
    }

    /// The row that the next process finds: work held by a dead process is due at once.
    pub(crate) fn after_crash(&self, now: Timestamp) -> Self {
        match self.work {
            WorkState::Held => Self { work: WorkState::Due(now), deaths: self.deaths + 1, ..self.clone() },
            WorkState::Idle | WorkState::Due(_) => self.clone(),
        }
    }

    pub(crate) fn committed(&self) -> Committed {
        Committed { last_seq: self.last_seq, fence: self.fence, attempt: self.attempt, size: self.size }
    }

    /// When the work is due, if no process holds it.
    pub(crate) fn due_at(&self) -> Option<Timestamp> {
        match self.work {
            WorkState::Due(at) => Some(at),
            WorkState::Idle | WorkState::Held => None,
        }
    }
}

fn count(counter: Counter, number: i64) -> i64 {
    match counter {
        Counter::Add(by) => number + by,
        Counter::Set(to) => to,
    }
}
