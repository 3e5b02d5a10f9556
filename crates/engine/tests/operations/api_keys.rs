//! API keys: which text is a valid key, and what making and revoking one changes.

use std::sync::Arc;

use a2ad_engine::{ApiKeyError, ApiKeys, Clock, Feed, KeysNotLoaded, NewApiKey, Store};
use futures_util::FutureExt as _;
use protocol::Timestamp;
use store::{Sqlite, SqliteOptions};
use tempfile::TempDir;

fn now() -> Timestamp {
    Timestamp::from_millis(1_000)
}

struct Keys {
    keys: ApiKeys,
    store: Arc<dyn Store>,
    folder: TempDir,
}

impl Keys {
    fn open() -> Self {
        Self::open_in(tempfile::tempdir().unwrap())
    }

    fn open_in(folder: TempDir) -> Self {
        let options = SqliteOptions { sync: false, ..SqliteOptions::at(folder.path().join("a2ad.db")) };
        let store: Arc<dyn Store> =
            Arc::new(Sqlite::open(&options, Feed::default(), &Clock::manual(now())).unwrap());
        Self { keys: ApiKeys::new(Arc::clone(&store)), store, folder }
    }

    fn reopen(self) -> Self {
        let Self { keys, store, folder } = self;
        drop((keys, store));
        Self::open_in(folder)
    }

    /// Makes a key for an agent; returns its id and its text.
    async fn create(&self, agent: &str) -> (String, String) {
        let (key, text) = self.keys.create(&new(agent), 20, now()).await.unwrap();
        (key.id, text.expose().to_owned())
    }

    fn is_valid(&self, text: &str) -> bool {
        self.keys.find(text).unwrap().is_some()
    }
}

fn new(agent: &str) -> NewApiKey<'_> {
    NewApiKey { tenant: "default", agent, owner: None, prefix: "a2ad_" }
}

#[tokio::test]
async fn a_key_is_its_prefix_its_id_and_a_secret() {
    let keys = Keys::open();
    let owned = NewApiKey { owner: Some("alice@acme.example"), prefix: "pf_a2a_", ..new("echo") };
    let (key, text) = keys.keys.create(&owned, 20, now()).await.unwrap();
    let (rest, secret) = text.expose().rsplit_once('_').unwrap();
    assert_eq!(rest, format!("pf_a2a_{}", key.id));
    assert_eq!((key.id.len(), secret.len()), (12, 52));
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || (b'2'..=b'9').contains(&byte);
    assert!(key.id.bytes().chain(secret.bytes()).all(is_plain), "{rest}");
    assert_eq!(key.masked(), format!("pf_a2a_{}_…{}", key.id, &secret[48..]));
    assert_eq!((key.principal(), key.scope()), ("key:alice@acme.example".into(), "a2a-agent:echo".into()));
    assert_eq!((key.created_at, key.revoked_at), (now(), None));
    let (unowned, _) = keys.keys.create(&new("echo"), 20, now()).await.unwrap();
    assert_eq!(unowned.principal(), format!("key:{}", unowned.id));
    // Nothing that is logged shows the secret or what could be compared with it.
    let shown = format!("{key:?} {text:?}");
    assert!(!shown.contains(secret) && !shown.contains("digest"), "{shown}");
}

#[tokio::test]
async fn only_the_whole_text_of_a_valid_key_is_found() {
    let keys = Keys::open();
    assert_eq!(keys.keys.find("a2ad_x_y"), Err(KeysNotLoaded));
    let (id, text) = keys.create("echo").await;
    let (_, other) = keys.create("echo").await;
    assert_eq!(keys.keys.find(&text).unwrap().unwrap().id, id);
    let (rest, secret) = text.rsplit_once('_').unwrap();
    let other_secret = other.rsplit_once('_').unwrap().1;
    for unknown in [
        "",
        "_",
        "__",
        &id,
        rest,
        secret,
        &format!("{rest}_"),
        &format!("{text} "),
        &text[..text.len() - 1],
        &text[1..],
        &format!("x{text}"),
        &format!("{rest}_{other_secret}"),
        &text.to_uppercase(),
        "a2ad_äöüäöüäöüäöü_x",
        "ä_ä",
    ] {
        assert!(!keys.is_valid(unknown), "{unknown:?}");
    }
    let keys = keys.reopen();
    assert_eq!(keys.keys.find(&text), Err(KeysNotLoaded));
    keys.keys.load().await.unwrap();
    assert!(keys.is_valid(&text) && keys.is_valid(&other));
}

