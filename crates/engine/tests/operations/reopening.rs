//! In the draft dialect a message to a completed or failed task reopens it: its next turn starts.

use a2ad_engine::{Call, Dedupe, Outcome};
use protocol::{Dialect, ErrorKind, ListTasks, Role, Task, TaskState};

use crate::common::{
    MessageBuilder, Setup, TestServer, artifact, artifacts, call_in, done, done_with, failed, history, join,
    msg, need_input, refused, reply, save, status_text, task, with_timeout,
};

const DRAFT: Dialect = Dialect::Draft;

async fn send(server: &TestServer, msg: MessageBuilder) -> Task {
    task(reply(server.send_as(call_in(DRAFT), msg).await.unwrap()))
}

/// Number of tasks in a state, and in total.
async fn counted(server: &TestServer, state: TaskState) -> (u64, u64) {
    (server.count(state).await, server.list(ListTasks::default()).await.unwrap().total_size)
}

#[tokio::test]
async fn message_reopens_a_finished_task() {
    for setup in [Setup::overlapping, Setup::plain] {
        for (outcome, state) in [(done_with("end"), TaskState::Completed), (failed("end"), TaskState::Failed)]
        {
            let mut server = setup().open();
            server.agent.prepare_turn([artifact("a", "one"), save("place")], outcome);
            let first = send(&server, msg("hello").client_task("t-1")).await;
            assert_eq!((first.status.state, server.row(&first.id).await.turn), (state, 1));
            let before = server.agent.turn().await;

            server.agent.prepare_turn([artifact("b", "two")], done_with("again"));
            let second = send(&server, msg("more").client_task("t-1")).await;
            assert_eq!((&second.id, &second.context_id), (&first.id, &first.context_id));
            assert_eq!(second.status.state, TaskState::Completed);
            assert_eq!(status_text(&second).as_deref(), Some("again"));
            assert_eq!(history(&second), ["hello", "end", "more", "again"]);
            assert_eq!(artifacts(&second), [("a".into(), "one".into()), ("b".into(), "two".into())]);
            assert_eq!(server.get(&first.id).await.unwrap(), second);
            let row = server.row(&first.id).await;
            assert_eq!((row.turn, row.unanswered, row.deaths), (2, 0, 0));
            assert_eq!(counted(&server, TaskState::Completed).await, (1, 1));

            let turn = server.agent.turn().await;
            assert_eq!((turn.message.text().as_str(), turn.attempt), ("more", 1));
            let messages: Vec<_> =
                turn.history.iter().map(|messages| (messages.role, messages.text())).collect();
            assert_eq!(messages, [(Role::User, "hello".into()), (Role::Agent, "end".into())]);
            assert_eq!(turn.saved_text(), Some("place"));
            assert_ne!(turn.idempotency_key, before.idempotency_key);
            // One terminal event for each turn.
            let log = server.store.log(&row).await;
            assert_eq!(log.iter().filter(|state| state.is_some_and(TaskState::is_terminal)).count(), 2);
        }
    }
}

#[tokio::test]
async fn reopened_task_is_listed_as_open_and_can_be_subscribed() {
    let mut server = Setup::plain().open();
    server.agent.prepare_turn([artifact("a", "one")], done());
    let first = send(&server, msg("hello").client_task("t-1")).await;
    server.agent.turn().await;
    let mut frames = server.stream_in(DRAFT, msg("more").client_task("t-1")).await.unwrap();
    assert_eq!(frames.next().await, "5 task working");
    assert_eq!(frames.artifact_ids(), ["a"]);
    let turn = server.agent.turn().await;
    assert_eq!(counted(&server, TaskState::Completed).await, (0, 1));
    assert_eq!(counted(&server, TaskState::Working).await, (1, 1));
    let mut watching = server.subscribe(&first.id).await.unwrap();
    assert_eq!(watching.next().await, "5 task working");
    turn.send([artifact("b", "two")]);
    turn.end(failed("no"));
    let rest = ["6 artifact b: two", "7 failed: no"];
    assert_eq!(frames.lines().await, rest);
    assert_eq!(watching.lines().await, rest);
    assert_eq!(counted(&server, TaskState::Failed).await, (1, 1));
    assert_eq!(refused(server.subscribe(&first.id).await), ErrorKind::UnsupportedOperation);
}

