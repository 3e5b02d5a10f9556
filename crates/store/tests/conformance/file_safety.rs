//! A store is one file used by one process, whatever names it has and whatever happens to it.

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
};

use a2ad_store::{OpenError, SqliteOptions};
use engine::{Clock, Feed, store::NotCommitted};

use super::{
    samples::{accept, accepted, at, log_texts, number, task},
    test_database::{Sqlite, TestDatabase as _},
};

fn open(path: &Path) -> Result<a2ad_store::Sqlite, OpenError> {
    let options = SqliteOptions { sync: false, ..SqliteOptions::at(path) };
    a2ad_store::Sqlite::open(&options, Feed::default(), &Clock::manual(at(0)))
}

/// The error of a store that must not be opened.
#[track_caller]
fn refused(path: &Path) -> OpenError {
    match open(path).map(drop) {
        Ok(()) => panic!("{} was opened", path.display()),
        Err(error) => error,
    }
}

fn beside(path: &Path, name: &str) -> PathBuf {
    path.with_file_name(name)
}

/// The names of the files beside a store, sorted.
fn files(path: &Path) -> Vec<String> {
    let folder = fs::read_dir(path.parent().unwrap()).unwrap();
    let mut names: Vec<String> =
        folder.map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// How many POSIX locks this process holds on a file; those are SQLite's.
fn posix_locks(path: &Path) -> usize {
    let inode = format!(":{} ", fs::metadata(path).unwrap().ino());
    let process = format!(" {} ", std::process::id());
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    locks.lines().filter(|line| ["POSIX", &inode, &process].iter().all(|part| line.contains(part))).count()
}

fn application_id(database: &Sqlite) -> i64 {
    database.raw_connection().pragma_query_value(None, "application_id", |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn open_store_cannot_be_opened_by_another_name() {
    let database = Sqlite::new();
    let store = database.open();
    accepted(&*store, |_| {}).await;
    let before = posix_locks(&database.path());
    assert!(before > 0 || !Path::new("/proc/locks").exists());
    let link = beside(&database.path(), "link.db");
    symlink(database.path(), &link).unwrap();
    assert!(matches!(refused(&link), OpenError::InUse { .. }));
    // Without the lock file, the lock on the database itself decides, where the system has such locks.
    let names = if cfg!(target_os = "linux") { vec![link.clone(), database.path()] } else { Vec::new() };
    if !names.is_empty() {
        fs::remove_file(beside(&database.path(), "a2ad.db.lock")).unwrap();
    }
    for path in names {
        let OpenError::Locked { process: Some(process), .. } = refused(&path) else {
            panic!("{} was not found to be locked", path.display())
        };
        assert_eq!(process.pid, std::process::id());
    }
    // A descriptor that is closed would release the locks of SQLite.
    assert_eq!(posix_locks(&database.path()), before);
    let no = accepted(&*store, |_| {}).await;
    drop(store);
    let store = open(&link).unwrap();
    assert_eq!(log_texts(&store, no).await, ["first", "second"]);
}

#[tokio::test]
async fn store_named_by_a_dangling_link_is_created_at_its_target() {
    let database = Sqlite::new();
    let link = beside(&database.path(), "link.db");
    symlink("a2ad.db", &link).unwrap();
    let store = open(&link).unwrap();
    assert!(matches!(refused(&database.path()), OpenError::InUse { .. }));
    let no = accepted(&store, |_| {}).await;
    drop(store);
    assert_eq!(log_texts(&*database.open(), no).await, ["first", "second"]);
}

#[tokio::test]
async fn store_with_several_hard_links_is_refused() {
    let database = Sqlite::new();
    let store = database.open();
    let no = accepted(&*store, |_| {}).await;
    drop(store);
    let link = beside(&database.path(), "link.db");
    fs::hard_link(database.path(), &link).unwrap();
    for path in [database.path(), link.clone()] {
        assert!(matches!(refused(&path), OpenError::Linked { links: 2, .. }), "{}", path.display());
    }
    fs::remove_file(link).unwrap();
    assert_eq!(log_texts(&*database.open(), no).await, ["first", "second"]);
}

#[tokio::test]
async fn nothing_is_acknowledged_after_a_file_is_removed_or_replaced() {
    let remove = |path: &Path| fs::remove_file(path).unwrap();
    let replace = |path: &Path| {
        let other = beside(path, "other");
        fs::copy(path, &other).unwrap();
        fs::rename(other, path).unwrap();
    };
    let rename = |path: &Path| fs::rename(path, beside(path, "moved")).unwrap();
    let changes: [&dyn Fn(&Path); 3] = [&remove, &replace, &rename];
    for file in ["a2ad.db", "a2ad.db-wal"] {
        for (at, change) in changes.iter().enumerate() {
            let database = Sqlite::new();
            let store = database.open();
            accepted(&*store, |_| {}).await;
            let next = task(number(&*store).await);
            change(&beside(&database.path(), file));
            let result = accept(&*store, next).await;
            assert!(matches!(result, Err(NotCommitted::Unavailable(_))), "{file}, change {at}");
            let reason = store.failed().await;
            assert!(reason.contains(file) && reason.contains("while the store was open"), "{reason}");
            assert!(!reason.contains("every acknowledged task is safe"), "{reason}");
        }
    }
}

#[tokio::test]
async fn idle_store_notices_that_a_file_is_gone() {
    for file in ["a2ad.db", "a2ad.db-wal", "a2ad.db-shm"] {
        let database = Sqlite::new();
        let store = database.open();
        accepted(&*store, |_| {}).await;
        fs::remove_file(beside(&database.path(), file)).unwrap();
        let reason = store.failed().await;
        assert!(reason.contains(&format!("{file} was removed")), "{reason}");
    }
}

#[tokio::test]
async fn acknowledged_tasks_survive_the_loss_of_the_log() {
    for file in ["a2ad.db-wal", "a2ad.db-shm"] {
        let database = Sqlite::new();
        let store = database.open();
        let no = accepted(&*store, |_| {}).await;
        fs::remove_file(beside(&database.path(), file)).unwrap();
        let reason = store.failed().await;
        assert!(reason.contains("start again"), "{reason}");
        let store = database.reopen(store, &Clock::manual(at(0)));
        assert_eq!(log_texts(&*store, no).await, ["first", "second"], "{file}");
    }
}

#[tokio::test]
async fn files_that_replaced_those_of_a_store_are_not_touched() {
    let database = Sqlite::new();
    let store = database.open();
    accepted(&*store, |_| {}).await;
    for name in ["a2ad.db", "a2ad.db-wal"] {
        fs::write(beside(&database.path(), "other"), "other").unwrap();
        fs::rename(beside(&database.path(), "other"), beside(&database.path(), name)).unwrap();
    }
    store.failed().await;
    drop(store);
    for name in ["a2ad.db", "a2ad.db-wal"] {
        assert_eq!(fs::read(beside(&database.path(), name)).unwrap(), b"other", "{name}");
    }
}

#[test]
fn database_of_another_program_is_refused_and_left_as_it_was() {
    for schema in [
        "CREATE TABLE notes (text)",
        "CREATE TABLE meta (key); CREATE TABLE tasks (n)",
        "PRAGMA application_id = 7",
        "PRAGMA user_version = 2",
        "PRAGMA application_id = 7; CREATE TABLE meta (key); CREATE TABLE tasks (n); CREATE TABLE segments (n)",
    ] {
        for mode in ["DELETE", "WAL"] {
            let database = Sqlite::new();
            let other = database.raw_connection();
            other.pragma_update(None, "journal_mode", mode).unwrap();
            other.execute_batch(schema).unwrap();
            drop(other);
            let before = fs::read(database.path()).unwrap();
            let error = refused(&database.path());
            assert!(matches!(error, OpenError::Foreign { .. }), "{mode}, {schema}: {error}");
            assert_eq!(fs::read(database.path()).unwrap(), before, "{mode}, {schema}");
            assert_eq!(files(&database.path()), ["a2ad.db"], "{mode}, {schema}");
        }
    }
}

#[test]
fn database_that_another_program_has_open_is_refused_and_left_as_it_was() {
    let database = Sqlite::new();
    let other = database.raw_connection();
    other.pragma_update(None, "journal_mode", "WAL").unwrap();
    // The table is in the log only.
    other.execute_batch("CREATE TABLE notes (text)").unwrap();
    let contents =
        || ["a2ad.db", "a2ad.db-wal"].map(|name| fs::read(beside(&database.path(), name)).unwrap());
    let before = contents();
    assert!(matches!(refused(&database.path()), OpenError::Foreign { .. }));
    assert_eq!(contents(), before);
    other.execute_batch("INSERT INTO notes VALUES ('more')").unwrap();
}

#[test]
fn newer_schema_is_refused_and_left_as_it_was() {
    let database = Sqlite::new();
    let newer = database.raw_connection();
    newer.execute_batch("PRAGMA user_version = 999; PRAGMA application_id = 0x61326164").unwrap();
    drop(newer);
    let before = fs::read(database.path()).unwrap();
    assert!(matches!(refused(&database.path()), OpenError::Newer { found: 999, .. }));
    assert_eq!(
        (fs::read(database.path()).unwrap(), files(&database.path())),
        (before, vec!["a2ad.db".into()])
    );
}

#[tokio::test]
async fn store_has_an_application_id_and_one_without_is_opened() {
    let database = Sqlite::new();
    let store = database.open();
    let no = accepted(&*store, |_| {}).await;
    drop(store);
    let ours = application_id(&database);
    assert_eq!(ours, i64::from(u32::from_be_bytes(*b"a2ad")));
    database.raw_connection().pragma_update(None, "application_id", 0).unwrap();
    let store = database.open();
    assert_eq!(log_texts(&*store, no).await, ["first", "second"]);
    drop(store);
    assert_eq!(application_id(&database), ours);
}

#[test]
fn empty_file_with_a_log_is_refused_and_left_as_it_was() {
    let database = Sqlite::new();
    let log = beside(&database.path(), "a2ad.db-wal");
    fs::write(database.path(), "").unwrap();
    fs::write(&log, "commits").unwrap();
    let error = refused(&database.path()).to_string();
    assert!(error.contains("a2ad.db-wal") && error.contains("restore a backup"), "{error}");
    assert_eq!(fs::read(log).unwrap(), b"commits");
}

#[tokio::test]
async fn clean_stop_leaves_one_file_and_every_file_is_private() {
    let database = Sqlite::new();
    let store = database.open();
    for _ in 0..10 {
        accepted(&*store, |_| {}).await;
    }
    let running = ["a2ad.db", "a2ad.db-shm", "a2ad.db-wal", "a2ad.db.lock"];
    assert_eq!(files(&database.path()), running);
    for file in running {
        let mode = fs::metadata(beside(&database.path(), file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    drop(store);
    assert_eq!(files(&database.path()), ["a2ad.db"]);
}

#[tokio::test]
async fn check_of_a_store_changes_nothing_and_describes_damage() {
    let database = Sqlite::new();
    let store = database.open();
    for _ in 0..50 {
        accepted(&*store, |_| {}).await;
    }
    assert!(matches!(a2ad_store::check(&database.path()), Err(OpenError::InUse { .. })));
    drop(store);
    let whole = fs::read(database.path()).unwrap();
    assert_eq!(a2ad_store::check(&database.path()).unwrap(), [""; 0]);
    assert_eq!(
        (fs::read(database.path()).unwrap(), files(&database.path())),
        (whole.clone(), vec!["a2ad.db".into()])
    );
    let page = 8_192;
    let mut first_page = whole.clone();
    first_page[..page].fill(7);
    let mut schema = whole.clone();
    schema[100..page].fill(7);
    let mut last_pages = whole.clone();
    last_pages[page * 3..].fill(7);
    let short = whole[..whole.len() / 2].to_vec();
    for (what, bytes) in [
        ("first page", first_page),
        ("schema", schema),
        ("pages", last_pages),
        ("end", short),
        ("all", Vec::new()),
    ] {
        fs::write(database.path(), &bytes).unwrap();
        let findings = a2ad_store::check(&database.path()).unwrap();
        assert!(!findings.is_empty() && findings.iter().all(|finding| !finding.is_empty()), "{what}");
        assert_eq!(
            (fs::read(database.path()).unwrap(), files(&database.path())),
            (bytes, vec!["a2ad.db".into()]),
            "{what}"
        );
    }
}
