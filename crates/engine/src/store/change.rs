//! The engine's writes: complete changes, each one transaction for one task.

use bytes::Bytes;
use protocol::{ContextId, TaskId, TaskState, Timestamp};

use super::{ContextRow, Counter, Effects, NewWebhook, Step};
use crate::{
    access::{principal_caps::PrincipalCaps, scope::Scope},
    ids::{Tag, TaskNo},
    log::{Log, Seq},
    origin::Origin,
};

/// One transaction on one task.
#[derive(Debug)]
pub enum Change {
    /// Creates a task from a message.
    Accept(Box<Accept>),
    /// Applies one transition to an existing task.
    Advance(Box<Advance>),
}

impl Change {
    /// The entries it appends to the log.
    pub fn log(&self) -> &Log {
        match self {
            Self::Accept(accept) => &accept.log,
            Self::Advance(advance) => &advance.log,
        }
    }

    /// What it writes to the journal of the turn.
    pub fn journal(&self) -> &JournalChange {
        match self {
            Self::Accept(accept) => &accept.journal,
            Self::Advance(advance) => &advance.journal,
        }
    }

    /// The agent's checkpoint.
    pub fn saved(&self) -> Option<&SavedState> {
        match self {
            Self::Accept(accept) => accept.saved.as_ref(),
            Self::Advance(advance) => advance.saved.as_ref(),
        }
    }

    /// Whether it records a client's message. An overloaded store may reject such a change, because the client
    /// can send its message again; every other change is part of work that has been accepted.
    pub fn records_message(&self) -> bool {
        match self {
            Self::Accept(_) => true,
            Self::Advance(advance) => advance.step.demand().is_some(),
        }
    }
}

/// A new task.
#[derive(Debug)]
pub struct Accept {
    /// Row number, reserved before.
    pub no: TaskNo,
    /// The random part of its public id.
    pub tag: Tag,
    /// The owner.
    pub scope: Scope,
    /// Client-chosen id; unique within the scope.
    pub client_id: Option<TaskId>,
    /// Its skill.
    pub skill: Option<String>,
    /// Who has selected it.
    pub skill_source: SkillSource,
    /// Its message has passed the checks of the skill.
    pub admitted: bool,
    /// That of the creating call.
    pub origin: Origin,
    /// The conversation it joins or starts.
    pub context: NewContext,
    /// First entries of its log.
    pub log: Log,
    /// State after the first entries.
    pub state: TaskState,
    /// Timestamp of that state.
    pub status_at: Timestamp,
    /// Whether clients can see the task.
    pub visibility: Visibility,
    /// Whether this process runs it or it is due later. `Held` includes the first claim: fencing token 1,
    /// attempt 1.
    pub work: WorkState,
    /// The agent's checkpoint.
    pub saved: Option<SavedState>,
    /// What is written to the journal.
    pub journal: JournalChange,
    /// When the task fails unless it is terminal by then.
    pub deadline: Option<Timestamp>,
    /// Bytes of `log` that are progress messages.
    pub progress_size: u64,
    /// Idempotency key of its first message.
    pub key: Option<MessageKey>,
    /// A webhook to register.
    pub webhook: Option<Box<NewWebhook>>,
    /// Guard: what its principal may have.
    pub caps: PrincipalCaps,
    /// Turns of its principal that may ask, which count as interrupted tasks for `caps`.
    pub asking_turns: u64,
}

/// Who has selected the skill of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkillSource {
    /// The server; a later message may name another one.
    Server,
    /// The client has named it.
    Client,
}

impl SkillSource {
    /// Stored number; part of the database format.
    pub fn number(self) -> i64 {
        match self {
            Self::Server => 0,
            Self::Client => 1,
        }
    }

    /// Decodes a stored number.
    pub fn from_number(number: i64) -> Option<Self> {
        [Self::Server, Self::Client].into_iter().find(|each| each.number() == number)
    }
}

/// A checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SavedState {
    /// The skill whose work has recorded it; empty: work without a skill. `None`: recorded by an earlier version, which put
    /// ids of skills before the state.
    pub skill: Option<String>,
    /// The state; empty: removed.
    pub state: Bytes,
}

impl SavedState {
    /// Recorded by the work of this skill.
    pub fn new(skill: Option<&str>, state: impl Into<Bytes>) -> Self {
        Self { skill: Some(skill.unwrap_or_default().to_owned()), state: state.into() }
    }
}

/// The idempotency key of a message and the hash of its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageKey {
    /// Digest of the scope and the client's key.
    pub key: [u8; 16],
    /// Digest of the content.
    pub hash: [u8; 16],
}

/// The conversation of a new task: its own, or an existing or client-chosen one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NewContext {
    /// A new one, whose id is derived from the task.
    Own,
    /// The one with this client-chosen id in its scope; created if it does not exist.
    Named(ContextId),
    /// An existing one.
    Joined(ContextRow),
}

