//! The next process recovers the work of a crashed one.
//!
//! Each simulated process has its own runtime. Dropping the runtime stops all its tasks wherever they are, as
//! a kill does; only what the store has committed remains.

use a2ad_engine::{OnCrash, Update};
use protocol::{Artifact, Dialect, ListTasks, Part, Role, TaskId, TaskState};

use crate::common::{
    Setup, TestServer, artifact, artifacts, call_in, chunk, done, history, join, msg, need_input, process,
    reply, save, status_metadata, status_text, task,
};

/// The task when it has ended.
pub(crate) async fn finished(server: &mut TestServer, id: &TaskId) -> protocol::Task {
    // Rejected when the task is already terminal.
    if let Ok(mut frames) = server.subscribe(id).await {
        frames.lines().await;
    }
    server.get(id).await.unwrap()
}

#[test]
fn crashed_turn_is_retried_with_its_key_and_checkpoint() {
    for (policy, expected) in [(OnCrash::Retry, "three four"), (OnCrash::Resume, "one two three four")] {
        let folder = tempfile::tempdir().unwrap();
        let (id, key) = process(folder.path(), Setup::plain().on_crash(policy), async |server| {
            let (id, turn) = server.start_task("hello").await;
            turn.send([chunk("text", "one "), save("1")]);
            server.store.until("report", 1).await;
            turn.send([chunk("text", "two "), save("2")]);
            server.store.until("report", 2).await;
            (id, turn.idempotency_key.clone())
        });
        process(folder.path(), Setup::plain().on_crash(policy), async |server| {
            let turn = server.agent.turn().await;
            assert_eq!((&turn.task_id, turn.attempt), (&id, 2));
            assert_eq!(turn.idempotency_key, key);
            assert_eq!((turn.message.text().as_str(), turn.history.len()), ("hello", 0));
            assert_eq!(turn.saved_text(), Some("2"));
            // A retry replaces the artifact, a resume appends to it.
            turn.send([chunk("text", "three ")]);
            turn.send([chunk("text", "four")]);
            turn.end(done());
            let task = finished(server, &id).await;
            assert_eq!(task.status.state, TaskState::Completed);
            assert_eq!(artifacts(&task), [("text".into(), expected.into())]);
        });
    }
}

/// The agent may record its last chunk again when it crashed before its next checkpoint.
#[test]
fn resumed_turn_keeps_a_complete_artifact() {
    let folder = tempfile::tempdir().unwrap();
    let resume = || Setup::plain().on_crash(OnCrash::Resume);
    let last_chunk = |text: &str| {
        let artifact = Artifact::new("text", vec![Part::text(text)]);
        Update::Artifact { artifact, append: true, last: true }
    };
    let id = process(folder.path(), resume(), async |server| {
        let (id, turn) = server.start_task("hello").await;
        turn.send([chunk("text", "one ")]);
        server.store.until("report", 1).await;
        turn.send([last_chunk("two ")]);
        server.store.until("report", 2).await;
        id
    });
    process(folder.path(), resume(), async |server| {
        let turn = server.agent.turn().await;
        turn.send([last_chunk("two ")]);
        turn.end(done());
        assert_eq!(artifacts(&finished(server, &id).await), [("text".into(), "one two two ".into())]);
    });
}

