//! Expired tasks are found, purged, and later deleted.

use engine::{
    Scope, Store,
    ids::TaskNo,
    store::{
        Accept, Advance, Expired, Expiry, FinishedTask, KeyUsed, ListQuery, Lookup, MessageKey, NotCommitted,
        RetentionMark, Step, TenantAgent, View, Visibility, WaitingSince, WorkState,
    },
};
use protocol::TaskState;

use super::{
    samples::{
        accept, accepted, advance, at, ended, finished, foreign_scope, found, interrupted, log, lookup,
        number, save, scope, tag, task, with_status,
    },
    test_database::TestDatabase,
};

on_every_database![
    purged_task_is_not_reopened,
    finished_tasks_expire_from_the_oldest_on,
    finished_tasks_above_the_limit_expire,
    tasks_without_client_input_expire,
    input_timeouts_differ_between_skills_and_agents,
    task_that_has_ceased_to_wait_does_not_expire,
    purged_task_is_empty_but_keeps_its_keys,
    open_task_is_never_purged,
    purged_task_is_deleted_some_time_after_its_purge,
    client_chosen_id_of_a_purged_task_can_be_reused,
    reopened_task_is_not_purged,
    retention_time_starts_with_the_last_end,
    task_that_ended_again_since_it_was_seen_is_not_purged,
    retention_time_is_recorded_for_the_next_process,
];

fn expiry() -> Expiry {
    let (ended_before, waiting_since) = (at(0), waiting_since(0, &[]));
    let owner = TenantAgent::of(&scope());
    Expiry { owner, now: at(1_000), ended_before, max_tasks: None, waiting_since, max: 100 }
}

fn waiting_since(millis: i64, skills: &[(&str, i64)]) -> WaitingSince {
    let skills = skills.iter().map(|(skill, millis)| ((*skill).to_owned(), at(*millis))).collect();
    WaitingSince { default: at(millis), skills }
}

fn numbers(tasks: &[FinishedTask]) -> Vec<TaskNo> {
    tasks.iter().map(|ended| ended.no).collect()
}

async fn expired(store: &dyn Store, expiry: Expiry) -> Expired {
    store.expired(expiry).await.unwrap()
}

/// A task that has been in a state since a time.
async fn since(store: &dyn Store, state: TaskState, millis: i64) -> TaskNo {
    accepted(store, |task| {
        (task.state, task.status_at) = (state, at(millis));
        task.work = if state.is_settled() { WorkState::Idle } else { WorkState::Held };
    })
    .await
}

async fn finished_tasks_expire_from_the_oldest_on(database: &dyn TestDatabase) {
    let store = database.open();
    let young = since(&*store, TaskState::Completed, 30).await;
    let old = since(&*store, TaskState::Failed, 20).await;
    let oldest = since(&*store, TaskState::Canceled, 10).await;
    for open in [TaskState::Working, TaskState::InputRequired] {
        since(&*store, open, 1).await;
    }
    for foreign in [Scope::anonymous("default", "other"), foreign_scope()] {
        let elsewhere = Expiry { owner: TenantAgent::of(&foreign), ended_before: at(99), ..expiry() };
        assert!(expired(&*store, elsewhere).await.finished.is_empty());
    }
    let cases = [(10, vec![]), (11, vec![oldest]), (21, vec![oldest, old]), (99, vec![oldest, old, young])];
    for (before, tasks) in cases {
        let found = expired(&*store, Expiry { ended_before: at(before), ..expiry() }).await;
        assert_eq!(numbers(&found.finished), tasks, "{before}");
    }
    let few = expired(&*store, Expiry { ended_before: at(99), max: 2, ..expiry() }).await;
    assert_eq!(numbers(&few.finished), [oldest, old]);
}

