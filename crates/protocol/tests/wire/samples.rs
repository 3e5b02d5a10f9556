//! Samples as files: each is decoded, encoded again, and compared byte for byte with the expected output.
//!
//! The expected output of `x.json` is `x.expected.json`, or the sample itself if there is no such file. In a
//! `.jsonl` file each line is a sample. Operations and replies are in folders named after their method. An
//! envelope is a whole request, and its expected output is the response of a server that echoes the decoded
//! request. Adding a file adds a test; no test writes one.

use std::{
    fs,
    path::{Path, PathBuf},
};

use a2ad_protocol::{
    Operation,
    dialect::v1,
    jsonrpc::{self, Refusal},
};

use crate::codec::{
    kind, now, read_error, read_event, read_operation, read_reply, write_error, write_event, write_operation,
    write_reply,
};

const ROOT: &str = "tests/samples/v1";

#[test]
fn operations_are_written_exactly() {
    check_family("operation");
}

#[test]
fn replies_are_written_exactly() {
    check_family("reply");
}

#[test]
fn events_are_written_exactly() {
    check_family("event");
}

#[test]
fn errors_are_written_exactly() {
    check_family("error");
}

#[test]
fn envelopes_are_answered_exactly() {
    check_family("envelope");
}

#[test]
fn expected_output_is_stable() {
    for family in ["operation", "reply", "event", "error"] {
        for sample in samples(family) {
            let expected = expected_of(&sample);
            check(&expected, &expected);
        }
    }
}

#[test]
fn body_that_is_not_utf8_is_rejected() {
    let refusal = jsonrpc::decode(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}").unwrap_err();
    assert_eq!((refusal.error.kind.row().code, refusal.id.as_json()), (-32700, "null"));
    let refusal = jsonrpc::decode("\u{feff}{}".as_bytes()).unwrap_err();
    assert_eq!(refusal.error.kind.row().code, -32700);
}

fn check_family(family: &str) {
    for sample in samples(family) {
        check(&sample, &expected_of(&sample));
    }
}

/// Asserts that the output for the sample equals the expected file, byte for byte.
fn check(sample: &Path, expected: &Path) {
    let text = fs::read_to_string(sample).unwrap();
    let lines = sample.extension().is_some_and(|extension| extension == "jsonl");
    let documents: Vec<&str> = if lines { text.lines().collect() } else { vec![&text] };
    let written: String = documents.iter().map(|document| round_trip(sample, document) + "\n").collect();
    let expected_text = fs::read_to_string(expected).unwrap();
    for (at, (line, expected_line)) in written.lines().zip(expected_text.lines()).enumerate() {
        assert_eq!(line, expected_line, "{} line {}", sample.display(), at + 1);
    }
    assert_eq!(written, expected_text, "{}", sample.display());
}

/// Decodes a document and encodes it again, as determined by the folders of its file.
fn round_trip(sample: &Path, text: &str) -> String {
    let folders: Vec<&str> =
        sample.strip_prefix(ROOT).unwrap().iter().map(|name| name.to_str().unwrap()).collect();
    match folders[..] {
        ["operation", method, _] => write_operation(&read_operation(method, text).unwrap()),
        ["reply", method, _] => write_reply(&read_reply(kind(method), text).unwrap()),
        ["event", _] => write_event(&read_event(text).unwrap()),
        ["error", _] => write_error(&read_error(text).unwrap()),
        ["envelope", _] => respond(text),
        _ => panic!("{} is not a sample folder", sample.display()),
    }
}

/// A server that echoes the decoded request.
fn respond(body: &str) -> String {
    let respond = match decode_request(body) {
        Ok((id, operation)) => jsonrpc::encode_result(&id, |writer| {
            writer.object(|writer| {
                writer.text("method", v1::operation::method(operation.kind()));
                v1::operation::encode(writer.key("params"), &operation);
            });
        }),
        Err(Refusal { id, error }) => {
            jsonrpc::encode_error(&id, |writer| v1::error::encode(writer, &error, now()))
        }
    };
    String::from_utf8(respond).unwrap()
}

fn decode_request(body: &str) -> Result<(jsonrpc::Id, Operation), Refusal> {
    let request = jsonrpc::decode(body.as_bytes())?;
    match v1::operation::decode(&request.method, request.params) {
        Ok(operation) => Ok((request.id, operation)),
        Err(error) => Err(Refusal { id: request.id, error }),
    }
}

fn samples(family: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(&Path::new(ROOT).join(family), &mut found);
    assert!(!found.is_empty(), "{family} must have samples");
    found
}

fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, found);
        } else if !path.to_str().unwrap().contains(".expected.") {
            found.push(path);
        }
    }
}

fn expected_of(sample: &Path) -> PathBuf {
    let extension = sample.extension().unwrap().to_str().unwrap();
    let expected = sample.with_extension(format!("expected.{extension}"));
    if expected.exists() { expected } else { sample.to_owned() }
}
