//! Clients of the draft dialect choose task ids: an unknown id starts a task, a known one continues it, and a
//! message with the same content as the task's last one is a retry of it.

use a2ad_engine::{
    Call, CallResponse, Clock, Outcome, ResponseNote, Retention, Scope, Store as _,
    ids::{Tag, TaskNo},
};
use protocol::{
    CancelTask, Dialect, ErrorKind, GetTask, ListTasks, Operation, Reply, Task, TaskId, TaskState, Timestamp,
};

use crate::common::{
    MessageBuilder, RunningTurn, Setup, TestServer, artifact, artifacts, bare_message, call_in, done,
    done_with, history, join, msg, need_input, refusal, refused, reply, scope, status_text, task,
    with_timeout,
};

const DRAFT: Dialect = Dialect::Draft;

/// Whether the reply was replayed, and its task.
fn replayed_and_task(answer: CallResponse) -> (bool, Task) {
    (matches!(answer, CallResponse::Noted(ResponseNote::Replayed, _)), task(reply(answer)))
}

async fn send(server: &TestServer, msg: MessageBuilder) -> (bool, Task) {
    replayed_and_task(server.send_as(call_in(DRAFT), msg).await.unwrap())
}

/// Sends a new message without waiting; returns its task and its running turn.
async fn start_task(server: &mut TestServer, msg: MessageBuilder) -> (Task, RunningTurn) {
    let (replayed, task) = send(server, msg.return_immediately()).await;
    assert!(!replayed);
    (task, server.agent.turn().await)
}

async fn tasks(server: &TestServer) -> u64 {
    server.list(ListTasks::default()).await.unwrap().total_size
}

#[tokio::test]
async fn unknown_client_task_id_starts_a_task() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut server = setup.open();
        server.agent.prepare_turn([artifact("a", "b")], done_with("ok"));
        let (replayed, created) = send(&server, msg("hello").client_task("t-1").context("chat")).await;
        assert!(!replayed);
        assert_eq!((created.id.as_str(), created.context_id.as_str()), ("t-1", "chat"));
        assert_eq!((created.status.state, history(&created).len()), (TaskState::Completed, 2));
        assert_eq!(server.get(&created.id).await.unwrap(), created);
        let turn = server.agent.turn().await;
        assert_eq!((&turn.task_id, &turn.context_id), (&created.id, &created.context_id));
        // The server has set the message id, the task id and the context id.
        let message = &created.history[0];
        assert!(uuid::Uuid::try_parse(message.id.as_str()).is_ok(), "{:?}", message.id);
        assert_eq!((message.task_id.as_ref(), &turn.message.id), (Some(&created.id), &message.id));
        let client_task: Vec<_> = server.list(ListTasks::default()).await.unwrap().tasks;
        assert_eq!(client_task.iter().map(|task| task.id.as_str()).collect::<Vec<_>>(), ["t-1"]);
    }
}

#[tokio::test]
async fn client_task_ids_are_rejected_outside_draft() {
    let server = Setup::overlapping().open();
    for dialect in [Dialect::V03, Dialect::V03Proto, Dialect::V1] {
        let client_task = server.send_as(call_in(dialect), msg("hello").client_task("t-1")).await;
        assert_eq!(refused(client_task), ErrorKind::TaskNotFound, "{dialect:?}");
    }
    assert_eq!(tasks(&server).await, 0);
}

