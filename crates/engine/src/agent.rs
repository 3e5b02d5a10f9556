//! What an agent is to the engine: something that takes a turn and says how it goes.
//!
//! A turn begins with a message and ends with an [`Outcome`]; no future is parked across turns. On the way the
//! agent says [`Update`]s. Each is recorded before anybody sees it, and what is said together in one
//! [`Updates::say`] is recorded together, so that a saved position never disagrees with what was published.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use protocol::{Artifact, Content, ContextId, Json, Message, Part, Role, TaskId};
use tokio::{sync::Notify, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{context::Conversation, scope::Scope};

/// Does the work behind a skill.
pub trait Agent: Send + Sync + 'static {
    /// Takes one turn. Dropping the future stops the work; the engine does that when the task is cancelled,
    /// out of time, or no longer this process's to run.
    fn run(&self, turn: Turn, out: Updates) -> BoxFuture<'static, Outcome>;

    /// How the engine may treat this agent.
    fn policy(&self) -> ExecutionPolicy {
        ExecutionPolicy::default()
    }
}

/// How the engine may treat an agent.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExecutionPolicy {
    /// The agent has no effect outside this process, so it may run before its task is recorded: what it says
    /// then joins the same commit, or is dropped with it.
    pub overlap: bool,
    /// What happens to a turn that a dead process left behind.
    pub on_crash: OnCrash,
}

/// What happens to a turn that a dead process left behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnCrash {
    /// Run it again from the start, with the same idempotency key: artifacts are begun anew.
    #[default]
    Retry,
    /// Run it again from what was saved last: artifacts go on where they were.
    Resume,
    /// The task fails: its effects must not happen twice.
    Fail,
}

/// One turn of one task.
pub struct Turn {
    /// The task.
    pub task_id: TaskId,
    /// Its conversation.
    pub context_id: ContextId,
    /// The skill that was asked for by id; kept for the task's later turns.
    pub skill: Option<String>,
    /// The message to answer.
    pub message: Arc<Message>,
    /// What was said in this task before.
    pub history: Vec<Message>,
    /// What was said in this conversation before this task.
    pub conversation: Conversation,
    /// Who asks.
    pub scope: Scope,
    /// 1 for the first try.
    pub attempt: u32,
    /// The same over all attempts of this turn; for backends that can tell a repetition.
    pub idempotency_key: String,
    /// Tells when the work is no longer wanted.
    pub cancel: CancellationToken,
    /// When the turn is failed for taking too long. Each attempt has its own.
    pub deadline: Instant,
    /// What an earlier attempt or turn saved last.
    pub saved: Option<Bytes>,
}

impl Turn {
    /// A message from the agent in this task.
    pub fn reply(&self, parts: Vec<Part>) -> Message {
        let id = uuid::Uuid::new_v4().to_string();
        Message {
            context_id: Some(self.context_id.clone()),
            task_id: Some(self.task_id.clone()),
            ..Message::new(id, Role::Agent, parts)
        }
    }

    /// A text message from the agent in this task.
    pub fn reply_text(&self, text: impl Into<String>) -> Message {
        self.reply(vec![Part::text(text)])
    }

    /// How much time is left.
    pub fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

/// What an agent says on the way.
#[derive(Debug)]
pub enum Update {
    /// Work goes on; a message is progress for whoever watches.
    Working(Option<Message>),
    /// Something was produced.
    Artifact {
        /// The artifact, or the next chunk of it. One that begins without a name gets that of the skill the task asked
        /// for, if it did: `<skill>-result`.
        artifact: Artifact,
        /// Add to what is there instead of replacing it.
        append: bool,
        /// Nothing more follows for this artifact.
        last: bool,
    },
    /// Remember this for the next attempt or turn.
    Save(Bytes),
    /// The answer is this message and the turn is over. Said first, there is no task for the client to see.
    Message(Message),
}

impl Update {
    /// About how many bytes of log this makes.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::Working(None) | Self::Save(_) => 0,
            Self::Working(Some(message)) | Self::Message(message) => message_size(message),
            Self::Artifact { artifact, .. } => {
                parts_size(&artifact.parts) + json_size(artifact.metadata.as_ref())
            }
        }
    }
}

/// About how many bytes of log a message makes.
pub(crate) fn message_size(message: &Message) -> u64 {
    parts_size(&message.parts) + json_size(message.metadata.as_ref())
}

