//! The output of the draft dialect conforms to the draft's published JSON schema
//! (`samples/draft/schema.json`).
//!
//! The schema allows unknown members and accepts a part as any of three types, so a wrong name would pass.
//! Therefore each object is closed before validation: only members the schema names are allowed. The one
//! exception is the history of a task, which the specification text has but the schema lacks.

#![expect(clippy::disallowed_types, reason = "the validator works on serde_json's values")]

use std::fs;

use a2ad_protocol::{
    Dialect, Error, ErrorKind, Event, OperationKind, Reply, Violation,
    dialect::{Frames, Style},
    jsonrpc::{self, Id},
};
use jsonschema::Validator;
use proptest::{proptest, test_runner::TestCaseResult};
use serde_json::{Value, json};

use crate::{
    codec::{next_frames, now, read_event, read_operation, read_reply, write_operation},
    values,
};

proptest! {
    #[test]
    fn every_reply_is_valid(reply in values::reply()) {
        let names: &[&str] = match &reply {
            Reply::SentTask(_) | Reply::SentMessage(_) => &["SendTaskResponse"],
            Reply::Task(_) => &["GetTaskResponse", "CancelTaskResponse"],
            Reply::PushConfig(_) => &["SetTaskPushNotificationResponse", "GetTaskPushNotificationResponse"],
            _ => return Ok(()),
        };
        for style in STYLES {
            let answer = result(|writer| Dialect::Draft.encode_reply(writer, &reply, style));
            names.iter().for_each(|name| check(name, &answer));
        }
    }

    #[test]
    fn every_frame_is_valid(event in values::event()) {
        frames_are_valid(&event)?;
    }
}

/// `cancelled` is missing: that spelling belongs to a compatibility profile, not to the schema.
const STYLES: [Style; 2] = [
    Style { both_tags: false, cancelled: false, data_as_text: false, ..Style::OWN },
    Style { both_tags: false, cancelled: false, data_as_text: true, ..Style::OWN },
];

#[test]
fn every_error_is_valid() {
    let own = [
        (ErrorKind::Parse, "JSONParseError"),
        (ErrorKind::InvalidRequest, "InvalidRequestError"),
        (ErrorKind::MethodNotFound, "MethodNotFoundError"),
        (ErrorKind::InvalidParams, "InvalidParamsError"),
        (ErrorKind::Internal, "InternalError"),
        (ErrorKind::TaskNotFound, "TaskNotFoundError"),
        (ErrorKind::TaskNotCancelable, "TaskNotCancelableError"),
        (ErrorKind::PushNotificationNotSupported, "PushNotificationNotSupportedError"),
        (ErrorKind::UnsupportedOperation, "UnsupportedOperationError"),
    ];
    let answers = [
        "SendTaskResponse",
        "GetTaskResponse",
        "CancelTaskResponse",
        "SendTaskStreamingResponse",
        "SetTaskPushNotificationResponse",
        "GetTaskPushNotificationResponse",
    ];
    for kind in ErrorKind::ALL {
        for violations in [Vec::new(), vec![Violation::new("message.parts", "expected at least one part")]] {
            let error = Error { violations, ..Error::new(kind, "text") };
            let bytes =
                jsonrpc::encode_error(&id(), |writer| Dialect::Draft.encode_error(writer, &error, now()));
            let answer = parse(&bytes);
            answers.iter().for_each(|name| check(name, &answer));
            check("JSONRPCError", &answer["error"]);
            if let Some((_, name)) = own.iter().find(|row| row.0 == kind) {
                check(name, &answer["error"]);
            }
        }
    }
}

#[test]
fn every_encoded_sample_is_valid() {
    let replies = [
        ("send", OperationKind::SendMessage, "SendTaskResponse"),
        ("get", OperationKind::GetTask, "GetTaskResponse"),
        ("cancel", OperationKind::CancelTask, "CancelTaskResponse"),
        ("pushNotification/set", OperationKind::CreatePushConfig, "SetTaskPushNotificationResponse"),
        ("pushNotification/get", OperationKind::GetPushConfig, "GetTaskPushNotificationResponse"),
    ];
    for (method, kind, name) in replies {
        for line in lines(&format!("reply/tasks/{method}")) {
            let reply = read_reply(Dialect::Draft, kind, &line).unwrap();
            check(name, &result(|writer| Dialect::Draft.encode_reply(writer, &reply, Style::default())));
        }
    }
    for line in lines("event") {
        frames_are_valid(&read_event(Dialect::Draft, &line).unwrap()).unwrap();
    }
}