#[tokio::test]
async fn known_client_task_id_continues_the_task() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut server = setup.open();
        server.agent.prepare_turn([], need_input("which?"));
        let (_, asked) = send(&server, msg("one of them").client_task("t-1")).await;
        assert_eq!(asked.status.state, TaskState::InputRequired);
        server.agent.turn().await;
        let elsewhere = msg("blue").client_task("t-1").context("elsewhere");
        let refusal = refusal(server.send_as(call_in(DRAFT), elsewhere).await);
        assert_eq!(refusal.violations[0].field, "message.contextId");

        server.agent.prepare_turn([], done());
        let (replayed, updated) = send(&server, msg("blue").client_task("t-1")).await;
        assert_eq!((replayed, &updated.id, &updated.context_id), (false, &asked.id, &asked.context_id));
        assert_eq!(history(&updated), ["one of them", "which?", "blue"]);
        assert_eq!(server.agent.turn().await.message.text(), "blue");
        assert_eq!((tasks(&server).await, server.row(&updated.id).await.turn), (1, 1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn concurrent_identical_first_messages_start_one_task() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let server = setup.open();
        for round in 0..10 {
            const CALLS: usize = 20;
            let message = msg("hello").client_task(&format!("t-{round}"));
            for _ in 0..CALLS {
                server.agent.prepare_turn([artifact("a", "b")], done());
            }
            let calls: Vec<_> =
                (0..CALLS).map(|_| server.spawn_send_as(call_in(DRAFT), message.clone())).collect();
            let mut answers = Vec::new();
            for call in calls {
                answers.push(replayed_and_task(join(call).await.unwrap()));
            }
            assert_eq!(answers.iter().filter(|(replayed, _)| !replayed).count(), 1);
            assert!(answers.iter().all(|(_, task)| *task == answers[0].1), "{answers:?}");
            assert_eq!(history(&answers[0].1), ["hello"]);
            assert_eq!(tasks(&server).await, round + 1);
            server.agent.clear_prepared();
        }
    }
}

#[tokio::test]
async fn message_to_a_working_task_is_its_next_input() {
    let mut server = Setup::plain().open();
    let (created, first) = start_task(&mut server, msg("one").client_task("t-1")).await;
    let more = server.spawn_send_as(call_in(DRAFT), msg("two").client_task("t-1"));
    server.store.until("queuemessage", 1).await;
    first.end(need_input("which?"));
    let second = server.agent.turn().await;
    assert_eq!((second.message.text().as_str(), &second.task_id), ("two", &created.id));
    second.end(done());
    let (replayed, updated) = replayed_and_task(join(more).await.unwrap());
    assert!(!replayed);
    assert_eq!((updated.status.state, tasks(&server).await), (TaskState::Completed, 1));
    assert_eq!(history(&updated), ["one", "two"]);
}

#[tokio::test]
async fn retry_while_the_turn_runs_gets_the_same_outcome() {
    let mut server = Setup::plain().open();
    let message = msg("hello").client_task("t-1");
    let first = server.spawn_send_as(call_in(DRAFT), message.clone());
    let turn = server.agent.turn().await;
    turn.send([artifact("a", "b")]);
    server.store.until("report", 1).await;
    let second = server.spawn_send_as(call_in(DRAFT), message.clone());
    let mut third = server.stream_in(DRAFT, message.clone()).await.unwrap();
    assert_eq!(third.next().await, "1 task submitted");
    assert_eq!(third.next().await, "2 working");
    assert_eq!(third.next().await, "3 artifact a: b");
    let (replayed, current) = send(&server, message.return_immediately()).await;
    assert_eq!((replayed, current.status.state), (true, TaskState::Working));
    turn.end(done());
    let (first, second) =
        (replayed_and_task(join(first).await.unwrap()), replayed_and_task(join(second).await.unwrap()));
    assert_eq!((first.0, second.0, first.1), (false, true, second.1));
    assert_eq!(third.lines().await, ["4 completed"]);
    assert!(server.agent.is_idle());
}

#[tokio::test]
async fn retry_after_the_end_is_replayed() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut server = setup.open();
        let ends = [done(), Outcome::Failed { message: None, retryable: false }];
        let ends = ends.into_iter().chain([Outcome::Rejected { message: None }]);
        for (number, outcome) in ends.enumerate() {
            let message = msg("hello").client_task(&format!("t-{number}"));
            server.agent.prepare_turn([artifact("a", "b")], outcome);
            let (_, first) = send(&server, message.clone()).await;
            server.agent.turn().await;
            assert_eq!(send(&server, message.clone()).await, (true, first.clone()));
            assert_eq!(send(&server, message.clone().return_immediately()).await, (true, first.clone()));
            let mut frames = server.stream_in(DRAFT, message).await.unwrap();
            assert_eq!(frames.next().await, "1 task submitted");
            assert_eq!(server.get(&first.id).await.unwrap(), first);
        }
        let (held, _turn) = start_task(&mut server, msg("hello").client_task("canceled")).await;
        let canceled = server.cancel(&held.id).await.unwrap();
        assert_eq!(send(&server, msg("hello").client_task("canceled")).await, (true, canceled));
        assert!(server.agent.is_idle());
    }
}

