//! Every step, tried on every situation a task can be in: it is allowed where its table says, and does what
//! that says.

use bytes::Bytes;
use engine::{
    Clock, Store,
    ids::TaskNo,
    log::Log,
    store::{Accept, Advance, Conflict, NotCommitted, Step, Visibility, Work},
    task::fold,
};
use protocol::{TaskState, Timestamp};

use super::{
    bench::Bench,
    reference::Row,
    samples::{accept, advance, artifact, asks, at, log, number, over, says, status, step, task},
};

on_every_database![
    steps_are_allowed_and_do_as_their_table_says,
    who_does_not_hold_the_work_takes_no_step_of_the_holder,
];

async fn steps_are_allowed_and_do_as_their_table_says(bench: &dyn Bench) {
    let store = bench.open();
    let mut tried = Vec::new();
    for situation in SITUATIONS {
        for arrow in ARROWS {
            let fenced = (arrow.step)(0).effects().fence.is_some();
            for off in if fenced { &[0, -1, 1][..] } else { &[0] } {
                let (no, before) = bring_about(&*store, situation).await;
                let change = arrow.change(no, before.fence + off);
                let told = format!("{:?} of {}", change.step, situation.name);
                let expected = before.after(&change);
                let result = advance(&*store, change).await;
                let committed = expected.as_ref().map(Row::committed);
                assert_eq!(result, committed.map_err(|met| NotCommitted::Conflict(*met)), "{told}");
                let after = expected.unwrap_or(before);
                compare(&*store, no, &after, &told).await;
                tried.push((no, after));
            }
        }
    }
    check_due(&*store, &tried).await;

    // Nothing but a death tells held work from idle.
    let died_at = at(50);
    let store = bench.reopen(store, &Clock::manual(died_at));
    for (no, row) in &mut tried {
        *row = row.after_death(died_at);
        compare(&*store, *no, row, "after a death").await;
    }
    check_due(&*store, &tried).await;
}

async fn who_does_not_hold_the_work_takes_no_step_of_the_holder(bench: &dyn Bench) {
    let store = bench.open();
    for situation in SITUATIONS {
        for arrow in ARROWS {
            let (no, before) = bring_about(&*store, situation).await;
            let change = arrow.change(no, before.fence);
            if !arrow.is_of_holder() || before.work == Work::Held {
                continue;
            }
            let told = format!("{:?} of {}", change.step, situation.name);
            let result = advance(&*store, change).await;
            assert!(matches!(result, Err(NotCommitted::Conflict(_))), "{told}: {result:?}");
            compare(&*store, no, &before, &told).await;
        }
    }
}

/// A step and the state it says.
#[derive(Clone, Copy)]
struct Arrow {
    step: fn(fence: i64) -> Step,
    says: Option<TaskState>,
}

const fn says_nothing(step: fn(i64) -> Step) -> Arrow {
    Arrow { step, says: None }
}

const fn to(says: TaskState, step: fn(i64) -> Step) -> Arrow {
    Arrow { step, says: Some(says) }
}

const CLAIM: Arrow = says_nothing(|_| Step::Claim);
const REPORT: Arrow = to(TaskState::Working, |fence| Step::Report { fence });
const REPORT_ARTIFACT: Arrow = says_nothing(|fence| Step::Report { fence });
const COMPLETE: Arrow = to(TaskState::Completed, |fence| Step::Finish { fence });
const FAIL: Arrow = to(TaskState::Failed, |fence| Step::Finish { fence });
const REJECT: Arrow = to(TaskState::Rejected, |fence| Step::Finish { fence });
const ASK_INPUT: Arrow = to(TaskState::InputRequired, |fence| Step::Pause { fence });
const ASK_AUTH: Arrow = to(TaskState::AuthRequired, |fence| Step::Pause { fence });
const RETRY: Arrow = to(TaskState::Working, |fence| Step::Retry { fence, at: at(100) });
const AGAIN: Arrow = says_nothing(|fence| Step::Again { fence, at: at(90) });
const RELEASE: Arrow = says_nothing(|fence| Step::Release { fence, at: at(110) });
const RESUME: Arrow = to(TaskState::Working, |fence| Step::Resume(asks(fence)));
const QUEUE: Arrow = to(TaskState::Working, |fence| Step::Queue { waiting: asks(fence), at: at(95) });
const SETTLE: Arrow = to(TaskState::Completed, |fence| Step::Settle(asks(fence)));
const SETTLE_ASKING: Arrow = to(TaskState::InputRequired, |fence| Step::Settle(asks(fence)));
const REOPEN: Arrow = to(TaskState::Working, |fence| Step::Resume(over(fence)));
const REOPEN_LATER: Arrow = to(TaskState::Working, |fence| Step::Queue { waiting: over(fence), at: at(97) });
const REOPEN_AND_SETTLE: Arrow = to(TaskState::Completed, |fence| Step::Settle(over(fence)));
const LISTEN: Arrow = to(TaskState::Working, |_| Step::Listen);
const CANCEL: Arrow = to(TaskState::Canceled, |_| Step::Cancel);

