//! How many turns of each principal run, or wait for a run, that may ask their client.
//!
//! They count as tasks that wait for their client before they do: otherwise calls that are queued for a server become
//! more questions than the cap allows. A message is refused by the number of such turns that had begun before it, so
//! messages that come together do not pass the cap, and none is refused because of those that follow it.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use crate::access::scope::Scope;

/// The turns of this process that may ask.
#[derive(Debug, Default)]
pub(crate) struct AskingTurns {
    hasher: RandomState,
    /// By the hash of tenant and principal; those without such a turn are not here.
    counts: Mutex<HashMap<u64, u64>>,
    /// Of all principals, so that a process without such turns needs no lock.
    total: AtomicU64,
}

/// One turn that may ask. It counts until [`end`](Self::end), or until it is dropped.
#[derive(Debug)]
pub(crate) struct AskingTurn {
    turns: Arc<AskingTurns>,
    principal: u64,
    before: u64,
    has_ended: AtomicBool,
}

impl AskingTurns {
    /// Counts a turn.
    pub(crate) fn begin(turns: &Arc<Self>, scope: &Scope) -> Arc<AskingTurn> {
        let principal = turns.principal(scope);
        let mut counts = turns.counts();
        let count = counts.entry(principal).or_default();
        let before = *count;
        *count += 1;
        drop(counts);
        turns.total.fetch_add(1, Ordering::Relaxed);
        Arc::new(AskingTurn {
            turns: Arc::clone(turns),
            principal,
            before,
            has_ended: AtomicBool::new(false),
        })
    }

    /// The turns of the principal of a scope.
    pub(crate) fn of(&self, scope: &Scope) -> u64 {
        if self.total.load(Ordering::Relaxed) == 0 {
            return 0;
        }
        self.counts().get(&self.principal(scope)).copied().unwrap_or_default()
    }

    fn principal(&self, scope: &Scope) -> u64 {
        let parts = scope.parts();
        self.hasher.hash_one((&parts.tenant, &parts.principal))
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<u64, u64>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AskingTurn {
    /// The turns of its principal that had begun before it.
    pub(crate) fn before(&self) -> u64 {
        self.before
    }

    /// Whether it counts still.
    pub(crate) fn counts(&self) -> bool {
        !self.has_ended.load(Ordering::Relaxed)
    }

    /// It does not count any more.
    pub(crate) fn end(&self) {
        if self.has_ended.swap(true, Ordering::Relaxed) {
            return;
        }
        self.turns.total.fetch_sub(1, Ordering::Relaxed);
        let mut counts = self.turns.counts();
        if let Some(count) = counts.get_mut(&self.principal) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.principal);
            }
        }
    }
}

impl Drop for AskingTurn {
    fn drop(&mut self) {
        self.end();
    }
}
