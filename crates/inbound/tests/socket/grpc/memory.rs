//! The memory limit for gRPC calls.

use engine::Limits;
use protocol::{ErrorKind, grpc::Service};

use super::{BOTH, get, send, send_without_waiting, subscribe, task};
use crate::common::{Server, Setup, channel::Channel};

const UNAVAILABLE: i32 = 14;

async fn with_memory(memory: u64) -> Server {
    let limits = Limits { memory, ..Limits::default() };
    Setup { limits, ..Setup::default() }.open().await
}

#[tokio::test]
async fn request_over_the_memory_limit_is_rejected_and_a_small_one_is_served() {
    let server = with_memory(4 << 20).await;
    let channel = Channel::open(&server).await;
    for service in BOTH {
        let refused = channel.call(service, &send(&"x".repeat(2 << 20)), &[]).await.status;
        assert_eq!((refused.code, refused.error.unwrap().kind), (UNAVAILABLE, ErrorKind::Unavailable));
        assert!(refused.message.contains("limits.memory"), "{}", refused.message);
        assert_eq!(task(channel.ask(service, &send("hi")).await).artifacts.len(), 1);
    }
    server.released().await;
}

#[tokio::test]
async fn replies_and_events_are_counted_until_they_are_read() {
    let server = with_memory(64 << 20).await;
    let text = format!("hold {}", "x".repeat(6 << 20));
    let held = task(Channel::open(&server).await.ask(Service::V1, &send_without_waiting(&text)).await);
    server.released().await;
    for operation in [get(&held), subscribe(&held)] {
        // Each on a connection of its own, whose window holds less than the task.
        let mut unread = Vec::new();
        let refused = loop {
            let channel = Channel::open(&server).await;
            let streaming = channel.stream(Service::V1, &operation, &[]).await;
            if streaming.head.contains_key("grpc-status") {
                break streaming.status();
            }
            unread.push((channel, streaming));
            assert!(unread.len() < 20, "unread messages are not counted");
        };
        assert_eq!(refused.code, UNAVAILABLE, "{}", refused.message);
        drop(unread);
        server.released().await;
    }
}
