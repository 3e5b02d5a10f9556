//! F-legacy: requests, stream frames and replies of the versions before 1.0, and what servers of 1.0 send.
//!
//! What an older dialect decodes can be encoded in 1.0 without a change of meaning, which is how the store keeps it;
//! and it survives a round trip in the dialect itself.

use std::{fs, path::Path as File};

use protocol::{
    Dialect, Event, Message, Operation, OperationKind, PushConfig, Reply, Task, Timestamp,
    dialect::{Frames, Style, v1, v03_proto},
    json::{
        Raw,
        read::{Node, Path, Read},
        write::Writer,
    },
    jsonrpc,
};

use crate::Target;

pub(crate) const TARGET: Target = Target {
    id: "F-legacy",
    name: "older versions: same meaning in 1.0, and round trip through decoder and encoder",
    run,
    corpus,
    dictionary: DICTIONARY,
    inputs: 200_000,
};

#[rustfmt::skip]
const DICTIONARY: &[&str] = &[
    "jsonrpc", "2.0", "id", "method", "params", "tasks/send", "tasks/sendSubscribe", "tasks/get", "tasks/cancel",
    "tasks/resubscribe", "tasks/list", "tasks/pushNotification/set", "tasks/pushNotification/get", "message/send",
    "message/stream", "tasks/pushNotificationConfig/set", "tasks/pushNotificationConfig/get",
    "tasks/pushNotificationConfig/list", "tasks/pushNotificationConfig/delete", "agent/getAuthenticatedExtendedCard",
    "kind", "type", "text", "file", "data", "bytes", "uri", "fileWithBytes", "fileWithUri", "name", "mimeType",
    "aVZCTw==", "message", "request", "msg", "update", "messageId", "sessionId", "contextId", "taskId",
    "referenceTaskIds", "role", "user", "agent", "ROLE_USER", "parts", "content", "metadata", "a2ad", "mediaType",
    "filename", "data_part_compat", "value", "extensions", "task", "statusUpdate", "artifactUpdate", "status-update",
    "artifact-update", "status", "state", "working", "cancelled", "input-required", "rejected",
    "TASK_STATE_CANCELLED", "timestamp", "2026-01-02T03:04:05", "final", "artifact", "artifacts", "artifactId",
    "index", "append", "lastChunk", "history", "historyLength", "configuration", "blocking", "async",
    "pushNotification", "pushNotificationConfig", "pushNotificationConfigId", "config", "configs", "schemes",
    "credentials", "skill", "skillId", "tasks/t/pushNotificationConfigs/p",
];

const OLDER_DIALECTS: [Dialect; 3] = [Dialect::Draft, Dialect::V03, Dialect::V03Proto];
/// The operations whose reply encoding differs between dialects.
const REPLIED: [OperationKind; 5] = [
    OperationKind::SendMessage,
    OperationKind::GetTask,
    OperationKind::ListTasks,
    OperationKind::GetPushConfig,
    OperationKind::ListPushConfigs,
];

fn run(input: &[u8]) {
    let Ok(raw) = Raw::parse(input) else { return };
    let exact = !may_differ(raw);
    if let Ok(request) = jsonrpc::decode(input) {
        for dialect in [Dialect::Draft, Dialect::V03] {
            if let Ok(operation) = dialect.decode_operation(&request.method, request.params) {
                check_request(dialect, &operation, exact);
                check_in_v1(&operation);
            }
        }
    }
    for kind in [OperationKind::SendMessage, OperationKind::CreatePushConfig] {
        if let Ok(operation) = v03_proto::operation::decode(kind, &address(), Some(raw)) {
            check_proto_request(&operation, exact);
            check_in_v1(&operation);
        }
    }
    check_server_of_v1(Node::new(raw, &Path::Root));
    for dialect in OLDER_DIALECTS {
        let node = Node::new(raw, &Path::Root);
        if let Ok(event) = dialect.decode_event(node) {
            check_frame(dialect, &event, exact);
            check_event_in_v1(event);
        }
        for kind in REPLIED {
            if let Ok(reply) = dialect.decode_reply(kind, node) {
                check_reply(dialect, kind, &reply, exact);
                check_reply_in_v1(kind, reply);
            }
        }
    }
}

/// What is decoded of an event, a reply or an error of 1.0 survives a round trip.
fn check_server_of_v1(node: Node<'_, '_>) {
    if let Ok(event) = v1::event::decode(node) {
        check_event_in_v1(event);
    }
    for (_, kind) in v1::operation::METHODS {
        if let Ok(reply) = v1::reply::decode(kind, node) {
            check_reply_in_v1(kind, reply);
        }
    }
    if let Ok(error) = v1::error::decode(node) {
        let text = encoded(|writer| v1::error::encode(writer, &error, Timestamp::from_millis(0)));
        assert_eq!(v1::error::decode(Node::new(raw(&text), &Path::Root)), Ok(error));
    }
}

