//! Says something to an agent (A2A 3.1.1, 3.1.2).
//!
//! Blocking, immediate and streaming answers are the same walk and differ only in how long one watches.

use std::{sync::Arc, time::Duration};

use protocol::{ErrorKind, Event, Message, Reply, SendMessage, Task};
use tokio::time::timeout_at;

use super::{
    submit::{Submitted, Wait, submit},
    trim_history,
};
use crate::{
    engine::{Answer, Call, Parts},
    error::{Error, Result},
    feed::News,
    log::{Entry, Seq},
    runner::later,
    store::Visibility,
    stream::{TaskStream, Until, gone},
    task::fold,
};

/// Says something and answers when the turn is over, or at once if the caller does not want to wait.
pub(super) async fn send_message(engine: &Parts, call: Call, req: SendMessage) -> Result<Answer> {
    let history_length = req.history_length;
    let wait = if req.return_immediately { Wait::Not } else { Wait::ForOutcome };
    let submitted = submit(engine, call, req, wait).await?;
    let replayed = submitted.replayed;
    let mut reply = match submitted.visibility {
        Visibility::Visible if wait == Wait::Not => at_once(submitted)?,
        // What is no task for anybody to see, or not yet, can only be waited for.
        _ => settle(submitted, engine.runner.limits().wait).await?,
    };
    if let Reply::SentTask(task) = &mut reply {
        trim_history(task, history_length);
    }
    Ok(flagged(Answer::Reply(reply), replayed))
}

fn flagged(answer: Answer, replayed: bool) -> Answer {
    if replayed { Answer::Replayed(Box::new(answer)) } else { answer }
}

/// Says something and shows what becomes of it until the turn is over.
pub(super) async fn send_streaming_message(engine: &Parts, call: Call, req: SendMessage) -> Result<Answer> {
    let history_length = req.history_length;
    let submitted = submit(engine, call, req, Wait::AsStream).await?;
    let Submitted { mut task, seq, rest, visibility, watcher, replayed } = submitted;
    trim_history(&mut task, history_length);
    let stream = TaskStream::new(seq, task, Until::Settled, watcher).followed_by(rest);
    let stream = if visibility == Visibility::Visible { stream } else { stream.undecided() };
    Ok(flagged(Answer::Stream(stream), replayed))
}

/// The task as recorded.
fn at_once(submitted: Submitted) -> Result<Reply> {
    let mut task = submitted.task;
    for (_, entry) in &submitted.rest {
        fold::apply(&mut task, entry)?;
    }
    Ok(Reply::SentTask(task))
}

/// Follows the task until its agent has answered or asks back, or until it has been waited for long enough: then the
/// answer is the task as it stands. What may still turn out to be no task is made one by its run at that time.
async fn settle(submitted: Submitted, patience: Option<Duration>) -> Result<Reply> {
    let Submitted { mut task, rest, watcher, visibility, .. } = submitted;
    let deadline = patience.map(later);
    let mut is_task = visibility == Visibility::Visible;
    if let Some(answered) = apply(&mut task, &rest)? {
        return Ok(answered.reply(task));
    }
    let mut watcher = watcher.ok_or_else(|| Error::Broken("a turn is open and nobody watches it".into()))?;
    loop {
        let news = match deadline {
            Some(deadline) if is_task => match timeout_at(deadline, watcher.follow()).await {
                Ok(news) => news?,
                Err(_) => return Ok(Reply::SentTask(task)),
            },
            _ => watcher.follow().await?,
        };
        match news {
            News::Entries(entries) => {
                if let Some(answered) = apply(&mut task, &entries)? {
                    return Ok(answered.reply(task));
                }
                // Whatever an agent says first but a message makes a task.
                is_task = true;
            }
            News::Gone => return Err(gone()),
            News::Cut => {
                let text = format!("the server is stopping; task {} goes on, get it later", task.id);
                let error = protocol::Error::new(ErrorKind::Unavailable, text);
                return Err(Error::Later(error.with("taskId", &task.id)));
            }
        }
    }
}

/// How a turn was answered.
enum Answered {
    ByMessage(Message),
    ByTask,
}

impl Answered {
    fn reply(self, task: Task) -> Reply {
        match self {
            Self::ByMessage(message) => Reply::SentMessage(message),
            Self::ByTask => Reply::SentTask(task),
        }
    }
}

/// Adds entries up to the one that ends the turn; says how, when it was among them.
fn apply(task: &mut Task, entries: &[(Seq, Arc<Entry>)]) -> Result<Option<Answered>> {
    for (_, entry) in entries {
        if let Event::Message(message) = entry.event()? {
            return Ok(Some(Answered::ByMessage(message.clone())));
        }
        fold::apply(task, entry)?;
        if task.status.state.is_settled() {
            return Ok(Some(Answered::ByTask));
        }
    }
    Ok(None)
}
