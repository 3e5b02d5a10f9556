//! A stream that broke off goes on behind the last event its client saw (R16, R17).

use a2ad_engine::Resume;
use protocol::{Dialect, ErrorKind};

use crate::common::{
    House, Setup, artifact, ask, chunk, done, progress, refused, reply, say, speaking, task,
};

/// A task at work whose log has five events.
async fn five() -> (House, crate::common::Taken, Vec<String>) {
    let mut house = Setup::plain().open();
    let (_, turn) = house.begin("hello").await;
    let mut frames = house.subscribe(&turn.task_id).await.unwrap();
    turn.say([progress("one"), chunk("a", "two"), artifact("b", "three")]);
    assert_eq!(frames.next().await, "2 task working");
    let mut lines = vec!["1 submitted".to_owned(), "2 working".to_owned()];
    for _ in 3..=5 {
        lines.push(frames.next().await);
    }
    (house, turn, lines)
}

#[tokio::test]
async fn what_was_missed_comes_first_and_then_what_is_new() {
    let (house, turn, lines) = five().await;
    let mut streams = Vec::new();
    for seen in 0..=5 {
        streams.push((seen, house.resume(&turn.task_id, Resume::After(seen)).await.unwrap()));
    }
    turn.end(done());
    house.store.until("finish", 1).await;
    for seen in 0..=5 {
        // By now the task is over, and who has not seen its end is still told.
        streams.push((seen, house.resume(&turn.task_id, Resume::After(seen)).await.unwrap()));
    }
    for (seen, mut frames) in streams {
        let found = frames.lines().await;
        // As it was then, though it is over by now: a client stops at the first terminal status.
        let state = if seen < 2 { "submitted" } else { "working" };
        assert_eq!(found[0], format!("{seen} task {state} without history"));
        let missed = &lines[usize::try_from(seen).unwrap()..];
        assert_eq!(found[1..found.len() - 1], *missed, "{seen}");
        assert_eq!(found.last().unwrap(), "6 completed");
    }
    for seen in [Resume::After(6), Resume::After(7), Resume::Unknown] {
        assert_eq!(refused(house.resume(&turn.task_id, seen).await), ErrorKind::UnsupportedOperation);
    }
}

#[tokio::test]
async fn what_cannot_be_placed_begins_anew_and_says_so() {
    let (house, turn, _) = five().await;
    for seen in [Resume::After(6), Resume::After(u64::MAX), Resume::Unknown] {
        let mut frames = house.resume(&turn.task_id, seen).await.unwrap();
        assert_eq!(frames.next().await, "5 task working with a gap");
    }
}

#[tokio::test]
async fn every_generation_gets_what_it_missed() {
    for dialect in Dialect::ALL {
        let (house, turn, lines) = five().await;
        let id = &turn.task_id;
        let mut streams = Vec::new();
        for seen in [0, 3, 5] {
            let resumed = house.subscribe_in(dialect, id, Some(Resume::After(seen))).await;
            streams.push((seen, resumed.unwrap()));
        }
        for beyond in [Resume::After(6), Resume::Unknown] {
            let mut frames = house.subscribe_in(dialect, id, Some(beyond)).await.unwrap();
            assert_eq!(frames.next().await, "5 task working with a gap", "{dialect:?}");
        }
        turn.end(done());
        house.store.until("finish", 1).await;
        for seen in [0, 3, 5] {
            let resumed = house.subscribe_in(dialect, id, Some(Resume::After(seen))).await;
            streams.push((seen, resumed.unwrap()));
        }
        for (seen, mut frames) in streams {
            let found = frames.lines().await;
            let state = if seen == 0 { "submitted" } else { "working" };
            assert_eq!(found[0], format!("{seen} task {state} without history"), "{dialect:?}");
            assert_eq!(found[1..found.len() - 1], lines[usize::try_from(seen).unwrap()..]);
            assert_eq!(found.last().unwrap(), "6 completed");
        }
        // Nothing was missed: one last status where the generation shows that.
        for seen in [Resume::After(6), Resume::After(7), Resume::Unknown] {
            let resumed = house.subscribe_in(dialect, id, Some(seen)).await;
            match dialect {
                Dialect::V1 => assert_eq!(refused(resumed), ErrorKind::UnsupportedOperation),
                _ => assert_eq!(resumed.unwrap().lines().await, ["6 completed"], "{dialect:?} {seen:?}"),
            }
        }
    }
}

#[tokio::test]
async fn a_question_that_was_answered_meanwhile_does_not_end_the_stream() {
    for dialect in Dialect::ALL {
        let mut house = Setup::plain().open();
        house.stage.prepare_turn([], ask("which?"));
        let asked = house.send_for_task(say("one of them")).await;
        house.stage.turn().await;
        let call = house.send_aside(say("blue").to(&asked.id));
        let turn = house.stage.turn().await;
        let mut open = house.subscribe_in(dialect, &asked.id, Some(Resume::After(1))).await.unwrap();
        turn.end(done());
        crate::common::joined(call).await.unwrap();
        let mut over = house.subscribe_in(dialect, &asked.id, Some(Resume::After(1))).await.unwrap();
        let missed =
            ["1 task submitted without history", "2 input_required: which?", "3 working", "4 completed"];
        assert_eq!(over.lines().await, missed, "{dialect:?}");
        assert_eq!(open.lines().await, missed, "{dialect:?}");
    }
}

#[tokio::test]
async fn the_end_of_an_earlier_turn_does_not_end_the_stream() {
    for dialect in Dialect::ALL {
        let mut house = Setup::plain().open();
        house.stage.prepare_turn([], done());
        let draft = || speaking(Dialect::Draft);
        let first = task(reply(house.send_as(draft(), say("hello").named("t-1")).await.unwrap()));
        house.stage.turn().await;
        house.send_as(draft(), say("more").named("t-1").at_once()).await.unwrap();
        let turn = house.stage.turn().await;
        let mut frames = house.subscribe_in(dialect, &first.id, Some(Resume::After(1))).await.unwrap();
        turn.end(done());
        let missed = ["1 task submitted without history", "2 completed", "3 working", "4 completed"];
        assert_eq!(frames.lines().await, missed, "{dialect:?}");
    }
}

/// A task whose log was folded into a doc is resumed from any of its events.
#[tokio::test]
async fn a_folded_task_shows_the_status_of_the_event_it_is_resumed_from() {
    let mut setup = Setup::plain().open();
    let (id, turn) = setup.begin("hello").await;
    let mut watcher = setup.subscribe(&id).await.unwrap();
    assert_eq!(watcher.next().await, "2 task working");
    let mut states = vec!["submitted".to_owned(), "submitted".to_owned(), "working".to_owned()];
    // One commit each, and a status now and then.
    for number in 3..=80 {
        if number % 20 == 0 {
            turn.say([progress(&number.to_string())]);
        } else {
            turn.say([chunk("a", "x")]);
        }
        watcher.next().await;
        states.push("working".to_owned());
    }
    turn.end(done());
    assert_eq!(watcher.lines().await, ["81 completed"]);
    // A duty writes the doc when it gets to it.
    crate::common::within(async {
        while setup.row(&id).await.doc < 81 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    for dialect in Dialect::ALL {
        for (seen, state) in (0..).zip(&states) {
            let resume = Some(Resume::After(seen));
            let mut frames = setup.subscribe_in(dialect, &id, resume).await.unwrap();
            let found = frames.lines().await;
            assert_eq!(found[0], format!("{seen} task {state} without history"), "{dialect:?}");
            assert_eq!(found.len() as u64, 1 + 81 - seen, "{dialect:?}");
        }
    }
}
