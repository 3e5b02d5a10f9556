//! A SQLite file can be opened by one process at a time, and only by programs that know its schema.

use a2ad_store::OpenError;
use engine::{
    ApiKey, Clock, Feed, NewApiKey,
    store::{
        CapReached, ContextLookup, Expiry, ListQuery, MessageKey, NewContext, NotCommitted, PrincipalCaps,
        SavedState, SkillSource, Step, TenantAgent, View, WaitingSince, WorkState,
    },
};
use protocol::TaskState;

use super::{
    samples::{accept, accepted, advance, at, ended, found, log_texts, number, scope, step, task},
    test_database::{Sqlite, TestDatabase as _},
};

fn open(database: &Sqlite) -> Result<a2ad_store::Sqlite, OpenError> {
    a2ad_store::Sqlite::open(&database.options(), Feed::default(), &Clock::manual(at(0)))
}

#[test]
fn open_store_cannot_be_opened_again() {
    let database = Sqlite::new();
    let store = database.open();
    let Err(OpenError::InUse { path, .. }) = open(&database).map(drop) else { panic!("opened twice") };
    assert_eq!(path, database.path());
    drop(store);
    assert!(open(&database).is_ok());
}

#[tokio::test]
async fn store_with_a_newer_schema_is_rejected_unchanged() {
    let database = Sqlite::new();
    let store = database.open();
    let no = accepted(&*store, |_| {}).await;
    drop(store);
    let version = |connection: &rusqlite::Connection| -> i64 {
        connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    };
    let ours = version(&database.raw_connection());
    database.raw_connection().pragma_update(None, "user_version", ours + 1).unwrap();
    let Err(OpenError::Newer { found: theirs, known, .. }) = open(&database).map(drop) else {
        panic!("a newer schema was opened");
    };
    assert_eq!((theirs, known), (ours + 1, ours));
    assert_eq!(version(&database.raw_connection()), ours + 1);

    database.raw_connection().pragma_update(None, "user_version", ours).unwrap();
    let store = database.open();
    let snapshot = found(&*store, no).await;
    assert_eq!(log_texts(&*store, no).await, ["first", "second"]);
    // The work was held by a process that died; the rejected open in between held and changed nothing.
    assert_eq!(snapshot.row.deaths, 1);
}

#[test]
fn file_that_is_not_a_store_is_rejected() {
    let database = Sqlite::new();
    std::fs::write(database.path(), "This is a text, not a database. ".repeat(100)).unwrap();
    assert!(matches!(open(&database), Err(OpenError::Unusable { .. })));
    let nowhere = Sqlite::new();
    let options = a2ad_store::SqliteOptions::at(nowhere.path().join("missing").join("a2ad.db"));
    let opened = a2ad_store::Sqlite::open(&options, Feed::default(), &Clock::manual(at(0)));
    assert!(matches!(opened, Err(OpenError::Unusable { .. })));
}

/// Undoes the twelfth migration.
const ELEVENTH_SCHEMA: &str = "ALTER TABLE tasks DROP COLUMN skill_source; ALTER TABLE tasks DROP COLUMN admitted; ALTER TABLE saved DROP COLUMN skill;";

/// Undoes the migrations from the sixth to the eleventh.
const FIFTH_SCHEMA: &str =
    "DROP TABLE webhooks; DROP TABLE dead_letters; ALTER TABLE tasks DROP COLUMN webhooks; DROP TABLE agent_switches; ALTER TABLE scopes DROP COLUMN stored; DROP TABLE api_keys;
    PRAGMA user_version = 5;";

/// Undoes the fifth migration.
const FOURTH_SCHEMA: &str = "
    DROP TABLE waiting; DROP TABLE journal; DROP INDEX tasks_deadline; ALTER TABLE tasks DROP COLUMN crashes;
    ALTER TABLE tasks DROP COLUMN probation; ALTER TABLE tasks DROP COLUMN progress_size;
    CREATE INDEX tasks_waiting ON tasks (status_at) WHERE visible = 1 AND state IN (6, 8);
    CREATE INDEX tasks_suspects ON tasks (next_run_at, n) WHERE next_run_at IS NOT NULL AND deaths >= 2;
    PRAGMA user_version = 4;";

