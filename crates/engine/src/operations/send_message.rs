//! Sends a message to an agent (A2A 3.1.1, 3.1.2).
//!
//! Blocking, immediate and streaming sends take the same path and differ only in how long they watch the
//! task. A blocking send may ask to hear after a time that its turn goes on: then its reply is a [`PendingReply`].

use std::{sync::Arc, time::Duration};

use protocol::{ErrorKind, Event, Message, Reply, SendMessage, Task};
use tokio::time::{Instant, timeout_at};

use super::{
    show_place,
    submit::{Submitted, WaitMode, submit},
    trim_history,
};
use crate::{
    catalog::RegisteredAgent,
    engine::{Call, CallResponse, EngineInner},
    error::{Error, Result},
    feed::{FeedEvent, Watcher},
    ids::TaskNo,
    log::{Entry, Seq},
    origin::Origin,
    runner::deadline_in,
    store::Visibility,
    stream::{TaskStream, Until, purged_error},
    task::fold,
};

/// Records a message and replies when the turn has ended, or immediately if the caller asks for that.
pub(super) async fn send_message(
    engine: &EngineInner,
    call: Call,
    registered: &Arc<RegisteredAgent>,
    req: SendMessage,
) -> Result<CallResponse> {
    let history_length = req.history_length;
    let wait_mode = if req.return_immediately { WaitMode::Immediate } else { WaitMode::Blocking };
    let wait = call.wait.into_iter().chain(engine.runner.limits().wait).min();
    let (origin, pending_after) = (call.origin, call.pending_after);
    let submitted = submit(engine, call, registered, req, wait_mode).await?;
    let note = submitted.note.clone();
    let shown = ShownTask { no: submitted.watcher.as_ref().map(Watcher::task), history_length };
    let reply = match submitted.visibility {
        Visibility::Visible if wait_mode == WaitMode::Immediate => reply_without_waiting(submitted)?,
        // A hidden or undecided task cannot be returned, so even an immediate send waits for the decision.
        _ => match wait_until_settled(submitted, wait, origin, pending_after).await? {
            WaitResult::Reply(reply) => reply,
            WaitResult::Open(turn) => {
                return Ok(CallResponse::Pending(Box::new(PendingReply { turn, shown })).with_note(note));
            }
        },
    };
    Ok(CallResponse::Reply(shown.apply(engine, reply)).with_note(note))
}

/// The reply of a send whose turn has not ended after [`Call::pending_after`].
pub struct PendingReply {
    turn: Box<OpenTurn>,
    shown: ShownTask,
}

impl PendingReply {
    pub(crate) async fn reply(self, engine: &EngineInner) -> Result<Reply> {
        match self.turn.settle(None).await? {
            WaitResult::Reply(reply) => Ok(self.shown.apply(engine, reply)),
            WaitResult::Open(_) => Err(Error::Broken("a call without a pause has paused".into())),
        }
    }

    /// Replies with the unfinished task when the server shuts down, for a caller that can get no error any more.
    #[must_use]
    pub fn with_task_at_shutdown(mut self) -> Self {
        self.turn.at_shutdown = AtShutdown::Task;
        self
    }
}

/// How a reply shows its task.
#[derive(Clone, Copy)]
struct ShownTask {
    /// The task, if its turn may be queued.
    no: Option<TaskNo>,
    history_length: Option<u32>,
}

impl ShownTask {
    fn apply(self, engine: &EngineInner, mut reply: Reply) -> Reply {
        if let Reply::SentTask(task) = &mut reply {
            trim_history(task, self.history_length);
            if let Some(no) = self.no {
                show_place(engine, no, task);
            }
        }
        reply
    }
}

/// Records a message and streams the task's events until the turn has ended.
pub(super) async fn send_streaming_message(
    engine: &EngineInner,
    call: Call,
    registered: &Arc<RegisteredAgent>,
    req: SendMessage,
) -> Result<CallResponse> {
    let history_length = req.history_length;
    let submitted = submit(engine, call, registered, req, WaitMode::Streaming).await?;
    let Submitted { mut task, seq, rest, visibility, watcher, note } = submitted;
    trim_history(&mut task, history_length);
    if let Some(watcher) = watcher.as_ref().filter(|_| rest.is_empty()) {
        show_place(engine, watcher.task(), &mut task);
    }
    let stream = TaskStream::new(seq, task, Until::Settled, watcher).followed_by(rest);
    let stream = if visibility == Visibility::Visible { stream } else { stream.undecided() };
    Ok(CallResponse::Stream(stream).with_note(note))
}

