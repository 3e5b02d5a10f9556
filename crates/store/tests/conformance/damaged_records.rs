//! Damaged records: the check names each of them, and lists leave damaged tasks out.

use std::{fs, sync::Arc};

use engine::{
    Store,
    ids::TaskNo,
    store::{ListPosition, ListQuery, View},
};

use super::{
    samples::{accepted, scope},
    test_database::{Sqlite, TestDatabase as _},
};

/// A store with this many tasks that was closed.
async fn store_with_tasks(count: usize) -> Sqlite {
    let database = Sqlite::new();
    let store = database.open();
    for _ in 0..count {
        accepted(&*store, |_| {}).await;
    }
    drop(store);
    database
}

fn damage(database: &Sqlite, statement: &str) {
    database.raw_connection().execute_batch(statement).unwrap();
}

/// Damage that SQLite does not see, and how the finding begins.
const CASES: [(&str, &str); 13] = [
    ("UPDATE tasks SET origin = 99 WHERE n = 2", "tasks: task 2 (ID): the value of origin is unknown"),
    ("UPDATE segments SET bytes = x'09' WHERE place >> 24 = 2", "segments: task 2 (ID): entry 1: "),
    ("DELETE FROM segments WHERE place >> 24 = 2", "segments: task 2 (ID): the log ends with entry 0"),
    (
        "INSERT INTO docs (n, at_seq, bytes) VALUES (2, 1, x'09'); UPDATE tasks SET doc = 1 WHERE n = 2",
        "docs: task 2 (ID): ",
    ),
    (
        "INSERT INTO webhooks (n, id, dialect, style, events, host, sealed, acked_seq)
         VALUES (2, 'w', 99, 0, 0, 'h', x'00', 0)",
        "webhooks: number 1 of task 2 (ID): the value of dialect is unknown",
    ),
    (
        "INSERT INTO dead_letters (n, tag, task_id, tenant, principal, agent, end_user, number, id, dialect, style,
                                   events, host, sealed, seq, attempts, error, media_type, body, died_at)
         VALUES (2, zeroblob(10), 't', 't', 'p', 'a', '', 1, 'w', 1, 0, 0, 'h', x'00', 1, 1, CAST(x'ff' AS TEXT), '',
                 x'', 0)",
        "dead_letters: letter 1 of task 2 (ID): error: ",
    ),
    (
        "INSERT INTO api_keys (id, tenant, agent, owner, prefix, ending, digest, created_at)
         VALUES ('k', 't', 'a', CAST(x'ff' AS TEXT), 'p', 'e', zeroblob(32), 0)",
        "api_keys: id k: owner: ",
    ),
    (
        "INSERT INTO turn_keys (n, key, hash, seq) VALUES (2, zeroblob(16), x'00', 1)",
        "turn_keys: seq 1 of task 2 (ID): ",
    ),
    (
        "INSERT INTO journal (n, turn, step) VALUES (2, 1, CAST(x'ff' AS TEXT))",
        "journal: step \u{fffd} of task 2 (ID): step: ",
    ),
    ("UPDATE scopes SET principal = CAST(x'ff' AS TEXT)", "scopes: id 1: principal: "),
    ("UPDATE counts SET state = 99", "counts: scope 1: the value of state is unknown"),
    (
        "INSERT INTO agent_switches (tenant, agent, enabled, decided_at, decided_by)
         VALUES ('t', 'a', 1, 0, CAST(x'ff' AS TEXT))",
        "agent_switches: agent a: decided_by: ",
    ),
    (
        "INSERT INTO key_runs (id, last_n, max_n, filter, fences) VALUES (1, 0, 0, x'', x'');
         INSERT INTO key_pages (place, bytes) VALUES ((1 << 24) + (2 << 22), zeroblob(16))",
        "key_pages: run 1, page 0: ",
    ),
];

#[tokio::test]
async fn every_damaged_record_is_named_by_the_check() {
    let database = store_with_tasks(3).await;
    let intact = fs::read(database.path()).unwrap();
    let check = || a2ad_store::check(&database.path()).unwrap();
    assert_eq!(check(), Vec::<String>::new());
    for (statement, expected) in CASES {
        damage(&database, statement);
        let (start, rest) = expected.split_once("ID").unwrap_or((expected, ""));
        match check().as_slice() {
            [finding] if finding.starts_with(start) && finding.contains(rest) => {}
            findings => panic!("{statement}: {findings:?}"),
        }
        fs::write(database.path(), &intact).unwrap();
    }
    assert_eq!(check(), Vec::<String>::new());
}

#[tokio::test]
async fn lists_leave_damaged_tasks_out_and_go_on_behind_them() {
    let database = store_with_tasks(5).await;
    damage(&database, "UPDATE tasks SET origin = 99 WHERE n = 2");
    damage(&database, "UPDATE segments SET bytes = x'09' WHERE place >> 24 IN (3, 4)");
    let store: Arc<dyn Store> = database.open();
    let list = async |after: Option<ListPosition>, size| {
        let query = ListQuery { context: None, state: None, since: None, after, size, view: View::default() };
        let page = store.list(&scope(), query).await.unwrap();
        let tasks: Vec<TaskNo> = page.tasks.iter().map(|snapshot| snapshot.row.no).collect();
        (tasks, page.unreadable, page.last.filter(|_| page.more))
    };
    assert_eq!(list(None, 10).await, (vec![TaskNo(5), TaskNo(1)], 3, None));
    let (mut after, mut pages) = (None, Vec::new());
    loop {
        let (tasks, unreadable, last) = list(after, 2).await;
        pages.push((tasks, unreadable));
        match last {
            Some(last) => after = Some(last),
            None => break,
        }
    }
    assert_eq!(pages, [(vec![TaskNo(5)], 1), (vec![], 2), (vec![TaskNo(1)], 0)]);
}
