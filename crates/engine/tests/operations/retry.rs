//! A failure that may pass is tried again.

use a2ad_engine::Clock;
use protocol::{TaskState, Timestamp};

use crate::common::{Setup, artifact, done_saying, save, say, status_text, try_again};

#[tokio::test]
async fn the_first_retry_comes_at_once_with_the_same_key_and_what_was_saved() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        // The clock stands still: what is not due now never will be.
        let clock = Clock::manual(Timestamp::from_millis(1_000));
        let mut house = setup.clock(&clock).open();
        house.stage.prepare_turn([artifact("a", "one"), save("place")], try_again("busy"));
        let mut frames = house.stream(say("hello")).await.unwrap();
        let first = house.stage.turn().await;
        let second = house.stage.turn().await;
        assert_eq!((first.attempt, second.attempt), (1, 2));
        assert_eq!(first.idempotency_key, second.idempotency_key);
        assert_eq!((second.message.text().as_str(), second.history.len()), ("hello", 0));
        assert_eq!(second.saved.as_deref(), Some(b"place".as_slice()));
        second.end(done_saying("ok"));
        let lines = frames.lines().await;
        assert_eq!(lines.first().unwrap(), "1 task submitted");
        // The public state never goes back, and the client is told that there is another try.
        assert!(
            lines[1..lines.len() - 1].iter().any(|line| line.contains("attempt 1 of 6 failed")),
            "{lines:?}"
        );
        assert!(lines[1..].iter().all(|line| !line.contains("submitted")));
        assert!(lines.last().unwrap().ends_with("completed: ok"));
    }
}

#[tokio::test]
async fn the_last_failure_is_the_outcome() {
    let mut house = Setup::plain().attempts(2).open();
    house.stage.prepare_turn([], try_again("busy"));
    house.stage.prepare_turn([], try_again("still busy"));
    let failed = house.send_for_task(say("hello")).await;
    assert_eq!(failed.status.state, TaskState::Failed);
    assert_eq!(status_text(&failed).as_deref(), Some("still busy"));
    assert_eq!((house.stage.turn().await.attempt, house.stage.turn().await.attempt), (1, 2));
    assert!(house.stage.is_quiet());
    assert_eq!(house.store.steps(), ["accept", "retry", "claim", "finish"]);
}
