//! Every step, tried in every situation a task can be in: it is allowed where the step table allows it, and has the
//! effects that the table lists. Then the same at random.

use std::sync::Arc;

use engine::{
    Clock, Store,
    ids::TaskNo,
    store::{Conflict, NotCommitted, Step, WorkState},
    task::{PublicIds, fold},
};
use protocol::{TaskState, Timestamp};

use super::{
    reference::{Probation, Row},
    samples::{accept, advance, at, log, number, scope, step},
    test_database::TestDatabase,
    transitions::{MAX_LIVES, SITUATIONS, Situation, TRANSITIONS, Transition},
};

on_every_database![
    steps_are_allowed_and_act_as_the_step_table_lists,
    holder_steps_without_the_lease_are_rejected,
    random_steps_and_crashes_act_as_the_step_table_lists,
];

/// When processes crash.
const CRASHED_AT: i64 = 50;
/// The longest delay of a retry after a crash.
const MAX_DELAY: i64 = 100_000;

async fn steps_are_allowed_and_act_as_the_step_table_lists(database: &dyn TestDatabase) {
    let mut cases = Vec::new();
    for situation in SITUATIONS {
        for transition in TRANSITIONS {
            cases.extend(transition.fence_offsets().iter().map(|off| (situation, transition, *off)));
        }
    }
    let (store, mut tasks) = set_up(database, cases.iter().map(|(situation, ..)| *situation)).await;
    for ((situation, transition, off), (no, row)) in cases.into_iter().zip(&mut tasks) {
        try_step(&*store, *no, row, transition, off, situation.name).await;
    }
    check_due(&*store, &tasks).await;

    // Only a crash distinguishes held work from idle work.
    let store = crash(database, store, &mut tasks).await;
    for (no, row) in &tasks {
        compare(&*store, *no, row, "after a crash").await;
    }
    check_due(&*store, &tasks).await;
}

/// Tries a step and compares what is stored with the reference. Returns whether the step was allowed.
async fn try_step(
    store: &dyn Store,
    no: TaskNo,
    row: &mut Row,
    transition: Transition,
    off: i64,
    of: &str,
) -> bool {
    let change = transition.change(no, row.fence + off);
    let label = format!("{:?} of {of}", change.step);
    let expected = row.after(&change);
    let result = advance(store, change).await;
    let committed = expected.as_ref().map(Row::committed);
    assert_eq!(result, committed.map_err(|met| NotCommitted::Conflict(*met)), "{label}");
    if let Ok(after) = expected {
        *row = after;
    }
    compare(store, no, row, &label).await;
    result.is_ok()
}

async fn holder_steps_without_the_lease_are_rejected(database: &dyn TestDatabase) {
    let transitions = || TRANSITIONS.into_iter().filter(|transition| transition.requires_lease());
    let cases = SITUATIONS.iter().flat_map(|situation| transitions().map(move |step| (situation, step)));
    let cases: Vec<_> = cases.collect();
    let (store, tasks) = set_up(database, cases.iter().map(|(situation, _)| *situation)).await;
    for ((situation, transition), (no, before)) in cases.into_iter().zip(tasks) {
        if before.work == WorkState::Held {
            continue;
        }
        let change = transition.change(no, before.fence);
        let label = format!("{:?} of {}", change.step, situation.name);
        let result = advance(&*store, change).await;
        assert!(matches!(result, Err(NotCommitted::Conflict(_))), "{label}: {result:?}");
        compare(&*store, no, &before, &label).await;
    }
}

/// Tasks in these situations, each with its expected row. All lives end at the same time.
async fn set_up<'a>(
    database: &dyn TestDatabase,
    situations: impl Iterator<Item = &'a Situation>,
) -> (Arc<dyn Store>, Vec<(TaskNo, Row)>) {
    let mut store = database.open();
    let (mut situations, mut rows): (Vec<_>, Vec<_>) = situations.map(|one| (one, None)).unzip();
    for life in (0..MAX_LIVES).rev() {
        for (situation, task) in situations.iter_mut().zip(&mut rows) {
            let Some(done) = situation.lives.len().checked_sub(life + 1) else { continue };
            if task.is_none() {
                let no = number(&*store).await;
                let new = situation.accept(no);
                let row = Row::accepted(&new);
                assert_eq!(accept(&*store, new).await, Ok(row.committed()), "{}", situation.name);
                *task = Some((no, row));
            }
            let (no, row) = task.as_mut().unwrap();
            for transition in situation.lives[done] {
                let change = transition.change(*no, row.fence);
                *row = row.after(&change).unwrap();
                assert_eq!(advance(&*store, change).await, Ok(row.committed()), "{}", situation.name);
            }
        }
        if life > 0 {
            store = crash(database, store, rows.iter_mut().flatten()).await;
        }
    }
    (store, rows.into_iter().flatten().collect())
}

/// The process crashes and the next one opens the store.
async fn crash<'a>(
    database: &dyn TestDatabase,
    store: Arc<dyn Store>,
    tasks: impl IntoIterator<Item = &'a mut (TaskNo, Row)>,
) -> Arc<dyn Store> {
    let now = at(CRASHED_AT);
    let store = database.reopen(store, &Clock::manual(now));
    let due = store.due(at(CRASHED_AT + MAX_DELAY), usize::MAX).await.unwrap();
    for (no, row) in tasks {
        let was = row.work;
        *row = row.after_crash(now);
        if was == WorkState::Held && row.deaths > 1 {
            // The delay after the second crash is random.
            let found = due.tasks.iter().find(|task| task.no == *no).unwrap();
            assert!((CRASHED_AT..=CRASHED_AT + MAX_DELAY).contains(&found.at.as_millis()), "{found:?}");
            row.work = WorkState::Due(found.at);
        }
    }
    store
}

