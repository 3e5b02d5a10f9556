//! Logging to stderr: text on a terminal, JSON otherwise.
//!
//! `A2AD_LOG` sets the filter: a level such as `debug` or `warn` for all targets, `TARGET=LEVEL` such as
//! `a2ad::call=off` for one target, separated by commas. The default level is `info`, which includes one line per
//! call with the target `a2ad::call`. No line contains the content of a message or a credential.
//!
//! Marks that change the direction of text may come from others, and are escaped: a terminal would show the line in
//! another order. The formatters escape control characters.
//!
//! A separate thread writes, so that no call waits for stderr: the first line after an idle period at once, the
//! following ones in batches every few milliseconds. Its queue is bounded: if stderr is not read, lines are dropped
//! and counted, and the count is logged when lines can be written again.

mod filter;
mod json;
#[cfg(feature = "otel")]
mod otlp;

use std::{
    borrow::Cow,
    fmt::{self, Write as _},
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
    fmt::{MakeWriter, format::Writer, time::FormatTime},
    util::SubscriberInitExt as _,
};

use self::json::JsonFormat;
use crate::cli::changes_direction;

/// The environment variable with the filter.
const VARIABLE: &str = "A2AD_LOG";
/// The most lines that wait to be written; about 3 MiB.
const QUEUED_LINES: usize = 8_192;
/// The size of the write buffer.
const BUFFER_BYTES: usize = 64 * 1024;
/// How long lines are batched after a write. Waking the thread for each line reduced the calls per second by an
/// eighth.
const BATCH_INTERVAL: Duration = Duration::from_millis(10);

/// Owns the logging thread; dropping it writes the queued lines. Keep it until the process ends.
#[must_use = "lines that are still queued are written when this is dropped"]
pub(crate) struct Guard {
    /// Dropped first: the log shows what happens meanwhile.
    spans: Option<SpanGuard>,
    log: Option<(Arc<SharedState>, WorkerGuard)>,
}

#[cfg(feature = "otel")]
use otlp::FlushOnDrop as SpanGuard;
#[cfg(not(feature = "otel"))]
type SpanGuard = std::convert::Infallible;

/// One message for each part of `A2AD_LOG` that cannot be used.
pub(crate) fn problems() -> Vec<String> {
    filter::parse(VARIABLE, &setting()).1
}

fn setting() -> String {
    std::env::var(VARIABLE).unwrap_or_default()
}

/// Starts logging, and logs these warnings regardless of the filter. With the address of an OpenTelemetry collector,
/// spans are sent there; without the feature `otel`, the configuration accepts none.
pub(crate) fn start(warnings: &[String], otlp: Option<&str>) -> anyhow::Result<Guard> {
    let (filter, _) = filter::parse(VARIABLE, &setting());
    let shared = Arc::new(SharedState::default());
    let output =
        LogWriter { out: BufWriter::with_capacity(BUFFER_BYTES, io::stderr()), shared: Arc::clone(&shared) };
    let queue = NonBlockingBuilder::default().lossy(true).buffered_lines_limit(QUEUED_LINES);
    let (writer, worker) = queue.thread_name("a2ad-log").finish(output);
    let _ = shared.dropped.set(writer.error_counter());
    let warner = subscriber(EnvFilter::new("warn"), writer.clone());
    let (logger, spans) = match otlp {
        Some(endpoint) => {
            let (logger, spans) = subscriber_with_spans(filter, writer, endpoint)?;
            (logger, Some(spans))
        }
        None => (subscriber(filter, writer), None),
    };
    if logger.try_init().is_err() {
        return Ok(Guard { spans, log: None });
    }
    tracing::dispatcher::with_default(&warner, || {
        for warning in warnings {
            tracing::warn!("{warning}");
        }
    });
    Ok(Guard { spans, log: Some((shared, worker)) })
}

/// Logs what happens before logging can start, because the configuration that it needs is being read. Each line is written
/// at once.
pub(crate) fn before_start<T>(work: impl FnOnce() -> T) -> T {
    let (filter, _) = filter::parse(VARIABLE, &setting());
    tracing::dispatcher::with_default(&subscriber(filter, || UnqueuedWriter(io::stderr())), work)
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.spans = None;
        if let Some((shared, worker)) = self.log.take() {
            shared.report_dropped();
            shared.close();
            drop(worker);
        }
    }
}

fn subscriber<W>(filter: EnvFilter, writer: W) -> Dispatch
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer);
    if io::stderr().is_terminal() {
        builder.compact().with_target(false).with_timer(TimeOfDay(Clock::system())).finish().into()
    } else {
        builder.event_format(JsonFormat(Clock::system())).finish().into()
    }
}

