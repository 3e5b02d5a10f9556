//! Watching a task: from where it stands to its end, however many turns away, and however slowly.

use protocol::{Dialect, ErrorKind, TaskState};

use crate::common::{Frames, Setup, artifact, ask, chunk, done, failed, joined, progress, refused, say};

#[tokio::test]
async fn a_watcher_of_a_task_that_asks_sees_the_next_turn() {
    let mut house = Setup::plain().open();
    house.stage.prepare_turn([artifact("a", "one")], ask("which?"));
    let asked = house.send_for_task(say("one of them")).await;
    house.stage.turn().await;
    let mut frames = house.subscribe(&asked.id).await.unwrap();
    assert_eq!(frames.next().await, "4 task input_required");
    assert!(frames.is_quiet());

    let call = house.send_aside(say("blue").to(&asked.id));
    let turn = house.stage.turn().await;
    turn.end(ask("sure?"));
    joined(call).await.unwrap();
    assert_eq!(frames.next().await, "5 working");
    assert_eq!(frames.next().await, "6 input_required: sure?");

    house.stage.prepare_turn([], done());
    house.send(say("sure").to(&asked.id)).await.unwrap();
    assert_eq!(frames.lines().await, ["7 working", "8 completed"]);
}

#[tokio::test]
async fn all_watchers_see_the_same_and_leaving_changes_nothing() {
    let mut house = Setup::plain().open();
    let mut sender = house.stream(say("hello")).await.unwrap();
    let turn = house.stage.turn().await;
    turn.say([progress("one")]);
    assert_eq!(sender.next().await, "1 task submitted");
    assert_eq!(sender.next().await, "2 working: one");
    let mut first = house.subscribe(&turn.task_id).await.unwrap();
    let second = house.subscribe(&turn.task_id).await.unwrap();
    let mut third = house.subscribe(&turn.task_id).await.unwrap();
    drop(second);
    turn.say([progress("two"), artifact("a", "b")]);
    assert_eq!(sender.next().await, "3 working: two");
    drop(sender);
    turn.end(done());
    let expected = ["2 task working", "3 working: two", "4 artifact a: b", "5 completed"];
    assert_eq!(first.lines().await, expected);
    assert_eq!(third.lines().await, expected);
    drop((first, third));
    assert_eq!(house.feed.watched_tasks(), 0, "nobody watches, and something is remembered");
}

/// The numbers of all lines, which must follow one another without gap or repeat, from the snapshot on.
async fn numbers(frames: &mut Frames) -> Vec<u64> {
    let lines = frames.lines().await;
    lines.iter().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect()
}

#[tokio::test]
async fn a_slow_watcher_misses_nothing_and_sees_nothing_twice() {
    let mut house = Setup::plain().open();
    let (id, turn) = house.begin("hello").await;
    let mut slow = house.subscribe(&id).await.unwrap();
    let mut middling = house.subscribe(&id).await.unwrap();
    // Far more than a live buffer holds, in several commits; one watcher looks in on the way.
    for round in 1..=3 {
        for number in 0..100 {
            turn.say([progress(&format!("{round}.{number}")), chunk("a", "x"), chunk("a", "y")]);
        }
        let last = 2 + round * 300;
        while !middling.next().await.starts_with(&format!("{} ", last - 150)) {}
    }
    turn.end(done());
    house.store.until("finish", 1).await;
    assert_eq!(numbers(&mut slow).await, (2..=903).collect::<Vec<_>>());
    assert_eq!(numbers(&mut middling).await, (753..=903).collect::<Vec<_>>());
    let task = house.get(&id).await.unwrap();
    assert_eq!(task.artifacts[0].parts.len(), 600);
}

#[tokio::test]
async fn large_events_do_not_stay_in_memory_and_are_not_lost() {
    let mut house = Setup::plain().open();
    let (id, turn) = house.begin("hello").await;
    let mut slow = house.subscribe(&id).await.unwrap();
    let large = "x".repeat(600 << 10);
    for name in ["a", "b", "c"] {
        turn.say([artifact(name, &large)]);
    }
    turn.say([artifact("d", &"y".repeat(2 << 20))]);
    turn.end(done());
    house.store.until("finish", 1).await;
    assert_eq!(numbers(&mut slow).await, [2, 3, 4, 5, 6, 7]);
}

