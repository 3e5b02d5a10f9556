//! Which names the authorities of client certificates have verified since one of them was removed.
//!
//! The store has the names of owners and not who has certified them, so after a removal any name may be revoked. It is not
//! when a certificate with it is verified again.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
};

use engine::AccessChanges;

/// The most names that are known; others count as not verified.
const MAX_NAMES: usize = 65_536;

#[derive(Default)]
pub(super) struct VerifiedNames {
    /// `None` while no authority was removed: then all are.
    names: Mutex<Option<HashSet<Arc<str>>>>,
    /// Where a name that is verified again is announced.
    changes: OnceLock<AccessChanges>,
}

impl VerifiedNames {
    /// Announces names there. Only the first call has an effect.
    pub(super) fn announce_to(&self, changes: &AccessChanges) {
        let _ = self.changes.set(changes.clone());
    }

    /// Forgets all names, because an authority was removed, before that is announced.
    pub(super) fn forget(&self, announce: impl FnOnce()) {
        let mut names = self.names();
        *names = Some(HashSet::new());
        announce();
    }

    /// Adds a name that was verified, unless the authorities have changed meanwhile.
    pub(super) fn add(&self, principal: &Arc<str>, is_current: impl FnOnce() -> bool) {
        let is_new = match &mut *self.names() {
            Some(names) if names.len() < MAX_NAMES && is_current() => names.insert(Arc::clone(principal)),
            Some(_) | None => false,
        };
        if let Some(changes) = self.changes.get().filter(|_| is_new) {
            changes.announce();
        }
    }

    pub(super) fn contains(&self, principal: &str) -> bool {
        self.names().as_ref().is_none_or(|names| names.contains(principal))
    }

    fn names(&self) -> MutexGuard<'_, Option<HashSet<Arc<str>>>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
