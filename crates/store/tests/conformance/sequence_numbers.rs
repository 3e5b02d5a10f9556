//! Sequence numbers are assigned at commit: without gaps, whichever changes race.

use std::{sync::Arc, thread};

use engine::{
    Store,
    ids::TaskNo,
    log::{Entry, Kind, Log},
    store::{Advance, Committed, Conflict, MAX_UNANSWERED, NotCommitted, Receipt, Step, TaskRow},
};
use protocol::TaskState;

use super::{
    samples::{
        accepted, at, found, log, log_texts, queue_advance, report, step, texts, user_message, with_status,
    },
    test_database::TestDatabase,
};

on_every_database![
    racing_commits_leave_one_terminal_status_and_no_gap,
    change_without_entries_takes_no_sequence_number,
];

async fn racing_commits_leave_one_terminal_status_and_no_gap(database: &dyn TestDatabase) {
    let store = database.open();
    for _ in 0..20 {
        let no = accepted(&*store, |_| {}).await;
        let mut results = Vec::new();
        for attempt in race(&*store, no) {
            let result = attempt.receipt.await;
            results.push((attempt.step, attempt.texts, result));
        }
        check(&found(&*store, no).await.row, &log(&*store, no).await, &results);
    }
}

async fn change_without_entries_takes_no_sequence_number(database: &dyn TestDatabase) {
    let store = database.open();
    let no = accepted(&*store, |_| {}).await;
    let committed = queue_advance(&*store, report(no, &["third"])).await.unwrap();
    assert_eq!((committed.last_seq, committed.fence, committed.attempt), (3, 1, 1));
    let retry = step(no, Step::Retry { fence: 1, at: at(0) });
    assert_eq!(queue_advance(&*store, retry).await.unwrap().last_seq, 3);
    let claimed = queue_advance(&*store, step(no, Step::Claim { probation: false })).await.unwrap();
    assert_eq!((claimed.last_seq, claimed.fence, claimed.attempt), (3, 2, 2));
    let finish = with_status(no, Step::Finish { fence: 2 }, TaskState::Completed, "fourth");
    assert_eq!(queue_advance(&*store, finish).await.unwrap().last_seq, 4);
    assert_eq!(log_texts(&*store, no).await, ["first", "second", "third", "fourth"]);
}

/// A change that was attempted in the race.
struct Attempt {
    step: Step,
    texts: Vec<String>,
    receipt: Receipt,
}

type RaceResult = (Step, Vec<String>, Result<Committed, NotCommitted>);

/// The holder reports and finishes on two threads, as if there were two; clients send messages and cancel.
fn race(store: &dyn Store, no: TaskNo) -> Vec<Attempt> {
    let attempt = |advance: Advance| {
        let (step, texts) = (advance.step, texts(advance.log.entries()));
        Attempt { step, texts, receipt: queue_advance(store, advance) }
    };
    let holder = |name: &str| {
        let reports = (0..12).map(|at| {
            let all: Vec<_> = (0..=at % 3).map(|part| format!("{name} {at}.{part}")).collect();
            report(no, &all.iter().map(String::as_str).collect::<Vec<_>>())
        });
        let finish = with_status(no, Step::Finish { fence: 1 }, TaskState::Completed, name);
        reports.chain([finish]).map(attempt).collect::<Vec<_>>()
    };
    let client = |name: &str| {
        let listen = |at| Advance {
            log: Log::pack([user_message(TaskState::Working, &format!("{name} {at}"))]),
            ..step(no, Step::QueueMessage)
        };
        let cancel = with_status(no, Step::Cancel, TaskState::Canceled, name);
        (0..12).map(listen).chain([cancel]).map(attempt).collect::<Vec<_>>()
    };
    thread::scope(|threads| {
        let racers = [
            threads.spawn(|| holder("one")),
            threads.spawn(|| client("two")),
            threads.spawn(|| holder("three")),
            threads.spawn(|| client("four")),
        ];
        racers.into_iter().flat_map(|racer| racer.join().unwrap()).collect()
    })
}

fn check(row: &TaskRow, entries: &[Arc<Entry>], results: &[RaceResult]) {
    let log = texts(entries);
    let endings = entries.iter().filter(|entry| is_terminal_status(entry.kind())).count();
    assert_eq!((endings, is_terminal_status(entries[log.len() - 1].kind())), (1, true), "{log:?}");
    assert_eq!(row.last_seq, log.len() as u64);

    let mut claimed = vec![false; log.len()];
    claimed[..2].fill(true);
    for (step, texts, result) in results {
        match result {
            Ok(committed) => {
                let last = usize::try_from(committed.last_seq).unwrap();
                let range = last - texts.len()..last;
                assert_eq!(log[range.clone()], texts[..], "{step:?} got wrong sequence numbers");
                assert!(
                    claimed[range.clone()].iter().all(|claimed| !claimed),
                    "{step:?} got a sequence number that was already used"
                );
                claimed[range].fill(true);
            }
            Err(NotCommitted::Conflict(met)) => check_conflict(*step, *met, row.state),
            Err(error) => panic!("{step:?}: {error:?}"),
        }
    }
    assert!(claimed.iter().all(|claimed| *claimed), "an entry in the log belongs to no change: {log:?}");
    let won = |wanted: fn(&Step) -> bool| {
        results.iter().filter(|(step, _, result)| wanted(step) && result.is_ok()).count()
    };
    assert_eq!(won(|step| matches!(step, Step::Finish { .. } | Step::Cancel)), 1);
    assert!(won(|step| *step == Step::QueueMessage) <= MAX_UNANSWERED.unsigned_abs() as usize);
}

/// A rejected change gets the state it conflicted with: the terminal state, or a task with too many unanswered
/// messages.
fn check_conflict(step: Step, met: Conflict, ended: TaskState) {
    let full = met.state == Some(TaskState::Working) && met.unanswered == MAX_UNANSWERED && met.fence == 1;
    if step == Step::QueueMessage && full {
        return;
    }
    let fence = if ended == TaskState::Canceled { 2 } else { 1 };
    assert_eq!((met.state, met.fence), (Some(ended), fence), "{step:?}");
}

fn is_terminal_status(kind: Kind) -> bool {
    matches!(kind, Kind::Status(state) if state.is_terminal())
}
