//! Sends a message to an agent (A2A 3.1.1, 3.1.2).
//!
//! Blocking, immediate and streaming sends take the same path and differ only in how long they watch the
//! task.

use std::{sync::Arc, time::Duration};

use protocol::{ErrorKind, Event, Message, Reply, SendMessage, Task};
use tokio::time::timeout_at;

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
    let origin = call.origin;
    let submitted = submit(engine, call, registered, req, wait_mode).await?;
    let note = submitted.note.clone();
    let no = submitted.watcher.as_ref().map(Watcher::task);
    let mut reply = match submitted.visibility {
        Visibility::Visible if wait_mode == WaitMode::Immediate => reply_without_waiting(submitted)?,
        // A hidden or undecided task cannot be returned, so even an immediate send waits for the decision.
        _ => wait_until_settled(submitted, wait, origin).await?,
    };
    if let Reply::SentTask(task) = &mut reply {
        trim_history(task, history_length);
        if let Some(no) = no {
            show_place(engine, no, task);
        }
    }
    Ok(CallResponse::Reply(reply).with_note(note))
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

/// Follows the task until the turn ends (terminal or interrupted state) or until the timeout; then the reply
/// is the task in its current state. A task that is still undecided is not returned: its run makes it visible
/// at the same deadline.
async fn wait_until_settled(
    submitted: Submitted,
    timeout: Option<Duration>,
    origin: Origin,
) -> Result<Reply> {
    let Submitted { mut task, rest, watcher, visibility, .. } = submitted;
    let deadline = timeout.map(deadline_in);
    let mut is_task = visibility == Visibility::Visible;
    if let Some(turn_reply) = apply(&mut task, &rest)? {
        return Ok(turn_reply.reply(task));
    }
    let mut watcher = watcher.ok_or_else(|| Error::Broken("an open turn has no watcher".into()))?;
    loop {
        let event = match deadline {
            Some(deadline) if is_task => match timeout_at(deadline, watcher.follow()).await {
                Ok(event) => event?,
                Err(_) => return Ok(Reply::SentTask(task)),
            },
            _ => watcher.follow().await?,
        };
        match event {
            FeedEvent::Entries(entries) => {
                if let Some(turn_reply) = apply(&mut task, &entries)? {
                    return Ok(turn_reply.reply(task));
                }
                // A first update other than a bare message makes the task visible.
                is_task = true;
            }
            FeedEvent::Purged => return Err(purged_error()),
            // Its response has the unfinished state and the address of the task.
            FeedEvent::Draining if origin == Origin::Run && is_task => return Ok(Reply::SentTask(task)),
            FeedEvent::Draining => {
                let text = format!("the server is shutting down; task {} continues, get it later", task.id);
                let error = protocol::Error::new(ErrorKind::Unavailable, text);
                return Err(Error::RetryLater(error.with("taskId", &task.id)));
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
