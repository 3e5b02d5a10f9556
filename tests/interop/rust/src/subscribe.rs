//! Subscribing to tasks that another client started: the snapshot first, then all later events.

use a2a::TaskState;
use futures_util::{StreamExt as _, future::join};

use crate::helpers::{
    assert_ends_once, cancel, chunks, collect, first, fold, for_each_binding, get, non_blocking, send,
    states, subscribe, texts, user_message,
};

#[tokio::test]
async fn second_subscriber_misses_no_event() {
    for_each_binding(async |binding| {
        let (sender, subscriber) = (binding.client("slow-writer").await, binding.client("slow-writer").await);
        let mut stream =
            sender.send_streaming_message(&user_message("sections=10 delay=100ms", None)).await.unwrap();
        let mut sent = Vec::new();
        while chunks(&sent).len() < 2 {
            sent.push(stream.next().await.unwrap().unwrap());
        }
        let joining = async { collect(subscribe(&subscriber, first(&sent)).await.unwrap()).await };
        let (joined, rest) = join(joining, collect(stream)).await;
        sent.extend(rest);

        assert_eq!(first(&joined).status.state, TaskState::Working);
        assert!(!texts(first(&joined)).concat().is_empty());
        let live = &joined[1..];
        assert_eq!(live, &sent[sent.len() - live.len()..]);
        assert_ends_once(&joined, &TaskState::Completed);
        let stored = get(&subscriber, first(&joined)).await.unwrap();
        assert_eq!((texts(&fold(&joined)), texts(&fold(&sent))), (texts(&stored), texts(&stored)));
    })
    .await;
}

#[tokio::test]
async fn work_continues_after_a_disconnect_and_can_be_resubscribed() {
    for_each_binding(async |binding| {
        let (sender, subscriber) = (binding.client("slow-writer").await, binding.client("slow-writer").await);
        let mut stream =
            sender.send_streaming_message(&user_message("sections=10 delay=100ms", None)).await.unwrap();
        let mut seen = Vec::new();
        while chunks(&seen).is_empty() {
            seen.push(stream.next().await.unwrap().unwrap());
        }
        drop(stream);
        let joined = collect(subscribe(&subscriber, first(&seen)).await.unwrap()).await;
        assert_ends_once(&joined, &TaskState::Completed);
        assert_eq!(texts(&fold(&joined)), texts(&get(&sender, first(&seen)).await.unwrap()));
    })
    .await;
}

#[tokio::test]
async fn subscriber_of_a_waiting_task_receives_the_next_turn() {
    for_each_binding(async |binding| {
        let sender = binding.client("approver").await;
        let task = send(&sender, &user_message("may I?", None)).await;
        assert_eq!(task.status.state, TaskState::InputRequired);
        let mut stream = subscribe(&binding.client("approver").await, &task).await.unwrap();
        let mut events = vec![stream.next().await.unwrap().unwrap()];
        assert_eq!(first(&events).status.state, TaskState::InputRequired);
        send(&sender, &user_message("approve", Some(&task))).await;
        events.extend(collect(stream).await);
        assert_ends_once(&events, &TaskState::Completed);
        assert!(!states(&events).contains(&TaskState::InputRequired));
        assert_eq!(fold(&events).status, get(&sender, &task).await.unwrap().status);
    })
    .await;
}

#[tokio::test]
async fn subscriber_receives_a_cancel_by_another_client() {
    for_each_binding(async |binding| {
        let sender = binding.client("echo").await;
        let task = send(&sender, &non_blocking(user_message("hold until cancelled", None))).await;
        assert!(!task.status.state.is_terminal());
        let mut stream = subscribe(&binding.client("echo").await, &task).await.unwrap();
        let mut events = vec![stream.next().await.unwrap().unwrap()];
        cancel(&sender, &task).await.unwrap();
        events.extend(collect(stream).await);
        assert_ends_once(&events, &TaskState::Canceled);
    })
    .await;
}

#[tokio::test]
async fn two_subscribers_receive_the_same_events() {
    for_each_binding(async |binding| {
        let sender = binding.client("slow-writer").await;
        let subscribers = [binding.client("slow-writer").await, binding.client("slow-writer").await];
        let task = send(&sender, &non_blocking(user_message("sections=10 delay=100ms", None))).await;
        let follow = async |subscriber| collect(subscribe(subscriber, &task).await.unwrap()).await;
        let (one, other) = join(follow(&subscribers[0]), follow(&subscribers[1])).await;
        let shorter = one.len().min(other.len()) - 1;
        assert!(shorter > 0);
        assert_eq!(one[one.len() - shorter..], other[other.len() - shorter..]);
        assert_ends_once(&one, &TaskState::Completed);
        assert_eq!(texts(&fold(&one)), texts(&fold(&other)));
    })
    .await;
}
