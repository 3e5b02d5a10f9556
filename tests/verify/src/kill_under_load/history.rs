//! The clients' history: what each client requested and received, in order.
//!
//! It is the oracle of kill_under_load: it is outside the server, survives each kill, and is append-only. A fact is
//! recorded after the complete response has arrived, so a lost connection acknowledges nothing. Deliberately not
//! here: any judgement, which is in `checker.rs`.

use std::sync::{Mutex, PoisonError};

use tokio::sync::Notify;
use uuid::Uuid;

use crate::step_reports;
use crate::view::Outcome;

/// The operations of the clients. Each creates one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operation {
    /// A blocking send to `echo`.
    Send,
    /// A send to `echo` that returns immediately.
    SendImmediate,
    /// A stream from `echo`.
    Stream,
    /// A stream of chunks from `slow-writer`, sometimes with a second reader.
    Write,
    /// A stream of chunks from `journal-writer`, whose steps are counted outside the server.
    Journal,
    /// A task held by `echo` that is cancelled afterwards.
    Cancel,
}

impl Operation {
    pub(crate) const ALL: [Self; 6] =
        [Self::Send, Self::SendImmediate, Self::Stream, Self::Write, Self::Journal, Self::Cancel];

    pub(crate) fn agent(self) -> &'static str {
        match self {
            Self::Write => "slow-writer",
            Self::Journal => step_reports::AGENT,
            Self::Send | Self::SendImmediate | Self::Stream | Self::Cancel => "echo",
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::SendImmediate => "send_at_once",
            Self::Stream => "stream",
            Self::Write => "write",
            Self::Journal => "journal",
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
    /// A client received the task of its call.
    Accepted { call: Uuid, task: String },
    /// A client is about to subscribe: the response must include every event number seen by any client so far.
    Subscribing { stream: Uuid, task: String },
    /// A stream began with the task as of this event number.
    Opened { stream: Uuid, task: String, seq: Option<u64> },
    /// A stream delivered this event.
    Followed { stream: Uuid, task: String, seq: Option<u64>, digest: u64, ends: bool },
    /// A stream was closed properly although its task had not ended.
    ClosedEarly { task: String },
    /// A client saw the end of a task, in a response or at the end of a stream.
    Ended { task: String, outcome: Outcome },
    /// The server replied that a client's task does not exist.
    Missing { task: String },
    /// The connection was lost before the response was complete, while the server was being killed.
    Cut,
    /// The connection was lost although the server was not being killed.
    CutByLivingServer,
    /// The server sent an unexpected response.
    Refused { what: String },
}

#[derive(Default)]
pub(crate) struct History {
    facts: Mutex<Vec<Fact>>,
    acknowledged: Notify,
}

impl History {
    pub(crate) fn record(&self, fact: Fact) {
        let acknowledges = matches!(fact, Fact::Accepted { .. } | Fact::Ended { .. });
        self.facts.lock().unwrap_or_else(PoisonError::into_inner).push(fact);
        if acknowledges {
            self.acknowledged.notify_waiters();
        }
    }

    /// Waits for the next fact that acknowledges something.
    pub(crate) async fn next_acknowledgement(&self) {
        self.acknowledged.notified().await;
    }

    /// The facts from a position on; the next position is this one plus their number.
    pub(crate) fn since(&self, position: usize) -> Vec<Fact> {
        self.facts.lock().unwrap_or_else(PoisonError::into_inner)[position..].to_vec()
    }
}
