//! Message framing, size limits, and errors before a call is decoded.

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use bytes::Bytes;
use http::Method;
use prost::Message as _;
use protocol::{
    ErrorKind, Event, GetTask, Json, ListTasks, Message, Operation, Part, Role, SendMessage, SubscribeToTask,
    TaskState, grpc::Service,
};

use super::{BOTH, get, send, send_streaming, task, user_message};
use crate::common::{
    Server, Setup,
    agents::deep,
    channel::{Channel, Status, framed},
    member,
};

/// The path of one method of each service.
fn paths() -> impl Iterator<Item = String> {
    BOTH.into_iter().map(|service| format!("/{}/SendMessage", service.name()))
}

#[tokio::test]
async fn request_without_exactly_one_message_gets_the_status_of_the_grpc_specification() {
    let server = Server::open().await;
    let channel = Channel::open(&server).await;
    let hello = framed(&Service::V1.encode_operation(&send("hi")));
    let two = [hello.clone(), hello.clone()].concat();
    let mut packed = hello.to_vec();
    packed[0] = 1;
    let mut odd = hello.to_vec();
    odd[0] = 7;
    // UNIMPLEMENTED 12, INTERNAL 13, INVALID_ARGUMENT 3
    for (body, code) in [
        (Vec::new(), 12),
        (two, 12),
        (packed, 13),
        (odd, 3),
        (hello[..3].to_vec(), 3),
        (hello[..hello.len() - 1].to_vec(), 3),
    ] {
        for path in paths() {
            let refused = channel.raw(&path, &[], body.clone()).await;
            assert_eq!((refused.http, refused.status.code), (200, code), "{path} {body:?}");
            assert_ne!(refused.status.message, "");
        }
    }
    // The connection can still be used.
    assert_eq!(task(channel.ask(Service::V1, &send("hi")).await).artifacts.len(), 1);
}

#[tokio::test]
async fn compressed_messages_are_rejected() {
    let server = Server::open().await;
    let channel = Channel::open(&server).await;
    for path in paths() {
        let refused = channel.raw(&path, &[("grpc-encoding", "gzip")], framed(b"x")).await;
        assert_eq!(
            (refused.status.code, &refused.head["grpc-accept-encoding"]),
            (12, &"identity".parse().unwrap())
        );
    }
    let well = channel.call(Service::V1, &send("hi"), &[("grpc-encoding", "identity")]).await;
    assert_eq!(well.status.code, 0);
}

