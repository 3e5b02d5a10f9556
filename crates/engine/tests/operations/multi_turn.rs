//! A task that asks goes on when it is answered.

use a2ad_engine::{Answer, Outcome, Scope};
use protocol::{ErrorKind, GetTask, Operation, Role, TaskId, TaskState};

use crate::common::{
    Setup, artifact, artifacts, ask, done, failed, history, joined, refusal, refused, save, say, status_text,
    voice,
};

#[tokio::test]
async fn an_answered_question_goes_on_in_the_same_task() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut house = setup.open();
        house.stage.prepare_turn([save("place"), artifact("draft", "a")], ask("which?"));
        let asked = house.send_for_task(say("one of them")).await;
        assert_eq!(asked.status.state, TaskState::InputRequired);
        assert_eq!(status_text(&asked).as_deref(), Some("which?"));
        let first = house.stage.turn().await;

        house.stage.prepare_turn([artifact("final", "b")], done());
        let told = house.send_for_task(say("blue").to(&asked.id)).await;
        assert_eq!((&told.id, &told.context_id), (&asked.id, &asked.context_id));
        assert_eq!(told.status.state, TaskState::Completed);
        assert_eq!(artifacts(&told), [("draft".into(), "a".into()), ("final".into(), "b".into())]);
        assert_eq!(history(&told), ["one of them", "which?", "blue"]);
        assert_eq!(house.get(&told.id).await.unwrap(), told);

        let second = house.stage.turn().await;
        assert_eq!((&second.task_id, &second.context_id), (&first.task_id, &first.context_id));
        assert_eq!(second.message.text(), "blue");
        let before: Vec<_> = second.history.iter().map(|said| (said.role, said.text())).collect();
        assert_eq!(before, [(Role::User, "one of them".into()), (Role::Agent, "which?".into())]);
        assert_eq!(second.saved.as_deref(), Some(b"place".as_slice()));
        assert_eq!((first.attempt, second.attempt), (1, 1));
        assert_ne!(first.idempotency_key, second.idempotency_key);
    }
}

#[tokio::test]
async fn turns_whose_messages_share_an_id_have_keys_of_their_own() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut house = setup.open();
        let mut keys = std::collections::HashSet::new();
        house.stage.prepare_turn([], ask("which?"));
        let asked = house.send_for_task(say("one of them").id("1")).await;
        keys.insert(house.stage.turn().await.idempotency_key.clone());
        for text in ["blue", "red"] {
            house.stage.prepare_turn([], ask("which else?"));
            house.send(say(text).id("1").to(&asked.id)).await.unwrap();
            assert!(keys.insert(house.stage.turn().await.idempotency_key.clone()), "{keys:?}");
        }
    }
}

#[tokio::test]
async fn a_stream_ends_when_the_agent_asks_and_the_next_begins_with_the_answer() {
    let house = Setup::plain().open();
    house.stage.prepare_turn([], Outcome::NeedAuth { message: voice("who are you?") });
    let mut frames = house.stream(say("hello")).await.unwrap();
    assert_eq!(frames.lines().await, ["1 task submitted", "2 auth_required: who are you?"]);
    let id = house.list(protocol::ListTasks::default()).await.unwrap().tasks[0].id.clone();
    house.stage.prepare_turn([artifact("a", "b")], done());
    let mut frames = house.stream(say("me").to(&id)).await.unwrap();
    assert_eq!(frames.lines().await, ["3 task working", "4 artifact a: b", "5 completed"]);
}

#[tokio::test]
async fn an_answer_in_another_context_is_refused_by_name() {
    let house = Setup::overlapping().open();
    house.stage.prepare_turn([], ask("which?"));
    let asked = house.send_for_task(say("one of them")).await;
    let refusal = refusal(house.send(say("blue").to(&asked.id).context("elsewhere")).await);
    assert_eq!(refusal.kind, ErrorKind::InvalidParams);
    assert_eq!(refusal.violations[0].field, "message.contextId");
    assert_eq!(house.get(&asked.id).await.unwrap(), asked);

    house.stage.prepare_turn([], done());
    let told = house.send_for_task(say("blue").to(&asked.id).context(asked.context_id.clone())).await;
    assert_eq!(told.status.state, TaskState::Completed);
}

