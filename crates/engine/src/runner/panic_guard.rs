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
pub(crate) struct PanicGuard(BoxFuture<'static, AgentResult<Outcome>>);

/// The agent panicked; the panic message, for the log.
pub(crate) struct Panicked(pub(crate) String);

impl PanicGuard {
    pub(crate) fn new(turn: BoxFuture<'static, AgentResult<Outcome>>) -> Self {
        Self(turn)
    }
}

impl Future for PanicGuard {
    type Output = Result<AgentResult<Outcome>, Panicked>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // After a panic the future is never polled again, so a broken invariant inside it cannot be observed.
        match catch_unwind(AssertUnwindSafe(|| self.0.as_mut().poll(cx))) {
            Ok(polled) => polled.map(Ok),
            Err(payload) => Poll::Ready(Err(Panicked(text(&*payload)))),
        }
    }
}

fn text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}
