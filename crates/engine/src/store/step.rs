//! The arrows of the state machine: who may take each, and what it does to the row.

use protocol::{TaskState, Timestamp};

use super::Work;

/// The arrows of the state machine. Each says who may take it and what it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Due work is taken by this process.
    Claim,
    /// The holder records something and works on.
    Report {
        /// The holder's fence.
        fence: i64,
    },
    /// The holder ends the turn with a terminal state.
    Finish {
        /// The holder's fence.
        fence: i64,
    },
    /// The holder ends the turn waiting for the client, provided that nothing new was said meanwhile.
    Pause {
        /// The holder's fence.
        fence: i64,
    },
    /// The holder lets go; the work is due again later and the attempt is spent.
    Retry {
        /// The holder's fence.
        fence: i64,
        /// When it is due.
        at: Timestamp,
    },
    /// The holder lets go; the work is due at once as a turn of its own, because something new was said.
    Again {
        /// The holder's fence.
        fence: i64,
        /// When it is due.
        at: Timestamp,
    },
    /// The holder lets go unfinished; the attempt is not spent.
    Release {
        /// The holder's fence.
        fence: i64,
        /// When it is due.
        at: Timestamp,
    },
    /// The client answers a task that waits, and this process takes up the work.
    Resume(Waiting),
    /// The client answers a task that waits; the work itself waits for a free slot.
    Queue {
        /// How the task waited.
        waiting: Waiting,
        /// When it is due.
        at: Timestamp,
    },
    /// The client answers a task that waits, and an overlapping agent has answered already: the turn begins
    /// and ends in one change, held by nobody in between.
    Settle(Waiting),
    /// The client says more to a task that is being worked on.
    Listen,
    /// The client ends an open task.
    Cancel,
    /// The client never answered: the task is over.
    Expire {
        /// The fence of the turn that asked.
        fence: i64,
    },
}

/// How a task waits when a message begins its next turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// What for.
    pub when: When,
    /// The fence of the turn before: the message was decided on that turn's end and on no other.
    pub fence: i64,
}

/// What a task waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Its client's answer.
    Interrupted,
    /// Nothing: it is over, and its client's generation of the protocol opens it again.
    Over,
}

impl Waiting {
    /// A turn that begins because the client said something.
    fn effects(self, free: Effects) -> Effects {
        let (from, turn_step) = match self.when {
            When::Interrupted => (States::INTERRUPTED, 0),
            When::Over => (States::REOPENABLE, 1),
        };
        Effects {
            from,
            fence: Some(self.fence),
            fence_step: 1,
            turn_step,
            unanswered: Counter::Set(0),
            ..free
        }
    }
}

/// How many messages may wait for a task that is being worked on.
pub const MAX_UNANSWERED: i64 = 16;

/// What a step demands of the row and does to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effects {
    /// The states it may start from.
    pub from: States,
    /// The fence it must find.
    pub fence: Option<i64>,
    /// The work must be held by the process that takes the step.
    pub held: bool,
    /// The work must be due and held by nobody.
    pub due: bool,
    /// How many unanswered messages there may be.
    pub max_unanswered: i64,
    /// Added to the fence: earlier holders can write no more.
    pub fence_step: i64,
    /// Added to the number of the turn: the task had ended and is open again.
    pub turn_step: i64,
    /// What becomes of the attempts.
    pub attempts: Counter,
    /// What becomes of the unanswered messages.
    pub unanswered: Counter,
    /// Who runs it afterwards, or when; `None` leaves that as it is.
    pub work: Option<Work>,
}

/// What a step does to a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Adds to it.
    Add(i64),
    /// Sets it.
    Set(i64),
}

/// A set of states, one bit each by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct States(pub i64);

impl States {
    const ACTIVE: Self = Self::of(&[TaskState::Submitted, TaskState::Working]);
    const INTERRUPTED: Self = Self::of(&[TaskState::InputRequired, TaskState::AuthRequired]);
    const REOPENABLE: Self = Self::of(&[TaskState::Completed, TaskState::Failed]);
    const OPEN: Self = Self(Self::ACTIVE.0 | Self::INTERRUPTED.0);

    const fn of(states: &[TaskState]) -> Self {
        let mut bits = 0;
        let mut at = 0;
        while at < states.len() {
            bits |= 1 << Self::number(states[at]);
            at += 1;
        }
        Self(bits)
    }

