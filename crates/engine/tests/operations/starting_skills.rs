//! Skills of servers that start: a message that names one waits for it, and a task gets its skill when it is claimed.

use std::time::Duration;

use a2ad_engine::{Call, Clock, DynAgent, Error, Outcome, RunSettings, Scope, Skill, Turn, agent_fn};
use protocol::{ErrorKind, Task, TaskState, Timestamp};

use crate::{
    common::{
        Setup, TestServer, done, join, msg, prevent_auto_advance, process, refusal, reply, skill,
        status_text, task,
    },
    crash::finished,
};

const START: i64 = 1_000_000;
const DEADLINE: Duration = Duration::from_secs(300);

/// A skill whose result is its id.
fn draw() -> Skill {
    let work = agent_fn(async |turn: Turn| Outcome::done_with(turn.skill.unwrap_or_default()));
    let run = RunSettings { deadline: Some(DEADLINE), ..RunSettings::default() };
    Skill { run, ..Skill::new(skill("draw"), DynAgent::new(work)) }
}

/// One slot, another agent, and a server that starts.
fn starting(clock: &Clock) -> Setup {
    Setup::plain().clock(clock).slots(1).with("other", agent_fn(async |_| done())).starting("studio")
}

fn clock() -> Clock {
    Clock::manual(Timestamp::from_millis(START))
}

/// The other agent gets the only slot.
async fn assert_slot_is_free(server: &TestServer) {
    let call = Call::new(Scope::anonymous("default", "other"));
    let other = task(reply(server.send_as(call, msg("hello")).await.unwrap()));
    assert_eq!(other.status.state, TaskState::Completed);
}

fn assert_drawn(task: &Task) {
    assert_eq!((task.status.state, status_text(task).as_deref()), (TaskState::Completed, Some("draw")));
}

#[tokio::test]
async fn skill_is_selected_in_the_commit_of_the_claim() {
    let clock = clock();
    let server = starting(&clock).open();
    let call = server.spawn_send(msg("hello"));
    server.store.until("accept", 1).await;
    assert_slot_is_free(&server).await;
    // A change after which it is still not known.
    server.replace_skills([], &["studio"]);
    assert_slot_is_free(&server).await;
    clock.advance(Duration::from_secs(5));
    server.store.block_step("finish");
    server.replace_skills([draw()], &[]);
    server.store.until_blocked(1).await;
    let id = server.list(protocol::ListTasks::default()).await.unwrap().tasks[0].id.clone();
    let row = server.row(&id).await;
    // The deadline counts from the message.
    let deadline = Timestamp::from_millis(START + 300_000);
    assert_eq!((row.skill.as_deref(), row.deadline, row.attempt), (Some("draw"), Some(deadline), 1));
    server.store.unblock_commits();
    assert_drawn(&task(join(call).await.unwrap()));
    let steps = server.store.steps();
    assert!(!steps.iter().any(|step| step == "report" || step == "release"), "{steps:?}");
}

#[tokio::test]
async fn deadline_of_a_skill_counts_from_the_message_that_selects_it() {
    let clock = clock();
    let paint = Skill::new(skill("paint"), DynAgent::new(agent_fn(async |_| done())));
    let server = Setup::plain().clock(&clock).separate([draw(), paint]).open();
    let asked = server.send_for_task(msg("hello")).await;
    assert_eq!((asked.status.state, server.row(&asked.id).await.deadline), (TaskState::InputRequired, None));
    clock.advance(Duration::from_secs(400));
    assert_drawn(&server.send_for_task(msg("draw").to(&asked.id)).await);
    let deadline = Timestamp::from_millis(START + 700_000);
    assert_eq!(server.row(&asked.id).await.deadline, Some(deadline));
}