/// Each transition of a task is chosen at random, mostly among those that are allowed.
async fn random_steps_and_crashes_act_as_the_step_table_lists(database: &dyn TestDatabase) {
    const TASKS: usize = 24;
    const ROUNDS: usize = 60;
    let mut random = Random(0x9e37_79b9);
    let (mut store, mut tasks) = set_up(database, SITUATIONS.iter().take(TASKS)).await;
    let (mut poisoned, mut reset, mut reopened) = (0, 0, 0);
    for _ in 0..ROUNDS {
        for (no, row) in &mut tasks {
            let before = row.clone();
            let off = i64::from(random.below(8) == 0);
            let tried = (0..TRANSITIONS.len()).map(|_| TRANSITIONS[random.below(TRANSITIONS.len())]);
            let tried: Vec<_> = tried.collect();
            let allowed = |one: &&Transition| row.after(&one.change(*no, row.fence + off)).is_ok();
            let transition = *tried.iter().find(allowed).unwrap_or(&tried[0]);
            try_step(&*store, *no, row, transition, off, "a random task").await;
            reset += usize::from(before.deaths > 0 && row.deaths == 0 && row.crashes > 0);
            reopened += usize::from(before.turn < row.turn);
        }
        // A task that cannot continue is replaced.
        for task in &mut tasks {
            if matches!(task.1.state, TaskState::Canceled | TaskState::Rejected) {
                let no = number(&*store).await;
                let new = SITUATIONS[random.below(SITUATIONS.len())].accept(no);
                *task = (no, Row::accepted(&new));
                accept(&*store, new).await.unwrap();
            }
        }
        if random.below(3) == 0 {
            store = crash(database, store, &mut tasks).await;
            for (no, row) in &tasks {
                compare(&*store, *no, row, "a random task after a crash").await;
                poisoned += usize::from(row.probation == Probation::Died);
            }
        }
    }
    assert!(poisoned > 0 && reset > 0 && reopened > 0, "{poisoned}, {reset}, {reopened}");
}

/// Pseudo-random numbers, the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
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
        progress_size: row.progress_size,
        deadline: row.deadline,
        fence: row.fence,
        attempt: row.attempt,
        deaths: row.deaths,
        crashes: row.crashes,
        probation: match (row.died_on_probation, expected.probation) {
            (true, _) => Probation::Died,
            // Whether a run is on probation is visible only after a crash.
            (false, Probation::On) => Probation::On,
            (false, Probation::No | Probation::Died) => Probation::No,
        },
        unanswered: row.unanswered,
        visibility: row.visibility,
        work: expected.work,
        saved: work.saved,
        journal: work.journal.into_iter().map(|step| ((step.owner, step.id), step.output)).collect(),
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

/// At every relevant time, exactly the tasks of the reference are due and overdue, longest due first.
async fn check_due(store: &dyn Store, rows: &[(TaskNo, Row)]) {
    let mut due_tasks: Vec<(Timestamp, TaskNo, bool)> =
        rows.iter().filter_map(|(no, row)| row.due_at().map(|at| (at, *no, row.deaths >= 2))).collect();
    due_tasks.sort_unstable();
    let mut deadlines: Vec<(Timestamp, TaskNo, bool)> = rows
        .iter()
        .filter_map(|(no, row)| row.deadline_if_open().map(|at| (at, *no, row.work == WorkState::Held)))
        .collect();
    deadlines.sort_unstable();
    assert!(deadlines.iter().any(|(.., held)| !held), "{deadlines:?}");
    let mut times: Vec<_> = due_tasks.iter().chain(&deadlines).map(|(at, ..)| *at).collect();
    times.sort_unstable();
    times.dedup();
    assert!(times.len() > 3, "{times:?}");
    let after =
        |times: &[(Timestamp, TaskNo, bool)], now| times.iter().map(|(at, ..)| *at).find(|at| *at > now);
    for now in &times {
        let due = store.due(*now, usize::MAX).await.unwrap();
        let expected: Vec<_> = due_tasks.iter().filter(|(at, ..)| at <= now).copied().collect();
        let found: Vec<_> = due.tasks.iter().map(|task| (task.at, task.no, task.suspect)).collect();
        assert_eq!((found, due.next), (expected, after(&due_tasks, *now)));
        assert!(due.tasks.iter().all(|task| task.scope == scope()));
        let unheld = deadlines.iter().filter(|(at, _, held)| at <= now && !held);
        let expected: Vec<_> = unheld.map(|(at, no, _)| (*at, *no)).collect();
        let overdue = store.overdue(*now, usize::MAX).await.unwrap();
        assert_eq!(overdue.next, after(&deadlines, *now));
        let mut found: Vec<_> = overdue.tasks.iter().map(|row| (row.deadline.unwrap(), row.no)).collect();
        assert!(found.is_sorted_by_key(|(at, _)| *at), "{found:?}");
        found.sort_unstable();
        assert_eq!(found, expected);
    }
}
