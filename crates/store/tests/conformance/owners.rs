//! Owners: counts and retention are per tenant and agent, many owners are searched in slices, and an owner without
//! tasks leaves nothing behind.

use engine::{
    Scope, ScopeParts, Store,
    ids::TaskNo,
    store::{
        Accept, Advance, Expiry, FinishedTask, ListQuery, Lookup, Step, TenantAgent, View, Visibility,
        WaitingSince, WorkState,
    },
};
use protocol::TaskState;

use super::{
    samples::{accepted, advance, at, foreign_scope, lookup, scope, step, tag},
    test_database::{Sqlite, TestDatabase},
};

on_every_database![
    open_tasks_are_counted_per_tenant_and_agent,
    limit_of_finished_tasks_is_per_tenant_and_agent,
    tasks_of_many_owners_expire_completely,
    oldest_tasks_of_many_owners_are_above_the_limit,
    owners_with_only_hidden_tasks_do_not_protect_others_from_the_limit,
    task_that_began_under_a_clock_ahead_expires,
    full_batch_of_waiting_tasks_has_more,
    owner_without_tasks_can_return,
];

fn owner(name: usize) -> Scope {
    Scope::new(ScopeParts { principal: format!("owner {name}"), ..scope().parts().clone() })
}

fn expiry(scope: &Scope) -> Expiry {
    Expiry {
        owner: TenantAgent::of(scope),
        now: at(1_000_000),
        ended_before: at(0),
        max_tasks: None,
        waiting_since: WaitingSince { default: at(0), skills: vec![] },
        max: 64,
    }
}

/// A task of this owner that has been in a state since a time.
async fn since(store: &dyn Store, owner: &Scope, state: TaskState, millis: i64) -> TaskNo {
    accepted(store, |task| {
        (task.scope, task.state, task.status_at) = (owner.clone(), state, at(millis));
        task.work = if state.is_settled() { WorkState::Idle } else { WorkState::Held };
    })
    .await
}

async fn open_tasks_are_counted_per_tenant_and_agent(database: &dyn TestDatabase) {
    let store = database.open();
    let other_agent = Scope::anonymous("default", "other");
    for (owner, count) in [(owner(1), 2), (owner(2), 1), (foreign_scope(), 4), (other_agent.clone(), 5)] {
        for _ in 0..count {
            since(&*store, &owner, TaskState::Working, 1).await;
            since(&*store, &owner, TaskState::Completed, 1).await;
        }
    }
    let asking = since(&*store, &owner(3), TaskState::InputRequired, 1).await;
    let open = async |scope: &Scope| store.count_open(&TenantAgent::of(scope)).await.unwrap();
    assert_eq!((open(&scope()).await, open(&foreign_scope()).await, open(&other_agent).await), (4, 4, 5));
    assert_eq!(open(&Scope::anonymous("foreign", "other")).await, 0);
    advance(&*store, super::samples::with_status(asking, Step::Cancel, TaskState::Canceled, "over"))
        .await
        .unwrap();
    assert_eq!((open(&scope()).await, open(&foreign_scope()).await), (3, 4));
    let mut agents = store.agents().await.unwrap();
    agents.sort_by(|one, two| (&one.tenant, &one.agent).cmp(&(&two.tenant, &two.agent)));
    assert_eq!(agents, [scope(), other_agent, foreign_scope()].map(|scope| TenantAgent::of(&scope)));
}

async fn limit_of_finished_tasks_is_per_tenant_and_agent(database: &dyn TestDatabase) {
    let store = database.open();
    let mut ours = Vec::new();
    for millis in 1..=3 {
        ours.push(since(&*store, &scope(), TaskState::Completed, 10 * millis).await);
        since(&*store, &foreign_scope(), TaskState::Completed, millis).await;
    }
    let found = store.expired(Expiry { max_tasks: Some(2), ..expiry(&scope()) }).await.unwrap();
    assert_eq!(found.finished.iter().map(|task| task.no).collect::<Vec<_>>(), [ours[0]]);
    let found = store.expired(Expiry { max_tasks: Some(3), ..expiry(&scope()) }).await.unwrap();
    assert!(found.finished.is_empty());
}

/// More owners than are searched for one query.
const OWNERS: usize = 700;

