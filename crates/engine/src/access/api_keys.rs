//! API keys: each is a credential for one agent.
//!
//! The text of a key is `{prefix}{id}_{secret}`. The id is public and finds the key; the store has the SHA-256 digest of
//! the whole text, so that neither a copy of the store nor its operator has a key. All keys are in memory, because
//! every call with a key looks for one; the store is the truth, and a key counts when the store has it.

use std::{
    collections::{HashMap, HashSet},
    fmt::{self, Debug, Formatter},
    sync::Arc,
};

use arc_swap::ArcSwapOption;
use aws_lc_rs::{
    constant_time,
    digest::{SHA256, digest},
};
use protocol::{Timestamp, model::Secret};

use crate::{
    access::{access_changes::AccessChanges, scope::Scope},
    store::{Store, StoreError},
};

/// Characters of ids and secrets: 32 that cannot be confused with each other.
const ALPHABET: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
/// Characters of an id.
const ID_LENGTH: usize = 12;
/// Characters of a secret: 260 random bits.
const SECRET_LENGTH: usize = 52;
/// The last characters of a key, which lists show.
const SHOWN_LENGTH: usize = 4;
/// The most characters of an owner.
const MAX_OWNER: usize = 128;
/// The most characters of a prefix.
const MAX_PREFIX: usize = 32;
/// The most characters of the ids of a tenant and an agent.
const MAX_NAME: usize = 64;

/// An API key without its secret.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey {
    /// Public; unique in the store.
    pub id: String,
    /// The tenant of the agent.
    pub tenant: String,
    /// The only agent that the key is for.
    pub agent: String,
    /// Who has it. Keys with the same owner are the same caller, so that a key can be replaced.
    pub owner: String,
    /// The beginning of its text, before the id.
    pub prefix: String,
    /// The end of its text.
    pub ending: String,
    /// SHA-256 of its text.
    pub digest: [u8; 32],
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was revoked; `None` while it is valid.
    pub revoked_at: Option<Timestamp>,
}

/// What a new key is made for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewApiKey<'a> {
    /// The tenant of the agent.
    pub tenant: &'a str,
    /// The agent that the key is for.
    pub agent: &'a str,
    /// Who gets it; `None`: nobody else has its tasks.
    pub owner: Option<&'a str>,
    /// The beginning of its text.
    pub prefix: &'a str,
}

impl NewApiKey<'_> {
    /// Checks what the schema of the store and the form of a key require.
    fn check(&self) -> Result<(), ApiKeyError> {
        if !is_valid_name(self.tenant) || !is_valid_name(self.agent) {
            return Err(ApiKeyError::Agent);
        }
        if !is_valid_key_prefix(self.prefix) {
            return Err(ApiKeyError::Prefix);
        }
        if self.owner.is_some_and(|owner| !is_valid_owner(owner)) {
            return Err(ApiKeyError::Owner);
        }
        Ok(())
    }
}

pub(crate) fn is_valid_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len()) && name.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Whether every character of an owner can be seen: letters and digits of any language, and the punctuation of ASCII.
/// Invisible ones would make different callers look the same.
fn is_valid_owner(owner: &str) -> bool {
    let is_visible = |character: char| character.is_alphanumeric() || character.is_ascii_graphic();
    (1..=MAX_OWNER).contains(&owner.chars().count()) && owner.chars().all(is_visible)
}

/// Whether keys may begin with this text: at most 32 letters, digits, `-` or `_`. A dot would make a key look like a token.
pub fn is_valid_key_prefix(prefix: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    prefix.len() <= MAX_PREFIX && prefix.bytes().all(is_plain)
}

impl ApiKey {
    /// What the principals of callers with a key begin with.
    pub const PRINCIPAL: &str = "key:";

    /// Makes a key with a random id and secret. Returns its whole text too, which is not kept anywhere.
    pub fn generate(new: &NewApiKey<'_>, now: Timestamp) -> (Self, Secret) {
        let (id, secret) = (random_text(ID_LENGTH), random_text(SECRET_LENGTH));
        let text = format!("{}{id}_{secret}", new.prefix);
        let key = Self {
            tenant: new.tenant.to_owned(),
            agent: new.agent.to_owned(),
            owner: new.owner.unwrap_or(&id).to_owned(),
            prefix: new.prefix.to_owned(),
            ending: secret[SECRET_LENGTH - SHOWN_LENGTH..].to_owned(),
            digest: sha256(&text),
            created_at: now,
            revoked_at: None,
            id,
        };
        (key, Secret::new(text))
    }

