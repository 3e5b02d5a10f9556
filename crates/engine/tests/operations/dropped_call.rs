//! A client that goes away takes its watcher with it, never the work.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use a2ad_engine::Call;
use protocol::{CancelTask, Operation, TaskState};

use crate::common::{House, Setup, artifact, ask, done, say, scope, within};

/// A future that is dropped instead of being polled once more than it may be.
struct Short<F>(Option<Pin<Box<F>>>, usize);

impl<F: Future> Future for Short<F> {
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

/// Makes a call and drops it after so many polls; says whether it came to its end before.
async fn call(house: &House, operation: Operation, polls: usize) -> bool {
    let call = house.engine.call(Call::new(scope()), operation);
    match within(Short(Some(Box::pin(call)), polls)).await {
        Some(answered) => answered.map(|_| true).unwrap(),
        None => false,
    }
}

/// A new message, to be answered either way.
const BOTH: [fn() -> Operation; 2] =
    [|| Operation::SendMessage(say("hello").into()), || Operation::SendStreamingMessage(say("hello").into())];

/// Makes this call again and again, dropping it at one await point after the other, until one is not dropped.
async fn drop_everywhere(house: &House, operation: fn() -> Operation, prepare: impl Fn()) {
    for polls in 0..50 {
        prepare();
        if call(house, operation(), polls).await {
            assert!(polls > 1, "there was no point to drop it at");
            return;
        }
    }
    panic!("the call never came to its end");
}

#[tokio::test]
async fn what_was_recorded_of_a_ready_answer_is_whole() {
    let house = Setup::overlapping().open();
    let prepare = || house.stage.prepare_turn([artifact("a", "b")], done());
    prepare();
    house.send(say("first")).await.unwrap();
    for operation in BOTH {
        drop_everywhere(&house, operation, prepare).await;
    }
    let accepted = house.store.count("accept");
    assert!(accepted >= 5, "{accepted}: no call was dropped after its commit was on its way");
    house.store.until("accept", accepted).await;
    assert_eq!(house.count(TaskState::Completed).await, accepted as u64);
}

#[tokio::test]
async fn a_run_goes_on_without_its_caller() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let house = setup.open();
        for operation in BOTH {
            let prepare = || house.stage.prepare_slow_turn([artifact("a", "b")], done());
            drop_everywhere(&house, operation, prepare).await;
        }
        let accepted = house.store.count("accept");
        assert!(accepted >= 4, "{accepted}: no call was dropped after its commit was on its way");
        house.store.until("finish", accepted).await;
        assert_eq!(house.count(TaskState::Completed).await, accepted as u64);
    }
}

#[tokio::test]
async fn an_answer_to_a_question_goes_on_without_its_caller() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let house = setup.open();
        for polls in 0..50 {
            house.stage.prepare_turn([], ask("which?"));
            let asked = house.send_for_task(say("one of them")).await;
            house.stage.prepare_slow_turn([], done());
            let before = house.store.count("resume");
            let over = call(&house, Operation::SendMessage(say("blue").to(&asked.id).into()), polls).await;
            if house.store.count("resume") > before {
                house.store.until("finish", before + 1).await;
                assert_eq!(house.get(&asked.id).await.unwrap().status.state, TaskState::Completed);
            } else {
                assert_eq!(house.get(&asked.id).await.unwrap(), asked);
                house.stage.forget_prepared();
            }
            if over {
                break;
            }
        }
    }
}

#[tokio::test]
async fn a_change_on_its_way_does_not_need_its_caller() {
    for setup in [Setup::overlapping(), Setup::plain()] {
        let house = setup.open();
        house.stage.prepare_turn([], ask("which?"));
        let asked = house.send_for_task(say("one of them")).await;
        for (message, finished) in [(say("hello"), 1), (say("blue").to(&asked.id), 2)] {
            house.stage.prepare_slow_turn([], done());
            house.store.close_gate();
            let call = house.send_aside(message);
            house.store.until_waiting(1).await;
            call.abort();
            assert!(within(call).await.unwrap_err().is_cancelled());
            house.store.open_gate();
            house.store.until("finish", finished).await;
        }
        assert_eq!(house.count(TaskState::Completed).await, 2);
    }
}

#[tokio::test]
async fn a_queued_task_is_taken_up_without_its_caller_as_soon_as_there_is_room() {
    let mut house = Setup::plain().slots(1).open();
    let (_, running) = house.begin("one").await;
    // Dropped as it is told that its task is recorded.
    assert!(!call(&house, Operation::SendMessage(say("two").into()), 1).await);
    house.store.until("accept", 2).await;
    running.end(done());
    let turn = tokio::time::timeout(Duration::from_secs(3), house.stage.turn()).await;
    turn.expect("a free slot and due work did not find each other").end(done());
    house.store.until("finish", 2).await;
}

#[tokio::test]
async fn a_cancel_stops_the_run_though_its_caller_is_gone() {
    let mut house = Setup::plain().slots(1).open();
    // A fast store leaves few points at which a call can be dropped, so all of them are tried several times.
    let mut dropped_after_commit = 0;
    for polls in (0..8).cycle().take(80) {
        let (id, running) = house.begin("go on").await;
        let cancel = Operation::CancelTask(CancelTask { id: id.clone(), metadata: None, tenant: None });
        let before = house.store.count("cancel");
        let ended = call(&house, cancel, polls).await;
        let handed_over = house.store.count("cancel");
        if handed_over > before {
            house.store.until("cancel", handed_over).await;
            within(running.cancel.cancelled()).await;
            dropped_after_commit += usize::from(!ended);
        }
        running.end(done());
        // Either way the slot is free for the next one.
        running.gone().await;
        if dropped_after_commit == 3 {
            return;
        }
    }
    panic!("the call was never dropped between the commit and its end");
}

#[tokio::test]
async fn an_engine_that_nobody_has_any_more_lets_go_of_its_work_and_its_store() {
    let folder = tempfile::tempdir().unwrap();
    let mut house = Setup::plain().open_at(folder.path());
    let (id, running) = house.begin("go on").await;
    let mut watching = house.subscribe(&id).await.unwrap();
    drop(house);
    running.gone().await;
    // Who watches is sent away, and holds nothing back.
    watching.rest().await;
    drop(watching);
    // A turn can look into the store for as long as its agent keeps it.
    drop(running);
    // The file belongs to one owner at a time.
    let mut again = within(async {
        loop {
            match Setup::plain().try_open_at(folder.path()) {
                Some(house) => return house,
                None => tokio::task::yield_now().await,
            }
        }
    })
    .await;
    let turn = again.stage.turn().await;
    assert_eq!(turn.task_id, id);
    turn.end(done());
}