#[tokio::test]
async fn a_revoked_key_is_not_found_again() {
    let keys = Keys::open();
    let (id, text) = keys.create("echo").await;
    let (_, other) = keys.create("echo").await;
    assert!(keys.keys.revoke(&id, now()).await.unwrap());
    assert!(!keys.is_valid(&text) && keys.is_valid(&other));
    assert!(!keys.keys.revoke(&id, now()).await.unwrap());
    assert!(!keys.keys.revoke("unknown", now()).await.unwrap());
    let listed = keys.keys.list().await.unwrap();
    assert_eq!(listed.iter().map(|key| key.revoked_at).collect::<Vec<_>>(), [None, Some(now())]);
    let keys = keys.reopen();
    keys.keys.load().await.unwrap();
    assert!(!keys.is_valid(&text) && keys.is_valid(&other));
}

#[tokio::test]
async fn a_key_is_revoked_although_its_caller_leaves() {
    let keys = Keys::open();
    let (id, text) = keys.create("echo").await;
    // One poll, as for a client that disconnects before the commit.
    let revoked = keys.keys.revoke(&id, now()).now_or_never();
    assert!(!keys.is_valid(&text), "{revoked:?}");
    keys.store.reserve(0).await.unwrap();
    assert_eq!(keys.keys.list().await.unwrap()[0].revoked_at, Some(now()));
}

#[tokio::test]
async fn an_agent_has_at_most_so_many_valid_keys() {
    let keys = Keys::open();
    let (first, _) = keys.create("echo").await;
    let create = async |agent: &str| keys.keys.create(&new(agent), 3, now()).await;
    create("echo").await.unwrap();
    // The keys that are made at the same time count too.
    let both = tokio::join!(create("echo"), create("echo"));
    let refused = [both.0, both.1].into_iter().filter_map(Result::err).collect::<Vec<_>>();
    assert!(matches!(refused.as_slice(), [ApiKeyError::TooMany(3)]), "{refused:?}");
    create("other").await.unwrap();
    keys.keys.revoke(&first, now()).await.unwrap();
    create("echo").await.unwrap();
    let text = create("echo").await.unwrap_err().to_string();
    assert!(text.contains("3 valid keys") && text.contains("revoke one first"), "{text}");
    assert_eq!(keys.keys.list().await.unwrap().len(), 5);
}

#[tokio::test]
async fn what_cannot_be_stored_is_refused() {
    let keys = Keys::open();
    let (long, longest) = ("ä".repeat(129), "ä".repeat(128));
    for owner in ["", " ", "a b", "a\n", "a\u{0}", "a\u{200b}", "a\u{202e}b", &long] {
        let refused = keys.keys.create(&NewApiKey { owner: Some(owner), ..new("echo") }, 20, now()).await;
        assert!(matches!(refused, Err(ApiKeyError::Owner)), "{owner:?}");
    }
    for prefix in ["a.b.", "a b", "ä", "a\n", &"p".repeat(33)] {
        let refused = keys.keys.create(&NewApiKey { prefix, ..new("echo") }, 20, now()).await;
        assert!(matches!(refused, Err(ApiKeyError::Prefix)), "{prefix:?}");
    }
    for agent in ["", "a b", "\u{0}", &"a".repeat(65)] {
        let refused = keys.keys.create(&new(agent), 20, now()).await;
        assert!(matches!(refused, Err(ApiKeyError::Agent)), "{agent:?}");
    }
    for (owner, prefix) in [(longest.as_str(), ""), ("a", &"p".repeat(32)), ("Team-7/ops:x@y", "pf_a2a_")] {
        let new = NewApiKey { owner: Some(owner), prefix, ..new("echo") };
        let (_, text) = keys.keys.create(&new, 20, now()).await.unwrap();
        assert!(keys.is_valid(text.expose()), "{owner} {prefix}");
    }
    assert_eq!(keys.keys.list().await.unwrap().len(), 3);
}