/// Whether the encoded form may differ from the decoded one: an a2ad metadata entry that occurs twice, or that the
/// caller wrote, is not decoded unchanged; empty metadata is removed together with such an entry; and data at the
/// depth limit exceeds it when wrapped.
fn may_differ(raw: Raw<'_>) -> bool {
    let text: String = raw.get().split_ascii_whitespace().collect();
    let deepest = text.bytes().scan(0i32, |depth, byte| {
        *depth += i32::from(matches!(byte, b'{' | b'[')) - i32::from(matches!(byte, b'}' | b']'));
        Some(*depth)
    });
    let signs = ["2ad", "compat", "\\", r#""metadata":{}"#];
    signs.into_iter().any(|sign| text.contains(sign)) || deepest.max() > Some(26)
}

fn address() -> v03_proto::operation::Address {
    v03_proto::operation::Address { task: Some("t".into()), config: Some("p".into()), ..Default::default() }
}

fn check_request(dialect: Dialect, operation: &Operation, exact: bool) {
    let Some(method) = dialect.method(operation.kind()) else { return };
    let params = encoded(|writer| dialect.encode_operation(writer, operation));
    let decoded = dialect.decode_operation(method, Some(raw(&params)));
    let expected = if dialect == Dialect::Draft { operation.clone() } else { skill_in_metadata(operation) };
    check_round_trip(decoded.as_ref(), &expected, exact, &params);
}

/// Generations after the draft name the skill in the metadata.
fn skill_in_metadata(operation: &Operation) -> Operation {
    let mut operation = operation.clone();
    if let Operation::SendMessage(req) | Operation::SendStreamingMessage(req) = &mut operation {
        req.metadata = req.metadata_with_skill();
        req.skill = None;
    }
    operation
}

fn check_proto_request(operation: &Operation, exact: bool) {
    let body = encoded(|writer| v03_proto::operation::encode(writer, operation));
    let address = v03_proto::operation::address(operation);
    let decoded = v03_proto::operation::decode(operation.kind(), &address, Some(raw(&body)));
    check_round_trip(decoded.as_ref(), &skill_in_metadata(operation), exact, &body);
}

fn check_frame(dialect: Dialect, event: &Event, exact: bool) {
    Frames::new(dialect, Style::default()).encode(event, &mut |frame| {
        let decoded = dialect.decode_event(Node::new(raw(frame), &Path::Root));
        // The draft identifies artifacts by index, and a task by its updates.
        check_round_trip(decoded.as_ref(), event, exact && dialect != Dialect::Draft, frame);
    });
}

fn check_reply(dialect: Dialect, kind: OperationKind, reply: &Reply, exact: bool) {
    let text = encoded(|writer| dialect.encode_reply(writer, reply, Style::default()));
    let decoded = dialect.decode_reply(kind, Node::new(raw(&text), &Path::Root));
    check_round_trip(decoded.as_ref(), reply, exact && dialect != Dialect::Draft, &text);
}

fn check_round_trip<T: PartialEq + std::fmt::Debug, E: std::fmt::Debug>(
    decoded: Result<&T, &E>,
    value: &T,
    exact: bool,
    document: &[u8],
) {
    if exact {
        assert_eq!(decoded.ok(), Some(value), "{decoded:?} of {}", raw(document).get());
    }
}

fn check_in_v1(operation: &Operation) {
    let mut operation = skill_in_metadata(operation);
    match &mut operation {
        Operation::SendMessage(req) | Operation::SendStreamingMessage(req) => {
            assign_id(&mut req.message);
            req.push.iter_mut().for_each(first_scheme);
        }
        Operation::CreatePushConfig(config) => first_scheme(config),
        Operation::GetPushConfig(req) | Operation::DeletePushConfig(req) => {
            req.id.get_or_insert_with(|| "p".into());
        }
        _ => {}
    }
    let params = encoded(|writer| v1::operation::encode(writer, &operation));
    let decoded = v1::operation::decode(v1::operation::method(operation.kind()), Some(raw(&params)));
    assert_eq!(decoded, Ok(operation));
}

fn check_event_in_v1(mut event: Event) {
    match &mut event {
        Event::Task(task) => assign_ids(task),
        Event::Message(message) => assign_id(message),
        Event::Status(update) => update.status.message.iter_mut().for_each(assign_id),
        Event::Artifact(_) => {}
    }
    let text = encoded(|writer| v1::event::encode(writer, &event));
    assert_eq!(v1::event::decode(Node::new(raw(&text), &Path::Root)), Ok(event));
}

fn check_reply_in_v1(kind: OperationKind, mut reply: Reply) {
    match &mut reply {
        Reply::SentTask(task) | Reply::Task(task) => assign_ids(task),
        Reply::SentMessage(message) => assign_id(message),
        Reply::Tasks(page) => page.tasks.iter_mut().for_each(assign_ids),
        Reply::PushConfig(config) => first_scheme(config),
        Reply::PushConfigs(page) => page.configs.iter_mut().for_each(first_scheme),
        Reply::Deleted | Reply::Card(_) => {}
    }
    let text = encoded(|writer| v1::reply::encode(writer, &reply));
    let decoded: Read<Reply> = v1::reply::decode(kind, Node::new(raw(&text), &Path::Root));
    assert_eq!(decoded, Ok(reply));
}

fn assign_ids(task: &mut Task) {
    task.status.message.iter_mut().for_each(assign_id);
    task.history.iter_mut().for_each(assign_id);
}

/// Older generations accept messages without an id; the receiver assigns one.
fn assign_id(message: &mut Message) {
    if message.id.as_str().is_empty() {
        message.id = "m".into();
    }
}

/// 1.0 has one scheme per webhook.
fn first_scheme(config: &mut PushConfig) {
    config.authentication.iter_mut().for_each(|auth| {
        auth.schemes.truncate(1);
        // 1.0 has no place for other members.
        auth.extra = None;
    });
}

fn encoded(write: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut writer = Writer::new();
    write(&mut writer);
    writer.finish()
}

fn raw(document: &[u8]) -> Raw<'_> {
    Raw::parse(document).expect("the writer produces valid JSON")
}

