//! The transitions of the task state machine: their guards and their effects on the row.

use protocol::{TaskState, Timestamp};

use super::WorkState;
use crate::access::principal_caps::Demand;

/// A transition of the task state machine. "Holder" is the process that holds the task's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// This process claims due work.
    Claim {
        /// The run starts on probation, because the task was running when processes crashed.
        probation: bool,
    },
    /// The holder's run has survived its probation.
    EndProbation {
        /// The holder's fencing token.
        fence: i64,
    },
    /// The holder records progress and continues.
    Report {
        /// The holder's fencing token.
        fence: i64,
    },
    /// The holder ends the turn with a terminal state.
    Finish {
        /// The holder's fencing token.
        fence: i64,
    },
    /// The holder ends the turn in an interrupted state, unless the client has sent another message
    /// meanwhile.
    Pause {
        /// The holder's fencing token.
        fence: i64,
    },
    /// The holder schedules a retry; the attempt is spent.
    Retry {
        /// The holder's fencing token.
        fence: i64,
        /// When the work is due.
        at: Timestamp,
    },
    /// The holder ends the turn and the next one is due at once, because the client has sent another message.
    Requeue {
        /// The holder's fencing token.
        fence: i64,
        /// When the work is due.
        at: Timestamp,
    },
    /// The holder releases unfinished work at shutdown; the attempt is not spent.
    Release {
        /// The holder's fencing token.
        fence: i64,
        /// When the work is due.
        at: Timestamp,
    },
    /// The client continues a task that waits, and this process runs the turn.
    Resume(TurnPrecondition),
    /// The client continues a task that waits; the turn is queued because no slot is free.
    Queue {
        /// The state the task must be in.
        waiting: TurnPrecondition,
        /// When the work is due.
        at: Timestamp,
    },
    /// The client continues a task that waits, and an overlapping agent has already finished: the turn starts
    /// and ends in one change and is never held.
    Settle(TurnPrecondition),
    /// The client sends a message to a working task.
    QueueMessage,
    /// The client cancels an open task.
    Cancel,
    /// The client did not reply in time, or the task's deadline has passed while no process ran it: the task fails.
    Expire {
        /// Fencing token of the turn that waits.
        fence: i64,
    },
}

/// The state a task must be in when a message starts its next turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnPrecondition {
    /// Interrupted or terminal.
    pub when: StartState,
    /// Fencing token of the previous turn: the message is valid only for the end of that turn.
    pub fence: i64,
}

/// From which kind of state a message starts the next turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartState {
    /// Interrupted: the task waits for its client.
    Interrupted,
    /// Terminal: a dialect that allows it reopens the task.
    Terminal,
}

impl TurnPrecondition {
    /// Effects common to the steps that start a turn with a client message.
    fn effects(self, free: Effects) -> Effects {
        let (from, turn_step) = match self.when {
            StartState::Interrupted => (States::INTERRUPTED, 0),
            StartState::Terminal => (States::REOPENABLE, 1),
        };
        Effects {
            from,
            fence: Some(self.fence),
            fence_step: 1,
            turn_step,
            begins_turn: true,
            unanswered: Counter::Set(0),
            ..free
        }
    }
}

/// Maximum number of messages queued for a working task.
pub const MAX_UNANSWERED: i64 = 16;

/// Guards on the row and effects on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Effects {
    /// Guard: allowed states.
    pub from: States,
    /// Guard: the expected fencing token.
    pub fence: Option<i64>,
    /// Guard: the work is held by the committing process.
    pub held: bool,
    /// Guard: the work is due and not held.
    pub due: bool,
    /// Guard: maximum number of queued messages.
    pub max_unanswered: i64,
    /// Added to the fencing token; locks out earlier holders.
    pub fence_step: i64,
    /// Added to the turn number: 1 when a terminal task is reopened.
    pub turn_step: i64,
    /// A turn begins: crashes are counted anew.
    pub begins_turn: bool,
    /// Whether the run is on probation; `None` leaves it unchanged. It ends in any case when the work is no longer held.
    pub probation: Option<bool>,
    /// Effect on the number of attempts. Setting it also sets the number of crashes without progress to zero.
    pub attempts: Counter,
    /// Effect on the number of queued messages.
    pub unanswered: Counter,
    /// The new work state; `None` leaves it unchanged.
    pub work: Option<WorkState>,
}

/// Effect on a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter {
    /// Adds this.
    Add(i64),
    /// Sets this value.
    Set(i64),
}

/// A set of states; bit `n` is the state with number `n`.
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

    // `TaskState::number` as a `const fn`; a test keeps the two equal.
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

    /// Membership test.
    pub fn contains(self, state: TaskState) -> bool {
        self.0 >> state.number() & 1 == 1
    }
}

