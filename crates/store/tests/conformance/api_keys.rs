//! API keys are kept without their secrets, and changes to them are durable.

use std::{fs, path::Path};

use engine::{ApiKey, Clock, NewApiKey, Store};
use protocol::model::Secret;
use rusqlite::Connection;

use super::{
    samples::at,
    test_database::{Sqlite, TestDatabase},
};

on_every_database![
    keys_are_listed_newest_first_and_survive_a_restart,
    a_key_is_revoked_once,
    only_valid_keys_of_the_agent_count_towards_its_limit,
    a_key_whose_id_exists_is_not_added,
    dropped_changes_are_made,
];

fn key(agent: &str, now: i64) -> (ApiKey, Secret) {
    let new = NewApiKey { tenant: "default", agent, owner: Some("alice"), prefix: "a2ad_" };
    ApiKey::generate(&new, at(now))
}

async fn inserted(store: &dyn Store, agent: &str, now: i64) -> ApiKey {
    let (key, _) = key(agent, now);
    assert!(store.insert_api_key(key.clone(), 100).await.unwrap());
    key
}

async fn keys_are_listed_newest_first_and_survive_a_restart(database: &dyn TestDatabase) {
    let store = database.open();
    assert_eq!(store.api_keys().await.unwrap(), []);
    // In the order in which they were added, also if the clock went back.
    let first = inserted(&*store, "echo", 20).await;
    let second = inserted(&*store, "echo", 10).await;
    let other = inserted(&*store, "other", 30).await;
    let expected = [other, second, first];
    assert_eq!(store.api_keys().await.unwrap(), expected);
    let store = database.reopen(store, &Clock::manual(at(0)));
    assert_eq!(store.api_keys().await.unwrap(), expected);
}

async fn a_key_is_revoked_once(database: &dyn TestDatabase) {
    let store = database.open();
    let (kept, revoked) = (inserted(&*store, "echo", 1).await, inserted(&*store, "echo", 2).await);
    assert!(store.revoke_api_key(revoked.id.clone(), at(50)).await.unwrap());
    assert!(!store.revoke_api_key(revoked.id.clone(), at(60)).await.unwrap());
    assert!(!store.revoke_api_key("unknown".into(), at(60)).await.unwrap());
    let expected = [ApiKey { revoked_at: Some(at(50)), ..revoked }, kept];
    assert_eq!(store.api_keys().await.unwrap(), expected);
    let store = database.reopen(store, &Clock::manual(at(0)));
    assert_eq!(store.api_keys().await.unwrap(), expected);
}

async fn only_valid_keys_of_the_agent_count_towards_its_limit(database: &dyn TestDatabase) {
    let store = database.open();
    let insert = |agent: &str, max| store.insert_api_key(key(agent, 1).0, max);
    assert!(!insert("echo", 0).await.unwrap());
    inserted(&*store, "other", 1).await;
    let elsewhere = ApiKey { tenant: "acme".into(), ..key("echo", 1).0 };
    assert!(store.insert_api_key(elsewhere, 2).await.unwrap());
    // Decided one after the other although all are queued at once.
    let block = database.block_writes();
    let queued = [(); 5].map(|()| insert("echo", 2));
    drop(block);
    let mut added = Vec::new();
    for insert in queued {
        added.push(insert.await.unwrap());
    }
    assert_eq!(added, [true, true, false, false, false]);
    let keys = store.api_keys().await.unwrap();
    let valid = keys.iter().find(|key| key.agent == "echo" && key.tenant == "default").unwrap();
    assert!(store.revoke_api_key(valid.id.clone(), at(2)).await.unwrap());
    assert!(insert("echo", 2).await.unwrap());
    assert!(!insert("echo", 2).await.unwrap());
}

async fn a_key_whose_id_exists_is_not_added(database: &dyn TestDatabase) {
    let store = database.open();
    let first = inserted(&*store, "echo", 1).await;
    let same = ApiKey { id: first.id.clone(), ..key("other", 2).0 };
    assert!(!store.insert_api_key(same, 100).await.unwrap());
    assert_eq!(store.api_keys().await.unwrap(), [first]);
}

