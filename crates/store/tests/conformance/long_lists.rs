//! A list too long to be counted anew for each page is counted once; its total stays exact whatever happens to its tasks.

use std::{sync::Arc, time::Duration};

use engine::{
    Clock, Scope, Store,
    ids::TaskNo,
    store::{
        Accept, Advance, Change, ContextLookup, Ended, ListPage, ListQuery, NewContext, Place, Step,
        Visibility, Work,
    },
};
use protocol::{TaskState, Timestamp};

use super::{
    bench::{Bench, Sqlite},
    samples::{accepted, advance, at, says, scope, step, task},
};

on_every_database![
    a_long_list_is_counted_exactly_however_it_changes,
    a_long_conversation_is_counted_exactly_however_it_changes,
    a_walk_through_a_long_conversation_shows_each_task_once,
];

/// More than is counted by walking.
const MANY: i64 = 9_000;
/// So many tasks have the same status time.
const AT_A_TIME: i64 = 7;

const CHAT: &str = "chat";

/// One task as the test knows it.
#[derive(Clone, Copy)]
struct Known {
    no: TaskNo,
    state: TaskState,
    since: i64,
    last_seq: u64,
}

/// Every fifth task works, the others are completed; the times go up.
async fn fill(store: &dyn Store, context: Option<&str>) -> Vec<Known> {
    let TaskNo(first) = store.reserve(MANY).await.unwrap();
    let mut known = Vec::new();
    let mut receipts = Vec::new();
    for number in 0..MANY {
        let state = if number % 5 == 0 { TaskState::Working } else { TaskState::Completed };
        let (no, since) = (TaskNo(first + number), number / AT_A_TIME);
        let new = Accept {
            state,
            status_at: at(since),
            context: context.map_or(NewContext::Own, |name| NewContext::Named(name.into())),
            work: if state == TaskState::Working { Work::Held } else { Work::Idle },
            ..task(no)
        };
        let last_seq = new.log.len();
        receipts.push(store.commit(Change::Accept(Box::new(new))));
        known.push(Known { no, state, since, last_seq });
    }
    for receipt in receipts {
        receipt.await.unwrap();
    }
    known
}

fn query(context: Option<&str>) -> ListQuery {
    let context = context.map(|name| ContextLookup { ours: None, name: name.into() });
    ListQuery { context, state: None, since: None, after: None, size: 3 }
}

async fn list(store: &dyn Store, query: ListQuery) -> ListPage {
    store.list(&scope(), query).await.unwrap()
}

/// Every total, and the first page, for times all over the list and beyond.
async fn compare(store: &dyn Store, context: Option<&str>, known: &[Known], when: &str) {
    let mut newest_first = known.to_vec();
    newest_first.sort_unstable_by_key(|task| std::cmp::Reverse((task.since, task.no)));
    let last = MANY / AT_A_TIME;
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
            let expected = (&matching[..matching.len().min(3)], matching.len() as u64);
            assert_eq!((shown.as_slice(), page.total), expected, "{when}: {state:?} since {since:?}");
        }
    }
}

/// Changes tasks of every age in every way there is; `known` follows.
async fn stir(store: &dyn Store, context: Option<&str>, known: &mut Vec<Known>) {
    // Old ones are forgotten.
    let forgotten: Vec<usize> = (0..2_500).filter(|place| place % 5 != 0 && place % 3 == 0).collect();
    for places in forgotten.chunks(64) {
        let tasks = places.iter().map(|place| {
            let Known { no, last_seq, .. } = known[*place];
            Ended { no, last_seq }
        });
        assert_eq!(store.purge(tasks.collect(), at(0)).await.unwrap(), places.len());
    }
    // Some that worked for long come to an end, now or with an old time.
    for place in (0..known.len()).step_by(35) {
        let since = if place % 2 == 0 { known[place].since + 40 } else { MANY };
        let end = says(known[place].no, Step::Finish { fence: 1 }, TaskState::Failed, "no");
        let last_seq = known[place].last_seq + 1;
        advance(store, Advance { status: Some((TaskState::Failed, at(since))), ..end }).await.unwrap();
        known[place] = Known { state: TaskState::Failed, since, last_seq, ..known[place] };
    }
    // Some come late, with a time of long ago or before all others.
    for since in [-5, 3, 291, 700] {
        let no = accepted(store, |task| {
            task.status_at = at(since);
            task.context = context.map_or(NewContext::Own, |name| NewContext::Named(name.into()));
        })
        .await;
        known.push(Known { no, state: TaskState::Working, since, last_seq: 2 });
    }
    // One is shown only later, and one never.
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
            known.push(Known { no, state: TaskState::Working, since: 100, last_seq: 2 });
        }
    }
    let mut place = 0;
    known.retain(|_| {
        place += 1;
        !forgotten.contains(&(place - 1))
    });
}

