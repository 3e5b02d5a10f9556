//! Deduplication: a retried message is recorded once.

use std::time::Duration;

use a2ad_engine::{Call, CallResponse, ResponseNote};
use protocol::{Dialect, ErrorKind, ListTasks, Operation, Reply, TaskState};

use crate::common::{
    MessageBuilder, Setup, TestServer, artifact, bare_message, call_in, done, frames, history, join, msg,
    need_input, refusal, refused, reply, scope, task, with_timeout,
};

async fn send(server: &TestServer, msg: MessageBuilder) -> (bool, Reply) {
    let answer = server.call(scope(), Operation::SendMessage(msg.into())).await.unwrap();
    (matches!(answer, CallResponse::Noted(ResponseNote::Replayed, _)), reply(answer))
}

async fn tasks(server: &TestServer) -> u64 {
    server.list(ListTasks::default()).await.unwrap().total_size
}

#[tokio::test]
async fn retry_gets_the_same_reply_and_no_second_run() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut server = setup.open();
        for updates in [vec![artifact("a", "b")], vec![bare_message("a bare answer")]] {
            let message = msg("hello");
            server.agent.prepare_turn(updates, done());
            let first = send(&server, message.clone()).await;
            let ran = server.agent.turn().await.task_id.clone();
            server.agent.prepare_turn([artifact("a", "of a run that never was")], done());
            let second = send(&server, message.clone()).await;
            assert_eq!((first.0, second.0, &first.1), (false, true, &second.1));
            // The request's configuration is not part of the message.
            let third = send(&server, message.history(99).return_immediately()).await;
            assert_eq!((third.0, &third.1), (true, &first.1));
            if let Reply::SentTask(task) = first.1 {
                assert_eq!(server.get(&ran).await.unwrap(), task);
            }
            server.agent.clear_prepared();
            while !server.agent.is_idle() {}
        }
        assert_eq!(tasks(&server).await, 1);
    }
}

#[tokio::test]
async fn retry_during_the_run_waits_for_the_same_outcome() {
    let mut server = Setup::plain().open();
    let message = msg("hello");
    let first = server.spawn_send(message.clone());
    let turn = server.agent.turn().await;
    turn.send([artifact("a", "b")]);
    server.store.until("report", 1).await;
    let second = server.spawn_send(message.clone());
    let mut third = server.stream(message).await.unwrap();
    assert_eq!(third.next().await, "1 task submitted");
    assert_eq!(third.next().await, "2 working");
    assert_eq!(third.next().await, "3 artifact a: b");
    turn.end(done());
    assert_eq!(join(first).await.unwrap(), join(second).await.unwrap());
    assert_eq!(third.lines().await, ["4 completed"]);
    assert!(server.agent.is_idle());
}

#[tokio::test]
async fn same_key_with_other_content_is_rejected() {
    let server = Setup::overlapping().open();
    let message = msg("hello");
    server.agent.prepare_turn([], done());
    let (_, first) = send(&server, message.clone()).await;
    let id = "3f2b8c1e-7d4a-4b6f-9c0d-5e8a1b2c3d4e";
    server.agent.prepare_turn([], done());
    send(&server, msg("one").id(id)).await;
    assert_eq!(refused(server.send(msg("two").id(id)).await), ErrorKind::MessageIdReused);
    assert_eq!(
        refused(server.stream(msg("one").id(id).context("elsewhere")).await),
        ErrorKind::MessageIdReused
    );
    assert_eq!(send(&server, message).await, (true, first));
    assert_eq!(tasks(&server).await, 2);
}

#[tokio::test]
async fn only_unique_message_ids_are_keys() {
    let server = Setup::overlapping().open();
    for id in ["m", "1", "3f2b8c1e-7d4a-1b6f-9c0d-5e8a1b2c3d4e"] {
        for _ in 0..2 {
            server.agent.prepare_turn([], done());
            assert!(!send(&server, msg("hello").id(id)).await.0, "{id}");
        }
    }
    assert_eq!(tasks(&server).await, 6);
    // An `Idempotency-Key` counts, whatever the message id is.
    let client_task = |msg: MessageBuilder| {
        let call = Call { idempotency_key: Some("mine".into()), ..Call::new(scope()) };
        server.call_as(call, Operation::SendMessage(msg.into()))
    };
    server.agent.prepare_turn([], done());
    let first = client_task(msg("hello").id("m")).await.unwrap();
    let second = client_task(msg("hello").id("m")).await.unwrap();
    assert!(matches!(
        (&first, &second),
        (CallResponse::Reply(_), CallResponse::Noted(ResponseNote::Replayed, _))
    ));
    assert_eq!(reply(first), reply(second));
}

#[tokio::test]
async fn retry_of_a_follow_up_is_replayed_even_after_the_end() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let server = setup.open();
        server.agent.prepare_turn([], need_input("which?"));
        let asked = server.send_for_task(msg("one of them")).await;
        let message = msg("blue").to(&asked.id);
        server.agent.prepare_turn([], done());
        let (_, first) = send(&server, message.clone()).await;
        assert_eq!(send(&server, message.clone()).await, (true, first.clone()));
        let answer = server.call(scope(), Operation::SendStreamingMessage(message.into())).await.unwrap();
        assert_eq!(frames(answer).lines().await, ["3 task working", "4 completed"]);
        let over = task(first);
        assert_eq!(
            (over.status.state, history(&over)),
            (TaskState::Completed, vec!["one of them".to_owned(), "which?".to_owned(), "blue".to_owned()])
        );
        assert_eq!(refused(server.send(msg("red").to(&asked.id)).await), ErrorKind::UnsupportedOperation);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_duplicates_record_one_task() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let server = setup.open();
        for _ in 0..20 {
            server.agent.prepare_turn([], done());
        }
        let message = msg("hello");
        let calls: Vec<_> = (0..20).map(|_| server.spawn_send(message.clone())).collect();
        let mut replies = Vec::new();
        for call in calls {
            replies.push(join(call).await.unwrap());
        }
        assert!(replies.iter().all(|reply| *reply == replies[0]));
        assert_eq!(tasks(&server).await, 1);
    }
}

#[tokio::test]
async fn idempotency_key_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let message = msg("hello");
    let first = {
        let server = Setup::overlapping().open_at(folder.path());
        server.agent.prepare_turn([artifact("a", "b")], done());
        let first = send(&server, message.clone()).await.1;
        with_timeout(server.engine.drain(Duration::ZERO)).await;
        first
    };
    let server = Setup::overlapping().open_at(folder.path());
    server.agent.prepare_turn([], done());
    assert_eq!(send(&server, message).await, (true, first));
    assert_eq!(tasks(&server).await, 1);
}

#[tokio::test]
async fn reused_key_error_has_the_client_task_id() {
    let server = Setup::overlapping().open();
    let call = || Call { idempotency_key: Some("k".into()), ..call_in(Dialect::Draft) };
    server.agent.prepare_turn([], done());
    server.send_as(call(), msg("hello").client_task("t-1")).await.unwrap();
    let refusal = refusal(server.send_as(call(), msg("something else").client_task("t-2")).await);
    assert_eq!(
        (refusal.kind, refusal.facts),
        (ErrorKind::MessageIdReused, vec![("taskId", "t-1".to_owned())])
    );
}
