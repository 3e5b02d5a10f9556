//! A broken stream is resumed after the last event its client received (`Last-Event-ID`).

use a2ad_engine::Resume;
use protocol::{Dialect, ErrorKind};

use crate::common::{
    Setup, TestServer, artifact, call_in, chunk, done, msg, need_input, progress, refused, reply, task,
};

/// A working task whose log has five events.
async fn task_with_five_events() -> (TestServer, crate::common::RunningTurn, Vec<String>) {
    let mut server = Setup::plain().open();
    let (_, turn) = server.start_task("hello").await;
    let mut frames = server.subscribe(&turn.task_id).await.unwrap();
    turn.send([progress("one"), chunk("a", "two"), artifact("b", "three")]);
    assert_eq!(frames.next().await, "2 task working");
    let mut lines = vec!["1 submitted".to_owned(), "2 working".to_owned()];
    for _ in 3..=5 {
        lines.push(frames.next().await);
    }
    (server, turn, lines)
}

#[tokio::test]
async fn resumed_stream_has_missed_events_then_new_ones() {
    let (server, turn, lines) = task_with_five_events().await;
    let mut streams = Vec::new();
    for seen in 0..=5 {
        streams.push((seen, server.resume(&turn.task_id, Resume::After(seen)).await.unwrap()));
    }
    turn.end(done());
    server.store.until("finish", 1).await;
    for seen in 0..=5 {
        // The task is terminal now; a client that has not received the end still gets it.
        streams.push((seen, server.resume(&turn.task_id, Resume::After(seen)).await.unwrap()));
    }
    for (seen, mut frames) in streams {
        let found = frames.lines().await;
        // The status at that event, not the current one, because a client stops at the first terminal status.
        let state = if seen < 2 { "submitted" } else { "working" };
        assert_eq!(found[0], format!("{seen} task {state} without history"));
        let missed = &lines[usize::try_from(seen).unwrap()..];
        assert_eq!(found[1..found.len() - 1], *missed, "{seen}");
        assert_eq!(found.last().unwrap(), "6 completed");
    }
    for seen in [Resume::After(6), Resume::After(7), Resume::Unknown] {
        assert_eq!(refused(server.resume(&turn.task_id, seen).await), ErrorKind::UnsupportedOperation);
    }
}

#[tokio::test]
async fn unknown_event_id_restarts_the_stream_with_a_gap_marker() {
    let (server, turn, _) = task_with_five_events().await;
    for seen in [Resume::After(6), Resume::After(u64::MAX), Resume::Unknown] {
        let mut frames = server.resume(&turn.task_id, seen).await.unwrap();
        assert_eq!(frames.next().await, "5 task working with a gap");
    }
}

#[tokio::test]
async fn resume_works_in_every_dialect() {
    for dialect in Dialect::ALL {
        let (server, turn, lines) = task_with_five_events().await;
        let id = &turn.task_id;
        let mut streams = Vec::new();
        for seen in [0, 3, 5] {
            let resumed = server.subscribe_in(dialect, id, Some(Resume::After(seen))).await;
            streams.push((seen, resumed.unwrap()));
        }
        for beyond in [Resume::After(6), Resume::Unknown] {
            let mut frames = server.subscribe_in(dialect, id, Some(beyond)).await.unwrap();
            assert_eq!(frames.next().await, "5 task working with a gap", "{dialect:?}");
        }
        turn.end(done());
        server.store.until("finish", 1).await;
        for seen in [0, 3, 5] {
            let resumed = server.subscribe_in(dialect, id, Some(Resume::After(seen))).await;
            streams.push((seen, resumed.unwrap()));
        }
        for (seen, mut frames) in streams {
            let found = frames.lines().await;
            let state = if seen == 0 { "submitted" } else { "working" };
            assert_eq!(found[0], format!("{seen} task {state} without history"), "{dialect:?}");
            assert_eq!(found[1..found.len() - 1], lines[usize::try_from(seen).unwrap()..]);
            assert_eq!(found.last().unwrap(), "6 completed");
        }
        // Nothing was missed: the older dialects get the last status once more.
        for seen in [Resume::After(6), Resume::After(7), Resume::Unknown] {
            let resumed = server.subscribe_in(dialect, id, Some(seen)).await;
            match dialect {
                Dialect::V1 => assert_eq!(refused(resumed), ErrorKind::UnsupportedOperation),
                _ => assert_eq!(resumed.unwrap().lines().await, ["6 completed"], "{dialect:?} {seen:?}"),
            }
        }
    }
}