#[tokio::test]
async fn task_can_be_reopened_many_times() {
    let mut server = Setup::overlapping().open();
    let (mut messages, mut expected) = (Vec::new(), Vec::new());
    for turn in 1..=20 {
        let text = format!("message {turn}");
        server.agent.prepare_turn([artifact("a", &text)], done());
        let updated = send(&server, msg(&text).client_task("t-1")).await;
        messages.push(text.clone());
        // Artifacts of earlier turns are unchanged; each turn adds its own.
        expected.push((if turn == 1 { "a".into() } else { format!("a-{turn}") }, text));
        assert_eq!((history(&updated), artifacts(&updated)), (messages.clone(), expected.clone()));
        assert_eq!(server.row(&updated.id).await.turn, turn);
        server.agent.turn().await;
    }
}

#[tokio::test]
async fn reopened_turn_without_a_slot_is_queued() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut server = setup.slots(1).open();
        server.agent.prepare_turn([artifact("a", "one"), save("place")], done());
        let first = send(&server, msg("hello").client_task("t-1")).await;
        server.agent.turn().await;
        let (_, running) = server.start_task("something else").await;
        let queued = send(&server, msg("more").client_task("t-1").return_immediately()).await;
        assert_eq!(queued.status.state, TaskState::Working);
        assert_eq!(artifacts(&queued), artifacts(&first));
        assert_eq!(server.row(&first.id).await.turn, 2);
        assert!(server.agent.is_idle());
        running.end(done());
        let turn = server.agent.turn().await;
        assert_eq!((turn.message.text().as_str(), turn.attempt, turn.history.len()), ("more", 1, 1));
        assert_eq!(turn.saved_text(), Some("place"));
        let mut frames = server.subscribe(&first.id).await.unwrap();
        assert_eq!(frames.next().await, "5 task working");
        turn.end(done());
        assert_eq!(frames.lines().await, ["6 completed"]);
    }
}

#[tokio::test]
async fn reopened_task_can_wait_for_input_and_be_canceled() {
    let server = Setup::overlapping().open();
    server.agent.prepare_turn([], done());
    let first = send(&server, msg("hello").client_task("t-1")).await;
    assert_eq!(refused(server.cancel(&first.id).await), ErrorKind::TaskNotCancelable);
    server.agent.prepare_turn([], need_input("which?"));
    let asked = send(&server, msg("more").client_task("t-1")).await;
    assert_eq!(asked.status.state, TaskState::InputRequired);
    server.agent.prepare_turn([], need_input("sure?"));
    send(&server, msg("blue").client_task("t-1")).await;
    assert_eq!(server.row(&first.id).await.turn, 2);
    let canceled = server.cancel(&first.id).await.unwrap();
    assert_eq!(canceled.status.state, TaskState::Canceled);
    let again = server.send_as(call_in(DRAFT), msg("red").client_task("t-1")).await;
    assert_eq!(refused(again), ErrorKind::UnsupportedOperation);
    assert_eq!(server.get(&first.id).await.unwrap(), canceled);
}

#[tokio::test]
async fn canceled_and_rejected_tasks_are_never_reopened() {
    let mut server = Setup::plain().open();
    server.agent.prepare_turn([], Outcome::Rejected { message: None });
    let rejected = send(&server, msg("hello").client_task("rejected")).await;
    server.agent.turn().await;
    send(&server, msg("hello").client_task("canceled").return_immediately()).await;
    server.agent.turn().await;
    let canceled = server.cancel(&"canceled".into()).await.unwrap();
    for over in [rejected, canceled] {
        for dialect in Dialect::ALL {
            let more = server.send_as(call_in(dialect), msg("more").to(&over.id)).await;
            assert_eq!(refused(more), ErrorKind::UnsupportedOperation, "{dialect:?}");
        }
        assert_eq!(server.get(&over.id).await.unwrap(), over);
        assert_eq!(server.row(&over.id).await.turn, 1);
    }
    assert!(server.agent.is_idle());
}

#[tokio::test]
async fn only_draft_reopens_tasks() {
    let mut server = Setup::overlapping().open();
    for outcome in [done(), failed("no")] {
        server.agent.prepare_turn([], outcome);
        let over = send(&server, msg("hello").client_task(&uuid::Uuid::new_v4().to_string())).await;
        server.agent.turn().await;
        for dialect in [Dialect::V03, Dialect::V03Proto, Dialect::V1] {
            // Not even with the same content: these dialects detect retries by message id.
            for text in ["more", "hello"] {
                let more = server.send_as(call_in(dialect), msg(text).to(&over.id)).await;
                assert_eq!(refused(more), ErrorKind::UnsupportedOperation, "{dialect:?}");
            }
        }
        assert_eq!(server.get(&over.id).await.unwrap(), over);
    }
    assert!(server.agent.is_idle());
}

