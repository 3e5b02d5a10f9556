//! A turn that makes progress in every life survives any number of crashes, up to a hundred.

use std::sync::atomic::{AtomicU32, Ordering};

use a2ad_engine::OnCrash;
use protocol::TaskState;

use crate::{
    common::{Setup, chunk, done, process, progress, retryable_failure, save, status_metadata, status_text},
    crash::finished,
};

const WRITERS: usize = 20;
const CRASHES: u32 = 10;

#[test]
fn writers_that_save_progress_in_every_life_survive_ten_crashes() {
    let folder = tempfile::tempdir().unwrap();
    let setup = || Setup::plain().on_crash(OnCrash::Resume);
    for life in 0..CRASHES {
        process(folder.path(), setup(), async |server| {
            for writer in 0..WRITERS {
                let turn = match life {
                    0 => server.start_task(&format!("writer {writer}")).await.1,
                    _ => server.agent.turn().await,
                };
                assert_eq!(turn.attempt, 1 + u32::from(life > 0));
                assert_eq!(turn.saved::<u32>().unwrap(), life.checked_sub(1));
                // Checkpoints and artifacts are progress.
                if writer % 2 == 0 || life == 0 {
                    turn.checkpoint(&life).await.unwrap();
                } else {
                    turn.record().chunk("text", "more").save(&life).commit().await.unwrap();
                }
                let row = server.row(&turn.task_id).await;
                assert_eq!((row.attempt, row.deaths, row.crashes), (1, 0, i64::from(life)));
            }
        });
    }
    process(folder.path(), setup(), async |server| {
        for _ in 0..WRITERS {
            server.agent.turn().await.end(done());
        }
        server.store.until("finish", WRITERS).await;
        assert_eq!(server.count(TaskState::Completed).await, WRITERS as u64);
    });
}

#[test]
fn hundred_crashes_of_a_turn_poison_it_whatever_progress_it_makes() {
    let folder = tempfile::tempdir().unwrap();
    let runs = AtomicU32::new(0);
    let mut id = None;
    for life in 0..100 {
        process(folder.path(), Setup::plain(), async |server| {
            let turn = match life {
                0 => server.start_task("hello").await.1,
                _ => server.agent.turn().await,
            };
            for step in 0..=life {
                let work = async { Ok(runs.fetch_add(1, Ordering::SeqCst)) };
                assert_eq!(turn.step(format!("step {step}"), work).await.unwrap(), step);
            }
            id = Some(turn.task_id.clone());
        });
    }
    assert_eq!(runs.into_inner(), 100);
    process(folder.path(), Setup::plain(), async |server| {
        let failed = finished(server, id.as_ref().unwrap()).await;
        let text = "poisoned: the server crashed 100 times while this task ran";
        assert_eq!(status_text(&failed).as_deref(), Some(text));
        let metadata = r#"{"a2ad":{"reason":"poisoned","attempt":2,"attempts":6}}"#;
        assert_eq!(status_metadata(&failed), Some(metadata));
    });
}

#[test]
fn only_progress_is_counted_as_progress() {
    // Checkpoints and artifacts are no progress of a turn that begins anew, and messages never are.
    let updates = [vec![save("1")], vec![chunk("text", "one")], vec![progress("soon")]];
    let [saved, artifact, message] = updates;
    for (policy, updates) in [
        (OnCrash::Retry, saved),
        (OnCrash::Retry, artifact),
        (OnCrash::Retry, message),
        (OnCrash::Resume, vec![progress("soon")]),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let setup = || Setup::plain().on_crash(policy);
        process(folder.path(), setup(), async |server| {
            server.start_task("hello").await;
        });
        process(folder.path(), setup(), async |server| {
            let turn = server.agent.turn().await;
            turn.send(updates);
            server.store.until("report", 1).await;
            let row = server.row(&turn.task_id).await;
            assert_eq!((row.attempt, row.deaths, row.crashes), (2, 1, 1), "{policy:?}");
        });
    }
}

#[tokio::test]
async fn progress_after_a_retryable_failure_begins_the_attempts_anew() {
    let mut server = Setup::plain().attempts(2).open();
    let (id, turn) = server.start_task("hello").await;
    turn.end(retryable_failure("busy"));
    for step in ["one", "two", "three"] {
        let turn = server.agent.turn().await;
        assert_eq!(turn.attempt, 2, "before step {step}");
        turn.step(step, async { Ok(1) }).await.unwrap();
        turn.end(retryable_failure("busy"));
    }
    let turn = server.agent.turn().await;
    turn.end(retryable_failure("still busy"));
    server.store.until("finish", 1).await;
    let failed = server.get(&id).await.unwrap();
    assert_eq!(status_text(&failed).as_deref(), Some("still busy"));
    let metadata = r#"{"a2ad":{"reason":"attempts","attempt":2,"attempts":2}}"#;
    assert_eq!(status_metadata(&failed), Some(metadata));
}
