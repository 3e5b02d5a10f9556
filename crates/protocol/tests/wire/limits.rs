//! Size limits: large input that is accepted, and oversized input that is rejected with a violation.

use std::{hint::black_box, time::Instant};

use a2ad_protocol::{
    Artifact, Content, Error, ErrorKind, Event, Json, Operation, OperationKind, Part, Reply, Task, Violation,
    dialect::v1::{self, message::MAX_PARTS},
    json::{MAX_DEPTH, MAX_NODES, read::MAX_TEXT_BYTES},
    jsonrpc,
};

use crate::codec::{read_event, read_operation, read_reply, write_event, write_operation, write_reply};

#[test]
fn body_of_ten_megabytes_round_trips() {
    const SIZE: usize = 10 * 1024 * 1024;
    let contents = [
        format!(r#"{{"text":"{}"}}"#, "é\\n".repeat(SIZE / 4)),
        format!(r#"{{"raw":"{}"}}"#, "aGkh".repeat(SIZE / 4)),
        format!(r#"{{"data":"{}"}}"#, "x".repeat(SIZE)),
    ];
    for content in contents {
        let params = format!(r#"{{"message":{{"messageId":"m-1","role":"ROLE_USER","parts":[{content}]}}}}"#);
        let body = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{params}}}"#);
        let request = jsonrpc::decode(body.as_bytes()).unwrap();
        let operation = v1::operation::decode(&request.method, request.params).unwrap();
        // Not `assert_eq`: a failure would print all of it.
        assert!(write_operation(&operation) == params);
    }
}

#[test]
fn message_has_at_most_a_thousand_parts() {
    let send = |parts: usize| read_operation("SendMessage", &format!(r#"{{"message":{}}}"#, message(parts)));
    let Ok(Operation::SendMessage(req)) = send(MAX_PARTS) else {
        panic!("a thousand parts must be accepted")
    };
    assert_eq!(req.message.parts.len(), 1_000);
    let expected = Error::invalid_params(Violation::new("message.parts", "expected at most 1000 parts"));
    assert_eq!(send(MAX_PARTS + 1), Err(expected));
}

#[test]
fn task_with_an_artifact_of_many_chunks_round_trips() {
    // 1,001 chunks of one part each: every event is within the limit, so the resulting task must be readable
    // too.
    let first = r#"{"artifactUpdate":{"taskId":"t","contextId":"c","artifact":{"artifactId":"a","parts":[{"text":"x"}]},"append":true}}"#;
    let Ok(Event::Artifact(chunk)) = read_event(first) else { panic!("expected an artifact") };
    let mut task = task();
    task.artifacts.push(chunk.artifact);
    task.artifacts[0].parts = vec![Part::text("x"); MAX_PARTS + 1];
    let reply = Reply::Task(task.clone());
    assert_eq!(read_reply(OperationKind::GetTask, &write_reply(&reply)), Ok(reply));
    let event = Event::Task(task);
    assert_eq!(read_event(&write_event(&event)), Ok(event));
}

/// As fast as reading the result, more or less: a search through all members for each would be a hundred times slower.
#[test]
fn merging_objects_takes_time_in_proportion_to_their_members() {
    let object = |from: usize| {
        let members: Vec<_> = (from..from + 4_900).map(|name| format!(r#""{name}":0"#)).collect();
        Json::parse(&format!("{{{}}}", members.join(","))).unwrap()
    };
    let (first, second) = (object(10_000), object(20_000));
    let merged = Json::merge_objects(&first, &second).unwrap();
    // The fastest of a few runs: whatever else the machine does makes some of them slower.
    let fastest = |action: &dyn Fn()| {
        let timed = |_| {
            let started = Instant::now();
            action();
            started.elapsed()
        };
        (0..10).map(timed).min().unwrap()
    };
    let merging = fastest(&|| drop(black_box(Json::merge_objects(black_box(&first), black_box(&second)))));
    let reading = fastest(&|| drop(black_box(Json::parse(black_box(merged.as_str())))));
    assert!(merging < reading * 30, "merging {merging:?}, reading {reading:?}");
}

#[test]
fn merging_respects_the_size_limit() {
    let object =
        |name: &str, count| Json::parse(&format!(r#"{{"{name}":[0{}]}}"#, ",0".repeat(count))).unwrap();
    assert!(Json::merge_objects(&object("a", 9_000), &object("b", 9_000)).is_none());
    let mut task = task();
    task.metadata = Json::merge_objects(&object("a", 4_000), &object("b", 4_000));
    let event = Event::Task(task);
    assert!(read_event(&write_event(&event)) == Ok(event));
}

#[test]
fn size_limit_counts_values_not_names() {
    // One object and 9,999 numbers: the maximum number of values.
    let members: Vec<String> = (1..MAX_NODES).map(|at| format!(r#""n{at}":{at}"#)).collect();
    assert!(Json::parse(&format!("{{{}}}", members.join(","))).is_ok());
}

#[test]
fn value_too_deep_or_too_large_names_its_field() {
    let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let send = |part: &str, rest: &str| {
        let message = format!(r#"{{"messageId":"m","role":1,"parts":[{part}]}}"#);
        read_operation("SendMessage", &format!(r#"{{"message":{message}{rest}}}"#))
    };
    assert!(send(&format!(r#"{{"data":{}}}"#, deep(MAX_DEPTH)), "").is_ok());
    let wide = format!("[0{}]", ",0".repeat(MAX_NODES));
    let too_deep = "expected a value nested at most 30 deep";
    let too_wide = "expected a value of at most 10000 nodes";
    #[rustfmt::skip]
    let cases = [
        (format!(r#"{{"data":{}}}"#, deep(MAX_DEPTH + 1)), String::new(), "message.parts[0].data", too_deep),
        (format!(r#"{{"data":{wide}}}"#), String::new(), "message.parts[0].data", too_wide),
        (format!(r#"{{"text":"","metadata":{{"a":{}}}}}"#, deep(MAX_DEPTH)), String::new(),
         "message.parts[0].metadata", too_deep),
        (r#"{"text":""}"#.to_owned(), format!(r#","metadata":{{"a":{wide}}}"#), "metadata", too_wide),
    ];
    for (part, rest, field, problem) in cases {
        let Err(error) = send(&part, &rest) else { panic!("{field} is accepted") };
        assert_eq!(error.violations, [Violation::new(field, problem)]);
    }
}

#[test]
fn non_content_strings_are_limited_in_requests_only() {
    let long = "x".repeat(MAX_TEXT_BYTES + 1);
    // The limit applies to the decoded string, not to its bytes in the document.
    let escaped = "\\u0078".repeat(MAX_TEXT_BYTES + 1);
    let fits = "\\u0078".repeat(MAX_TEXT_BYTES);
    let too_long = "expected at most 65536 bytes";
    let send = |part: &str, rest: &str| {
        let message = format!(r#"{{"messageId":"m","role":1,"parts":[{part}]}}"#);
        read_operation("SendMessage", &format!(r#"{{"message":{message},{rest}}}"#))
    };
    let texts = format!(r#"["{}"]"#, vec!["x".repeat(1_000); 1_100].join("\",\""));
    #[rustfmt::skip]
    let cases = [
        (String::new(), format!(r#""tenant":"{long}""#), "tenant", too_long),
        (String::new(), format!(r#""tenant":"{escaped}""#), "tenant", too_long),
        (String::new(), format!(r#""metadata":{{"skillId":"{long}"}}"#), "metadata.skillId", too_long),
        (String::new(), format!(r#""{long}":1"#), "", "expected member names of at most 65536 bytes"),
        (format!(r#","filename":"{long}""#), r#""a":1"#.to_owned(), "message.parts[0].filename", too_long),
        (String::new(), format!(r#""configuration":{{"acceptedOutputModes":{texts}}}"#),
         "configuration.acceptedOutputModes", "expected strings of at most 1048576 bytes in all"),
    ];
    for (part, rest, field, problem) in cases {
        let Err(error) = send(&format!(r#"{{"text":"x"{part}}}"#), &rest) else {
            panic!("{field} is accepted")
        };
        assert_eq!(error.violations, [Violation::new(field, problem)]);
    }
    let rest = format!(r#""tenant":"{fits}","metadata":{{"{long}":"{long}"}}"#);
    assert!(send(&format!(r#"{{"text":"{long}"}}"#), &rest).is_ok(), "content is not limited");
    let mut kept = task();
    kept.artifacts = vec![Artifact { description: Some(long), ..Artifact::new("a", vec![Part::text("x")]) }];
    let event = Event::Task(kept);
    assert!(read_event(&write_event(&event)) == Ok(event), "our own output is not limited");
}

#[test]
fn numbers_and_enum_values_are_limited_in_length() {
    let long = "0".repeat(2_000);
    let cases = [
        (format!(r#"{{"id":"t","historyLength":1{long}}}"#), "historyLength", "expected a 32-bit integer"),
        (format!(r#"{{"id":"t","historyLength":"{long}"}}"#), "historyLength", "expected a 32-bit integer"),
    ];
    for (params, field, problem) in cases {
        let Err(error) = read_operation("GetTask", &params) else { panic!("{field} is accepted") };
        assert_eq!(error.violations, [Violation::new(field, problem)]);
    }
}

#[test]
fn unknown_members_may_nest_without_limit() {
    let depth = 200_000;
    let unknown = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let operation = read_operation("GetTask", &format!(r#"{{"zz":{unknown},"id":"t-1"}}"#)).unwrap();
    assert_eq!(write_operation(&operation), r#"{"id":"t-1"}"#);
}

#[test]
fn total_size_beyond_32_bits_round_trips() {
    let text = r#"{"tasks":[],"nextPageToken":"","pageSize":50,"totalSize":2147483648}"#;
    let reply = read_reply(OperationKind::ListTasks, text).map(|reply| write_reply(&reply));
    assert_eq!(reply.as_deref(), Ok(text));
}

#[test]
fn unknown_method_is_truncated_in_the_error() {
    let Err(error) = v1::operation::decode(&"x".repeat(1_000_000), None) else { panic!("no such method") };
    assert_eq!(error.kind, ErrorKind::MethodNotFound);
    assert!(error.message.len() < 2_000, "{} bytes", error.message.len());
}

#[test]
fn empty_content_is_valid() {
    let cases = [
        (r#"{"text":""}"#, Content::Text(String::new())),
        (r#"{"raw":""}"#, Content::Raw(Vec::new())),
        (r#"{"url":""}"#, Content::Url(String::new())),
        (r#"{"data":null}"#, Content::Data(Json::parse("null").unwrap())),
    ];
    for (part, expected) in cases {
        let event = format!(r#"{{"message":{{"messageId":"m","role":2,"parts":[{part}]}}}}"#);
        let Ok(Event::Message(message)) = read_event(&event) else { panic!("{event}") };
        assert_eq!(message.parts, [Part::new(expected)]);
    }
}

fn message(parts: usize) -> String {
    let parts = vec![r#"{"text":"x"}"#; parts].join(",");
    format!(r#"{{"messageId":"m-1","role":"ROLE_USER","parts":[{parts}]}}"#)
}

fn task() -> Task {
    let text = r#"{"task":{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}}"#;
    let Ok(Event::Task(task)) = read_event(text) else { panic!("expected a task") };
    task
}
