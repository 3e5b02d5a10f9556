//! What the engine asks of a database.
//!
//! Writes are finished [`Change`]s, each one transaction's worth for one task, judged and numbered where they
//! are committed. Reads are snapshots inside a [`Scope`]. A change is either whole or not there; what guards
//! it stands in [`Step::effects`], one row per arrow of the state machine, and nowhere else.

use std::{
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use protocol::{ContextId, TaskId, TaskState, Timestamp};
use tokio::sync::oneshot;

use crate::{
    error,
    ids::{Ids, Tag, TaskNo},
    log::{Corrupt, Entry, Log, Seq},
    scope::Scope,
};

/// Keeps the engine's facts.
pub trait Store: Send + Sync + 'static {
    /// Hands a change over. It is durable when the receipt says so, not before; dropping the receipt does not
    /// take the change back.
    fn commit(&self, change: Change) -> Receipt;

    /// A task of this scope with its whole log.
    fn find(&self, scope: &Scope, lookup: Lookup) -> Read<Option<Snapshot>>;

    /// Entries of a task of this scope after a place in its log, at most `max`.
    fn entries(&self, scope: &Scope, task: TaskNo, after: Seq, max: usize) -> Read<Vec<(Seq, Arc<Entry>)>>;

    /// A page of the tasks of this scope that show themselves, newest status first.
    fn list(&self, scope: &Scope, query: ListQuery) -> Read<ListPage>;

    /// A conversation of this scope.
    fn context(&self, scope: &Scope, lookup: ContextLookup) -> Read<Option<ContextRow>>;

    /// The tasks of a conversation before one of them, oldest first, the newest `max`.
    fn conversation(&self, scope: &Scope, first: TaskNo, before: TaskNo, max: usize) -> Read<Vec<Snapshot>>;

    /// Tasks whose work is due and held by nobody, longest due first; and when the next one is.
    fn due(&self, now: Timestamp, max: usize) -> Read<Due>;

    /// All a runner needs to take up a task.
    fn work(&self, task: TaskNo) -> Read<Option<WorkItem>>;

    /// Sets aside a block of task numbers that nobody else will use; gives the first.
    fn reserve(&self, count: i64) -> Read<TaskNo>;

    /// The names of tasks and contexts under this store's key.
    fn ids(&self) -> Ids;

    /// A key for authenticating what callers carry away, such as page tokens.
    fn seal_key(&self) -> [u8; 32];

    /// Resolves when the store can no longer write, with the reason.
    fn failed(&self) -> BoxFuture<'static, String>;
}

/// What a read gives, later.
pub type Read<T> = BoxFuture<'static, Result<T, StoreError>>;

/// Why a store cannot answer.
#[derive(Clone, Debug, thiserror::Error)]
pub enum StoreError {
    /// It has stopped or is overloaded.
    #[error("the store is not available: {0}")]
    Unavailable(String),
    /// It holds something it should not.
    #[error("the store is damaged: {0}")]
    Broken(String),
}

impl From<Corrupt> for StoreError {
    fn from(corrupt: Corrupt) -> Self {
        Self::Broken(corrupt.to_string())
    }
}

impl From<StoreError> for error::Error {
    fn from(failure: StoreError) -> Self {
        match failure {
            StoreError::Unavailable(reason) => Self::Unavailable(reason),
            StoreError::Broken(reason) => Self::Broken(reason),
        }
    }
}

impl From<Corrupt> for error::Error {
    fn from(corrupt: Corrupt) -> Self {
        Self::Broken(corrupt.to_string())
    }
}

/// One thing that happens to one task.
#[derive(Debug)]
pub enum Change {
    /// A message becomes a task.
    Accept(Box<Accept>),
    /// A task moves on.
    Advance(Box<Advance>),
}

/// A new task.
#[derive(Debug)]
pub struct Accept {
    /// Its number, set aside before.
    pub no: TaskNo,
    /// The random part of its name.
    pub tag: Tag,
    /// Whose it is.
    pub scope: Scope,
    /// The conversation it joins or begins.
    pub context: NewContext,
    /// Its first entries.
    pub log: Log,
    /// Its state after them.
    pub state: TaskState,
    /// Since when.
    pub status_at: Timestamp,
    /// Whether clients see it.
    pub visibility: Visibility,
    /// Who runs it, or when. Held means the first claim: fence 1, attempt 1.
    pub work: Work,
    /// What its agent saved.
    pub saved: Option<Bytes>,
}

/// The conversation of a new task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewContext {
    /// Its own, named after it.
    Own,
    /// The one of this client-chosen name in its scope; begun if there is none.
    Named(ContextId),
    /// One that exists.
    Joined(ContextRow),
}

