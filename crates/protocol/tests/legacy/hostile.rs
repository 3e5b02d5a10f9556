//! No input makes a decoder panic, and everything a decoder accepts round-trips.

use a2ad_protocol::{Dialect, Event, Json, Operation, Reply, json::Raw, jsonrpc};
use proptest::{prelude::any, prop_assert_eq, proptest, sample::select};

use crate::{
    almost_valid::almost_valid,
    codec::{
        DIALECTS, methods, read_error, read_event, read_operation, read_reply, write_error, write_event,
        write_operation, write_reply,
    },
    limits,
    values::{self, json_text},
};

proptest! {
    #[test]
    fn any_json_is_handled(text in json_text()) {
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
        let _ = jsonrpc::decode(&bytes);
        if let Ok(document) = Raw::parse(&bytes) {
            check_document(document.get());
        }
    }

    #[test]
    fn metadata_member_of_the_caller_is_never_overwritten(reply in values::reply(), value in json_text()) {
        let (Reply::Task(mut task) | Reply::SentTask(mut task)) = reply else { return Ok(()) };
        // With an unknown member in it the value belongs to the caller, whatever else it contains.
        let own = format!(r#"{{"k":"\\","a2ad":{{"mine":{value},"state":"rejected","messageId":"m"}}}}"#);
        let own = Json::parse(&own).unwrap();
        task.metadata = Some(own.clone());
        for message in task.history.iter_mut().chain(&mut task.status.message) {
            message.metadata = Some(own.clone());
            message.parts.iter_mut().for_each(|part| part.metadata = Some(own.clone()));
        }
        for dialect in DIALECTS {
            let text = write_reply(dialect, &Reply::Task(task.clone()));
            let read = read_reply(dialect, a2ad_protocol::OperationKind::GetTask, &text).unwrap();
            let Reply::Task(read) = read else { panic!("{text}") };
            prop_assert_eq!(read.metadata.as_ref(), Some(&own), "{}", text);
            for message in read.history.iter().chain(&read.status.message) {
                prop_assert_eq!(message.metadata.as_ref(), Some(&own), "{}", text);
                for part in &message.parts {
                    let kept = part.metadata.as_ref().map(Json::as_str);
                    prop_assert_eq!(kept, Some(own.as_str()), "{}", text);
                }
            }
        }
    }
}

/// Passes the document to every decoder; an accepted document must round-trip.
fn check_document(text: &str) {
    for dialect in DIALECTS {
        for (method, kind) in methods(dialect) {
            if let Ok(operation) = read_operation(dialect, method, text) {
                let again = write_operation(dialect, &operation);
                let again = read_operation(dialect, method, &again);
                same(again.map(normalised(Dialect::V1)), &normalised(dialect)(operation), text);
            }
            if let Ok(reply) = read_reply(dialect, kind, text) {
                let again = read_reply(dialect, kind, &write_reply(dialect, &reply));
                same(
                    again.map(|again| limits::reply(Dialect::V1, again)),
                    &limits::reply(dialect, reply),
                    text,
                );
            }
        }
        if let Ok(event) = read_event(dialect, text) {
            let frames = write_event(dialect, &event);
            if dialect != Dialect::Draft || !matches!(event, Event::Task(_)) {
                let again = read_event(dialect, &frames[0]);
                same(
                    again.map(|again| limits::event(Dialect::V1, again)),
                    &limits::event(dialect, event),
                    text,
                );
            }
        }
        if let Ok(error) = read_error(dialect, text) {
            let again = write_error(dialect, &error);
            let twice = write_error(dialect, &read_error(dialect, &again).unwrap());
            assert_eq!(twice, again, "{text}");
        }
    }
}

fn normalised(dialect: Dialect) -> impl Fn(Operation) -> Operation {
    move |operation| limits::operation(dialect, operation)
}

fn same<T: PartialEq + std::fmt::Debug, E: std::fmt::Debug>(read: Result<T, E>, expected: &T, text: &str) {
    assert_eq!(&read.unwrap_or_else(|error| panic!("{error:?}: {text}")), expected, "{text}");
}

/// Names and values of the protocol.
#[rustfmt::skip]
const NAMES: &[&str] = &[
    "a2ad", "append", "artifact", "artifactId", "artifacts", "async", "authentication", "blocking", "bytes",
    "code", "configuration", "content", "contextId", "credentials", "data", "data_part_compat", "errors",
    "extensions", "file", "filename", "final", "history", "historyLength", "id", "index", "kind", "lastChunk",
    "mediaType", "message", "messageId", "metadata", "mimeType", "name", "parts", "pushNotification",
    "pushNotificationConfig", "referenceTaskIds", "role", "schemes", "sessionId", "skill", "state", "status",
    "taskId", "tasks", "text", "timestamp", "type", "uri", "url", "value",
];
#[rustfmt::skip]
const VALUES: &[&str] = &[
    "\"\"", "\"2026-01-02T03:04:05\"", "\"aGk=\"", "\"agent\"", "\"cancelled\"", "\"data\"", "\"failed\"",
    "\"file\"", "\"https://a.example\"", "\"message\"", "\"odd\"", "\"rejected\"", "\"status-update\"",
    "\"t-1\"", "\"text\"", "\"user\"", "\"\\ud800\"", "-1", "0", "1", "2147483647", "[\"Bearer\"]",
    "[{\"text\":\"hi\"}]", "false", "null", "true", "{\"state\":\"failed\"}", "{\"uri\":\"u\"}",
];

/// Documents in which every field is set.
fn samples() -> Vec<&'static str> {
    vec![
        include_str!("../samples/draft/operation/tasks/send/full.json"),
        include_str!("../samples/draft/reply/tasks/get/full.json"),
        include_str!("../samples/draft/event/artifact-full.json"),
        include_str!("../samples/draft/error/invalid-params.json"),
        include_str!("../samples/v03/operation/message/send/full.json"),
        include_str!("../samples/v03/operation/tasks/list/full.json"),
        include_str!("../samples/v03/operation/tasks/pushNotificationConfig/set/full.json"),
        include_str!("../samples/v03/event/task-full.json"),
        include_str!("../samples/v03/event/artifact-full.json"),
        r#"{"method":"tasks/send","params":{"id":"t-1","message":{"city":"x"}}}"#,
    ]
}
