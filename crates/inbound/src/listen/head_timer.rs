//! How long a connection of HTTP/1.1 may be idle, and how long the head of a request may take.
//!
//! hyper has one timer for both: it starts when the connection begins to wait for a request. Here that timer runs for the
//! idle time until the first byte arrives, and for the time of a head from then on, so that a proxy can keep its
//! connections open while a peer that sends its head byte by byte is cut off soon.

use std::{
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
    time::{Duration, Instant},
};

use hyper::rt::{Sleep, Timer};
use pin_project_lite::pin_project;

use super::connection_io::Progress;

pub(super) struct HeadTimer {
    pub(super) progress: Arc<Progress>,
    /// How long a head may take from its first byte on.
    pub(super) timeout: Duration,
}

impl Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Sleep>> {
        self.sleep_until(Instant::now() + duration)
    }

    fn sleep_until(&self, deadline: Instant) -> Pin<Box<dyn Sleep>> {
        self.progress.head_begun.store(false, Ordering::Relaxed);
        Box::pin(HeadSleep {
            sleep: tokio::time::sleep_until(deadline.into()),
            progress: Arc::clone(&self.progress),
            timeout: self.timeout,
            begun: false,
        })
    }

    fn now(&self) -> Instant {
        tokio::time::Instant::now().into()
    }
}

pin_project! {
    struct HeadSleep {
        #[pin]
        sleep: tokio::time::Sleep,
        progress: Arc<Progress>,
        timeout: Duration,
        begun: bool,
    }
}

impl Future for HeadSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut this = self.project();
        if !*this.begun && this.progress.head_begun.load(Ordering::Relaxed) {
            *this.begun = true;
            this.sleep.as_mut().reset(tokio::time::Instant::now() + *this.timeout);
        }
        this.sleep.poll(cx)
    }
}

impl Sleep for HeadSleep {}
