//! Records a message and gets its turn going: what both sends share.
//!
//! A message without a task becomes one ([`start`]); a message to a task is its next input ([`follow_up`]); one
//! that was recorded before is answered as then ([`replay`]). [`turn`] begins the run itself, in one pass where
//! that is possible.

mod follow_up;
mod replay;
mod start;
mod turn;

use std::sync::Arc;

use protocol::{SendMessage, Task};

use super::{get_task, push_configs};
use crate::{
    agents::Hosted,
    engine::{Call, Parts},
    error::{Error, Result},
    feed::{Patience, Watcher},
    idempotency,
    ids::TaskNo,
    log::{Entry, Log, Seq},
    store::{Committed, MessageKey, Visibility},
    task::fold,
};

/// How long the caller means to stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// Until the message is recorded.
    Not,
    /// Until the turn is over, for one answer.
    ForOutcome,
    /// Until the turn is over, for every event.
    AsStream,
}

/// A message that has been recorded.
pub(super) struct Submitted {
    /// The task as of the status this message caused.
    pub(super) task: Task,
    /// The number of that status.
    pub(super) seq: Seq,
    /// What was recorded behind it in the same commit.
    pub(super) rest: Vec<(Seq, Arc<Entry>)>,
    /// Whether it is decided that there is a task to see.
    pub(super) visibility: Visibility,
    /// Follows what comes next; absent when nothing does.
    pub(super) watcher: Option<Watcher>,
    /// The message was recorded by an earlier call.
    pub(super) replayed: bool,
}

/// How often a decision is made anew because the task moved on under it.
const TRIES: usize = 8;

/// Records the message, and starts or queues its turn.
pub(super) async fn submit(engine: &Parts, call: Call, req: SendMessage, wait: Wait) -> Result<Submitted> {
    let hosted = engine.agent(&call)?;
    if req.push.is_some() {
        return Err(push_configs::not_supported());
    }
    let given = call.idempotency_key.as_deref();
    let key = idempotency::key(hosted.dedupe(), &engine.seal_key, &call.scope, given, &req)?;
    let sending = Sending { engine, call: &call, hosted, key, wait };
    let Some(id) = req.message.task_id.clone() else { return start::start(sending, req.message).await };
    for _ in 0..TRIES {
        let snapshot = get_task::load(engine, &call, &id).await?;
        // Not asked often; boxed, so that the future of a first message stays small.
        let recorded = Box::pin(follow_up::follow_up(sending, snapshot, &req.message)).await?;
        if let Some(submitted) = recorded {
            return Ok(submitted);
        }
    }
    Err(Error::Unavailable("the task changes too fast to take a message; try again".into()))
}

/// What every step of a send needs to know.
#[derive(Clone, Copy)]
struct Sending<'a> {
    engine: &'a Parts,
    call: &'a Call,
    hosted: &'a Hosted,
    key: Option<MessageKey>,
    wait: Wait,
}

impl Sending<'_> {
    fn watch(&self, no: TaskNo) -> Watcher {
        let patience = if self.wait == Wait::AsStream { Patience::Stream } else { Patience::Call };
        self.engine.feed.watch(self.engine.store.clone(), self.call.scope.clone(), no, patience)
    }
}

impl Submitted {
    /// A log that has been committed: its first entry is the status the message caused, the rest follows it.
    fn new(
        mut task: Task,
        visibility: Visibility,
        log: &Log,
        committed: Committed,
        mut watcher: Option<Watcher>,
    ) -> Result<Self> {
        if let Some(watcher) = &mut watcher {
            watcher.seek(committed.last_seq, committed.last_seq);
        }
        let seq = committed.last_seq + 1 - log.len();
        let mut numbered = (seq..).zip(log.entries().iter().cloned());
        if let Some((_, opening)) = numbered.next() {
            fold::apply(&mut task, &opening)?;
        }
        Ok(Self { task, seq, rest: numbered.collect(), visibility, watcher, replayed: false })
    }
}
