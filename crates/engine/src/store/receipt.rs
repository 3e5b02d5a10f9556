//! What became of a change.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use protocol::TaskState;
use tokio::sync::oneshot;

use crate::{
    error,
    ids::{Tag, TaskNo},
    log::Seq,
};

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
    /// Bytes of the task's log.
    pub size: u64,
}

/// A change that did not happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotCommitted {
    /// The row was not as the step demands.
    Conflict(Conflict),
    /// The message is a repetition.
    KeyUsed(KeyUsed),
    /// The store cannot write.
    Unavailable(String),
}

/// Where the key of a repeated message was used first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeyUsed {
    /// The task.
    pub task: TaskNo,
    /// The random part of its name.
    pub tag: Tag,
    /// The number of the status that message caused.
    pub seq: Seq,
    /// Whether the same was said then.
    pub same: bool,
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
            NotCommitted::KeyUsed(used) => {
                Self::Broken(format!("a change met a key nobody expected: {used:?}"))
            }
            NotCommitted::Conflict(met) => {
                Self::Broken(format!("a change met a conflict nobody expected: {met:?}"))
            }
        }
    }
}
