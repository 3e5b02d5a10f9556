//! A finished step is never run again; what happens to a step that a crash interrupted.

use std::{
    sync::atomic::{AtomicU32, Ordering},
    time::Duration,
};

use a2ad_engine::{AgentError, OnCrash, Turn};
use protocol::TaskState;

use crate::{
    common::{
        Setup, chunk, done, join, msg, need_input, process, retryable_failure, status_metadata, status_text,
        task, with_timeout,
    },
    crash::finished,
};

/// Runs a step that counts how often it is run.
async fn counted(turn: &Turn, id: &str, runs: &AtomicU32) -> u32 {
    let work = async { Ok(runs.fetch_add(1, Ordering::SeqCst) + 1) };
    with_timeout(turn.step(id, work)).await.unwrap()
}

#[test]
fn finished_step_is_not_run_again_after_a_crash() {
    for policy in [OnCrash::Retry, OnCrash::Resume, OnCrash::Fail] {
        let folder = tempfile::tempdir().unwrap();
        let setup = || Setup::plain().on_crash(policy);
        let (first, second) = (AtomicU32::new(0), AtomicU32::new(10));
        let (id, key) = process(folder.path(), setup(), async |server| {
            let (id, turn) = server.start_task("hello").await;
            assert_eq!(counted(&turn, "first", &first).await, 1);
            // In the same run too.
            assert_eq!(counted(&turn, "first", &first).await, 1);
            (id, turn.step_key("first"))
        });
        process(folder.path(), setup(), async |server| {
            let turn = server.agent.turn().await;
            assert_eq!((turn.attempt, turn.step_key("first")), (2, key));
            assert!(turn.step_key("first").ends_with(&format!(":{id}:1:first")));
            assert_eq!(counted(&turn, "first", &first).await, 1);
            assert_eq!(counted(&turn, "second", &second).await, 11);
            assert_eq!(server.journal(&id).await, ["first", "second"]);
            turn.end(done());
            assert_eq!(finished(server, &id).await.status.state, TaskState::Completed);
            assert!(server.journal(&id).await.is_empty());
        });
        assert_eq!((first.into_inner(), second.into_inner()), (1, 11));
    }
}

#[tokio::test]
async fn finished_step_is_not_run_again_after_a_retryable_failure() {
    let mut server = Setup::plain().open();
    let runs = AtomicU32::new(0);
    let (id, turn) = server.start_task("hello").await;
    counted(&turn, "first", &runs).await;
    let error = turn.step::<u32, _>("second", async { Err(AgentError::new("busy")) }).await.unwrap_err();
    assert_eq!(error.to_string(), "busy");
    turn.end(retryable_failure("busy"));
    let again = server.agent.turn().await;
    counted(&again, "first", &runs).await;
    assert_eq!(runs.load(Ordering::SeqCst), 1);
    // An error is not recorded.
    assert_eq!(server.journal(&id).await, ["first"]);
    counted(&again, "second", &runs).await;
    assert_eq!(runs.load(Ordering::SeqCst), 2);
    again.end(done());
    server.store.until("finish", 1).await;
}

#[tokio::test]
async fn each_turn_has_its_own_steps() {
    let mut server = Setup::plain().open();
    let runs = AtomicU32::new(0);
    let (id, turn) = server.start_task("hello").await;
    counted(&turn, "first", &runs).await;
    turn.end(need_input("which?"));
    server.store.until("pause", 1).await;
    assert!(server.journal(&id).await.is_empty());
    let call = server.spawn_send(msg("blue").to(&id));
    let next = server.agent.turn().await;
    assert_eq!(counted(&next, "first", &runs).await, 2);
    next.end(done());
    join(call).await.unwrap();
}

#[tokio::test]
async fn cancelled_task_has_no_journal() {
    let mut server = Setup::plain().open();
    let (id, turn) = server.start_task("hello").await;
    counted(&turn, "first", &AtomicU32::new(0)).await;
    server.cancel(&id).await.unwrap();
    assert!(server.journal(&id).await.is_empty());
}