async fn told_and_changed(bench: &dyn Bench, context: Option<&str>) {
    let store = bench.open();
    let mut known = fill(&*store, context).await;
    // The first look finds the list long, and those behind it meet it half counted and counted.
    for round in 0..3 {
        compare(&*store, context, &known, &format!("round {round}")).await;
    }
    stir(&*store, context, &mut known).await;
    compare(&*store, context, &known, "stirred").await;
    let store = bench.reopen(store, &Clock::manual(at(0)));
    compare(&*store, context, &known, "opened again").await;
    for places in known.chunks(64) {
        let tasks = places.iter().filter(|task| task.state.is_terminal());
        store
            .purge(tasks.map(|task| Ended { no: task.no, last_seq: task.last_seq }).collect(), at(0))
            .await
            .unwrap();
    }
    known.retain(|task| !task.state.is_terminal());
    compare(&*store, context, &known, "mostly forgotten").await;
}

async fn a_long_list_is_counted_exactly_however_it_changes(bench: &dyn Bench) {
    told_and_changed(bench, None).await;
}

async fn a_long_conversation_is_counted_exactly_however_it_changes(bench: &dyn Bench) {
    told_and_changed(bench, Some(CHAT)).await;
}

async fn a_walk_through_a_long_conversation_shows_each_task_once(bench: &dyn Bench) {
    let store = bench.open();
    let mut left: Vec<(Timestamp, TaskNo)> =
        fill(&*store, Some(CHAT)).await.iter().map(|task| (at(task.since), task.no)).collect();
    left.sort_unstable();
    let mut after = None;
    loop {
        let page = list(&*store, ListQuery { after, size: 100, ..query(Some(CHAT)) }).await;
        assert_eq!(page.total, u64::try_from(MANY).unwrap());
        for snapshot in &page.tasks {
            assert_eq!(left.pop(), Some((snapshot.row.status_at, snapshot.row.no)));
        }
        after = page.tasks.last().map(|last| Place { status_at: last.row.status_at, no: last.row.no });
        if !page.more {
            break;
        }
    }
    assert!(left.is_empty());
}

/// What makes it short is not seen from outside, so the file is asked.
#[tokio::test]
async fn a_list_that_was_found_long_is_counted_by_stretches_from_then_on() {
    let bench = Sqlite::new();
    let store: Arc<dyn Store> = bench.open();
    let known = fill(&*store, None).await;
    let tallied = || -> i64 {
        bench.back_door().query_row("SELECT coalesce(sum(n), 0) FROM tallies", [], |row| row.get(0)).unwrap()
    };
    list(&*store, query(None)).await;
    store.reserve(1).await.unwrap();
    assert_eq!(tallied(), 0, "the whole list is counted by state");
    list(&*store, ListQuery { since: Some(at(0)), ..query(None) }).await;
    let counted = async {
        while tallied() < MANY - 2 * 2_048 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), counted).await.expect("the list is counted");
    compare(&*store, None, &known, "counted").await;
    let nobody = Scope::anonymous("nobody", "agent");
    let theirs = store.list(&nobody, ListQuery { since: Some(at(0)), ..query(None) }).await.unwrap();
    assert_eq!(theirs.total, 0);
}
