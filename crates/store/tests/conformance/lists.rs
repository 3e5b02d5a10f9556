//! Lists are ordered from the newest status to the oldest, contain what the filter selects, and can be paged through.

use engine::{
    Store,
    ids::TaskNo,
    store::{
        ContextLookup, ListPage, ListPosition, ListQuery, NewContext, Step, View, Visibility, WorkState,
    },
    task::fold,
};
use protocol::{TaskState, Timestamp};

use super::{
    samples::{accepted, advance, at, foreign_scope, scope, step, with_status},
    test_database::TestDatabase,
};

on_every_database![
    newest_status_is_first_and_ties_go_to_the_newest_task,
    listed_task_has_its_row_and_log,
    only_visible_tasks_of_the_scope_are_listed,
    filters_narrow_the_list_and_its_total,
    paging_returns_each_task_once,
    task_updated_while_paging_moves_to_the_front,
    page_reports_whether_more_follow,
];

fn all() -> ListQuery {
    ListQuery { context: None, state: None, since: None, after: None, size: 100, view: View::default() }
}

async fn list(store: &dyn Store, query: ListQuery) -> ListPage {
    store.list(&scope(), query).await.unwrap()
}

fn numbers(page: &ListPage) -> Vec<TaskNo> {
    page.tasks.iter().map(|snapshot| snapshot.row.no).collect()
}

/// One task for each status time, in this order of acceptance.
async fn with_times<const N: usize>(store: &dyn Store, times: [i64; N]) -> [TaskNo; N] {
    let mut tasks = [TaskNo(0); N];
    for (task, millis) in tasks.iter_mut().zip(times) {
        *task = accepted(store, |task| task.status_at = at(millis)).await;
    }
    tasks
}

async fn newest_status_is_first_and_ties_go_to_the_newest_task(database: &dyn TestDatabase) {
    let store = database.open();
    let [a, b, c, d, e] = with_times(&*store, [20, 30, 20, 10, 30]).await;
    let page = list(&*store, all()).await;
    assert_eq!((numbers(&page), page.total, page.more), (vec![e, b, c, a, d], 5, false));
    let moved = with_status(d, Step::Report { fence: 1 }, TaskState::Working, "moved");
    advance(&*store, engine::store::Advance { status: Some((TaskState::Working, at(25))), ..moved })
        .await
        .unwrap();
    assert_eq!(numbers(&list(&*store, all()).await), [e, b, d, c, a]);
}

async fn listed_task_has_its_row_and_log(database: &dyn TestDatabase) {
    let store = database.open();
    let [task] = with_times(&*store, [20]).await;
    let page = list(&*store, all()).await;
    let [snapshot] = page.tasks.as_slice() else { panic!("{page:?}") };
    assert_eq!((snapshot.row.no, snapshot.row.status_at, snapshot.row.last_seq), (task, at(20), 2));
    assert_eq!(fold::snapshot(&store.ids(), snapshot).unwrap().history.len(), 1);
}

async fn only_visible_tasks_of_the_scope_are_listed(database: &dyn TestDatabase) {
    let store = database.open();
    let shown = accepted(&*store, |_| {}).await;
    accepted(&*store, |task| task.scope = foreign_scope()).await;
    let undecided = accepted(&*store, |task| task.visibility = Visibility::Undecided).await;
    accepted(&*store, |task| {
        task.visibility = Visibility::Hidden;
        (task.state, task.work) = (TaskState::Completed, WorkState::Idle);
    })
    .await;
    let page = list(&*store, all()).await;
    assert_eq!((numbers(&page), page.total), (vec![shown], 1));

    let mut shows = step(undecided, Step::Report { fence: 1 });
    shows.visibility = Some(Visibility::Visible);
    advance(&*store, shows).await.unwrap();
    let page = list(&*store, all()).await;
    assert_eq!((numbers(&page), page.total), (vec![undecided, shown], 2));

    let unknown = engine::Scope::anonymous("nobody", "agent");
    let page = store.list(&unknown, all()).await.unwrap();
    assert_eq!((page.tasks.len(), page.total, page.more), (0, 0, false));
}

