//! The result of a committed or rejected change.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use protocol::{ErrorKind, TaskState};
use tokio::sync::oneshot;

use crate::{
    access::principal_caps::CapReached,
    error,
    ids::{Tag, TaskNo},
    log::Seq,
};

/// A future of a change's result.
pub struct Receipt(oneshot::Receiver<Result<Committed, NotCommitted>>);

/// The store's sending half of a [`Receipt`].
pub struct ReceiptSender(oneshot::Sender<Result<Committed, NotCommitted>>);

impl Receipt {
    /// Creates both halves.
    pub fn new() -> (ReceiptSender, Self) {
        let (sender, receiver) = oneshot::channel();
        (ReceiptSender(sender), Self(receiver))
    }
}

impl ReceiptSender {
    /// Sends the result; a dropped receiver is ignored.
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

/// The task's row after a durable change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Committed {
    /// Sequence number of the task's last entry.
    pub last_seq: Seq,
    /// Current fencing token.
    pub fence: i64,
    /// Attempts made so far.
    pub attempt: i64,
    /// Size of the task's log without progress messages, in bytes.
    pub size: u64,
}

/// Why a change was not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotCommitted {
    /// The row does not satisfy the step's guards.
    Conflict(Conflict),
    /// The message is a duplicate.
    KeyUsed(KeyUsed),
    /// The store cannot write; the reason.
    Unavailable(String),
    /// More is queued than the store writes soon, so a client's message is rejected; try again later. Never the
    /// result of another change.
    Overloaded,
    /// Little disk space is left, so a client's message is rejected; try again later. Never the result of another change.
    LowOnSpace,
    /// The principal has as much as it may have, so a client's message is rejected. Never the result of another change.
    CapReached(CapReached),
    /// The task has as many webhooks as it may have, so a message with another one is rejected.
    TooManyWebhooks,
    /// The task would become larger than the store can hold; the reason, for the client.
    TooLarge(String),
}

/// Where the key of a duplicate message was first used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyUsed {
    /// Row number of the task.
    pub task: TaskNo,
    /// The random part of the task's public id.
    pub tag: Tag,
    /// Sequence number of the status update that message caused.
    pub seq: Seq,
    /// Whether the content is the same.
    pub same: bool,
}

/// The row that failed the guards of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// State; `None` when the task does not exist.
    pub state: Option<TaskState>,
    /// Fencing token.
    pub fence: i64,
    /// Messages recorded since the current turn started.
    pub unanswered: i64,
}

/// The error text for a rejected client message.
pub(crate) const OVERLOADED: &str = "the server receives more than its store writes; try again in a second";

const LOW_ON_SPACE: &str = "the server has little disk space left and accepts no messages at the moment; tasks can be read \
     and cancelled, try again later";

impl From<NotCommitted> for error::Error {
    fn from(failure: NotCommitted) -> Self {
        match failure {
            NotCommitted::Unavailable(reason) => Self::Unavailable(reason),
            NotCommitted::Overloaded => Self::later(OVERLOADED),
            // Not in the log for every message: the store logs when it begins and ends.
            NotCommitted::LowOnSpace => {
                Self::Refused(protocol::Error::new(ErrorKind::Unavailable, LOW_ON_SPACE).with_retry_after(10))
            }
            NotCommitted::CapReached(reached) => Self::Refused(reached.into()),
            NotCommitted::TooManyWebhooks => crate::operations::too_many_webhooks(),
            NotCommitted::TooLarge(reason) => Self::invalid("message", reason),
            NotCommitted::KeyUsed(used) => Self::Broken(format!("unexpected duplicate key: {used:?}")),
            NotCommitted::Conflict(met) => Self::Broken(format!("unexpected conflict: {met:?}")),
        }
    }
}
