//! A message that is sent again is one message (R21).

use std::time::Duration;

use a2ad_engine::{Answer, Call};
use protocol::{Dialect, ErrorKind, ListTasks, Operation, Reply, TaskState};

use crate::common::{
    House, Say, Setup, answer, artifact, ask, done, frames, history, joined, refusal, refused, reply, say,
    scope, speaking, task, within,
};

async fn send(house: &House, say: Say) -> (bool, Reply) {
    let answer = house.call(scope(), Operation::SendMessage(say.into())).await.unwrap();
    (matches!(answer, Answer::Replayed(_)), reply(answer))
}

async fn tasks(house: &House) -> u64 {
    house.list(ListTasks::default()).await.unwrap().total_size
}

#[tokio::test]
async fn a_repeated_message_gets_the_same_answer_and_no_second_run() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut house = setup.open();
        for updates in [vec![artifact("a", "b")], vec![answer("a bare answer")]] {
            let message = say("hello");
            house.stage.prepare_turn(updates, done());
            let first = send(&house, message.clone()).await;
            let ran = house.stage.turn().await.task_id.clone();
            house.stage.prepare_turn([artifact("a", "of a run that never was")], done());
            let second = send(&house, message.clone()).await;
            assert_eq!((first.0, second.0, &first.1), (false, true, &second.1));
            // How the answer is wanted is not part of the message.
            let third = send(&house, message.history(99).at_once()).await;
            assert_eq!((third.0, &third.1), (true, &first.1));
            if let Reply::SentTask(task) = first.1 {
                assert_eq!(house.get(&ran).await.unwrap(), task);
            }
            house.stage.forget_prepared();
            while !house.stage.is_quiet() {}
        }
        assert_eq!(tasks(&house).await, 1);
    }
}

#[tokio::test]
async fn who_repeats_while_it_runs_waits_for_the_same_outcome() {
    let mut house = Setup::plain().open();
    let message = say("hello");
    let first = house.send_aside(message.clone());
    let turn = house.stage.turn().await;
    turn.say([artifact("a", "b")]);
    house.store.until("report", 1).await;
    let second = house.send_aside(message.clone());
    let mut third = house.stream(message).await.unwrap();
    assert_eq!(third.next().await, "1 task submitted");
    assert_eq!(third.next().await, "2 working");
    assert_eq!(third.next().await, "3 artifact a: b");
    turn.end(done());
    assert_eq!(joined(first).await.unwrap(), joined(second).await.unwrap());
    assert_eq!(third.lines().await, ["4 completed"]);
    assert!(house.stage.is_quiet());
}

#[tokio::test]
async fn the_same_key_for_other_words_is_a_mistake() {
    let house = Setup::overlapping().open();
    let message = say("hello");
    house.stage.prepare_turn([], done());
    let (_, first) = send(&house, message.clone()).await;
    let id = "3f2b8c1e-7d4a-4b6f-9c0d-5e8a1b2c3d4e";
    house.stage.prepare_turn([], done());
    send(&house, say("one").id(id)).await;
    assert_eq!(refused(house.send(say("two").id(id)).await), ErrorKind::MessageIdReused);
    assert_eq!(
        refused(house.stream(say("one").id(id).context("elsewhere")).await),
        ErrorKind::MessageIdReused
    );
    assert_eq!(send(&house, message).await, (true, first));
    assert_eq!(tasks(&house).await, 2);
}

#[tokio::test]
async fn only_what_was_meant_to_be_unique_is_a_key() {
    let house = Setup::overlapping().open();
    for id in ["m", "1", "3f2b8c1e-7d4a-1b6f-9c0d-5e8a1b2c3d4e"] {
        for _ in 0..2 {
            house.stage.prepare_turn([], done());
            assert!(!send(&house, say("hello").id(id)).await.0, "{id}");
        }
    }
    assert_eq!(tasks(&house).await, 6);
    // What the caller names a key is one, whatever the message is called.
    let named = |say: Say| {
        let call = Call { idempotency_key: Some("mine".into()), ..Call::new(scope()) };
        house.call_as(call, Operation::SendMessage(say.into()))
    };
    house.stage.prepare_turn([], done());
    let first = named(say("hello").id("m")).await.unwrap();
    let second = named(say("hello").id("m")).await.unwrap();
    assert!(matches!((&first, &second), (Answer::Reply(_), Answer::Replayed(_))));
    assert_eq!(reply(first), reply(second));
}

#[tokio::test]
async fn an_answer_is_repeated_inside_its_task_even_when_that_is_over() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let house = setup.open();
        house.stage.prepare_turn([], ask("which?"));
        let asked = house.send_for_task(say("one of them")).await;
        let message = say("blue").to(&asked.id);
        house.stage.prepare_turn([], done());
        let (_, first) = send(&house, message.clone()).await;
        assert_eq!(send(&house, message.clone()).await, (true, first.clone()));
        let answer = house.call(scope(), Operation::SendStreamingMessage(message.into())).await.unwrap();
        assert_eq!(frames(answer).lines().await, ["3 task working", "4 completed"]);
        let over = task(first);
        assert_eq!(
            (over.status.state, history(&over)),
            (TaskState::Completed, vec!["one of them".to_owned(), "which?".to_owned(), "blue".to_owned()])
        );
        assert_eq!(refused(house.send(say("red").to(&asked.id)).await), ErrorKind::UnsupportedOperation);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_at_once_one_is_recorded() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let house = setup.open();
        for _ in 0..20 {
            house.stage.prepare_turn([], done());
        }
        let message = say("hello");
        let calls: Vec<_> = (0..20).map(|_| house.send_aside(message.clone())).collect();
        let mut replies = Vec::new();
        for call in calls {
            replies.push(joined(call).await.unwrap());
        }
        assert!(replies.iter().all(|reply| *reply == replies[0]));
        assert_eq!(tasks(&house).await, 1);
    }
}

#[tokio::test]
async fn a_key_outlives_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let message = say("hello");
    let first = {
        let house = Setup::overlapping().open_at(folder.path());
        house.stage.prepare_turn([artifact("a", "b")], done());
        let first = send(&house, message.clone()).await.1;
        within(house.engine.drain(Duration::ZERO)).await;
        first
    };
    let house = Setup::overlapping().open_at(folder.path());
    house.stage.prepare_turn([], done());
    assert_eq!(send(&house, message).await, (true, first));
    assert_eq!(tasks(&house).await, 1);
}

#[tokio::test]
async fn who_uses_a_key_again_is_told_the_task_by_the_name_it_gave_it() {
    let house = Setup::overlapping().open();
    let call = || Call { idempotency_key: Some("k".into()), ..speaking(Dialect::Draft) };
    house.stage.prepare_turn([], done());
    house.send_as(call(), say("hello").named("t-1")).await.unwrap();
    let refusal = refusal(house.send_as(call(), say("something else").named("t-2")).await);
    assert_eq!(
        (refusal.kind, refusal.facts),
        (ErrorKind::MessageIdReused, vec![("taskId", "t-1".to_owned())])
    );
}
