//! Slots are shared between agents and callers, and work that waits is served in order.

use std::{path::Path, time::Duration};

use a2ad_engine::{Call, Clock, Error, Resume, Scope, ScopeParts, agent_fn};
use protocol::{Dialect, ErrorKind, Json, ListTasks, Operation, SendMessage, Task, TaskState, Timestamp};

use crate::common::{
    Setup, TestServer, call_in, done, join, msg, need_input, prevent_auto_advance, reply, retryable_failure,
    scope, task,
};

/// The place that a task shows.
fn place(task: &Task) -> Option<u32> {
    let text = task.metadata.as_ref()?.as_str();
    let number = text.split_once(r#""queued":"#)?.1;
    number.split(['}', ',']).next()?.parse().ok()
}

async fn queue(server: &TestServer, text: &str) -> Task {
    let queued = server.send_for_task(msg(text).return_immediately()).await;
    assert_eq!(queued.status.state, TaskState::Submitted, "{text}");
    queued
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queued_tasks_start_in_order_before_new_messages() {
    const QUEUED: usize = 200;
    const SENDERS: usize = 32;
    let mut server = Setup::plain().slots(2).open();
    let mut running = vec![server.start_task("one").await.1, server.start_task("two").await.1];
    for number in 0..QUEUED {
        queue(&server, &number.to_string()).await;
    }
    // They send whenever a slot is free.
    let senders: Vec<_> = (0..SENDERS).map(|_| server.spawn_send(msg("new"))).collect();
    server.store.until("accept", 2 + QUEUED + SENDERS).await;
    for number in 0..QUEUED {
        running.remove(0).end(done());
        let turn = server.agent.turn().await;
        assert_eq!(turn.message.text(), number.to_string());
        running.push(turn);
        let late = queue(&server, "late").await;
        assert_eq!(place(&late), u32::try_from(QUEUED + SENDERS).ok());
    }
    for _ in 0..SENDERS {
        running.remove(0).end(done());
        let turn = server.agent.turn().await;
        assert_eq!(turn.message.text(), "new");
        running.push(turn);
    }
    running.into_iter().for_each(|turn| turn.end(done()));
    for sender in senders {
        assert_eq!(task(join(sender).await.unwrap()).status.state, TaskState::Completed);
    }
}

#[tokio::test]
async fn slow_runs_of_one_agent_do_not_stop_another() {
    let mut server = Setup::plain().with("other", agent_fn(async |_| done())).open();
    for _ in 0..256 {
        server.send_for_task(msg("slow").return_immediately()).await;
    }
    for _ in 0..192 {
        server.agent.turn().await;
    }
    let other = Scope::anonymous("default", "other");
    for _ in 0..100 {
        let operation = Operation::SendMessage(msg("quick").into());
        let answered = task(reply(server.call(other.clone(), operation).await.unwrap()));
        assert_eq!((answered.status.state, place(&answered)), (TaskState::Completed, None));
    }
    assert!(server.agent.is_idle(), "one agent has three quarters of the slots");
}

#[tokio::test]
async fn callers_with_a_credential_share_the_slots_of_an_agent() {
    let mut server = Setup::plain().slots(8).agent_slots(8).open();
    let caller = |principal: &str| {
        Call::new(Scope::new(ScopeParts { principal: principal.into(), ..scope().parts().clone() }))
    };
    for _ in 0..8 {
        server.send_as(caller("alice"), msg("slow").return_immediately()).await.unwrap();
    }
    for _ in 0..6 {
        assert_eq!(server.agent.turn().await.message.text(), "slow");
    }
    server.send_as(caller("bob"), msg("quick").return_immediately()).await.unwrap();
    let turn = server.agent.turn().await;
    assert_eq!(turn.message.text(), "quick");
    turn.end(done());
}

#[tokio::test]
async fn limit_of_an_agent_holds_and_can_be_changed() {
    let mut server = Setup::plain().slots(8).agent_slots(1).open();
    let (_, running) = server.start_task("one").await;
    assert_eq!(place(&queue(&server, "two").await), Some(1));
    assert!(server.agent.is_idle());
    // The next catalog has no limit: work that waits starts with the next message.
    let mut replaced = server.replace_agent();
    server.send_for_task(msg("three").return_immediately()).await;
    let mut started = [replaced.turn().await, replaced.turn().await].map(|turn| turn.message.text());
    started.sort();
    assert_eq!(started, ["three", "two"]);
    running.end(done());
}

/// The metadata has as many values as it may have, so the place cannot be added.
#[tokio::test]
async fn largest_metadata_is_shown_without_the_place() {
    let mut server = Setup::plain().slots(1).open();
    let (_, running) = server.start_task("one").await;
    for members in [9_998, 9_997] {
        let members: Vec<String> = (0..members).map(|name| format!(r#""m{name}":0"#)).collect();
        let metadata = Json::parse(&format!(r#"{{"a2ad":{{{}}}}}"#, members.join(","))).unwrap();
        let request =
            SendMessage { metadata: Some(metadata.clone()), return_immediately: true, ..msg("two").into() };
        let operation = Operation::SendMessage(request);
        let sent = task(reply(server.call_as(call_in(Dialect::Draft), operation).await.unwrap()));
        assert!(sent.metadata.as_ref().unwrap().as_str().contains(r#""m9996":0"#));
        assert_eq!(server.get(&sent.id).await.unwrap().metadata, sent.metadata);
    }
    assert_eq!(server.list(ListTasks::default()).await.unwrap().tasks.len(), 3);
    running.end(done());
}

#[tokio::test]
async fn full_queue_rejects_messages_and_records_nothing() {
    let mut server = Setup::plain().slots(1).queued(2).open();
    server.agent.prepare_turn([], need_input("which?"));
    let asking = server.send_for_task(msg("asks")).await;
    server.agent.turn().await;
    let (_, running) = server.start_task("one").await;
    let queued =
        server.send_for_task(msg("two").id("00000000-0000-4000-8000-000000000002").return_immediately());
    let queued = queued.await;
    queue(&server, "three").await;
    let before = server.list(ListTasks::default()).await.unwrap().total_size;
    for refused in [msg("four"), msg("five").return_immediately(), msg("that").to(&asking.id)] {
        match server.send(refused).await {
            Err(Error::RetryLater(error)) => {
                assert_eq!(error.kind, ErrorKind::Unavailable);
                assert!(error.message.contains("send the message again"), "{}", error.message);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(server.list(ListTasks::default()).await.unwrap().total_size, before);
    assert_eq!(server.get(&asking.id).await.unwrap().status.state, TaskState::InputRequired);
    // A duplicate needs no place.
    let again = msg("two").id("00000000-0000-4000-8000-000000000002").return_immediately();
    assert_eq!(server.send_for_task(again).await.id, queued.id);
    running.end(done());
    let turn = server.agent.turn().await;
    let answer = server.send_for_task(msg("that").to(&asking.id).return_immediately()).await;
    assert_eq!((answer.id, place(&server.get(&asking.id).await.unwrap())), (asking.id, Some(2)));
    turn.end(done());
}

#[tokio::test]
async fn waiting_task_shows_its_place_until_it_runs() {
    let mut server = Setup::plain().slots(1).open();
    let (first, running) = server.start_task("one").await;
    assert_eq!(place(&server.get(&first).await.unwrap()), None);
    let two = queue(&server, "two").await;
    let three = queue(&server, "three").await;
    assert_eq!((place(&two), place(&three)), (Some(1), Some(2)));
    assert_eq!(place(&server.get(&three.id).await.unwrap()), Some(2));
    let page = server.list(ListTasks::default()).await.unwrap();
    let mut places: Vec<_> = page.tasks.iter().map(place).collect();
    places.sort();
    assert_eq!(places, [None, Some(1), Some(2)]);
    let mut frames = server.stream(msg("four")).await.unwrap();
    assert_eq!(frames.next().await, "1 task submitted queued 3");
    let mut resumed = server.resume(&three.id, Resume::Unknown).await.unwrap();
    assert_eq!(resumed.next().await, "1 task submitted with a gap queued 2");
    server.cancel(&two.id).await.unwrap();
    assert_eq!(place(&server.get(&three.id).await.unwrap()), Some(1));
    running.end(done());
    let turn = server.agent.turn().await;
    assert_eq!((&turn.task_id, place(&server.get(&three.id).await.unwrap())), (&three.id, None));
    turn.end(done());
    server.agent.turn().await.end(done());
    assert_eq!(frames.lines().await, ["2 completed"]);
}

#[tokio::test]
async fn retry_waits_behind_work_that_is_due_before_it() {
    let clock = Clock::manual(Timestamp::from_millis(1_800_000_000_000));
    let mut server = Setup::plain().slots(1).clock(&clock).open();
    let (_, running) = server.start_task("one").await;
    queue(&server, "two").await;
    clock.advance(Duration::from_millis(1));
    // The first retry is due at once.
    running.end(retryable_failure("busy"));
    for (text, attempt) in [("two", 1), ("one", 2)] {
        let turn = server.agent.turn().await;
        assert_eq!((turn.message.text().as_str(), turn.attempt), (text, attempt));
        turn.end(done());
    }
}

/// Starts two tasks and loses them in two crashes.
fn make_suspects(folder: &Path) {
    for process in 0..2 {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let server = runtime.block_on(async {
            let mut server = Setup::plain().open_at(folder);
            for text in ["one", "two"] {
                match process {
                    0 => drop(server.start_task(text).await),
                    _ => drop(server.agent.turn().await),
                }
            }
            server
        });
        runtime.shutdown_timeout(Duration::from_secs(10));
        drop(server);
    }
}

#[test]
fn suspect_that_hangs_delays_the_next_by_its_probation_only() {
    let folder = tempfile::tempdir().unwrap();
    make_suspects(folder.path());
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let _time = prevent_auto_advance();
        // Later than the clocks of the crashed processes.
        let now = Clock::system().now().as_millis();
        let clock = Clock::manual(Timestamp::from_millis(now + 60_000));
        let mut server = Setup::plain().clock(&clock).open_at(folder.path());
        // After two crashes a task is due within two seconds.
        clock.advance(Duration::from_secs(2));
        tokio::time::advance(Duration::from_secs(5)).await;
        let hanging = server.agent.turn().await;
        let waiting = server.list(ListTasks::default()).await.unwrap();
        let waiting = waiting.tasks.iter().find(|task| task.id != hanging.task_id).unwrap();
        assert_eq!(place(waiting), Some(1));
        tokio::time::advance(Duration::from_millis(4_900)).await;
        // Other work is not delayed.
        let (_, innocent) = server.start_task("three").await;
        innocent.end(done());
        server.store.until("finish", 1).await;
        assert!(server.agent.is_idle());
        tokio::time::advance(Duration::from_millis(200)).await;
        let next = server.agent.turn().await;
        assert_eq!(next.task_id, waiting.id);
        // Durable before the next suspect starts.
        server.store.until("endprobation", 1).await;
        next.end(done());
        hanging.end(done());
        server.store.until("finish", 3).await;
        assert_eq!(server.count(TaskState::Completed).await, 3);
    });
}
