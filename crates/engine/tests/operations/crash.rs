//! What a process that died leaves behind is taken up by the next.
//!
//! A life is a runtime of its own. Dropping it stops every task of it wherever it stands, as a kill does; what the
//! store has been given is all that is left.

use std::{path::Path, time::Duration};

use a2ad_engine::OnCrash;
use protocol::{Dialect, ListTasks, Role, TaskId, TaskState};

use crate::common::{
    House, Setup, artifact, artifacts, ask, chunk, done, history, joined, reply, save, say, speaking,
    status_text, task,
};

/// One process, from start to death.
fn life<T>(folder: &Path, setup: Setup, story: impl AsyncFnOnce(&mut House) -> T) -> T {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let (told, house) = runtime.block_on(async {
        let mut house = setup.open_at(folder);
        (story(&mut house).await, house)
    });
    // First everything stops where it is: a house that is dropped before lets go of its work in good order.
    runtime.shutdown_timeout(Duration::from_secs(10));
    drop(house);
    told
}

async fn finished(house: &mut House, id: &TaskId) -> protocol::Task {
    // Refused when it is over already.
    if let Ok(mut frames) = house.subscribe(id).await {
        frames.lines().await;
    }
    house.get(id).await.unwrap()
}

#[test]
fn a_turn_is_tried_again_with_the_same_key_and_what_was_saved() {
    for (policy, expected) in [(OnCrash::Retry, "three four"), (OnCrash::Resume, "one two three four")] {
        let folder = tempfile::tempdir().unwrap();
        let (id, key) = life(folder.path(), Setup::plain().on_crash(policy), async |house| {
            let (id, turn) = house.begin("hello").await;
            turn.say([chunk("text", "one "), save("1")]);
            house.store.until("report", 1).await;
            turn.say([chunk("text", "two "), save("2")]);
            house.store.until("report", 2).await;
            (id, turn.idempotency_key.clone())
        });
        life(folder.path(), Setup::plain().on_crash(policy), async |house| {
            let turn = house.stage.turn().await;
            assert_eq!((&turn.task_id, turn.attempt), (&id, 2));
            assert_eq!(turn.idempotency_key, key);
            assert_eq!((turn.message.text().as_str(), turn.history.len()), ("hello", 0));
            assert_eq!(turn.saved.as_deref(), Some(b"2".as_slice()));
            // Who starts over replaces what is there, who goes on adds to it.
            turn.say([chunk("text", "three ")]);
            turn.say([chunk("text", "four")]);
            turn.end(done());
            let task = finished(house, &id).await;
            assert_eq!(task.status.state, TaskState::Completed);
            assert_eq!(artifacts(&task), [("text".into(), expected.into())]);
        });
    }
}

#[test]
fn a_turn_that_must_not_run_twice_fails() {
    let folder = tempfile::tempdir().unwrap();
    let id = life(folder.path(), Setup::plain().on_crash(OnCrash::Fail), async |house| {
        house.begin("pay the bill").await.0
    });
    life(folder.path(), Setup::plain().on_crash(OnCrash::Fail), async |house| {
        let failed = finished(house, &id).await;
        assert_eq!(failed.status.state, TaskState::Failed);
        assert!(status_text(&failed).unwrap().starts_with("interrupted"), "{:?}", failed.status);
        assert!(house.stage.is_quiet());
        house.stage.prepare_turn([], done());
        assert_eq!(house.send_for_task(say("hello")).await.status.state, TaskState::Completed);
    });
}

