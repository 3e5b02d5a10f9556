//! The first draft's clients name their tasks: a name that is not known begins one, a known one goes on, and a
//! message that is said twice is one message (R22).

use a2ad_engine::{
    Answer, Call, Clock, Outcome, Retention, Scope, Store as _,
    ids::{Tag, TaskNo},
};
use protocol::{
    CancelTask, Dialect, ErrorKind, GetTask, ListTasks, Operation, Reply, Task, TaskId, TaskState, Timestamp,
};

use crate::common::{
    House, Say, Setup, Taken, answer, artifact, artifacts, ask, done, done_saying, history, joined, refusal,
    refused, reply, say, scope, speaking, status_text, task, within,
};

const DRAFT: Dialect = Dialect::Draft;

/// Whether the answer was given before, and its task.
fn told(answer: Answer) -> (bool, Task) {
    (matches!(answer, Answer::Replayed(_)), task(reply(answer)))
}

async fn send(house: &House, say: Say) -> (bool, Task) {
    told(house.send_as(speaking(DRAFT), say).await.unwrap())
}

/// Says something that is new and does not wait: gives its task and the turn it began.
async fn begin(house: &mut House, say: Say) -> (Task, Taken) {
    let (replayed, task) = send(house, say.at_once()).await;
    assert!(!replayed);
    (task, house.stage.turn().await)
}

async fn tasks(house: &House) -> u64 {
    house.list(ListTasks::default()).await.unwrap().total_size
}

#[tokio::test]
async fn a_name_that_is_not_known_begins_a_task() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut house = setup.open();
        house.stage.prepare_turn([artifact("a", "b")], done_saying("ok"));
        let (replayed, begun) = send(&house, say("hello").named("t-1").context("chat")).await;
        assert!(!replayed);
        assert_eq!((begun.id.as_str(), begun.context_id.as_str()), ("t-1", "chat"));
        assert_eq!((begun.status.state, history(&begun).len()), (TaskState::Completed, 2));
        assert_eq!(house.get(&begun.id).await.unwrap(), begun);
        let turn = house.stage.turn().await;
        assert_eq!((&turn.task_id, &turn.context_id), (&begun.id, &begun.context_id));
        // Its message has been given a name and says where it belongs.
        let message = &begun.history[0];
        assert!(uuid::Uuid::try_parse(message.id.as_str()).is_ok(), "{:?}", message.id);
        assert_eq!((message.task_id.as_ref(), &turn.message.id), (Some(&begun.id), &message.id));
        let named: Vec<_> = house.list(ListTasks::default()).await.unwrap().tasks;
        assert_eq!(named.iter().map(|task| task.id.as_str()).collect::<Vec<_>>(), ["t-1"]);
    }
}

#[tokio::test]
async fn only_the_draft_lets_clients_name_their_tasks() {
    let house = Setup::overlapping().open();
    for dialect in [Dialect::V03, Dialect::V03Proto, Dialect::V1] {
        let named = house.send_as(speaking(dialect), say("hello").named("t-1")).await;
        assert_eq!(refused(named), ErrorKind::TaskNotFound, "{dialect:?}");
    }
    assert_eq!(tasks(&house).await, 0);
}

#[tokio::test]
async fn a_name_that_is_known_goes_on() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut house = setup.open();
        house.stage.prepare_turn([], ask("which?"));
        let (_, asked) = send(&house, say("one of them").named("t-1")).await;
        assert_eq!(asked.status.state, TaskState::InputRequired);
        house.stage.turn().await;
        let elsewhere = say("blue").named("t-1").context("elsewhere");
        let refusal = refusal(house.send_as(speaking(DRAFT), elsewhere).await);
        assert_eq!(refusal.violations[0].field, "message.contextId");

        house.stage.prepare_turn([], done());
        let (replayed, told) = send(&house, say("blue").named("t-1")).await;
        assert_eq!((replayed, &told.id, &told.context_id), (false, &asked.id, &asked.context_id));
        assert_eq!(history(&told), ["one of them", "which?", "blue"]);
        assert_eq!(house.stage.turn().await.message.text(), "blue");
        assert_eq!((tasks(&house).await, house.row(&told.id).await.turn), (1, 1));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_many_that_begin_a_task_at_once_one_does() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let house = setup.open();
        for round in 0..10 {
            const CROWD: usize = 20;
            let message = say("hello").named(&format!("t-{round}"));
            for _ in 0..CROWD {
                house.stage.prepare_turn([artifact("a", "b")], done());
            }
            let crowd: Vec<_> =
                (0..CROWD).map(|_| house.send_aside_as(speaking(DRAFT), message.clone())).collect();
            let mut answers = Vec::new();
            for call in crowd {
                answers.push(told(joined(call).await.unwrap()));
            }
            assert_eq!(answers.iter().filter(|(replayed, _)| !replayed).count(), 1);
            assert!(answers.iter().all(|(_, task)| *task == answers[0].1), "{answers:?}");
            assert_eq!(history(&answers[0].1), ["hello"]);
            assert_eq!(tasks(&house).await, round + 1);
            house.stage.forget_prepared();
        }
    }
}

