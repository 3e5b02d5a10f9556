//! F-rest: HTTP+JSON requests: verb, path, query and body.
//!
//! An input is one line: the verb, the target and the body.

use protocol::{
    Dialect, Operation,
    json::write::Writer,
    rest::{self, Address, Place},
};

use crate::Target;

pub(crate) const TARGET: Target = Target {
    id: "F-rest",
    name: "HTTP+JSON requests: what is read survives being written",
    run,
    corpus,
    dictionary: DICTIONARY,
    inputs: 200_000,
};

/// One request a line; each is accepted.
const VALID: &str = include_str!("../../corpus/rest/valid.txt");
/// One request a line; each is refused.
const BROKEN: &str = include_str!("../../corpus/rest/broken.txt");

const DICTIONARY: &[&str] = &[
    "GET ",
    "HEAD ",
    "POST ",
    "DELETE ",
    "PUT ",
    "/v1",
    "/message:send",
    "/message:stream",
    "/tasks",
    "/task/",
    "/pushNotificationConfigs",
    "/extendedAgentCard",
    "/card",
    ":cancel",
    ":subscribe",
    "%2F",
    "%3A",
    "%25",
    "%00",
    "%ff",
    "%C3%B6",
    "%",
    "+",
    "?",
    "&",
    "=",
    "//",
    "..",
    "acme",
    "contextId=",
    "status=",
    "TASK_STATE_WORKING",
    "TASK_STATE_CANCELLED",
    "pageSize=",
    "page_size=",
    "pageToken=",
    "historyLength=",
    "statusTimestampAfter=",
    "2026-01-02T03:04:05.678Z",
    "0000-01-01T00:00:00+23:59",
    "includeArtifacts=true",
    "tenant",
    "id",
    "taskId",
    "configId",
    "message",
    "request",
    "messageId",
    "role",
    "ROLE_USER",
    "parts",
    "content",
    "text",
    "configuration",
    "blocking",
    "metadata",
    "name",
    "parent",
    "config",
    "pushNotificationConfig",
    "tasks/t-1",
    "url",
    "https://",
];

fn run(input: &[u8]) {
    let Some((dialect, operation)) = read(input) else { return };
    let (verb, target) = rest::target(dialect, &operation).expect("both dialects have this binding");
    let mut written = format!("{verb} {target} ").into_bytes();
    let mut writer = Writer::new();
    dialect.encode_request(&mut writer, &operation);
    written.extend(writer.finish());
    if is_exact(dialect, &operation) {
        let shown = String::from_utf8_lossy(&written).into_owned();
        assert_eq!(read(&written), Some((dialect, operation)), "{shown}");
    } else {
        read(&written);
    }
}

/// A request as the binding reads it.
fn read(input: &[u8]) -> Option<(Dialect, Operation)> {
    let mut pieces = input.splitn(3, |byte| *byte == b' ');
    let verb = std::str::from_utf8(pieces.next()?).ok()?;
    let target = std::str::from_utf8(pieces.next()?).ok()?;
    let body = pieces.next().unwrap_or_default();
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    let place = Place::parse(path)?;
    let Some(kind) = place.operation(verb) else {
        assert!(verb.is_empty() || !place.allowed().split(", ").any(|allowed| allowed == verb));
        return None;
    };
    let address = Address::read(&place, query).ok()?;
    let operation = place.dialect.decode_request(kind, &address, rest::document(body).ok()?).ok()?;
    Some((place.dialect, operation))
}

/// Whether what is written is what was read: messages of 0.3 have a target of their own, and a tenant of some names can
/// not be in a path.
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

/// Requests whose size is the point.
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
    fn the_corpus_holds_every_operation_and_its_halves_are_what_they_say() {
        let read_valid = |line: &str| read(line.as_bytes()).unwrap_or_else(|| panic!("refused: {line}"));
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
    fn damaged_requests_are_still_read_now_and_then() {
        let mutator = Mutator::new((TARGET.corpus)(), TARGET.dictionary, 7);
        let accepted = (1_000..3_000).filter(|number| read(&mutator.input(*number)).is_some()).count();
        assert!((200..1_800).contains(&accepted), "{accepted} of 2000");
    }
}