#[test]
fn no_task_is_lost_whatever_it_was_doing() {
    let folder = tempfile::tempdir().unwrap();
    let setup = || Setup::plain().slots(2);
    let (ids, undecided) = life(folder.path(), setup(), async |house| {
        house.stage.prepare_turn([], done());
        let over = house.send_for_task(say("over")).await.id;
        house.stage.turn().await;
        house.stage.prepare_turn([save("place")], ask("which?"));
        let asks = house.send_for_task(say("asks")).await.id;
        house.stage.turn().await;
        let (runs, _turn) = house.begin("runs").await;
        // Nobody has decided whether this one is a task; its caller dies with the process.
        let _call = house.send_aside(say("undecided"));
        let undecided = house.stage.turn().await.task_id.clone();
        let queued = house.send_for_task(say("queued").at_once()).await.id;
        ([over, asks, runs, queued], undecided)
    });
    life(folder.path(), setup(), async |house| {
        let mut texts = Vec::new();
        for _ in 0..3 {
            let turn = house.stage.turn().await;
            texts.push((turn.message.text(), turn.attempt));
            turn.end(done());
        }
        texts.sort();
        assert_eq!(texts, [("queued".into(), 1), ("runs".into(), 2), ("undecided".into(), 2)]);
        let [over, asks, runs, queued] = &ids;
        for id in [over, runs, queued, &undecided] {
            assert_eq!(finished(house, id).await.status.state, TaskState::Completed);
        }
        let call = house.send_aside(say("the answer").to(asks));
        let turn = house.stage.turn().await;
        assert_eq!((turn.saved.as_deref(), turn.attempt), (Some(b"place".as_slice()), 1));
        turn.end(done());
        joined(call).await.unwrap();
        assert_eq!(history(&house.get(asks).await.unwrap()), ["asks", "which?", "the answer"]);
        assert_eq!(house.list(ListTasks::default()).await.unwrap().total_size, 5);
        assert!(house.stage.is_quiet());
    });
}

#[test]
fn what_was_said_before_the_crash_does_not_change_what_the_turn_is_for() {
    let folder = tempfile::tempdir().unwrap();
    let (id, key) = life(folder.path(), Setup::plain(), async |house| {
        let (id, turn) = house.begin("one").await;
        house.send(say("two").to(&id).at_once()).await.unwrap();
        (id, turn.idempotency_key.clone())
    });
    life(folder.path(), Setup::plain(), async |house| {
        let turn = house.stage.turn().await;
        assert_eq!((turn.message.text().as_str(), turn.attempt), ("one", 2));
        assert_eq!(turn.idempotency_key, key);
        turn.end(done());
        assert_eq!(history(&finished(house, &id).await), ["one", "two"]);
    });
}

#[test]
fn a_turn_goes_on_whoever_spoke_last() {
    let folder = tempfile::tempdir().unwrap();
    let (id, key) = life(folder.path(), Setup::plain(), async |house| {
        let (id, turn) = house.begin("one").await;
        house.send(say("two").by(Role::Agent).to(&id).at_once()).await.unwrap();
        (id, turn.idempotency_key.clone())
    });
    life(folder.path(), Setup::plain(), async |house| {
        let turn = house.stage.turn().await;
        assert_eq!((turn.message.text().as_str(), &turn.idempotency_key), ("one", &key));
        turn.end(done());
        assert_eq!(history(&finished(house, &id).await), ["one", "two"]);
    });
}

#[test]
fn a_turn_that_kills_every_process_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let id = life(folder.path(), Setup::plain(), async |house| house.begin("hello").await.0);
    for attempt in 2..=3 {
        life(folder.path(), Setup::plain(), async |house| {
            assert_eq!(house.stage.turn().await.attempt, attempt)
        });
    }
    life(folder.path(), Setup::plain(), async |house| {
        let failed = finished(house, &id).await;
        assert_eq!(failed.status.state, TaskState::Failed);
        assert!(status_text(&failed).unwrap().starts_with("poisoned"), "{:?}", failed.status);
        assert!(house.stage.is_quiet());
    });
}

#[test]
fn turns_under_which_two_processes_died_run_one_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    life(folder.path(), Setup::plain(), async |house| {
        house.begin("one").await;
        house.begin("two").await;
    });
    life(folder.path(), Setup::plain(), async |house| {
        house.stage.turn().await;
        house.stage.turn().await;
    });
    life(folder.path(), Setup::plain(), async |house| {
        let suspect = house.stage.turn().await;
        assert_eq!(suspect.attempt, 3);
        // Others are not held up by it.
        let (_, innocent) = house.begin("three").await;
        innocent.end(done());
        house.store.until("finish", 1).await;
        assert!(house.stage.is_quiet());
        suspect.end(done());
        house.stage.turn().await.end(done());
        house.store.until("finish", 3).await;
        assert_eq!(house.count(TaskState::Completed).await, 3);
    });
}

