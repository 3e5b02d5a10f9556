//! In the first draft a message to a completed or failed task opens its next turn (`semantics`, row 10 of the table).

use a2ad_engine::{Call, Dedupe, Outcome};
use protocol::{Dialect, ErrorKind, ListTasks, Role, Task, TaskState};

use crate::common::{
    House, Say, Setup, artifact, artifacts, ask, done, done_saying, failed, history, joined, refused, reply,
    save, say, speaking, status_text, task, within,
};

const DRAFT: Dialect = Dialect::Draft;

async fn send(house: &House, say: Say) -> Task {
    task(reply(house.send_as(speaking(DRAFT), say).await.unwrap()))
}

/// How many tasks are in a state, and how many there are.
async fn counted(house: &House, state: TaskState) -> (u64, u64) {
    (house.count(state).await, house.list(ListTasks::default()).await.unwrap().total_size)
}

#[tokio::test]
async fn a_finished_task_goes_on_in_its_next_turn() {
    for setup in [Setup::overlapping, Setup::plain] {
        for (outcome, state) in
            [(done_saying("end"), TaskState::Completed), (failed("end"), TaskState::Failed)]
        {
            let mut house = setup().open();
            house.stage.prepare_turn([artifact("a", "one"), save("place")], outcome);
            let first = send(&house, say("hello").named("t-1")).await;
            assert_eq!((first.status.state, house.row(&first.id).await.turn), (state, 1));
            let before = house.stage.turn().await;

            house.stage.prepare_turn([artifact("b", "two")], done_saying("again"));
            let second = send(&house, say("more").named("t-1")).await;
            assert_eq!((&second.id, &second.context_id), (&first.id, &first.context_id));
            assert_eq!(second.status.state, TaskState::Completed);
            assert_eq!(status_text(&second).as_deref(), Some("again"));
            assert_eq!(history(&second), ["hello", "end", "more", "again"]);
            assert_eq!(artifacts(&second), [("a".into(), "one".into()), ("b".into(), "two".into())]);
            assert_eq!(house.get(&first.id).await.unwrap(), second);
            let row = house.row(&first.id).await;
            assert_eq!((row.turn, row.unanswered, row.deaths), (2, 0, 0));
            assert_eq!(counted(&house, TaskState::Completed).await, (1, 1));

            let turn = house.stage.turn().await;
            assert_eq!((turn.message.text().as_str(), turn.attempt), ("more", 1));
            let said: Vec<_> = turn.history.iter().map(|said| (said.role, said.text())).collect();
            assert_eq!(said, [(Role::User, "hello".into()), (Role::Agent, "end".into())]);
            assert_eq!(turn.saved.as_deref(), Some(b"place".as_slice()));
            assert_ne!(turn.idempotency_key, before.idempotency_key);
            // One end for each turn.
            let log = house.store.log(&row).await;
            assert_eq!(log.iter().filter(|state| state.is_some_and(TaskState::is_terminal)).count(), 2);
        }
    }
}

#[tokio::test]
async fn a_task_that_goes_on_is_listed_as_open_and_can_be_watched() {
    let mut house = Setup::plain().open();
    house.stage.prepare_turn([artifact("a", "one")], done());
    let first = send(&house, say("hello").named("t-1")).await;
    house.stage.turn().await;
    let mut frames = house.stream_in(DRAFT, say("more").named("t-1")).await.unwrap();
    assert_eq!(frames.next().await, "5 task working");
    assert_eq!(frames.known_artifacts(), ["a"]);
    let turn = house.stage.turn().await;
    assert_eq!(counted(&house, TaskState::Completed).await, (0, 1));
    assert_eq!(counted(&house, TaskState::Working).await, (1, 1));
    let mut watching = house.subscribe(&first.id).await.unwrap();
    assert_eq!(watching.next().await, "5 task working");
    turn.say([artifact("b", "two")]);
    turn.end(failed("no"));
    let rest = ["6 artifact b: two", "7 failed: no"];
    assert_eq!(frames.lines().await, rest);
    assert_eq!(watching.lines().await, rest);
    assert_eq!(counted(&house, TaskState::Failed).await, (1, 1));
    assert_eq!(refused(house.subscribe(&first.id).await), ErrorKind::UnsupportedOperation);
}

