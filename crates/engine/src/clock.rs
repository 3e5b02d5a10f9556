//! The only reader of the wall clock.

use std::{
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::UNIX_EPOCH,
};

use protocol::Timestamp;

/// A wall clock that never goes back within a process, because task lists are ordered by its timestamps.
#[derive(Clone, Debug)]
pub struct Clock {
    last: Arc<AtomicI64>,
    source: Source,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    System,
    Manual,
}

impl Clock {
    /// The system clock.
    pub fn system() -> Self {
        Self { last: Arc::default(), source: Source::System }
    }

    /// A clock that changes only through [`Self::advance`]; for tests.
    pub fn manual(start: Timestamp) -> Self {
        Self { last: Arc::new(AtomicI64::new(start.as_millis())), source: Source::Manual }
    }

    /// Current time in milliseconds; never less than an earlier result.
    pub fn now(&self) -> Timestamp {
        let read = match self.source {
            Source::System => system_millis(),
            Source::Manual => i64::MIN,
        };
        let last = self.last.fetch_max(read, Ordering::Relaxed);
        Timestamp::from_millis(last.max(read))
    }

    /// Moves a manual clock forward.
    pub fn advance(&self, by: std::time::Duration) {
        let millis = i64::try_from(by.as_millis()).unwrap_or(i64::MAX);
        self.last.fetch_add(millis, Ordering::Relaxed);
    }
}

#[expect(clippy::disallowed_methods, reason = "the only reader of the wall clock")]
fn system_millis() -> i64 {
    let since = std::time::SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manual_clock_changes_only_through_advance() {
        let clock = Clock::manual(Timestamp::from_millis(5));
        assert_eq!(clock.now(), clock.now());
        clock.advance(std::time::Duration::from_secs(1));
        assert_eq!(clock.now().as_millis(), 1_005);
    }
}
