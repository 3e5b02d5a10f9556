//! A client that disconnects drops its watcher, never the work.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use a2ad_engine::Call;
use protocol::{CancelTask, Operation, TaskState};

use crate::common::{Setup, TestServer, artifact, done, msg, need_input, scope, with_timeout};

/// A future that is dropped after a number of polls.
struct PollLimit<F>(Option<Pin<Box<F>>>, usize);

impl<F: Future> Future for PollLimit<F> {
    type Output = Option<F::Output>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.1 == 0 {
            self.0 = None;
            return Poll::Ready(None);
        }
        self.1 -= 1;
        let Some(future) = &mut self.0 else { return Poll::Ready(None) };
        future.as_mut().poll(cx).map(Some)
    }
}

/// Makes a call and drops it after `polls` polls; returns whether it completed before.
async fn call(server: &TestServer, operation: Operation, polls: usize) -> bool {
    let call = server.engine.call(Call::new(scope()), operation);
    match with_timeout(PollLimit(Some(Box::pin(call)), polls)).await {
        Some(answered) => answered.map(|_| true).unwrap(),
        None => false,
    }
}

/// A new message, as a blocking and as a streaming send.
const SEND_OPERATIONS: [fn() -> Operation; 2] =
    [|| Operation::SendMessage(msg("hello").into()), || Operation::SendStreamingMessage(msg("hello").into())];

/// Repeats a call, dropping it at one await point after the other, until it completes.
async fn drop_at_every_await(server: &TestServer, operation: fn() -> Operation, prepare: impl Fn()) {
    for polls in 0..50 {
        prepare();
        if call(server, operation(), polls).await {
            assert!(polls > 1, "the call has no await point");
            return;
        }
    }
    panic!("the call never completed");
}

#[tokio::test]
async fn dropped_call_leaves_a_complete_record() {
    let server = Setup::overlapping().open();
    let prepare = || server.agent.prepare_turn([artifact("a", "b")], done());
    prepare();
    server.send(msg("first")).await.unwrap();
    for operation in SEND_OPERATIONS {
        drop_at_every_await(&server, operation, prepare).await;
    }
    let accepted = server.store.count("accept");
    assert!(accepted >= 5, "{accepted}: no call was dropped after its commit was on its way");
    server.store.until("accept", accepted).await;
    assert_eq!(server.count(TaskState::Completed).await, accepted as u64);
}

#[tokio::test]
async fn run_continues_without_its_caller() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let server = setup.open();
        let prepare = || server.agent.prepare_slow_turn([artifact("a", "b")], done());
        prepare();
        // The first message waits until the store has been read.
        server.send(msg("first")).await.unwrap();
        for operation in SEND_OPERATIONS {
            drop_at_every_await(&server, operation, prepare).await;
        }
        let accepted = server.store.count("accept");
        assert!(accepted >= 5, "{accepted}: no call was dropped after its commit was on its way");
        server.store.until("finish", accepted).await;
        assert_eq!(server.count(TaskState::Completed).await, accepted as u64);
    }
}

#[tokio::test]
async fn follow_up_continues_without_its_caller() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let server = setup.open();
        for polls in 0..50 {
            server.agent.prepare_turn([], need_input("which?"));
            let asked = server.send_for_task(msg("one of them")).await;
            server.agent.prepare_slow_turn([], done());
            let before = server.store.count("resume");
            let completed =
                call(&server, Operation::SendMessage(msg("blue").to(&asked.id).into()), polls).await;
            if server.store.count("resume") > before {
                server.store.until("finish", before + 1).await;
                assert_eq!(server.get(&asked.id).await.unwrap().status.state, TaskState::Completed);
            } else {
                assert_eq!(server.get(&asked.id).await.unwrap(), asked);
                server.agent.clear_prepared();
            }
            if completed {
                break;
            }
        }
    }
}

#[tokio::test]
async fn pending_change_is_committed_without_its_caller() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let server = setup.open();
        server.agent.prepare_turn([], need_input("which?"));
        let asked = server.send_for_task(msg("one of them")).await;
        for (message, finished) in [(msg("hello"), 1), (msg("blue").to(&asked.id), 2)] {
            server.agent.prepare_slow_turn([], done());
            server.store.block_commits();
            let call = server.spawn_send(message);
            server.store.until_blocked(1).await;
            call.abort();
            assert!(with_timeout(call).await.unwrap_err().is_cancelled());
            server.store.unblock_commits();
            server.store.until("finish", finished).await;
        }
        assert_eq!(server.count(TaskState::Completed).await, 2);
    }
}

#[tokio::test]
async fn queued_task_is_claimed_without_its_caller() {
    let mut server = Setup::plain().slots(1).open();
    let (_, running) = server.start_task("one").await;
    // Dropped at the point where its task is committed.
    assert!(!call(&server, Operation::SendMessage(msg("two").into()), 1).await);
    server.store.until("accept", 2).await;
    running.end(done());
    let turn = tokio::time::timeout(Duration::from_secs(3), server.agent.turn()).await;
    turn.expect("due work was not claimed though a slot was free").end(done());
    server.store.until("finish", 2).await;
}

#[tokio::test]
async fn cancel_stops_the_run_without_its_caller() {
    let mut server = Setup::plain().slots(1).open();
    // A fast store leaves few await points, so all of them are tried several times.
    let mut dropped_after_commit = 0;
    for polls in (0..8).cycle().take(80) {
        let (id, running) = server.start_task("go on").await;
        let cancel = Operation::CancelTask(CancelTask { id: id.clone(), metadata: None, tenant: None });
        let before = server.store.count("cancel");
        let ended = call(&server, cancel, polls).await;
        let handed_over = server.store.count("cancel");
        if handed_over > before {
            server.store.until("cancel", handed_over).await;
            with_timeout(running.cancel.cancelled()).await;
            dropped_after_commit += usize::from(!ended);
        }
        running.end(done());
        // The slot is free for the next one in any case.
        running.dropped().await;
        if dropped_after_commit == 3 {
            return;
        }
    }
    panic!("the call was never dropped between the commit and its end");
}

#[tokio::test]
async fn dropped_engine_releases_its_work_and_store() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Setup::plain().open_at(folder.path());
    let (id, running) = server.start_task("go on").await;
    let mut watching = server.subscribe(&id).await.unwrap();
    drop(server);
    running.dropped().await;
    // The subscriber's stream ends and does not block the release.
    watching.rest().await;
    drop(watching);
    // The turn holds a reference to the store as long as the agent keeps it.
    drop(running);
    // The database has one owner at a time.
    let mut again = with_timeout(async {
        loop {
            match Setup::plain().try_open_at(folder.path()) {
                Some(server) => return server,
                None => tokio::task::yield_now().await,
            }
        }
    })
    .await;
    let turn = again.agent.turn().await;
    assert_eq!(turn.task_id, id);
    turn.end(done());
}
