//! The deadline of a whole task: running or not, the task fails at it.

use std::time::Duration;

use a2ad_engine::{Catalog, Clock, DEFAULT_TENANT, Outcome, RegisteredAgent, RunSettings, STOP_GRACE};
use protocol::{Dialect, ListTasks, Task, TaskId, TaskState, Timestamp};

use crate::common::{
    Setup, TestServer, agent_message, call_in, done, join, msg, need_input, prevent_auto_advance, process,
    reason, reply, retryable_failure, status_text, task, with_timeout,
};

/// Less than the interval at which the server polls the store.
const DEADLINE: Duration = Duration::from_secs(2);
const START: i64 = 1_000_000;

fn clock() -> Clock {
    Clock::manual(Timestamp::from_millis(START))
}

fn settings() -> RunSettings {
    RunSettings { deadline: Some(DEADLINE), ..RunSettings::default() }
}

/// Lets time pass for the system clock and for timers.
async fn pass(clock: &Clock, span: Duration) {
    clock.advance(span);
    tokio::time::advance(span).await;
}

fn assert_failed_at_deadline(failed: &Task) {
    assert_eq!(failed.status.state, TaskState::Failed);
    assert_eq!(reason(failed).as_deref(), Some("deadline"));
    let text = "the task did not end before its deadline 1970-01-01T00:16:42.000Z";
    assert_eq!(status_text(failed).as_deref(), Some(text));
}

/// The task once the sweep has failed it.
async fn expired(server: &TestServer, id: &TaskId) -> Task {
    // The sweep may have read the store before the clock was advanced; then its next poll finds the task.
    while server.store.count("expire") == 0 {
        tokio::time::advance(Duration::from_millis(100)).await;
        server.get(id).await.unwrap();
    }
    server.store.until("expire", 1).await;
    server.get(id).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn running_task_fails_at_its_deadline() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let (_time, clock) = (prevent_auto_advance(), clock());
        let mut server = setup.clock(&clock).run_settings(settings()).open();
        let call = server.spawn_send(msg("hello"));
        let turn = server.agent.turn().await;
        assert_eq!(turn.time_left(), DEADLINE);
        server.store.until("accept", 1).await;
        pass(&clock, DEADLINE / 2).await;
        assert_eq!(server.row(&turn.task_id).await.state, TaskState::Submitted);
        pass(&clock, DEADLINE / 2).await;
        assert_failed_at_deadline(&task(join(call).await.unwrap()));
        // The agent has time to stop.
        tokio::time::advance(STOP_GRACE).await;
        turn.dropped().await;
        assert_eq!(server.store.steps(), ["accept", "finish"]);
    }
}

#[tokio::test(start_paused = true)]
async fn shorter_run_time_ends_a_run_before_the_deadline() {
    let (_time, clock) = (prevent_auto_advance(), clock());
    let settings = RunSettings { run_time: Some(DEADLINE / 2), ..settings() };
    let mut server = Setup::plain().clock(&clock).run_settings(settings).open();
    let call = server.spawn_send(msg("hello"));
    assert_eq!(server.agent.turn().await.time_left(), DEADLINE / 2);
    pass(&clock, DEADLINE / 2).await;
    assert_eq!(reason(&task(join(call).await.unwrap())).as_deref(), Some("run_time"));
}

#[tokio::test(start_paused = true)]
async fn queued_task_fails_at_its_deadline_while_all_slots_are_taken() {
    let (_time, clock) = (prevent_auto_advance(), clock());
    let setup = Setup::plain().clock(&clock).slots(1);
    let setup = setup.skills(&["quick", "other"]).skill_settings("quick", settings());
    let mut server = setup.open();
    let running = server.send_for_task(msg("one").skill("other").return_immediately()).await;
    let turn = server.agent.turn().await;
    let mut frames = server.stream(msg("two").skill("quick")).await.unwrap();
    server.store.until("accept", 2).await;
    pass(&clock, DEADLINE).await;
    let lines = frames.lines().await;
    assert!(lines.last().unwrap().contains("failed: the task did not end before its deadline"), "{lines:?}");
    let failed =
        server.list(ListTasks { status: Some(TaskState::Failed), ..ListTasks::default() }).await.unwrap();
    assert_failed_at_deadline(&failed.tasks[0]);
    // The task without a deadline runs on, and the slot goes to nobody else.
    assert_eq!(server.get(&running.id).await.unwrap().status.state, TaskState::Working);
    turn.end(done());
    server.store.until("finish", 1).await;
    assert!(server.agent.is_idle());
    let steps = server.store.steps();
    // A claim of the failed task that was begun meanwhile is rejected.
    let recorded: Vec<_> = steps.iter().map(String::as_str).filter(|step| *step != "claim").collect();
    assert_eq!(recorded, ["accept", "accept", "expire", "finish"]);
}

