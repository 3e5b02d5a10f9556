//! A task that waits for input continues with a follow-up message.

use a2ad_engine::{CallResponse, Outcome, Scope};
use protocol::{ErrorKind, GetTask, Operation, Role, TaskId, TaskState};

use crate::common::{
    Setup, agent_message, artifact, artifacts, done, failed, history, join, msg, need_input, refusal,
    refused, save, status_text,
};

#[tokio::test]
async fn follow_up_continues_the_same_task() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut server = setup.open();
        server.agent.prepare_turn([save("place"), artifact("draft", "a")], need_input("which?"));
        let asked = server.send_for_task(msg("one of them")).await;
        assert_eq!(asked.status.state, TaskState::InputRequired);
        assert_eq!(status_text(&asked).as_deref(), Some("which?"));
        let first = server.agent.turn().await;

        server.agent.prepare_turn([artifact("final", "b")], done());
        let updated = server.send_for_task(msg("blue").to(&asked.id)).await;
        assert_eq!((&updated.id, &updated.context_id), (&asked.id, &asked.context_id));
        assert_eq!(updated.status.state, TaskState::Completed);
        assert_eq!(artifacts(&updated), [("draft".into(), "a".into()), ("final".into(), "b".into())]);
        assert_eq!(history(&updated), ["one of them", "which?", "blue"]);
        assert_eq!(server.get(&updated.id).await.unwrap(), updated);

        let second = server.agent.turn().await;
        assert_eq!((&second.task_id, &second.context_id), (&first.task_id, &first.context_id));
        assert_eq!(second.message.text(), "blue");
        let before: Vec<_> = second.history.iter().map(|messages| (messages.role, messages.text())).collect();
        assert_eq!(before, [(Role::User, "one of them".into()), (Role::Agent, "which?".into())]);
        assert_eq!(second.saved_text(), Some("place"));
        assert_eq!((first.attempt, second.attempt), (1, 1));
        assert_ne!(first.idempotency_key, second.idempotency_key);
    }
}

#[tokio::test]
async fn turns_with_equal_message_ids_have_different_keys() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut server = setup.open();
        let mut keys = std::collections::HashSet::new();
        server.agent.prepare_turn([], need_input("which?"));
        let asked = server.send_for_task(msg("one of them").id("1")).await;
        keys.insert(server.agent.turn().await.idempotency_key.clone());
        for text in ["blue", "red"] {
            server.agent.prepare_turn([], need_input("which else?"));
            server.send(msg(text).id("1").to(&asked.id)).await.unwrap();
            assert!(keys.insert(server.agent.turn().await.idempotency_key.clone()), "{keys:?}");
        }
    }
}

#[tokio::test]
async fn stream_ends_at_an_interrupted_state_and_the_next_starts_with_the_follow_up() {
    let server = Setup::plain().open();
    server.agent.prepare_turn([], Outcome::NeedAuth { message: agent_message("who are you?") });
    let mut frames = server.stream(msg("hello")).await.unwrap();
    assert_eq!(frames.lines().await, ["1 task submitted", "2 auth_required: who are you?"]);
    let id = server.list(protocol::ListTasks::default()).await.unwrap().tasks[0].id.clone();
    server.agent.prepare_turn([artifact("a", "b")], done());
    let mut frames = server.stream(msg("me").to(&id)).await.unwrap();
    assert_eq!(frames.lines().await, ["3 task working", "4 artifact a: b", "5 completed"]);
}

#[tokio::test]
async fn follow_up_with_another_context_id_is_rejected() {
    let server = Setup::overlapping().open();
    server.agent.prepare_turn([], need_input("which?"));
    let asked = server.send_for_task(msg("one of them")).await;
    let refusal = refusal(server.send(msg("blue").to(&asked.id).context("elsewhere")).await);
    assert_eq!(refusal.kind, ErrorKind::InvalidParams);
    assert_eq!(refusal.violations[0].field, "message.contextId");
    assert_eq!(server.get(&asked.id).await.unwrap(), asked);

    server.agent.prepare_turn([], done());
    let updated = server.send_for_task(msg("blue").to(&asked.id).context(asked.context_id.clone())).await;
    assert_eq!(updated.status.state, TaskState::Completed);
}

#[tokio::test]
async fn terminal_task_rejects_messages() {
    let mut server = Setup::overlapping().open();
    let mut over = Vec::new();
    for outcome in [done(), failed("broken"), Outcome::Rejected { message: None }] {
        server.agent.prepare_turn([], outcome);
        over.push(server.send_for_task(msg("hello")).await);
        server.agent.turn().await;
    }
    let (id, _turn) = server.start_task("hold").await;
    over.push(server.cancel(&id).await.unwrap());
    for task in over {
        let refusal = refusal(server.send(msg("more").to(&task.id)).await);
        assert_eq!(refusal.kind, ErrorKind::UnsupportedOperation, "{:?}", task.status.state);
        assert_eq!(server.get(&task.id).await.unwrap(), task);
    }
    assert!(server.agent.is_idle());
}

#[tokio::test]
async fn task_of_another_scope_is_not_found() {
    let server = Setup::overlapping().with("other", NeverReplies).open();
    server.agent.prepare_turn([], need_input("which?"));
    let asked = server.send_for_task(msg("one of them")).await;
    for id in
        [TaskId::from("no-such-task"), TaskId::from(""), TaskId::from(asked.id.as_str().replace('_', "-"))]
    {
        assert_eq!(refused(server.send(msg("hi").to(&id)).await), ErrorKind::TaskNotFound);
        assert_eq!(refused(server.get(&id).await), ErrorKind::TaskNotFound);
    }
    for scope in [Scope::anonymous("default", "other"), Scope::anonymous("elsewhere", "scripted")] {
        let get = Operation::GetTask(GetTask { id: asked.id.clone(), history_length: None, tenant: None });
        assert_eq!(refused(server.call(scope.clone(), get).await), ErrorKind::TaskNotFound);
        let send = Operation::SendMessage(msg("blue").to(&asked.id).into());
        assert_eq!(refused(server.call(scope, send).await), ErrorKind::TaskNotFound);
    }
    let nobody =
        server.call(Scope::anonymous("default", "nobody"), Operation::SendMessage(msg("hi").into())).await;
    assert_eq!(refused::<CallResponse>(nobody), ErrorKind::AgentDisabled);
    assert_eq!(server.get(&asked.id).await.unwrap(), asked);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_follow_ups_are_both_recorded() {
    let mut server = Setup::plain().open();
    for _ in 0..20 {
        server.agent.prepare_turn([], need_input("which?"));
        let asked = server.send_for_task(msg("one of them")).await;
        server.agent.turn().await;
        let calls =
            [server.spawn_send(msg("blue").to(&asked.id)), server.spawn_send(msg("red").to(&asked.id))];
        let turn = server.agent.turn().await;
        // One of them starts the turn, the other is sent to the working task; both are recorded before the
        // run ends.
        let mut frames = server.subscribe(&asked.id).await.unwrap();
        while frames.next().await != "4 working" && server.get(&asked.id).await.unwrap().history.len() < 4 {}
        turn.end(done());
        for call in calls {
            join(call).await.unwrap();
        }
        let mut messages = history(&server.get(&asked.id).await.unwrap());
        messages.sort();
        assert_eq!(messages, ["blue", "one of them", "red", "which?"]);
    }
}

/// An agent that stays pending forever.
struct NeverReplies;

impl a2ad_engine::Agent for NeverReplies {
    async fn run(&self, _: a2ad_engine::Turn) -> a2ad_engine::AgentResult<Outcome> {
        std::future::pending().await
    }
}
