//! The clients' ledger: what each of them asked and what it was told, in the order in which it happened.
//!
//! It is the oracle of T-R1: it lives outside the server, survives each kill, and is only ever appended to. A
//! fact is written after the answer has arrived whole, so a cut connection acknowledges nothing. Deliberately
//! not here: any judgement, which is `judge.rs`.

use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;
use uuid::Uuid;

use crate::verify::view::Outcome;

/// What a client sets out to do. Each makes one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operation {
    /// A blocking send to `echo`.
    Send,
    /// A send to `echo` that does not wait.
    SendAtOnce,
    /// A stream from `echo`.
    Stream,
    /// A stream of chunks from `slow-writer`, sometimes with a second reader.
    Write,
    /// A task held by `echo` that is then cancelled.
    Cancel,
}

impl Operation {
    pub(crate) const ALL: [Self; 5] = [Self::Send, Self::SendAtOnce, Self::Stream, Self::Write, Self::Cancel];

    pub(crate) fn agent(self) -> &'static str {
        match self {
            Self::Write => "slow-writer",
            Self::Send | Self::SendAtOnce | Self::Stream | Self::Cancel => "echo",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::SendAtOnce => "send_at_once",
            Self::Stream => "stream",
            Self::Write => "write",
            Self::Cancel => "cancel",
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Fact {
    /// The server became ready; boots count from 1.
    Booted { boot: u64 },
    /// A client is about to send this message; `call` is its messageId.
    Called { call: Uuid, operation: Operation, text: String },
    /// A client was given the task of its call.
    Accepted { call: Uuid, task: String },
    /// A client is about to subscribe: the answer must know every number seen by anyone so far.
    Subscribing { stream: Uuid, task: String },
    /// A stream began with the task as of this number.
    Opened { stream: Uuid, task: String, seq: Option<u64> },
    /// A stream went on with this event.
    Followed { stream: Uuid, task: String, seq: Option<u64>, digest: u64, ends: bool },
    /// A stream was closed in good order although its task had not ended.
    ClosedEarly { task: String },
    /// A client saw the end of a task, in an answer or at the end of a stream.
    Ended { task: String, outcome: Outcome },
    /// A client was told that its task does not exist.
    Missing { task: String },
    /// The connection broke before the answer was whole, while the server was being killed.
    Cut,
    /// The connection broke although nobody was killing the server.
    CutByLivingServer,
    /// The server asked a client to come back later.
    Postponed,
    /// The server gave an answer that no client expects.
    Refused { what: String },
}

#[derive(Default)]
pub(crate) struct Ledger {
    facts: Mutex<Vec<Fact>>,
    acknowledged: Notify,
}

impl Ledger {
    pub(crate) fn record(&self, fact: Fact) {
        let acknowledges = matches!(fact, Fact::Accepted { .. } | Fact::Ended { .. });
        self.facts.lock().unwrap_or_else(PoisonError::into_inner).push(fact);
        if acknowledges {
            self.acknowledged.notify_waiters();
        }
    }

    /// Waits for the next fact by which something counts as acknowledged.
    pub(crate) async fn next_acknowledgement(&self) {
        self.acknowledged.notified().await;
    }

    /// The facts from a position on; the next position is the old one plus their number.
    pub(crate) fn since(&self, position: usize) -> Vec<Fact> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)[position..].to_vec()
    }
}
