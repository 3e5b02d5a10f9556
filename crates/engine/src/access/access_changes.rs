//! Notices that who may call, or which agent exists, may have changed.
//!
//! There is one channel for all causes: the catalog, API keys, and the secrets that verify tokens. Whatever is open waits for
//! it and then checks its own caller again, so a cause need not know what it affects.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use tokio::sync::watch;

/// Notices of changes. Cheap to clone; every clone is the same.
#[derive(Clone, Debug, Default)]
pub struct AccessChanges(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    /// Shows without a lock whether there was a change.
    count: AtomicU64,
    changed: watch::Sender<()>,
}

impl AccessChanges {
    /// Announces a change that is in force.
    pub fn announce(&self) {
        self.0.count.fetch_add(1, Ordering::Release);
        self.0.changed.send_replace(());
    }

    /// How many there were. What is read after this call is not older than the last of them.
    pub fn count(&self) -> u64 {
        self.0.count.load(Ordering::Acquire)
    }

    /// Receives a notice of every later change; several may be one notice.
    pub fn subscribe(&self) -> watch::Receiver<()> {
        self.0.changed.subscribe()
    }
}