    /// The principal of its callers.
    pub fn principal(&self) -> String {
        format!("{}{}", Self::PRINCIPAL, self.owner)
    }

    /// What it permits.
    pub fn scope(&self) -> String {
        format!("a2a-agent:{}", self.agent)
    }

    /// Its text without the secret.
    pub fn masked(&self) -> String {
        format!("{}{}_…{}", self.prefix, self.id, self.ending)
    }
}

/// Everything but the digest.
impl Debug for ApiKey {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.debug_struct("ApiKey")
            .field("id", &self.id)
            .field("tenant", &self.tenant)
            .field("agent", &self.agent)
            .field("owner", &self.owner)
            .finish_non_exhaustive()
    }
}

/// A text of random characters; each has five random bits.
pub fn random_text(length: usize) -> String {
    let mut bytes = vec![0; length];
    getrandom::fill(&mut bytes).expect("the operating system provides randomness");
    bytes.into_iter().map(|byte| char::from(ALPHABET[usize::from(byte % 32)])).collect()
}

/// The API keys of a store.
pub struct ApiKeys {
    store: Arc<dyn Store>,
    /// `None` until they are loaded.
    known: ArcSwapOption<KnownKeys>,
    changes: AccessChanges,
    /// Held while keys are changed or loaded, so that memory follows the store in its order.
    changing: tokio::sync::Mutex<()>,
}

#[derive(Clone, Default)]
struct KnownKeys {
    /// By id.
    valid: HashMap<String, Arc<ApiKey>>,
    /// Who had a key of an agent and has no valid one.
    revoked_owners: HashSet<KeyOwner>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct KeyOwner {
    tenant: String,
    agent: String,
    owner: String,
}

impl KeyOwner {
    fn of(key: &ApiKey) -> Self {
        Self { tenant: key.tenant.clone(), agent: key.agent.clone(), owner: key.owner.clone() }
    }
}

impl KnownKeys {
    fn of(stored: Vec<ApiKey>) -> Self {
        let (valid, revoked): (Vec<_>, Vec<_>) = stored.into_iter().partition(|key| key.revoked_at.is_none());
        let mut revoked_owners: HashSet<_> = revoked.iter().map(KeyOwner::of).collect();
        for key in &valid {
            revoked_owners.remove(&KeyOwner::of(key));
        }
        let valid = valid.into_iter().map(|key| (key.id.clone(), Arc::new(key))).collect();
        Self { valid, revoked_owners }
    }

    fn add(&mut self, key: ApiKey) {
        self.revoked_owners.remove(&KeyOwner::of(&key));
        self.valid.insert(key.id.clone(), Arc::new(key));
    }

