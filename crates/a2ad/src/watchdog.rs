//! Ends the process when a graceful shutdown takes too long, even if the runtime hangs.
//!
//! The watchdog has a thread and a small runtime of its own, so it also receives the signal when no thread of the server's
//! runtime is free to do so.

use std::{io, thread, time::Duration};

use tokio::{runtime, time::sleep};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::serve::{CONNECTIONS_LIMIT, SHUTDOWN_LIMIT, Signals, second_signal};

/// The exit code of a process that had to be ended: the shutdown was not graceful, and may not have been complete.
const EXIT_CODE: i32 = 75;
/// How long a drain may take beyond its own limits.
const MARGIN: Duration = Duration::from_secs(1);
/// How long it may take after a second signal.
const AFTER_SECOND_SIGNAL: Duration = Duration::from_secs(5);
/// How long the process may take after the drain: the store is written, the stop is recorded, and the processes of backends
/// have 5 s to end.
const AFTER_DRAIN: Duration = Duration::from_secs(10);
/// How long the log may take to be written.
const LOG_TIME: Duration = Duration::from_millis(250);

/// Watches over the process until this is dropped.
pub(crate) struct Watchdog {
    ended: DropGuard,
    drained: CancellationToken,
}

impl Watchdog {
    pub(crate) fn start() -> Option<Self> {
        let ended = CancellationToken::new();
        let drained = CancellationToken::new();
        let watchdog = Self { ended: ended.clone().drop_guard(), drained: drained.clone() };
        let started = runtime::Builder::new_current_thread().enable_all().build().and_then(|runtime| {
            let watch = move || {
                let overdue = async {
                    Signals::new().next().await;
                    overdue(drained.cancelled(), second_signal()).await;
                };
                let is_overdue = runtime.block_on(ended.run_until_cancelled(overdue)).is_some();
                if is_overdue {
                    runtime.block_on(end_process());
                }
            };
            thread::Builder::new().name("watchdog".into()).spawn(watch)
        });
        match started {
            Ok(_) => Some(watchdog),
            Err(error) => {
                report(&error);
                None
            }
        }
    }

    /// The drain has ended in time: the rest of the shutdown has a time of its own.
    pub(crate) fn drained(&self) {
        self.drained.cancel();
    }

    /// Watches until the process ends.
    pub(crate) fn keep(self) {
        drop(self.ended.disarm());
    }
}

fn report(error: &io::Error) {
    tracing::warn!(%error, "cannot watch over the shutdown; a server that hangs has to be killed");
}

/// Resolves when the process should have ended that is shutting down.
async fn overdue(drained: impl Future<Output = ()>, second_signal: impl Future<Output = ()>) {
    let forced = async {
        second_signal.await;
        sleep(AFTER_SECOND_SIGNAL).await;
    };
    tokio::select! {
        biased;
        () = drained => sleep(AFTER_DRAIN).await,
        () = sleep(SHUTDOWN_LIMIT + CONNECTIONS_LIMIT + MARGIN) => {}
        () = forced => {}
    }
}

async fn end_process() {
    tracing::error!(
        exit_code = EXIT_CODE,
        "the shutdown has not ended in time, so the process ends now; what is stored is complete, and interrupted tasks \
         continue at the next start"
    );
    sleep(LOG_TIME).await;
    #[expect(clippy::disallowed_methods, reason = "main does not end: the runtime that it waits for hangs")]
    std::process::exit(EXIT_CODE);
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::time::{Instant, timeout};

    use super::*;

    const DRAIN: Duration = Duration::from_secs(25 + 3);

    async fn seconds(drained: impl Future<Output = ()>, second_signal: impl Future<Output = ()>) -> u64 {
        let started = Instant::now();
        timeout(10 * DRAIN, overdue(drained, second_signal)).await.unwrap();
        started.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn process_that_hangs_is_ended_when_the_drain_time_is_over() {
        assert_eq!(seconds(pending(), pending()).await, 29);
        assert_eq!(seconds(pending(), sleep(Duration::from_secs(3))).await, 8);
    }

    /// Afterwards the store is written and the processes of backends are stopped, which may take 5 s.
    #[tokio::test(start_paused = true)]
    async fn process_that_was_drained_in_time_has_time_for_the_rest() {
        assert!(seconds(sleep(DRAIN), pending()).await >= 28 + 8);
        assert!(seconds(sleep(Duration::from_secs(4)), sleep(Duration::from_secs(3))).await >= 4 + 8);
    }

    #[tokio::test(start_paused = true)]
    async fn process_that_hangs_after_the_drain_is_ended() {
        assert!(seconds(sleep(Duration::from_secs(1)), pending()).await <= 1 + 12);
    }
}
