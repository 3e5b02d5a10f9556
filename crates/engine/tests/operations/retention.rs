//! Finished tasks are forgotten in time, open ones are not, and nobody waits for ever.

use std::time::Duration;

use a2ad_engine::{
    Agent, Answer, Call, Clock, Outcome, Retention, Scope, Store as _, Turn, Updates, store::Lookup,
};
use futures_util::{FutureExt as _, future::BoxFuture};
use protocol::{
    Dialect, ErrorKind, ListTasks, Message, Operation, SendMessage, TaskId, TaskState, Timestamp,
};

use crate::common::{House, Setup, ask, done, refused, reply, say, speaking, status_text, task, within};

const SPAN: Duration = Duration::from_secs(4);

fn clock() -> Clock {
    Clock::manual(Timestamp::from_millis(1_000_000))
}

/// Waits until the duty that forgets has been there.
async fn until_gone(house: &House, id: &TaskId) {
    let gone = async {
        while house.get(id).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    within(gone).await;
    assert_eq!(refused(house.get(id).await), ErrorKind::TaskNotFound);
}

#[tokio::test]
async fn a_finished_task_goes_when_its_time_is_over_and_an_open_one_stays() {
    let clock = clock();
    let retention = Retention { max_age: SPAN, ..Retention::default() };
    let house = Setup::plain().clock(&clock).retention(retention).open();
    house.stage.prepare_turn([], done());
    let finished = house.send_for_task(say("done at once")).await;
    house.stage.prepare_turn([], ask("which?"));
    let open = house.send_for_task(say("waits")).await;
    clock.advance(SPAN / 2);
    house.stage.prepare_turn([], done());
    let younger = house.send_for_task(say("done later")).await;
    clock.advance(SPAN / 2 + Duration::from_secs(1));
    until_gone(&house, &finished.id).await;
    assert_eq!(house.get(&open.id).await.unwrap().status.state, TaskState::InputRequired);
    assert_eq!(house.get(&younger.id).await.unwrap().status.state, TaskState::Completed);
    assert_eq!(house.list(ListTasks::default()).await.unwrap().total_size, 2);
}

#[tokio::test]
async fn only_so_many_finished_tasks_are_kept_and_the_oldest_go_first() {
    let clock = clock();
    let retention = Retention { max_age: SPAN, max_tasks: Some(3), ..Retention::default() };
    let house = Setup::plain().clock(&clock).retention(retention).open();
    house.stage.prepare_turn([], ask("which?"));
    let open = house.send_for_task(say("waits")).await;
    let mut sent = Vec::new();
    for _ in 0..5 {
        clock.advance(Duration::from_millis(1));
        house.stage.prepare_turn([], done());
        sent.push(house.send_for_task(say("done")).await.id);
    }
    until_gone(&house, &sent[0]).await;
    until_gone(&house, &sent[1]).await;
    for kept in &sent[2..] {
        assert!(house.get(kept).await.is_ok());
    }
    assert_eq!(house.get(&open.id).await.unwrap().status.state, TaskState::InputRequired);
}

#[tokio::test]
async fn a_task_whose_client_never_answers_fails() {
    let clock = clock();
    let retention = Retention { max_wait: SPAN, ..Retention::default() };
    let house = Setup::plain().clock(&clock).retention(retention).open();
    house.stage.prepare_turn([], ask("which?"));
    let asked = house.send_for_task(say("waits")).await;
    let mut watching = house.subscribe(&asked.id).await.unwrap();
    clock.advance(SPAN + Duration::from_secs(1));
    let (_, _) = within(watching.rest()).await;
    let failed = house.get(&asked.id).await.unwrap();
    assert_eq!(failed.status.state, TaskState::Failed);
    assert_eq!(status_text(&failed).as_deref(), Some("nobody answered in time"));
}

#[tokio::test]
async fn a_task_that_was_opened_again_is_not_forgotten() {
    let clock = clock();
    let retention = Retention { max_age: SPAN, max_tasks: Some(2), ..Retention::default() };
    let mut house = Setup::plain().clock(&clock).retention(retention).open();
    let draft = || speaking(Dialect::Draft);
    house.stage.prepare_turn([], done());
    let first = task(reply(house.send_as(draft(), say("hello").named("t-1")).await.unwrap()));
    house.stage.turn().await;
    clock.advance(SPAN / 2);
    house.send_as(draft(), say("more").named("t-1").at_once()).await.unwrap();
    let turn = house.stage.turn().await;
    // Others that end now are forgotten in time; this one is open, however long ago it ended.
    for _ in 0..2 {
        house.stage.prepare_turn([], done());
        let marker = house.send_for_task(say("a marker")).await.id;
        clock.advance(SPAN * 2);
        until_gone(&house, &marker).await;
        assert_eq!(house.get(&first.id).await.unwrap().status.state, TaskState::Working);
    }
    // Its time begins anew with its next end.
    turn.end(done());
    house.store.until("finish", 4).await;
    clock.advance(SPAN / 2);
    house.stage.turn().await;
    house.stage.turn().await;
    assert_eq!(house.get(&first.id).await.unwrap().history.len(), 2);
    clock.advance(SPAN);
    until_gone(&house, &first.id).await;
}

#[tokio::test]
async fn the_messages_of_a_forgotten_task_are_known_a_while_longer() {
    let clock = clock();
    let retention = Retention { max_age: SPAN, keys: SPAN * 2, ..Retention::default() };
    let house = Setup::overlapping().clock(&clock).retention(retention).open();
    let message = say("hello");
    house.stage.prepare_turn([], done());
    let first = house.send_for_task(message.clone()).await;
    // Long over, as when nobody was there to forget it in time: the while begins when it is forgotten.
    clock.advance(SPAN * 10);
    until_gone(&house, &first.id).await;
    house.stage.prepare_turn([], done());
    assert_eq!(refused(house.send(message.clone()).await), ErrorKind::TaskNotFound);
    // Just before its keys are forgotten too; a marker tells that the duty has been there.
    house.stage.forget_prepared();
    house.stage.prepare_turn([], done());
    let marker = house.send_for_task(say("a marker")).await.id;
    clock.advance(SPAN + SPAN / 4);
    until_gone(&house, &marker).await;
    house.stage.prepare_turn([], done());
    assert_eq!(refused(house.send(message.clone()).await), ErrorKind::TaskNotFound);
    // Behind that it is a new message.
    clock.advance(SPAN);
    let again = within(async {
        loop {
            house.stage.forget_prepared();
            house.stage.prepare_turn([], done());
            if let Ok(reply) = house.send(message.clone()).await {
                break task(reply);
            }
            tokio::task::yield_now().await;
        }
    });
    assert_ne!(again.await.id, first.id);
}

#[tokio::test]
async fn an_agent_with_all_the_open_tasks_it_keeps_takes_no_more() {
    let retention = Retention { max_tasks: Some(2), ..Retention::default() };
    let house = Setup::plain().retention(retention).open();
    let mut open = Vec::new();
    let one = say("one");
    for message in [one.clone(), say("two")] {
        house.stage.prepare_turn([], ask("which?"));
        open.push(house.send_for_task(message).await);
    }
    assert_eq!(refused(house.send(say("three")).await), ErrorKind::RateLimited);
    // A repetition is no new work, and a key that was used for something else is told as ever.
    let call = || Call { idempotency_key: Some("once".into()), ..speaking(Dialect::V1) };
    assert_eq!(refused(house.send_as(call(), say("four")).await), ErrorKind::RateLimited);
    let again = house.send_as(speaking(Dialect::V1), one.clone()).await.unwrap();
    assert!(matches!(again, Answer::Replayed(_)));
    assert_eq!(task(reply(again)), open[0]);
    let Message { id, .. } = SendMessage::from(one).message;
    let reused = house.send(say("something else").id(id.as_str())).await;
    assert_eq!(refused(reused), ErrorKind::MessageIdReused);
    // Those that are open go on, and make room when they end.
    house.stage.prepare_turn([], done());
    house.send_for_task(say("blue").to(&open[0].id)).await;
    house.stage.prepare_turn([], done());
    assert_eq!(house.send_for_task(say("three")).await.status.state, TaskState::Completed);
    assert_eq!(house.get(&open[1].id).await.unwrap().status.state, TaskState::InputRequired);
}

/// Asks or is done, as it is told.
struct Other;

impl Agent for Other {
    fn run(&self, turn: Turn, _: Updates) -> BoxFuture<'static, Outcome> {
        let asks = turn.message.text() == "ask";
        let message = turn.reply_text("which?");
        async move { if asks { Outcome::NeedInput { message } } else { Outcome::done() } }.boxed()
    }
}

