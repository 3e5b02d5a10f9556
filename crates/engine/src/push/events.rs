//! Which entries of a log a webhook is notified about (pure).

use protocol::TaskState;

use crate::log::{Kind, Seq};

/// The events of a task that a webhook is notified about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PushEvents(u8);

impl PushEvents {
    /// Changes of the state.
    pub const STATUS: Self = Self(1);
    /// Status updates that leave the state as it is.
    pub const PROGRESS: Self = Self(2);
    /// Updates of artifacts.
    pub const ARTIFACT: Self = Self(4);

    /// The number used in the store.
    pub fn number(self) -> i64 {
        self.0.into()
    }

    /// The events with this number; bits that mean nothing are dropped.
    pub fn from_number(number: i64) -> Self {
        Self(u8::try_from(number & 7).unwrap_or_default())
    }

    /// Both.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether some of these events are among those.
    pub fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The events in a series of entries of a task that was in this state before.
    pub fn among(kinds: impl IntoIterator<Item = Kind>, before: Option<TaskState>) -> Self {
        let mut state = before;
        let mut events = Self(0);
        for kind in kinds {
            events = events.and(Self::of(kind, &mut state));
        }
        events
    }

    /// The event that an entry is; `state` is the state before it and is set to that after it.
    fn of(kind: Kind, state: &mut Option<TaskState>) -> Self {
        match kind {
            Kind::Status(new) if state.replace(new) == Some(new) => Self::PROGRESS,
            Kind::Status(_) => Self::STATUS,
            Kind::Artifact => Self::ARTIFACT,
            // The reply was a message: there is no task to notify about.
            Kind::Message => Self(0),
        }
    }
}

/// State changes only.
impl Default for PushEvents {
    fn default() -> Self {
        Self::STATUS
    }
}

/// The notification to send next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    pub(super) seq: Seq,
    /// The notification is the entry itself, if the dialect knows that, and not the task.
    pub(super) is_event: bool,
}

/// Chooses from the entries after the last handled one. A status that is neither terminal nor interrupted is superseded
/// by a later status; everything else is sent in the order of the log.
#[derive(Debug)]
pub(super) struct Choice {
    wanted: PushEvents,
    state: Option<TaskState>,
    first: Option<Chosen>,
    /// A status that a later one would supersede, with what follows it.
    pending: Option<Chosen>,
}

impl Choice {
    /// `state` is that before the first entry.
    pub(super) fn new(wanted: PushEvents, state: Option<TaskState>) -> Self {
        Self { wanted, state, first: None, pending: None }
    }

    /// Adds the next entry.
    pub(super) fn add(&mut self, seq: Seq, kind: Kind) {
        let event = PushEvents::of(kind, &mut self.state);
        if !event.intersects(self.wanted) {
            return;
        }
        let chosen = Chosen { seq, is_event: event != PushEvents::STATUS };
        match kind {
            Kind::Status(state) => {
                self.pending = None;
                if state.is_settled() {
                    self.first.get_or_insert(chosen);
                } else {
                    self.pending = self.first.is_none().then_some(chosen);
                }
            }
            Kind::Artifact | Kind::Message => {
                self.first.get_or_insert(chosen);
            }
        }
    }

    /// Whether no later entry can change the choice.
    pub(super) fn is_final(&self) -> bool {
        self.first.is_some() && self.pending.is_none()
    }

    /// The notification to send.
    pub(super) fn chosen(self) -> Option<Chosen> {
        // A pending status precedes what was found after it.
        self.pending.or(self.first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUBMITTED: Kind = Kind::Status(TaskState::Submitted);
    const WORKING: Kind = Kind::Status(TaskState::Working);
    const ASKING: Kind = Kind::Status(TaskState::InputRequired);
    const COMPLETED: Kind = Kind::Status(TaskState::Completed);

    fn next(wanted: PushEvents, before: Option<TaskState>, entries: &[Kind]) -> Option<Seq> {
        let mut choice = Choice::new(wanted, before);
        for (seq, kind) in (1..).zip(entries) {
            choice.add(seq, *kind);
            if choice.is_final() {
                break;
            }
        }
        choice.chosen().map(|chosen| chosen.seq)
    }

    #[test]
    fn later_statuses_supersede_earlier_ones_but_not_settled_ones() {
        let status = PushEvents::STATUS;
        assert_eq!(next(status, None, &[]), None);
        assert_eq!(next(status, None, &[SUBMITTED]), Some(1));
        assert_eq!(next(status, None, &[SUBMITTED, WORKING]), Some(2));
        assert_eq!(next(status, None, &[SUBMITTED, WORKING, Kind::Artifact, COMPLETED]), Some(4));
        assert_eq!(next(status, None, &[SUBMITTED, ASKING, WORKING, COMPLETED]), Some(2));
        assert_eq!(next(status, Some(TaskState::InputRequired), &[WORKING, COMPLETED]), Some(2));
    }

    #[test]
    fn the_same_state_again_is_progress() {
        let working = Some(TaskState::Working);
        assert_eq!(next(PushEvents::STATUS, working, &[WORKING, WORKING]), None);
        let both = PushEvents::STATUS.and(PushEvents::PROGRESS);
        assert_eq!(next(both, working, &[WORKING, WORKING]), Some(2));
    }

    #[test]
    fn artifacts_are_sent_in_order_with_statuses() {
        let all = PushEvents::STATUS.and(PushEvents::ARTIFACT);
        assert_eq!(next(all, None, &[SUBMITTED, WORKING, Kind::Artifact]), Some(2));
        assert_eq!(next(all, None, &[SUBMITTED, WORKING, Kind::Artifact, COMPLETED]), Some(3));
        assert_eq!(next(all, Some(TaskState::Working), &[Kind::Artifact, COMPLETED]), Some(1));
        assert_eq!(next(all, Some(TaskState::Working), &[Kind::Artifact, Kind::Artifact]), Some(1));
    }

    #[test]
    fn a_bare_reply_is_no_event() {
        assert_eq!(next(PushEvents::from_number(7), None, &[Kind::Message]), None);
    }

    #[test]
    fn events_among_entries_depend_on_the_state_before() {
        let working = Some(TaskState::Working);
        assert_eq!(PushEvents::among([WORKING], working), PushEvents::PROGRESS);
        let all = PushEvents::from_number(7);
        assert_eq!(PushEvents::among([WORKING, Kind::Artifact, COMPLETED], working), all);
    }
}
