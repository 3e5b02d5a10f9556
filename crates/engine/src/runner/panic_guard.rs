//! Catches panics of an agent: a panic fails its turn and nothing else.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    task::{Context, Poll},
};

use futures_util::future::BoxFuture;

use crate::agent::{AgentResult, Outcome};

/// The future of an agent's turn that returns a panic as an error.
pub(crate) struct PanicGuard {
    turn: BoxFuture<'static, AgentResult<Outcome>>,
    started: bool,
}

/// The agent panicked; the panic message, for the log.
pub(crate) struct Panicked(pub(crate) String);

impl PanicGuard {
    pub(crate) fn new(turn: BoxFuture<'static, AgentResult<Outcome>>) -> Self {
        Self { turn, started: false }
    }

    /// Drops the agent's future; returns the panic if it panics.
    pub(crate) fn discard(self) -> Option<Panicked> {
        let dropped = catch_unwind(AssertUnwindSafe(|| drop(self)));
        dropped.err().map(|payload| Panicked(text(&*payload)))
    }

    /// Whether the agent has been polled: before that, none of its code has run.
    pub(crate) fn is_started(&self) -> bool {
        self.started
    }
}

impl Future for PanicGuard {
    type Output = Result<AgentResult<Outcome>, Panicked>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.started = true;
        // After a panic the future is never polled again, so a broken invariant inside it cannot be observed.
        match catch_unwind(AssertUnwindSafe(|| self.turn.as_mut().poll(cx))) {
            Ok(polled) => polled.map(Ok),
            Err(payload) => Poll::Ready(Err(Panicked(text(&*payload)))),
        }
    }
}

fn text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}
