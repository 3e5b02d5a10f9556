//! A fence around an agent: its panic ends its turn and nothing else.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use futures_util::future::BoxFuture;

use crate::agent::{Agent, Outcome, Turn, Updates};

/// An agent's turn that cannot panic.
pub(crate) enum Fenced {
    /// Not polled yet.
    Start(Option<Box<Beginning>>),
    /// At work.
    Running(BoxFuture<'static, Outcome>),
}

/// What a turn begins with.
pub(crate) struct Beginning {
    agent: Arc<dyn Agent>,
    turn: Turn,
    out: Updates,
}

/// The agent panicked; the text is for the log.
pub(crate) struct Panicked(pub(crate) String);

impl Fenced {
    pub(crate) fn new(agent: Arc<dyn Agent>, turn: Turn, out: Updates) -> Self {
        Self::Start(Some(Box::new(Beginning { agent, turn, out })))
    }

    fn begin(&mut self) {
        if let Self::Start(parts) = self
            && let Some(beginning) = parts.take()
        {
            let Beginning { agent, turn, out } = *beginning;
            *self = Self::Running(agent.run(turn, out));
        }
    }
}

impl Future for Fenced {
    type Output = Result<Outcome, Panicked>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // After a panic the future is never polled again, so no broken invariant of it can be seen.
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