/// A task moves on.
#[derive(Debug)]
pub struct Advance {
    /// The task.
    pub no: TaskNo,
    /// Which arrow of the state machine this is.
    pub step: Step,
    /// What is recorded.
    pub log: Log,
    /// The state afterwards, where it is said anew.
    pub status: Option<(TaskState, Timestamp)>,
    /// Whether clients see it, where that is decided now.
    pub visibility: Option<Visibility>,
    /// What its agent saved.
    pub saved: Option<Bytes>,
}

/// The arrows of the state machine (`semantics`, section 2). Each says who may take it and what it does.
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
    /// The client answers an interrupted task and this process takes up the work.
    Resume,
    /// The client answers an interrupted task; the work waits for a free slot.
    Queue {
        /// When it is due.
        at: Timestamp,
    },
    /// The client answers an interrupted task and an overlapping agent has answered already: the turn begins
    /// and ends in one change, held by nobody in between.
    Settle,
    /// The client says more to a task that is being worked on.
    Listen,
    /// The client ends an open task.
    Cancel,
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
    /// The work must be due and held by nobody.
    pub due: bool,
    /// How many unanswered messages there may be.
    pub max_unanswered: i64,
    /// Added to the fence: earlier holders can write no more.
    pub fence_step: i64,
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
            due: false,
            max_unanswered: i64::MAX,
            fence_step: 0,
            attempts: Counter::Add(0),
            unanswered: Counter::Add(0),
            work: None,
        };
        let held = |fence| Effects { from: States::ACTIVE, fence: Some(fence), ..free };
        match self {
            Self::Claim => Effects {
                from: States::ACTIVE,
                due: true,
                fence_step: 1,
                attempts: Counter::Add(1),
                unanswered: Counter::Set(0),
                work: Some(Work::Held),
                ..free
            },
            Self::Report { fence } => held(fence),
            Self::Finish { fence } => Effects { work: Some(Work::Idle), ..held(fence) },
            Self::Pause { fence } => Effects { max_unanswered: 0, work: Some(Work::Idle), ..held(fence) },
            Self::Retry { fence, at } => Effects { work: Some(Work::Due(at)), ..held(fence) },
            Self::Again { fence, at } => {
                Effects { attempts: Counter::Set(0), work: Some(Work::Due(at)), ..held(fence) }
            }
            Self::Release { fence, at } => {
                Effects { attempts: Counter::Add(-1), work: Some(Work::Due(at)), ..held(fence) }
            }
            Self::Resume => Effects {
                from: States::INTERRUPTED,
                fence_step: 1,
                attempts: Counter::Set(1),
                unanswered: Counter::Set(0),
                work: Some(Work::Held),
                ..free
            },
            Self::Queue { at } => Effects {
                from: States::INTERRUPTED,
                attempts: Counter::Set(0),
                unanswered: Counter::Set(0),
                work: Some(Work::Due(at)),
                ..free
            },
            Self::Settle => Effects {
                from: States::INTERRUPTED,
                fence_step: 1,
                attempts: Counter::Set(1),
                unanswered: Counter::Set(0),
                work: Some(Work::Idle),
                ..free
            },
            Self::Listen => Effects {
                from: States::ACTIVE,
                max_unanswered: MAX_UNANSWERED - 1,
                unanswered: Counter::Add(1),
                ..free
            },
            Self::Cancel => Effects { fence_step: 1, work: Some(Work::Idle), ..free },
        }
    }
}

/// Who runs a task, or when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// Nobody: it waits for its client or is over.
    Idle,
    /// This process.
    Held,
    /// Whoever has room, from this time on.
    Due(Timestamp),
}

/// Whether clients see a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// Its agent has not said anything yet: it may still turn out to be a bare message.
    Undecided,
    /// It is a task.
    Visible,
    /// It was answered by a bare message.
    Hidden,
}

impl Visibility {
    /// Its number in a store.
    pub fn number(self) -> i64 {
        match self {
            Self::Undecided => 0,
            Self::Visible => 1,
            Self::Hidden => 2,
        }
    }

    /// The visibility of a number.
    pub fn from_number(number: i64) -> Option<Self> {
        [Self::Undecided, Self::Visible, Self::Hidden].into_iter().find(|each| each.number() == number)
    }
}

/// Says later what became of a change.
pub struct Receipt(oneshot::Receiver<Result<Committed, NotCommitted>>);

/// The store's end of a receipt.
pub struct Receipts(oneshot::Sender<Result<Committed, NotCommitted>>);

impl Receipt {
    /// A receipt and the end that fills it.
    pub fn new() -> (Receipts, Self) {
        let (sender, receiver) = oneshot::channel();
        (Receipts(sender), Self(receiver))
    }
}

impl Receipts {
    /// Says what became of the change; whether somebody listens does not matter.
    pub fn fill(self, result: Result<Committed, NotCommitted>) {
        let _ = self.0.send(result);
    }
}

impl Future for Receipt {
    type Output = Result<Committed, NotCommitted>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(cx).map(|filled| {
            filled.unwrap_or_else(|_| Err(NotCommitted::Unavailable("the writer has stopped".into())))
        })
    }
}

