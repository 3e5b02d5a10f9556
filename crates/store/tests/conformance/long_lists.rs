//! The total of a long list: exact for the whole list and for a state of it, whatever happens to its tasks; with a
//! start time or a context it is counted up to a limit.

use engine::{
    Clock, Scope, Store,
    ids::TaskNo,
    store::{
        Accept, Advance, Change, ContextLookup, FinishedTask, ListPage, ListPosition, ListQuery, NewContext,
        Step, View, Visibility, WorkState,
    },
};
use protocol::{TaskState, Timestamp};

use super::{
    samples::{accepted, advance, at, scope, step, task, with_status},
    test_database::TestDatabase,
};

on_every_database![
    long_list_is_counted_however_it_changes,
    long_context_is_counted_however_it_changes,
    completed_tasks_among_many_others_are_counted,
    paging_through_a_long_context_returns_each_task_once,
];

/// More tasks than are counted.
const MANY: i64 = 9_000;
/// The total of a longer list with a start time or a context.
const MAX_COUNTED: usize = 5_000;
/// Number of tasks with the same status time.
const TASKS_PER_TIME: i64 = 7;

const CHAT: &str = "chat";

/// Expected state of one task.
#[derive(Clone, Copy)]
struct KnownTask {
    no: TaskNo,
    state: TaskState,
    since: i64,
    last_seq: u64,
}

/// Every fifth task is working, the others are completed; the times increase.
async fn fill(store: &dyn Store, context: Option<&str>) -> Vec<KnownTask> {
    let state = |number| if number % 5 == 0 { TaskState::Working } else { TaskState::Completed };
    fill_with(store, context, state).await
}

async fn fill_with(
    store: &dyn Store,
    context: Option<&str>,
    state: impl Fn(i64) -> TaskState,
) -> Vec<KnownTask> {
    let TaskNo(first) = store.reserve(MANY).await.unwrap();
    let mut known = Vec::new();
    let mut receipts = Vec::new();
    for number in 0..MANY {
        let state = state(number);
        let (no, since) = (TaskNo(first + number), number / TASKS_PER_TIME);
        let new = Accept {
            state,
            status_at: at(since),
            context: context.map_or(NewContext::Own, |name| NewContext::Named(name.into())),
            work: if state == TaskState::Working { WorkState::Held } else { WorkState::Idle },
            ..task(no)
        };
        let last_seq = new.log.len();
        receipts.push(store.commit(Change::Accept(Box::new(new))));
        known.push(KnownTask { no, state, since, last_seq });
    }
    for receipt in receipts {
        receipt.await.unwrap();
    }
    known
}

fn query(context: Option<&str>) -> ListQuery {
    let context = context.map(|name| ContextLookup { ours: None, name: name.into() });
    ListQuery { context, state: None, since: None, after: None, size: 3, view: View::default() }
}

async fn list(store: &dyn Store, query: ListQuery) -> ListPage {
    store.list(&scope(), query).await.unwrap()
}

/// Checks every total and the first page, for times all over the list and beyond.
async fn compare(store: &dyn Store, context: Option<&str>, known: &[KnownTask], when: &str) {
    let mut newest_first = known.to_vec();
    newest_first.sort_unstable_by_key(|task| std::cmp::Reverse((task.since, task.no)));
    let last = MANY / TASKS_PER_TIME;
    let times =
        [-1, 0, 1, 2, 37, 290, 291, 292, 293, 294, 585, last / 2, last - 300, last - 1, last, last + 99];
    for state in [None, Some(TaskState::Working), Some(TaskState::Completed), Some(TaskState::Failed)] {
        for since in times.into_iter().map(Some).chain([None]) {
            let matching: Vec<TaskNo> = newest_first
                .iter()
                .filter(|task| state.is_none_or(|state| state == task.state))
                .filter(|task| since.is_none_or(|since| since <= task.since))
                .map(|task| task.no)
                .collect();
            let query = ListQuery { state, since: since.map(at), ..query(context) };
            let page = list(store, query).await;
            let shown: Vec<TaskNo> = page.tasks.iter().map(|snapshot| snapshot.row.no).collect();
            let limit = if context.is_some() || since.is_some() { MAX_COUNTED } else { usize::MAX };
            let expected = (&matching[..matching.len().min(3)], matching.len().min(limit) as u64);
            assert_eq!((shown.as_slice(), page.total), expected, "{when}: {state:?} since {since:?}");
        }
    }
}