#[tokio::test]
async fn tasks_of_an_agent_that_is_no_longer_here_go_too() {
    let clock = clock();
    let folder = tempfile::tempdir().unwrap();
    let other = || Scope::anonymous("default", "other");
    let mut ids = Vec::new();
    {
        let house = Setup::plain().clock(&clock).with("other", Other).open_at(folder.path());
        for text in ["do", "ask"] {
            let answer = house.call(other(), Operation::SendMessage(say(text).into())).await.unwrap();
            ids.push(task(reply(answer)).id);
        }
        within(house.engine.drain(Duration::ZERO)).await;
    }
    let kept = Retention { max_age: SPAN, max_wait: SPAN, ..Retention::default() };
    let house = Setup::plain().clock(&clock).left_over(kept).open_at(folder.path());
    let row = async |id: &TaskId| {
        let lookup = Lookup { ours: house.store.ids().parse_task(id), name: id.clone() };
        house.store.find(&other(), lookup).await.unwrap().map(|found| found.row.state)
    };
    clock.advance(SPAN / 2);
    assert_eq!(row(&ids[0]).await, Some(TaskState::Completed));
    assert_eq!(row(&ids[1]).await, Some(TaskState::InputRequired));
    clock.advance(SPAN);
    within(async {
        while row(&ids[0]).await.is_some() || row(&ids[1]).await != Some(TaskState::Failed) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}
