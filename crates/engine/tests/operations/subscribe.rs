//! Watching a task: from where it stands to its end, however many turns away, and however slowly.

use protocol::{ErrorKind, TaskState};

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