/// Applies one transition to an existing task.
#[derive(Clone, Debug)]
pub struct Advance {
    /// Row number of the task.
    pub no: TaskNo,
    /// The transition, with its guards and effects.
    pub step: Step,
    /// The entries to append.
    pub log: Log,
    /// The new state and its timestamp, if the change sets them.
    pub status: Option<(TaskState, Timestamp)>,
    /// The new visibility, if the change sets it.
    pub visibility: Option<Visibility>,
    /// The agent's checkpoint.
    pub saved: Option<SavedState>,
    /// What is written to the journal.
    pub journal: JournalChange,
    /// Whether the turn has made progress: its crashes and attempts are counted anew.
    pub progress: bool,
    /// The deadline from now on; `None` leaves it unchanged, unless the step reopens the task.
    pub deadline: Option<Timestamp>,
    /// Bytes of `log` that are progress messages.
    pub progress_size: u64,
    /// The task's skill from now on; a task keeps a skill that its client has named.
    pub skill: Option<String>,
    /// Who has selected that skill.
    pub skill_source: SkillSource,
    /// Whether the message of the current turn has passed the checks of the skill, if the change sets that.
    pub admitted: Option<bool>,
    /// Idempotency key, if the change records a client message.
    pub key: Option<MessageKey>,
    /// A webhook to register, if the change records a client message. It gets the events from this change on.
    pub webhook: Option<Box<NewWebhook>>,
    /// Guard: what the task's principal may have, if the change records a client message.
    pub caps: PrincipalCaps,
    /// Turns of its principal that may ask, which count as interrupted tasks for `caps`.
    pub asking_turns: u64,
}

impl Advance {
    /// A transition that records nothing else.
    pub fn new(no: TaskNo, step: Step) -> Self {
        Self {
            no,
            step,
            log: Log::default(),
            status: None,
            visibility: None,
            saved: None,
            journal: JournalChange::Keep,
            progress: false,
            deadline: None,
            progress_size: 0,
            skill: None,
            skill_source: SkillSource::Server,
            admitted: None,
            key: None,
            webhook: None,
            caps: PrincipalCaps::default(),
            asking_turns: 0,
        }
    }

    /// Guards on the row and effects on it: those of the step, and of progress.
    pub fn effects(&self) -> Effects {
        let effects = self.step.effects();
        if self.progress {
            Effects { attempts: Counter::Set(1), probation: Some(false), ..effects }
        } else {
            effects
        }
    }
}

/// What a change does to the journal: the outputs of finished steps, so that no attempt runs them again.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum JournalChange {
    /// Nothing.
    #[default]
    Keep,
    /// Records steps. A step that is recorded already is replaced.
    Write(Vec<JournalStep>),
    /// The turn has ended, and the task has not: deletes the steps of turns, and records these of the task.
    EndTurn(Vec<JournalStep>),
    /// Deletes the journal, because the task has ended.
    Clear,
}

impl JournalChange {
    /// Approximate size of what is written, in bytes.
    pub fn size(&self) -> usize {
        self.steps().iter().map(JournalStep::size).sum()
    }

    /// The steps that it records.
    pub fn steps(&self) -> &[JournalStep] {
        match self {
            Self::Keep | Self::Clear => &[],
            Self::Write(steps) | Self::EndTurn(steps) => steps,
        }
    }
}

/// What the ids of calls of skills begin with ([`Turn::call`](crate::Turn::call)).
pub(crate) const CALL_PREFIX: &str = "call:";

/// What a step belongs to: it is deleted when that ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum StepOwner {
    /// The whole task.
    Task,
    /// A turn: sequence number of the status update that its message caused.
    Turn(Seq),
}

impl StepOwner {
    /// Stored number; part of the database format. Sequence numbers begin with 1.
    pub fn number(self) -> Seq {
        match self {
            Self::Task => 0,
            Self::Turn(seq) => seq,
        }
    }

    /// Decodes a stored number.
    pub fn from_number(number: Seq) -> Self {
        if number == 0 { Self::Task } else { Self::Turn(number) }
    }
}

/// A step of a turn, or of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalStep {
    /// What it belongs to.
    pub owner: StepOwner,
    /// Id of the step, unique in its owner.
    pub id: String,
    /// What the step returned; `None` while it is not finished; empty if it ended with an error and may run again.
    pub output: Option<Bytes>,
}

impl JournalStep {
    /// Whether it is finished, or the end of a call: what a call has recorded before its end is none.
    pub(crate) fn is_progress(&self) -> bool {
        let is_end = match self.owner {
            StepOwner::Turn(_) => true,
            StepOwner::Task => self.id.starts_with(CALL_PREFIX),
        };
        is_end && self.output.as_ref().is_some_and(|output| !output.is_empty())
    }

    /// Approximate size, in bytes.
    pub fn size(&self) -> usize {
        self.id.len() + self.output.as_ref().map_or(0, Bytes::len)
    }
}

/// Whether a process runs a task, or when it is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkState {
    /// No work: the task waits for its client or is terminal.
    Idle,
    /// Held by the committing process.
    Held,
    /// Can be claimed by any process from this time on.
    Due(Timestamp),
}

/// Whether clients see a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Visibility {
    /// The agent has sent no update yet: the reply may still be a bare message.
    Undecided,
    /// Readable and listed.
    Visible,
    /// The reply was a bare message.
    Hidden,
    /// Purged: only the row remains, so that duplicates of its messages are still detected.
    Purged,
}

impl Visibility {
    /// Stored number; part of the database format.
    pub fn number(self) -> i64 {
        match self {
            Self::Undecided => 0,
            Self::Visible => 1,
            Self::Hidden => 2,
            Self::Purged => 3,
        }
    }

    /// Decodes a stored number.
    pub fn from_number(number: i64) -> Option<Self> {
        [Self::Undecided, Self::Visible, Self::Hidden, Self::Purged]
            .into_iter()
            .find(|each| each.number() == number)
    }
}
