//! Errors as `google.rpc.Status`.

use a2ad_protocol::{
    Error, ErrorKind, TaskId, Timestamp, Violation,
    grpc::{decode_status, encode_status, kind_of_code},
};
use proptest::{prop_assert_eq, proptest};

use crate::{
    values,
    wire::{bytes, int},
};

fn now() -> Timestamp {
    Timestamp::parse("2026-01-02T03:04:05.678Z").unwrap()
}

proptest! {
    #[test]
    fn every_error_round_trips(error in values::error()) {
        let code = error.kind.row().grpc as i32;
        prop_assert_eq!(decode_status(&encode_status(&error, code, now())), Some(error));
    }
}

#[test]
fn status_has_the_content_of_the_error() {
    let entry = |name: &str, value: &str| bytes(3, [bytes(1, name), bytes(2, value)].concat());
    let any = |kind: &str, value: Vec<u8>| {
        bytes(3, [bytes(1, format!("type.googleapis.com/google.rpc.{kind}")), bytes(2, value)].concat())
    };
    let info = |reason: &str, metadata: Vec<u8>| {
        any("ErrorInfo", [bytes(1, reason), bytes(2, "a2a-protocol.org"), metadata].concat())
    };
    let time = entry("timestamp", "2026-01-02T03:04:05.678Z");

    let error = Error::task_not_found(&TaskId::from("t-1"));
    let facts = [entry("taskId", "t-1"), time.clone()].concat();
    let expected = [int(1, 5), bytes(2, "task not found: t-1"), info("TASK_NOT_FOUND", facts)].concat();
    assert_eq!(encode_status(&error, 5, now()), expected);

    let error = Error::invalid_params(Violation::new("message.parts[0].raw", "expected bytes"));
    let field = bytes(1, [bytes(1, "message.parts[0].raw"), bytes(2, "expected bytes")].concat());
    let expected = [
        int(1, 3),
        bytes(2, "message.parts[0].raw: expected bytes"),
        info("INVALID_PARAMS", time),
        any("BadRequest", field),
    ];
    assert_eq!(encode_status(&error, 3, now()), expected.concat());
}

#[test]
fn status_of_another_server_is_mapped_by_its_code() {
    let foreign = bytes(
        3,
        [
            bytes(1, "type.googleapis.com/google.rpc.ErrorInfo"),
            bytes(2, [bytes(1, "TASK_NOT_CANCELABLE"), bytes(2, "elsewhere.example")].concat()),
        ]
        .concat(),
    );
    let cases = [
        (3, ErrorKind::InvalidParams),
        (5, ErrorKind::TaskNotFound),
        (7, ErrorKind::PermissionDenied),
        (9, ErrorKind::UnsupportedOperation),
        (12, ErrorKind::MethodNotFound),
        (13, ErrorKind::Internal),
        (14, ErrorKind::Unavailable),
        (16, ErrorKind::Unauthenticated),
        (99, ErrorKind::Internal),
    ];
    for (code, kind) in cases {
        let status = [int(1, code), bytes(2, "some text"), foreign.clone()].concat();
        assert_eq!(decode_status(&status), Some(Error::new(kind, "some text")));
        assert_eq!(kind_of_code(i32::try_from(code).unwrap()), kind);
    }
    // Every error of this project has a status code that is an error.
    for kind in ErrorKind::ALL {
        let code = kind.row().grpc as i32;
        assert_eq!(kind_of_code(code).row().grpc as i32, code, "{kind:?}");
    }
}

#[test]
fn invalid_status_is_none() {
    assert_eq!(decode_status(&[0xff]), None);
    assert_eq!(decode_status(&bytes(3, [0xff])), None);
}
