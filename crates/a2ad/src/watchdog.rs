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
/// How long a shutdown may take beyond its own limits.
const MARGIN: Duration = Duration::from_secs(1);
/// How long it may take after a second signal.
const AFTER_SECOND_SIGNAL: Duration = Duration::from_secs(5);
/// How long the log may take to be written.
const LOG_TIME: Duration = Duration::from_millis(250);

/// Watches over the process until this is dropped.
pub(crate) struct Watchdog(DropGuard);

impl Watchdog {
    pub(crate) fn start() -> Option<Self> {
        let ended = CancellationToken::new();
        let guard = ended.clone().drop_guard();
        let started = runtime::Builder::new_current_thread().enable_all().build().and_then(|runtime| {
            let watch = move || {
                let overdue = runtime.block_on(ended.run_until_cancelled(overdue()));
                if overdue.is_some() {
                    runtime.block_on(end_process());
                }
            };
            thread::Builder::new().name("watchdog".into()).spawn(watch)
        });
        match started {
            Ok(_) => Some(Self(guard)),
            Err(error) => {
                report(&error);
                None
            }
        }
    }

    /// Watches until the process ends.
    pub(crate) fn keep(self) {
        drop(self.0.disarm());
    }
}

fn report(error: &io::Error) {
    tracing::warn!(%error, "cannot watch over the shutdown; a server that hangs has to be killed");
}

/// Resolves when the process should have ended.
async fn overdue() {
    Signals::new().next().await;
    let forced = async {
        second_signal().await;
        sleep(AFTER_SECOND_SIGNAL).await;
    };
    tokio::select! {
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