async fn dropped_changes_are_made(database: &dyn TestDatabase) {
    let store = database.open();
    let revoked = inserted(&*store, "echo", 1).await;
    let block = database.block_writes();
    drop(store.insert_api_key(key("echo", 2).0, 100));
    drop(store.revoke_api_key(revoked.id.clone(), at(3)));
    drop(block);
    // The queue is in order.
    store.reserve(0).await.unwrap();
    let keys = store.api_keys().await.unwrap();
    assert_eq!(keys.iter().map(|key| key.revoked_at).collect::<Vec<_>>(), [None, Some(at(3))]);
}

/// Whether a file of a directory, or of one below it, contains a text.
fn is_in_files(folder: &Path, text: &str) -> bool {
    let text = text.as_bytes();
    fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return is_in_files(&path, std::str::from_utf8(text).unwrap());
        }
        fs::read(path).unwrap().windows(text.len()).any(|window| window == text)
    })
}

#[tokio::test]
async fn no_file_of_the_store_contains_a_secret() {
    let database = Sqlite::new();
    let path = database.path();
    let folder = path.parent().unwrap();
    let store = database.open();
    let (key, text) = key("echo", 1);
    assert!(store.insert_api_key(key.clone(), 20).await.unwrap());
    let secret = text.expose().rsplit_once('_').unwrap().1;
    let check = || {
        assert!(is_in_files(folder, &key.id), "the search works");
        assert!(!is_in_files(folder, text.expose()) && !is_in_files(folder, secret));
        // Nor anything of it beyond what lists show.
        assert!(!is_in_files(folder, &secret[..12]) && !is_in_files(folder, &secret[secret.len() - 12..]));
    };
    // In the log, in a copy, and in the file.
    check();
    a2ad_store::backup(&path, &folder.join("copy.db")).unwrap();
    check();
    drop(store);
    check();
}

#[tokio::test]
async fn a_backup_contains_the_keys() {
    let (database, restored) = (Sqlite::new(), Sqlite::new());
    let store = database.open();
    let first = inserted(&*store, "echo", 1).await;
    let second = inserted(&*store, "echo", 2).await;
    assert!(store.revoke_api_key(first.id.clone(), at(3)).await.unwrap());
    let copy = database.path().with_file_name("copy.db");
    a2ad_store::backup(&database.path(), &copy).unwrap();
    inserted(&*store, "later", 4).await;
    a2ad_store::restore(&copy, &restored.path()).unwrap();
    let expected = [second, ApiKey { revoked_at: Some(at(3)), ..first }];
    assert_eq!(restored.open().api_keys().await.unwrap(), expected);
}

#[tokio::test]
async fn the_schema_refuses_incomplete_keys() {
    let database = Sqlite::new();
    drop(database.open());
    let connection = database.raw_connection();
    let columns = "id, tenant, agent, owner, prefix, ending, digest, created_at";
    let insert = |connection: &Connection, values: &str| {
        connection.execute(&format!("INSERT INTO api_keys ({columns}) VALUES ({values})"), [])
    };
    for refused in [
        "NULL, 't', 'a', 'o', 'p', 'e', zeroblob(32), 1",
        "'', 't', 'a', 'o', 'p', 'e', zeroblob(32), 1",
        "'i', '', 'a', 'o', 'p', 'e', zeroblob(32), 1",
        "'i', 't', '', 'o', 'p', 'e', zeroblob(32), 1",
        "'i', 't', 'a', '', 'p', 'e', zeroblob(32), 1",
        "'i', 't', 'a', NULL, 'p', 'e', zeroblob(32), 1",
        "'i', 't', 'a', 'o', 'p', '123456789', zeroblob(32), 1",
        "'i', 't', 'a', 'o', 'p', 'e', zeroblob(31), 1",
        "'i', 't', 'a', 'o', 'p', 'e', NULL, 1",
        "'i', 't', 'a', 'o', 'p', 'e', zeroblob(32), 'x'",
        "'i', 't', 'a', printf('%.129c', 'o'), 'p', 'e', zeroblob(32), 1",
        "'i', 't', 'a', 'o', printf('%.33c', 'p'), 'e', zeroblob(32), 1",
    ] {
        assert!(insert(&connection, refused).is_err(), "{refused}");
    }
    let valid = "'i', 't', 'a', 'o', '', 'e', zeroblob(32), 1";
    assert_eq!(insert(&connection, valid).unwrap(), 1);
    assert!(insert(&connection, valid).is_err(), "the id is unique");
}