async fn finished_tasks_above_the_limit_expire(database: &dyn TestDatabase) {
    let store = database.open();
    let mut tasks = Vec::new();
    for millis in [50, 10, 40, 20] {
        tasks.push(since(&*store, TaskState::Completed, millis).await);
        since(&*store, TaskState::Working, 1).await;
    }
    for (kept, surplus) in [(4, vec![]), (3, vec![tasks[1]]), (1, vec![tasks[1], tasks[3], tasks[2]])] {
        let found = expired(&*store, Expiry { max_tasks: Some(kept), ..expiry() }).await;
        assert_eq!(numbers(&found.finished), surplus, "{kept}");
    }
}

async fn tasks_without_client_input_expire(database: &dyn TestDatabase) {
    let store = database.open();
    let asking = since(&*store, TaskState::InputRequired, 10).await;
    let locked = since(&*store, TaskState::AuthRequired, 20).await;
    since(&*store, TaskState::Working, 1).await;
    for (before, tasks) in [(10, vec![]), (11, vec![asking]), (21, vec![asking, locked])] {
        let found = expired(&*store, Expiry { waiting_since: waiting_since(before, &[]), ..expiry() }).await;
        let mut waiting: Vec<_> = found.waiting.iter().map(|row| row.no).collect();
        waiting.sort_unstable();
        assert_eq!(waiting, tasks, "{before}");
    }
}

/// A task with this skill that has waited for its client since a time.
async fn waiting(store: &dyn Store, skill: Option<&str>, millis: i64) -> TaskNo {
    accepted(store, |task| {
        (task.state, task.status_at, task.work) = (TaskState::InputRequired, at(millis), WorkState::Idle);
        task.skill = skill.map(str::to_owned);
    })
    .await
}

async fn waited(store: &dyn Store, since: WaitingSince, max: usize) -> Vec<TaskNo> {
    let found = expired(store, Expiry { waiting_since: since, max, ..expiry() }).await;
    assert_eq!(found.more, found.waiting.len() == max);
    found.waiting.iter().map(|row| row.no).collect()
}

async fn input_timeouts_differ_between_skills_and_agents(database: &dyn TestDatabase) {
    let store = database.open();
    let (mut slow, mut quick, mut other, mut none) = (vec![], vec![], vec![], vec![]);
    for millis in [10, 20, 30] {
        none.push(waiting(&*store, None, millis).await);
        slow.push(waiting(&*store, Some("slow"), millis + 1).await);
        quick.push(waiting(&*store, Some("quick"), millis + 2).await);
        other.push(waiting(&*store, Some("other"), millis + 3).await);
        for elsewhere in [foreign_scope(), Scope::anonymous("default", "other")] {
            accepted(&*store, |task| {
                (task.state, task.status_at) = (TaskState::InputRequired, at(0));
                (task.scope, task.skill) = (elsewhere, Some("quick".into()));
                task.work = WorkState::Idle;
            })
            .await;
        }
    }
    let since =
        |default, slow, quick| waiting_since(default, &[("slow", slow), ("quick", quick), ("new", 99)]);
    let cases = [
        (since(10, 0, 0), vec![]),
        (since(25, 0, 0), vec![none[0], other[0], none[1], other[1]]),
        (since(15, 0, 99), vec![none[0], quick[0], other[0], quick[1], quick[2]]),
        (since(0, 22, 0), vec![slow[0], slow[1]]),
        (since(99, 0, 99), [0, 1, 2].into_iter().flat_map(|at| [none[at], quick[at], other[at]]).collect()),
    ];
    for (since, tasks) in cases {
        for max in [1, 2, 3, 100] {
            let first: Vec<_> = tasks.iter().take(max).copied().collect();
            assert_eq!(waited(&*store, since.clone(), max).await, first, "{since:?}, {max}");
        }
    }
    // The tasks of a skill with a long timeout do not hide those that have expired, however many there are.
    for _ in 0..300 {
        waiting(&*store, Some("slow"), 1).await;
    }
    assert_eq!(waited(&*store, since(0, 0, 33), 10).await, quick);
}

