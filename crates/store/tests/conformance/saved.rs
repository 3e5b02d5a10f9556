//! What a runner needs to run a task: its scope, its log, and the last checkpoint of its agent.

use engine::{
    Clock, Store,
    ids::TaskNo,
    store::{SavedState, Step},
};

use super::{
    samples::{accepted, advance, at, foreign_scope, log_of, number, report, save, step, texts},
    test_database::TestDatabase,
};

on_every_database![last_checkpoint_survives_attempts_and_restarts, work_item_has_the_scope_and_the_log,];

async fn saved(store: &dyn Store, no: TaskNo) -> Option<SavedState> {
    store.work(no).await.unwrap().unwrap().saved
}

async fn last_checkpoint_survives_attempts_and_restarts(database: &dyn TestDatabase) {
    let store = database.open();
    let none = accepted(&*store, |_| {}).await;
    assert_eq!(saved(&*store, none).await, None);
    let no = accepted(&*store, |task| task.saved = Some(SavedState::new(Some("skill"), "one"))).await;
    assert_eq!(saved(&*store, no).await, Some(SavedState::new(Some("skill"), "one")));
    advance(&*store, save(step(no, Step::Report { fence: 1 }), "two")).await.unwrap();
    advance(&*store, report(no, &["a change that saves nothing"])).await.unwrap();
    assert_eq!(saved(&*store, no).await, Some(SavedState::new(None, "two")));
    let store = database.reopen(store, &Clock::manual(at(0)));
    advance(&*store, step(no, Step::Claim { probation: false })).await.unwrap();
    assert_eq!(saved(&*store, no).await, Some(SavedState::new(None, "two")));
    advance(&*store, save(step(no, Step::Report { fence: 2 }), "")).await.unwrap();
    assert_eq!(
        saved(&*store, no).await,
        Some(SavedState::new(None, "")),
        "an empty checkpoint is a checkpoint"
    );
    assert_eq!(saved(&*store, none).await, None);
}

async fn work_item_has_the_scope_and_the_log(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |task| task.scope = foreign_scope()).await;
    advance(&*store, report(no, &["third"])).await.unwrap();
    let work = store.work(no).await.unwrap().unwrap();
    assert_eq!((work.scope, work.row.no, work.row.last_seq), (foreign_scope(), no, 3));
    assert_eq!(texts(&log_of(&*store, &foreign_scope(), no).await), ["first", "second", "third"]);
    let free = number(&*store).await;
    assert!(store.work(free).await.unwrap().is_none());
}