#[tokio::test]
async fn past_interrupted_state_does_not_end_a_resumed_stream() {
    for dialect in Dialect::ALL {
        let mut server = Setup::plain().open();
        server.agent.prepare_turn([], need_input("which?"));
        let asked = server.send_for_task(msg("one of them")).await;
        server.agent.turn().await;
        let call = server.spawn_send(msg("blue").to(&asked.id));
        let turn = server.agent.turn().await;
        let mut open = server.subscribe_in(dialect, &asked.id, Some(Resume::After(1))).await.unwrap();
        turn.end(done());
        crate::common::join(call).await.unwrap();
        let mut over = server.subscribe_in(dialect, &asked.id, Some(Resume::After(1))).await.unwrap();
        let missed =
            ["1 task submitted without history", "2 input_required: which?", "3 working", "4 completed"];
        assert_eq!(over.lines().await, missed, "{dialect:?}");
        assert_eq!(open.lines().await, missed, "{dialect:?}");
    }
}

#[tokio::test]
async fn terminal_state_of_an_earlier_turn_does_not_end_a_resumed_stream() {
    for dialect in Dialect::ALL {
        let mut server = Setup::plain().open();
        server.agent.prepare_turn([], done());
        let draft = || call_in(Dialect::Draft);
        let first = task(reply(server.send_as(draft(), msg("hello").client_task("t-1")).await.unwrap()));
        server.agent.turn().await;
        server.send_as(draft(), msg("more").client_task("t-1").return_immediately()).await.unwrap();
        let turn = server.agent.turn().await;
        let mut frames = server.subscribe_in(dialect, &first.id, Some(Resume::After(1))).await.unwrap();
        turn.end(done());
        let missed = ["1 task submitted without history", "2 completed", "3 working", "4 completed"];
        assert_eq!(frames.lines().await, missed, "{dialect:?}");
    }
}

/// A task whose log was folded into a document can be resumed from any of its events.
#[tokio::test]
async fn resume_of_a_folded_task_starts_with_the_status_at_that_event() {
    let mut server = Setup::plain().open();
    let (id, turn) = server.start_task("hello").await;
    let mut watcher = server.subscribe(&id).await.unwrap();
    assert_eq!(watcher.next().await, "2 task working");
    let mut states = vec!["submitted".to_owned(), "submitted".to_owned(), "working".to_owned()];
    // One commit each; every twentieth is a status update.
    for number in 3..=90 {
        if number % 20 == 0 {
            turn.send([progress(&number.to_string())]);
        } else {
            turn.send([chunk("a", "x")]);
        }
        watcher.next().await;
        states.push("working".to_owned());
    }
    turn.end(done());
    assert_eq!(watcher.lines().await, ["91 completed"]);
    // A background task writes the folded document later.
    crate::common::with_timeout(async {
        while server.row(&id).await.doc < 91 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    for dialect in Dialect::ALL {
        for (seen, state) in (0..).zip(&states) {
            let resume = Some(Resume::After(seen));
            let mut frames = server.subscribe_in(dialect, &id, resume).await.unwrap();
            let found = frames.lines().await;
            assert_eq!(found[0], format!("{seen} task {state} without history"), "{dialect:?}");
            assert_eq!(found.len() as u64, 1 + 91 - seen, "{dialect:?}");
        }
    }
}