#[tokio::test]
async fn another_message_while_it_runs_is_its_next_input() {
    let mut house = Setup::plain().open();
    let (begun, first) = begin(&mut house, say("one").named("t-1")).await;
    let more = house.send_aside_as(speaking(DRAFT), say("two").named("t-1"));
    house.store.until("listen", 1).await;
    first.end(ask("which?"));
    let second = house.stage.turn().await;
    assert_eq!((second.message.text().as_str(), &second.task_id), ("two", &begun.id));
    second.end(done());
    let (replayed, told) = told(joined(more).await.unwrap());
    assert!(!replayed);
    assert_eq!((told.status.state, tasks(&house).await), (TaskState::Completed, 1));
    assert_eq!(history(&told), ["one", "two"]);
}

#[tokio::test]
async fn who_repeats_while_it_runs_gets_the_same_outcome() {
    let mut house = Setup::plain().open();
    let message = say("hello").named("t-1");
    let first = house.send_aside_as(speaking(DRAFT), message.clone());
    let turn = house.stage.turn().await;
    turn.say([artifact("a", "b")]);
    house.store.until("report", 1).await;
    let second = house.send_aside_as(speaking(DRAFT), message.clone());
    let mut third = house.stream_in(DRAFT, message.clone()).await.unwrap();
    assert_eq!(third.next().await, "1 task submitted");
    assert_eq!(third.next().await, "2 working");
    assert_eq!(third.next().await, "3 artifact a: b");
    let (replayed, standing) = send(&house, message.at_once()).await;
    assert_eq!((replayed, standing.status.state), (true, TaskState::Working));
    turn.end(done());
    let (first, second) = (told(joined(first).await.unwrap()), told(joined(second).await.unwrap()));
    assert_eq!((first.0, second.0, first.1), (false, true, second.1));
    assert_eq!(third.lines().await, ["4 completed"]);
    assert!(house.stage.is_quiet());
}

#[tokio::test]
async fn a_repetition_after_the_end_is_answered_as_before() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let mut house = setup.open();
        let ends = [done(), Outcome::Failed { message: None, retryable: false }];
        let ends = ends.into_iter().chain([Outcome::Rejected { message: None }, ask("which?")]);
        for (number, outcome) in ends.enumerate() {
            let message = say("hello").named(&format!("t-{number}"));
            house.stage.prepare_turn([artifact("a", "b")], outcome);
            let (_, first) = send(&house, message.clone()).await;
            house.stage.turn().await;
            assert_eq!(send(&house, message.clone()).await, (true, first.clone()));
            assert_eq!(send(&house, message.clone().at_once()).await, (true, first.clone()));
            let mut frames = house.stream_in(DRAFT, message).await.unwrap();
            assert_eq!(frames.next().await, "1 task submitted");
            assert_eq!(house.get(&first.id).await.unwrap(), first);
        }
        let (held, _turn) = begin(&mut house, say("hello").named("canceled")).await;
        let canceled = house.cancel(&held.id).await.unwrap();
        assert_eq!(send(&house, say("hello").named("canceled")).await, (true, canceled));
        assert!(house.stage.is_quiet());
    }
}

#[tokio::test]
async fn a_repetition_says_the_same_and_nothing_else() {
    let mut house = Setup::overlapping().open();
    house.stage.prepare_turn([], done());
    send(&house, say("hello").named("t-1")).await;
    house.stage.turn().await;
    // What counts is what the last message said.
    for (number, text) in ["hello ", "Hello", "hello"].into_iter().enumerate() {
        house.stage.prepare_turn([], done());
        assert!(!send(&house, say(text).named("t-1")).await.0, "{text:?}");
        assert_eq!(house.stage.turn().await.message.text(), text);
        assert_eq!(house.row(&"t-1".into()).await.turn, 2 + i64::try_from(number).unwrap());
    }
}

