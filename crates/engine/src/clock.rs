//! The only reader of the system clock, which an operator may set.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicI64, AtomicU64, Ordering},
    },
    time::{Duration, Instant, UNIX_EPOCH},
};

use protocol::Timestamp;

/// A step back of the system clock up to this length is made up for slowly; a longer one is followed at once.
const MAX_SLEW_MILLIS: i64 = 60_000;
/// How much slower time goes on until the system clock has caught up.
const SLEW_DIVISOR: i64 = 2;

/// The system clock, except that it does not go back by less than a minute, because task lists are ordered by its
/// timestamps.
///
/// After a small step back time goes on at half speed until the system clock has caught up. A system clock that
/// goes back further was wrong before, and is followed: otherwise time would stand still for as long as it was wrong.
#[derive(Clone, Debug)]
pub struct Clock(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    /// The latest time returned.
    last: AtomicI64,
    slew: Mutex<Slew>,
    source: Source,
}

/// Where the clock began to go on at half speed; stale once the system clock has caught up.
#[derive(Clone, Copy, Debug, Default)]
struct Slew {
    /// What the system clock showed.
    system: i64,
    /// What this clock returned.
    shown: i64,
}

#[derive(Debug)]
enum Source {
    System { started: Instant },
    Manual { system: AtomicI64, elapsed_millis: AtomicU64 },
}

impl Clock {
    /// The system clock.
    pub fn system() -> Self {
        Self::new(Source::System { started: Instant::now() })
    }

    /// A clock that changes only through [`Self::advance`] and [`Self::set`]; for tests.
    pub fn manual(start: Timestamp) -> Self {
        let system = AtomicI64::new(start.as_millis());
        Self::new(Source::Manual { system, elapsed_millis: AtomicU64::new(0) })
    }

    fn new(source: Source) -> Self {
        Self(Arc::new(Inner { last: AtomicI64::new(i64::MIN), slew: Mutex::default(), source }))
    }

    /// Current time in milliseconds. Less than an earlier result only if the system clock went back by more than
    /// a minute.
    pub fn now(&self) -> Timestamp {
        let system = self.0.source.system();
        let last = self.0.last.fetch_max(system, Ordering::Relaxed);
        Timestamp::from_millis(if last <= system { system } else { self.0.after_step_back() })
    }

    /// Time since the clock was created, measured by the monotonic clock, which nobody can set.
    pub fn elapsed(&self) -> Duration {
        match &self.0.source {
            Source::System { started } => started.elapsed(),
            Source::Manual { elapsed_millis, .. } => {
                Duration::from_millis(elapsed_millis.load(Ordering::Relaxed))
            }
        }
    }

    /// Lets time pass on a manual clock.
    pub fn advance(&self, by: Duration) {
        if let Source::Manual { system, elapsed_millis } = &self.0.source {
            system.fetch_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX), Ordering::Relaxed);
            elapsed_millis.fetch_add(u64::try_from(by.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
        }
    }

    /// Sets the system clock of a manual clock, as an operator does: no time passes.
    pub fn set(&self, to: Timestamp) {
        if let Source::Manual { system, .. } = &self.0.source {
            system.store(to.as_millis(), Ordering::Relaxed);
        }
    }
}

impl Inner {
    /// The current time when the system clock shows less than [`Self::last`]. Reads it again under the lock,
    /// because the caller may only have been slower than another thread.
    fn after_step_back(&self) -> i64 {
        let mut slew = self.slew.lock().unwrap_or_else(PoisonError::into_inner);
        let system = self.source.system();
        let last = self.last.load(Ordering::Relaxed);
        if system < last && last.saturating_sub(system) > MAX_SLEW_MILLIS {
            // If another thread was faster, its time is as good as this one.
            let _ = self.last.compare_exchange(last, system, Ordering::Relaxed, Ordering::Relaxed);
            *slew = Slew { system, shown: system };
            return system;
        }
        let slewed = slew.at(system).max(system);
        if slewed < last {
            *slew = Slew { system, shown: last };
            return last;
        }
        self.last.fetch_max(slewed, Ordering::Relaxed).max(slewed)
    }
}