const EXPIRE: Arrow = to(TaskState::Failed, |fence| Step::Expire { fence });

const ARROWS: [Arrow; 21] = [
    CLAIM,
    REPORT,
    REPORT_ARTIFACT,
    COMPLETE,
    FAIL,
    REJECT,
    ASK_INPUT,
    ASK_AUTH,
    RETRY,
    AGAIN,
    RELEASE,
    RESUME,
    QUEUE,
    SETTLE,
    SETTLE_ASKING,
    REOPEN,
    REOPEN_LATER,
    REOPEN_AND_SETTLE,
    LISTEN,
    CANCEL,
    EXPIRE,
];

impl Arrow {
    fn is_of_holder(self) -> bool {
        (self.step)(0).effects().held
    }

    /// The step as the engine would hand it over; it always saves, to see what a refused one leaves behind.
    fn change(self, no: TaskNo, fence: i64) -> Advance {
        let arrow = (self.step)(fence);
        let saved = Some(Bytes::from(format!("{arrow:?}")));
        match (self.says, arrow) {
            (Some(state), _) => {
                let status = Some((state, at(7)));
                Advance { status, saved, ..says(no, arrow, state, "said") }
            }
            (None, Step::Claim | Step::Again { .. }) => {
                Advance { visibility: Some(Visibility::Visible), saved, ..step(no, arrow) }
            }
            (None, Step::Report { .. }) => {
                Advance { log: Log::pack([artifact("one"), artifact("two")]), saved, ..step(no, arrow) }
            }
            (None, _) => Advance { saved, ..step(no, arrow) },
        }
    }
}

/// How a task came to be where it is.
struct Situation {
    name: &'static str,
    accepted: (TaskState, fn() -> Work),
    then: &'static [Arrow],
}

const fn situation(
    name: &'static str,
    accepted: (TaskState, fn() -> Work),
    then: &'static [Arrow],
) -> Situation {
    Situation { name, accepted, then }
}

const QUEUED: (TaskState, fn() -> Work) = (TaskState::Submitted, || Work::Due(at(80)));
const SUBMITTED: (TaskState, fn() -> Work) = (TaskState::Submitted, || Work::Held);
const WORKING: (TaskState, fn() -> Work) = (TaskState::Working, || Work::Held);
const ANSWERED: (TaskState, fn() -> Work) = (TaskState::Completed, || Work::Idle);