async fn task_that_has_ceased_to_wait_does_not_expire(database: &dyn TestDatabase) {
    let store = database.open();
    let mut tasks = Vec::new();
    for _ in 0..6 {
        tasks.push(waiting(&*store, Some("slow"), 10).await);
    }
    let status = |state, millis| Some((state, at(millis)));
    let steps = [
        (Step::Resume(interrupted(1)), TaskState::Working),
        (Step::Queue { waiting: interrupted(1), at: at(50) }, TaskState::Working),
        (Step::Settle(interrupted(1)), TaskState::Completed),
        (Step::Cancel, TaskState::Canceled),
        (Step::Expire { fence: 1 }, TaskState::Failed),
        // It asks again.
        (Step::Settle(interrupted(1)), TaskState::AuthRequired),
    ];
    assert_eq!(waited(&*store, waiting_since(99, &[]), 100).await, tasks);
    for (no, (step, state)) in tasks.iter().zip(steps) {
        let change = with_status(*no, step, state, "on");
        advance(&*store, Advance { status: status(state, 20), ..change }).await.unwrap();
    }
    assert_eq!(waited(&*store, waiting_since(20, &[]), 100).await, []);
    assert_eq!(waited(&*store, waiting_since(21, &[]), 100).await, tasks[5..]);
    // It waits again, in its second attempt.
    let pause = with_status(tasks[0], Step::Pause { fence: 2 }, TaskState::InputRequired, "?");
    advance(&*store, Advance { status: status(TaskState::InputRequired, 30), ..pause }).await.unwrap();
    assert_eq!(waited(&*store, waiting_since(99, &[("slow", 30)]), 100).await, tasks[5..]);
    assert_eq!(waited(&*store, waiting_since(0, &[("slow", 31)]), 100).await, [tasks[5], tasks[0]]);
}

async fn purged_task_is_empty_but_keeps_its_keys(database: &dyn TestDatabase) {
    let store = database.open();
    let key = MessageKey { key: [1; 16], hash: [1; 16] };
    let no = accepted(&*store, |task| task.key = Some(key)).await;
    let finish = with_status(no, Step::Finish { fence: 1 }, TaskState::Completed, "done");
    advance(&*store, save(finish, "saved")).await.unwrap();
    let neighbour = since(&*store, TaskState::Completed, 0).await;
    let seen = ended(&*store, no).await;
    assert_eq!(store.purge(vec![seen], at(0)).await.unwrap(), 1);
    assert_eq!(store.purge(vec![seen], at(0)).await.unwrap(), 0, "already purged");

    assert!(log(&*store, no).await.is_empty());
    assert!(store.find(&scope(), lookup(&*store, no, tag(no))).await.unwrap().is_none());
    let purged = store.work(no).await.unwrap().unwrap();
    assert_eq!((purged.row.visibility, purged.row.size), (Visibility::Purged, 0));
    assert!(purged.log.is_empty() && purged.row.doc == 0);
    assert_eq!(purged.saved, None);
    let query =
        ListQuery { context: None, state: None, since: None, after: None, size: 100, view: View::default() };
    let page = store.list(&scope(), query).await.unwrap();
    assert_eq!((page.tasks.len(), page.tasks[0].row.no, page.total), (1, neighbour, 1));
    assert_eq!(log(&*store, neighbour).await.len(), 2);

    let again = Accept { key: Some(key), ..task(number(&*store).await) };
    let met = KeyUsed { task: no, tag: tag(no), seq: 1, same: true };
    assert_eq!(accept(&*store, again).await, Err(NotCommitted::KeyUsed(met)));
}

async fn purged_task_is_not_reopened(database: &dyn TestDatabase) {
    let store = database.open();
    let no = since(&*store, TaskState::Completed, 0).await;
    let fence = found(&*store, no).await.row.fence;
    assert_eq!(store.purge(vec![ended(&*store, no).await], at(0)).await.unwrap(), 1);
    let again = with_status(no, Step::Settle(finished(fence)), TaskState::Completed, "again");
    assert!(matches!(advance(&*store, again).await, Err(NotCommitted::Conflict(_))));
    assert!(log(&*store, no).await.is_empty());
}