/// The samples of the codecs' tests. JSON-RPC parameters are in directories named after their method and are wrapped
/// in a request.
fn corpus() -> Vec<Vec<u8>> {
    const TESTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/protocol/tests");
    let mut corpus = Vec::new();
    for folder in ["samples/draft", "samples/v03", "samples/v1", "v03_proto/samples"] {
        let folder = File::new(TESTS).join(folder);
        collect(&folder, &mut |path| {
            let text = fs::read_to_string(path).unwrap_or_default();
            let lines = path.extension().is_some_and(|extension| extension == "jsonl");
            let documents: Vec<&str> = if lines { text.lines().collect() } else { vec![text.as_str()] };
            let place = path.strip_prefix(&folder).unwrap_or(path);
            let method = place.strip_prefix("operation").ok().and_then(File::parent);
            let method = method.and_then(File::to_str).filter(|method| !method.is_empty());
            corpus.extend(documents.into_iter().map(|document| match method {
                Some(method) => request(method, document).into_bytes(),
                None => document.into(),
            }));
        });
    }
    corpus
}

fn request(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{}}}"#, params.trim_end())
}

/// Every sample in a directory tree, in the order of names, so that the same seed gives the same inputs.
fn collect(folder: &File, each: &mut dyn FnMut(&File)) {
    let entries = fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            collect(&path, each);
        } else if path.file_name().is_some_and(|name| name != "schema.json") {
            each(&path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Dialect, Node, OLDER_DIALECTS, Path, REPLIED, Raw, TARGET, address, corpus, jsonrpc, run, v03_proto,
    };
    use crate::mutate::Mutator;
    use protocol::OperationKind;

    /// What an input can be decoded as.
    fn decodable(input: &[u8]) -> Vec<(Dialect, &'static str)> {
        let Ok(raw) = Raw::parse(input) else { return Vec::new() };
        let mut found = Vec::new();
        if let Ok(request) = jsonrpc::decode(input) {
            for dialect in [Dialect::Draft, Dialect::V03] {
                if let Ok(operation) = dialect.decode_operation(&request.method, request.params) {
                    found.extend(dialect.method(operation.kind()).map(|method| (dialect, method)));
                }
            }
        }
        for (kind, what) in [(OperationKind::SendMessage, "send"), (OperationKind::CreatePushConfig, "push")]
        {
            if v03_proto::operation::decode(kind, &address(), Some(raw)).is_ok() {
                found.push((Dialect::V03Proto, what));
            }
        }
        for dialect in OLDER_DIALECTS {
            let node = Node::new(raw, &Path::Root);
            if dialect.decode_event(node).is_ok() {
                found.push((dialect, "frame"));
            }
            if REPLIED.iter().any(|kind| dialect.decode_reply(*kind, node).is_ok()) {
                found.push((dialect, "reply"));
            }
        }
        found
    }

    #[test]
    fn corpus_has_requests_frames_and_replies_of_every_dialect() {
        let corpus = corpus();
        let found: Vec<_> = corpus.iter().flat_map(|input| decodable(input)).collect();
        for dialect in OLDER_DIALECTS {
            assert!(
                found.contains(&(dialect, "frame")) && found.contains(&(dialect, "reply")),
                "{dialect:?}"
            );
        }
        assert!(found.contains(&(Dialect::V03Proto, "send")) && found.contains(&(Dialect::V03Proto, "push")));
        for (method, _) in protocol::dialect::draft::operation::METHODS {
            assert!(found.contains(&(Dialect::Draft, method)), "{method}");
        }
        for (method, _) in protocol::dialect::v03::operation::METHODS {
            assert!(found.contains(&(Dialect::V03, method)), "{method}");
        }
        corpus.iter().for_each(|input| run(input));
    }

    #[test]
    fn some_mutated_inputs_are_still_accepted() {
        let mutator = Mutator::new(corpus(), TARGET.dictionary, 7);
        let decodable =
            (1_000..3_000).filter(|number| !decodable(&mutator.input(*number)).is_empty()).count();
        assert!((400..1_900).contains(&decodable), "{decodable} of 2000");
    }
}
