//! Tasks that wait for a run show their place, and a full queue is reported.

use engine::Limits;
use protocol::{ErrorKind, Event, Message, Operation, Part, Reply, Role, SendMessage, Task, grpc::Service};

use crate::common::{
    Server, Setup,
    channel::Channel,
    generation::{Client, Generation, UserMessage},
    request, send_params,
};

/// A server with one slot, which is taken.
async fn busy(queued: usize) -> (Server, String) {
    let limits = Limits { concurrent: 1, queued, ..Limits::default() };
    let server = Setup { limits, ..Setup::default() }.open().await;
    let running = server.hold().await;
    (server, running)
}

fn metadata(task: &Task) -> Option<&str> {
    task.metadata.as_ref().map(|json| json.as_str())
}

#[tokio::test]
async fn waiting_task_shows_its_place_in_every_generation() {
    for generation in Generation::ALL {
        let (server, running) = busy(10).await;
        let client = Client { server: &server, path: "/a2a/echo", generation };
        let message = UserMessage::new("hello").without_waiting();
        let first = client.send(message).await;
        let second = client.send(message).await;
        assert_eq!(metadata(&first), Some(r#"{"a2ad":{"queued":1}}"#), "{generation:?}");
        assert_eq!(metadata(&second), Some(r#"{"a2ad":{"queued":2}}"#), "{generation:?}");
        let id = second.id.as_str();
        assert_eq!(metadata(&client.get(id).await), Some(r#"{"a2ad":{"queued":2}}"#), "{generation:?}");
        let mut wire = client.subscribe(id, None).await;
        // The draft has no tasks in streams.
        match client.frame(&mut wire).await.unwrap().event {
            Event::Task(task) => assert_eq!(metadata(&task), Some(r#"{"a2ad":{"queued":2}}"#)),
            other => assert_eq!(generation, Generation::Draft, "{other:?}"),
        }
        let holder = Client { generation: Generation::V1, ..client };
        holder.cancel(&running).await;
        client.frames(&mut wire).await;
        assert_eq!(metadata(&client.get(id).await), None, "{generation:?}");
    }
}

#[tokio::test]
async fn waiting_task_shows_its_place_over_grpc() {
    for service in Service::ALL {
        let (server, _) = busy(10).await;
        let channel = Channel::open(&server).await;
        let message = Message::new("m", Role::User, vec![Part::text("hello")]);
        let send = SendMessage { return_immediately: true, ..SendMessage::new(message) };
        match channel.ask(service, &Operation::SendMessage(send)).await {
            Reply::SentTask(task) => {
                let place = metadata(&task).unwrap().replace("1.0", "1");
                assert_eq!(place, r#"{"a2ad":{"queued":1}}"#);
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn full_queue_is_unavailable_with_a_hint() {
    let (server, _) = busy(1).await;
    let send = |text: &str| {
        let params = send_params(text, "").replace(r#""m""#, &format!(r#""{text}""#));
        params.replace("]}}", r#"]},"configuration":{"returnImmediately":true}}"#)
    };
    let queued = server.post_v1("/", &request("SendMessage", &send("one"))).await;
    assert_eq!(queued.status, 200, "{}", queued.body);
    let refused = server.post_v1("/", &request("SendMessage", &send("two"))).await;
    assert_eq!((refused.status, refused.header("retry-after")), (503, Some("1")), "{}", refused.body);
    assert!(refused.body.contains("too many tasks wait") && refused.body.contains("UNAVAILABLE"));
    let total = server.post_v1("/", &request("ListTasks", "{}")).await;
    assert!(total.body.contains(r#""totalSize":2"#), "{}", total.body);
    for generation in Generation::ALL {
        let client = Client { server: &server, path: "/", generation };
        let refused = client.try_send(UserMessage::new("three").without_waiting()).await;
        client.check_error(&refused, ErrorKind::Unavailable);
    }
}