#[tokio::test]
async fn only_identical_content_is_a_retry() {
    let mut server = Setup::overlapping().open();
    server.agent.prepare_turn([], done());
    send(&server, msg("hello").client_task("t-1")).await;
    server.agent.turn().await;
    // Only the content of the last message is compared.
    for (number, text) in ["hello ", "Hello", "hello"].into_iter().enumerate() {
        server.agent.prepare_turn([], done());
        assert!(!send(&server, msg(text).client_task("t-1")).await.0, "{text:?}");
        assert_eq!(server.agent.turn().await.message.text(), text);
        assert_eq!(server.row(&"t-1".into()).await.turn, 2 + i64::try_from(number).unwrap());
    }
}

#[tokio::test]
async fn same_answer_to_another_question_is_a_new_message() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let server = setup.open();
        for question in ["approve?", "approve, yes or no?", "yes or no?"] {
            server.agent.prepare_turn([], need_input(question));
            let (replayed, asked) = send(&server, msg("maybe").client_task("t-1")).await;
            assert_eq!((replayed, status_text(&asked).as_deref()), (false, Some(question)));
        }
        server.agent.prepare_turn([], done());
        let (replayed, ended) = send(&server, msg("maybe").client_task("t-1")).await;
        assert!(!replayed);
        assert_eq!(history(&ended).iter().filter(|text| **text == "maybe").count(), 4);
        // Nothing was asked since: a retry.
        let (replayed, again) = send(&server, msg("maybe").client_task("t-1")).await;
        assert_eq!((replayed, again), (true, ended));
    }
}

#[tokio::test]
async fn new_idempotency_key_makes_a_new_message_of_the_same_content() {
    let server = Setup::overlapping().open();
    let keyed = |key: &str| Call { idempotency_key: Some(key.into()), ..call_in(DRAFT) };
    let send = async |key: &str| {
        server.agent.prepare_turn([], done());
        let answer = server.send_as(keyed(key), msg("again").client_task("t-1")).await.unwrap();
        server.agent.clear_prepared();
        let (replayed, task) = replayed_and_task(answer);
        (replayed, history(&task).len())
    };
    assert_eq!(send("k-1").await, (false, 1));
    assert_eq!(send("k-2").await, (false, 2));
    assert_eq!(send("k-2").await, (true, 2));
}

#[tokio::test]
async fn idempotency_key_applies_to_client_named_tasks() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let server = setup.open();
        let keyed = |key: &str| Call { idempotency_key: Some(key.into()), ..call_in(DRAFT) };
        let mut answers = Vec::new();
        for (key, text) in [("one", "hello"), ("two", "more")] {
            server.agent.prepare_turn([], done());
            answers.push(replayed_and_task(
                server.send_as(keyed(key), msg(text).client_task("t-1")).await.unwrap(),
            ));
        }
        // No longer the last message, but the same key.
        for ((key, text), (_, first)) in [("one", "hello"), ("two", "more")].into_iter().zip(answers) {
            let again = replayed_and_task(
                server.send_as(keyed(key), msg(text).client_task("t-1").return_immediately()).await.unwrap(),
            );
            assert!(again.0, "{key} was used before");
            let again =
                replayed_and_task(server.send_as(keyed(key), msg(text).client_task("t-1")).await.unwrap());
            assert_eq!(again, (true, first));
            let mistake = server.send_as(keyed(key), msg("other content").client_task("t-1")).await;
            assert_eq!(refused(mistake), ErrorKind::MessageIdReused, "{key}");
        }
        assert_eq!(history(&server.get(&"t-1".into()).await.unwrap()), ["hello", "more"]);
    }
}