const SITUATIONS: &[Situation] = &[
    situation("queued work", QUEUED, &[]),
    situation("queued work that was told more", QUEUED, &[LISTEN]),
    situation("queued work that was claimed", QUEUED, &[CLAIM]),
    situation("submitted work", SUBMITTED, &[]),
    situation("work", WORKING, &[REPORT]),
    situation("work that was told more", WORKING, &[LISTEN]),
    situation("work that was told almost too much", WORKING, &[LISTEN; 15]),
    situation("work that was told all it takes", WORKING, &[LISTEN; 16]),
    situation("work that waits for its second attempt", WORKING, &[RETRY]),
    situation("work in its second attempt", WORKING, &[RETRY, CLAIM]),
    situation("work that was let go", WORKING, &[RELEASE]),
    situation("work that was let go and taken up", WORKING, &[RELEASE, CLAIM]),
    situation("work that is due for what it was told", WORKING, &[LISTEN, AGAIN]),
    situation("a task that waits for input", WORKING, &[ASK_INPUT]),
    situation("a task that waits for authentication", WORKING, &[ASK_AUTH]),
    situation("a task that asked in its second attempt", WORKING, &[RETRY, CLAIM, ASK_INPUT]),
    situation("an answered task", WORKING, &[ASK_INPUT, RESUME]),
    situation("an answered task that was told more", WORKING, &[ASK_AUTH, RESUME, LISTEN]),
    situation("an answered task in the queue", WORKING, &[ASK_INPUT, QUEUE]),
    situation("an answered task that asked again", WORKING, &[ASK_INPUT, SETTLE_ASKING]),
    situation("an answered task that was done at once", WORKING, &[ASK_INPUT, SETTLE]),
    situation("a task that was done at once", ANSWERED, &[]),
    situation("a completed task", WORKING, &[COMPLETE]),
    situation("a completed task with a message left over", WORKING, &[LISTEN, COMPLETE]),
    situation("a failed task", WORKING, &[FAIL]),
    situation("a completed task that is open again", WORKING, &[COMPLETE, REOPEN]),
    situation("a failed task that is open again in the queue", WORKING, &[LISTEN, FAIL, REOPEN_LATER]),
    situation("a completed task that was done again", ANSWERED, &[REOPEN_AND_SETTLE]),
    situation("a task canceled in its second turn", ANSWERED, &[REOPEN, CANCEL]),
    situation("a rejected task", WORKING, &[REJECT]),
    situation("a task whose client never answered", WORKING, &[ASK_INPUT, EXPIRE]),
    situation("a canceled task", WORKING, &[CANCEL]),
    situation("a task canceled in the queue", QUEUED, &[CANCEL]),
    situation("a task canceled while it waited", WORKING, &[ASK_INPUT, CANCEL]),
];

/// A fresh task in a situation, and the row it should have.
async fn bring_about(store: &dyn Store, situation: &Situation) -> (TaskNo, Row) {
    let no = number(store).await;
    let (state, work) = situation.accepted;
    let new = Accept {
        log: Log::pack([status(state, "first")]),
        state,
        work: work(),
        visibility: Visibility::Undecided,
        ..task(no)
    };
    let mut row = Row::accepted(&new);
    assert_eq!(accept(store, new).await, Ok(row.committed()), "{}", situation.name);
    for arrow in situation.then {
        let change = arrow.change(no, row.fence);
        row = row.after(&change).unwrap();
        assert_eq!(advance(store, change).await, Ok(row.committed()), "{}", situation.name);
    }
    (no, row)
}

/// Compares what a store tells of a task with the reference; who holds the work is told by [`check_due`].
async fn compare(store: &dyn Store, no: TaskNo, expected: &Row, told: &str) {
    let work = store.work(no).await.unwrap().unwrap();
    let row = &work.snapshot.row;
    // A step that no row allows is told what it met.
    let nobody = step(no, Step::Report { fence: -7 });
    let Err(NotCommitted::Conflict(met)) = advance(store, nobody).await else { panic!("{told}") };
    let found = Row {
        state: row.state,
        status_at: row.status_at,
        turn: row.turn,
        last_seq: row.last_seq,
        size: row.size,
        fence: row.fence,
        attempt: row.attempt,
        deaths: row.deaths,
        unanswered: row.unanswered,
        visibility: row.visibility,
        work: expected.work,
        saved: work.saved,
    };
    assert_eq!(&found, expected, "{told}");
    let meets = Conflict { state: Some(row.state), fence: row.fence, unanswered: row.unanswered };
    assert_eq!(met, meets, "{told}");
    assert_eq!(log(store, no).await.len() as u64, row.last_seq, "{told}");
    let folded = fold::snapshot(&store.ids(), &work.snapshot).unwrap();
    assert_eq!(folded.status.state, row.state, "{told}");
}

/// At every time there is, exactly what the reference says is due, longest due first.
async fn check_due(store: &dyn Store, rows: &[(TaskNo, Row)]) {
    let mut all: Vec<(Timestamp, TaskNo)> =
        rows.iter().filter_map(|(no, row)| row.due_at().map(|at| (at, *no))).collect();
    all.sort_unstable();
    let mut times: Vec<_> = all.iter().map(|(at, _)| *at).collect();
    times.dedup();
    assert!(times.len() > 3, "{times:?}");
    for (place, now) in times.iter().enumerate() {
        let due = store.due(*now, usize::MAX).await.unwrap();
        let expected: Vec<_> = all.iter().filter(|(at, _)| at <= now).map(|(_, no)| *no).collect();
        assert_eq!((due.tasks, due.next), (expected, times.get(place + 1).copied()));
    }
}