/// One finished task for each owner. The order of times is not that of the owners.
async fn fill(store: &dyn Store) -> Vec<(i64, TaskNo)> {
    let mut tasks = Vec::new();
    for name in 0..OWNERS {
        let millis = 100 + i64::try_from(name * 397 % OWNERS).unwrap();
        tasks.push((millis, since(store, &owner(name), TaskState::Completed, millis).await));
    }
    tasks.sort_unstable();
    tasks
}

async fn tasks_of_many_owners_expire_completely(database: &dyn TestDatabase) {
    let store = database.open();
    let tasks = fill(&*store).await;
    let open = since(&*store, &owner(0), TaskState::Working, 1).await;
    let before = 100 + i64::try_from(OWNERS).unwrap() / 2;
    let (mut purged, mut rounds) = (Vec::new(), 0);
    loop {
        let found = store.expired(Expiry { ended_before: at(before), ..expiry(&scope()) }).await.unwrap();
        rounds += 1;
        purged.extend(found.finished.iter().map(|task| task.no));
        store.purge(found.finished, at(0)).await.unwrap();
        if !found.more {
            break;
        }
    }
    let expected: Vec<TaskNo> = tasks[..OWNERS / 2].iter().map(|(_, no)| *no).collect();
    purged.sort_unstable();
    let mut sorted = expected;
    sorted.sort_unstable();
    assert_eq!(purged, sorted);
    assert!(rounds < 20, "{rounds} rounds");
    assert!(store.work(open).await.unwrap().is_some());
    // Nothing is searched again before the next task can have expired.
    let again = store.expired(Expiry { ended_before: at(before), ..expiry(&scope()) }).await.unwrap();
    assert!(again.finished.is_empty() && !again.more);
}

async fn oldest_tasks_of_many_owners_are_above_the_limit(database: &dyn TestDatabase) {
    let store = database.open();
    let tasks = fill(&*store).await;
    let limit = u64::try_from(OWNERS).unwrap() - 100;
    let mut purged: Vec<TaskNo> = Vec::new();
    for _ in 0..20 {
        let query = Expiry { max_tasks: Some(limit), ..expiry(&scope()) };
        let found = store.expired(query).await.unwrap();
        purged.extend(found.finished.iter().map(|task| task.no));
        store.purge(found.finished, at(0)).await.unwrap();
        if !found.more {
            break;
        }
    }
    assert_eq!(purged, tasks[..100].iter().map(|(_, no)| *no).collect::<Vec<_>>());
}

async fn owners_with_only_hidden_tasks_do_not_protect_others_from_the_limit(database: &dyn TestDatabase) {
    let store = database.open();
    for name in 0..OWNERS {
        accepted(&*store, |task| {
            (task.scope, task.state, task.status_at) = (owner(name), TaskState::Completed, at(10));
            (task.work, task.visibility) = (WorkState::Idle, Visibility::Hidden);
        })
        .await;
    }
    let old = since(&*store, &owner(OWNERS), TaskState::Completed, 20).await;
    since(&*store, &owner(OWNERS), TaskState::Completed, 30).await;
    let query = || Expiry { max_tasks: Some(1), ..expiry(&scope()) };
    let mut found = store.expired(query()).await.unwrap();
    for _ in 0..10 {
        if !found.finished.is_empty() || !found.more {
            break;
        }
        found = store.expired(query()).await.unwrap();
    }
    assert_eq!(found.finished.iter().map(|task| task.no).collect::<Vec<_>>(), [old]);
}

async fn task_that_began_under_a_clock_ahead_expires(database: &dyn TestDatabase) {
    let store = database.open();
    let no = since(&*store, &owner(1), TaskState::Working, 5_000_000).await;
    let finish = Step::Finish { fence: 1 };
    advance(&*store, Advance { status: Some((TaskState::Completed, at(10))), ..step(no, finish) })
        .await
        .unwrap();
    let query = || Expiry { ended_before: at(100), ..expiry(&scope()) };
    store.expired(query()).await.unwrap();
    let found = store.expired(query()).await.unwrap();
    assert_eq!(found.finished.iter().map(|task| task.no).collect::<Vec<_>>(), [no]);
}