#[tokio::test]
async fn without_deduplication_identical_content_reopens_the_task() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let server = setup.dedupe(Dedupe::Off).open();
        for turn in 1..=3 {
            server.agent.prepare_turn([], done());
            let answer = server.send_as(call_in(DRAFT), msg("hello").client_task("t-1")).await.unwrap();
            assert!(matches!(answer, a2ad_engine::CallResponse::Reply(_)));
            assert_eq!(history(&task(reply(answer))).len(), turn);
            assert_eq!(server.row(&"t-1".into()).await.turn, i64::try_from(turn).unwrap());
        }
        // Messages with an `Idempotency-Key` are still deduplicated.
        let keyed = || Call { idempotency_key: Some("key".into()), ..call_in(DRAFT) };
        server.agent.prepare_turn([], done());
        let first = server.send_as(keyed(), msg("hello").client_task("t-1")).await.unwrap();
        let second = server.send_as(keyed(), msg("hello").client_task("t-1")).await.unwrap();
        assert!(matches!(second, a2ad_engine::CallResponse::Noted(a2ad_engine::ResponseNote::Replayed, _)));
        assert_eq!(reply(first), reply(second));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_identical_messages_reopen_a_task_once() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let server = setup.open();
        server.agent.prepare_turn([], done());
        send(&server, msg("message 1").client_task("t-1")).await;
        for turn in 2..=10 {
            const CALLS: usize = 20;
            let message = msg(&format!("message {turn}")).client_task("t-1");
            for _ in 0..CALLS {
                server.agent.prepare_turn([artifact("a", "b")], done());
            }
            let calls: Vec<_> =
                (0..CALLS).map(|_| server.spawn_send_as(call_in(DRAFT), message.clone())).collect();
            let mut answers = Vec::new();
            for call in calls {
                answers.push(task(reply(join(call).await.unwrap())));
            }
            assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
            assert_eq!(history(&answers[0]).len(), turn);
            assert_eq!(server.row(&"t-1".into()).await.turn, i64::try_from(turn).unwrap());
            server.agent.clear_prepared();
        }
    }
}

#[tokio::test]
async fn concurrent_different_messages_are_two_consecutive_turns() {
    let mut server = Setup::overlapping().open();
    server.agent.prepare_turn([], done());
    send(&server, msg("hello").client_task("t-1")).await;
    server.agent.turn().await;
    // Both are decided on the terminal task, and the first turn has ended again when the second is committed.
    server.store.block_commits();
    let mut calls = Vec::new();
    for (number, text) in ["one", "two"].into_iter().enumerate() {
        server.agent.prepare_turn([artifact(text, text)], done());
        calls.push(server.spawn_send_as(call_in(DRAFT), msg(text).client_task("t-1")));
        server.store.until_blocked(number + 1).await;
        server.agent.turn().await;
    }
    server.agent.prepare_turn([artifact("two", "two")], done());
    server.store.unblock_commits();
    let mut answers = Vec::new();
    for call in calls {
        answers.push(task(reply(join(call).await.unwrap())));
    }
    let now = server.get(&"t-1".into()).await.unwrap();
    assert_eq!((history(&now).len(), artifacts(&now).len()), (3, 2));
    assert_eq!(answers[0].history.len(), 2);
    assert_eq!(answers[1], now, "the second reply lacks the turn before it");
}

#[tokio::test]
async fn lost_race_to_reopen_does_not_unregister_the_winning_run() {
    let mut server = Setup::plain().open();
    server.agent.prepare_turn([], done());
    send(&server, msg("hello").client_task("t-1")).await;
    server.agent.turn().await;
    server.store.block_commits();
    let first = server.spawn_send_as(call_in(DRAFT), msg("one").client_task("t-1"));
    server.store.until_blocked(1).await;
    let second = server.spawn_send_as(call_in(DRAFT), msg("two").client_task("t-1"));
    server.store.until_blocked(2).await;
    server.store.unblock_commits();
    let winner = server.agent.turn().await;
    server.store.until("queuemessage", 1).await;
    server.cancel(&"t-1".into()).await.unwrap();
    with_timeout(winner.cancel.cancelled()).await;
    for call in [first, second] {
        assert_eq!(task(reply(join(call).await.unwrap())).status.state, TaskState::Canceled);
    }
}
