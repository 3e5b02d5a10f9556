//! Every step, tried in every situation a task can be in: it is allowed where the step table allows it, and has the
//! effects that the table lists.

use bytes::Bytes;
use engine::{
    Clock, Store,
    ids::TaskNo,
    log::Log,
    store::{Accept, Advance, Conflict, NotCommitted, Step, Visibility, WorkState},
    task::{PublicIds, fold},
};
use protocol::{TaskState, Timestamp};

use super::{
    reference::Row,
    samples::{
        accept, advance, artifact, at, finished, interrupted, log, number, numbers, status, step, task,
        with_status,
    },
    test_database::TestDatabase,
};

on_every_database![
    steps_are_allowed_and_act_as_the_step_table_lists,
    holder_steps_without_the_lease_are_rejected,
];

async fn steps_are_allowed_and_act_as_the_step_table_lists(database: &dyn TestDatabase) {
    let store = database.open();
    let mut tried = Vec::new();
    for situation in SITUATIONS {
        for transition in TRANSITIONS {
            let fenced = (transition.step)(0).effects().fence.is_some();
            for off in if fenced { &[0, -1, 1][..] } else { &[0] } {
                let (no, before) = set_up(&*store, situation).await;
                let change = transition.change(no, before.fence + off);
                let label = format!("{:?} of {}", change.step, situation.name);
                let expected = before.after(&change);
                let result = advance(&*store, change).await;
                let committed = expected.as_ref().map(Row::committed);
                assert_eq!(result, committed.map_err(|met| NotCommitted::Conflict(*met)), "{label}");
                let after = expected.unwrap_or(before);
                compare(&*store, no, &after, &label).await;
                tried.push((no, after));
            }
        }
    }
    check_due(&*store, &tried).await;

    // Only a crash distinguishes held work from idle work.
    let crashed_at = at(50);
    let store = database.reopen(store, &Clock::manual(crashed_at));
    for (no, row) in &mut tried {
        *row = row.after_crash(crashed_at);
        compare(&*store, *no, row, "after a crash").await;
    }
    check_due(&*store, &tried).await;
}

async fn holder_steps_without_the_lease_are_rejected(database: &dyn TestDatabase) {
    let store = database.open();
    for situation in SITUATIONS {
        for transition in TRANSITIONS {
            let (no, before) = set_up(&*store, situation).await;
            let change = transition.change(no, before.fence);
            if !transition.requires_lease() || before.work == WorkState::Held {
                continue;
            }
            let label = format!("{:?} of {}", change.step, situation.name);
            let result = advance(&*store, change).await;
            assert!(matches!(result, Err(NotCommitted::Conflict(_))), "{label}: {result:?}");
            compare(&*store, no, &before, &label).await;
        }
    }
}

/// A step and the state it records.
#[derive(Clone, Copy)]
struct Transition {
    step: fn(fence: i64) -> Step,
    state: Option<TaskState>,
}

const fn without_status(step: fn(i64) -> Step) -> Transition {
    Transition { step, state: None }
}

const fn to(state: TaskState, step: fn(i64) -> Step) -> Transition {
    Transition { step, state: Some(state) }
}

const CLAIM: Transition = without_status(|_| Step::Claim { probation: false });
const REPORT: Transition = to(TaskState::Working, |fence| Step::Report { fence });
const REPORT_ARTIFACT: Transition = without_status(|fence| Step::Report { fence });
const COMPLETE: Transition = to(TaskState::Completed, |fence| Step::Finish { fence });
const FAIL: Transition = to(TaskState::Failed, |fence| Step::Finish { fence });
const REJECT: Transition = to(TaskState::Rejected, |fence| Step::Finish { fence });
const ASK_INPUT: Transition = to(TaskState::InputRequired, |fence| Step::Pause { fence });
const ASK_AUTH: Transition = to(TaskState::AuthRequired, |fence| Step::Pause { fence });
const RETRY: Transition = to(TaskState::Working, |fence| Step::Retry { fence, at: at(100) });
const AGAIN: Transition = without_status(|fence| Step::Requeue { fence, at: at(90) });
const RELEASE: Transition = without_status(|fence| Step::Release { fence, at: at(110) });
const RESUME: Transition = to(TaskState::Working, |fence| Step::Resume(interrupted(fence)));
const QUEUE: Transition =
    to(TaskState::Working, |fence| Step::Queue { waiting: interrupted(fence), at: at(95) });
const SETTLE: Transition = to(TaskState::Completed, |fence| Step::Settle(interrupted(fence)));
const SETTLE_ASKING: Transition = to(TaskState::InputRequired, |fence| Step::Settle(interrupted(fence)));
const REOPEN: Transition = to(TaskState::Working, |fence| Step::Resume(finished(fence)));
const REOPEN_LATER: Transition =
    to(TaskState::Working, |fence| Step::Queue { waiting: finished(fence), at: at(97) });
const REOPEN_AND_SETTLE: Transition = to(TaskState::Completed, |fence| Step::Settle(finished(fence)));
const LISTEN: Transition = to(TaskState::Working, |_| Step::QueueMessage);
const CANCEL: Transition = to(TaskState::Canceled, |_| Step::Cancel);

const EXPIRE: Transition = to(TaskState::Failed, |fence| Step::Expire { fence });

