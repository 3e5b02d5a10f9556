//! What the program says while it runs: lines for a person on a terminal, JSON for everything else, on stderr.
//!
//! `A2AD_LOG` says how much, in the words of `tracing-subscriber`'s `EnvFilter`: `debug`, `warn`, `a2ad::call=off`.
//! Where it says nothing, it is `info`, to which one line for each call belongs, of the target `a2ad::call`. No line
//! holds a message or a credential.

mod json;
mod lines;

use std::{fmt, io::IsTerminal as _};

use engine::Clock;
use tracing_subscriber::{
    EnvFilter,
    fmt::{format::Writer, time::FormatTime},
};

use self::{json::Json, lines::Lines};

/// The variable that says how much is logged.
const VARIABLE: &str = "A2AD_LOG";
const USUAL: &str = "info";
/// The target of the lines of calls.
const CALLS: &str = "a2ad::call";

static LINES: Lines = Lines::new();

/// Logs from now on as the program does. Keeps what is there if the process logs already.
pub fn start() {
    let terminal = std::io::stderr().is_terminal();
    let asked = std::env::var(VARIABLE).ok().filter(|asked| !asked.trim().is_empty());
    let (filter, wrong) = match asked.map(EnvFilter::try_new) {
        None => (EnvFilter::new(USUAL), None),
        Some(Ok(filter)) => (filter, None),
        Some(Err(error)) => (EnvFilter::new(USUAL), Some(error)),
    };
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(&LINES);
    let started = if terminal {
        builder.compact().with_target(false).with_timer(TimeOfDay(Clock::system())).try_init()
    } else {
        builder.event_format(Json(Clock::system())).try_init()
    };
    if started.is_err() {
        return;
    }
    if let Err(error) = LINES.start() {
        tracing::warn!(%error, "no thread for the log; its lines leave late");
    }
    if let Some(error) = wrong {
        tracing::warn!(%error, "{VARIABLE} is not understood; logging {USUAL}");
    }
}

/// Writes what still waits to be written. Lines of calls wait a few milliseconds; everything else does not.
pub(crate) fn flush() {
    LINES.flush();
}

/// Hours, minutes and seconds in UTC: a person knows the day.
struct TimeOfDay(Clock);

impl FormatTime for TimeOfDay {
    fn format_time(&self, out: &mut Writer<'_>) -> fmt::Result {
        let now = self.0.now().to_string();
        out.write_str(now.get(11..19).unwrap_or(&now))
    }
}