/// The same, and spans are sent to a collector. Filters are per layer: the log's does not decide about spans.
#[cfg(feature = "otel")]
fn subscriber_with_spans(
    filter: EnvFilter,
    writer: NonBlocking,
    endpoint: &str,
) -> anyhow::Result<(Dispatch, SpanGuard)> {
    use tracing_subscriber::{Layer as _, filter::filter_fn, layer::SubscriberExt as _};
    let (spans, flush) = otlp::OtlpLayer::new(endpoint)?;
    let spans = spans.with_filter(filter_fn(otlp::is_sent));
    let lines = tracing_subscriber::fmt::layer().with_writer(writer);
    let registry = tracing_subscriber::registry().with(spans);
    let logger = if io::stderr().is_terminal() {
        let timer = TimeOfDay(Clock::system());
        let lines = lines.compact().with_target(false).with_timer(timer).with_filter(filter);
        registry.with(lines).into()
    } else {
        let lines = lines.event_format(JsonFormat(Clock::system())).with_filter(filter);
        registry.with(lines).into()
    };
    Ok((logger, flush))
}

#[cfg(not(feature = "otel"))]
fn subscriber_with_spans(_: EnvFilter, _: NonBlocking, _: &str) -> anyhow::Result<(Dispatch, SpanGuard)> {
    anyhow::bail!("this program was built without the feature otel, so it cannot send traces")
}

/// The state shared by the thread and its guard.
#[derive(Default)]
struct SharedState {
    /// Counts the lines that were dropped because the queue was full.
    dropped: OnceLock<ErrorCounter>,
    reported: AtomicUsize,
    /// Set when the guard is dropped: ends a running pause.
    closing: Mutex<bool>,
    closed: Condvar,
}

impl SharedState {
    /// Logs the number of dropped lines if it has grown since the last report.
    fn report_dropped(&self) {
        let count = self.dropped.get().map_or(0, ErrorCounter::dropped_lines);
        if self.reported.swap(count, Ordering::Relaxed) < count {
            tracing::warn!(dropped_lines = count, "log lines were dropped: stderr was not read in time");
        }
    }

    /// Waits for further lines to batch, unless the guard is dropped.
    fn wait_for_batch(&self) {
        let closing = self.closing.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.closed.wait_timeout_while(closing, BATCH_INTERVAL, |closing| !*closing));
    }

    fn close(&self) {
        *self.closing.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.closed.notify_all();
    }
}

/// Writes lines without a queue.
struct UnqueuedWriter(Stderr);

impl Write for UnqueuedWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write_all(&without_direction(bytes))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The thread's writer. `flush` is called whenever the queue is empty.
struct LogWriter<W: Write> {
    out: BufWriter<W>,
    shared: Arc<SharedState>,
}

impl<W: Write> Write for LogWriter<W> {
    /// Writes a whole line, or several.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write_all(&without_direction(bytes))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()?;
        self.shared.report_dropped();
        self.shared.wait_for_batch();
        Ok(())
    }
}

/// Escapes the marks that change the direction of text; the same in JSON and in text.
fn without_direction(line: &[u8]) -> Cow<'_, [u8]> {
    // Almost every line; far cheaper than a look at each character.
    if line.is_ascii() {
        return line.into();
    }
    let text = String::from_utf8_lossy(line);
    if !text.contains(changes_direction) {
        return line.into();
    }
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        if changes_direction(character) {
            let _ = write!(escaped, "\\u{:04x}", u32::from(character));
        } else {
            escaped.push(character);
        }
    }
    escaped.into_bytes().into()
}

/// Hours, minutes and seconds in UTC, for people.
struct TimeOfDay(Clock);

impl FormatTime for TimeOfDay {
    fn format_time(&self, out: &mut Writer<'_>) -> fmt::Result {
        let now = self.0.now().to_string();
        out.write_str(now.get(11..19).unwrap_or(&now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_that_change_the_direction_of_text_are_escaped() {
        let out = BufWriter::new(Vec::new());
        let mut writer = LogWriter { out, shared: Arc::default() };
        writer.write_all("{\"error\":\"a\u{202e}b\u{2066}c\u{200f}\u{61c}\"}\n".as_bytes()).unwrap();
        writer.write_all("שלום – é\u{200d}\n".as_bytes()).unwrap();
        let written = String::from_utf8(writer.out.into_inner().unwrap()).unwrap();
        assert_eq!(written, "{\"error\":\"a\\u202eb\\u2066c\\u200f\\u061c\"}\nשלום – é\u{200d}\n");
    }
}
