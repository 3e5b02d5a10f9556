//! Tasks that have had their time are named, emptied, and later gone.

use engine::{
    Store,
    ids::TaskNo,
    store::{Accept, Expired, Expiry, KeyUsed, ListQuery, MessageKey, NotCommitted, Step, Visibility, Work},
};
use protocol::TaskState;

use super::{
    bench::Bench,
    samples::{accept, accepted, advance, at, found, log, lookup, number, save, says, scope, tag, task},
};

on_every_database![
    finished_tasks_expire_from_the_oldest_on,
    surplus_finished_tasks_expire,
    tasks_whose_client_never_answers_expire,
    a_purged_task_is_empty_but_knows_its_keys,
    an_open_task_is_never_purged,
    a_purged_task_is_dropped_after_its_time,
];

fn expiry() -> Expiry {
    let (ended_before, waiting_since) = (at(0), at(0));
    Expiry { agent: scope().agent().to_owned(), ended_before, max_tasks: None, waiting_since, max: 100 }
}

async fn expired(store: &dyn Store, expiry: Expiry) -> Expired {
    store.expired(expiry).await.unwrap()
}

/// A task that stands in a state since a time.
async fn since(store: &dyn Store, state: TaskState, millis: i64) -> TaskNo {
    accepted(store, |task| {
        (task.state, task.status_at) = (state, at(millis));
        task.work = if state.is_settled() { Work::Idle } else { Work::Held };
    })
    .await
}

async fn finished_tasks_expire_from_the_oldest_on(bench: &dyn Bench) {
    let store = bench.open();
    let young = since(&*store, TaskState::Completed, 30).await;
    let old = since(&*store, TaskState::Failed, 20).await;
    let oldest = since(&*store, TaskState::Canceled, 10).await;
    for open in [TaskState::Working, TaskState::InputRequired] {
        since(&*store, open, 1).await;
    }
    let elsewhere = Expiry { agent: "other".into(), ended_before: at(99), ..expiry() };
    assert!(expired(&*store, elsewhere).await.finished.is_empty());
    let cases = [(10, vec![]), (11, vec![oldest]), (21, vec![oldest, old]), (99, vec![oldest, old, young])];
    for (before, tasks) in cases {
        let found = expired(&*store, Expiry { ended_before: at(before), ..expiry() }).await;
        assert_eq!(found.finished, tasks, "{before}");
    }
    let few = expired(&*store, Expiry { ended_before: at(99), max: 2, ..expiry() }).await;
    assert_eq!(few.finished, [oldest, old]);
}

async fn surplus_finished_tasks_expire(bench: &dyn Bench) {
    let store = bench.open();
    let mut tasks = Vec::new();
    for millis in [50, 10, 40, 20] {
        tasks.push(since(&*store, TaskState::Completed, millis).await);
        since(&*store, TaskState::Working, 1).await;
    }
    for (kept, surplus) in [(4, vec![]), (3, vec![tasks[1]]), (1, vec![tasks[1], tasks[3], tasks[2]])] {
        let found = expired(&*store, Expiry { max_tasks: Some(kept), ..expiry() }).await;
        assert_eq!(found.finished, surplus, "{kept}");
    }
}

async fn tasks_whose_client_never_answers_expire(bench: &dyn Bench) {
    let store = bench.open();
    let asking = since(&*store, TaskState::InputRequired, 10).await;
    let locked = since(&*store, TaskState::AuthRequired, 20).await;
    since(&*store, TaskState::Working, 1).await;
    for (before, tasks) in [(10, vec![]), (11, vec![asking]), (21, vec![asking, locked])] {
        let found = expired(&*store, Expiry { waiting_since: at(before), ..expiry() }).await;
        let mut waiting: Vec<_> = found.waiting.iter().map(|row| row.no).collect();
        waiting.sort_unstable();
        assert_eq!(waiting, tasks, "{before}");
    }
}

async fn a_purged_task_is_empty_but_knows_its_keys(bench: &dyn Bench) {
    let store = bench.open();
    let key = MessageKey { key: [1; 16], hash: [1; 16] };
    let no = accepted(&*store, |task| task.key = Some(key)).await;
    let finish = says(no, Step::Finish { fence: 1 }, TaskState::Completed, "done");
    advance(&*store, save(finish, "saved")).await.unwrap();
    let neighbour = since(&*store, TaskState::Completed, 0).await;
    assert_eq!(store.purge(vec![no]).await.unwrap(), 1);
    assert_eq!(store.purge(vec![no]).await.unwrap(), 0, "once is enough");

    assert!(log(&*store, no).await.is_empty());
    let purged = found(&*store, no).await;
    assert_eq!((purged.row.visibility, purged.row.size), (Visibility::Purged, 0));
    assert!(purged.log.is_empty() && purged.doc.is_none());
    assert_eq!(store.work(no).await.unwrap().and_then(|work| work.saved), None);
    let query = ListQuery { context: None, state: None, since: None, after: None, size: 100 };
    let page = store.list(&scope(), query).await.unwrap();
    assert_eq!((page.tasks.len(), page.tasks[0].row.no, page.total), (1, neighbour, 1));
    assert_eq!(log(&*store, neighbour).await.len(), 2);

    let again = Accept { key: Some(key), ..task(number(&*store).await) };
    let met = KeyUsed { task: no, tag: tag(no), seq: 1, same: true };
    assert_eq!(accept(&*store, again).await, Err(NotCommitted::KeyUsed(met)));
}

async fn an_open_task_is_never_purged(bench: &dyn Bench) {
    let store = bench.open();
    let mut open = Vec::new();
    for state in [TaskState::Submitted, TaskState::Working, TaskState::InputRequired, TaskState::AuthRequired]
    {
        open.push(since(&*store, state, 0).await);
    }
    assert_eq!(store.purge(open.clone()).await.unwrap(), 0);
    assert_eq!(store.purge(vec![number(&*store).await]).await.unwrap(), 0);
    for no in open {
        assert_eq!(log(&*store, no).await.len(), 2, "{no:?}");
    }
}

async fn a_purged_task_is_dropped_after_its_time(bench: &dyn Bench) {
    let store = bench.open();
    let key = MessageKey { key: [1; 16], hash: [1; 16] };
    let no = accepted(&*store, |task| {
        (task.state, task.work, task.status_at) = (TaskState::Completed, Work::Idle, at(10));
        task.key = Some(key);
    })
    .await;
    let kept = since(&*store, TaskState::Completed, 5).await;
    store.purge(vec![no]).await.unwrap();
    assert_eq!(store.drop_purged(at(10), 100).await.unwrap(), 0, "not yet");
    assert_eq!(store.drop_purged(at(11), 100).await.unwrap(), 1);
    assert!(store.find(&scope(), lookup(&*store, no, tag(no))).await.unwrap().is_none());
    assert!(store.work(no).await.unwrap().is_none());
    assert_eq!(found(&*store, kept).await.row.state, TaskState::Completed);
    // With the row its key is free again.
    let again = Accept { key: Some(key), ..task(number(&*store).await) };
    accept(&*store, again).await.unwrap();
}