#[tokio::test]
async fn a_task_that_is_over_has_nothing_to_watch() {
    let mut house = Setup::overlapping().open();
    for outcome in [done(), failed("broken")] {
        house.stage.prepare_turn([], outcome);
        let task = house.send_for_task(say("hello")).await;
        house.stage.turn().await;
        assert_eq!(refused(house.subscribe(&task.id).await), ErrorKind::UnsupportedOperation);
    }
    let (id, _turn) = house.begin("hold").await;
    assert_eq!(house.cancel(&id).await.unwrap().status.state, TaskState::Canceled);
    assert_eq!(refused(house.subscribe(&id).await), ErrorKind::UnsupportedOperation);
    assert_eq!(refused(house.subscribe(&"unknown".into()).await), ErrorKind::TaskNotFound);
}

#[tokio::test]
async fn the_older_generations_watch_until_the_task_asks() {
    for dialect in Dialect::ALL {
        let mut house = Setup::plain().open();
        house.stage.prepare_turn([], ask("which?"));
        let asked = house.send_for_task(say("one of them")).await;
        house.stage.turn().await;
        // How it stands ends no stream.
        let mut frames = house.subscribe_in(dialect, &asked.id, None).await.unwrap();
        assert_eq!(frames.next().await, "2 task input_required");
        assert!(frames.is_quiet(), "{dialect:?}");
        house.stage.prepare_turn([], ask("sure?"));
        house.send(say("blue").to(&asked.id)).await.unwrap();
        house.stage.turn().await;
        assert_eq!(frames.next().await, "3 working");
        assert_eq!(frames.next().await, "4 input_required: sure?");
        if dialect == Dialect::V1 {
            assert!(frames.is_quiet());
            house.stage.prepare_turn([], done());
            house.send(say("sure").to(&asked.id)).await.unwrap();
            assert_eq!(frames.lines().await, ["5 working", "6 completed"]);
        } else {
            assert!(frames.lines().await.is_empty(), "{dialect:?}");
        }
    }
}

#[tokio::test]
async fn the_older_generations_are_shown_the_end_again() {
    for outcome in [|| done(), || failed("broken")] {
        let house = Setup::overlapping().open();
        house.stage.prepare_turn([artifact("a", "b")], outcome());
        let task = house.send_for_task(say("hello")).await;
        let end = if task.status.state == TaskState::Completed { "4 completed" } else { "4 failed: broken" };
        for dialect in [Dialect::Draft, Dialect::V03, Dialect::V03Proto] {
            let mut frames = house.subscribe_in(dialect, &task.id, None).await.unwrap();
            assert_eq!(frames.lines().await, [end], "{dialect:?}");
            let unknown = house.subscribe_in(dialect, &"unknown".into(), None).await;
            assert_eq!(refused(unknown), ErrorKind::TaskNotFound);
        }
        let refusal = house.subscribe_in(Dialect::V1, &task.id, None).await;
        assert_eq!(refused(refusal), ErrorKind::UnsupportedOperation);
    }
}

#[tokio::test]
async fn a_snapshot_knows_the_artifacts_in_the_order_they_appeared() {
    let mut house = Setup::plain().open();
    let (id, turn) = house.begin("hello").await;
    turn.say([artifact("c", "1"), chunk("a", "2"), artifact("b", "3"), chunk("a", "4"), artifact("c", "5")]);
    house.store.until("report", 1).await;
    for dialect in Dialect::ALL {
        let mut whole = house.subscribe_in(dialect, &id, None).await.unwrap();
        assert_eq!(whole.next().await, "7 task working");
        assert_eq!(whole.known_artifacts(), ["c", "a", "b"]);
        for seen in 2..=7 {
            let resume = Some(a2ad_engine::Resume::After(seen));
            let mut resumed = house.subscribe_in(dialect, &id, resume).await.unwrap();
            assert_eq!(resumed.next().await, format!("{seen} task working without history"));
            assert_eq!(resumed.known_artifacts(), ["c", "a", "b"]);
        }
    }
    turn.end(done());
}
