//! Subscribing to a task: from its current state to its end, over any number of turns and at any speed.

use protocol::{Dialect, ErrorKind, TaskState};

use crate::common::{Frames, Setup, artifact, chunk, done, failed, join, msg, need_input, progress, refused};

#[tokio::test]
async fn subscriber_of_a_waiting_task_sees_the_next_turn() {
    let mut server = Setup::plain().open();
    server.agent.prepare_turn([artifact("a", "one")], need_input("which?"));
    let asked = server.send_for_task(msg("one of them")).await;
    server.agent.turn().await;
    let mut frames = server.subscribe(&asked.id).await.unwrap();
    assert_eq!(frames.next().await, "4 task input_required");
    assert!(frames.is_idle());

    let call = server.spawn_send(msg("blue").to(&asked.id));
    let turn = server.agent.turn().await;
    turn.end(need_input("sure?"));
    join(call).await.unwrap();
    assert_eq!(frames.next().await, "5 working");
    assert_eq!(frames.next().await, "6 input_required: sure?");

    server.agent.prepare_turn([], done());
    server.send(msg("sure").to(&asked.id)).await.unwrap();
    assert_eq!(frames.lines().await, ["7 working", "8 completed"]);
}

#[tokio::test]
async fn all_subscribers_see_the_same_events() {
    let mut server = Setup::plain().open();
    let mut sender = server.stream(msg("hello")).await.unwrap();
    let turn = server.agent.turn().await;
    turn.send([progress("one")]);
    assert_eq!(sender.next().await, "1 task submitted");
    assert_eq!(sender.next().await, "2 working: one");
    let mut first = server.subscribe(&turn.task_id).await.unwrap();
    let second = server.subscribe(&turn.task_id).await.unwrap();
    let mut third = server.subscribe(&turn.task_id).await.unwrap();
    drop(second);
    turn.send([progress("two"), artifact("a", "b")]);
    assert_eq!(sender.next().await, "3 working: two");
    drop(sender);
    turn.end(done());
    let expected = ["2 task working", "3 working: two", "4 artifact a: b", "5 completed"];
    assert_eq!(first.lines().await, expected);
    assert_eq!(third.lines().await, expected);
    drop((first, third));
    assert_eq!(server.feed.watched_tasks(), 0, "the feed keeps a task without watchers");
}

/// The sequence numbers of all lines, from the snapshot on.
async fn numbers(frames: &mut Frames) -> Vec<u64> {
    let lines = frames.lines().await;
    lines.iter().map(|line| line.split(' ').next().unwrap().parse().unwrap()).collect()
}

#[tokio::test]
async fn slow_subscriber_gets_every_event_once() {
    let mut server = Setup::plain().open();
    let (id, turn) = server.start_task("hello").await;
    let mut slow = server.subscribe(&id).await.unwrap();
    let mut middling = server.subscribe(&id).await.unwrap();
    // Far more than the cache holds, in several commits; one subscriber reads in between.
    for round in 1..=3 {
        for number in 0..100 {
            turn.send([progress(&format!("{round}.{number}")), chunk("a", "x"), chunk("a", "y")]);
        }
        let last = 2 + round * 300;
        while !middling.next().await.starts_with(&format!("{} ", last - 150)) {}
    }
    turn.end(done());
    server.store.until("finish", 1).await;
    assert_eq!(numbers(&mut slow).await, (2..=903).collect::<Vec<_>>());
    assert_eq!(numbers(&mut middling).await, (753..=903).collect::<Vec<_>>());
    let task = server.get(&id).await.unwrap();
    assert_eq!(task.artifacts[0].parts.len(), 600);
}

#[tokio::test]
async fn large_events_exceed_the_cache_and_are_not_lost() {
    let mut server = Setup::plain().open();
    let (id, turn) = server.start_task("hello").await;
    let mut slow = server.subscribe(&id).await.unwrap();
    let large = "x".repeat(600 << 10);
    for name in ["a", "b", "c"] {
        turn.send([artifact(name, &large)]);
    }
    turn.send([artifact("d", &"y".repeat(2 << 20))]);
    turn.end(done());
    server.store.until("finish", 1).await;
    assert_eq!(numbers(&mut slow).await, [2, 3, 4, 5, 6, 7]);
}

