//! The keys of one issuer in memory: when they are used, when they are fetched, and who waits for that.
//!
//! [`KeyState`] decides, without I/O; [`IssuerKeys`] acts. There is one fetch at a time, in a task of its own, so that a
//! caller that disconnects does not end it for the others. Keys that are not fresh are used while they are fetched
//! again, and for an hour if that fails.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{sync::watch, task::JoinSet, time::Instant};

use super::{
    jwks::KeySet,
    key_documents::{FetchedKeys, KeySource},
};

/// Keys older than this are fetched again when they are used.
const FRESH: Duration = Duration::from_secs(10 * 60);
/// Keys older than this are not used.
const USABLE: Duration = Duration::from_secs(60 * 60);
/// The least time between two fetches for keys that an issuer may have added.
const UNKNOWN_KEY_PAUSE: Duration = Duration::from_secs(30);
/// The least time between a fetch that has failed and the next one.
const FAILURE_PAUSE: Duration = Duration::from_secs(5);

/// The keys of one issuer.
pub(super) struct IssuerKeys {
    source: Arc<KeySource>,
    state: Arc<watch::Sender<KeyState>>,
    /// The running fetch. It ends with this value.
    fetches: Mutex<JoinSet<()>>,
}

/// The keys cannot be fetched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeysUnavailable;

/// Keys that may be used now.
#[derive(Clone)]
pub(super) struct UsableKeys {
    pub(super) keys: Arc<KeySet>,
    /// Another number for other keys.
    pub(super) generation: u64,
}

impl IssuerKeys {
    pub(super) fn new(source: KeySource) -> Self {
        let state = Arc::new(watch::Sender::new(KeyState::default()));
        Self { source: Arc::new(source), state, fetches: Mutex::default() }
    }

    /// The keys, if there are any that may be used. Starts to fetch them if they are missing or not fresh.
    pub(super) fn usable(&self) -> Option<UsableKeys> {
        self.current(|state, now| state.usable(now).cloned())
    }

    /// The generation of the keys that [`usable`](Self::usable) returns.
    pub(super) fn generation(&self) -> Option<u64> {
        self.current(|state, now| state.usable(now).map(|keys| keys.generation))
    }

    fn current<T>(&self, read: impl FnOnce(&KeyState, Instant) -> T) -> T {
        let now = Instant::now();
        let (value, is_fresh) = {
            let state = self.state.borrow();
            (read(&state, now), state.is_fresh(now))
        };
        if !is_fresh {
            self.fetch_for(FetchReason::FreshKeys, now);
        }
        value
    }

    /// Starts to fetch the keys if the issuer may have added some. Returns whether the keys in use are all that can be
    /// known: otherwise the caller has to wait until they are [`loaded`](Self::loaded).
    pub(super) fn are_known_to_be_all(&self) -> bool {
        self.fetch_for(FetchReason::UnknownKey, Instant::now())
    }

    /// Waits for the running fetch, if there is one.
    pub(super) async fn loaded(&self) -> Result<(), KeysUnavailable> {
        let mut state = self.state.subscribe();
        let settled = state.wait_for(|state| !state.is_running()).await.map_err(|_| KeysUnavailable)?;
        if settled.is_loaded() { Ok(()) } else { Err(KeysUnavailable) }
    }

    /// Starts a fetch, if one is due. Returns whether none is due or running, and the last one has succeeded.
    fn fetch_for(&self, need: FetchReason, now: Instant) -> bool {
        let mut is_loaded = false;
        let begins = self.state.send_if_modified(|state| {
            let begins = state.begin(need, now);
            is_loaded = state.is_loaded();
            begins
        });
        if begins {
            self.spawn_fetch();
        }
        is_loaded
    }

    fn spawn_fetch(&self) {
        let attempt = Attempt { state: Arc::clone(&self.state), result: Err(KeysUnavailable) };
        let mut fetches = self.fetches.lock().unwrap_or_else(PoisonError::into_inner);
        while fetches.try_join_next().is_some() {}
        fetches.spawn(fetch(Arc::clone(&self.source), attempt));
    }
}