#[tokio::test]
async fn a_key_holds_for_the_task_its_client_names() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let house = setup.open();
        let keyed = |key: &str| Call { idempotency_key: Some(key.into()), ..speaking(DRAFT) };
        let mut answers = Vec::new();
        for (key, text) in [("one", "hello"), ("two", "more")] {
            house.stage.prepare_turn([], done());
            answers.push(told(house.send_as(keyed(key), say(text).named("t-1")).await.unwrap()));
        }
        // By now it is not what was said last, and still the same message.
        for ((key, text), (_, first)) in [("one", "hello"), ("two", "more")].into_iter().zip(answers) {
            let again = told(house.send_as(keyed(key), say(text).named("t-1").at_once()).await.unwrap());
            assert!(again.0, "{key} was used before");
            let again = told(house.send_as(keyed(key), say(text).named("t-1")).await.unwrap());
            assert_eq!(again, (true, first));
            let mistake = house.send_as(keyed(key), say("other words").named("t-1")).await;
            assert_eq!(refused(mistake), ErrorKind::MessageIdReused, "{key}");
        }
        assert_eq!(history(&house.get(&"t-1".into()).await.unwrap()), ["hello", "more"]);
    }
}

#[tokio::test]
async fn a_name_means_another_task_to_everybody_else() {
    let mut house = Setup::overlapping().open();
    let stranger = || Call { scope: Scope::anonymous("elsewhere", "scripted"), ..speaking(DRAFT) };
    house.stage.prepare_turn([], done_saying("ours"));
    let (_, ours) = send(&house, say("hello").named("t-1")).await;
    let (held, _turn) = {
        house.stage.turn().await;
        begin(&mut house, say("hello").named("t-2")).await
    };
    for id in [&ours.id, &held.id] {
        let get = Operation::GetTask(GetTask { id: id.clone(), history_length: None, tenant: None });
        assert_eq!(refused(house.call_as(stranger(), get).await), ErrorKind::TaskNotFound);
        let cancel = Operation::CancelTask(CancelTask { id: id.clone(), metadata: None, tenant: None });
        assert_eq!(refused(house.call_as(stranger(), cancel).await), ErrorKind::TaskNotFound);
    }
    // The very same message: neither a repetition nor a turn of somebody else's task.
    for id in [&ours.id, &held.id] {
        house.stage.prepare_turn([], done_saying("theirs"));
        let answer = house.send_as(stranger(), say("hello").named(id.as_str())).await.unwrap();
        let (replayed, theirs) = told(answer);
        assert_eq!((replayed, &theirs.id), (false, id));
        assert_ne!(theirs.context_id, ours.context_id);
        assert_eq!(status_text(&theirs).as_deref(), Some("theirs"));
        assert_eq!(history(&theirs), ["hello", "theirs"]);
    }
    assert_eq!(house.get(&ours.id).await.unwrap(), ours);
    assert_eq!(house.get(&held.id).await.unwrap(), held);
}

#[tokio::test]
async fn a_name_that_only_looks_like_ours_is_a_clients_name() {
    let mut house = Setup::overlapping().open();
    house.stage.prepare_turn([], done());
    let ours = house.send_for_task(say("hello")).await;
    let (no, tag) = house.store.ids().parse_task(&ours.id).unwrap();
    let mut other = tag;
    other.0[0] ^= 1;
    let foreign = {
        house.stage.prepare_turn([], done());
        let send = Operation::SendMessage(say("hello").into());
        task(reply(house.call(Scope::anonymous("elsewhere", "scripted"), send).await.unwrap())).id
    };
    let ids = house.store.ids();
    let names =
        [ids.task(TaskNo(no.0 + 1_000_000), Tag([9; 10])), ids.task(no, other), foreign, "task_".into()];
    while !house.stage.is_quiet() {}
    for name in names {
        house.stage.prepare_turn([], ask("which?"));
        let (_, asked) = send(&house, say("one of them").named(name.as_str())).await;
        assert_eq!(asked.id, name);
        house.stage.prepare_turn([], done());
        let (_, told) = send(&house, say("blue").named(name.as_str())).await;
        assert_eq!(history(&told), ["one of them", "which?", "blue"]);
        assert_eq!(house.get(&name).await.unwrap(), told);
    }
    assert_eq!(house.get(&ours.id).await.unwrap(), ours);
}

