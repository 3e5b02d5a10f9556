//! The [`Agent`] trait and the types of one agent run: its input ([`Turn`]), its progress ([`Update`]) and
//! its result ([`Outcome`]).
//!
//! A turn starts with a message and ends with an [`Outcome`]; no future outlives its turn. During the turn
//! the agent sends [`Update`]s. Each is committed before a client can observe it, and the updates of one
//! [`Updates::say`] call are committed together, so a saved checkpoint never disagrees with the published
//! events.

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

/// Implements one or more skills.
pub trait Agent: Send + Sync + 'static {
    /// Runs one turn. Dropping the future stops the work; the engine does that when the task is cancelled,
    /// when its deadline expires, or when this process no longer holds its lease.
    fn run(&self, turn: Turn, out: Updates) -> BoxFuture<'static, Outcome>;

    /// The execution policy; the engine reads it at the start of every run.
    fn policy(&self) -> ExecutionPolicy {
        ExecutionPolicy::default()
    }
}

/// How the engine may schedule an agent's runs and recover them.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExecutionPolicy {
    /// The agent has no effect outside this process, so it may run before its task is committed. Its updates
    /// then join the same commit, or are dropped with it.
    pub overlap: bool,
    /// What to do with a turn whose process crashed before the turn ended.
    pub on_crash: OnCrash,
}

/// What to do with a turn whose process crashed before the turn ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnCrash {
    /// Run it again from the start, with the same idempotency key; the first chunk of each artifact replaces
    /// what the crashed run recorded.
    #[default]
    Retry,
    /// Run it again from the last checkpoint; artifact chunks are appended to what is recorded.
    Resume,
    /// Fail the task, because its side effects must not happen twice.
    Fail,
}

/// The input of one agent run.
pub struct Turn {
    /// Public id of the task.
    pub task_id: TaskId,
    /// Public id of the conversation (A2A context) the task belongs to.
    pub context_id: ContextId,
    /// The skill id the client requested; kept for the task's later turns.
    pub skill: Option<String>,
    /// The message that started this turn.
    pub message: Arc<Message>,
    /// Earlier messages of this task, oldest first.
    pub history: Vec<Message>,
    /// Reads messages of earlier tasks in the same conversation.
    pub conversation: Conversation,
    /// The caller's scope.
    pub scope: Scope,
    /// Attempt number, from 1.
    pub attempt: u32,
    /// The same for all attempts of this turn, so that a backend can deduplicate.
    pub idempotency_key: String,
    /// Cancelled when the client cancels the task. The agent then has a few seconds to stop before its future
    /// is dropped.
    pub cancel: CancellationToken,
    /// When the turn fails with a timeout. Each attempt has its own deadline.
    pub deadline: Instant,
    /// The last checkpoint of an earlier attempt or turn.
    pub saved: Option<Bytes>,
}

impl Turn {
    /// Builds an agent message that belongs to this task.
    pub fn reply(&self, parts: Vec<Part>) -> Message {
        let id = uuid::Uuid::new_v4().to_string();
        Message {
            context_id: Some(self.context_id.clone()),
            task_id: Some(self.task_id.clone()),
            ..Message::new(id, Role::Agent, parts)
        }
    }

    /// Builds an agent message with one text part.
    pub fn reply_text(&self, text: impl Into<String>) -> Message {
        self.reply(vec![Part::text(text)])
    }

    /// Time until the deadline; zero after it.
    pub fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }
}

/// One unit of progress that an agent sends during a turn.
#[derive(Debug)]
pub enum Update {
    /// Status `working`. The message, if any, is a progress event and does not enter the history.
    Working(Option<Message>),
    /// A complete artifact or one chunk of it.
    Artifact {
        /// The artifact or the next chunk. An artifact whose first chunk has no name is named
        /// `<skill>-result` when the client requested a skill.
        artifact: Artifact,
        /// Append to the recorded artifact instead of replacing it.
        append: bool,
        /// The last chunk of this artifact.
        last: bool,
    },
    /// Checkpoint: passed as [`Turn::saved`] to the next attempt or turn.
    Save(Bytes),
    /// Ends the turn with this message. When it is the first update, the reply is the bare message and the
    /// task stays hidden.
    Message(Message),
}