fn parts_size(parts: &[Part]) -> u64 {
    let content = |part: &Part| match &part.content {
        Content::Text(text) | Content::Url(text) => text.len(),
        Content::Raw(bytes) => bytes.len() / 3 * 4,
        Content::Data(json) => json.as_str().len(),
    };
    parts.iter().map(|part| content(part) as u64 + json_size(part.metadata.as_ref())).sum()
}

fn json_size(json: Option<&Json>) -> u64 {
    json.map_or(0, |json| json.as_str().len() as u64)
}

/// How a turn ended.
#[derive(Debug)]
pub enum Outcome {
    /// The work is done.
    Done {
        /// A closing word.
        message: Option<Message>,
    },
    /// The work could not be done.
    Failed {
        /// Why.
        message: Option<Message>,
        /// Trying again may help.
        retryable: bool,
    },
    /// The agent will not do this.
    Rejected {
        /// Why.
        message: Option<Message>,
    },
    /// The client has to say more first.
    NeedInput {
        /// What is needed.
        message: Message,
    },
    /// The client has to authenticate first.
    NeedAuth {
        /// What is needed.
        message: Message,
    },
}

impl Outcome {
    /// About how many bytes of log this makes.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::Done { message } | Self::Failed { message, .. } | Self::Rejected { message } => {
                message.as_ref().map_or(0, message_size)
            }
            Self::NeedInput { message } | Self::NeedAuth { message } => message_size(message),
        }
    }

    /// Done, with nothing to add.
    pub fn done() -> Self {
        Self::Done { message: None }
    }
}

/// Where an agent says its updates.
#[derive(Clone)]
pub struct Updates {
    outbox: Arc<Outbox>,
    /// What everything that is saved begins with.
    mark: Bytes,
}

impl Updates {
    /// The same place for another agent that takes over the turn: whatever that one saves begins with `mark`, so
    /// that the next turn's `saved` tells who it belongs to.
    #[must_use]
    pub fn marked(&self, mark: &[u8]) -> Self {
        Self { outbox: Arc::clone(&self.outbox), mark: [&self.mark, mark].concat().into() }
    }

    /// Says several things that are recorded together or not at all. Waits while too much is unrecorded.
    pub async fn say(&self, updates: impl IntoIterator<Item = Update>) {
        let mark = |update| match update {
            Update::Save(bytes) if !self.mark.is_empty() => {
                Update::Save([&self.mark, bytes.as_ref()].concat().into())
            }
            update => update,
        };
        self.outbox.put(updates.into_iter().map(mark).collect()).await;
    }

    /// Says that work goes on.
    pub async fn working(&self, message: Option<Message>) {
        self.say([Update::Working(message)]).await;
    }

    /// Hands over a whole artifact.
    pub async fn artifact(&self, artifact: Artifact) {
        self.say([Update::Artifact { artifact, append: false, last: true }]).await;
    }

    /// Answers with a message; the turn is over.
    pub async fn message(&self, message: Message) {
        self.say([Update::Message(message)]).await;
    }
}

/// What has been said and not been recorded yet: between one run and its runner.
#[derive(Default)]
pub(crate) struct Outbox {
    said: Mutex<Vec<Update>>,
    something: Notify,
    room: Notify,
}

/// How many unrecorded updates a run may have before its next one waits.
const OUTBOX_ROOM: usize = 256;

impl Outbox {
    /// A new outbox and the agent's end of it.
    pub(crate) fn open() -> (Arc<Self>, Updates) {
        let outbox = Arc::new(Self::default());
        (Arc::clone(&outbox), Updates { outbox, mark: Bytes::new() })
    }

    /// Everything said since the last time.
    pub(crate) fn take(&self) -> Vec<Update> {
        let said = std::mem::take(&mut *self.said.lock().unwrap_or_else(PoisonError::into_inner));
        if !said.is_empty() {
            self.room.notify_waiters();
        }
        said
    }

    /// Resolves when something may have been said. May be dropped at any time.
    pub(crate) async fn something(&self) {
        self.something.notified().await;
    }

    async fn put(&self, updates: Vec<Update>) {
        let mut updates = Some(updates);
        loop {
            let mut room = std::pin::pin!(self.room.notified());
            // Listening starts before the look, so that room made in between is not missed.
            room.as_mut().enable();
            if self.try_put(&mut updates) {
                self.something.notify_one();
                return;
            }
            room.await;
        }
    }

    fn try_put(&self, updates: &mut Option<Vec<Update>>) -> bool {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = said.len() < OUTBOX_ROOM;
        if fits {
            said.extend(updates.take().unwrap_or_default());
        }
        fits
    }
}
