//! Numbers are given where a change is committed: without gaps, whoever races.

use std::{sync::Arc, thread};

use engine::{
    Store,
    ids::TaskNo,
    log::{Entry, Kind, Log},
    store::{Advance, Committed, Conflict, MAX_UNANSWERED, NotCommitted, Receipt, Step, TaskRow},
};
use protocol::TaskState;

use super::{
    bench::Bench,
    samples::{accepted, asked, at, found, hand_over, log, report, says, step, told, words},
};

on_every_database![
    racing_committers_leave_one_ending_and_no_gap,
    a_change_that_records_nothing_takes_no_number,
];

async fn racing_committers_leave_one_ending_and_no_gap(bench: &dyn Bench) {
    let store = bench.open();
    for _ in 0..20 {
        let no = accepted(&*store, |_| {}).await;
        let mut raced = Vec::new();
        for try_ in race(&*store, no) {
            let result = try_.receipt.await;
            raced.push((try_.step, try_.words, result));
        }
        check(&found(&*store, no).await.row, &log(&*store, no).await, &raced);
    }
}

async fn a_change_that_records_nothing_takes_no_number(bench: &dyn Bench) {
    let store = bench.open();
    let no = accepted(&*store, |_| {}).await;
    let committed = hand_over(&*store, report(no, &["third"])).await.unwrap();
    assert_eq!((committed.last_seq, committed.fence, committed.attempt), (3, 1, 1));
    let retry = step(no, Step::Retry { fence: 1, at: at(0) });
    assert_eq!(hand_over(&*store, retry).await.unwrap().last_seq, 3);
    let claimed = hand_over(&*store, step(no, Step::Claim)).await.unwrap();
    assert_eq!((claimed.last_seq, claimed.fence, claimed.attempt), (3, 2, 2));
    let finish = says(no, Step::Finish { fence: 2 }, TaskState::Completed, "fourth");
    assert_eq!(hand_over(&*store, finish).await.unwrap().last_seq, 4);
    assert_eq!(told(&*store, no).await, ["first", "second", "third", "fourth"]);
}

/// A change somebody tried in the race.
struct Try {
    step: Step,
    words: Vec<String>,
    receipt: Receipt,
}

type Raced = (Step, Vec<String>, Result<Committed, NotCommitted>);

/// The holder reports and finishes, on two threads as if it were two; clients say more and cancel.
fn race(store: &dyn Store, no: TaskNo) -> Vec<Try> {
    let attempt = |advance: Advance| {
        let (step, words) = (advance.step, words(advance.log.entries()));
        Try { step, words, receipt: hand_over(store, advance) }
    };
    let holder = |name: &str| {
        let reports = (0..12).map(|at| {
            let all: Vec<_> = (0..=at % 3).map(|part| format!("{name} {at}.{part}")).collect();
            report(no, &all.iter().map(String::as_str).collect::<Vec<_>>())
        });
        let finish = says(no, Step::Finish { fence: 1 }, TaskState::Completed, name);
        reports.chain([finish]).map(attempt).collect::<Vec<_>>()
    };
    let client = |name: &str| {
        let listen = |at| Advance {
            log: Log::pack([asked(TaskState::Working, &format!("{name} {at}"))]),
            ..step(no, Step::Listen)
        };
        let cancel = says(no, Step::Cancel, TaskState::Canceled, name);
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

fn check(row: &TaskRow, entries: &[Arc<Entry>], raced: &[Raced]) {
    let log = words(entries);
    let endings = entries.iter().filter(|entry| ends(entry.kind())).count();
    assert_eq!((endings, ends(entries[log.len() - 1].kind())), (1, true), "{log:?}");
    assert_eq!(row.last_seq, log.len() as u64);

    let mut told = vec![false; log.len()];
    told[..2].fill(true);
    for (step, words, result) in raced {
        match result {
            Ok(committed) => {
                let last = usize::try_from(committed.last_seq).unwrap();
                let place = last - words.len()..last;
                assert_eq!(log[place.clone()], words[..], "{step:?} was told other numbers than it got");
                assert!(told[place.clone()].iter().all(|told| !told), "{step:?} was told a number twice");
                told[place].fill(true);
            }
            Err(NotCommitted::Conflict(met)) => check_conflict(*step, *met, row.state),
            Err(error) => panic!("{step:?}: {error:?}"),
        }
    }
    assert!(told.iter().all(|told| *told), "an entry in the log belongs to no change: {log:?}");
    let won = |wanted: fn(&Step) -> bool| {
        raced.iter().filter(|(step, _, result)| wanted(step) && result.is_ok()).count()
    };
    assert_eq!(won(|step| matches!(step, Step::Finish { .. } | Step::Cancel)), 1);
    assert!(won(|step| *step == Step::Listen) <= MAX_UNANSWERED.unsigned_abs() as usize);
}

/// A loser is told what it met: the ending, or a task that has enough to answer.
fn check_conflict(step: Step, met: Conflict, ended: TaskState) {
    let full = met.state == Some(TaskState::Working) && met.unanswered == MAX_UNANSWERED && met.fence == 1;
    if step == Step::Listen && full {
        return;
    }
    let fence = if ended == TaskState::Canceled { 2 } else { 1 };
    assert_eq!((met.state, met.fence), (Some(ended), fence), "{step:?}");
}

fn ends(kind: Kind) -> bool {
    matches!(kind, Kind::Status(state) if state.is_terminal())
}