#[tokio::test]
async fn steps_run_at_the_same_time_under_different_ids() {
    let mut server = Setup::plain().open();
    let (_, turn) = server.start_task("hello").await;
    let barrier = tokio::sync::Barrier::new(2);
    let meet = || async {
        barrier.wait().await;
        Ok(1)
    };
    let (one, two) =
        with_timeout(async { tokio::join!(turn.step("one", meet()), turn.step("two", meet())) }).await;
    assert_eq!((one.unwrap(), two.unwrap()), (1, 1));
    let pending = turn.step::<u32, _>("three", std::future::pending());
    let (_, again) = tokio::join!(
        async { tokio::time::timeout(Duration::from_millis(10), pending).await },
        turn.step("three", async { Ok(1) })
    );
    let text = "step \"three\" is running already; give each step of a turn its own id";
    assert_eq!(again.unwrap_err().to_string(), text);
    // A step that was dropped can be run.
    assert_eq!(turn.step("three", async { Ok(1) }).await.unwrap(), 1);
    let error = turn.step("", async { Ok(1) }).await.unwrap_err();
    assert_eq!(error.to_string(), "expected a step id of 1 to 200 bytes, not 0");
    turn.end(done());
}

#[tokio::test]
async fn journal_over_its_size_limit_fails_the_turn() {
    let mut server = Setup::plain().max_journal(356).open();
    let call = server.spawn_send(msg("hello"));
    let turn = server.agent.turn().await;
    turn.step("one", async { Ok("x".repeat(40)) }).await.unwrap();
    let lost = turn.step("two", async { Ok("x".repeat(60)) }).await.unwrap_err();
    assert!(lost.is_lost());
    let failed = task(join(call).await.unwrap());
    let text = "the steps of this turn have an output of 366 bytes and limits.max_journal is 356 bytes";
    assert_eq!((failed.status.state, status_text(&failed).as_deref()), (TaskState::Failed, Some(text)));
    assert_eq!(status_metadata(&failed), Some(r#"{"a2ad":{"reason":"too_large"}}"#));
    assert!(server.journal(&failed.id).await.is_empty());
}

#[tokio::test]
async fn recorded_output_of_another_type_is_an_error() {
    let mut server = Setup::plain().open();
    let (_, turn) = server.start_task("hello").await;
    turn.step("one", async { Ok("a text".to_owned()) }).await.unwrap();
    let error = turn.step::<u32, _>("one", std::future::pending()).await.unwrap_err();
    assert_eq!(error.to_string(), "the recorded output of a step has another form than the agent expects");
    turn.end(done());
}

/// Text of a task that was interrupted in this step.
fn interrupted_in(step: &str) -> String {
    format!("interrupted: the server stopped while step {step:?} ran, and it must not run twice")
}

#[test]
fn step_that_must_not_run_twice_fails_the_task_when_a_crash_interrupts_it() {
    let folder = tempfile::tempdir().unwrap();
    let setup = || Setup::plain().on_crash(OnCrash::Fail);
    let id = process(folder.path(), setup(), async |server| {
        let (id, turn) = server.start_task("pay").await;
        turn.step("look", async { Ok(1) }).await.unwrap();
        let begun = tokio::sync::Notify::new();
        let pay = turn.step::<u32, _>("pay", async {
            begun.notify_one();
            std::future::pending().await
        });
        tokio::select! {
            _ = pay => panic!("the step has ended"),
            () = with_timeout(begun.notified()) => {}
        }
        // Its start was recorded before it ran.
        assert_eq!(server.journal(&id).await, ["look", "pay"]);
        id
    });
    process(folder.path(), setup(), async |server| {
        let failed = finished(server, &id).await;
        assert_eq!(status_text(&failed), Some(interrupted_in("pay")));
        assert_eq!(status_metadata(&failed), Some(r#"{"a2ad":{"reason":"interrupted"}}"#));
        assert!(server.agent.is_idle() && server.journal(&id).await.is_empty());
    });
}

#[test]
fn guarded_work_fails_the_task_when_it_crashes_the_process() {
    for policy in [OnCrash::Retry, OnCrash::Resume, OnCrash::Fail] {
        let folder = tempfile::tempdir().unwrap();
        let setup = || Setup::plain().on_crash(policy);
        let id = process(folder.path(), setup(), async |server| {
            let (id, turn) = server.start_task("check").await;
            assert_eq!(turn.guard("schema check", async { 1 }).await.unwrap(), 1);
            let begun = tokio::sync::Notify::new();
            let check = turn.guard("schema check", async {
                begun.notify_one();
                std::future::pending::<()>().await;
            });
            tokio::select! {
                _ = check => panic!("the check has ended"),
                () = with_timeout(begun.notified()) => {}
            }
            id
        });
        process(folder.path(), setup(), async |server| {
            let failed = finished(server, &id).await;
            let text = "poisoned: the server crashed during this task's schema check";
            assert_eq!(status_text(&failed).as_deref(), Some(text), "{policy:?}");
            assert!(server.agent.is_idle() && server.journal(&id).await.is_empty());
        });
    }
}

#[test]
fn guarded_work_that_has_ended_leaves_the_policy_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let id = process(folder.path(), Setup::plain(), async |server| {
        let (id, turn) = server.start_task("check").await;
        turn.guard("schema check", async {}).await.unwrap();
        id
    });
    process(folder.path(), Setup::plain(), async |server| {
        let turn = server.agent.turn().await;
        assert_eq!(turn.attempt, 2);
        turn.end(done());
        assert_eq!(finished(server, &id).await.status.state, TaskState::Completed);
    });
}

#[tokio::test]
async fn only_steps_that_must_not_run_twice_record_their_start() {
    for (policy, reports) in [(OnCrash::Retry, 1), (OnCrash::Resume, 1), (OnCrash::Fail, 2)] {
        let mut server = Setup::plain().on_crash(policy).open();
        let (_, turn) = server.start_task("hello").await;
        turn.step("one", async { Ok(1) }).await.unwrap();
        assert_eq!(server.store.count("report"), reports, "{policy:?}");
        turn.end(done());
        server.store.until("finish", 1).await;
    }
}

#[tokio::test]
async fn shutdown_between_steps_releases_a_turn_that_must_not_run_twice() {
    let folder = tempfile::tempdir().unwrap();
    let setup = || Setup::plain().on_crash(OnCrash::Fail);
    let runs = AtomicU32::new(0);
    let (between, within) = {
        let mut server = setup().open_at(folder.path());
        let (between, first) = server.start_task("between").await;
        counted(&first, "one", &runs).await;
        let (within, second) = server.start_task("within").await;
        let pay = second.step::<u32, _>("pay", std::future::pending());
        tokio::select! {
            _ = pay => panic!("the step has ended"),
            () = server.store.until("report", 3) => {}
        }
        with_timeout(server.engine.drain(Duration::ZERO)).await;
        let failed = server.get(&within).await.unwrap();
        assert_eq!(status_text(&failed), Some(interrupted_in("pay")));
        (between, within)
    };
    let mut server = setup().open_at(folder.path());
    let turn = server.agent.turn().await;
    assert_eq!((&turn.task_id, turn.attempt), (&between, 1));
    counted(&turn, "one", &runs).await;
    assert_eq!(runs.into_inner(), 1);
    turn.end(done());
    server.store.until("finish", 1).await;
    assert_eq!(server.get(&within).await.unwrap().status.state, TaskState::Failed);
    assert!(server.agent.is_idle());
}

#[test]
fn run_after_a_crash_records_that() {
    let folder = tempfile::tempdir().unwrap();
    let id = process(folder.path(), Setup::plain(), async |server| {
        let (id, turn) = server.start_task("hello").await;
        turn.step("one", async { Ok(1) }).await.unwrap();
        id
    });
    process(folder.path(), Setup::plain(), async |server| {
        let turn = server.agent.turn().await;
        // Also if the agent records nothing.
        server.store.until("report", 1).await;
        let working = server.get(&id).await.unwrap();
        let text = "attempt 2 of 6: the server stopped while this ran";
        assert_eq!(status_text(&working).as_deref(), Some(text));
        let metadata = r#"{"a2ad":{"reason":"crashed","attempt":2,"attempts":6}}"#;
        assert_eq!(status_metadata(&working), Some(metadata));
        turn.send([chunk("text", "two")]);
        turn.end(done());
        let ended = finished(server, &id).await;
        // It is no part of the conversation.
        assert_eq!((ended.status.state, ended.history.len()), (TaskState::Completed, 1));
    });
}