#[tokio::test]
async fn a_task_that_is_over_takes_no_more_messages() {
    let mut house = Setup::overlapping().open();
    let mut over = Vec::new();
    for outcome in [done(), failed("broken"), Outcome::Rejected { message: None }] {
        house.stage.prepare_turn([], outcome);
        over.push(house.send_for_task(say("hello")).await);
        house.stage.turn().await;
    }
    let (id, _turn) = house.begin("hold").await;
    over.push(house.cancel(&id).await.unwrap());
    for task in over {
        let refusal = refusal(house.send(say("more").to(&task.id)).await);
        assert_eq!(refusal.kind, ErrorKind::UnsupportedOperation, "{:?}", task.status.state);
        assert_eq!(house.get(&task.id).await.unwrap(), task);
    }
    assert!(house.stage.is_quiet());
}

#[tokio::test]
async fn what_lies_in_another_scope_does_not_exist() {
    let house = Setup::overlapping().with("other", Silent).open();
    house.stage.prepare_turn([], ask("which?"));
    let asked = house.send_for_task(say("one of them")).await;
    for id in
        [TaskId::from("no-such-task"), TaskId::from(""), TaskId::from(asked.id.as_str().replace('_', "-"))]
    {
        assert_eq!(refused(house.send(say("hi").to(&id)).await), ErrorKind::TaskNotFound);
        assert_eq!(refused(house.get(&id).await), ErrorKind::TaskNotFound);
    }
    for scope in [Scope::anonymous("default", "other"), Scope::anonymous("elsewhere", "scripted")] {
        let get = Operation::GetTask(GetTask { id: asked.id.clone(), history_length: None, tenant: None });
        assert_eq!(refused(house.call(scope.clone(), get).await), ErrorKind::TaskNotFound);
        let send = Operation::SendMessage(say("blue").to(&asked.id).into());
        assert_eq!(refused(house.call(scope, send).await), ErrorKind::TaskNotFound);
    }
    let nobody =
        house.call(Scope::anonymous("default", "nobody"), Operation::SendMessage(say("hi").into())).await;
    assert_eq!(refused::<Answer>(nobody), ErrorKind::AgentDisabled);
    assert_eq!(house.get(&asked.id).await.unwrap(), asked);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_answers_at_once_are_both_kept() {
    let mut house = Setup::plain().open();
    for _ in 0..20 {
        house.stage.prepare_turn([], ask("which?"));
        let asked = house.send_for_task(say("one of them")).await;
        house.stage.turn().await;
        let calls = [house.send_aside(say("blue").to(&asked.id)), house.send_aside(say("red").to(&asked.id))];
        let turn = house.stage.turn().await;
        // One of them is what the run answers, the other is said to a task at work: both are recorded first.
        let mut frames = house.subscribe(&asked.id).await.unwrap();
        while frames.next().await != "4 working" && house.get(&asked.id).await.unwrap().history.len() < 4 {}
        turn.end(done());
        for call in calls {
            joined(call).await.unwrap();
        }
        let mut said = history(&house.get(&asked.id).await.unwrap());
        said.sort();
        assert_eq!(said, ["blue", "one of them", "red", "which?"]);
    }
}

/// An agent that never says anything.
struct Silent;

impl a2ad_engine::Agent for Silent {
    fn run(
        &self,
        _turn: a2ad_engine::Turn,
        _out: a2ad_engine::Updates,
    ) -> futures_util::future::BoxFuture<'static, Outcome> {
        Box::pin(std::future::pending())
    }
}
