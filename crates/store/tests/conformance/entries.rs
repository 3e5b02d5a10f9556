//! The log is read by cursor: what follows a place, in order, by its owner only.

use engine::{
    Store,
    ids::TaskNo,
    log::{Log, Seq},
    store::{Advance, Step},
};
use protocol::TaskState;

use super::{
    bench::Bench,
    samples::{accepted, advance, artifact, foreign_scope, number, report, scope, status, step, word},
};

on_every_database![
    what_follows_a_cursor_is_read_wherever_segments_end,
    no_more_entries_are_read_than_asked_for,
    a_cursor_at_the_end_finds_nothing,
    a_cursor_far_behind_the_end_finds_nothing,
    the_log_of_another_scope_or_of_no_task_is_empty,
    neighbours_do_not_read_each_others_logs,
    the_last_status_up_to_an_entry_is_found_across_segments,
];

/// A task whose eight entries lie in segments of two, one, three and two.
async fn in_segments(store: &dyn Store) -> TaskNo {
    let no = accepted(store, |_| {}).await;
    for words in [&["third"][..], &["fourth", "fifth", "sixth"], &["seventh", "eighth"]] {
        advance(store, report(no, words)).await.unwrap();
    }
    no
}

const WORDS: [&str; 8] = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"];

async fn read(store: &dyn Store, no: TaskNo, after: Seq, max: usize) -> Vec<(Seq, String)> {
    let entries = store.entries(&scope(), no, after, max).await.unwrap();
    entries.into_iter().map(|(seq, entry)| (seq, word(&entry))).collect()
}

fn expected(after: usize, max: usize) -> Vec<(Seq, String)> {
    (1..).zip(WORDS).skip(after).take(max).map(|(seq, word)| (seq, word.to_owned())).collect()
}

async fn what_follows_a_cursor_is_read_wherever_segments_end(bench: &dyn Bench) {
    let store = bench.open();
    let no = in_segments(&*store).await;
    for after in 0..WORDS.len() {
        assert_eq!(read(&*store, no, after as Seq, 100).await, expected(after, 100), "after {after}");
    }
}

async fn no_more_entries_are_read_than_asked_for(bench: &dyn Bench) {
    let store = bench.open();
    let no = in_segments(&*store).await;
    for max in [0, 1, 2, 3, 5, usize::MAX] {
        for after in 0..WORDS.len() {
            let told = format!("{max} after {after}");
            assert_eq!(read(&*store, no, after as Seq, max).await, expected(after, max), "{told}");
        }
    }
}

async fn a_cursor_at_the_end_finds_nothing(bench: &dyn Bench) {
    let store = bench.open();
    let no = in_segments(&*store).await;
    in_segments(&*store).await;
    for after in [8, 9, 1_000] {
        assert!(read(&*store, no, after, 100).await.is_empty(), "{after}");
    }
}

async fn a_cursor_far_behind_the_end_finds_nothing(bench: &dyn Bench) {
    let store = bench.open();
    let no = in_segments(&*store).await;
    in_segments(&*store).await;
    for after in [1 << 24, (1 << 24) + 3, 1 << 40, i64::MAX.unsigned_abs(), Seq::MAX] {
        let entries = store.entries(&scope(), no, after, 100).await;
        assert!(entries.as_ref().is_ok_and(Vec::is_empty), "{after}: {entries:?}");
    }
    assert_eq!(read(&*store, no, 0, 100).await, expected(0, 100), "and the store reads on");
}

async fn the_log_of_another_scope_or_of_no_task_is_empty(bench: &dyn Bench) {
    let store = bench.open();
    let no = in_segments(&*store).await;
    assert!(store.entries(&foreign_scope(), no, 0, 100).await.unwrap().is_empty());
    accepted(&*store, |task| task.scope = foreign_scope()).await;
    assert!(store.entries(&foreign_scope(), no, 0, 100).await.unwrap().is_empty());
    let free = number(&*store).await;
    assert!(store.entries(&scope(), free, 0, 100).await.unwrap().is_empty());
}

async fn neighbours_do_not_read_each_others_logs(bench: &dyn Bench) {
    let store = bench.open();
    let (one, other) = (accepted(&*store, |_| {}).await, accepted(&*store, |_| {}).await);
    for round in ["a", "b", "c"] {
        advance(&*store, report(one, &[round])).await.unwrap();
        advance(&*store, report(other, &["other", round])).await.unwrap();
    }
    let words: Vec<_> = read(&*store, one, 1, 100).await;
    assert_eq!(words, [(2, "second".into()), (3, "a".into()), (4, "b".into()), (5, "c".into())]);
    assert_eq!(read(&*store, other, 0, 100).await.len(), 8);
}

async fn the_last_status_up_to_an_entry_is_found_across_segments(bench: &dyn Bench) {
    let store = bench.open();
    // Two statuses, then chunks and statuses in segments of several sizes.
    let no = accepted(&*store, |_| {}).await;
    let neighbour = accepted(&*store, |_| {}).await;
    let working = |word| status(TaskState::Working, word);
    for lines in [
        vec![artifact("x")],
        vec![artifact("x"), artifact("x")],
        vec![artifact("x"), working("seventh"), artifact("x")],
        vec![artifact("x")],
    ] {
        let log = Log::pack(lines);
        advance(&*store, Advance { log, ..step(no, Step::Report { fence: 1 }) }).await.unwrap();
    }
    let last = async |up_to| store.last_status(&scope(), no, up_to).await.unwrap().map(|entry| word(&entry));
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
    let other = store.last_status(&scope(), neighbour, 9).await.unwrap().map(|entry| word(&entry));
    assert_eq!(other.as_deref(), Some("second"));
}
