//! No input makes a decoder panic, and everything a decoder accepts round-trips.

use a2ad_protocol::{dialect::v1, json::Raw, jsonrpc};
use proptest::{collection::vec, prelude::any, proptest, sample::select};

use crate::{
    almost_valid::almost_valid,
    codec::{
        read_error, read_event, read_operation, read_reply, write_error, write_event, write_operation,
        write_reply,
    },
    values::{json_text, with_skill},
};

proptest! {
    #[test]
    fn any_bytes_are_handled(bytes in vec(any::<u8>(), 0..200)) {
        check_bytes(&bytes);
    }

    #[test]
    fn any_json_is_handled(text in json_text()) {
        check_bytes(text.as_bytes());
        check_document(&text);
    }

    #[test]
    fn known_names_with_wrong_values_are_handled(text in almost_valid(NAMES, VALUES)) {
        check_document(&text);
    }

    #[test]
    fn truncated_or_corrupted_sample_is_handled(
        sample in select(samples()), at in any::<usize>(), byte in any::<u8>(), cut in any::<bool>()
    ) {
        let mut bytes = sample.as_bytes().to_vec();
        let at = at % bytes.len();
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        check_bytes(&bytes);
        if let Ok(document) = Raw::parse(&bytes) {
            check_document(document.get());
        }
    }
}

fn check_bytes(bytes: &[u8]) {
    let _ = v1::event::decode_bytes(bytes);
    if let Ok(request) = jsonrpc::decode(bytes) {
        let _ = v1::operation::decode(&request.method, request.params);
    }
}

/// Passes the document to every decoder; an accepted document must round-trip.
fn check_document(text: &str) {
    for (method, kind) in v1::operation::METHODS {
        if let Ok(operation) = read_operation(method, text) {
            let again = read_operation(method, &write_operation(&operation));
            assert_eq!(again, Ok(with_skill(operation)), "{text}");
        }
        if let Ok(reply) = read_reply(kind, text) {
            assert_eq!(read_reply(kind, &write_reply(&reply)), Ok(reply), "{text}");
        }
    }
    if let Ok(event) = read_event(text) {
        assert_eq!(read_event(&write_event(&event)), Ok(event), "{text}");
    }
    if let Ok(error) = read_error(text) {
        assert_eq!(read_error(&write_error(&error)), Ok(error), "{text}");
    }
}

/// Names and values of the protocol.
#[rustfmt::skip]
const NAMES: &[&str] = &[
    "append", "artifact", "artifactId", "artifactUpdate", "artifact_update", "artifacts", "authentication",
    "code", "configs", "configuration", "contextId", "credentials", "data", "extensions", "filename",
    "history", "historyLength", "id", "lastChunk", "mediaType", "message", "messageId", "message_id",
    "metadata", "name", "pageSize", "parts", "raw", "role", "scheme", "state", "status",
    "statusTimestampAfter", "statusUpdate", "supportedInterfaces", "task", "taskId",
    "taskPushNotificationConfig", "task_id", "tasks", "tenant", "text", "timestamp", "totalSize", "url",
];
#[rustfmt::skip]
const VALUES: &[&str] = &[
    "\"\"", "\"2026-01-02T03:04:05Z\"", "\"ROLE_USER\"", "\"TASK_STATE_WORKING\"", "\"aGk=\"",
    "\"https://a.example\"", "\"t-1\"", "\"\\ud800\"", "-1", "1", "1e9", "2.0", "[{\"text\":\"hi\"}]",
    "false", "null", "true", "{\"state\":2}",
];

/// Documents in which every field is set.
fn samples() -> Vec<&'static str> {
    vec![
        include_str!("../samples/v1/operation/SendMessage/full.json"),
        include_str!("../samples/v1/operation/ListTasks/full.json"),
        include_str!("../samples/v1/operation/CreateTaskPushNotificationConfig/full.json"),
        include_str!("../samples/v1/event/task-full.json"),
        include_str!("../samples/v1/event/status-full.json"),
        include_str!("../samples/v1/event/artifact-full.json"),
        include_str!("../samples/v1/reply/ListTasks/with-artifacts.json"),
        include_str!("../samples/v1/error/invalid-params.json"),
        r#"{"jsonrpc":"2.0","id":"a","method":"GetTask","params":{"id":"t-1","historyLength":2}}"#,
    ]
}