#[tokio::test]
async fn same_client_task_id_of_another_tenant_is_another_task() {
    let mut server = Setup::overlapping().open();
    let other_tenant = || Call { scope: Scope::anonymous("elsewhere", "scripted"), ..call_in(DRAFT) };
    server.agent.prepare_turn([], done_with("ours"));
    let (_, ours) = send(&server, msg("hello").client_task("t-1")).await;
    let (held, _turn) = {
        server.agent.turn().await;
        start_task(&mut server, msg("hello").client_task("t-2")).await
    };
    for id in [&ours.id, &held.id] {
        let get = Operation::GetTask(GetTask { id: id.clone(), history_length: None, tenant: None });
        assert_eq!(refused(server.call_as(other_tenant(), get).await), ErrorKind::TaskNotFound);
        let cancel = Operation::CancelTask(CancelTask { id: id.clone(), metadata: None, tenant: None });
        assert_eq!(refused(server.call_as(other_tenant(), cancel).await), ErrorKind::TaskNotFound);
    }
    // The same message from another tenant: neither a retry nor a turn of the first tenant's task.
    for id in [&ours.id, &held.id] {
        server.agent.prepare_turn([], done_with("theirs"));
        let answer = server.send_as(other_tenant(), msg("hello").client_task(id.as_str())).await.unwrap();
        let (replayed, theirs) = replayed_and_task(answer);
        assert_eq!((replayed, &theirs.id), (false, id));
        assert_ne!(theirs.context_id, ours.context_id);
        assert_eq!(status_text(&theirs).as_deref(), Some("theirs"));
        assert_eq!(history(&theirs), ["hello", "theirs"]);
    }
    assert_eq!(server.get(&ours.id).await.unwrap(), ours);
    assert_eq!(server.get(&held.id).await.unwrap(), held);
}

#[tokio::test]
async fn forged_server_task_id_is_a_client_task_id() {
    let mut server = Setup::overlapping().open();
    server.agent.prepare_turn([], done());
    let ours = server.send_for_task(msg("hello")).await;
    let (no, tag) = server.store.ids().parse_task(&ours.id).unwrap();
    let mut other = tag;
    other.0[0] ^= 1;
    let foreign = {
        server.agent.prepare_turn([], done());
        let send = Operation::SendMessage(msg("hello").into());
        task(reply(server.call(Scope::anonymous("elsewhere", "scripted"), send).await.unwrap())).id
    };
    let ids = server.store.ids();
    let names =
        [ids.task(TaskNo(no.0 + 1_000_000), Tag([9; 10])), ids.task(no, other), foreign, "task_".into()];
    while !server.agent.is_idle() {}
    for name in names {
        server.agent.prepare_turn([], need_input("which?"));
        let (_, asked) = send(&server, msg("one of them").client_task(name.as_str())).await;
        assert_eq!(asked.id, name);
        server.agent.prepare_turn([], done());
        let (_, updated) = send(&server, msg("blue").client_task(name.as_str())).await;
        assert_eq!(history(&updated), ["one of them", "which?", "blue"]);
        assert_eq!(server.get(&name).await.unwrap(), updated);
    }
    assert_eq!(server.get(&ours.id).await.unwrap(), ours);
}

