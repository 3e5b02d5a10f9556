//! The log: lines for a person on a terminal, JSON for everything else, on stderr.
//!
//! `A2AD_LOG` sets how much: a level such as `debug` or `warn` for all targets, `TARGET=LEVEL` such as `a2ad::call=off`
//! for one of them, both separated by commas. The level of all other targets is `info` unless it is given; to it belongs
//! one line for each call, of the target `a2ad::call`. No line holds a message
//! or a credential.
//!
//! A thread of its own writes, so that no call waits for stderr: a line at once after a quiet moment, and those that follow
//! together a few milliseconds later. Its queue is bounded: where stderr is not read, lines
//! are dropped and counted, and the count is logged as soon as lines can be written again.

mod filter;
mod json;

use std::{
    fmt,
    io::{self, BufWriter, IsTerminal as _, Stderr, Write},
    sync::{
        Arc, Condvar, Mutex, OnceLock, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use engine::Clock;
use tracing::Dispatch;
use tracing_appender::non_blocking::{ErrorCounter, NonBlocking, NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::{
    EnvFilter,
    fmt::{format::Writer, time::FormatTime},
    util::SubscriberInitExt as _,
};

use self::json::Json;

/// The variable that sets how much is logged.
const VARIABLE: &str = "A2AD_LOG";
/// How many lines may wait to be written; about 3 MiB.
const QUEUED_LINES: usize = 8_192;
/// How much is written at a time while lines are queued.
const BUFFER_BYTES: usize = 64 * 1024;
/// How long lines gather after some were written. To wake the thread for each line took an eighth of the calls per second.
const PAUSE: Duration = Duration::from_millis(10);

/// Keeps the log's thread running; dropping it writes the lines that are still queued. Hold it until the process ends.
#[must_use = "lines that are still queued are written when this is dropped"]
pub struct Guard(Option<(Arc<Shared>, WorkerGuard)>);

/// Starts to log as the program does. Does nothing if the process logs already.
pub fn start() -> Guard {
    start_with(&problems())
}

/// One sentence for each part of `A2AD_LOG` that cannot be used.
pub(crate) fn problems() -> Vec<String> {
    filter::parse(VARIABLE, &setting()).1
}

fn setting() -> String {
    std::env::var(VARIABLE).unwrap_or_default()
}

/// The same, with warnings to begin with: they are logged whatever `A2AD_LOG` sets.
pub(crate) fn start_with(warnings: &[String]) -> Guard {
    let (filter, _) = filter::parse(VARIABLE, &setting());
    let shared = Arc::new(Shared::default());
    let output =
        Output { stderr: BufWriter::with_capacity(BUFFER_BYTES, io::stderr()), shared: Arc::clone(&shared) };
    let queue = NonBlockingBuilder::default().lossy(true).buffered_lines_limit(QUEUED_LINES);
    let (writer, worker) = queue.thread_name("a2ad-log").finish(output);
    let _ = shared.dropped.set(writer.error_counter());
    let warner = subscriber(EnvFilter::new("warn"), writer.clone());
    if subscriber(filter, writer).try_init().is_err() {
        return Guard(None);
    }
    tracing::dispatcher::with_default(&warner, || {
        for warning in warnings {
            tracing::warn!("{warning}");
        }
    });
    Guard(Some((shared, worker)))
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some((shared, worker)) = self.0.take() {
            shared.report_dropped();
            shared.close();
            drop(worker);
        }
    }
}

fn subscriber(filter: EnvFilter, writer: NonBlocking) -> Dispatch {
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer);
    if io::stderr().is_terminal() {
        builder.compact().with_target(false).with_timer(TimeOfDay(Clock::system())).finish().into()
    } else {
        builder.event_format(Json(Clock::system())).finish().into()
    }
}

/// What the thread and its guard share.
#[derive(Default)]
struct Shared {
    /// The lines that found the queue full.
    dropped: OnceLock<ErrorCounter>,
    reported: AtomicUsize,
    /// The process is about to end.
    closing: Mutex<bool>,
    closed: Condvar,
}

impl Shared {
    /// Logs how many lines were dropped, if there are more than at the last report.
    fn report_dropped(&self) {
        let count = self.dropped.get().map_or(0, ErrorCounter::dropped_lines);
        if self.reported.swap(count, Ordering::Relaxed) < count {
            tracing::warn!(dropped_lines = count, "log lines were dropped: stderr was not read in time");
        }
    }

    /// Lets lines gather, unless the process is about to end.
    fn pause(&self) {
        let closing = self.closing.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.closed.wait_timeout_while(closing, PAUSE, |closing| !*closing));
    }

    fn close(&self) {
        *self.closing.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.closed.notify_all();
    }
}

/// Where the thread writes. It flushes whenever its queue is empty.
struct Output {
    stderr: BufWriter<Stderr>,
    shared: Arc<Shared>,
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stderr.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stderr.flush()?;
        self.shared.report_dropped();
        self.shared.pause();
        Ok(())
    }
}

/// Hours, minutes and seconds in UTC: a person knows the day.
struct TimeOfDay(Clock);

impl FormatTime for TimeOfDay {
    fn format_time(&self, out: &mut Writer<'_>) -> fmt::Result {
        let now = self.0.now().to_string();
        out.write_str(now.get(11..19).unwrap_or(&now))
    }
}