impl Update {
    /// Approximate size in the log, in bytes.
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

/// Approximate size of a message in the log, in bytes.
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

/// The result of a turn.
#[derive(Debug)]
pub enum Outcome {
    /// Task state `completed`.
    Done {
        /// Final status message.
        message: Option<Message>,
    },
    /// Task state `failed`, or another attempt.
    Failed {
        /// The reason, shown to the client.
        message: Option<Message>,
        /// The runner may retry the turn with backoff.
        retryable: bool,
    },
    /// Task state `rejected`.
    Rejected {
        /// The reason, shown to the client.
        message: Option<Message>,
    },
    /// Task state `input-required`.
    NeedInput {
        /// The question or requirement, shown to the client.
        message: Message,
    },
    /// Task state `auth-required`.
    NeedAuth {
        /// The question or requirement, shown to the client.
        message: Message,
    },
}

impl Outcome {
    /// Approximate size in the log, in bytes.
    pub(crate) fn size(&self) -> u64 {
        match self {
            Self::Done { message } | Self::Failed { message, .. } | Self::Rejected { message } => {
                message.as_ref().map_or(0, message_size)
            }
            Self::NeedInput { message } | Self::NeedAuth { message } => message_size(message),
        }
    }

    /// Completed without a final message.
    pub fn done() -> Self {
        Self::Done { message: None }
    }
}

/// The agent's handle for sending updates to the runner.
#[derive(Clone)]
pub struct Updates {
    queue: Arc<UpdateQueue>,
    /// Prepended to every checkpoint sent through this handle.
    save_prefix: Bytes,
}

impl Updates {
    /// A handle for another agent that the turn is delegated to. Its checkpoints start with `save_prefix`, so
    /// that the delegating agent can tell from the next turn's `saved` which agent wrote them.
    #[must_use]
    pub fn with_save_prefix(&self, save_prefix: &[u8]) -> Self {
        Self { queue: Arc::clone(&self.queue), save_prefix: [&self.save_prefix, save_prefix].concat().into() }
    }

    /// Sends updates that are committed together or not at all. Waits while the queue of uncommitted updates
    /// is full (backpressure).
    pub async fn say(&self, updates: impl IntoIterator<Item = Update>) {
        let save_prefix = |update| match update {
            Update::Save(bytes) if !self.save_prefix.is_empty() => {
                Update::Save([&self.save_prefix, bytes.as_ref()].concat().into())
            }
            update => update,
        };
        self.queue.put(updates.into_iter().map(save_prefix).collect()).await;
    }

    /// Sends status `working` with an optional progress message.
    pub async fn working(&self, message: Option<Message>) {
        self.say([Update::Working(message)]).await;
    }

    /// Sends a complete artifact.
    pub async fn artifact(&self, artifact: Artifact) {
        self.say([Update::Artifact { artifact, append: false, last: true }]).await;
    }

    /// Ends the turn with a message.
    pub async fn message(&self, message: Message) {
        self.say([Update::Message(message)]).await;
    }
}

/// Uncommitted updates between one agent run and its runner. Bounded by [`MAX_PENDING_UPDATES`].
#[derive(Default)]
pub(crate) struct UpdateQueue {
    pending: Mutex<Vec<Update>>,
    ready: Notify,
    space: Notify,
}

/// Queue length at which [`Updates::say`] starts to wait.
const MAX_PENDING_UPDATES: usize = 256;

impl UpdateQueue {
    /// A new queue and the agent's handle to it.
    pub(crate) fn open() -> (Arc<Self>, Updates) {
        let queue = Arc::new(Self::default());
        (Arc::clone(&queue), Updates { queue, save_prefix: Bytes::new() })
    }

    /// Removes and returns all pending updates.
    pub(crate) fn take(&self) -> Vec<Update> {
        let pending = std::mem::take(&mut *self.pending.lock().unwrap_or_else(PoisonError::into_inner));
        if !pending.is_empty() {
            self.space.notify_waiters();
        }
        pending
    }

    /// Resolves when updates may be pending. Cancel safe.
    pub(crate) async fn ready(&self) {
        self.ready.notified().await;
    }

    async fn put(&self, updates: Vec<Update>) {
        let mut updates = Some(updates);
        loop {
            let mut space = std::pin::pin!(self.space.notified());
            // Registered before the length check, so that space freed in between is not missed.
            space.as_mut().enable();
            if self.try_put(&mut updates) {
                self.ready.notify_one();
                return;
            }
            space.await;
        }
    }

    fn try_put(&self, updates: &mut Option<Vec<Update>>) -> bool {
        let mut pending = self.pending.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = pending.len() < MAX_PENDING_UPDATES;
        if fits {
            pending.extend(updates.take().unwrap_or_default());
        }
        fits
    }
}