#[tokio::test]
async fn subscribe_to_a_terminal_task_is_rejected() {
    let mut server = Setup::overlapping().open();
    for outcome in [done(), failed("broken")] {
        server.agent.prepare_turn([], outcome);
        let task = server.send_for_task(msg("hello")).await;
        server.agent.turn().await;
        assert_eq!(refused(server.subscribe(&task.id).await), ErrorKind::UnsupportedOperation);
    }
    let (id, _turn) = server.start_task("hold").await;
    assert_eq!(server.cancel(&id).await.unwrap().status.state, TaskState::Canceled);
    assert_eq!(refused(server.subscribe(&id).await), ErrorKind::UnsupportedOperation);
    assert_eq!(refused(server.subscribe(&"unknown".into()).await), ErrorKind::TaskNotFound);
}

#[tokio::test]
async fn older_dialects_subscribe_until_an_interrupted_state() {
    for dialect in Dialect::ALL {
        let mut server = Setup::plain().open();
        server.agent.prepare_turn([], need_input("which?"));
        let asked = server.send_for_task(msg("one of them")).await;
        server.agent.turn().await;
        // The state of the snapshot does not end the stream.
        let mut frames = server.subscribe_in(dialect, &asked.id, None).await.unwrap();
        assert_eq!(frames.next().await, "2 task input_required");
        assert!(frames.is_idle(), "{dialect:?}");
        server.agent.prepare_turn([], need_input("sure?"));
        server.send(msg("blue").to(&asked.id)).await.unwrap();
        server.agent.turn().await;
        assert_eq!(frames.next().await, "3 working");
        assert_eq!(frames.next().await, "4 input_required: sure?");
        if dialect == Dialect::V1 {
            assert!(frames.is_idle());
            server.agent.prepare_turn([], done());
            server.send(msg("sure").to(&asked.id)).await.unwrap();
            assert_eq!(frames.lines().await, ["5 working", "6 completed"]);
        } else {
            assert!(frames.lines().await.is_empty(), "{dialect:?}");
        }
    }
}

#[tokio::test]
async fn older_dialects_get_the_last_status_of_a_terminal_task() {
    for outcome in [|| done(), || failed("broken")] {
        let server = Setup::overlapping().open();
        server.agent.prepare_turn([artifact("a", "b")], outcome());
        let task = server.send_for_task(msg("hello")).await;
        let end = if task.status.state == TaskState::Completed { "4 completed" } else { "4 failed: broken" };
        for dialect in [Dialect::Draft, Dialect::V03, Dialect::V03Proto] {
            let mut frames = server.subscribe_in(dialect, &task.id, None).await.unwrap();
            assert_eq!(frames.lines().await, [end], "{dialect:?}");
            let unknown = server.subscribe_in(dialect, &"unknown".into(), None).await;
            assert_eq!(refused(unknown), ErrorKind::TaskNotFound);
        }
        let refusal = server.subscribe_in(Dialect::V1, &task.id, None).await;
        assert_eq!(refused(refusal), ErrorKind::UnsupportedOperation);
    }
}

#[tokio::test]
async fn snapshot_has_artifact_ids_in_order_of_appearance() {
    let mut server = Setup::plain().open();
    let (id, turn) = server.start_task("hello").await;
    turn.send([artifact("c", "1"), chunk("a", "2"), artifact("b", "3"), chunk("a", "4"), artifact("c", "5")]);
    server.store.until("report", 1).await;
    for dialect in Dialect::ALL {
        let mut whole = server.subscribe_in(dialect, &id, None).await.unwrap();
        assert_eq!(whole.next().await, "7 task working");
        assert_eq!(whole.artifact_ids(), ["c", "a", "b"]);
        for seen in 2..=7 {
            let resume = Some(a2ad_engine::Resume::After(seen));
            let mut resumed = server.subscribe_in(dialect, &id, resume).await.unwrap();
            assert_eq!(resumed.next().await, format!("{seen} task working without history"));
            // A dialect that needs the ids gets those the client has seen; the others follow in the same order.
            let known =
                if dialect == Dialect::Draft { ["c", "a", "b"].len().min(seen as usize - 2) } else { 0 };
            assert_eq!(resumed.artifact_ids(), ["c", "a", "b"][..known]);
        }
    }
    turn.end(done());
}