    fn revoke(&mut self, id: &str) {
        let Some(key) = self.valid.remove(id) else { return };
        let owner = KeyOwner::of(&key);
        if !self.valid.values().any(|other| KeyOwner::of(other) == owner) {
            self.revoked_owners.insert(owner);
        }
    }
}

/// The keys have to be loaded first, with [`ApiKeys::load`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeysNotLoaded;

/// Why a key was not made.
#[derive(Debug, thiserror::Error)]
pub enum ApiKeyError {
    /// The agent has as many valid keys as it may have.
    #[error("the agent has {0} valid keys, which is the most it may have; revoke one first")]
    TooMany(usize),
    /// There is no agent with this id.
    #[error("there is no agent {0:?}")]
    UnknownAgent(String),
    /// The owner cannot be used.
    #[error(
        "expected an owner of 1 to {MAX_OWNER} visible characters: letters, digits and punctuation, no spaces"
    )]
    Owner,
    /// The prefix cannot be used.
    #[error("expected a prefix of at most {MAX_PREFIX} letters, digits, '-' or '_'")]
    Prefix,
    /// The id of the agent or its tenant cannot be used.
    #[error("expected the id of an agent: 1 to {MAX_NAME} characters of ASCII")]
    Agent,
    /// The store has failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ApiKeys {
    /// The keys of a store. They are read when they are first needed.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            known: ArcSwapOption::empty(),
            changes: AccessChanges::default(),
            changing: tokio::sync::Mutex::new(()),
        }
    }

    /// Announces new and revoked keys there.
    #[must_use]
    pub(crate) fn announcing(self, changes: AccessChanges) -> Self {
        Self { changes, ..self }
    }

    /// The valid key with this text.
    ///
    /// # Errors
    ///
    /// [`KeysNotLoaded`] before the first [`load`](Self::load).
    pub fn find(&self, text: &str) -> Result<Option<Arc<ApiKey>>, KeysNotLoaded> {
        let id = id_of(text).unwrap_or_default();
        let known = self.known.load();
        let found = known.as_ref().ok_or(KeysNotLoaded)?.valid.get(id);
        // Compared for unknown ids too, so that both take about the same time.
        let expected = found.map_or(&[0; 32], |key| &key.digest);
        let is_equal = constant_time::verify_slices_are_equal(&sha256(text), expected).is_ok();
        Ok(found.filter(|_| is_equal).cloned())
    }

    /// Whether a key that was found is still valid.
    pub fn is_valid(&self, key: &ApiKey) -> bool {
        self.known.load().as_ref().is_some_and(|known| known.valid.contains_key(&key.id))
    }

    /// Whether the owner of a task had an API key of its agent and has no valid one.
    pub(crate) async fn is_revoked_owner(&self, scope: &Scope) -> Result<bool, StoreError> {
        let Some(owner) = scope.parts().principal.strip_prefix(ApiKey::PRINCIPAL) else { return Ok(false) };
        if self.known.load().is_none() {
            self.load().await?;
        }
        let owner = KeyOwner {
            tenant: scope.tenant().to_owned(),
            agent: scope.agent().to_owned(),
            owner: owner.to_owned(),
        };
        Ok(self.known.load().as_ref().is_some_and(|known| known.revoked_owners.contains(&owner)))
    }

    /// Reads the keys from the store, unless that was done before.
    pub async fn load(&self) -> Result<(), StoreError> {
        let _changing = self.changing.lock().await;
        self.load_once().await
    }

    async fn load_once(&self) -> Result<(), StoreError> {
        if self.known.load().is_none() {
            let stored = self.store.api_keys().await?;
            self.known.store(Some(Arc::new(KnownKeys::of(stored))));
        }
        Ok(())
    }

    /// All keys, newest first, the revoked ones too.
    pub async fn list(&self) -> Result<Vec<ApiKey>, StoreError> {
        self.store.api_keys().await
    }

    /// Makes a key; `max` is how many valid ones an agent may have. It is valid when this returns. The text of the key
    /// cannot be found again: where this is dropped, there may be a key that nobody has.
    pub async fn create(
        &self,
        new: &NewApiKey<'_>,
        max: usize,
        now: Timestamp,
    ) -> Result<(ApiKey, Secret), ApiKeyError> {
        new.check()?;
        let _changing = self.changing.lock().await;
        self.load_once().await?;
        let (key, text) = ApiKey::generate(new, now);
        if !self.store.insert_api_key(key.clone(), max).await? {
            return Err(ApiKeyError::TooMany(max));
        }
        self.change(|known| known.add(key.clone()));
        Ok((key, text))
    }

    /// Revokes a key: no call that arrives after this returns can use it, and what is open with it ends. `false` if there is
    /// no valid key with this id.
    pub async fn revoke(&self, id: &str, now: Timestamp) -> Result<bool, StoreError> {
        let _changing = self.changing.lock().await;
        self.load_once().await?;
        let revoked = self.store.revoke_api_key(id.to_owned(), now);
        // Before the store has it, because this future may be dropped while it waits; the change itself is queued.
        self.change(|known| known.revoke(id));
        revoked.await
    }

    /// Changes the keys in memory, while `changing` is held.
    fn change(&self, change: impl FnOnce(&mut KnownKeys)) {
        let mut known = self.known.load().as_deref().cloned().unwrap_or_default();
        change(&mut known);
        self.known.store(Some(Arc::new(known)));
        self.changes.announce();
    }
}

/// The id in the text of a key: the characters before its last underscore. Prefixes of earlier keys may differ.
fn id_of(text: &str) -> Option<&str> {
    let (rest, _) = text.rsplit_once('_')?;
    rest.len().checked_sub(ID_LENGTH).and_then(|at| rest.get(at..))
}

fn sha256(text: &str) -> [u8; 32] {
    let hash = digest(&SHA256, text.as_bytes());
    hash.as_ref().try_into().expect("SHA-256 has 32 bytes")
}