#[test]
fn ids_are_not_given_out_twice() {
    let folder = tempfile::tempdir().unwrap();
    let mut ids = std::collections::HashSet::new();
    for _ in 0..3 {
        life(folder.path(), Setup::overlapping(), async |house| {
            for _ in 0..3 {
                house.stage.prepare_turn([], done());
                assert!(ids.insert(house.send_for_task(say("hello")).await.id));
            }
        });
    }
    life(folder.path(), Setup::overlapping(), async |house| {
        for id in &ids {
            assert_eq!(house.get(id).await.unwrap().status.state, TaskState::Completed);
        }
    });
}

#[test]
fn a_turn_is_tried_again_for_the_skill_that_was_asked_for() {
    for policy in [OnCrash::Retry, OnCrash::Resume] {
        let folder = tempfile::tempdir().unwrap();
        let setup = || Setup::plain().skills(&["paint", "draw"]).slots(1).on_crash(policy);
        life(folder.path(), setup(), async |house| {
            house.send(say("runs").skill("draw").at_once()).await.unwrap();
            house.stage.turn().await;
            house.send(say("queued").skill("paint").at_once()).await.unwrap();
        });
        life(folder.path(), setup(), async |house| {
            let mut taken = Vec::new();
            for _ in 0..2 {
                let turn = house.stage.turn().await;
                taken.push((turn.message.text(), turn.skill.clone().unwrap()));
                turn.end(done());
            }
            taken.sort();
            let expected = [("queued", "paint"), ("runs", "draw")];
            assert_eq!(taken, expected.map(|(text, skill)| (text.to_owned(), skill.to_owned())));
        });
    }
}

#[test]
fn a_later_turn_of_a_named_task_is_tried_again_by_itself() {
    let draft = || speaking(Dialect::Draft);
    let folder = tempfile::tempdir().unwrap();
    let key = life(folder.path(), Setup::plain(), async |house| {
        house.stage.prepare_turn([artifact("first", "one"), chunk("text", "old"), save("place")], done());
        house.send_as(draft(), say("hello").named("t-1")).await.unwrap();
        house.stage.turn().await;
        house.send_as(draft(), say("more").named("t-1").at_once()).await.unwrap();
        let turn = house.stage.turn().await;
        turn.say([chunk("second", "lost")]);
        house.store.until("report", 1).await;
        turn.idempotency_key.clone()
    });
    life(folder.path(), Setup::plain(), async |house| {
        let turn = house.stage.turn().await;
        assert_eq!((turn.task_id.as_str(), turn.attempt, &turn.idempotency_key), ("t-1", 2, &key));
        assert_eq!((turn.message.text().as_str(), turn.history.len()), ("more", 1));
        assert_eq!(turn.saved.as_deref(), Some(b"place".as_slice()));
        // The repetition of a client that saw the process die finds its turn.
        let repeated = house.send_aside_as(draft(), say("more").named("t-1"));
        // What the turn itself had begun is begun anew; what earlier turns made stays, and the turn makes its own.
        turn.say([chunk("second", "kept"), chunk("text", " and new")]);
        turn.end(done());
        let over = task(reply(joined(repeated).await.unwrap()));
        let expected = [("first", "one"), ("text", "old"), ("second", "kept"), ("text-2", " and new")];
        assert_eq!(artifacts(&over), expected.map(|(id, text)| (id.to_owned(), text.to_owned())));
        let row = house.row(&over.id).await;
        assert_eq!((row.turn, row.client_id.as_ref(), row.origin), (2, Some(&over.id), Dialect::Draft));
        assert!(house.stage.is_quiet());
    });
}