const TRANSITIONS: [Transition; 21] = [
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

impl Transition {
    fn requires_lease(self) -> bool {
        (self.step)(0).effects().held
    }

    /// The step as the engine would commit it. It always saves a checkpoint, to see what a rejected step leaves.
    fn change(self, no: TaskNo, fence: i64) -> Advance {
        let transition = (self.step)(fence);
        let saved = Some(Bytes::from(format!("{transition:?}")));
        match (self.state, transition) {
            (Some(state), _) => {
                let status = Some((state, at(7)));
                Advance { status, saved, ..with_status(no, transition, state, "recorded") }
            }
            (None, Step::Claim { .. } | Step::Requeue { .. }) => {
                Advance { visibility: Some(Visibility::Visible), saved, ..step(no, transition) }
            }
            (None, Step::Report { .. }) => {
                Advance { log: Log::pack([artifact("one"), artifact("two")]), saved, ..step(no, transition) }
            }
            (None, _) => Advance { saved, ..step(no, transition) },
        }
    }
}

/// How a task came into its state.
struct Situation {
    name: &'static str,
    accepted: (TaskState, fn() -> WorkState),
    then: &'static [Transition],
}

const fn situation(
    name: &'static str,
    accepted: (TaskState, fn() -> WorkState),
    then: &'static [Transition],
) -> Situation {
    Situation { name, accepted, then }
}

const QUEUED: (TaskState, fn() -> WorkState) = (TaskState::Submitted, || WorkState::Due(at(80)));
const SUBMITTED: (TaskState, fn() -> WorkState) = (TaskState::Submitted, || WorkState::Held);
const WORKING: (TaskState, fn() -> WorkState) = (TaskState::Working, || WorkState::Held);
const ANSWERED: (TaskState, fn() -> WorkState) = (TaskState::Completed, || WorkState::Idle);

const SITUATIONS: &[Situation] = &[
    situation("queued work", QUEUED, &[]),
    situation("queued work that received a message", QUEUED, &[LISTEN]),
    situation("queued work that was claimed", QUEUED, &[CLAIM]),
    situation("submitted work", SUBMITTED, &[]),
    situation("work", WORKING, &[REPORT]),
    situation("work that received a message", WORKING, &[LISTEN]),
    situation("work with one message less than the limit", WORKING, &[LISTEN; 15]),
    situation("work with as many messages as the limit", WORKING, &[LISTEN; 16]),
    situation("work that waits for its second attempt", WORKING, &[RETRY]),
    situation("work in its second attempt", WORKING, &[RETRY, CLAIM]),
    situation("work that was released", WORKING, &[RELEASE]),
    situation("work that was released and claimed", WORKING, &[RELEASE, CLAIM]),
    situation("work that is due for a message", WORKING, &[LISTEN, AGAIN]),
    situation("a task that waits for input", WORKING, &[ASK_INPUT]),
    situation("a task that waits for authentication", WORKING, &[ASK_AUTH]),
    situation("a task that asked in its second attempt", WORKING, &[RETRY, CLAIM, ASK_INPUT]),
    situation("an answered task", WORKING, &[ASK_INPUT, RESUME]),
    situation("an answered task that received a message", WORKING, &[ASK_AUTH, RESUME, LISTEN]),
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

/// A new task in a situation, and its expected row.
async fn set_up(store: &dyn Store, situation: &Situation) -> (TaskNo, Row) {
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
    for transition in situation.then {
        let change = transition.change(no, row.fence);
        row = row.after(&change).unwrap();
        assert_eq!(advance(store, change).await, Ok(row.committed()), "{}", situation.name);
    }
    (no, row)
}

/// Compares a stored task with the reference; [`check_due`] covers who holds the work.
async fn compare(store: &dyn Store, no: TaskNo, expected: &Row, label: &str) {
    let work = store.work(no).await.unwrap().unwrap();
    let row = &work.row;
    // A step that no state allows returns the conflict.
    let impossible = step(no, Step::Report { fence: -7 });
    let Err(NotCommitted::Conflict(met)) = advance(store, impossible).await else { panic!("{label}") };
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
    assert_eq!(&found, expected, "{label}");
    let meets = Conflict { state: Some(row.state), fence: row.fence, unanswered: row.unanswered };
    assert_eq!(met, meets, "{label}");
    assert_eq!(log(store, no).await.len() as u64, row.last_seq, "{label}");
    assert_eq!(work.log.len() as u64, row.last_seq, "{label}");
    let mut folded = fold::begin(&PublicIds::of(&store.ids(), row));
    for (_, entry) in &work.log {
        fold::apply(&mut folded, entry).unwrap();
    }
    assert_eq!(folded.status.state, row.state, "{label}");
}

/// At every relevant time, exactly the tasks of the reference are due, longest due first.
async fn check_due(store: &dyn Store, rows: &[(TaskNo, Row)]) {
    let mut all: Vec<(Timestamp, TaskNo)> =
        rows.iter().filter_map(|(no, row)| row.due_at().map(|at| (at, *no))).collect();
    all.sort_unstable();
    let mut times: Vec<_> = all.iter().map(|(at, _)| *at).collect();
    times.dedup();
    assert!(times.len() > 3, "{times:?}");
    for (index, now) in times.iter().enumerate() {
        let due = store.due(*now, usize::MAX).await.unwrap();
        let expected: Vec<_> = all.iter().filter(|(at, _)| at <= now).map(|(_, no)| *no).collect();
        assert_eq!((numbers(&due.tasks), due.next), (expected, times.get(index + 1).copied()));
    }
}
