//! A stream that broke off goes on behind the last event its client saw (R16, R17).

use a2ad_engine::Resume;
use protocol::ErrorKind;

use crate::common::{House, Setup, artifact, chunk, done, progress, refused};

/// A task at work whose log has five events.
async fn five() -> (House, crate::common::Taken, Vec<String>) {
    let mut house = Setup::plain().open();
    let (_, turn) = house.begin("hello").await;
    let mut frames = house.subscribe(&turn.task_id).await.unwrap();
    turn.say([progress("one"), chunk("a", "two"), artifact("b", "three")]);
    assert_eq!(frames.next().await, "2 task working");
    let mut lines = vec!["1 submitted".to_owned(), "2 working".to_owned()];
    for _ in 3..=5 {
        lines.push(frames.next().await);
    }
    (house, turn, lines)
}

#[tokio::test]
async fn what_was_missed_comes_first_and_then_what_is_new() {
    let (house, turn, lines) = five().await;
    let mut streams = Vec::new();
    for seen in 0..=5 {
        streams.push((seen, house.resume(&turn.task_id, Resume::After(seen)).await.unwrap()));
    }
    turn.end(done());
    house.store.until("finish", 1).await;
    for seen in 0..=5 {
        // By now the task is over, and who has not seen its end is still told.
        streams.push((seen, house.resume(&turn.task_id, Resume::After(seen)).await.unwrap()));
    }
    for (seen, mut frames) in streams {
        let found = frames.lines().await;
        assert!(found[0].starts_with(&format!("{seen} task ")), "{}", found[0]);
        assert!(found[0].ends_with(" without history"), "{}", found[0]);
        let missed = &lines[usize::try_from(seen).unwrap()..];
        assert_eq!(found[1..found.len() - 1], *missed, "{seen}");
        assert_eq!(found.last().unwrap(), "6 completed");
    }
    for seen in [Resume::After(6), Resume::After(7), Resume::Unknown] {
        assert_eq!(refused(house.resume(&turn.task_id, seen).await), ErrorKind::UnsupportedOperation);
    }
}

#[tokio::test]
async fn what_cannot_be_placed_begins_anew_and_says_so() {
    let (house, turn, _) = five().await;
    for seen in [Resume::After(6), Resume::After(u64::MAX), Resume::Unknown] {
        let mut frames = house.resume(&turn.task_id, seen).await.unwrap();
        assert_eq!(frames.next().await, "5 task working with a gap");
    }
}