#[tokio::test]
async fn a_task_goes_on_as_often_as_it_is_told_to() {
    let mut house = Setup::overlapping().open();
    let (mut said, mut made) = (Vec::new(), Vec::new());
    for turn in 1..=20 {
        let text = format!("message {turn}");
        house.stage.prepare_turn([artifact("a", &text)], done());
        let told = send(&house, say(&text).named("t-1")).await;
        said.push(text.clone());
        // What was finished stays as it was; each turn makes another.
        made.push((if turn == 1 { "a".into() } else { format!("a-{turn}") }, text));
        assert_eq!((history(&told), artifacts(&told)), (said.clone(), made.clone()));
        assert_eq!(house.row(&told.id).await.turn, turn);
        house.stage.turn().await;
    }
}

#[tokio::test]
async fn a_turn_without_a_free_slot_waits_for_one() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut house = setup.slots(1).open();
        house.stage.prepare_turn([artifact("a", "one"), save("place")], done());
        let first = send(&house, say("hello").named("t-1")).await;
        house.stage.turn().await;
        let (_, running) = house.begin("something else").await;
        let queued = send(&house, say("more").named("t-1").at_once()).await;
        assert_eq!(queued.status.state, TaskState::Working);
        assert_eq!(artifacts(&queued), artifacts(&first));
        assert_eq!(house.row(&first.id).await.turn, 2);
        assert!(house.stage.is_quiet());
        running.end(done());
        let turn = house.stage.turn().await;
        assert_eq!((turn.message.text().as_str(), turn.attempt, turn.history.len()), ("more", 1, 1));
        assert_eq!(turn.saved.as_deref(), Some(b"place".as_slice()));
        let mut frames = house.subscribe(&first.id).await.unwrap();
        assert_eq!(frames.next().await, "5 task working");
        turn.end(done());
        assert_eq!(frames.lines().await, ["6 completed"]);
    }
}

#[tokio::test]
async fn a_task_may_ask_and_be_canceled_in_a_later_turn() {
    let house = Setup::overlapping().open();
    house.stage.prepare_turn([], done());
    let first = send(&house, say("hello").named("t-1")).await;
    assert_eq!(refused(house.cancel(&first.id).await), ErrorKind::TaskNotCancelable);
    house.stage.prepare_turn([], ask("which?"));
    let asked = send(&house, say("more").named("t-1")).await;
    assert_eq!(asked.status.state, TaskState::InputRequired);
    house.stage.prepare_turn([], ask("sure?"));
    send(&house, say("blue").named("t-1")).await;
    assert_eq!(house.row(&first.id).await.turn, 2);
    let canceled = house.cancel(&first.id).await.unwrap();
    assert_eq!(canceled.status.state, TaskState::Canceled);
    let again = house.send_as(speaking(DRAFT), say("red").named("t-1")).await;
    assert_eq!(refused(again), ErrorKind::UnsupportedOperation);
    assert_eq!(house.get(&first.id).await.unwrap(), canceled);
}

#[tokio::test]
async fn what_was_canceled_or_rejected_is_never_opened_again() {
    let mut house = Setup::plain().open();
    house.stage.prepare_turn([], Outcome::Rejected { message: None });
    let rejected = send(&house, say("hello").named("rejected")).await;
    house.stage.turn().await;
    send(&house, say("hello").named("canceled").at_once()).await;
    house.stage.turn().await;
    let canceled = house.cancel(&"canceled".into()).await.unwrap();
    for over in [rejected, canceled] {
        for dialect in Dialect::ALL {
            let more = house.send_as(speaking(dialect), say("more").to(&over.id)).await;
            assert_eq!(refused(more), ErrorKind::UnsupportedOperation, "{dialect:?}");
        }
        assert_eq!(house.get(&over.id).await.unwrap(), over);
        assert_eq!(house.row(&over.id).await.turn, 1);
    }
    assert!(house.stage.is_quiet());
}

#[tokio::test]
async fn only_the_draft_opens_a_task_again() {
    let mut house = Setup::overlapping().open();
    for outcome in [done(), failed("no")] {
        house.stage.prepare_turn([], outcome);
        let over = send(&house, say("hello").named(&uuid::Uuid::new_v4().to_string())).await;
        house.stage.turn().await;
        for dialect in [Dialect::V03, Dialect::V03Proto, Dialect::V1] {
            // Not even with the same words: those dialects have ids to repeat a message by.
            for text in ["more", "hello"] {
                let more = house.send_as(speaking(dialect), say(text).to(&over.id)).await;
                assert_eq!(refused(more), ErrorKind::UnsupportedOperation, "{dialect:?}");
            }
        }
        assert_eq!(house.get(&over.id).await.unwrap(), over);
    }
    assert!(house.stage.is_quiet());
}

