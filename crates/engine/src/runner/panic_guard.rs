//! Catches panics of an agent: a panic fails its turn and nothing else.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::future::BoxFuture;

use crate::agent::{Agent, Outcome, Turn, Updates};

/// The future of an agent's turn that returns a panic as an error.
pub(crate) enum PanicGuard {
    /// Not polled yet; `Agent::run` itself is called inside the guard.
    Start(Option<Box<StartArgs>>),
    /// The agent's future.
    Running(BoxFuture<'static, Outcome>),
}

/// The arguments of `Agent::run`.
pub(crate) struct StartArgs {
    agent: Arc<dyn Agent>,
    turn: Turn,
    out: Updates,
}

/// The agent panicked; the panic message, for the log.
pub(crate) struct Panicked(pub(crate) String);

impl PanicGuard {
    pub(crate) fn new(agent: Arc<dyn Agent>, turn: Turn, out: Updates) -> Self {
        Self::Start(Some(Box::new(StartArgs { agent, turn, out })))
    }

    fn begin(&mut self) {
        if let Self::Start(parts) = self
            && let Some(beginning) = parts.take()
        {
            let StartArgs { agent, turn, out } = *beginning;
            *self = Self::Running(agent.run(turn, out));
        }
    }
}

impl Future for PanicGuard {
    type Output = Result<Outcome, Panicked>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // After a panic the future is never polled again, so a broken invariant inside it cannot be observed.
        let polled = catch_unwind(AssertUnwindSafe(|| {
            self.begin();
            match &mut *self {
                Self::Running(future) => future.as_mut().poll(cx),
                Self::Start(_) => Poll::Pending,
            }
        }));
        match polled {
            Ok(polled) => polled.map(Ok),
            Err(payload) => Poll::Ready(Err(Panicked(text(&*payload)))),
        }
    }
}

fn text(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}
