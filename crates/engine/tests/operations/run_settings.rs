//! Execution settings of skills and agents: run time, attempts, what happens after a crash.

use std::time::Duration;

use a2ad_engine::{Clock, OnCrash, RunSettings};
use protocol::{Task, TaskId, TaskState, Timestamp};

use crate::common::{
    MessageBuilder, RunningTurn, Setup, TestServer, artifacts, chunk, done, join, msg, need_input,
    prevent_auto_advance, process, reason, retryable_failure, status_text, task, with_timeout,
};

const RUN_TIME: Duration = Duration::from_secs(5);

/// Two skills, of which `quick` has these settings.
fn two_skills(settings: RunSettings) -> Setup {
    Setup::plain().skills(&["quick", "other"]).skill_settings("quick", settings)
}

#[tokio::test(start_paused = true)]
async fn run_time_of_a_skill_applies_to_its_tasks_only() {
    let _time = prevent_auto_advance();
    let settings = RunSettings { run_time: Some(RUN_TIME), ..RunSettings::default() };
    let mut server = two_skills(settings).open();
    let quick = server.spawn_send(msg("hello").skill("quick"));
    let turn = server.agent.turn().await;
    assert!(turn.time_left() <= RUN_TIME, "{:?}", turn.time_left());
    for other in [msg("hello").skill("other"), msg("hello")] {
        let (_, turn) = start(&mut server, other).await;
        assert!(turn.time_left() > RUN_TIME * 2, "{:?}", turn.time_left());
    }
    tokio::time::advance(RUN_TIME).await;
    let failed = task(join(quick).await.unwrap());
    assert_eq!(failed.status.state, TaskState::Failed);
    assert_eq!(status_text(&failed).as_deref(), Some("the turn took longer than 5s"));
    assert_eq!(reason(&failed).as_deref(), Some("run_time"));
    assert_eq!(server.count(TaskState::Working).await, 2);
}

#[tokio::test(start_paused = true)]
async fn task_without_a_skill_has_the_settings_of_the_only_skill_or_of_the_agent() {
    let settings = |run_time| RunSettings { run_time: Some(run_time), ..RunSettings::default() };
    let only = || Setup::plain().skills(&["quick"]).skill_settings("quick", settings(RUN_TIME));
    let agent = Duration::from_secs(9);
    let cases = [
        (only(), RUN_TIME),
        (only().run_settings(settings(agent)), RUN_TIME),
        (two_skills(settings(RUN_TIME)).run_settings(settings(agent)), agent),
        (Setup::plain().run_settings(settings(agent)), agent),
    ];
    for (setup, expected) in cases {
        let _time = prevent_auto_advance();
        let mut server = setup.open();
        let (_, turn) = start(&mut server, msg("hello")).await;
        assert_eq!(turn.time_left(), expected);
    }
}

#[tokio::test]
async fn attempts_of_a_skill_decide_when_a_failure_is_final() {
    let settings = RunSettings { attempts: Some(2), ..RunSettings::default() };
    let server = two_skills(settings).open();
    server.agent.prepare_turn([], retryable_failure("busy"));
    server.agent.prepare_turn([], retryable_failure("still busy"));
    let mut frames = server.stream(msg("hello").skill("quick")).await.unwrap();
    let lines = frames.lines().await;
    assert!(lines.iter().any(|line| line.contains("attempt 1 of 2 failed")), "{lines:?}");
    assert!(lines.last().unwrap().ends_with("failed: still busy"), "{lines:?}");
    assert_eq!(server.store.steps(), ["accept", "retry", "claim", "finish"]);
    // The other skill has the attempts of the server.
    server.agent.prepare_turn([], retryable_failure("busy"));
    let mut frames = server.stream(msg("hello").skill("other")).await.unwrap();
    while !frames.next().await.contains("attempt 1 of 6 failed") {}
}

