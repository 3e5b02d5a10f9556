//! What a run knows about the journal: what has to be deleted at the end of the turn, and whether an interrupted turn may
//! run again.

use super::{PublicIds, Reason};
use crate::store::{JournalChange, JournalStep, StepOwner};
use protocol::Message;

/// What the ids of steps begin with that must not be interrupted by a crash ([`Turn::guard`](crate::Turn::guard)).
pub(crate) const GUARD_PREFIX: &str = "a2ad:guard:";

/// Whether a change ends the turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TurnEnd {
    /// It does not.
    Open,
    /// The task waits for its client.
    Interrupted,
    /// The task ends too.
    Terminal,
}

/// The steps that are recorded for a turn and its task.
#[derive(Clone, Debug, Default)]
pub struct TurnJournal {
    /// The store has steps of the turn.
    has_turn_steps: bool,
    /// The store has steps of the task: calls of skills.
    has_task_steps: bool,
    /// A step that the agent has begun is recorded.
    has_steps: bool,
    /// Steps that have begun and not finished, in order.
    unfinished: Vec<String>,
    /// The guarded work that has begun and not ended.
    guarded: Vec<String>,
}

impl TurnJournal {
    /// The journal of a turn with what earlier attempts have recorded.
    pub fn new(steps: &[JournalStep]) -> Self {
        let mut journal = Self::default();
        steps.iter().for_each(|step| journal.add(step));
        journal
    }

    /// Adds a step that is recorded.
    fn add(&mut self, step: &JournalStep) {
        match step.owner {
            StepOwner::Turn(_) => self.has_turn_steps = true,
            StepOwner::Task => {
                (self.has_task_steps, self.has_steps) = (true, true);
                // Whether a called skill may run again is decided by its own policy.
                return;
            }
        }
        // Guarded work is no part of what an agent does, so it does not make a turn one of steps.
        let guarded = step.id.strip_prefix(GUARD_PREFIX);
        self.has_steps |= guarded.is_none();
        let (begun, id) = guarded.map_or((&mut self.unfinished, &*step.id), |id| (&mut self.guarded, id));
        begun.retain(|begun| begun != id);
        if step.output.is_none() {
            begun.push(id.to_owned());
        }
    }

    /// What a change of the run does to the journal: `written` is what the agent has recorded.
    pub(super) fn change(&mut self, written: JournalChange, end: TurnEnd) -> JournalChange {
        match end {
            TurnEnd::Open => {
                written.steps().iter().for_each(|step| self.add(step));
                written
            }
            TurnEnd::Interrupted => {
                let is_of_task = |step: &&JournalStep| step.owner == StepOwner::Task;
                let steps: Vec<_> = written.steps().iter().filter(is_of_task).cloned().collect();
                let changes = self.has_turn_steps || !steps.is_empty();
                if changes { JournalChange::EndTurn(steps) } else { JournalChange::Keep }
            }
            TurnEnd::Terminal if self.has_turn_steps || self.has_task_steps => JournalChange::Clear,
            TurnEnd::Terminal => JournalChange::Keep,
        }
    }

    /// Of a turn whose process has crashed: the guarded work that may have been the cause.
    pub fn crashed_guard(&self) -> Option<&str> {
        self.guarded.first().map(String::as_str)
    }

    /// Of a turn with [`OnCrash::Fail`](crate::OnCrash::Fail) whose process has stopped: the message of the failed task;
    /// `None` if every step that began has finished, so that the turn may run again. A turn without steps is one step.
    pub fn interruption(&self, names: &PublicIds) -> Option<Message> {
        let text = match self.unfinished.first() {
            Some(id) => {
                format!("interrupted: the server stopped while step {id:?} ran, and it must not run twice")
            }
            None if self.has_steps => return None,
            None => "interrupted: the server stopped while this ran, and it must not run twice".into(),
        };
        Some(names.explain(text, Reason::Interrupted, None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(id: &str, output: Option<&'static str>) -> JournalStep {
        JournalStep { owner: StepOwner::Turn(1), id: id.into(), output: output.map(Into::into) }
    }

    #[test]
    fn interrupted_turn_may_run_again_only_when_all_its_steps_have_finished() {
        let names = PublicIds { task: "t".into(), context: "c".into() };
        let text = |journal: &TurnJournal| journal.interruption(&names).map(|message| message.text());
        let whole_turn = "interrupted: the server stopped while this ran, and it must not run twice";
        assert_eq!(text(&TurnJournal::new(&[])).as_deref(), Some(whole_turn));
        let mut journal = TurnJournal::new(&[step("a", Some("1")), step("b", None)]);
        let in_step = "interrupted: the server stopped while step \"b\" ran, and it must not run twice";
        assert_eq!(text(&journal).as_deref(), Some(in_step));
        let written = JournalChange::Write(vec![step("b", Some("2"))]);
        assert_eq!(journal.change(written.clone(), TurnEnd::Open), written);
        assert_eq!(text(&journal), None);
        // A called skill decides by its own policy whether it runs again.
        let called = JournalStep { owner: StepOwner::Task, ..step("call:fx", None) };
        assert_eq!(text(&TurnJournal::new(&[called])), None);
    }

    #[test]
    fn guarded_work_is_known_until_it_ends_and_does_not_make_a_turn_of_steps() {
        let names = PublicIds { task: "t".into(), context: "c".into() };
        let mut journal = TurnJournal::new(&[step("a2ad:guard:check", None)]);
        assert_eq!(journal.crashed_guard(), Some("check"));
        journal.change(JournalChange::Write(vec![step("a2ad:guard:check", Some(""))]), TurnEnd::Open);
        assert_eq!(journal.crashed_guard(), None);
        assert!(journal.interruption(&names).is_some(), "the turn after it must not run twice");
    }

    #[test]
    fn end_of_a_turn_clears_its_steps_and_end_of_the_task_all() {
        let called_step = || JournalStep { owner: StepOwner::Task, ..step("call:fx", Some("1")) };
        let written = || JournalChange::Write(vec![step("a", Some("1"))]);
        let called = || JournalChange::Write(vec![called_step()]);
        let mut journal = TurnJournal::default();
        assert_eq!(journal.clone().change(written(), TurnEnd::Terminal), JournalChange::Keep);
        assert_eq!(journal.clone().change(written(), TurnEnd::Interrupted), JournalChange::Keep);
        let both = JournalChange::Write(vec![step("a", Some("1")), called_step()]);
        let kept = JournalChange::EndTurn(vec![called_step()]);
        assert_eq!(journal.clone().change(both, TurnEnd::Interrupted), kept);
        journal.change(called(), TurnEnd::Open);
        let none = JournalChange::default;
        assert_eq!(journal.clone().change(none(), TurnEnd::Interrupted), JournalChange::Keep);
        assert_eq!(journal.clone().change(none(), TurnEnd::Terminal), JournalChange::Clear);
        journal.change(written(), TurnEnd::Open);
        assert_eq!(journal.change(none(), TurnEnd::Interrupted), JournalChange::EndTurn(Vec::new()));
    }
}