async fn filters_narrow_the_list_and_its_total(database: &dyn TestDatabase) {
    let store = database.open();
    let named = |name: &str| NewContext::Named(name.into());
    let states = [TaskState::Working, TaskState::Completed, TaskState::InputRequired];
    let mut made: Vec<(TaskNo, TaskState, &str, Timestamp)> = Vec::new();
    for turn in 0..24_i64 {
        let state = states[usize::try_from(turn % 3).unwrap()];
        let context = if turn % 2 == 0 { "even" } else { "odd" };
        let since = at(turn / 4);
        let no = accepted(&*store, |task| {
            (task.state, task.status_at, task.context) = (state, since, named(context));
            task.work = if state == TaskState::Working { WorkState::Held } else { WorkState::Idle };
        })
        .await;
        made.push((no, state, context, since));
    }
    made.sort_unstable_by_key(|(no, _, _, since)| std::cmp::Reverse((*since, *no)));
    let by_name = |name: &str| ContextLookup { ours: None, name: name.into() };
    for state in [None, Some(TaskState::Working), Some(TaskState::Completed), Some(TaskState::Failed)] {
        for context in [None, Some("even"), Some("odd"), Some("unknown")] {
            for since in [None, Some(at(0)), Some(at(2)), Some(at(6))] {
                let query = ListQuery { context: context.map(by_name), state, since, ..all() };
                let expected: Vec<_> = made
                    .iter()
                    .filter(|task| state.is_none_or(|state| state == task.1))
                    .filter(|task| context.is_none_or(|context| context == task.2))
                    .filter(|task| since.is_none_or(|since| since <= task.3))
                    .map(|task| task.0)
                    .collect();
                let page = list(&*store, query.clone()).await;
                assert_eq!(
                    (numbers(&page), page.total),
                    (expected.clone(), expected.len() as u64),
                    "{query:?}"
                );
                let first = list(&*store, ListQuery { size: 1, ..query }).await;
                assert_eq!(
                    (numbers(&first), first.total),
                    (expected[..expected.len().min(1)].to_vec(), page.total)
                );
            }
        }
    }
}

/// Reads a list page by page, as a client does with page tokens.
struct Pager {
    query: ListQuery,
    ended: bool,
}

impl Pager {
    async fn next(&mut self, store: &dyn Store) -> Vec<TaskNo> {
        let page = list(store, self.query.clone()).await;
        self.query.after =
            page.tasks.last().map(|last| ListPosition { status_at: last.row.status_at, no: last.row.no });
        self.ended = !page.more;
        numbers(&page)
    }
}

async fn paging_returns_each_task_once(database: &dyn TestDatabase) {
    let store = database.open();
    with_times(&*store, [5, 3, 3, 3, 9, 3, 1, 5, 5, 7, 3]).await;
    let whole = numbers(&list(&*store, all()).await);
    for size in 1..=12 {
        let mut pager = Pager { query: ListQuery { size, ..all() }, ended: false };
        let mut seen = Vec::new();
        while !pager.ended {
            let page = pager.next(&*store).await;
            assert!(!page.is_empty() && page.len() <= size, "pages of {size}");
            seen.extend(page);
            assert!(seen.len() <= whole.len(), "pages of {size}: {seen:?}");
        }
        assert_eq!(seen, whole, "pages of {size}");
    }
}

async fn task_updated_while_paging_moves_to_the_front(database: &dyn TestDatabase) {
    let store = database.open();
    let [a, b, c, d] = with_times(&*store, [1, 2, 3, 4]).await;
    let mut pager = Pager { query: ListQuery { size: 2, ..all() }, ended: false };
    assert_eq!(pager.next(&*store).await, [d, c]);
    // One that was on an earlier page and one that was not.
    for task in [c, b] {
        let mut moved = with_status(task, Step::Report { fence: 1 }, TaskState::Working, "moved");
        moved.status = Some((TaskState::Working, at(9)));
        advance(&*store, moved).await.unwrap();
    }
    assert_eq!(pager.next(&*store).await, [a], "no task appears twice");
    assert!(pager.ended);
    assert_eq!(numbers(&list(&*store, all()).await), [c, b, d, a]);
}

async fn page_reports_whether_more_follow(database: &dyn TestDatabase) {
    let store = database.open();
    let [a, b, c] = with_times(&*store, [1, 2, 3]).await;
    let sizes =
        [(1, vec![c], true), (2, vec![c, b], true), (3, vec![c, b, a], false), (4, vec![c, b, a], false)];
    for (size, tasks, more) in sizes {
        let page = list(&*store, ListQuery { size, ..all() }).await;
        assert_eq!((numbers(&page), page.more, page.total), (tasks, more, 3), "{size}");
    }
    let behind = Some(ListPosition { status_at: at(1), no: a });
    let page = list(&*store, ListQuery { after: behind, ..all() }).await;
    assert_eq!((numbers(&page), page.more, page.total), (vec![], false, 3));
}
