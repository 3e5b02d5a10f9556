//! F-json: JSON-RPC requests, envelope and parameters.

use protocol::{
    dialect::v1::operation,
    json::{Raw, write::Writer},
    jsonrpc,
};
use serde_json::value::RawValue;

use crate::Target;

pub(crate) const TARGET: Target = Target {
    id: "F-json",
    name: "JSON-RPC requests: round trip through decoder and encoder",
    run,
    corpus,
    dictionary: DICTIONARY,
    inputs: 200_000,
};

/// One request per line; each is accepted.
const VALID: &str = include_str!("../../corpus/json/valid.jsonl");
/// One body per line; each is rejected.
const BROKEN: &str = include_str!("../../corpus/json/broken.txt");

#[rustfmt::skip]
const DICTIONARY: &[&str] = &[
    "jsonrpc", "2.0", "id", "method", "params", "SendMessage", "SendStreamingMessage", "GetTask", "ListTasks",
    "CancelTask", "SubscribeToTask", "CreateTaskPushNotificationConfig", "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs", "DeleteTaskPushNotificationConfig", "GetExtendedAgentCard", "tenant",
    "message", "messageId", "message_id", "contextId", "context_id", "taskId", "task_id", "referenceTaskIds", "role",
    "ROLE_USER", "ROLE_AGENT", "ROLE_UNSPECIFIED", "parts", "text", "raw", "url", "data", "filename", "mediaType",
    "metadata", "extensions", "configuration", "acceptedOutputModes", "historyLength", "history_length",
    "returnImmediately", "taskPushNotificationConfig", "pushNotificationConfig", "token", "authentication", "scheme",
    "credentials", "status", "TASK_STATE_WORKING", "TASK_STATE_UNSPECIFIED", "TASK_STATE_CANCELED", "pageSize",
    "pageToken", "statusTimestampAfter", "includeArtifacts", "2026-01-02T03:04:05.678Z", "9999-12-31T23:59:59.999Z",
    "0000-01-01T00:00:00+23:59", "https://", "-_8=",
];

fn run(body: &[u8]) {
    assert_eq!(Raw::parse(body).is_ok(), serde_json::from_slice::<&RawValue>(body).is_ok());
    let Ok(request) = jsonrpc::decode(body) else { return };
    let Ok(operation) = operation::decode(&request.method, request.params) else { return };
    let mut writer = Writer::new();
    operation::encode(&mut writer, &operation);
    let written = writer.finish();
    let params = Raw::parse(&written).expect("the writer produces valid JSON");
    assert_eq!(operation::decode(&request.method, Some(params)), Ok(operation));
}

fn corpus() -> Vec<Vec<u8>> {
    VALID.lines().chain(BROKEN.lines()).map(Vec::from).chain(large()).collect()
}

/// Large bodies: many names, many parts, deep values, long strings.
fn large() -> [Vec<u8>; 5] {
    let send = |part: &str, metadata: &str| {
        format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{part}]}},"metadata":{metadata}}}}}"#
        )
    };
    let names = (0..50_000).map(|at| format!(r#""name{at}":0"#)).collect::<Vec<_>>().join(",");
    let text = r#"{"text":"x"}"#;
    [
        format!(r#"{{"jsonrpc":"2.0","method":"GetTask","params":{{"id":"t"}},{names}}}"#),
        send(text, &format!("{{{names}}}")),
        send(text, &format!(r#"{{"deep":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000))),
        send(&vec![text; 50_000].join(","), "{}"),
        send(&format!(r#"{{"text":"{}"}}"#, "\\u00e9".repeat(200_000)), "{}"),
    ]
    .map(String::into_bytes)
}

#[cfg(test)]
mod tests {
    use protocol::Operation;

    use super::{BROKEN, TARGET, VALID, jsonrpc, operation};
    use crate::mutate::Mutator;

    fn decode(body: &[u8]) -> Option<Operation> {
        let request = jsonrpc::decode(body).ok()?;
        operation::decode(&request.method, request.params).ok()
    }

    #[test]
    fn corpus_has_every_method_and_is_sorted_into_valid_and_broken() {
        let kinds: Vec<_> = VALID
            .lines()
            .map(|line| decode(line.as_bytes()).unwrap_or_else(|| panic!("rejected: {line}")).kind())
            .collect();
        for (method, kind) in operation::METHODS {
            assert!(kinds.contains(&kind), "{method}");
        }
        for line in BROKEN.lines() {
            assert!(decode(line.as_bytes()).is_none(), "accepted: {line}");
        }
    }

    #[test]
    fn some_mutated_requests_are_still_accepted() {
        let mutator = Mutator::new((TARGET.corpus)(), TARGET.dictionary, 7);
        let accepted = (1_000..3_000).filter(|number| decode(&mutator.input(*number)).is_some()).count();
        assert!((200..1_800).contains(&accepted), "{accepted} of 2000");
    }
}
