//! The log is read by cursor: entries after a sequence number, in order, only in the task's scope.

use engine::{
    Store,
    ids::TaskNo,
    log::{Log, Seq},
    store::{Advance, MAX_SLICE_BYTES, Step},
};
use protocol::TaskState;

use super::{
    samples::{
        accepted, advance, artifact, at, foreign_scope, interrupted, number, report, scope, status, step,
        text_of, user_message, with_status,
    },
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
    one_read_is_limited_in_bytes,
    last_input_is_the_newest_user_message_or_question,
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

async fn one_read_is_limited_in_bytes(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |_| {}).await;
    // Commits that are smaller and larger than a read, with entries that are smaller and larger than one.
    let sizes = [&[10 << 10; 40][..], &[300 << 10; 12], &[1_500 << 10], &[1, 1_500 << 10, 1, 1], &[1; 3]];
    for texts in sizes {
        let log = Log::pack(texts.iter().map(|size| artifact(&"x".repeat(*size))));
        advance(&*store, Advance { log, ..step(no, Step::Report { fence: 1 }) }).await.unwrap();
    }
    let texts: Vec<_> = [5, 6].into_iter().chain(sizes.concat()).collect();
    let (mut seen, mut reads) = (0, 0);
    loop {
        let slice = store.entries(&scope(), no, seen, usize::MAX).await.unwrap();
        let bytes: usize = slice.iter().map(|(_, entry)| entry.size()).sum();
        assert!(bytes <= MAX_SLICE_BYTES || slice.len() == 1, "{bytes} bytes in {} entries", slice.len());
        let Some((last, _)) = slice.last() else { break };
        assert!(slice.iter().map(|(seq, _)| *seq).eq(seen + 1..=*last));
        for (seq, entry) in &slice {
            let size = texts[usize::try_from(*seq).unwrap() - 1];
            assert!((size..size + 600).contains(&entry.size()), "{seq}: {} bytes", entry.size());
        }
        (seen, reads) = (*last, reads + 1);
    }
    assert_eq!((seen, reads), (texts.len() as Seq, 9));
}

async fn last_input_is_the_newest_user_message_or_question(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |_| {}).await;
    let last = async || {
        let found = store.last_input(&scope(), no).await.unwrap().unwrap();
        (found.0, text_of(&found.1))
    };
    assert_eq!(last().await, (1, "first".into()));
    for size in [1, 100 << 10] {
        let log = Log::pack([artifact(&"x".repeat(size)), status(TaskState::Working, "busy")]);
        advance(&*store, Advance { log, ..step(no, Step::Report { fence: 1 }) }).await.unwrap();
        assert_eq!(last().await, (1, "first".into()));
    }
    let asks = with_status(no, Step::Pause { fence: 1 }, TaskState::InputRequired, "which?");
    advance(&*store, asks).await.unwrap();
    assert_eq!(last().await, (7, "which?".into()));
    // The message is in a large segment, before an artifact.
    let log = Log::pack([
        user_message(TaskState::Working, "that one"),
        artifact(&"x".repeat(100 << 10)),
        artifact("y"),
    ]);
    let status = Some((TaskState::Working, at(0)));
    advance(&*store, Advance { log, status, ..step(no, Step::Resume(interrupted(1))) }).await.unwrap();
    assert_eq!(last().await, (8, "that one".into()));
    assert!(store.last_input(&foreign_scope(), no).await.unwrap().is_none());
}
