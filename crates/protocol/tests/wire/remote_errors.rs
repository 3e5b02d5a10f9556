//! Reading the error objects of other servers, and the machine-readable details of ours.

use a2ad_protocol::{Error, ErrorKind, TaskId};

use crate::codec::{read_error, write_error};

#[test]
fn facts_precede_the_timestamp() {
    let error = Error::task_not_found(&TaskId::from("t:1/é")).with("agent", "echo");
    let expected = r#"{"code":-32001,"message":"task not found: t:1/é","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"TASK_NOT_FOUND","domain":"a2a-protocol.org","metadata":{"taskId":"t:1/é","agent":"echo","timestamp":"2026-01-02T03:04:05.678Z"}}]}"#;
    assert_eq!(write_error(&error), expected);
}

#[test]
fn reason_decides_if_a_code_is_shared() {
    let text = r#"{"code":-32602,"message":"x","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"MESSAGE_ID_REUSED","domain":"a2a-protocol.org"}]}"#;
    assert_eq!(kind(text), ErrorKind::MessageIdReused);
}

#[test]
fn unknown_reason_falls_back_to_the_code() {
    let text = r#"{"code":-32001,"message":"x","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"NO_SUCH_ROW","domain":"a2a-protocol.org"}]}"#;
    assert_eq!(kind(text), ErrorKind::TaskNotFound);
}

#[test]
fn reason_of_another_domain_falls_back_to_the_code() {
    let text = r#"{"code":-32001,"message":"x","data":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"RATE_LIMITED","domain":"shop.example"}]}"#;
    assert_eq!(kind(text), ErrorKind::TaskNotFound);
}

#[test]
fn detail_that_is_not_an_object_does_not_hide_the_next() {
    let text = r#"{"code":-32000,"message":"x","data":["free text",{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"RATE_LIMITED","domain":"a2a-protocol.org"}]}"#;
    assert_eq!(kind(text), ErrorKind::RateLimited);
}

#[test]
fn catch_all_code_alone_is_an_internal_error() {
    assert_eq!(kind(r#"{"code":-32000,"message":"server error"}"#), ErrorKind::Internal);
}

fn kind(text: &str) -> ErrorKind {
    read_error(text).unwrap().kind
}