async fn until_purged(server: &TestServer, id: &TaskId) {
    let dropped = async {
        while server.get(id).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    with_timeout(dropped).await;
}

#[tokio::test]
async fn task_id_of_a_purged_task_can_be_reused() {
    let clock = Clock::manual(Timestamp::from_millis(1_000_000));
    let span = std::time::Duration::from_secs(4);
    let retention = Retention { max_age: span, ..Retention::default() };
    let server = Setup::overlapping().clock(&clock).retention(retention).open();
    server.agent.prepare_turn([artifact("old", "old")], done());
    send(&server, msg("hello").client_task("t-1")).await;
    server.agent.prepare_turn([artifact("old", "old")], done());
    // Also a server-generated id: a client that still has it may reuse it.
    let repeated = msg("hello");
    let ours = server.send_for_task(repeated.clone()).await.id;
    clock.advance(span + std::time::Duration::from_secs(1));
    for name in ["t-1".into(), ours] {
        until_purged(&server, &name).await;
        server.agent.prepare_turn([artifact("new", "new")], done());
        let (replayed, created) = send(&server, msg("hello").client_task(name.as_str())).await;
        assert_eq!((replayed, &created.id), (false, &name));
        assert_eq!(artifacts(&created), [("new".into(), "new".into())]);
        assert_eq!(server.get(&name).await.unwrap(), created, "{name}");
        assert_eq!(server.row(&name).await.turn, 1);
        server.agent.prepare_turn([], done());
        let (_, updated) = send(&server, msg("more").client_task(name.as_str())).await;
        assert_eq!(history(&updated), ["hello", "more"]);
    }
    assert_eq!(tasks(&server).await, 2);
    // A retry of the message that started the purged task is not answered with the new task.
    assert_eq!(refused(server.send(repeated).await), ErrorKind::TaskNotFound);
}

#[tokio::test]
async fn tasks_are_accessible_from_every_dialect() {
    let mut server = Setup::plain().open();
    for dialect in [Dialect::V1, Dialect::V03, Dialect::V03Proto] {
        let name = format!("t-{dialect:?}");
        let (created, turn) = start_task(&mut server, msg("hello").client_task(&name)).await;
        assert_eq!(server.engine.origin(&scope(), &created.id).await.unwrap(), Some(DRAFT.into()));
        let get = Operation::GetTask(GetTask { id: created.id.clone(), history_length: None, tenant: None });
        let got = server.call_as(call_in(dialect), get).await.unwrap();
        assert_eq!(task(reply(got)), created);
        let mut frames = server.subscribe_in(dialect, &created.id, None).await.unwrap();
        assert_eq!(frames.next().await, "2 task working");
        // A follow-up in another dialect continues the same task.
        turn.end(need_input("which?"));
        server.store.until("pause", 1).await;
        server.agent.prepare_turn([], need_input("sure?"));
        let updated = server.send_as(call_in(dialect), msg("blue").to(&created.id)).await.unwrap();
        assert_eq!(task(reply(updated)).id, created.id);
        server.agent.turn().await;
        let cancel =
            Operation::CancelTask(CancelTask { id: created.id.clone(), metadata: None, tenant: None });
        let canceled = task(reply(server.call_as(call_in(dialect), cancel).await.unwrap()));
        assert_eq!((&canceled.id, canceled.status.state), (&created.id, TaskState::Canceled));
    }
    for dialect in [Dialect::V1, Dialect::V03] {
        let answer = server.send_as(call_in(dialect), msg("hello").return_immediately()).await.unwrap();
        let created = task(reply(answer));
        let turn = server.agent.turn().await;
        assert_eq!(server.engine.origin(&scope(), &created.id).await.unwrap(), Some(dialect.into()));
        let mut frames = server.subscribe_in(DRAFT, &created.id, None).await.unwrap();
        assert_eq!(frames.next().await, "2 task working");
        turn.end(done());
        assert_eq!(frames.lines().await, ["3 completed"]);
        server.agent.prepare_turn([], done());
        let (_, updated) = send(&server, msg("more").client_task(created.id.as_str())).await;
        assert_eq!((&updated.id, server.row(&created.id).await.turn), (&created.id, 2));
        server.agent.turn().await;
    }
}

#[tokio::test]
async fn origin_is_visible_only_to_the_owner_of_a_visible_task() {
    let mut server = Setup::plain().open();
    let (created, _turn) = start_task(&mut server, msg("hello").client_task("t-1")).await;
    for (scope, id) in [
        (Scope::anonymous("elsewhere", "scripted"), created.id.clone()),
        (Scope::anonymous("default", "nobody"), created.id.clone()),
        (scope(), "t-2".into()),
        (scope(), server.store.ids().task(TaskNo(99), Tag([9; 10]))),
    ] {
        assert_eq!(server.engine.origin(&scope, &id).await.unwrap(), None);
    }
    // A hidden or undecided task has no visible origin.
    let call = server.spawn_send(msg("undecided"));
    let undecided = server.agent.turn().await;
    assert_eq!(server.engine.origin(&scope(), &undecided.task_id).await.unwrap(), None);
    undecided.send([bare_message("a bare answer")]);
    assert!(matches!(join(call).await.unwrap(), Reply::SentMessage(_)));
    assert_eq!(server.engine.origin(&scope(), &undecided.task_id).await.unwrap(), None);
}
