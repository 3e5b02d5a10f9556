//! Retention: finished tasks are purged, open ones are not, and a task does not wait for its client forever.

use std::time::Duration;

use a2ad_engine::{
    Agent, AgentResult, Call, CallResponse, Catalog, Clock, DEFAULT_TENANT, Outcome, RegisteredAgent,
    ResponseNote, Retention, Scope, Store as _, Turn, store::Lookup,
};
use protocol::{
    Dialect, ErrorKind, ListTasks, Message, Operation, SendMessage, TaskId, TaskState, Timestamp,
};

use crate::common::{
    Setup, TestServer, call_in, done, msg, need_input, reason, refused, reply, status_text, task,
    with_timeout,
};

const SPAN: Duration = Duration::from_secs(4);

fn clock() -> Clock {
    Clock::manual(Timestamp::from_millis(1_000_000))
}

/// Waits until the task has been purged.
async fn until_purged(server: &TestServer, id: &TaskId) {
    let dropped = async {
        while server.get(id).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    with_timeout(dropped).await;
    assert_eq!(refused(server.get(id).await), ErrorKind::TaskNotFound);
}

#[tokio::test]
async fn finished_task_is_purged_after_max_age_and_open_task_is_kept() {
    let clock = clock();
    let retention = Retention { max_age: SPAN, ..Retention::default() };
    let server = Setup::plain().clock(&clock).retention(retention).open();
    server.agent.prepare_turn([], done());
    let finished = server.send_for_task(msg("done at once")).await;
    server.agent.prepare_turn([], need_input("which?"));
    let open = server.send_for_task(msg("waits")).await;
    clock.advance(SPAN / 2);
    server.agent.prepare_turn([], done());
    let younger = server.send_for_task(msg("done later")).await;
    clock.advance(SPAN / 2 + Duration::from_secs(1));
    until_purged(&server, &finished.id).await;
    assert_eq!(server.get(&open.id).await.unwrap().status.state, TaskState::InputRequired);
    assert_eq!(server.get(&younger.id).await.unwrap().status.state, TaskState::Completed);
    assert_eq!(server.list(ListTasks::default()).await.unwrap().total_size, 2);
}

#[tokio::test]
async fn retention_of_a_new_catalog_applies_to_stored_tasks() {
    let clock = clock();
    // The interval of the purger is derived from the shortest time.
    let server = Setup::plain().clock(&clock).interrupted_ttl(SPAN).open();
    server.agent.prepare_turn([], done());
    let finished = server.send_for_task(msg("done at once")).await;
    clock.advance(SPAN * 2);
    assert_eq!(server.get(&finished.id).await.unwrap().status.state, TaskState::Completed);
    let catalog = server.engine.catalog().load();
    let short = Retention { max_age: SPAN, ..Retention::default() };
    let agents = catalog.agents(DEFAULT_TENANT);
    let agents = agents.map(|registered| RegisteredAgent::clone(registered).with_retention(short));
    server.engine.catalog().swap(Catalog::new("scripted", agents));
    until_purged(&server, &finished.id).await;
}

#[tokio::test]
async fn max_tasks_purges_the_oldest_finished_tasks() {
    let clock = clock();
    let retention = Retention { max_age: SPAN, max_tasks: Some(3), ..Retention::default() };
    let server = Setup::plain().clock(&clock).retention(retention).open();
    server.agent.prepare_turn([], need_input("which?"));
    let open = server.send_for_task(msg("waits")).await;
    let mut sent = Vec::new();
    for _ in 0..5 {
        clock.advance(Duration::from_millis(1));
        server.agent.prepare_turn([], done());
        sent.push(server.send_for_task(msg("done")).await.id);
    }
    until_purged(&server, &sent[0]).await;
    until_purged(&server, &sent[1]).await;
    for kept in &sent[2..] {
        assert!(server.get(kept).await.is_ok());
    }
    assert_eq!(server.get(&open.id).await.unwrap().status.state, TaskState::InputRequired);
}

#[tokio::test]
async fn task_waiting_longer_than_its_interrupted_ttl_fails() {
    let clock = clock();
    let server = Setup::plain().clock(&clock).interrupted_ttl(SPAN).open();
    server.agent.prepare_turn([], need_input("which?"));
    let asked = server.send_for_task(msg("waits")).await;
    let mut watching = server.subscribe(&asked.id).await.unwrap();
    clock.advance(SPAN + Duration::from_secs(1));
    let (_, _) = with_timeout(watching.rest()).await;
    let failed = server.get(&asked.id).await.unwrap();
    assert_eq!(failed.status.state, TaskState::Failed);
    assert_eq!(status_text(&failed).as_deref(), Some("timed out waiting for the client's reply"));
    assert_eq!(reason(&failed).as_deref(), Some("input_timeout"));
}

#[tokio::test]
async fn many_waiting_tasks_fail_without_a_pause_between_batches() {
    const TASKS: usize = 400;
    let clock = clock();
    // The purger pauses for five seconds when it has nothing more to do. A longer jump of the clock would be doubted.
    let open =
        |folder| Setup::plain().clock(&clock).interrupted_ttl(Duration::from_secs(100)).open_at(folder);
    let folder = tempfile::tempdir().unwrap();
    {
        let server = open(folder.path());
        for _ in 0..TASKS {
            server.agent.prepare_turn([], need_input("which?"));
            server.send_for_task(msg("waits")).await;
        }
        with_timeout(server.engine.drain(Duration::ZERO)).await;
    }
    clock.advance(Duration::from_secs(101));
    let server = open(folder.path());
    let failed = ListTasks { status: Some(TaskState::Failed), ..ListTasks::default() };
    with_timeout(async {
        while server.list(failed.clone()).await.unwrap().total_size < TASKS as u64 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn reopened_task_is_not_purged() {
    let clock = clock();
    let retention = Retention { max_age: SPAN, max_tasks: Some(2), ..Retention::default() };
    let mut server = Setup::plain().clock(&clock).retention(retention).open();
    let draft = || call_in(Dialect::Draft);
    server.agent.prepare_turn([], done());
    let first = task(reply(server.send_as(draft(), msg("hello").client_task("t-1")).await.unwrap()));
    server.agent.turn().await;
    clock.advance(SPAN / 2);
    server.send_as(draft(), msg("more").client_task("t-1").return_immediately()).await.unwrap();
    let turn = server.agent.turn().await;
    // Tasks that end now are purged in time; this one is open, however long ago it ended first.
    for _ in 0..2 {
        server.agent.prepare_turn([], done());
        let marker = server.send_for_task(msg("a marker")).await.id;
        clock.advance(SPAN * 2);
        until_purged(&server, &marker).await;
        assert_eq!(server.get(&first.id).await.unwrap().status.state, TaskState::Working);
    }
    // Its retention starts again with its next terminal state.
    turn.end(done());
    server.store.until("finish", 4).await;
    clock.advance(SPAN / 2);
    server.agent.turn().await;
    server.agent.turn().await;
    assert_eq!(server.get(&first.id).await.unwrap().history.len(), 2);
    clock.advance(SPAN);
    until_purged(&server, &first.id).await;
}

#[tokio::test]
async fn keys_of_a_purged_task_are_kept_longer() {
    let clock = clock();
    let retention = Retention { max_age: SPAN, keys: SPAN * 2, ..Retention::default() };
    let server = Setup::overlapping().clock(&clock).retention(retention).open();
    let message = msg("hello");
    server.agent.prepare_turn([], done());
    let first = server.send_for_task(message.clone()).await;
    // Purged late, as after a downtime: the key retention starts at the purge.
    clock.advance(SPAN * 10);
    until_purged(&server, &first.id).await;
    server.agent.prepare_turn([], done());
    assert_eq!(refused(server.send(message.clone()).await), ErrorKind::TaskNotFound);
    // Just before its keys expire; a marker task shows that the purger has run.
    server.agent.clear_prepared();
    server.agent.prepare_turn([], done());
    let marker = server.send_for_task(msg("a marker")).await.id;
    clock.advance(SPAN + SPAN / 4);
    until_purged(&server, &marker).await;
    server.agent.prepare_turn([], done());
    assert_eq!(refused(server.send(message.clone()).await), ErrorKind::TaskNotFound);
    // After that it is a new message.
    clock.advance(SPAN);
    let again = with_timeout(async {
        loop {
            server.agent.clear_prepared();
            server.agent.prepare_turn([], done());
            if let Ok(reply) = server.send(message.clone()).await {
                break task(reply);
            }
            tokio::task::yield_now().await;
        }
    });
    assert_ne!(again.await.id, first.id);
}

#[tokio::test]
async fn new_task_over_the_open_task_limit_is_rejected() {
    let retention = Retention { max_tasks: Some(2), ..Retention::default() };
    let server = Setup::plain().retention(retention).open();
    let mut open = Vec::new();
    let one = msg("one");
    for message in [one.clone(), msg("two")] {
        server.agent.prepare_turn([], need_input("which?"));
        open.push(server.send_for_task(message).await);
    }
    assert_eq!(refused(server.send(msg("three")).await), ErrorKind::RateLimited);
    // A retry is not a new task, and a reused key gives its usual error.
    let call = || Call { idempotency_key: Some("once".into()), ..call_in(Dialect::V1) };
    assert_eq!(refused(server.send_as(call(), msg("four")).await), ErrorKind::RateLimited);
    let again = server.send_as(call_in(Dialect::V1), one.clone()).await.unwrap();
    assert!(matches!(again, CallResponse::Noted(ResponseNote::Replayed, _)));
    assert_eq!(task(reply(again)), open[0]);
    let Message { id, .. } = SendMessage::from(one).message;
    let reused = server.send(msg("something else").id(id.as_str())).await;
    assert_eq!(refused(reused), ErrorKind::MessageIdReused);
    // Open tasks can continue, and make space when they end.
    server.agent.prepare_turn([], done());
    server.send_for_task(msg("blue").to(&open[0].id)).await;
    server.agent.prepare_turn([], done());
    assert_eq!(server.send_for_task(msg("three")).await.status.state, TaskState::Completed);
    assert_eq!(server.get(&open[1].id).await.unwrap().status.state, TaskState::InputRequired);
}

#[tokio::test]
async fn open_task_limit_is_per_tenant() {
    let server = Setup::plain().with("other", Other).open();
    let retention = Retention { max_tasks: Some(1), ..Retention::default() };
    let registered = server.engine.catalog().load().get(DEFAULT_TENANT, "other").cloned().unwrap();
    let limited = || [RegisteredAgent::clone(&registered).with_retention(retention)];
    let catalog = Catalog::new("other", limited()).with_tenant("second", "other", limited());
    server.engine.catalog().swap(catalog);
    let ask = async |tenant: &str| {
        let scope = Scope::anonymous(tenant, "other");
        server.call(scope, Operation::SendMessage(msg("ask").into())).await
    };
    assert!(ask(DEFAULT_TENANT).await.is_ok());
    assert_eq!(refused(ask(DEFAULT_TENANT).await), ErrorKind::RateLimited);
    assert!(ask("second").await.is_ok(), "the other tenant's task does not count");
    assert_eq!(refused(ask("second").await), ErrorKind::RateLimited);
}

/// Asks for input or completes, depending on the message.
struct Other;

impl Agent for Other {
    async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
        Ok(if turn.text() == "ask" { Outcome::ask("which?") } else { Outcome::done() })
    }
}

#[tokio::test]
async fn tasks_of_an_unregistered_agent_are_purged() {
    let clock = clock();
    let folder = tempfile::tempdir().unwrap();
    let other = || Scope::anonymous("default", "other");
    let mut ids = Vec::new();
    {
        let server = Setup::plain().clock(&clock).with("other", Other).open_at(folder.path());
        for text in ["do", "ask"] {
            let answer = server.call(other(), Operation::SendMessage(msg(text).into())).await.unwrap();
            ids.push(task(reply(answer)).id);
        }
        with_timeout(server.engine.drain(Duration::ZERO)).await;
    }
    let kept = Retention { max_age: SPAN, ..Retention::default() };
    let server = Setup::plain().clock(&clock).unregistered(kept).interrupted_ttl(SPAN).open_at(folder.path());
    let row = async |id: &TaskId| {
        let lookup = Lookup { ours: server.store.ids().parse_task(id), name: id.clone() };
        server.store.find(&other(), lookup).await.unwrap().map(|found| found.row.state)
    };
    clock.advance(SPAN / 2);
    assert_eq!(row(&ids[0]).await, Some(TaskState::Completed));
    assert_eq!(row(&ids[1]).await, Some(TaskState::InputRequired));
    clock.advance(SPAN);
    with_timeout(async {
        while row(&ids[0]).await.is_some() || row(&ids[1]).await != Some(TaskState::Failed) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
