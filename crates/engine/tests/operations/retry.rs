//! A retryable failure is retried.

use a2ad_engine::Clock;
use protocol::{TaskState, Timestamp};

use crate::common::{Setup, artifact, done_with, msg, retryable_failure, save, status_metadata, status_text};

#[tokio::test]
async fn first_retry_is_immediate_with_the_same_key_and_checkpoint() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        // The clock does not advance: what is not due now never will be.
        let clock = Clock::manual(Timestamp::from_millis(1_000));
        let mut server = setup.clock(&clock).open();
        server.agent.prepare_turn([artifact("a", "one"), save("place")], retryable_failure("busy"));
        let mut frames = server.stream(msg("hello")).await.unwrap();
        let first = server.agent.turn().await;
        let second = server.agent.turn().await;
        assert_eq!((first.attempt, second.attempt), (1, 2));
        assert_eq!(first.idempotency_key, second.idempotency_key);
        assert_eq!((second.message.text().as_str(), second.history.len()), ("hello", 0));
        assert_eq!(second.saved_text(), Some("place"));
        second.end(done_with("ok"));
        let lines = frames.lines().await;
        assert_eq!(lines.first().unwrap(), "1 task submitted");
        // The public state never goes back, and a progress message announces the retry.
        assert!(
            lines[1..lines.len() - 1].iter().any(|line| line.contains("attempt 1 of 6 failed")),
            "{lines:?}"
        );
        assert!(lines[1..].iter().all(|line| !line.contains("submitted")));
        assert!(lines.last().unwrap().ends_with("completed: ok"));
    }
}

#[tokio::test]
async fn last_failed_attempt_is_the_outcome() {
    let mut server = Setup::plain().attempts(2).open();
    server.agent.prepare_turn([], retryable_failure("busy"));
    server.agent.prepare_turn([], retryable_failure("still busy"));
    let failed = server.send_for_task(msg("hello")).await;
    assert_eq!(failed.status.state, TaskState::Failed);
    assert_eq!(status_text(&failed).as_deref(), Some("still busy"));
    assert_eq!(status_metadata(&failed), Some(r#"{"a2ad":{"reason":"attempts","attempt":2,"attempts":2}}"#));
    assert_eq!((server.agent.turn().await.attempt, server.agent.turn().await.attempt), (1, 2));
    assert!(server.agent.is_idle());
    assert_eq!(server.store.steps(), ["accept", "retry", "claim", "finish"]);
}

#[tokio::test]
async fn retry_is_announced_with_its_reason() {
    let clock = Clock::manual(Timestamp::from_millis(1_000));
    let mut server = Setup::plain().clock(&clock).open();
    server.agent.prepare_turn([], retryable_failure("busy"));
    let id = server.send_for_task(msg("hello").return_immediately()).await.id;
    server.agent.turn().await;
    let _second = server.agent.turn().await;
    let working = server.get(&id).await.unwrap();
    assert_eq!(status_text(&working).as_deref(), Some("attempt 1 of 6 failed, trying again"));
    let metadata = r#"{"a2ad":{"reason":"retry","attempt":1,"attempts":6}}"#;
    assert_eq!(status_metadata(&working), Some(metadata));
}