/// Undoes the second to the fourth migration.
const FIRST_SCHEMA: &str = "
    ALTER TABLE key_runs DROP COLUMN min_n; DROP INDEX scopes_ended; ALTER TABLE scopes DROP COLUMN ended_from;
    DROP TABLE agent_counts; DROP INDEX tasks_purged_scope; DROP INDEX tasks_waiting; DROP INDEX tasks_context;
    DROP INDEX tasks_purged; DROP INDEX tasks_suspects; DROP INDEX turn_keys_by_key; DROP INDEX tasks_named_key;
    CREATE INDEX tasks_context ON tasks (scope, context, n) WHERE context <> n;
    CREATE INDEX tasks_purged ON tasks (terminal_at) WHERE visible = 3;
    ALTER TABLE tasks DROP COLUMN purged_at; PRAGMA user_version = 1";

#[tokio::test]
async fn migration_from_the_first_schema_keeps_all_data() {
    let database = Sqlite::new();
    let store = database.open();
    let key = MessageKey { key: [1; 16], hash: [1; 16] };
    let purged = accepted(&*store, |task| {
        (task.state, task.work, task.status_at) = (TaskState::Completed, WorkState::Idle, at(10));
        task.key = Some(key);
    })
    .await;
    store.purge(vec![ended(&*store, purged).await], at(20)).await.unwrap();
    for _ in 0..3 {
        accepted(&*store, |task| task.context = NewContext::Named("chat".into())).await;
    }
    drop(store);
    database
        .raw_connection()
        .execute_batch(&[ELEVENTH_SCHEMA, FIFTH_SCHEMA, FOURTH_SCHEMA, FIRST_SCHEMA].concat())
        .unwrap();

    let store = database.open();
    let chat = Some(ContextLookup { ours: None, name: "chat".into() });
    let query =
        ListQuery { context: chat, state: None, since: None, after: None, size: 2, view: View::default() };
    let page = store.list(&scope(), query).await.unwrap();
    assert_eq!((page.tasks.len(), page.total, page.more), (2, 3, true));
    let again = engine::store::Accept { key: Some(key), ..task(number(&*store).await) };
    assert!(matches!(accept(&*store, again).await, Err(NotCommitted::KeyUsed(_))));
    // The first schema did not record when a task was purged, so its retention time starts with the migration.
    assert_eq!(store.drop_purged(at(11), 100).await.unwrap(), 0);
    assert_eq!(store.count_open(&TenantAgent::of(&scope())).await.unwrap(), 3, "counted by the migration");
    assert_eq!(store.drop_purged(at(4_000_000_000_000), 100).await.unwrap(), 1);
}

#[test]
fn migration_gives_the_names_of_certificates_their_kind() {
    let database = Sqlite::new();
    drop(database.open());
    let connection = database.raw_connection();
    // Some new names are earlier names of others, which come later or before.
    let names = [
        ("mtls:spiffe://a", "mtls:uri:spiffe://a"),
        ("mtls:uri:spiffe://a", "mtls:uri:uri:spiffe://a"),
        ("mtls:dn:CN=a", "mtls:uri:dn:CN=a"),
        ("mtls:CN=a", "mtls:dn:CN=a"),
        ("mtls:1.2.3=#0c,CN=a:b", "mtls:dn:1.2.3=#0c,CN=a:b"),
        ("mtls:https://a/?b=c", "mtls:uri:https://a/?b=c"),
        ("mtls:a", "mtls:uri:a"),
        ("key:mtls:a", "key:mtls:a"),
        ("MTLS:a", "MTLS:a"),
    ];
    for (earlier, _) in names {
        let scope = "INSERT INTO scopes (tenant, principal, agent, end_user) VALUES ('t', ?1, 'a', '')";
        connection.execute(scope, [earlier]).unwrap();
    }
    connection.execute_batch(ELEVENTH_SCHEMA).unwrap();
    connection.pragma_update(None, "user_version", 10).unwrap();
    drop(connection);
    drop(database.open());
    let connection = database.raw_connection();
    let mut statement = connection.prepare("SELECT principal FROM scopes ORDER BY id").unwrap();
    let found: Vec<String> = statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(found, names.map(|(_, name)| name));
}