#[test]
fn attempts_of_a_skill_limit_the_runs_after_a_crash() {
    let settings = || two_skills(RunSettings { attempts: Some(1), ..RunSettings::default() });
    let failed = crash(settings, "quick");
    assert_eq!(status_text(&failed).as_deref(), Some("gave up after 1 attempts"));
}

#[test]
fn on_crash_of_a_skill_takes_precedence_over_that_of_its_agent() {
    let settings = RunSettings { on_crash: Some(OnCrash::Resume), ..RunSettings::default() };
    // The agent declares `retry`.
    for (skill, expected) in [("quick", "one two"), ("other", "two")] {
        let folder = tempfile::tempdir().unwrap();
        let id = process(folder.path(), two_skills(settings), async |server| {
            let (id, turn) = start(server, msg("hello").skill(skill)).await;
            turn.send([chunk("text", "one ")]);
            server.store.until("report", 1).await;
            id
        });
        process(folder.path(), two_skills(settings), async |server| {
            let turn = server.agent.turn().await;
            turn.send([chunk("text", "two")]);
            turn.end(done());
            server.store.until("finish", 1).await;
            assert_eq!(artifacts(&server.get(&id).await.unwrap()), [("text".into(), expected.into())]);
        });
    }
}

#[tokio::test]
async fn interrupted_ttl_of_an_agent_takes_precedence_over_that_of_the_server() {
    let clock = Clock::manual(Timestamp::from_millis(1_000_000));
    let settings = RunSettings { interrupted_ttl: Some(Duration::from_secs(4)), ..RunSettings::default() };
    let server = Setup::plain().clock(&clock).run_settings(settings).open();
    server.agent.prepare_turn([], need_input("which?"));
    let asked = server.send_for_task(msg("waits")).await;
    let mut watching = server.subscribe(&asked.id).await.unwrap();
    clock.advance(Duration::from_secs(5));
    with_timeout(watching.rest()).await;
    let failed = server.get(&asked.id).await.unwrap();
    assert_eq!(failed.status.state, TaskState::Failed);
    assert_eq!(reason(&failed).as_deref(), Some("input_timeout"));
}

#[tokio::test]
async fn interrupted_ttl_of_a_skill_applies_to_its_tasks_only() {
    let clock = Clock::manual(Timestamp::from_millis(1_000_000));
    let settings = RunSettings { interrupted_ttl: Some(Duration::from_secs(4)), ..RunSettings::default() };
    let setup = Setup::plain().clock(&clock).skills(&["quick", "patient"]).skill_settings("quick", settings);
    let server = setup.open();
    let mut asked = Vec::new();
    for skill in ["patient", "quick"] {
        server.agent.prepare_turn([], need_input("which?"));
        asked.push(server.send_for_task(msg("waits").skill(skill)).await.id);
    }
    let mut watching = server.subscribe(&asked[1]).await.unwrap();
    clock.advance(Duration::from_secs(5));
    with_timeout(watching.rest()).await;
    assert_eq!(reason(&server.get(&asked[1]).await.unwrap()).as_deref(), Some("input_timeout"));
    assert_eq!(server.get(&asked[0]).await.unwrap().status.state, TaskState::InputRequired);
}

async fn start(server: &mut TestServer, msg: MessageBuilder) -> (TaskId, RunningTurn) {
    let task = server.send_for_task(msg.return_immediately()).await;
    (task.id, server.agent.turn().await)
}

/// Kills a process while it runs a task with this skill; returns the task that the next process fails.
fn crash(setup: impl Fn() -> Setup, skill: &str) -> Task {
    let folder = tempfile::tempdir().unwrap();
    let id = process(folder.path(), setup(), async |server| start(server, msg("hello").skill(skill)).await.0);
    process(folder.path(), setup(), async |server| {
        server.store.until("finish", 1).await;
        assert!(server.agent.is_idle());
        server.get(&id).await.unwrap()
    })
}