#[tokio::test]
async fn where_nothing_is_a_repetition_the_same_words_open_it_again() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let house = setup.dedupe(Dedupe::Off).open();
        for turn in 1..=3 {
            house.stage.prepare_turn([], done());
            let answer = house.send_as(speaking(DRAFT), say("hello").named("t-1")).await.unwrap();
            assert!(matches!(answer, a2ad_engine::Answer::Reply(_)));
            assert_eq!(history(&task(reply(answer))).len(), turn);
            assert_eq!(house.row(&"t-1".into()).await.turn, i64::try_from(turn).unwrap());
        }
        // But for what its caller gave a key.
        let keyed = || Call { idempotency_key: Some("key".into()), ..speaking(DRAFT) };
        house.stage.prepare_turn([], done());
        let first = house.send_as(keyed(), say("hello").named("t-1")).await.unwrap();
        let second = house.send_as(keyed(), say("hello").named("t-1")).await.unwrap();
        assert!(matches!(second, a2ad_engine::Answer::Replayed(_)));
        assert_eq!(reply(first), reply(second));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_that_open_it_again_at_once_one_does() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let house = setup.open();
        house.stage.prepare_turn([], done());
        send(&house, say("message 1").named("t-1")).await;
        for turn in 2..=10 {
            const CROWD: usize = 20;
            let message = say(&format!("message {turn}")).named("t-1");
            for _ in 0..CROWD {
                house.stage.prepare_turn([artifact("a", "b")], done());
            }
            let crowd: Vec<_> =
                (0..CROWD).map(|_| house.send_aside_as(speaking(DRAFT), message.clone())).collect();
            let mut answers = Vec::new();
            for call in crowd {
                answers.push(task(reply(joined(call).await.unwrap())));
            }
            assert!(answers.iter().all(|answer| *answer == answers[0]), "{answers:?}");
            assert_eq!(history(&answers[0]).len(), turn);
            assert_eq!(house.row(&"t-1".into()).await.turn, i64::try_from(turn).unwrap());
            house.stage.forget_prepared();
        }
    }
}

#[tokio::test]
async fn two_messages_at_once_are_two_turns_that_know_of_each_other() {
    let mut house = Setup::overlapping().open();
    house.stage.prepare_turn([], done());
    send(&house, say("hello").named("t-1")).await;
    house.stage.turn().await;
    // Both are decided while the task is over, and the first is over again when the second is recorded.
    house.store.close_gate();
    let mut calls = Vec::new();
    for (number, text) in ["one", "two"].into_iter().enumerate() {
        house.stage.prepare_turn([artifact(text, text)], done());
        calls.push(house.send_aside_as(speaking(DRAFT), say(text).named("t-1")));
        house.store.until_waiting(number + 1).await;
        house.stage.turn().await;
    }
    house.stage.prepare_turn([artifact("two", "two")], done());
    house.store.open_gate();
    let mut answers = Vec::new();
    for call in calls {
        answers.push(task(reply(joined(call).await.unwrap())));
    }
    let now = house.get(&"t-1".into()).await.unwrap();
    assert_eq!((history(&now).len(), artifacts(&now).len()), (3, 2));
    assert_eq!(answers[0].history.len(), 2);
    assert_eq!(answers[1], now, "the second answer knows nothing of the turn before it");
}

#[tokio::test]
async fn who_loses_the_race_takes_no_cancel_from_the_winner() {
    let mut house = Setup::plain().open();
    house.stage.prepare_turn([], done());
    send(&house, say("hello").named("t-1")).await;
    house.stage.turn().await;
    house.store.close_gate();
    let first = house.send_aside_as(speaking(DRAFT), say("one").named("t-1"));
    house.store.until_waiting(1).await;
    let second = house.send_aside_as(speaking(DRAFT), say("two").named("t-1"));
    house.store.until_waiting(2).await;
    house.store.open_gate();
    let winner = house.stage.turn().await;
    house.store.until("listen", 1).await;
    house.cancel(&"t-1".into()).await.unwrap();
    within(winner.cancel.cancelled()).await;
    for call in [first, second] {
        assert_eq!(task(reply(joined(call).await.unwrap())).status.state, TaskState::Canceled);
    }
}
