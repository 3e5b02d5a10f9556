//! One limit with the state of its keys.
//!
//! The state of a key is one number: when it is back to its full rate. A call moves that time by one interval, and is
//! refused where it would then be further away than the whole unit (GCRA). Times are nanoseconds of the engine's monotonic
//! clock.

use std::{
    collections::HashMap,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use super::Rate;

/// Keys of one limit: 262,144 need about 6 MiB.
const MAX_KEYS: usize = 1 << 18;
/// Keys are distributed over so many maps, each with its own lock.
const SHARDS: usize = 16;
/// Keys at their full rate are removed after so many checks, and not more often than once in [`SWEEP_INTERVAL`].
const CHECKS_PER_SWEEP: u64 = 1 << 14;
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// Stands for all keys that a full map has no place for. That a key has this hash is as likely as any collision.
const SHARED: u64 = 0;

/// A rate, and when each key is back to it.
pub(super) struct Limiter {
    pub(super) rate: Rate,
    clock: engine::Clock,
    shards: [Mutex<HashMap<u64, u64>>; SHARDS],
    /// Whether [`SHARED`] is in use; logged once.
    is_full: AtomicBool,
    checks: AtomicU64,
    /// When keys were removed last.
    swept_at: AtomicU64,
}

impl Limiter {
    pub(super) fn new(rate: Rate, clock: engine::Clock) -> Self {
        Self {
            rate,
            clock,
            shards: Default::default(),
            is_full: AtomicBool::new(false),
            checks: AtomicU64::new(1),
            swept_at: AtomicU64::new(0),
        }
    }

    /// Another rate for the same keys. A key that has used a part of the old rate has used the same part of the new one.
    /// Calls that are counted meanwhile may be lost.
    pub(super) fn with_rate(&self, rate: Rate) -> Self {
        let new = Self::new(rate, self.clock.clone());
        let now = self.now();
        let [old_unit, new_unit] = [self.rate, rate].map(|rate| u128::from(rate.unit()));
        for (old, new) in self.shards.iter().zip(&new.shards) {
            lock(new).extend(lock(old).iter().filter_map(|(key, full_at)| {
                let left = u128::from(full_at.checked_sub(now)?);
                let scaled = u64::try_from(left * new_unit / old_unit).unwrap_or(u64::MAX);
                Some((*key, now.saturating_add(scaled)))
            }));
        }
        new
    }

    /// Whether a call would be permitted, without counting it; an error as of [`check`](Self::check).
    pub(super) fn peek(&self, key: u64) -> Result<(), u64> {
        let full_at = lock(self.shard(key)).get(&key).copied().unwrap_or_default();
        self.decide(full_at, self.now()).map(drop)
    }

    /// Counts a call; an error has the seconds until the next one is permitted, at least 1.
    pub(super) fn check(&self, key: u64) -> Result<(), u64> {
        let now = self.now();
        let checked = self.count(key, now);
        if self.checks.fetch_add(1, Ordering::Relaxed).is_multiple_of(CHECKS_PER_SWEEP) {
            self.sweep(now);
        }
        checked
    }

    fn count(&self, key: u64, now: u64) -> Result<(), u64> {
        let mut shard = lock(self.shard(key));
        if let Some(full_at) = shard.get_mut(&key) {
            *full_at = self.decide(*full_at, now)?;
            return Ok(());
        }
        let key = if shard.len() < MAX_KEYS / SHARDS { key } else { SHARED };
        if key == SHARED && !self.is_full.swap(true, Ordering::Relaxed) {
            tracing::warn!(keys = MAX_KEYS, "too many callers for the rate limit; new ones share one limit");
        }
        let full_at = self.decide(shard.get(&key).copied().unwrap_or_default(), now)?;
        shard.insert(key, full_at);
        Ok(())
    }

    /// When a key is back to its full rate after one more call; an error as of [`check`](Self::check).
    fn decide(&self, full_at: u64, now: u64) -> Result<u64, u64> {
        let interval = self.rate.interval();
        let next = full_at.max(now).saturating_add(interval);
        match next.saturating_sub(now).checked_sub(self.rate.unit()) {
            None | Some(0) => Ok(next),
            Some(wait) => Err(wait.div_ceil(1_000_000_000)),
        }
    }

    fn now(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Removes the keys that are back to their full rate.
    fn sweep(&self, now: u64) {
        let last = self.swept_at.load(Ordering::Relaxed);
        let is_due = now.saturating_sub(last) >= SWEEP_INTERVAL.as_nanos() as u64;
        let won = || self.swept_at.compare_exchange(last, now, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        if is_due && won() {
            self.shards.iter().for_each(|shard| lock(shard).retain(|_, full_at| *full_at > now));
            self.is_full.store(false, Ordering::Relaxed);
        }
    }

    fn shard(&self, key: u64) -> &Mutex<HashMap<u64, u64>> {
        &self.shards[(key % SHARDS as u64) as usize]
    }
}

fn lock(shard: &Mutex<HashMap<u64, u64>>) -> MutexGuard<'_, HashMap<u64, u64>> {
    shard.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use protocol::Timestamp;

    use super::*;

    fn len(limiter: &Limiter) -> usize {
        limiter.shards.iter().map(|shard| lock(shard).len()).sum()
    }

    #[test]
    fn keys_are_bounded_and_removed_when_they_are_back_to_their_full_rate() {
        let clock = engine::Clock::manual(Timestamp::from_millis(0));
        let limiter = Limiter::new("2/min".parse().unwrap(), clock.clone());
        let keys = 2 * MAX_KEYS as u64;
        let refused = (1..=keys).filter(|key| limiter.check(*key).is_err()).count();
        assert!(len(&limiter) <= MAX_KEYS + SHARDS, "{}", len(&limiter));
        assert!(refused as u64 > keys / 3, "the keys without a place are not limited: {refused}");
        clock.advance(Duration::from_secs(120));
        limiter.sweep(limiter.now());
        assert_eq!(len(&limiter), 0);
        limiter.check(keys).unwrap();
    }
}
