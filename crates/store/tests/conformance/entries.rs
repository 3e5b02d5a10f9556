//! The log is read by cursor: entries after a sequence number, in order, only in the task's scope.

use engine::{
    Store,
    ids::TaskNo,
    log::{Log, Seq},
    store::{Advance, Step},
};
use protocol::TaskState;

use super::{
    samples::{accepted, advance, artifact, foreign_scope, number, report, scope, status, step, text_of},
    test_database::TestDatabase,
};

on_every_database![
    entries_after_a_cursor_are_read_across_segments,
    limit_is_respected,
    cursor_at_the_end_finds_nothing,
    cursor_far_past_the_end_finds_nothing,
    log_of_another_scope_or_unknown_task_is_empty,
    logs_of_adjacent_tasks_are_separate,
    last_status_up_to_an_entry_is_found_across_segments,
];

/// A task whose eight entries are in segments of two, one, three and two.
async fn in_segments(store: &dyn Store) -> TaskNo {
    let no = accepted(store, |_| {}).await;
    for texts in [&["third"][..], &["fourth", "fifth", "sixth"], &["seventh", "eighth"]] {
        advance(store, report(no, texts)).await.unwrap();
    }
    no
}

const TEXTS: [&str; 8] = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"];

async fn read(store: &dyn Store, no: TaskNo, after: Seq, max: usize) -> Vec<(Seq, String)> {
    let entries = store.entries(&scope(), no, after, max).await.unwrap();
    entries.into_iter().map(|(seq, entry)| (seq, text_of(&entry))).collect()
}

fn expected(after: usize, max: usize) -> Vec<(Seq, String)> {
    (1..).zip(TEXTS).skip(after).take(max).map(|(seq, text)| (seq, text.to_owned())).collect()
}

async fn entries_after_a_cursor_are_read_across_segments(database: &dyn TestDatabase) {
    let store = database.open();
    let no = in_segments(&*store).await;
    for after in 0..TEXTS.len() {
        assert_eq!(read(&*store, no, after as Seq, 100).await, expected(after, 100), "after {after}");
    }
}

async fn limit_is_respected(database: &dyn TestDatabase) {
    let store = database.open();
    let no = in_segments(&*store).await;
    for max in [0, 1, 2, 3, 5, usize::MAX] {
        for after in 0..TEXTS.len() {
            let label = format!("{max} after {after}");
            assert_eq!(read(&*store, no, after as Seq, max).await, expected(after, max), "{label}");
        }
    }
}

async fn cursor_at_the_end_finds_nothing(database: &dyn TestDatabase) {
    let store = database.open();
    let no = in_segments(&*store).await;
    in_segments(&*store).await;
    for after in [8, 9, 1_000] {
        assert!(read(&*store, no, after, 100).await.is_empty(), "{after}");
    }
}

async fn cursor_far_past_the_end_finds_nothing(database: &dyn TestDatabase) {
    let store = database.open();
    let no = in_segments(&*store).await;
    in_segments(&*store).await;
    for after in [1 << 24, (1 << 24) + 3, 1 << 40, i64::MAX.unsigned_abs(), Seq::MAX] {
        let entries = store.entries(&scope(), no, after, 100).await;
        assert!(entries.as_ref().is_ok_and(Vec::is_empty), "{after}: {entries:?}");
    }
    assert_eq!(read(&*store, no, 0, 100).await, expected(0, 100), "later reads still work");
}

async fn log_of_another_scope_or_unknown_task_is_empty(database: &dyn TestDatabase) {
    let store = database.open();
    let no = in_segments(&*store).await;
    assert!(store.entries(&foreign_scope(), no, 0, 100).await.unwrap().is_empty());
    accepted(&*store, |task| task.scope = foreign_scope()).await;
    assert!(store.entries(&foreign_scope(), no, 0, 100).await.unwrap().is_empty());
    let free = number(&*store).await;
    assert!(store.entries(&scope(), free, 0, 100).await.unwrap().is_empty());
}

async fn logs_of_adjacent_tasks_are_separate(database: &dyn TestDatabase) {
    let store = database.open();
    let (one, other) = (accepted(&*store, |_| {}).await, accepted(&*store, |_| {}).await);
    for round in ["a", "b", "c"] {
        advance(&*store, report(one, &[round])).await.unwrap();
        advance(&*store, report(other, &["other", round])).await.unwrap();
    }
    let texts: Vec<_> = read(&*store, one, 1, 100).await;
    assert_eq!(texts, [(2, "second".into()), (3, "a".into()), (4, "b".into()), (5, "c".into())]);
    assert_eq!(read(&*store, other, 0, 100).await.len(), 8);
}

async fn last_status_up_to_an_entry_is_found_across_segments(database: &dyn TestDatabase) {
    let store = database.open();
    // Two statuses, then artifact chunks and statuses in segments of several sizes.
    let no = accepted(&*store, |_| {}).await;
    let neighbour = accepted(&*store, |_| {}).await;
    let working = |text| status(TaskState::Working, text);
    for lines in [
        vec![artifact("x")],
        vec![artifact("x"), artifact("x")],
        vec![artifact("x"), working("seventh"), artifact("x")],
        vec![artifact("x")],
    ] {
        let log = Log::pack(lines);
        advance(&*store, Advance { log, ..step(no, Step::Report { fence: 1 }) }).await.unwrap();
    }
    let last =
        async |up_to| store.last_status(&scope(), no, up_to).await.unwrap().map(|entry| text_of(&entry));
    assert_eq!(last(0).await, None);
    for (up_to, expected) in [(1, "first"), (2, "second"), (3, "second"), (5, "second"), (6, "second")] {
        assert_eq!(last(up_to).await.as_deref(), Some(expected), "{up_to}");
    }
    for up_to in [7, 8, 9, 1_000] {
        assert_eq!(last(up_to).await.as_deref(), Some("seventh"), "{up_to}");
    }
    for far in [1 << 24, Seq::MAX] {
        assert_eq!(last(far).await, None, "{far}");
    }
    assert!(store.last_status(&foreign_scope(), no, 5).await.unwrap().is_none());
    let free = number(&*store).await;
    assert!(store.last_status(&scope(), free, 5).await.unwrap().is_none());
    let other = store.last_status(&scope(), neighbour, 9).await.unwrap().map(|entry| text_of(&entry));
    assert_eq!(other.as_deref(), Some("second"));
}