async fn open_task_is_never_purged(database: &dyn TestDatabase) {
    let store = database.open();
    let mut open = Vec::new();
    for state in [TaskState::Submitted, TaskState::Working, TaskState::InputRequired, TaskState::AuthRequired]
    {
        let no = since(&*store, state, 0).await;
        open.push(ended(&*store, no).await);
    }
    assert_eq!(store.purge(open.clone(), at(0)).await.unwrap(), 0);
    let unknown = FinishedTask { no: number(&*store).await, last_seq: 2 };
    assert_eq!(store.purge(vec![unknown], at(0)).await.unwrap(), 0);
    for no in numbers(&open) {
        assert_eq!(log(&*store, no).await.len(), 2, "{no:?}");
    }
}

async fn purged_task_is_deleted_some_time_after_its_purge(database: &dyn TestDatabase) {
    let store = database.open();
    let key = MessageKey { key: [1; 16], hash: [1; 16] };
    let no = accepted(&*store, |task| {
        (task.state, task.work, task.status_at) = (TaskState::Completed, WorkState::Idle, at(10));
        task.key = Some(key);
    })
    .await;
    let kept = since(&*store, TaskState::Completed, 5).await;
    store.purge(vec![ended(&*store, no).await], at(500)).await.unwrap();
    assert_eq!(
        store.drop_purged(at(500), 100).await.unwrap(),
        0,
        "the time counts from the purge, not from the end"
    );
    let again = Accept { key: Some(key), ..task(number(&*store).await) };
    assert!(matches!(accept(&*store, again).await, Err(NotCommitted::KeyUsed(_))));
    assert_eq!(store.drop_purged(at(501), 100).await.unwrap(), 1);
    assert!(store.find(&scope(), lookup(&*store, no, tag(no))).await.unwrap().is_none());
    assert!(store.work(no).await.unwrap().is_none());
    assert_eq!(found(&*store, kept).await.row.state, TaskState::Completed);
    // With the row the key is available again.
    let again = Accept { key: Some(key), ..task(number(&*store).await) };
    accept(&*store, again).await.unwrap();
}

/// A client reopens a finished task, which is in this state from then on.
async fn reopen(store: &dyn Store, no: TaskNo, state: TaskState, millis: i64) {
    let waiting = finished(found(store, no).await.row.fence);
    let arrow = if state.is_settled() { Step::Settle(waiting) } else { Step::Resume(waiting) };
    let status = Some((state, at(millis)));
    advance(store, Advance { status, ..with_status(no, arrow, state, "again") }).await.unwrap();
}

async fn client_chosen_id_of_a_purged_task_can_be_reused(database: &dyn TestDatabase) {
    let store = database.open();
    let named = || Lookup { ours: None, name: "t-1".into() };
    let finished = |task: &mut Accept| {
        (task.state, task.work) = (TaskState::Completed, WorkState::Idle);
        task.client_id = Some("t-1".into());
    };
    let mut before = accepted(&*store, finished).await;
    for _ in 0..3 {
        assert_eq!(store.purge(vec![ended(&*store, before).await], at(0)).await.unwrap(), 1);
        assert!(store.find(&scope(), named()).await.unwrap().is_none());
        let next = accepted(&*store, finished).await;
        assert_eq!(store.find(&scope(), named()).await.unwrap().unwrap().row.no, next);
        before = next;
    }
    // Deleting the tombstones does not affect the task that has the id now.
    assert_eq!(store.drop_purged(at(99), 100).await.unwrap(), 3);
    assert_eq!(store.find(&scope(), named()).await.unwrap().unwrap().row.no, before);
}