#[test]
fn requests_are_valid_except_for_members_missing_in_the_schema() {
    let requests = [
        ("send", "SendTaskRequest"),
        ("sendSubscribe", "SendTaskStreamingRequest"),
        ("get", "GetTaskRequest"),
        ("cancel", "CancelTaskRequest"),
        ("resubscribe", "TaskResubscriptionRequest"),
        ("pushNotification/set", "SetTaskPushNotificationRequest"),
        ("pushNotification/get", "GetTaskPushNotificationRequest"),
    ];
    for (method, name) in requests {
        for line in lines(&format!("operation/tasks/{method}")) {
            let method = format!("tasks/{method}");
            let operation = read_operation(Dialect::Draft, &method, &line).unwrap();
            let mut params = parse(write_operation(Dialect::Draft, &operation).as_bytes());
            // Defined by the specification text, the reference code or a compatibility profile, not by the
            // schema.
            for ours in ["acceptedOutputModes", "async", "skill"] {
                params.as_object_mut().unwrap().remove(ours);
            }
            check(name, &json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}));
        }
    }
}

#[test]
fn validation_detects_errors() {
    let task = |task: Value| json!({"jsonrpc": "2.0", "id": 1, "result": task});
    let valid = task(json!({"id": "t", "status": {"state": "working"}, "history": []}));
    assert!(validator("GetTaskResponse").is_valid(&valid));
    let wrong = [
        task(json!({"status": {"state": "working"}})),
        task(json!({"id": "t", "status": {"state": "rejected"}})),
        task(json!({"id": "t", "status": {"state": "working"}, "kind": "task"})),
        task(
            json!({"id": "t", "status": {"state": "working"}, "artifacts": [{"parts": [{"kind": "text", "text": "x"}]}]}),
        ),
        task(
            json!({"id": "t", "status": {"state": "working"}, "artifacts": [{"parts": [{"type": "data", "data": 5}]}]}),
        ),
    ];
    for answer in wrong {
        assert!(!validator("GetTaskResponse").is_valid(&answer), "{answer}");
    }
}

fn frames_are_valid(event: &Event) -> TestCaseResult {
    for style in STYLES {
        for frame in next_frames(&mut Frames::new(Dialect::Draft, style), event) {
            let frame = parse(frame.as_bytes());
            check("SendTaskStreamingResponse", &json!({"jsonrpc": "2.0", "id": 1, "result": frame}));
        }
    }
    Ok(())
}

fn result(write: impl FnOnce(&mut a2ad_protocol::json::write::Writer)) -> Value {
    parse(&jsonrpc::encode_result(&id(), write))
}

/// The validator's numbers have less precision than ours.
fn parse(bytes: &[u8]) -> Value {
    serde_json::from_str(&String::from_utf8_lossy(bytes).replace("1e400", "1e40")).unwrap()
}

fn id() -> Id {
    jsonrpc::decode(br#"{"jsonrpc":"2.0","id":"a","method":"m"}"#).unwrap().id
}

/// Asserts that the value conforms to the schema's definition of this name.
fn check(name: &str, value: &Value) {
    thread_local! {
        static VALIDATORS: std::cell::RefCell<std::collections::HashMap<String, Validator>> = Default::default();
    }
    VALIDATORS.with_borrow_mut(|validators| {
        let validator = validators.entry(name.to_owned()).or_insert_with(|| validator(name));
        if let Err(error) = validator.validate(value) {
            panic!("{name} at {}: {error}: {value}", error.instance_path());
        }
    });
}

/// The definition of this name, with every object closed.
fn validator(name: &str) -> Validator {
    let mut schema: Value =
        serde_json::from_str(&fs::read_to_string("tests/samples/draft/schema.json").unwrap()).unwrap();
    let definitions = schema["$defs"].as_object_mut().unwrap();
    definitions["Task"]["properties"]["history"] =
        json!({"type": "array", "items": {"$ref": "#/$defs/Message"}});
    for definition in definitions.values_mut().filter_map(Value::as_object_mut) {
        if definition.contains_key("properties") && !definition.contains_key("additionalProperties") {
            definition.insert("additionalProperties".to_owned(), Value::Bool(false));
        }
    }
    schema["allOf"] = json!([{"$ref": format!("#/$defs/{name}")}]);
    jsonschema::options().should_validate_formats(true).build(&schema).unwrap()
}

/// Every document of every sample in a folder.
fn lines(folder: &str) -> Vec<String> {
    let files = fs::read_dir(format!("tests/samples/draft/{folder}")).unwrap();
    let texts = files.map(|file| file.unwrap().path()).filter(|path| path.is_file()).flat_map(|path| {
        let text = fs::read_to_string(&path).unwrap();
        let each_line = path.extension().is_some_and(|extension| extension == "jsonl");
        if each_line { text.lines().map(str::to_owned).collect() } else { vec![text] }
    });
    texts.collect()
}