#[test]
fn tasks_of_an_earlier_process_wait_without_a_slot() {
    let folder = tempfile::tempdir().unwrap();
    let clock = clock();
    let running = Setup::plain().clock(&clock).slots(1).separate([stuck(), draw()]);
    let selected = process(folder.path(), running, async |server| {
        let running = msg("hello").skill("stuck").return_immediately();
        server.send(running).await.unwrap();
        server.send_for_task(msg("hello").skill("draw").return_immediately()).await.id
    });
    let unselected = process(folder.path(), starting(&clock), async |server| {
        server.send_for_task(msg("hello").return_immediately()).await.id
    });
    process(folder.path(), starting(&clock), async |server| {
        server.store.until("release", 1).await;
        assert_slot_is_free(server).await;
        server.replace_skills([draw()], &[]);
        for id in [selected, unselected] {
            assert_drawn(&finished(server, &id).await);
        }
    });
}

/// A skill that does not end.
fn stuck() -> Skill {
    Skill::new(skill("stuck"), DynAgent::new(agent_fn(async |_| std::future::pending::<Outcome>().await)))
}

#[tokio::test(start_paused = true)]
async fn task_fails_whose_skill_stays_unknown() {
    let (_time, clock) = (prevent_auto_advance(), clock());
    let mut server = starting(&clock).open();
    let waiting = server.send_for_task(msg("hello").return_immediately()).await;
    assert_eq!(waiting.status.state, TaskState::Submitted);
    assert_slot_is_free(&server).await;
    clock.advance(Duration::from_secs(71));
    tokio::time::advance(Duration::from_secs(71)).await;
    let failed = finished(&mut server, &waiting.id).await;
    assert_eq!(failed.status.state, TaskState::Failed);
    let text = "the skill is not available: studio has not started yet";
    assert_eq!(status_text(&failed).as_deref(), Some(text));
}

#[tokio::test]
async fn canceled_task_does_not_wait_for_its_skill() {
    let clock = clock();
    let server = starting(&clock).open();
    let waiting = server.send_for_task(msg("hello").return_immediately()).await;
    assert_eq!(server.cancel(&waiting.id).await.unwrap().status.state, TaskState::Canceled);
    server.replace_skills([draw()], &[]);
    assert_slot_is_free(&server).await;
    assert_eq!(server.store.count("claim"), 0);
}

#[tokio::test]
async fn message_waits_for_the_skill_that_it_names() {
    let clock = clock();
    let server = starting(&clock).open();
    let call = server.spawn_send(msg("hello").skill("draw"));
    server.replace_skills([stuck()], &["studio"]);
    assert_slot_is_free(&server).await;
    assert_eq!(server.store.count("accept"), 1, "nothing of the message is recorded yet");
    server.replace_skills([draw()], &["studio"]);
    assert_drawn(&task(join(call).await.unwrap()));
}

#[tokio::test(start_paused = true)]
async fn named_skill_that_stays_unknown_is_refused() {
    let server = Setup::plain().starting("studio").open();
    let began = tokio::time::Instant::now();
    let refused = refusal(server.send(msg("hello").skill("draw")).await);
    assert_eq!((refused.kind, began.elapsed().as_secs()), (ErrorKind::InvalidParams, 10));
    let problem = &refused.violations[0].problem;
    let expected =
        "no skill of this agent is known yet; studio is starting and may have more, try again later";
    assert_eq!(problem, expected);
    // The server has started, and does not have it.
    let call = server.spawn_send(msg("hello").skill("draw"));
    tokio::task::yield_now().await;
    server.replace_skills([stuck()], &[]);
    assert_eq!(refusal(join(call).await).violations[0].problem, "expected one of stuck");
    assert_eq!(began.elapsed().as_secs(), 10);
    assert!(server.store.steps().is_empty());
}

#[tokio::test]
async fn number_of_messages_that_wait_for_a_skill_is_limited() {
    let server = Setup::plain().starting("studio").open();
    let waiting: Vec<_> = (0..1_000).map(|_| server.spawn_send(msg("hello").skill("draw"))).collect();
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    let refused = server.send(msg("hello").skill("draw")).await;
    assert!(matches!(refused, Err(Error::RetryLater(_))), "{refused:?}");
    join(server.spawn_drain(Duration::from_secs(5))).await;
    for call in waiting {
        let refused = join(call).await;
        assert!(matches!(refused, Err(Error::RetryLater(_))), "{refused:?}");
    }
}
