//! F-rest: HTTP+JSON requests: method, path, query and body.
//!
//! An input is one line: the HTTP method, the target and the body.

use protocol::{
    Dialect, Operation,
    json::write::Writer,
    rest::{self, Address, ResourcePath},
};

use crate::Target;

pub(crate) const TARGET: Target = Target {
    id: "F-rest",
    name: "HTTP+JSON requests: round trip through decoder and encoder",
    run,
    corpus,
    dictionary: DICTIONARY,
    inputs: 200_000,
};

/// One request per line; each is accepted.
const VALID: &str = include_str!("../../corpus/rest/valid.txt");
/// One request per line; each is rejected.
const BROKEN: &str = include_str!("../../corpus/rest/broken.txt");

#[rustfmt::skip]
const DICTIONARY: &[&str] = &[
    "GET ", "HEAD ", "POST ", "DELETE ", "PUT ", "/v1", "/message:send", "/message:stream", "/tasks", "/task/",
    "/pushNotificationConfigs", "/extendedAgentCard", "/card", ":cancel", ":subscribe", "%2F", "%3A", "%25", "%00",
    "%ff", "%C3%B6", "%", "+", "?", "&", "=", "//", "..", "acme", "contextId=", "status=", "TASK_STATE_WORKING",
    "TASK_STATE_CANCELLED", "pageSize=", "page_size=", "pageToken=", "historyLength=", "statusTimestampAfter=",
    "2026-01-02T03:04:05.678Z", "0000-01-01T00:00:00+23:59", "includeArtifacts=true", "tenant", "id", "taskId",
    "configId", "message", "request", "messageId", "role", "ROLE_USER", "parts", "content", "text", "configuration",
    "blocking", "metadata", "name", "parent", "config", "pushNotificationConfig", "tasks/t-1", "url", "https://",
];

fn run(input: &[u8]) {
    let Some((dialect, operation)) = read(input) else { return };
    let (verb, target) = rest::target(dialect, &operation).expect("both dialects have this binding");
    let mut encoded = format!("{verb} {target} ").into_bytes();
    let mut writer = Writer::new();
    dialect.encode_request(&mut writer, &operation);
    encoded.extend(writer.finish());
    if is_exact(dialect, &operation) {
        let shown = String::from_utf8_lossy(&encoded).into_owned();
        assert_eq!(read(&encoded), Some((dialect, operation)), "{shown}");
    } else {
        read(&encoded);
    }
}

/// Decodes a request as the binding does.
fn read(input: &[u8]) -> Option<(Dialect, Operation)> {
    let mut pieces = input.splitn(3, |byte| *byte == b' ');
    let verb = std::str::from_utf8(pieces.next()?).ok()?;
    let target = std::str::from_utf8(pieces.next()?).ok()?;
    let body = pieces.next().unwrap_or_default();
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let place = ResourcePath::parse(path)?;
    let Some(kind) = place.operation(verb) else {
        assert!(verb.is_empty() || !place.allowed().contains(&verb));
        return None;
    };
    let address = Address::read(&place, query).ok()?;
    let operation = place.dialect.decode_request(kind, &address, rest::document(body).ok()?).ok()?;
    Some((place.dialect, operation))
}

/// Whether the round trip is exact: messages of 0.3 have a different target, and some tenant names cannot be in a
/// path.
fn is_exact(dialect: Dialect, operation: &Operation) -> bool {
    let has_body = matches!(
        operation,
        Operation::SendMessage(_) | Operation::SendStreamingMessage(_) | Operation::CreatePushConfig(_)
    );
    let in_path = !matches!(operation.tenant(), Some("v1" | "tasks" | "extendedAgentCard"));
    in_path && (dialect == Dialect::V1 || !has_body)
}

fn corpus() -> Vec<Vec<u8>> {
    VALID.lines().chain(BROKEN.lines()).map(Vec::from).chain(large()).collect()
}

/// Large requests.
fn large() -> [Vec<u8>; 4] {
    [
        format!("GET /tasks/{}", "%C3%B6".repeat(20_000)),
        format!("GET /tasks{}", "/x".repeat(50_000)),
        format!("GET /tasks?{}", "pageSize=1&".repeat(20_000)),
        format!("GET /tasks/t{}:cancel", ":cancel".repeat(20_000)),
    ]
    .map(String::into_bytes)
}

#[cfg(test)]
mod tests {
    use protocol::{Dialect, dialect::v1::operation::METHODS};

    use super::{BROKEN, TARGET, VALID, read};
    use crate::mutate::Mutator;

    #[test]
    fn corpus_has_every_operation_and_is_sorted_into_valid_and_broken() {
        let read_valid = |line: &str| read(line.as_bytes()).unwrap_or_else(|| panic!("rejected: {line}"));
        let found: Vec<_> =
            VALID.lines().map(read_valid).map(|(dialect, operation)| (dialect, operation.kind())).collect();
        for (method, kind) in METHODS {
            for dialect in [Dialect::V1, Dialect::V03Proto] {
                assert!(found.contains(&(dialect, kind)), "{method} {dialect:?}");
            }
        }
        for line in BROKEN.lines() {
            assert!(read(line.as_bytes()).is_none(), "accepted: {line}");
        }
    }

    #[test]
    fn some_mutated_requests_are_still_accepted() {
        let mutator = Mutator::new((TARGET.corpus)(), TARGET.dictionary, 7);
        let accepted = (1_000..3_000).filter(|number| read(&mutator.input(*number)).is_some()).count();
        assert!((200..1_800).contains(&accepted), "{accepted} of 2000");
    }
}
