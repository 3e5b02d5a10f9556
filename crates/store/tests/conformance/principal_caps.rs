//! Caps of a principal: what is counted, in which scopes, and after a restart.

use engine::{
    Scope, ScopeParts, Store,
    ids::TaskNo,
    log::Log,
    store::{
        Accept, Advance, CapReached, FinishedTask, NotCommitted, PrincipalCaps, StartState, Step,
        TurnPrecondition, Visibility,
    },
};
use protocol::TaskState;

use super::{
    samples::{accept, advance, artifact, at, interrupted, number, step, task, with_status},
    test_database::TestDatabase,
};

on_every_database![
    open_tasks_are_counted_over_the_scopes_of_a_principal_and_after_a_restart,
    interrupted_tasks_are_counted_in_the_commit_that_interrupts_them,
    stored_bytes_are_counted_until_they_are_purged,
];

fn scope_of(principal: &str, agent: &str, end_user: &str) -> Scope {
    let [tenant, principal, agent, end_user] = ["t", principal, agent, end_user].map(str::to_owned);
    Scope::new(ScopeParts { tenant, principal, agent, end_user })
}

async fn try_accept(
    store: &dyn Store,
    scope: Scope,
    caps: PrincipalCaps,
    visibility: Visibility,
) -> Result<TaskNo, NotCommitted> {
    let no = number(store).await;
    accept(store, Accept { scope, caps, visibility, ..task(no) }).await.map(|_| no)
}

async fn open_tasks_are_counted_over_the_scopes_of_a_principal_and_after_a_restart(
    database: &dyn TestDatabase,
) {
    let caps = PrincipalCaps { tasks: 3, ..PrincipalCaps::default() };
    let none = PrincipalCaps::default();
    let full = Err(NotCommitted::CapReached(CapReached::Tasks(3)));
    let (one, two) = (scope_of("alice", "a", ""), scope_of("alice", "b", "user"));
    let store = database.open();
    // Tasks from before the caps count, also those that are not visible yet.
    let first = try_accept(&*store, one.clone(), none, Visibility::Visible).await.unwrap();
    try_accept(&*store, two.clone(), none, Visibility::Undecided).await.unwrap();
    try_accept(&*store, two.clone(), caps, Visibility::Undecided).await.unwrap();
    assert_eq!(try_accept(&*store, one.clone(), caps, Visibility::Visible).await, full);
    let new_scope = scope_of("alice", "c", "");
    assert_eq!(try_accept(&*store, new_scope.clone(), caps, Visibility::Visible).await, full);
    try_accept(&*store, scope_of("bob", "a", ""), caps, Visibility::Visible).await.unwrap();
    drop(store);

    let store = database.open();
    assert_eq!(try_accept(&*store, one.clone(), caps, Visibility::Visible).await, full);
    let cancel = with_status(first, Step::Cancel, TaskState::Canceled, "canceled");
    advance(&*store, cancel).await.unwrap();
    let third = try_accept(&*store, new_scope.clone(), caps, Visibility::Visible).await.unwrap();
    assert_eq!(try_accept(&*store, new_scope, caps, Visibility::Visible).await, full);
    // Reopening a finished task makes it an open one.
    let end = with_status(third, Step::Finish { fence: 1 }, TaskState::Completed, "done");
    advance(&*store, end).await.unwrap();
    try_accept(&*store, one.clone(), caps, Visibility::Visible).await.unwrap();
    let finished = TurnPrecondition { when: StartState::Terminal, fence: 1 };
    let reopen = Advance { caps, ..with_status(third, Step::Resume(finished), TaskState::Working, "again") };
    assert_eq!(advance(&*store, reopen).await.map(drop), full.clone().map(|_| ()));
}

async fn interrupted_tasks_are_counted_in_the_commit_that_interrupts_them(database: &dyn TestDatabase) {
    let caps = PrincipalCaps { interrupted: 1, ..PrincipalCaps::default() };
    let scope = scope_of("alice", "a", "");
    let store = database.open();
    let first = try_accept(&*store, scope.clone(), caps, Visibility::Visible).await.unwrap();
    let pause = |no| with_status(no, Step::Pause { fence: 1 }, TaskState::InputRequired, "question");
    advance(&*store, pause(first)).await.unwrap();
    let full = Err(NotCommitted::CapReached(CapReached::Interrupted(1)));
    assert_eq!(try_accept(&*store, scope.clone(), caps, Visibility::Visible).await, full);
    let answer =
        Advance { caps, ..with_status(first, Step::Resume(interrupted(1)), TaskState::Working, "go on") };
    advance(&*store, answer).await.unwrap();
    try_accept(&*store, scope, caps, Visibility::Visible).await.unwrap();
}

async fn stored_bytes_are_counted_until_they_are_purged(database: &dyn TestDatabase) {
    let caps = PrincipalCaps { stored: 10_000, ..PrincipalCaps::default() };
    let full = Err(NotCommitted::CapReached(CapReached::Stored(10_000)));
    let scope = scope_of("alice", "a", "");
    let store = database.open();
    let no = try_accept(&*store, scope.clone(), caps, Visibility::Visible).await.unwrap();
    let large = || Log::pack([artifact(&"x".repeat(6_000))]);
    // What a run records is never refused.
    for _ in 0..2 {
        let report = Advance { log: large(), caps, ..step(no, Step::Report { fence: 1 }) };
        advance(&*store, report).await.unwrap();
    }
    assert_eq!(try_accept(&*store, scope.clone(), caps, Visibility::Visible).await, full);
    let message = Advance { caps, ..step(no, Step::QueueMessage) };
    assert_eq!(advance(&*store, message).await.map(drop), full.clone().map(|_| ()));
    drop(store);

    let store = database.open();
    assert_eq!(try_accept(&*store, scope.clone(), caps, Visibility::Visible).await, full);
    let end = with_status(no, Step::Cancel, TaskState::Canceled, "canceled");
    let last_seq = advance(&*store, end).await.unwrap().last_seq;
    assert_eq!(try_accept(&*store, scope.clone(), caps, Visibility::Visible).await, full);
    assert_eq!(store.purge(vec![FinishedTask { no, last_seq }], at(5)).await.unwrap(), 1);
    try_accept(&*store, scope, caps, Visibility::Visible).await.unwrap();
}
