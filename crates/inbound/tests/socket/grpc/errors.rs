//! Errors: a status, a message that is the same in the details, and details for machines.

use a2ad_inbound::{AcceptedVersions, AgentSettings};
use protocol::{Error, ErrorKind, ErrorTable, GetTask, Message, Operation, Role, SendMessage, grpc::Service};

use super::{BOTH, send, send_streaming};
use crate::common::{
    Server, Setup,
    channel::{Channel, Status, framed},
};

fn missing() -> Operation {
    Operation::GetTask(GetTask { id: "no-such-task".into(), history_length: None, tenant: None })
}

/// What the details say, which repeat the status and its message.
fn details(status: &Status) -> &Error {
    let error = status.error.as_ref().unwrap_or_else(|| panic!("no details: {status:?}"));
    assert_eq!(error.message, status.message);
    error
}

#[tokio::test]
async fn a_task_that_is_not_there_is_named_in_the_details() {
    let server = Server::open().await;
    let channel = Channel::open(&server).await;
    for service in BOTH {
        let refused = channel.call(service, &missing(), &[]).await;
        // The status is all there is, so it is in the head.
        assert!(refused.head.contains_key("grpc-status") && refused.messages.is_empty());
        assert_eq!((refused.http, refused.status.code), (200, 5));
        let error = details(&refused.status);
        assert_eq!(error.kind, ErrorKind::TaskNotFound);
        assert!(
            refused.status.message.ends_with("ask not found: no-such-task"),
            "{}",
            refused.status.message
        );
        assert!(refused.status.message.starts_with('T') == (service == Service::V03));
    }
}

#[tokio::test]
async fn a_field_at_fault_is_named() {
    let server = Server::open().await;
    let channel = Channel::open(&server).await;
    for service in BOTH {
        let empty = SendMessage::new(Message::new("m", Role::User, Vec::new()));
        let refused = channel.call(service, &Operation::SendMessage(empty), &[]).await.status;
        assert_eq!(refused.code, 3, "{refused:?}");
        let error = details(&refused);
        assert_eq!(error.kind, ErrorKind::InvalidParams);
        assert!(error.violations[0].field.starts_with("message."), "{error:?}");
        // Nothing at all is no message either.
        let path = format!("/{}/SendMessage", service.name());
        let refused = channel.raw(&path, &[], framed(b"")).await.status;
        assert_eq!((refused.code, details(&refused).kind), (3, ErrorKind::InvalidParams));
        // What is no protobuf at all.
        let refused = channel.raw(&path, &[], framed(b"\xff\xff\xff")).await.status;
        assert_eq!(refused.code, 3, "{refused:?}");
        details(&refused);
    }
}

#[tokio::test]
async fn statuses_are_those_of_the_edition_that_is_chosen() {
    for (errors, code) in [(ErrorTable::V1_0_1, 9), (ErrorTable::V1_0_0, 12)] {
        let quiet = AgentSettings { streaming: false, ..AgentSettings::default() };
        let setup = Setup::with(|doors| {
            doors.errors = errors;
            doors.agents = [("echo".into(), quiet)].into();
        });
        let server = setup.open().await;
        let channel = Channel::open(&server).await;
        let refused = channel.call(Service::V1, &send_streaming("hi"), &[]).await.status;
        assert_eq!((refused.code, details(&refused).kind), (code, ErrorKind::UnsupportedOperation));
        // Clients of 0.3 know the older ones only.
        let refused = channel.call(Service::V03, &send_streaming("hi"), &[]).await.status;
        assert_eq!((refused.code, details(&refused).kind), (12, ErrorKind::UnsupportedOperation));
    }
}

#[tokio::test]
async fn a_version_has_to_be_that_of_the_service() {
    let server = Server::open().await;
    let channel = Channel::open(&server).await;
    let status = async |channel: &Channel, service, version: &[&str]| {
        let metadata: Vec<_> = version.iter().map(|version| ("a2a-version", *version)).collect();
        let status = channel.call(service, &send("hi"), &metadata).await.status;
        (status.code, status.error.map(|error| error.kind))
    };
    let well = (0, None);
    let other = (9, Some(ErrorKind::VersionNotSupported));
    for version in [&[][..], &[""], &["1.0"], &["1.0.1"]] {
        assert_eq!(status(&channel, Service::V1, version).await, well, "{version:?}");
    }
    for version in [&[][..], &["0.3"], &["0.3.0"], &["0.2.6"]] {
        assert_eq!(status(&channel, Service::V03, version).await, well, "{version:?}");
    }
    for service in BOTH {
        assert_eq!(status(&channel, service, &["99.0"]).await, other);
    }
    assert_eq!(status(&channel, Service::V1, &["0.3"]).await, other);
    assert_eq!(status(&channel, Service::V03, &["1.0"]).await, other);

    let strict = Setup::with(|doors| {
        doors.accepted_versions =
            AcceptedVersions { v03: false, lenient_version: false, ..AcceptedVersions::default() };
    });
    let server = strict.open().await;
    let channel = Channel::open(&server).await;
    assert_eq!(status(&channel, Service::V1, &["1.0"]).await, well);
    // The service says it by its name.
    assert_eq!(status(&channel, Service::V1, &[]).await, well);
    assert_eq!(status(&channel, Service::V03, &["0.3"]).await, other);
    // Told by the table of the service where nothing else is named.
    assert_eq!(status(&channel, Service::V03, &[]).await, (12, Some(ErrorKind::VersionNotSupported)));
}

#[tokio::test]
async fn a_message_of_any_length_fits_into_the_head_of_an_answer() {
    let server = Server::open().await;
    let channel = Channel::open(&server).await;
    let long = "ü%".repeat(500);
    let ask = Operation::GetTask(GetTask { id: long.as_str().into(), history_length: None, tenant: None });
    for service in BOTH {
        let refused = channel.call(service, &ask, &[]).await.status;
        assert!(refused.trailers.values().map(http::HeaderValue::len).sum::<usize>() < 8_000);
        // Longer names than are kept are another error.
        assert!(matches!(details(&refused).kind, ErrorKind::TaskNotFound | ErrorKind::InvalidParams));
    }
}

#[tokio::test]
async fn a_caller_that_is_not_let_in_is_told_what_to_bring() {
    let closed = AgentSettings { anonymous: false, ..AgentSettings::default() };
    let server = Setup::with(|doors| doors.agents = [("echo".into(), closed)].into()).open().await;
    let channel = Channel::open(&server).await;
    for service in BOTH {
        let refused = channel.call(service, &send("hi"), &[]).await.status;
        // UNAUTHENTICATED
        assert_eq!((refused.code, details(&refused).kind), (16, ErrorKind::Unauthenticated));
    }
}
