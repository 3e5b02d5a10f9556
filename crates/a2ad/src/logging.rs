//! What the program says while it runs: lines for a person on a terminal, JSON for everything else, on stderr.
//!
//! `A2AD_LOG` says how much, in the words of `tracing-subscriber`'s `EnvFilter`: `debug`, `warn`, `a2ad::call=off`.
//! Where it says nothing, it is `info`. One line for each call, `info` of the target `a2ad::call`, belongs to that on a
//! terminal only: a person who tries things out wants to see each call, while a server under load would spend a tenth
//! of its time to fill a disk with what its metrics say better. A service that wants them says `A2AD_LOG=info`.
//! No line holds a message or a credential.

use std::{fmt, io::IsTerminal as _};

use engine::Clock;
use tracing_subscriber::{
    EnvFilter,
    fmt::{format::Writer, time::FormatTime},
};

/// The variable that says how much is logged.
const VARIABLE: &str = "A2AD_LOG";
/// On a terminal.
const FOR_PEOPLE: &str = "info";
/// Everywhere else.
const FOR_MACHINES: &str = "info,a2ad::call=warn";

/// Logs from now on as the program does. Keeps what is there if the process logs already.
pub fn start() {
    let terminal = std::io::stderr().is_terminal();
    let usual = if terminal { FOR_PEOPLE } else { FOR_MACHINES };
    let asked = std::env::var(VARIABLE).ok().filter(|asked| !asked.trim().is_empty());
    let (filter, wrong) = match asked.map(EnvFilter::try_new) {
        None => (EnvFilter::new(usual), None),
        Some(Ok(filter)) => (filter, None),
        Some(Err(error)) => (EnvFilter::new(usual), Some(error)),
    };
    // Whoever closes our stderr loses the lines and nothing else: complaining there about it would panic.
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .log_internal_errors(false);
    let started = if terminal {
        builder.compact().with_target(false).with_timer(TimeOfDay(Clock::system())).try_init()
    } else {
        builder.json().flatten_event(true).try_init()
    };
    if let (Ok(()), Some(error)) = (started, wrong) {
        tracing::warn!(%error, "{VARIABLE} is not understood; logging {usual}");
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