#[tokio::test]
async fn request_and_reply_messages_are_limited() {
    let server = Setup::with(|options| options.max_body_bytes = 4_096).open().await;
    let channel = Channel::open(&server).await;
    for service in BOTH {
        let large = channel.call(service, &send(&"x".repeat(5_000)), &[]).await.status;
        // RESOURCE_EXHAUSTED
        assert_eq!((large.code, large.error.unwrap().kind), (8, ErrorKind::BodyTooLarge));
        // The length prefix alone is enough to reject it.
        let path = format!("/{}/SendMessage", service.name());
        let announced = channel.raw(&path, &[], &b"\0\xff\xff\xff\xff"[..]).await.status;
        assert_eq!(announced.code, 8);
        // The reply repeats the message and is larger than the request.
        let operation = send(&"x".repeat(3_900));
        let status = channel.call(service, &operation, &[]).await.status;
        assert_eq!((status.code, status.error.unwrap().kind), (8, ErrorKind::BodyTooLarge));
        // The message is recorded: the error names the task and how to get it.
        let id = member(&server.call("echo", "ListTasks", r#"{"pageSize":1}"#).await.body, "id");
        let named = format!("task {id} is recorded, do not send its message again: get it with GetTask");
        assert!(status.message.contains(&named), "{}", status.message);
        let details = STANDARD_NO_PAD.decode(&status.trailers["grpc-status-details-bin"]).unwrap();
        let details = String::from_utf8_lossy(&details);
        assert!(details.contains("taskId") && details.matches(&id).count() == 2, "{details}");
        let without_history =
            Operation::GetTask(GetTask { id: id.as_str().into(), history_length: Some(0), tenant: None });
        if service == Service::V1 {
            assert_eq!(task(channel.ask(service, &without_history).await).artifacts.len(), 1);
        }
        let Operation::SendMessage(send) = operation else { unreachable!() };
        let streamed =
            channel.call(service, &Operation::SendStreamingMessage(SendMessage { ..send }), &[]).await;
        assert_eq!(streamed.status.code, 8);
        assert!(streamed.status.message.contains(" is recorded"), "{}", streamed.status.message);
    }
}

/// A client whose own limit rejects the message still reads the metadata.
#[tokio::test]
async fn large_send_reply_names_its_task_in_the_metadata() {
    let server = Server::open().await;
    let channel = Channel::open(&server).await;
    for service in BOTH {
        let operation = send(&"x".repeat(64 << 10));
        let sent = channel.call(service, &operation, &[]).await;
        let made = task(sent.reply(service, &operation));
        assert_eq!(sent.head["a2ad-task"], made.id.as_str());
        let small = channel.call(service, &send("hi"), &[]).await;
        assert!(!small.head.contains_key("a2ad-task"));
    }
}

/// A page of tasks as a protobuf decoder with a recursion limit reads it.
mod page {
    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Page {
        #[prost(message, repeated, tag = "1")]
        pub(super) tasks: Vec<Task>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Task {
        #[prost(message, repeated, tag = "4")]
        pub(super) artifacts: Vec<Artifact>,
        #[prost(message, repeated, tag = "5")]
        pub(super) history: Vec<Message>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Artifact {
        #[prost(message, repeated, tag = "4")]
        pub(super) parts: Vec<Part>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Message {
        #[prost(message, repeated, tag = "5")]
        pub(super) parts: Vec<Part>,
    }

    #[derive(Clone, PartialEq, prost::Message)]
    pub(super) struct Part {
        #[prost(message, optional, tag = "4")]
        pub(super) data: Option<prost_types::Value>,
    }
}

#[tokio::test]
async fn data_too_deep_for_protobuf_is_sent_as_json_text() {
    let server = Setup { agents: vec![deep()], ..Setup::default() }.open().await;
    let channel = Channel::open(&server).await;
    // The deepest value that a request may have, and a deeper one produced by an agent.
    let nested = |depth: usize| format!("{}1{}", r#"{"a":"#.repeat(depth), "}".repeat(depth));
    let data = |depth| vec![Part::data(Json::parse(&nested(depth)).unwrap())];
    let message = Message::new("m", Role::User, data(30));
    for service in BOTH {
        let operation = Operation::SendMessage(SendMessage::new(message.clone()));
        let made = task(
            channel.call(service, &operation, &[("a2a-agent", "deep")]).await.reply(service, &operation),
        );
        assert_eq!(made.history[0].parts, data(30));
        let text =
            Json::parse(&format!("{}{:?}{}", r#"{"a":"#.repeat(30), nested(10), "}".repeat(30))).unwrap();
        assert_eq!(made.artifacts[0].parts, [Part::data(text)]);
    }
    let list = Operation::ListTasks(ListTasks { include_artifacts: true, ..ListTasks::default() });
    let listed = channel.call(Service::V1, &list, &[("a2a-agent", "deep")]).await;
    let page = page::Page::decode(&listed.messages[0][..]).unwrap();
    assert_eq!(page.tasks.len(), 2);
    for task in page.tasks {
        assert!(task.artifacts[0].parts[0].data.is_some() && task.history[0].parts[0].data.is_some());
    }
    // Over JSON it is unchanged.
    let rpc = server.call("deep", "ListTasks", r#"{"includeArtifacts":true}"#).await.body;
    assert!(rpc.contains(&nested(40)), "{rpc}");
}

#[tokio::test]
async fn events_before_a_too_large_event_are_sent() {
    let server = Setup::with(|options| options.max_body_bytes = 4_096).open().await;
    let channel = Channel::open(&server).await;
    // The artifact has the same text and more fields than the message.
    channel.call(Service::V1, &send(&"x".repeat(3_990)), &[]).await;
    let id = member(&server.call("echo", "ListTasks", "{}").await.body, "id");
    let again = Operation::SubscribeToTask(SubscribeToTask { id: id.as_str().into(), tenant: None });
    let resumed = channel.call(Service::V1, &again, &[("last-event-id", "1")]).await;
    assert_eq!(resumed.status.code, 8);
    assert_eq!(resumed.messages.len(), 2, "the task and its working status");
    assert_eq!(resumed.status.trailers["a2ad-last-event-id"], "2");
}

#[tokio::test]
async fn large_message_is_accepted() {
    let server = Server::open().await;
    let channel = Channel::open(&server).await;
    // More than the flow-control windows of a stream and of the connection.
    let text: String = "0123456789abcdef".repeat(6 << 16);
    for service in BOTH {
        let made = task(channel.ask(service, &send(&text)).await);
        assert!(made.artifacts[0].parts == [Part::text(text.as_str())]);
    }
}

#[tokio::test]
async fn unknown_services_and_methods_are_unimplemented() {
    let server = Server::open().await;
    let channel = Channel::open(&server).await;
    for path in [
        "/lf.a2a.v1.A2AService/MakeTea",
        "/a2a.v1.A2AService/ListTasks",
        "/a2a.v1.A2AService/",
        "/lf.a2a.v1.A2AService",
        "/some.Other/Method",
        "/",
        "/a2a",
        "/a2a/echo",
        "/tasks/send",
        "/healthz",
        "/.well-known/agent-card.json",
        "/v1/message:send",
    ] {
        let refused = channel.raw(path, &[], framed(b"")).await;
        assert_eq!((refused.http, refused.status.code), (200, 12), "{path}");
        assert_eq!(refused.status.error.unwrap().kind, ErrorKind::MethodNotFound, "{path}");
    }
    // Unknown to tonic's services too.
    let refused = channel.raw("/grpc.health.v1.Health/Make", &[], framed(b"")).await;
    assert_eq!(refused.status.code, 12);
}

#[tokio::test]
async fn unsupported_grpc_variants_get_grpc_and_http_statuses() {
    let server = Server::open().await;
    let channel = Channel::open(&server).await;
    let path = "/lf.a2a.v1.A2AService/SendMessage";
    for kind in [
        "application/grpc-web",
        "application/grpc-web-text",
        "application/grpc+json",
        "application/grpcx",
        // At the path of a service these are malformed gRPC, not an unknown path.
        "application/json",
        "text/plain",
        "",
    ] {
        let refused = channel.raw(path, &[("content-type", kind)], framed(b"")).await;
        assert_eq!((refused.http, refused.status.code), (415, 12), "{kind}");
    }
    let body = framed(&Service::V1.encode_operation(&send("hi")));
    for kind in ["application/grpc+proto", "Application/gRPC", "application/grpc; charset=utf-8"] {
        let well = channel.raw(path, &[("content-type", kind)], body.clone()).await;
        assert_eq!((well.http, well.status.code), (200, 0), "{kind}");
    }
    let mut get = channel.request(path, &[], "");
    *get.method_mut() = Method::GET;
    let refused = channel.send(get).await.whole().await;
    assert_eq!(
        (refused.http, refused.status.code, &refused.head["allow"]),
        (405, 12, &"POST".parse().unwrap())
    );

    // Without HTTP/2 there are no trailers.
    let answer =
        server.exchange(&format!("POST {path} HTTP/1.1\r\ncontent-type: application/grpc"), "").await;
    assert_eq!((answer.status, answer.body.as_str()), (505, ""));
    assert_eq!(
        (answer.header("content-type"), answer.header("grpc-status")),
        (Some("application/grpc"), Some("12"))
    );
}

#[tokio::test]
async fn body_may_arrive_in_several_frames() {
    let server = Server::open().await;
    let channel = Channel::open(&server).await;
    let body = framed(&Service::V1.encode_operation(&Operation::SendMessage(user_message("piece by piece"))));
    let (pieces, answer) = channel.begin_open("/lf.a2a.v1.A2AService/SendMessage");
    for piece in body.chunks(3) {
        pieces.send(Bytes::copy_from_slice(piece)).unwrap();
    }
    drop(pieces);
    assert_eq!(answer.await.whole().await.status.code, 0);
}

#[tokio::test]
async fn call_ends_at_its_deadline_and_its_task_continues() {
    let server = Server::open().await;
    let channel = Channel::open(&server).await;
    for service in BOTH {
        let check = |status: Status| {
            // DEADLINE_EXCEEDED
            assert_eq!(status.code, 4, "{status:?}");
            assert_eq!(status.error.unwrap().kind, ErrorKind::DeadlineExceeded);
        };
        check(channel.call(service, &send("hold"), &[("grpc-timeout", "100m")]).await.status);
        let mut watched = channel.stream(service, &send_streaming("hold"), &[("grpc-timeout", "2S")]).await;
        let Some(Event::Task(made)) = watched.event(service).await else { panic!("no task first") };
        check(watched.whole().await.status);
        assert_eq!(task(channel.ask(service, &get(&made)).await).status.state, TaskState::Working);
        let well = channel.call(service, &send("hi"), &[("grpc-timeout", "1H")]).await;
        assert_eq!(well.status.code, 0);
        let odd = channel.call(service, &send("hi"), &[("grpc-timeout", "soon")]).await.status;
        assert_eq!((odd.code, odd.error.unwrap().kind), (3, ErrorKind::InvalidRequest));
    }
}