impl Step {
    /// What a client's message needs of the caps of its principal; `None` for steps that record no message.
    pub fn demand(self) -> Option<Demand> {
        match self {
            Self::Resume(waiting) | Self::Queue { waiting, .. } | Self::Settle(waiting) => match waiting.when
            {
                StartState::Interrupted => Some(Demand::Message),
                StartState::Terminal => Some(Demand::Task),
            },
            Self::QueueMessage => Some(Demand::Message),
            Self::Claim { .. }
            | Self::EndProbation { .. }
            | Self::Report { .. }
            | Self::Finish { .. }
            | Self::Pause { .. }
            | Self::Retry { .. }
            | Self::Requeue { .. }
            | Self::Release { .. }
            | Self::Cancel
            | Self::Expire { .. } => None,
        }
    }

    /// The only table of guards and effects; all stores use it.
    pub fn effects(self) -> Effects {
        let free = Effects {
            from: States::OPEN,
            fence: None,
            held: false,
            due: false,
            max_unanswered: i64::MAX,
            fence_step: 0,
            turn_step: 0,
            begins_turn: false,
            probation: None,
            attempts: Counter::Add(0),
            unanswered: Counter::Add(0),
            work: None,
        };
        let held = |fence| Effects { from: States::ACTIVE, fence: Some(fence), held: true, ..free };
        match self {
            Self::Claim { probation } => Effects {
                probation: probation.then_some(true),
                from: States::ACTIVE,
                due: true,
                fence_step: 1,
                attempts: Counter::Add(1),
                work: Some(WorkState::Held),
                ..free
            },
            Self::Report { fence } => held(fence),
            Self::EndProbation { fence } => Effects { probation: Some(false), ..held(fence) },
            Self::Finish { fence } => Effects { work: Some(WorkState::Idle), ..held(fence) },
            Self::Pause { fence } => {
                Effects { max_unanswered: 0, work: Some(WorkState::Idle), ..held(fence) }
            }
            Self::Retry { fence, at } => Effects { work: Some(WorkState::Due(at)), ..held(fence) },
            Self::Requeue { fence, at } => Effects {
                begins_turn: true,
                attempts: Counter::Set(0),
                unanswered: Counter::Set(0),
                work: Some(WorkState::Due(at)),
                ..held(fence)
            },
            Self::Release { fence, at } => {
                Effects { attempts: Counter::Add(-1), work: Some(WorkState::Due(at)), ..held(fence) }
            }
            Self::Resume(waiting) => {
                Effects { attempts: Counter::Set(1), work: Some(WorkState::Held), ..waiting.effects(free) }
            }
            Self::Queue { waiting, at } => {
                Effects { attempts: Counter::Set(0), work: Some(WorkState::Due(at)), ..waiting.effects(free) }
            }
            Self::Settle(waiting) => {
                Effects { attempts: Counter::Set(1), work: Some(WorkState::Idle), ..waiting.effects(free) }
            }
            Self::QueueMessage => Effects {
                from: States::ACTIVE,
                max_unanswered: MAX_UNANSWERED - 1,
                unanswered: Counter::Add(1),
                ..free
            },
            Self::Expire { fence } => {
                Effects { fence: Some(fence), fence_step: 1, work: Some(WorkState::Idle), ..free }
            }
            Self::Cancel => Effects { fence_step: 1, work: Some(WorkState::Idle), ..free },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn state_sets_agree_with_the_model() {
        for state in TaskState::ALL {
            assert_eq!(States::INTERRUPTED.contains(state), state.is_interrupted(), "{state:?}");
            let open = !state.is_terminal() && state != TaskState::Unspecified;
            assert_eq!(States::OPEN.contains(state), open, "{state:?}");
        }
    }

    #[test]
    fn only_reopening_starts_from_a_terminal_state() {
        let at = Timestamp::from_millis(0);
        let interrupted = TurnPrecondition { when: StartState::Interrupted, fence: 1 };
        let steps = [
            Step::Claim { probation: false },
            Step::Claim { probation: true },
            Step::EndProbation { fence: 1 },
            Step::Report { fence: 1 },
            Step::Finish { fence: 1 },
            Step::Pause { fence: 1 },
            Step::Retry { fence: 1, at },
            Step::Requeue { fence: 1, at },
            Step::Release { fence: 1, at },
            Step::Resume(interrupted),
            Step::Queue { waiting: interrupted, at },
            Step::Settle(interrupted),
            Step::QueueMessage,
            Step::Cancel,
            Step::Expire { fence: 1 },
        ];
        for step in steps {
            for state in TaskState::ALL.into_iter().filter(|state| state.is_terminal()) {
                assert!(!step.effects().from.contains(state), "{step:?} from {state:?}");
            }
        }
        let over = TurnPrecondition { when: StartState::Terminal, fence: 1 };
        for step in [Step::Resume(over), Step::Queue { waiting: over, at }, Step::Settle(over)] {
            for state in TaskState::ALL {
                let may = matches!(state, TaskState::Completed | TaskState::Failed);
                assert_eq!(step.effects().from.contains(state), may, "{step:?} from {state:?}");
            }
        }
    }
}