    // `TaskState::number` in a form that constants can use; a test holds the two together.
    const fn number(state: TaskState) -> u8 {
        match state {
            TaskState::Submitted => 1,
            TaskState::Working => 2,
            TaskState::Completed => 3,
            TaskState::Failed => 4,
            TaskState::InputRequired => 6,
            TaskState::AuthRequired => 8,
            _ => 63,
        }
    }

    /// Whether a state is in the set.
    pub fn contains(self, state: TaskState) -> bool {
        self.0 >> state.number() & 1 == 1
    }
}

impl Step {
    /// The one table of guards and effects.
    pub fn effects(self) -> Effects {
        let free = Effects {
            from: States::OPEN,
            fence: None,
            held: false,
            due: false,
            max_unanswered: i64::MAX,
            fence_step: 0,
            turn_step: 0,
            attempts: Counter::Add(0),
            unanswered: Counter::Add(0),
            work: None,
        };
        let held = |fence| Effects { from: States::ACTIVE, fence: Some(fence), held: true, ..free };
        match self {
            Self::Claim => Effects {
                from: States::ACTIVE,
                due: true,
                fence_step: 1,
                attempts: Counter::Add(1),
                work: Some(Work::Held),
                ..free
            },
            Self::Report { fence } => held(fence),
            Self::Finish { fence } => Effects { work: Some(Work::Idle), ..held(fence) },
            Self::Pause { fence } => Effects { max_unanswered: 0, work: Some(Work::Idle), ..held(fence) },
            Self::Retry { fence, at } => Effects { work: Some(Work::Due(at)), ..held(fence) },
            Self::Again { fence, at } => Effects {
                attempts: Counter::Set(0),
                unanswered: Counter::Set(0),
                work: Some(Work::Due(at)),
                ..held(fence)
            },
            Self::Release { fence, at } => {
                Effects { attempts: Counter::Add(-1), work: Some(Work::Due(at)), ..held(fence) }
            }
            Self::Resume(waiting) => {
                Effects { attempts: Counter::Set(1), work: Some(Work::Held), ..waiting.effects(free) }
            }
            Self::Queue { waiting, at } => {
                Effects { attempts: Counter::Set(0), work: Some(Work::Due(at)), ..waiting.effects(free) }
            }
            Self::Settle(waiting) => {
                Effects { attempts: Counter::Set(1), work: Some(Work::Idle), ..waiting.effects(free) }
            }
            Self::Listen => Effects {
                from: States::ACTIVE,
                max_unanswered: MAX_UNANSWERED - 1,
                unanswered: Counter::Add(1),
                ..free
            },
            Self::Expire { fence } => Effects {
                from: States::INTERRUPTED,
                fence: Some(fence),
                fence_step: 1,
                work: Some(Work::Idle),
                ..free
            },
            Self::Cancel => Effects { fence_step: 1, work: Some(Work::Idle), ..free },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sets_of_states_are_what_the_model_says() {
        for state in TaskState::ALL {
            assert_eq!(States::INTERRUPTED.contains(state), state.is_interrupted(), "{state:?}");
            let open = !state.is_terminal() && state != TaskState::Unspecified;
            assert_eq!(States::OPEN.contains(state), open, "{state:?}");
        }
    }

    #[test]
    fn only_a_reopening_starts_from_a_terminal_state() {
        let at = Timestamp::from_millis(0);
        let interrupted = Waiting { when: When::Interrupted, fence: 1 };
        let steps = [
            Step::Claim,
            Step::Report { fence: 1 },
            Step::Finish { fence: 1 },
            Step::Pause { fence: 1 },
            Step::Retry { fence: 1, at },
            Step::Again { fence: 1, at },
            Step::Release { fence: 1, at },
            Step::Resume(interrupted),
            Step::Queue { waiting: interrupted, at },
            Step::Settle(interrupted),
            Step::Listen,
            Step::Cancel,
            Step::Expire { fence: 1 },
        ];
        for step in steps {
            for state in TaskState::ALL.into_iter().filter(|state| state.is_terminal()) {
                assert!(!step.effects().from.contains(state), "{step:?} from {state:?}");
            }
        }
        let over = Waiting { when: When::Over, fence: 1 };
        for step in [Step::Resume(over), Step::Queue { waiting: over, at }, Step::Settle(over)] {
            for state in TaskState::ALL {
                let may = matches!(state, TaskState::Completed | TaskState::Failed);
                assert_eq!(step.effects().from.contains(state), may, "{step:?} from {state:?}");
            }
        }
    }
}
