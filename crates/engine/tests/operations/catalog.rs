//! The catalog is swapped while the engine runs.

use a2ad_engine::{Call, Catalog, DEFAULT_TENANT, Scope};
use protocol::{ErrorKind, ListTasks, Operation, TaskState};

use crate::common::{
    Setup, done, done_with, join, msg, need_input, refused, reply, retryable_failure, scope, status_text,
    task,
};

#[tokio::test]
async fn running_turn_ends_with_its_agent_and_the_next_message_gets_the_new_one() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut server = setup.open();
        let call = server.spawn_send(msg("one"));
        let running = server.agent.turn().await;
        let mut new_agent = server.replace_agent();
        running.end(need_input("from the old agent"));
        let asked = task(join(call).await.unwrap());
        assert_eq!(asked.status.state, TaskState::InputRequired);
        assert_eq!(status_text(&asked).as_deref(), Some("from the old agent"));

        // Another turn of the same task, and a new task.
        for next in [msg("two").to(&asked.id), msg("three")] {
            let call = server.spawn_send(next);
            new_agent.turn().await.end(done_with("from the new agent"));
            let ended = task(join(call).await.unwrap());
            assert_eq!(ended.status.state, TaskState::Completed);
        }
        assert!(server.agent.is_idle());
    }
}

#[tokio::test]
async fn queued_turn_gets_the_new_agent() {
    let mut server = Setup::plain().slots(1).open();
    let (_, running) = server.start_task("one").await;
    let queued = server.spawn_send(msg("two"));
    server.store.until("accept", 2).await;
    let mut new_agent = server.replace_agent();
    running.end(done());
    let turn = new_agent.turn().await;
    assert_eq!((turn.message.text().as_str(), turn.attempt), ("two", 1));
    turn.end(done());
    assert_eq!(task(join(queued).await.unwrap()).status.state, TaskState::Completed);
    assert!(server.agent.is_idle());
}

#[tokio::test]
async fn retried_turn_gets_the_new_agent() {
    let mut server = Setup::plain().open();
    let call = server.spawn_send(msg("one"));
    let running = server.agent.turn().await;
    let mut new_agent = server.replace_agent();
    running.end(retryable_failure("busy"));
    let turn = new_agent.turn().await;
    assert_eq!((turn.message.text().as_str(), turn.attempt), ("one", 2));
    turn.end(done());
    assert_eq!(task(join(call).await.unwrap()).status.state, TaskState::Completed);
}

#[tokio::test]
async fn removed_agent_is_unknown_and_its_queued_turns_fail() {
    let mut server = Setup::plain().slots(1).open();
    let (id, running) = server.start_task("one").await;
    let queued = server.spawn_send(msg("two"));
    server.store.until("accept", 2).await;
    server.engine.catalog().swap(Catalog::new("none", []));
    assert_eq!(refused(server.send(msg("three")).await), ErrorKind::AgentDisabled);
    assert_eq!(refused(server.send(msg("three").to(&id)).await), ErrorKind::AgentDisabled);
    assert_eq!(refused(server.stream(msg("three")).await.map(drop)), ErrorKind::AgentDisabled);
    assert_eq!(refused(server.subscribe(&id).await.map(drop)), ErrorKind::AgentDisabled);
    assert_eq!(refused(server.get(&id).await), ErrorKind::AgentDisabled);
    assert_eq!(refused(server.list(ListTasks::default()).await), ErrorKind::AgentDisabled);
    assert_eq!(refused(server.cancel(&id).await), ErrorKind::AgentDisabled);

    // The run in progress ends; then the queued turn finds no agent.
    running.end(done_with("finished"));
    let failed = task(join(queued).await.unwrap());
    assert_eq!(failed.status.state, TaskState::Failed);
    assert_eq!(status_text(&failed).as_deref(), Some("the agent of this task is no longer registered"));
    let _new_agent = server.replace_agent();
    assert_eq!(server.get(&id).await.unwrap().status.state, TaskState::Completed);
}

#[tokio::test]
async fn call_keeps_the_agent_it_was_checked_against() {
    let mut server = Setup::plain().open();
    let catalog = server.engine.catalog().load();
    let checked = catalog.get(DEFAULT_TENANT, "scripted").cloned();
    let mut new_agent = server.replace_agent();
    let call = server.spawn_send_as(Call { agent: checked, ..Call::new(scope()) }, msg("one"));
    server.agent.turn().await.end(done_with("from the old agent"));
    assert_eq!(task(reply(join(call).await.unwrap())).status.state, TaskState::Completed);
    assert!(new_agent.is_idle());
}

#[tokio::test]
async fn an_agent_belongs_to_its_tenant() {
    let server = Setup::plain().open();
    let operation = || Operation::ListTasks(ListTasks::default());
    for (tenant, found) in [("default", true), ("elsewhere", true), ("nowhere", false)] {
        let scope = Scope::anonymous(tenant, "scripted");
        assert_eq!(server.call(scope, operation()).await.is_ok(), found, "{tenant}");
        let catalog = server.engine.catalog().load();
        assert_eq!(catalog.get(tenant, "scripted").is_some(), found);
        assert_eq!(catalog.default_agent(tenant), found.then_some("scripted"));
        assert_eq!(catalog.agents(tenant).count(), usize::from(found));
    }
}