/// A change that is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// The number of the task's last entry.
    pub last_seq: Seq,
    /// The fence now in force.
    pub fence: i64,
    /// Attempts made so far.
    pub attempt: i64,
}

/// A change that did not happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotCommitted {
    /// The row was not as the step demands.
    Conflict(Conflict),
    /// The store cannot write.
    Unavailable(String),
}

/// The row a refused change met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// Its state; `None` when there is no such task.
    pub state: Option<TaskState>,
    /// Its fence.
    pub fence: i64,
    /// Its unanswered messages.
    pub unanswered: i64,
}

impl From<NotCommitted> for error::Error {
    fn from(failure: NotCommitted) -> Self {
        match failure {
            NotCommitted::Unavailable(reason) => Self::Unavailable(reason),
            NotCommitted::Conflict(met) => Self::Broken(format!("a change met a conflict nobody expected: {met:?}")),
        }
    }
}

/// A task by its public name: tried as ours, then as a name a client chose.
#[derive(Clone, Debug)]
pub struct Lookup {
    /// The number and tag, when the name is one of ours.
    pub ours: Option<(TaskNo, Tag)>,
    /// The name as given.
    pub name: TaskId,
}

/// A conversation by its public name: tried as ours, then as a name a client chose.
#[derive(Clone, Debug)]
pub struct ContextLookup {
    /// The first task and the context's tag, when the name is one of ours.
    pub ours: Option<(TaskNo, Tag)>,
    /// The name as given.
    pub name: ContextId,
}

/// A conversation as rows name it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContextRow {
    /// Its first task.
    pub first: TaskNo,
    /// Its own tag.
    pub tag: Tag,
    /// The name a client chose for it.
    pub name: Option<ContextId>,
}

/// A task's row.
#[derive(Clone, Debug)]
pub struct TaskRow {
    /// Its number.
    pub no: TaskNo,
    /// The random part of its name.
    pub tag: Tag,
    /// The name a client chose for it.
    pub client_id: Option<TaskId>,
    /// Its conversation.
    pub context: ContextRow,
    /// Its state.
    pub state: TaskState,
    /// Since when.
    pub status_at: Timestamp,
    /// The number of its last entry.
    pub last_seq: Seq,
    /// The fence in force.
    pub fence: i64,
    /// Attempts made so far.
    pub attempt: i64,
    /// Processes that died while they ran it.
    pub deaths: i64,
    /// Whether clients see it.
    pub visibility: Visibility,
}

/// A task as of one moment: its row and its log.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The row.
    pub row: TaskRow,
    /// The log, from entry 1 to `row.last_seq`.
    pub log: Vec<Arc<Entry>>,
}

/// A task to be run.
#[derive(Clone, Debug)]
pub struct WorkItem {
    /// The task.
    pub snapshot: Snapshot,
    /// Whose it is.
    pub scope: Scope,
    /// What its agent saved last.
    pub saved: Option<Bytes>,
}

/// What is due.
#[derive(Clone, Debug, Default)]
pub struct Due {
    /// Tasks to claim.
    pub tasks: Vec<TaskNo>,
    /// When the first of those not yet due is.
    pub next: Option<Timestamp>,
}

/// Which tasks to list.
#[derive(Clone, Debug)]
pub struct ListQuery {
    /// Only this conversation.
    pub context: Option<ContextLookup>,
    /// Only this state.
    pub state: Option<TaskState>,
    /// Only statuses of this age or younger.
    pub since: Option<Timestamp>,
    /// Only behind this place.
    pub after: Option<Place>,
    /// How many.
    pub size: usize,
}

/// A place in a list: lists run from newest status to oldest, and from newest task to oldest within one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// The status time there.
    pub status_at: Timestamp,
    /// The task there.
    pub no: TaskNo,
}

/// One page of a list.
#[derive(Clone, Debug, Default)]
pub struct ListPage {
    /// The tasks.
    pub tasks: Vec<Snapshot>,
    /// How many the filter matches in all.
    pub total: u64,
    /// Whether more follow.
    pub more: bool,
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
    fn no_step_starts_from_a_terminal_state() {
        let at = Timestamp::from_millis(0);
        let steps = [
            Step::Claim,
            Step::Report { fence: 1 },
            Step::Finish { fence: 1 },
            Step::Pause { fence: 1 },
            Step::Retry { fence: 1, at },
            Step::Again { fence: 1, at },
            Step::Release { fence: 1, at },
            Step::Resume,
            Step::Queue { at },
            Step::Settle,
            Step::Listen,
            Step::Cancel,
        ];
        for step in steps {
            for state in TaskState::ALL.into_iter().filter(|state| state.is_terminal()) {
                assert!(!step.effects().from.contains(state), "{step:?} from {state:?}");
            }
        }
    }
}