async fn until_gone(house: &House, id: &TaskId) {
    let gone = async {
        while house.get(id).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    within(gone).await;
}

#[tokio::test]
async fn the_name_of_a_forgotten_task_is_free_again() {
    let clock = Clock::manual(Timestamp::from_millis(1_000_000));
    let span = std::time::Duration::from_secs(4);
    let retention = Retention { max_age: span, ..Retention::default() };
    let house = Setup::overlapping().clock(&clock).retention(retention).open();
    house.stage.prepare_turn([artifact("old", "old")], done());
    send(&house, say("hello").named("t-1")).await;
    house.stage.prepare_turn([artifact("old", "old")], done());
    // One of ours too: whoever still has its name may go on using it.
    let repeated = say("hello");
    let ours = house.send_for_task(repeated.clone()).await.id;
    clock.advance(span + std::time::Duration::from_secs(1));
    for name in ["t-1".into(), ours] {
        until_gone(&house, &name).await;
        house.stage.prepare_turn([artifact("new", "new")], done());
        let (replayed, begun) = send(&house, say("hello").named(name.as_str())).await;
        assert_eq!((replayed, &begun.id), (false, &name));
        assert_eq!(artifacts(&begun), [("new".into(), "new".into())]);
        assert_eq!(house.get(&name).await.unwrap(), begun, "{name}");
        assert_eq!(house.row(&name).await.turn, 1);
        house.stage.prepare_turn([], done());
        let (_, told) = send(&house, say("more").named(name.as_str())).await;
        assert_eq!(history(&told), ["hello", "more"]);
    }
    assert_eq!(tasks(&house).await, 2);
    // A repetition of the message that made the old one is not answered with the new one.
    assert_eq!(refused(house.send(repeated).await), ErrorKind::TaskNotFound);
}

#[tokio::test]
async fn every_generation_uses_the_names_of_the_others() {
    let mut house = Setup::plain().open();
    for dialect in [Dialect::V1, Dialect::V03, Dialect::V03Proto] {
        let name = format!("t-{dialect:?}");
        let (begun, turn) = begin(&mut house, say("hello").named(&name)).await;
        assert_eq!(house.engine.origin(&scope(), &begun.id).await.unwrap(), Some(DRAFT));
        let get = Operation::GetTask(GetTask { id: begun.id.clone(), history_length: None, tenant: None });
        let got = house.call_as(speaking(dialect), get).await.unwrap();
        assert_eq!(task(reply(got)), begun);
        let mut frames = house.subscribe_in(dialect, &begun.id, None).await.unwrap();
        assert_eq!(frames.next().await, "2 task working");
        // Whoever answers, it is the same task.
        turn.end(ask("which?"));
        house.store.until("pause", 1).await;
        house.stage.prepare_turn([], ask("sure?"));
        let told = house.send_as(speaking(dialect), say("blue").to(&begun.id)).await.unwrap();
        assert_eq!(task(reply(told)).id, begun.id);
        house.stage.turn().await;
        let cancel = Operation::CancelTask(CancelTask { id: begun.id.clone(), metadata: None, tenant: None });
        let canceled = task(reply(house.call_as(speaking(dialect), cancel).await.unwrap()));
        assert_eq!((&canceled.id, canceled.status.state), (&begun.id, TaskState::Canceled));
    }
    for dialect in [Dialect::V1, Dialect::V03] {
        let answer = house.send_as(speaking(dialect), say("hello").at_once()).await.unwrap();
        let begun = task(reply(answer));
        let turn = house.stage.turn().await;
        assert_eq!(house.engine.origin(&scope(), &begun.id).await.unwrap(), Some(dialect));
        let mut frames = house.subscribe_in(DRAFT, &begun.id, None).await.unwrap();
        assert_eq!(frames.next().await, "2 task working");
        turn.end(done());
        assert_eq!(frames.lines().await, ["3 completed"]);
        house.stage.prepare_turn([], done());
        let (_, told) = send(&house, say("more").named(begun.id.as_str())).await;
        assert_eq!((&told.id, house.row(&begun.id).await.turn), (&begun.id, 2));
        house.stage.turn().await;
    }
}

#[tokio::test]
async fn the_origin_of_a_task_is_its_owners_to_know() {
    let mut house = Setup::plain().open();
    let (begun, _turn) = begin(&mut house, say("hello").named("t-1")).await;
    for (scope, id) in [
        (Scope::anonymous("elsewhere", "scripted"), begun.id.clone()),
        (Scope::anonymous("default", "nobody"), begun.id.clone()),
        (scope(), "t-2".into()),
        (scope(), house.store.ids().task(TaskNo(99), Tag([9; 10]))),
    ] {
        assert_eq!(house.engine.origin(&scope, &id).await.unwrap(), None);
    }
    // What is no task, or not yet, has none.
    let call = house.send_aside(say("undecided"));
    let undecided = house.stage.turn().await;
    assert_eq!(house.engine.origin(&scope(), &undecided.task_id).await.unwrap(), None);
    undecided.say([answer("a bare answer")]);
    assert!(matches!(joined(call).await.unwrap(), Reply::SentMessage(_)));
    assert_eq!(house.engine.origin(&scope(), &undecided.task_id).await.unwrap(), None);
}