#[test]
fn crashed_turn_with_on_crash_fail_fails() {
    let folder = tempfile::tempdir().unwrap();
    let id = process(folder.path(), Setup::plain().on_crash(OnCrash::Fail), async |server| {
        server.start_task("pay the bill").await.0
    });
    process(folder.path(), Setup::plain().on_crash(OnCrash::Fail), async |server| {
        let failed = finished(server, &id).await;
        assert_eq!(failed.status.state, TaskState::Failed);
        assert!(status_text(&failed).unwrap().starts_with("interrupted"), "{:?}", failed.status);
        assert_eq!(status_metadata(&failed), Some(r#"{"a2ad":{"reason":"interrupted"}}"#));
        assert!(server.agent.is_idle());
        server.agent.prepare_turn([], done());
        assert_eq!(server.send_for_task(msg("hello")).await.status.state, TaskState::Completed);
    });
}

#[test]
fn no_task_is_lost_in_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let setup = || Setup::plain().slots(2);
    let (ids, undecided) = process(folder.path(), setup(), async |server| {
        server.agent.prepare_turn([], done());
        let over = server.send_for_task(msg("over")).await.id;
        server.agent.turn().await;
        server.agent.prepare_turn([save("place")], need_input("which?"));
        let asks = server.send_for_task(msg("asks")).await.id;
        server.agent.turn().await;
        let (runs, _turn) = server.start_task("runs").await;
        // Still undecided; its caller dies with the process.
        let _call = server.spawn_send(msg("undecided"));
        let undecided = server.agent.turn().await.task_id.clone();
        let queued = server.send_for_task(msg("queued").return_immediately()).await.id;
        ([over, asks, runs, queued], undecided)
    });
    process(folder.path(), setup(), async |server| {
        let mut texts = Vec::new();
        for _ in 0..3 {
            let turn = server.agent.turn().await;
            texts.push((turn.message.text(), turn.attempt));
            turn.end(done());
        }
        texts.sort();
        assert_eq!(texts, [("queued".into(), 1), ("runs".into(), 2), ("undecided".into(), 2)]);
        let [over, asks, runs, queued] = &ids;
        for id in [over, runs, queued, &undecided] {
            assert_eq!(finished(server, id).await.status.state, TaskState::Completed);
        }
        let call = server.spawn_send(msg("the answer").to(asks));
        let turn = server.agent.turn().await;
        assert_eq!((turn.saved_text(), turn.attempt), (Some("place"), 1));
        turn.end(done());
        join(call).await.unwrap();
        assert_eq!(history(&server.get(asks).await.unwrap()), ["asks", "which?", "the answer"]);
        assert_eq!(server.list(ListTasks::default()).await.unwrap().total_size, 5);
        assert!(server.agent.is_idle());
    });
}

#[test]
fn retry_after_a_crash_keeps_its_input_despite_later_messages() {
    let folder = tempfile::tempdir().unwrap();
    let (id, key) = process(folder.path(), Setup::plain(), async |server| {
        let (id, turn) = server.start_task("one").await;
        server.send(msg("two").to(&id).return_immediately()).await.unwrap();
        (id, turn.idempotency_key.clone())
    });
    process(folder.path(), Setup::plain(), async |server| {
        let turn = server.agent.turn().await;
        assert_eq!((turn.message.text().as_str(), turn.attempt), ("one", 2));
        assert_eq!(turn.idempotency_key, key);
        turn.end(done());
        assert_eq!(history(&finished(server, &id).await), ["one", "two"]);
    });
}

#[test]
fn retry_after_a_crash_keeps_its_input_despite_later_agent_role_messages() {
    let folder = tempfile::tempdir().unwrap();
    let (id, key) = process(folder.path(), Setup::plain(), async |server| {
        let (id, turn) = server.start_task("one").await;
        server.send(msg("two").role(Role::Agent).to(&id).return_immediately()).await.unwrap();
        (id, turn.idempotency_key.clone())
    });
    process(folder.path(), Setup::plain(), async |server| {
        let turn = server.agent.turn().await;
        assert_eq!((turn.message.text().as_str(), &turn.idempotency_key), ("one", &key));
        turn.end(done());
        assert_eq!(history(&finished(server, &id).await), ["one", "two"]);
    });
}

#[test]
fn turn_that_crashes_three_processes_fails() {
    let folder = tempfile::tempdir().unwrap();
    let id = process(folder.path(), Setup::plain(), async |server| server.start_task("hello").await.0);
    for attempt in 2..=3 {
        process(folder.path(), Setup::plain(), async |server| {
            assert_eq!(server.agent.turn().await.attempt, attempt)
        });
    }
    process(folder.path(), Setup::plain(), async |server| {
        let failed = finished(server, &id).await;
        assert_eq!(failed.status.state, TaskState::Failed);
        let text = status_text(&failed);
        assert_eq!(text.as_deref(), Some("poisoned: the server crashed 3 times while this task ran"));
        let metadata = r#"{"a2ad":{"reason":"poisoned","attempt":4,"attempts":6}}"#;
        assert_eq!(status_metadata(&failed), Some(metadata));
        assert!(server.agent.is_idle());
    });
}

#[test]
fn turns_that_crashed_two_processes_run_one_at_a_time() {
    let folder = tempfile::tempdir().unwrap();
    process(folder.path(), Setup::plain(), async |server| {
        server.start_task("one").await;
        server.start_task("two").await;
    });
    process(folder.path(), Setup::plain(), async |server| {
        server.agent.turn().await;
        server.agent.turn().await;
    });
    process(folder.path(), Setup::plain(), async |server| {
        let suspect = server.agent.turn().await;
        assert_eq!(suspect.attempt, 3);
        // Other tasks are not delayed by it.
        let (_, innocent) = server.start_task("three").await;
        innocent.end(done());
        server.store.until("finish", 1).await;
        assert!(server.agent.is_idle());
        suspect.end(done());
        server.agent.turn().await.end(done());
        server.store.until("finish", 3).await;
        assert_eq!(server.count(TaskState::Completed).await, 3);
    });
}

#[test]
fn ids_are_unique_across_restarts() {
    let folder = tempfile::tempdir().unwrap();
    let mut ids = std::collections::HashSet::new();
    for _ in 0..3 {
        process(folder.path(), Setup::overlapping(), async |server| {
            for _ in 0..3 {
                server.agent.prepare_turn([], done());
                assert!(ids.insert(server.send_for_task(msg("hello")).await.id));
            }
        });
    }
    process(folder.path(), Setup::overlapping(), async |server| {
        for id in &ids {
            assert_eq!(server.get(id).await.unwrap().status.state, TaskState::Completed);
        }
    });
}

#[test]
fn crashed_turn_is_retried_with_its_skill() {
    for policy in [OnCrash::Retry, OnCrash::Resume] {
        let folder = tempfile::tempdir().unwrap();
        let setup = || Setup::plain().skills(&["paint", "draw"]).slots(1).on_crash(policy);
        process(folder.path(), setup(), async |server| {
            server.send(msg("runs").skill("draw").return_immediately()).await.unwrap();
            server.agent.turn().await;
            server.send(msg("queued").skill("paint").return_immediately()).await.unwrap();
        });
        process(folder.path(), setup(), async |server| {
            let mut taken = Vec::new();
            for _ in 0..2 {
                let turn = server.agent.turn().await;
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
fn crashed_turn_of_a_reopened_task_is_retried() {
    let draft = || call_in(Dialect::Draft);
    let folder = tempfile::tempdir().unwrap();
    let key = process(folder.path(), Setup::plain(), async |server| {
        server.agent.prepare_turn([artifact("first", "one"), chunk("text", "old"), save("place")], done());
        server.send_as(draft(), msg("hello").client_task("t-1")).await.unwrap();
        server.agent.turn().await;
        server.send_as(draft(), msg("more").client_task("t-1").return_immediately()).await.unwrap();
        let turn = server.agent.turn().await;
        turn.send([chunk("second", "lost")]);
        server.store.until("report", 1).await;
        turn.idempotency_key.clone()
    });
    process(folder.path(), Setup::plain(), async |server| {
        let turn = server.agent.turn().await;
        assert_eq!((turn.task_id.as_str(), turn.attempt, &turn.idempotency_key), ("t-1", 2, &key));
        assert_eq!((turn.message.text().as_str(), turn.history.len()), ("more", 1));
        assert_eq!(turn.saved_text(), Some("place"));
        // A client that retries after the crash joins the same turn.
        let repeated = server.spawn_send_as(draft(), msg("more").client_task("t-1"));
        // Artifacts of the crashed attempt are replaced; those of earlier turns are kept, and a reused id is
        // renamed.
        turn.send([chunk("second", "kept"), chunk("text", " and new")]);
        turn.end(done());
        let over = task(reply(join(repeated).await.unwrap()));
        let expected = [("first", "one"), ("text", "old"), ("second", "kept"), ("text-2", " and new")];
        assert_eq!(artifacts(&over), expected.map(|(id, text)| (id.to_owned(), text.to_owned())));
        let row = server.row(&over.id).await;
        assert_eq!(
            (row.turn, row.client_id.as_ref(), row.origin),
            (2, Some(&over.id), Dialect::Draft.into())
        );
        assert!(server.agent.is_idle());
    });
}
