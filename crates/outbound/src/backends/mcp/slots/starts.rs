//! When a process may be started, depending on how earlier starts ended.

use std::time::Duration;

use tokio::time::Instant;

use crate::backends::mcp::sdk::ConnectError;

/// Consecutive failures after which calls no longer wait for a start.
pub(super) const BREAKER: u32 = 5;
/// Shorter than the time in which the engine uses up the attempts of a turn, so that a short outage fails no task.
const PROBE_INTERVAL: Duration = Duration::from_secs(5);
/// Time between starts of a server that requires credentials, when no call waits for it.
pub(super) const AUTH_INTERVAL: Duration = Duration::from_secs(30);
const FIRST_DELAY: Duration = Duration::from_millis(100);
/// Minimum time between starts of a server that requires credentials, when calls wait for it.
const AUTH_RETRY: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct Starts {
    /// Since the last call that was served.
    failures: u32,
    not_before: Option<Instant>,
    last_error: Option<ConnectError>,
    last_failure_at: Option<Instant>,
}

impl Starts {
    pub(super) fn succeeded(&mut self) {
        self.not_before = None;
    }

    /// A call was answered.
    pub(super) fn served(&mut self) {
        self.failures = 0;
    }

    pub(super) fn failed(&mut self, error: ConnectError, now: Instant, random: u64) {
        let delay = match &error {
            ConnectError::Auth { .. } => AUTH_INTERVAL,
            ConnectError::Failed(_) => {
                self.failures += 1;
                backoff(self.failures, random)
            }
        };
        self.last_error = Some(error);
        self.last_failure_at = Some(now);
        self.not_before = Some(now + delay);
    }

    /// A call waits. If the server requires credentials, the client may have obtained them.
    pub(super) fn call_waits(&mut self, now: Instant) {
        if let (Some(ConnectError::Auth { .. }), Some(at)) = (&self.last_error, &mut self.not_before) {
            *at = (*at).min(now + AUTH_RETRY);
        }
    }

    /// The next start is later.
    pub(super) fn is_delayed(&self, now: Instant) -> bool {
        self.not_before.is_some_and(|at| now < at)
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.not_before
    }

    pub(super) fn is_failing(&self) -> bool {
        self.failures > 0
    }

    /// Calls do not wait for the next start.
    pub(super) fn is_broken(&self) -> bool {
        self.failures >= BREAKER
    }

    /// Why the last start failed, and when.
    pub(super) fn last_failure(&self) -> Option<(String, Instant)> {
        self.last_failure_at.map(|at| (self.error(), at))
    }

    /// Why the last start failed; empty if none has.
    pub(super) fn error(&self) -> String {
        match &self.last_error {
            Some(error) => error.to_string(),
            None => String::new(),
        }
    }
}

/// Exponential, with a jitter of up to one half.
fn backoff(failures: u32, random: u64) -> Duration {
    if failures >= BREAKER {
        return PROBE_INTERVAL;
    }
    let delay = FIRST_DELAY.saturating_mul(1 << failures.saturating_sub(1));
    delay - delay.mul_f64((random % 1_000) as f64 / 2_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_grows_with_jitter() {
        let millis = |failures, random| backoff(failures, random).as_millis();
        let delays = [1, 2, 3, 4, 5, 9].map(|failures| millis(failures, 0));
        assert_eq!(delays, [100, 200, 400, 800, 5_000, 5_000]);
        assert_eq!(millis(4, 999), 400);
    }
}