#[tokio::test]
async fn migration_from_the_eleventh_schema_knows_no_selected_skills() {
    let database = Sqlite::new();
    let store = database.open();
    let no = accepted(&*store, |task| {
        (task.state, task.work) = (TaskState::InputRequired, WorkState::Idle);
        (task.skill, task.skill_source) = (Some("draw".into()), SkillSource::Client);
        task.saved = Some(SavedState::new(Some("draw"), "draw\nstate"));
    })
    .await;
    drop(store);
    let connection = database.raw_connection();
    connection.execute_batch(ELEVENTH_SCHEMA).unwrap();
    connection.pragma_update(None, "user_version", 11).unwrap();

    let store = database.open();
    let work = store.work(no).await.unwrap().unwrap();
    assert_eq!((work.row.skill.as_deref(), work.row.skill_source), (Some("draw"), None));
    assert_eq!(work.saved, Some(SavedState { skill: None, state: "draw\nstate".into() }));
}

#[tokio::test]
async fn migration_from_the_fourth_schema_keeps_crashes_and_waiting_tasks() {
    let database = Sqlite::new();
    let mut store = database.open();
    let running = accepted(&*store, |_| {}).await;
    let idle = |state| {
        move |task: &mut engine::store::Accept| {
            (task.state, task.work, task.status_at) = (state, WorkState::Idle, at(10));
        }
    };
    let asking = accepted(&*store, |task| {
        idle(TaskState::InputRequired)(task);
        task.skill = Some("draw".into());
    })
    .await;
    let locked = accepted(&*store, idle(TaskState::AuthRequired)).await;
    let done = accepted(&*store, idle(TaskState::Completed)).await;
    for _ in 0..2 {
        store = database.reopen(store, &Clock::manual(at(0)));
        advance(&*store, step(running, Step::Claim { probation: false })).await.unwrap();
    }
    drop(store);
    database
        .raw_connection()
        .execute_batch(&[ELEVENTH_SCHEMA, FIFTH_SCHEMA, FOURTH_SCHEMA].concat())
        .unwrap();

    let store = database.open();
    let row = found(&*store, running).await.row;
    assert_eq!((row.deaths, row.crashes, row.died_on_probation), (3, 3, false));
    assert_eq!((row.deadline, row.progress_size), (None, 0));
    for no in [asking, locked, done] {
        let row = found(&*store, no).await.row;
        assert_eq!((row.crashes, row.deadline, row.progress_size), (0, None, 0));
    }
    let expiry = |default, skills| Expiry {
        owner: TenantAgent::of(&scope()),
        now: at(1_000),
        ended_before: at(0),
        max_tasks: None,
        waiting_since: WaitingSince { default, skills },
        max: 10,
    };
    let waiting = store.expired(expiry(at(11), vec![])).await.unwrap().waiting;
    assert_eq!(waiting.iter().map(|row| row.no).collect::<Vec<_>>(), [asking, locked]);
    let waiting = store.expired(expiry(at(11), vec![("draw".into(), at(10))])).await.unwrap().waiting;
    assert_eq!(waiting.iter().map(|row| row.no).collect::<Vec<_>>(), [locked]);
    drop(store);
    assert_eq!(a2ad_store::check(&database.path()).unwrap(), Vec::<String>::new());
}

#[tokio::test]
async fn migration_from_the_fifth_schema_keeps_tasks_and_has_no_api_keys() {
    let database = Sqlite::new();
    let store = database.open();
    let kept = accepted(&*store, |_| {}).await;
    drop(store);
    database.raw_connection().execute_batch(&[ELEVENTH_SCHEMA, FIFTH_SCHEMA].concat()).unwrap();

    let store = database.open();
    assert_eq!(log_texts(&*store, kept).await, ["first", "second"]);
    assert_eq!(store.api_keys().await.unwrap(), []);
    let new = NewApiKey { tenant: "default", agent: "echo", owner: None, prefix: "" };
    let (key, _) = ApiKey::generate(&new, at(1));
    assert!(store.insert_api_key(key.clone(), 1).await.unwrap());
    assert_eq!(store.api_keys().await.unwrap(), [key]);
    // The bytes of its owner are counted.
    let caps = PrincipalCaps { stored: 1, ..PrincipalCaps::default() };
    let refused = accept(&*store, engine::store::Accept { caps, ..task(number(&*store).await) }).await;
    assert_eq!(refused.map(drop), Err(NotCommitted::CapReached(CapReached::Stored(1))));
    drop(store);
    assert_eq!(a2ad_store::check(&database.path()).unwrap(), Vec::<String>::new());
}
