//! A SQLite file belongs to one process at a time, and to programs that know its schema.

use a2ad_store::OpenError;
use engine::{Clock, Feed};

use super::{
    bench::{Bench as _, Sqlite},
    samples::{accepted, at, found, told},
};

fn open(bench: &Sqlite) -> Result<a2ad_store::Sqlite, OpenError> {
    a2ad_store::Sqlite::open(&bench.options(), Feed::default(), &Clock::manual(at(0)))
}

#[test]
fn a_store_that_is_open_is_not_opened_again() {
    let bench = Sqlite::new();
    let store = bench.open();
    let Err(OpenError::InUse { path }) = open(&bench).map(drop) else { panic!("opened twice") };
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
