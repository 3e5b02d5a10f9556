//! Streams: resumption, disconnects, shutdown and flow control.

use std::time::Duration;

use a2ad_inbound::listen::Caps;
use protocol::{CancelTask, ErrorKind, Event, Operation, Task, TaskState, grpc::Service};

use super::{BOTH, get, held, send, send_streaming, subscribe, task};
use crate::common::{Server, Setup, agents::paced, channel::Channel, with_timeout};

fn cancel(task: &Task) -> Operation {
    Operation::CancelTask(CancelTask { id: task.id.clone(), metadata: None, tenant: None })
}

fn states(events: &[Event]) -> Vec<TaskState> {
    let state = |event: &Event| match event {
        Event::Task(task) => Some(task.status.state),
        Event::Status(update) => Some(update.status.state),
        _ => None,
    };
    events.iter().filter_map(state).collect()
}

#[tokio::test]
async fn interrupted_stream_resumes_after_the_last_event() {
    let (agent, pace) = paced();
    let server = Setup { agents: vec![agent], ..Setup::default() }.open().await;
    let channel = Channel::open(&server).await;
    let paced = [("a2a-agent", "paced")];
    for service in BOTH {
        let mut first = channel.stream(service, &send_streaming("go"), &paced).await;
        let Some(Event::Task(made)) = first.event(service).await else { panic!("no task first") };
        pace.add_permits(1);
        let mut seen: u64 = first.head["a2ad-first-event-id"].to_str().unwrap().parse().unwrap();
        while !matches!(first.event(service).await, Some(Event::Artifact(_))) {
            seen += 1;
        }
        seen += 1;
        drop(first);
        pace.add_permits(2);
        let last = seen.to_string();
        let metadata = [("a2a-agent", "paced"), ("last-event-id", last.as_str())];
        let resumed = channel.call(service, &subscribe(&made), &metadata).await;
        assert_eq!(resumed.head["a2ad-first-event-id"], last.as_str());
        let events = resumed.events(service);
        let Event::Task(shown) = &events[0] else { panic!("no task first") };
        assert_eq!(shown.artifacts, [], "artifacts that were already sent are not repeated");
        assert_eq!(
            shown.status.state,
            TaskState::Working,
            "the status as of the event after which it resumes"
        );
        let chunks = events.iter().filter(|event| matches!(event, Event::Artifact(_))).count();
        assert_eq!((chunks, states(&events).last()), (2, Some(&TaskState::Completed)));
    }
}

#[tokio::test]
async fn client_that_drops_a_stream_keeps_its_connection_and_task() {
    let server = Server::open().await;
    let channel = Channel::open(&server).await;
    for service in BOTH {
        let held = held(&channel, service).await;
        let mut left = channel.stream(service, &subscribe(&held), &[]).await;
        let mut kept = channel.stream(service, &subscribe(&held), &[]).await;
        assert!(left.event(service).await.is_some() && kept.event(service).await.is_some());
        drop(left);
        assert_eq!(task(channel.ask(service, &get(&held)).await).status.state, TaskState::Working);
        channel.ask(service, &cancel(&held)).await;
        assert_eq!(states(&kept.whole().await.events(service)), [TaskState::Canceled]);
    }
}

#[tokio::test]
async fn streams_end_as_unavailable_at_shutdown() {
    let server = Server::open().await;
    let channel = Channel::open(&server).await;
    let mut watched = Vec::new();
    for service in BOTH {
        let held = held(&channel, service).await;
        let mut stream = channel.stream(service, &subscribe(&held), &[]).await;
        assert!(stream.event(service).await.is_some());
        watched.push(stream);
    }
    server.drain.cancel();
    with_timeout(server.engine.drain(Duration::ZERO)).await;
    for stream in watched {
        let cut = stream.whole().await;
        // UNAVAILABLE
        assert_eq!((cut.status.code, cut.messages.len()), (14, 0));
        assert_eq!(cut.status.error.unwrap().kind, ErrorKind::Unavailable);
        assert_eq!(cut.status.trailers["a2ad-last-event-id"], "2");
    }
    channel.closed().await;
    with_timeout(server.serving).await.unwrap();
}

#[tokio::test]
async fn unread_stream_does_not_block_other_calls_of_its_connection() {
    let server = Server::open().await;
    let channel = Channel::open(&server).await;
    let mut unread = Vec::new();
    for _ in 0..2 {
        // More than a client's window for one stream; two stalled streams leave a part of the connection's window free.
        unread.push(channel.stream(Service::V1, &send(&"x".repeat(3 << 20)), &[]).await);
    }
    let calls = (0..50).map(|n| {
        let (channel, text) = (&channel, n.to_string());
        async move { assert_eq!(task(channel.ask(BOTH[n % 2], &send(&text)).await).artifacts.len(), 1) }
    });
    futures_util::future::join_all(calls).await;
    for stream in unread {
        assert_eq!(stream.whole().await.status.code, 0);
    }
}

#[tokio::test]
async fn peer_that_does_not_read_does_not_delay_shutdown() {
    let caps = Caps { shutdown: Duration::from_millis(100), ..Caps::default() };
    let server = Setup { caps, ..Setup::default() }.open().await;
    let channel = Channel::open(&server).await;
    // More than a client's window, and the client does not read it.
    let large = "x".repeat(8 << 20);
    let unread = channel.stream(Service::V1, &send(&large), &[]).await;
    server.drain.cancel();
    with_timeout(server.engine.drain(Duration::ZERO)).await;
    with_timeout(server.serving).await.unwrap();
    drop(unread);
}