/// The task as of the commit that recorded the message.
fn reply_without_waiting(submitted: Submitted) -> Result<Reply> {
    let mut task = submitted.task;
    for (_, entry) in &submitted.rest {
        fold::apply(&mut task, entry)?;
    }
    Ok(Reply::SentTask(task))
}

/// Follows the task until the turn ends, or until the call is to be pending.
async fn wait_until_settled(
    submitted: Submitted,
    timeout: Option<Duration>,
    origin: Origin,
    pending_after: Option<Duration>,
) -> Result<WaitResult> {
    let Submitted { mut task, rest, watcher, visibility, .. } = submitted;
    let deadline = timeout.map(deadline_in);
    if let Some(turn_reply) = apply(&mut task, &rest)? {
        return Ok(WaitResult::Reply(turn_reply.reply(task)));
    }
    let watcher = watcher.ok_or_else(|| Error::Broken("an open turn has no watcher".into()))?;
    let is_task = visibility == Visibility::Visible;
    // The response of `/run` has the unfinished state and the address of the task.
    let at_shutdown = if origin == Origin::Run { AtShutdown::Task } else { AtShutdown::Error };
    let turn = OpenTurn { task, is_task, watcher, deadline, at_shutdown };
    turn.settle(pending_after.map(deadline_in)).await
}

/// How far a call has waited.
#[expect(clippy::large_enum_variant, reason = "it is taken apart at once, and a reply is the common case")]
enum WaitResult {
    Reply(Reply),
    /// The turn goes on.
    Open(Box<OpenTurn>),
}

/// A turn that a call waits for.
struct OpenTurn {
    task: Task,
    /// Whether the task is decided and visible. A task that is still undecided is not returned: its run makes it visible
    /// at the same deadline.
    is_task: bool,
    watcher: Watcher,
    /// When the reply is the task in its current state.
    deadline: Option<Instant>,
    at_shutdown: AtShutdown,
}

/// The reply when the server shuts down before the turn has ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AtShutdown {
    Error,
    /// The task in its current state, if it is visible.
    Task,
}

impl OpenTurn {
    /// Follows the task until the turn ends (terminal or interrupted state), until the deadline, or until this time.
    async fn settle(mut self, pause: Option<Instant>) -> Result<WaitResult> {
        loop {
            let deadline = self.deadline.filter(|_| self.is_task);
            let event = match deadline.into_iter().chain(pause).min() {
                None => self.watcher.follow().await?,
                Some(stop) => match timeout_at(stop, self.watcher.follow()).await {
                    Ok(event) => event?,
                    Err(_) if deadline == Some(stop) => {
                        return Ok(WaitResult::Reply(Reply::SentTask(self.task)));
                    }
                    Err(_) => return Ok(WaitResult::Open(Box::new(self))),
                },
            };
            match event {
                FeedEvent::Entries(entries) => {
                    if let Some(turn_reply) = apply(&mut self.task, &entries)? {
                        return Ok(WaitResult::Reply(turn_reply.reply(self.task)));
                    }
                    // A first update other than a bare message makes the task visible.
                    self.is_task = true;
                }
                FeedEvent::Purged => return Err(purged_error()),
                FeedEvent::Draining if self.at_shutdown == AtShutdown::Task && self.is_task => {
                    return Ok(WaitResult::Reply(Reply::SentTask(self.task)));
                }
                FeedEvent::Draining => {
                    let id = &self.task.id;
                    let text = format!("the server is shutting down; task {id} continues, get it later");
                    let error = protocol::Error::new(ErrorKind::Unavailable, text);
                    return Err(Error::RetryLater(error.with("taskId", id)));
                }
            }
        }
    }
}

/// What ended the turn.
enum TurnReply {
    ByMessage(Message),
    ByTask,
}

impl TurnReply {
    fn reply(self, task: Task) -> Reply {
        match self {
            Self::ByMessage(message) => Reply::SentMessage(message),
            Self::ByTask => Reply::SentTask(task),
        }
    }
}

/// Applies entries up to the one that ends the turn; returns how it ended, if it did.
fn apply(task: &mut Task, entries: &[(Seq, Arc<Entry>)]) -> Result<Option<TurnReply>> {
    for (_, entry) in entries {
        if let Event::Message(message) = entry.event()? {
            return Ok(Some(TurnReply::ByMessage(message.clone())));
        }
        fold::apply(task, entry)?;
        if task.status.state.is_settled() {
            return Ok(Some(TurnReply::ByTask));
        }
    }
    Ok(None)
}
