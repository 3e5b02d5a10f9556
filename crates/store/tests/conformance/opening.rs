//! A SQLite file belongs to one process at a time, and to programs that know its schema.

use a2ad_store::OpenError;
use engine::{
    Clock, Feed,
    store::{ContextLookup, ListQuery, MessageKey, NewContext, NotCommitted, Work},
};
use protocol::TaskState;

use super::{
    bench::{Bench as _, Sqlite},
    samples::{accept, accepted, at, ended, found, number, scope, task, told},
};

fn open(bench: &Sqlite) -> Result<a2ad_store::Sqlite, OpenError> {
    a2ad_store::Sqlite::open(&bench.options(), Feed::default(), &Clock::manual(at(0)))
}

#[test]
fn a_store_that_is_open_is_not_opened_again() {
    let bench = Sqlite::new();
    let store = bench.open();
    let Err(OpenError::InUse { path, .. }) = open(&bench).map(drop) else { panic!("opened twice") };
    assert_eq!(path, bench.path());
    drop(store);
    assert!(open(&bench).is_ok());
}

#[tokio::test]
async fn a_store_of_a_newer_schema_is_refused_and_left_alone() {
    let bench = Sqlite::new();
    let store = bench.open();
    let no = accepted(&*store, |_| {}).await;
    drop(store);
    let version = |connection: &rusqlite::Connection| -> i64 {
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    };
    let ours = version(&bench.back_door());
    bench.back_door().pragma_update(None, "user_version", ours + 1).unwrap();
    let Err(OpenError::Newer { found: theirs, known, .. }) = open(&bench).map(drop) else {
        panic!("a newer schema was opened");
    };
    assert_eq!((theirs, known), (ours + 1, ours));
    assert_eq!(version(&bench.back_door()), ours + 1);

    bench.back_door().pragma_update(None, "user_version", ours).unwrap();
    let store = bench.open();
    let snapshot = found(&*store, no).await;
    assert_eq!(told(&*store, no).await, ["first", "second"]);
    // The work was held by a process that died; the refused one in between held nothing and changed nothing.
    assert_eq!(snapshot.row.deaths, 1);
}

#[test]
fn what_is_not_a_store_is_refused() {
    let bench = Sqlite::new();
    std::fs::write(bench.path(), "This is a letter, not a database. ".repeat(100)).unwrap();
    assert!(matches!(open(&bench), Err(OpenError::Unusable { .. })));
    let nowhere = Sqlite::new();
    let options = a2ad_store::Options::at(nowhere.path().join("missing").join("a2ad.db"));
    let opened = a2ad_store::Sqlite::open(&options, Feed::default(), &Clock::manual(at(0)));
    assert!(matches!(opened, Err(OpenError::Unusable { .. })));
}

/// What the second migration brought, taken back.
const FIRST_SCHEMA: &str = "
    DROP TABLE tallied; DROP TABLE tallies; DROP INDEX tasks_context; DROP INDEX tasks_purged;
    DROP INDEX tasks_suspects; DROP INDEX turn_keys_by_key; DROP INDEX tasks_named_key;
    CREATE INDEX tasks_context ON tasks (scope, context, n) WHERE context <> n;
    CREATE INDEX tasks_purged ON tasks (terminal_at) WHERE visible = 3;
    ALTER TABLE tasks DROP COLUMN purged_at; PRAGMA user_version = 1";

#[tokio::test]
async fn a_store_of_the_first_schema_keeps_all_it_has() {
    let bench = Sqlite::new();
    let store = bench.open();
    let key = MessageKey { key: [1; 16], hash: [1; 16] };
    let purged = accepted(&*store, |task| {
        (task.state, task.work, task.status_at) = (TaskState::Completed, Work::Idle, at(10));
        task.key = Some(key);
    })
    .await;
    store.purge(vec![ended(&*store, purged).await], at(20)).await.unwrap();
    for _ in 0..3 {
        accepted(&*store, |task| task.context = NewContext::Named("chat".into())).await;
    }
    drop(store);
    bench.back_door().execute_batch(FIRST_SCHEMA).unwrap();

    let store = bench.open();
    let chat = Some(ContextLookup { ours: None, name: "chat".into() });
    let query = ListQuery { context: chat, state: None, since: None, after: None, size: 2 };
    let page = store.list(&scope(), query).await.unwrap();
    assert_eq!((page.tasks.len(), page.total, page.more), (2, 3, true));
    let again = engine::store::Accept { key: Some(key), ..task(number(&*store).await) };
    assert!(matches!(accept(&*store, again).await, Err(NotCommitted::KeyUsed(_))));
    // When it was emptied the first schema did not say; it is kept from now on.
    assert_eq!(store.drop_purged(at(11), 100).await.unwrap(), 0);
    assert_eq!(store.drop_purged(at(4_000_000_000_000), 100).await.unwrap(), 1);
}
