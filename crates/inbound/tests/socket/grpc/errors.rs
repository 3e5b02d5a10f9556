//! Errors: a status, a message that the details repeat, and machine-readable details.

use a2ad_inbound::{AcceptedVersions, AgentSettings, AuthMethods};
use protocol::{Error, ErrorKind, ErrorTable, GetTask, Message, Operation, Role, SendMessage, grpc::Service};

use super::{BOTH, send, send_streaming};
use crate::common::{
    Server, Setup,
    channel::{Channel, Status, framed},
};

fn missing() -> Operation {
    Operation::GetTask(GetTask { id: "no-such-task".into(), history_length: None, tenant: None })
}

/// The decoded details, which must repeat the status and its message.
fn details(status: &Status) -> &Error {
    let error = status.error.as_ref().unwrap_or_else(|| panic!("no details: {status:?}"));
    assert_eq!(error.message, status.message);
    error
}

#[tokio::test]
async fn unknown_task_is_named_in_the_details() {
    let server = Server::open().await;
    let channel = Channel::open(&server).await;
    for service in BOTH {
        let refused = channel.call(service, &missing(), &[]).await;
        // Without a message the status is in the response head (trailers-only).
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
async fn invalid_field_is_named() {
    let server = Server::open().await;
    let channel = Channel::open(&server).await;
    for service in BOTH {
        let empty = SendMessage::new(Message::new("m", Role::User, Vec::new()));
        let refused = channel.call(service, &Operation::SendMessage(empty), &[]).await.status;
        assert_eq!(refused.code, 3, "{refused:?}");
        let error = details(&refused);
        assert_eq!(error.kind, ErrorKind::InvalidParams);
        assert!(error.violations[0].field.starts_with("message."), "{error:?}");
        // An empty message has no required field.
        let path = format!("/{}/SendMessage", service.name());
        let refused = channel.raw(&path, &[], framed(b"")).await.status;
        assert_eq!((refused.code, details(&refused).kind), (3, ErrorKind::InvalidParams));
        // Not protobuf.
        let refused = channel.raw(&path, &[], framed(b"\xff\xff\xff")).await.status;
        assert_eq!(refused.code, 3, "{refused:?}");
        details(&refused);
    }
}

#[tokio::test]
async fn statuses_follow_the_configured_edition() {
    for (errors, code) in [(ErrorTable::V1_0_1, 9), (ErrorTable::V1_0_0, 12)] {
        let quiet = AgentSettings { streaming: false, ..AgentSettings::default() };
        let setup = Setup::with(|options| {
            options.errors = errors;
            options.agents = [("echo".into(), quiet)].into();
        });
        let server = setup.open().await;
        let channel = Channel::open(&server).await;
        let refused = channel.call(Service::V1, &send_streaming("hi"), &[]).await.status;
        assert_eq!((refused.code, details(&refused).kind), (code, ErrorKind::UnsupportedOperation));
        // Clients of 0.3 know only the older statuses.
        let refused = channel.call(Service::V03, &send_streaming("hi"), &[]).await.status;
        assert_eq!((refused.code, details(&refused).kind), (12, ErrorKind::UnsupportedOperation));
    }
}

#[tokio::test]
async fn version_must_match_the_service() {
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

    let strict = Setup::with(|options| {
        options.accepted_versions =
            AcceptedVersions { v03: false, lenient_version: false, ..AcceptedVersions::default() };
    });
    let server = strict.open().await;
    let channel = Channel::open(&server).await;
    assert_eq!(status(&channel, Service::V1, &["1.0"]).await, well);
    // The service name identifies the version.
    assert_eq!(status(&channel, Service::V1, &[]).await, well);
    assert_eq!(status(&channel, Service::V03, &["0.3"]).await, other);
    // The error is that of the service if no version is named.
    assert_eq!(status(&channel, Service::V03, &[]).await, (12, Some(ErrorKind::VersionNotSupported)));
}

#[tokio::test]
async fn long_error_message_fits_into_the_response_head() {
    let server = Server::open().await;
    let channel = Channel::open(&server).await;
    let long = "ü%".repeat(500);
    let ask = Operation::GetTask(GetTask { id: long.as_str().into(), history_length: None, tenant: None });
    for service in BOTH {
        let refused = channel.call(service, &ask, &[]).await.status;
        assert!(refused.trailers.values().map(http::HeaderValue::len).sum::<usize>() < 8_000);
        // Longer ids are rejected with another error.
        assert!(matches!(details(&refused).kind, ErrorKind::TaskNotFound | ErrorKind::InvalidParams));
    }
}

#[tokio::test]
async fn missing_credential_error_names_the_challenge() {
    let closed = AgentSettings { auth: AuthMethods::NONE, ..AgentSettings::default() };
    let server = Setup::with(|options| options.agents = [("echo".into(), closed)].into()).open().await;
    let channel = Channel::open(&server).await;
    for service in BOTH {
        let refused = channel.call(service, &send("hi"), &[]).await.status;
        // UNAUTHENTICATED
        assert_eq!((refused.code, details(&refused).kind), (16, ErrorKind::Unauthenticated));
    }
}
