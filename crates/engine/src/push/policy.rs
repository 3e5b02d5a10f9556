//! When deliveries are attempted (pure).

use std::time::Duration;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(60 * 60);

/// How notifications are delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushPolicy {
    /// The waits between attempts, without jitter; there is one more attempt than waits.
    pub waits: Vec<Duration>,
    /// How long a receiver may take to respond.
    pub timeout: Duration,
    /// How long a host that does not respond is left alone before one attempt tests it.
    pub probe_interval: Duration,
    /// How long notifications that were given up are kept.
    pub dead_letters: Duration,
    /// Whether receivers registered in the draft dialect have to confirm their URL before the first notification.
    pub challenge: bool,
}

impl Default for PushPolicy {
    fn default() -> Self {
        Self {
            waits: vec![
                Duration::from_secs(5),
                MINUTE,
                5 * MINUTE,
                15 * MINUTE,
                30 * MINUTE,
                HOUR,
                2 * HOUR,
                4 * HOUR,
                8 * HOUR,
            ],
            timeout: Duration::from_secs(15),
            probe_interval: MINUTE,
            dead_letters: 7 * 24 * HOUR,
            challenge: false,
        }
    }
}

/// The longest `Retry-After` that is followed.
const MAX_RETRY_AFTER: Duration = HOUR;
/// What has waited this long is given up, even if its host was left alone most of the time.
pub(super) const MAX_WAIT: Duration = Duration::from_secs(24 * 60 * 60);

impl PushPolicy {
    /// The wait before the next attempt when `failed` have failed; `None` after the last one. `random` is in 0..=1.
    pub(super) fn wait(&self, failed: u32, retry_after: Option<Duration>, random: f64) -> Option<Duration> {
        let wait = self.waits.get(usize::try_from(failed.checked_sub(1)?).ok()?)?;
        let jittered = wait.mul_f64(0.8 + 0.4 * random.clamp(0.0, 1.0));
        Some(jittered.max(retry_after.unwrap_or_default().min(MAX_RETRY_AFTER)))
    }

    /// The longest time between now and a scheduled attempt.
    pub(super) fn max_ahead(&self) -> Duration {
        let longest = self.waits.iter().max().copied().unwrap_or_default();
        longest.mul_f64(1.2).max(MAX_RETRY_AFTER) + MINUTE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_attempts_take_about_sixteen_hours() {
        let policy = PushPolicy::default();
        let total = |random: f64| -> Duration {
            (1..=9).map(|failed| policy.wait(failed, None, random).unwrap()).sum()
        };
        assert_eq!(policy.wait(10, None, 0.5), None);
        assert!(total(0.5) > Duration::from_secs(15 * 3600) && total(0.5) < Duration::from_secs(17 * 3600));
        assert!(total(0.0) < total(0.5) && total(0.5) < total(1.0));
        assert!(total(1.0) < MAX_WAIT, "the schedule ends before everything that waits is given up");
    }

    #[test]
    fn retry_after_lengthens_a_wait_up_to_an_hour() {
        let policy = PushPolicy::default();
        let wait = |seconds| policy.wait(1, Some(Duration::from_secs(seconds)), 0.5).unwrap();
        assert_eq!(wait(1), Duration::from_secs(5));
        assert_eq!(wait(600), Duration::from_secs(600));
        assert_eq!(wait(100_000), HOUR);
    }
}