async fn full_batch_of_waiting_tasks_has_more(database: &dyn TestDatabase) {
    let store = database.open();
    for name in 0..5 {
        since(&*store, &owner(name), TaskState::InputRequired, 10).await;
        since(&*store, &foreign_scope(), TaskState::AuthRequired, 1).await;
    }
    for (max, more) in [(4, true), (5, true), (6, false)] {
        let waiting_since = WaitingSince { default: at(11), skills: vec![] };
        let query = Expiry { waiting_since, max, ..expiry(&scope()) };
        let found = store.expired(query).await.unwrap();
        assert_eq!((found.waiting.len(), found.more), (max.min(5), more));
    }
}

/// Purges tasks and deletes their rows.
async fn delete(store: &dyn Store, tasks: &[TaskNo], last_seq: u64) {
    let tasks = tasks.iter().map(|no| FinishedTask { no: *no, last_seq }).collect::<Vec<_>>();
    assert_eq!(store.purge(tasks.clone(), at(5)).await.unwrap(), tasks.len());
    assert_eq!(store.drop_purged(at(6), 100).await.unwrap(), tasks.len());
}

async fn owner_without_tasks_can_return(database: &dyn TestDatabase) {
    let store = database.open();
    let list = async |owner: &Scope| {
        let query = ListQuery {
            context: None,
            state: None,
            since: None,
            after: None,
            size: 9,
            view: View::default(),
        };
        let page = store.list(owner, query).await.unwrap();
        (page.total, page.tasks.iter().map(|task| task.row.no).collect::<Vec<_>>())
    };
    for _ in 0..3 {
        let first = since(&*store, &owner(1), TaskState::Completed, 1).await;
        assert_eq!(list(&owner(1)).await, (1, vec![first]));
        delete(&*store, &[first], 2).await;
        assert_eq!(list(&owner(1)).await, (0, vec![]));
        // The next owner must not get what the first one's id refers to, or the other way round.
        let second = since(&*store, &owner(2), TaskState::Completed, 1).await;
        assert_eq!((list(&owner(1)).await, list(&owner(2)).await), ((0, vec![]), (1, vec![second])));
        let third = since(&*store, &owner(1), TaskState::Completed, 1).await;
        assert_eq!((list(&owner(1)).await, list(&owner(2)).await), ((1, vec![third]), (1, vec![second])));
        delete(&*store, &[second, third], 2).await;
    }
    assert!(store.agents().await.unwrap().is_empty());
}

#[tokio::test]
async fn owner_is_deleted_with_its_last_task() {
    let database = Sqlite::new();
    let store = database.open();
    let rows = |table: &str| -> i64 {
        let query = format!("SELECT count(*) FROM {table}");
        database.raw_connection().query_row(&query, [], |row| row.get(0)).unwrap()
    };
    let mut tasks = Vec::new();
    for name in 0..10 {
        tasks.push(since(&*store, &owner(name), TaskState::Completed, 1).await);
    }
    let hidden = accepted(&*store, |task| {
        (task.scope, task.state, task.work) = (owner(1), TaskState::Completed, WorkState::Idle);
        task.visibility = Visibility::Hidden;
    })
    .await;
    let undecided = accepted(&*store, |task: &mut Accept| {
        (task.scope, task.visibility) = (owner(2), Visibility::Undecided);
    })
    .await;
    assert_eq!((rows("scopes"), rows("agent_counts")), (10, 1));
    delete(&*store, &tasks, 2).await;
    assert_eq!((rows("scopes"), rows("agent_counts")), (2, 1), "a hidden and an undecided task are left");
    let snapshot = store.find(&owner(2), lookup(&*store, undecided, tag(undecided))).await.unwrap();
    assert!(snapshot.is_some());
    assert!(store.work(undecided).await.unwrap().is_some());
    // After a restart the undecided task still keeps its owner.
    drop(store);
    let store = database.open();
    delete(&*store, &[hidden], 2).await;
    assert_eq!(rows("scopes"), 1);
    advance(&*store, step(undecided, Step::Claim { probation: false })).await.unwrap();
    let mut end =
        super::samples::with_status(undecided, Step::Finish { fence: 2 }, TaskState::Completed, "done");
    end.visibility = Some(Visibility::Visible);
    advance(&*store, end).await.unwrap();
    delete(&*store, &[undecided], 3).await;
    assert_eq!((rows("scopes"), rows("counts"), rows("agent_counts"), rows("tasks")), (0, 0, 0, 0));
    let named = Lookup { ours: None, name: "none".into() };
    assert!(store.find(&owner(2), named).await.unwrap().is_none());
}
