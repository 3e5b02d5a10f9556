//! How many streams each principal has open, for its cap, and all of them together. A stream counts from its request until its last event has been
//! taken or its client has disconnected.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use engine::{CapReached, Scope};
use protocol::Error;

/// The open streams by the hash of tenant and principal; those without a stream or a cap are not here.
#[derive(Default)]
pub(crate) struct OpenStreams {
    hasher: RandomState,
    counts: Mutex<HashMap<u64, u64>>,
    /// All streams, also of principals without a cap.
    total: AtomicU64,
}

/// One stream. Dropping it ends the count.
pub(crate) struct OpenStream {
    streams: Arc<OpenStreams>,
    /// `None` for those without a cap.
    principal: Option<u64>,
}

impl OpenStreams {
    /// Counts a stream of a principal that may have `cap` of them; 0 is no limit.
    pub(crate) fn open(streams: &Arc<Self>, scope: &Scope, cap: u64) -> Result<OpenStream, Error> {
        let principal = if cap == 0 { None } else { Some(streams.count(scope, cap)?) };
        streams.total.fetch_add(1, Ordering::Relaxed);
        Ok(OpenStream { streams: Arc::clone(streams), principal })
    }

    /// How many streams are open.
    pub(crate) fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Counts one more stream of a principal; returns its hash.
    fn count(&self, scope: &Scope, cap: u64) -> Result<u64, Error> {
        let parts = scope.parts();
        let principal = self.hasher.hash_one((&parts.tenant, &parts.principal));
        let mut counts = self.counts();
        let count = counts.entry(principal).or_default();
        if *count >= cap {
            return Err(CapReached::Streams(cap).into());
        }
        *count += 1;
        Ok(principal)
    }

    fn counts(&self) -> MutexGuard<'_, HashMap<u64, u64>> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.streams.total.fetch_sub(1, Ordering::Relaxed);
        let Some(principal) = self.principal else { return };
        let mut counts = self.streams.counts();
        if let Some(count) = counts.get_mut(&principal) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&principal);
            }
        }
    }
}
