//! A system clock that is set wrong, and corrected later, neither stops time nor purges tasks nor delays work.

use std::time::Duration;

use a2ad_engine::{Clock, Retention, Store as _, store::RetentionMark};
use protocol::{TaskState, Timestamp};

use crate::common::{Setup, TestServer, done, msg, retryable_failure, with_timeout};

const START: i64 = 1_000_000_000_000;
/// How far the clock is wrong: more than the default retention.
const WRONG: i64 = 25 * 60 * 60 * 1_000;
const MINUTE: Duration = Duration::from_secs(60);

fn clock() -> Clock {
    Clock::manual(Timestamp::from_millis(START))
}

/// Sets the system clock forwards or back by this many milliseconds.
fn step(clock: &Clock, by: i64) {
    clock.set(Timestamp::from_millis(clock.now().as_millis() + by));
}

/// Tasks are kept for a day; the short time only lets the purger run often.
fn for_a_day() -> Retention {
    Retention { keys: Duration::from_secs(4), ..Retention::default() }
}

/// Waits until the purger has recorded a time that satisfies the condition. The manual clock must have advanced
/// by a minute since it recorded one before.
async fn until_recorded(server: &TestServer, condition: impl Fn(RetentionMark) -> bool) {
    let recorded = async {
        while !server.store.retention_mark().await.unwrap().is_some_and(&condition) {
            tokio::task::yield_now().await;
        }
    };
    with_timeout(recorded).await;
}

#[tokio::test]
async fn clock_that_was_ahead_and_is_corrected_purges_nothing() {
    let clock = clock();
    let folder = tempfile::tempdir().unwrap();
    let open = || Setup::plain().clock(&clock).retention(for_a_day()).open_at(folder.path());
    let server = open();
    server.agent.prepare_turn([], done());
    let finished = server.send_for_task(msg("hello")).await.id;
    server.store.until_retention_recorded().await;
    step(&clock, WRONG);
    clock.advance(MINUTE);
    until_recorded(&server, |mark| mark.ahead_for >= MINUTE).await;
    assert!(server.get(&finished).await.is_ok());
    with_timeout(server.engine.drain(Duration::ZERO)).await;
    drop(server);

    let server = open();
    server.store.until_retention_recorded().await;
    clock.advance(MINUTE);
    until_recorded(&server, |mark| mark.ahead_for >= MINUTE * 2).await;
    assert!(server.get(&finished).await.is_ok());
    step(&clock, -WRONG);
    clock.advance(MINUTE);
    until_recorded(&server, |mark| mark.ahead_for.is_zero()).await;
    assert!(server.get(&finished).await.is_ok());
    assert_eq!(clock.now().as_millis(), START + 180_000);
}

#[tokio::test]
async fn clock_that_stays_ahead_is_believed_after_ten_minutes() {
    let clock = clock();
    let server = Setup::plain().clock(&clock).retention(for_a_day()).open();
    server.agent.prepare_turn([], done());
    let finished = server.send_for_task(msg("hello")).await.id;
    server.store.until_retention_recorded().await;
    step(&clock, WRONG);
    clock.advance(MINUTE * 9);
    until_recorded(&server, |mark| mark.ahead_for >= MINUTE * 9).await;
    assert!(server.get(&finished).await.is_ok());
    clock.advance(MINUTE * 2);
    let purged = async {
        while server.get(&finished).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    with_timeout(purged).await;
}

#[tokio::test]
async fn time_goes_on_after_a_wrong_clock_is_corrected() {
    let clock = clock();
    let server = Setup::overlapping().clock(&clock).open();
    let mut stamps = Vec::new();
    for by in [0, WRONG, -WRONG, 1_000] {
        step(&clock, by);
        server.agent.prepare_turn([], done());
        stamps.push(server.send_for_task(msg("hello")).await.status.timestamp.unwrap().as_millis() - START);
    }
    assert_eq!(stamps, [0, WRONG, 0, 1_000]);
}

#[tokio::test]
async fn work_queued_by_a_wrong_clock_runs_when_the_clock_is_corrected() {
    let clock = clock();
    let mut server = Setup::plain().clock(&clock).slots(1).open();
    let (_, running) = server.start_task("one").await;
    step(&clock, WRONG);
    let queued = server.send_for_task(msg("two").return_immediately()).await;
    assert_eq!(queued.status.state, TaskState::Submitted);
    step(&clock, -WRONG);
    running.end(done());
    assert_eq!(server.agent.turn().await.message.text(), "two");
}

#[tokio::test]
async fn work_queued_by_a_wrong_clock_runs_after_a_restart() {
    let clock = clock();
    let folder = tempfile::tempdir().unwrap();
    {
        let mut server = Setup::plain().clock(&clock).slots(1).open_at(folder.path());
        let (_, _running) = server.start_task("one").await;
        step(&clock, WRONG);
        server.send_for_task(msg("two").return_immediately()).await;
        with_timeout(server.engine.drain(Duration::ZERO)).await;
    }
    step(&clock, -WRONG);
    let mut server = Setup::plain().clock(&clock).open_at(folder.path());
    let mut texts = [server.agent.turn().await.message.text(), server.agent.turn().await.message.text()];
    texts.sort();
    assert_eq!(texts, ["one", "two"]);
}

#[tokio::test]
async fn retry_scheduled_by_a_wrong_clock_is_due_when_the_clock_is_corrected() {
    let clock = clock();
    let mut server = Setup::plain().clock(&clock).open();
    let (id, first) = server.start_task("hello").await;
    step(&clock, WRONG);
    first.end(retryable_failure("busy"));
    server.agent.turn().await.end(retryable_failure("busy"));
    // The third attempt waits for up to a second.
    server.store.until("retry", 2).await;
    step(&clock, -WRONG);
    server.agent.turn().await.end(done());
    server.store.until("finish", 1).await;
    assert_eq!(server.get(&id).await.unwrap().status.state, TaskState::Completed);
}
