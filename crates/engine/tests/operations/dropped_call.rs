//! A client that goes away takes its watcher with it, never the work.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use a2ad_engine::Call;
use protocol::{Operation, TaskState};

use crate::common::{House, Say, Setup, artifact, ask, done, say, scope, within};

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
    let call = house.engine.call(Call { scope: scope() }, operation);
    match within(Short(Some(Box::pin(call)), polls)).await {
        Some(answered) => answered.map(|_| true).unwrap(),
        None => false,
    }
}

fn both(say: &Say) -> [Operation; 2] {
    [Operation::SendMessage(say.clone().into()), Operation::SendStreamingMessage(say.clone().into())]
}

/// Calls are dropped at each of their await points, one after the other, until one is not.
const POINTS: usize = 12;

#[tokio::test]
async fn what_was_recorded_of_a_ready_answer_is_whole() {
    let house = Setup::overlapping().open();
    for operation in both(&say("hello")) {
        for polls in 0..POINTS {
            house.stage.prepare_turn([artifact("a", "b")], done());
            if call(&house, operation.clone(), polls).await {
                break;
            }
        }
    }
    let accepted = house.store.count("accept");
    assert!(accepted >= 4, "{accepted}: no call was dropped after its commit was on its way");
    house.store.until("accept", accepted).await;
    assert_eq!(house.count(TaskState::Completed).await, accepted as u64);
}

#[tokio::test]
async fn a_run_goes_on_without_its_caller() {
    for overlap in [false, true] {
        let mut house = if overlap { Setup::overlapping() } else { Setup::plain() }.open();
        // The agent of a call that is dropped never answers by itself: no such call comes to its end.
        for operation in both(&say("hello")) {
            for polls in 0..4 {
                call(&house, operation.clone(), polls).await;
            }
        }
        let accepted = house.store.count("accept");
        assert!(accepted >= 4, "{accepted}");
        house.store.until("accept", accepted).await;
        let mut ran = 0;
        while ran < accepted {
            let turn = house.stage.turn().await;
            turn.say([artifact("a", "b")]);
            turn.end(done());
            // A turn that was begun before its call was dropped and never recorded is gone with it.
            ran += usize::from(!turn_is_gone(&turn));
        }
        house.store.until("finish", accepted).await;
        assert_eq!(house.count(TaskState::Completed).await, accepted as u64);
    }
}

fn turn_is_gone(turn: &crate::common::Taken) -> bool {
    use futures_util::FutureExt as _;
    turn.gone().now_or_never().is_some()
}

#[tokio::test]
async fn an_answer_to_a_question_goes_on_without_its_caller() {
    let mut house = Setup::plain().open();
    for polls in 0..POINTS {
        house.stage.prepare_turn([], ask("which?"));
        let asked = house.send_for_task(say("one of them")).await;
        house.stage.turn().await;
        let recorded = house.store.count("resume");
        call(&house, Operation::SendMessage(say("blue").to(&asked.id).into()), polls).await;
        if house.store.count("resume") > recorded {
            house.stage.turn().await.end(done());
            house.store.until("finish", recorded + 1).await;
            assert_eq!(house.get(&asked.id).await.unwrap().status.state, TaskState::Completed);
        } else {
            assert_eq!(house.get(&asked.id).await.unwrap(), asked);
        }
    }
    assert!(house.store.count("resume") > 1);
}

#[tokio::test]
async fn a_queued_task_is_taken_up_without_its_caller_as_soon_as_there_is_room() {
    for polls in 1..4 {
        let mut house = Setup::plain().slots(1).open();
        let (_, running) = house.begin("one").await;
        call(&house, Operation::SendMessage(say("two").into()), polls).await;
        if house.store.count("accept") == 1 {
            continue;
        }
        house.store.until("accept", 2).await;
        running.end(done());
        let turn = tokio::time::timeout(Duration::from_secs(3), house.stage.turn()).await;
        turn.expect("a free slot and due work did not find each other").end(done());
        house.store.until("finish", 2).await;
    }
}