impl Slew {
    /// The time to show when the system clock shows `system`.
    fn at(self, system: i64) -> i64 {
        self.shown.saturating_add(system.saturating_sub(self.system) / SLEW_DIVISOR)
    }
}

impl Source {
    fn system(&self) -> i64 {
        match self {
            Self::System { .. } => system_millis(),
            Self::Manual { system, .. } => system.load(Ordering::Relaxed),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the only reader of the system clock")]
fn system_millis() -> i64 {
    let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000;
    const DAY: i64 = 24 * 60 * 60 * SECOND;

    fn clock(millis: i64) -> Clock {
        Clock::manual(Timestamp::from_millis(millis))
    }

    /// Sets the system clock and returns what the clock shows then.
    fn shown(clock: &Clock, system: i64) -> i64 {
        clock.set(Timestamp::from_millis(system));
        clock.now().as_millis()
    }

    #[test]
    fn manual_clock_changes_only_when_the_test_changes_it() {
        let clock = clock(5);
        assert_eq!(clock.now(), clock.now());
        clock.advance(Duration::from_secs(1));
        assert_eq!((clock.now().as_millis(), clock.elapsed()), (1_005, Duration::from_secs(1)));
        assert_eq!((shown(&clock, 9_000), clock.elapsed()), (9_000, Duration::from_secs(1)));
    }

    #[test]
    fn forward_step_is_followed_at_once_and_so_is_its_correction() {
        let clock = clock(0);
        assert_eq!(shown(&clock, DAY), DAY);
        assert_eq!(shown(&clock, 7), 7);
        assert_eq!(shown(&clock, 8), 8);
    }

    #[test]
    fn after_a_small_step_back_time_goes_on_at_half_speed_until_the_clock_has_caught_up() {
        let clock = clock(100 * SECOND);
        clock.now();
        assert_eq!(shown(&clock, 40 * SECOND), 100 * SECOND);
        let mut before = clock.now().as_millis();
        for passed in (2..=120 * SECOND).step_by(2) {
            let now = shown(&clock, 40 * SECOND + passed);
            let expected = 100 * SECOND + passed / 2;
            assert!(now >= before && expected - now <= 1, "{passed}: {now} after {before}");
            before = now;
        }
        assert_eq!(before, 160 * SECOND);
        assert_eq!(shown(&clock, 161 * SECOND), 161 * SECOND);
    }

    #[test]
    fn steps_back_in_a_row_are_slewed_together_up_to_the_limit() {
        let clock = clock(100 * SECOND);
        clock.now();
        assert_eq!(shown(&clock, 90 * SECOND), 100 * SECOND);
        assert_eq!(shown(&clock, 92 * SECOND), 101 * SECOND);
        assert_eq!(shown(&clock, 70 * SECOND), 101 * SECOND);
        assert_eq!(shown(&clock, 72 * SECOND), 102 * SECOND);
        assert_eq!(shown(&clock, 30 * SECOND), 30 * SECOND);
        assert_eq!(shown(&clock, 31 * SECOND), 31 * SECOND);
        assert_eq!(shown(&clock, 29 * SECOND), 31 * SECOND);
        assert_eq!(shown(&clock, 30 * SECOND), 31_500);
        // Long after it had caught up, a step back begins anew.
        assert_eq!(shown(&clock, 900 * SECOND), 900 * SECOND);
        assert_eq!(shown(&clock, 880 * SECOND), 900 * SECOND);
        assert_eq!(shown(&clock, 884 * SECOND), 902 * SECOND);
    }

    #[test]
    fn threads_see_a_time_that_does_not_go_back() {
        let clock = Clock::system();
        std::thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    let mut before = clock.now();
                    for _ in 0..10_000 {
                        let now = clock.now();
                        assert!(now >= before);
                        before = now;
                    }
                });
            }
        });
    }
}