async fn fetch(source: Arc<KeySource>, mut attempt: Attempt) {
    let issuer = source.issuer();
    match source.fetch().await {
        Ok(fetched) => {
            if fetched.keys.is_empty() {
                tracing::warn!(
                    issuer,
                    skipped = fetched.keys.skipped,
                    "the issuer has no key that can be used"
                );
            } else {
                tracing::debug!(issuer, skipped = fetched.keys.skipped, "fetched the keys of the issuer");
            }
            attempt.result = Ok(fetched);
        }
        Err(error) => tracing::warn!(issuer, %error, "the keys of the issuer cannot be fetched"),
    }
}

/// A running fetch. Its result is recorded when it is dropped, also if the fetch has panicked.
struct Attempt {
    state: Arc<watch::Sender<KeyState>>,
    result: Result<FetchedKeys, KeysUnavailable>,
}

impl Drop for Attempt {
    fn drop(&mut self) {
        let result = std::mem::replace(&mut self.result, Err(KeysUnavailable));
        let now = Instant::now();
        self.state.send_modify(|state| state.finish(result, now));
    }
}

/// Why keys are fetched.
#[derive(Clone, Copy, Debug)]
enum FetchReason {
    /// There are none, or they are not fresh.
    FreshKeys,
    /// A token names a key that is not among them.
    UnknownKey,
}

/// What is known about the keys of an issuer, and when they may be fetched.
#[derive(Default)]
struct KeyState {
    keys: Option<LoadedKeys>,
    last_fetch: LastFetch,
}

struct LoadedKeys {
    usable: UsableKeys,
    digest: [u8; 32],
    fetched_at: Instant,
}

#[derive(Clone, Copy, Default)]
enum LastFetch {
    #[default]
    Never,
    Running,
    Succeeded(Instant),
    Failed(Instant),
}

impl KeyState {
    fn usable(&self, now: Instant) -> Option<&UsableKeys> {
        self.keys.as_ref().filter(|keys| now < keys.fetched_at + USABLE).map(|keys| &keys.usable)
    }

    fn is_fresh(&self, now: Instant) -> bool {
        self.keys.as_ref().is_some_and(|keys| now < keys.fetched_at + FRESH)
    }

    fn is_running(&self) -> bool {
        matches!(self.last_fetch, LastFetch::Running)
    }

    /// Whether the last fetch has ended and succeeded.
    fn is_loaded(&self) -> bool {
        matches!(self.last_fetch, LastFetch::Succeeded(_))
    }

    /// Records that a fetch begins, if one is due; returns whether it is.
    fn begin(&mut self, need: FetchReason, now: Instant) -> bool {
        let is_due = match (self.last_fetch, need) {
            (LastFetch::Running, _) => false,
            (LastFetch::Never, _) => true,
            (LastFetch::Failed(at), _) => now >= at + FAILURE_PAUSE,
            (LastFetch::Succeeded(_), FetchReason::FreshKeys) => !self.is_fresh(now),
            (LastFetch::Succeeded(at), FetchReason::UnknownKey) => now >= at + UNKNOWN_KEY_PAUSE,
        };
        if is_due {
            self.last_fetch = LastFetch::Running;
        }
        is_due
    }

    /// Records the end of a fetch. One that has failed changes no keys.
    fn finish(&mut self, result: Result<FetchedKeys, KeysUnavailable>, now: Instant) {
        let Ok(FetchedKeys { keys, digest }) = result else {
            self.last_fetch = LastFetch::Failed(now);
            return;
        };
        self.last_fetch = LastFetch::Succeeded(now);
        let usable = match self.keys.take() {
            Some(old) if old.digest == digest => old.usable,
            old => {
                let generation = old.map_or(0, |old| old.usable.generation + 1);
                UsableKeys { keys: Arc::new(keys), generation }
            }
        };
        self.keys = Some(LoadedKeys { usable, digest, fetched_at: now });
    }
}