#[tokio::test(start_paused = true)]
async fn retry_is_not_run_after_the_deadline() {
    let (_time, clock) = (prevent_auto_advance(), clock());
    let mut server = Setup::plain().clock(&clock).run_settings(settings()).open();
    server.agent.prepare_turn([], retryable_failure("busy"));
    server.agent.prepare_turn([], retryable_failure("busy"));
    let call = server.spawn_send(msg("hello"));
    server.agent.turn().await;
    server.agent.turn().await;
    // The third attempt waits for up to a second.
    server.store.until("retry", 2).await;
    pass(&clock, DEADLINE).await;
    assert_failed_at_deadline(&task(join(call).await.unwrap()));
    assert!(server.agent.is_idle());
}

#[tokio::test(start_paused = true)]
async fn task_that_waits_for_its_client_fails_at_its_deadline() {
    let for_credentials = Outcome::NeedAuth { message: agent_message("who?") };
    for outcome in [need_input("which?"), for_credentials] {
        let (_time, clock) = (prevent_auto_advance(), clock());
        let server = Setup::overlapping().clock(&clock).run_settings(settings()).open();
        server.agent.prepare_turn([], outcome);
        let asked = server.send_for_task(msg("one of them")).await;
        assert!(asked.status.state.is_interrupted());
        assert_eq!(server.row(&asked.id).await.deadline, Some(Timestamp::from_millis(START + 2_000)));
        pass(&clock, DEADLINE - Duration::from_millis(1)).await;
        assert!(server.get(&asked.id).await.unwrap().status.state.is_interrupted());
        // Timers are rounded up to milliseconds.
        pass(&clock, Duration::from_millis(3)).await;
        assert_failed_at_deadline(&expired(&server, &asked.id).await);
        // It is final: no later sweep finds the task.
        pass(&clock, Duration::from_secs(60)).await;
        assert_eq!(server.store.count("expire"), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn answer_after_the_deadline_does_not_start_the_agent() {
    for overlapping in [true, false] {
        let (_time, clock) = (prevent_auto_advance(), clock());
        let setup = if overlapping { Setup::overlapping() } else { Setup::plain() };
        let mut server = setup.clock(&clock).run_settings(settings()).open();
        server.agent.prepare_turn([], need_input("which?"));
        let asked = server.send_for_task(msg("one of them")).await;
        server.agent.turn().await;
        // The first sweep ends; after that timers stand still, so no other runs.
        for _ in 0..20 {
            server.get(&asked.id).await.unwrap();
            tokio::task::yield_now().await;
        }
        clock.advance(DEADLINE);
        assert_failed_at_deadline(&server.send_for_task(msg("blue").to(&asked.id)).await);
        assert!(server.agent.is_idle());
        let last = if overlapping { "settle" } else { "finish" };
        // A sweep that runs meanwhile finds the task too late.
        let steps = server.store.steps();
        assert_eq!(steps.iter().map(String::as_str).rfind(|step| *step != "expire"), Some(last));
    }
}

#[tokio::test(start_paused = true)]
async fn answer_before_the_deadline_does_not_extend_it() {
    let (_time, clock) = (prevent_auto_advance(), clock());
    let mut server = Setup::plain().clock(&clock).run_settings(settings()).open();
    server.agent.prepare_turn([], need_input("which?"));
    let asked = server.send_for_task(msg("one of them")).await;
    server.agent.turn().await;
    pass(&clock, DEADLINE / 2).await;
    let call = server.spawn_send(msg("blue").to(&asked.id));
    assert_eq!(server.agent.turn().await.time_left(), DEADLINE / 2);
    server.store.until("resume", 1).await;
    pass(&clock, DEADLINE / 2).await;
    assert_failed_at_deadline(&task(join(call).await.unwrap()));
}

#[tokio::test(start_paused = true)]
async fn clock_that_is_set_ahead_fails_waiting_tasks_and_not_running_ones() {
    let (_time, clock) = (prevent_auto_advance(), clock());
    let mut server = Setup::plain().clock(&clock).run_settings(settings()).open();
    server.agent.prepare_turn([], need_input("which?"));
    let asked = server.send_for_task(msg("one of them")).await;
    server.agent.turn().await;
    let (running, turn) = server.start_task("runs").await;
    clock.set(Timestamp::from_millis(START + 3_600_000));
    // The sweep notices it at its next poll, which is at the time that was planned for the deadline.
    tokio::time::advance(DEADLINE - Duration::from_millis(1)).await;
    assert_eq!(server.store.count("expire"), 0);
    tokio::time::advance(Duration::from_millis(1)).await;
    assert_failed_at_deadline(&expired(&server, &asked.id).await);
    server.store.until("finish", 1).await;
    assert_failed_at_deadline(&server.get(&running).await.unwrap());
    // The agent has time to stop.
    tokio::time::advance(STOP_GRACE).await;
    turn.dropped().await;
}

#[tokio::test(start_paused = true)]
async fn many_overdue_tasks_fail_in_one_sweep() {
    const TASKS: usize = 200;
    let (_time, clock) = (prevent_auto_advance(), clock());
    let server = Setup::overlapping().clock(&clock).run_settings(settings()).open();
    for _ in 0..TASKS {
        server.agent.prepare_turn([], need_input("which?"));
        server.send_for_task(msg("waits")).await;
    }
    pass(&clock, DEADLINE).await;
    server.store.until("expire", TASKS).await;
    assert_eq!(server.count(TaskState::Failed).await, TASKS as u64);
}

#[test]
fn deadline_survives_a_crash() {
    let clock = clock();
    let folder = tempfile::tempdir().unwrap();
    let setup = || Setup::plain().clock(&clock).run_settings(settings());
    let ids = process(folder.path(), setup(), async |server| {
        server.agent.prepare_turn([], need_input("which?"));
        let asked = server.send_for_task(msg("waits")).await;
        server.agent.turn().await;
        [asked.id, server.start_task("runs").await.0]
    });
    clock.advance(DEADLINE);
    process(folder.path(), setup(), async |server| {
        let both = async {
            while server.count(TaskState::Failed).await < 2 {
                tokio::task::yield_now().await;
            }
        };
        with_timeout(both).await;
        for id in &ids {
            assert_failed_at_deadline(&server.get(id).await.unwrap());
        }
        assert!(server.agent.is_idle());
    });
}

#[tokio::test(start_paused = true)]
async fn reopened_task_has_a_new_deadline_or_none() {
    let (_time, clock) = (prevent_auto_advance(), clock());
    let mut server = Setup::plain().clock(&clock).run_settings(settings()).open();
    let send = |text| msg(text).client_task("t-1");
    let draft = || call_in(Dialect::Draft);
    server.agent.prepare_turn([], done());
    let first = task(reply(server.send_as(draft(), send("one")).await.unwrap()));
    server.agent.turn().await;
    pass(&clock, DEADLINE * 2).await;
    assert_eq!(server.get(&first.id).await.unwrap().status.state, TaskState::Completed);
    let call = server.spawn_send_as(draft(), send("two"));
    let turn = server.agent.turn().await;
    assert_eq!(turn.time_left(), DEADLINE);
    server.store.until("resume", 1).await;
    assert_eq!(server.row(&first.id).await.deadline, Some(Timestamp::from_millis(START + 6_000)));
    turn.end(done());
    join(call).await.unwrap();

    // Without the setting the deadline is removed.
    let catalog = server.engine.catalog().load();
    let agents = catalog.agents(DEFAULT_TENANT);
    let agents = agents.map(|one| RegisteredAgent::clone(one).with_run_settings(RunSettings::default()));
    server.engine.catalog().swap(Catalog::new("scripted", agents));
    server.agent.prepare_turn([], done());
    server.send_as(draft(), send("three")).await.unwrap();
    assert_eq!(server.row(&first.id).await.deadline, None);
}