async fn reopened_task_is_not_purged(database: &dyn TestDatabase) {
    let store = database.open();
    let states = [TaskState::Working, TaskState::InputRequired, TaskState::AuthRequired, TaskState::Working];
    let (mut open, mut seen) = (Vec::new(), Vec::new());
    for state in states {
        let no = since(&*store, TaskState::Completed, 10).await;
        seen.push(ended(&*store, no).await);
        reopen(&*store, no, state, 20).await;
        open.push(no);
    }
    let queued = open[3];
    let release = Step::Release { fence: 2, at: at(20) };
    advance(&*store, with_status(queued, release, TaskState::Working, "later")).await.unwrap();
    let marker = since(&*store, TaskState::Completed, 5).await;
    let everything = Expiry { ended_before: at(i64::MAX), ..expiry() };
    assert_eq!(numbers(&expired(&*store, everything).await.finished), [marker]);
    let surplus = Expiry { max_tasks: Some(0), ..expiry() };
    assert_eq!(numbers(&expired(&*store, surplus).await.finished), [marker], "they count as open");
    // A purge based on what was seen before they were reopened must not delete them.
    for no in &open {
        seen.push(ended(&*store, *no).await);
    }
    assert_eq!(store.purge(seen, at(0)).await.unwrap(), 0);
    assert_eq!(store.drop_purged(at(i64::MAX), 100).await.unwrap(), 0);
    for no in open {
        let snapshot = found(&*store, no).await;
        assert_eq!((snapshot.row.visibility, snapshot.row.turn), (Visibility::Visible, 2), "{no:?}");
        assert!(log(&*store, no).await.len() >= 3, "{no:?}");
    }
}

async fn retention_time_starts_with_the_last_end(database: &dyn TestDatabase) {
    let store = database.open();
    let no = since(&*store, TaskState::Completed, 10).await;
    reopen(&*store, no, TaskState::Working, 20).await;
    let status = Some((TaskState::Failed, at(30)));
    let end = with_status(no, Step::Finish { fence: 2 }, TaskState::Failed, "no");
    advance(&*store, Advance { status, ..end }).await.unwrap();
    for (before, tasks) in [(11, vec![]), (30, vec![]), (31, vec![no])] {
        let found = expired(&*store, Expiry { ended_before: at(before), ..expiry() }).await;
        assert_eq!(numbers(&found.finished), tasks, "{before}");
    }
    // The same where the turn began and ended in one change.
    let before = no;
    let no = since(&*store, TaskState::Completed, 10).await;
    store.purge(vec![ended(&*store, before).await], at(0)).await.unwrap();
    reopen(&*store, no, TaskState::Completed, 40).await;
    for (before, tasks) in [(40, vec![]), (41, vec![no])] {
        let found = expired(&*store, Expiry { ended_before: at(before), ..expiry() }).await;
        assert_eq!(numbers(&found.finished), tasks, "{before}");
    }
}

async fn task_that_ended_again_since_it_was_seen_is_not_purged(database: &dyn TestDatabase) {
    let store = database.open();
    let no = since(&*store, TaskState::Completed, 10).await;
    let expired = expired(&*store, Expiry { ended_before: at(11), ..expiry() }).await.finished;
    assert_eq!(numbers(&expired), [no]);
    reopen(&*store, no, TaskState::Completed, 50).await;
    assert_eq!(store.purge(expired, at(0)).await.unwrap(), 0);
    assert_eq!(log(&*store, no).await.len(), 3);
    assert_eq!(store.purge(vec![ended(&*store, no).await], at(0)).await.unwrap(), 1);
}

async fn retention_time_is_recorded_for_the_next_process(database: &dyn TestDatabase) {
    let store = database.open();
    assert_eq!(store.retention_mark().await.unwrap(), None);
    let mark = |millis, seconds| RetentionMark {
        time: at(millis),
        ahead_for: std::time::Duration::from_secs(seconds),
    };
    store.record_retention(mark(7, 0));
    store.record_retention(mark(9_000_000_000_000, 599));
    drop(store);
    let store = database.open();
    assert_eq!(store.retention_mark().await.unwrap(), Some(mark(9_000_000_000_000, 599)));
}