/// Changes tasks of every age in every possible way and updates `known` accordingly.
async fn change_tasks(store: &dyn Store, context: Option<&str>, known: &mut Vec<KnownTask>) {
    // Old tasks are purged.
    let purged: Vec<usize> = (0..2_500).filter(|index| index % 5 != 0 && index % 3 == 0).collect();
    for indexes in purged.chunks(64) {
        let tasks = indexes.iter().map(|index| {
            let KnownTask { no, last_seq, .. } = known[*index];
            FinishedTask { no, last_seq }
        });
        assert_eq!(store.purge(tasks.collect(), at(0)).await.unwrap(), indexes.len());
    }
    // Some tasks that worked for long finish, with a new status time or an old one.
    for index in (0..known.len()).step_by(35) {
        let since = if index % 2 == 0 { known[index].since + 40 } else { MANY };
        let end = with_status(known[index].no, Step::Finish { fence: 1 }, TaskState::Failed, "no");
        let last_seq = known[index].last_seq + 1;
        advance(store, Advance { status: Some((TaskState::Failed, at(since))), ..end }).await.unwrap();
        known[index] = KnownTask { state: TaskState::Failed, since, last_seq, ..known[index] };
    }
    // Some tasks are added late, with an old status time or one before all others.
    for since in [-5, 3, 291, 700] {
        let no = accepted(store, |task| {
            task.status_at = at(since);
            task.context = context.map_or(NewContext::Own, |name| NewContext::Named(name.into()));
        })
        .await;
        known.push(KnownTask { no, state: TaskState::Working, since, last_seq: 2 });
    }
    // One task becomes visible later, and one never.
    for shows in [true, false] {
        let no = accepted(store, |task| {
            (task.status_at, task.visibility) = (at(100), Visibility::Undecided);
            task.context = context.map_or(NewContext::Own, |name| NewContext::Named(name.into()));
        })
        .await;
        if shows {
            let mut shown = step(no, Step::Report { fence: 1 });
            shown.visibility = Some(Visibility::Visible);
            advance(store, shown).await.unwrap();
            known.push(KnownTask { no, state: TaskState::Working, since: 100, last_seq: 2 });
        }
    }
    let mut index = 0;
    known.retain(|_| {
        index += 1;
        !purged.contains(&(index - 1))
    });
}

async fn count_through_changes(database: &dyn TestDatabase, context: Option<&str>) {
    let store = database.open();
    let mut known = fill(&*store, context).await;
    compare(&*store, context, &known, "as filled").await;
    change_tasks(&*store, context, &mut known).await;
    compare(&*store, context, &known, "after changes").await;
    let store = database.reopen(store, &Clock::manual(at(0)));
    compare(&*store, context, &known, "after a restart").await;
    for indexes in known.chunks(64) {
        let tasks = indexes.iter().filter(|task| task.state.is_terminal());
        store
            .purge(tasks.map(|task| FinishedTask { no: task.no, last_seq: task.last_seq }).collect(), at(0))
            .await
            .unwrap();
    }
    known.retain(|task| !task.state.is_terminal());
    compare(&*store, context, &known, "mostly purged").await;
}

async fn long_list_is_counted_however_it_changes(database: &dyn TestDatabase) {
    count_through_changes(database, None).await;
}

async fn long_context_is_counted_however_it_changes(database: &dyn TestDatabase) {
    count_through_changes(database, Some(CHAT)).await;
}

async fn paging_through_a_long_context_returns_each_task_once(database: &dyn TestDatabase) {
    let store = database.open();
    let mut left: Vec<(Timestamp, TaskNo)> =
        fill(&*store, Some(CHAT)).await.iter().map(|task| (at(task.since), task.no)).collect();
    left.sort_unstable();
    let mut after = None;
    loop {
        let page = list(&*store, ListQuery { after, size: 100, ..query(Some(CHAT)) }).await;
        assert_eq!(page.total, MAX_COUNTED as u64);
        for snapshot in &page.tasks {
            assert_eq!(left.pop(), Some((snapshot.row.status_at, snapshot.row.no)));
        }
        after = page.tasks.last().map(|last| ListPosition { status_at: last.row.status_at, no: last.row.no });
        if !page.more {
            break;
        }
    }
    assert!(left.is_empty());
}

async fn completed_tasks_among_many_others_are_counted(database: &dyn TestDatabase) {
    let store = database.open();
    let state = |number| if number % 9 == 0 { TaskState::Completed } else { TaskState::Failed };
    let known = fill_with(&*store, None, state).await;
    compare(&*store, None, &known, "mostly failed").await;
    let unknown = Scope::anonymous("nobody", "agent");
    let theirs = store.list(&unknown, ListQuery { since: Some(at(0)), ..query(None) }).await.unwrap();
    assert_eq!(theirs.total, 0);
}
