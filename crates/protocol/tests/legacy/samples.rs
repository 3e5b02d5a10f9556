//! Samples as files: each is decoded, encoded again, and compared byte for byte with the expected output.
//!
//! The expected output of `x.json` is `x.expected.json`, or the sample itself if there is no such file. In a
//! `.jsonl` file each line is a sample; the lines of an event's file are one stream. Operations and replies
//! are in folders named after their method. An envelope is a whole request, and its expected output is the
//! response of a server that echoes the decoded request. Adding a file adds a test; no test writes one.

use std::{
    fs,
    path::{Path, PathBuf},
};

use a2ad_protocol::{
    Dialect,
    dialect::{Frames, Style, v1},
    jsonrpc::{self, Refusal},
};

use crate::codec::{
    kind, next_frames, now, read_error, read_event, read_operation, read_reply, write_error, write_operation,
    write_reply,
};

const ROOT: &str = "tests/samples";
/// The dialects with a JSON-RPC binding.
const JSON_RPC: [Dialect; 3] = [Dialect::Draft, Dialect::V03, Dialect::V1];

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
    for dialect in JSON_RPC {
        for family in ["operation", "reply", "event", "error"] {
            for sample in samples(dialect, family) {
                let expected = expected_of(&sample);
                check(dialect, &expected, &expected);
            }
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
    for dialect in JSON_RPC {
        for sample in samples(dialect, family) {
            check(dialect, &sample, &expected_of(&sample));
        }
    }
}

/// Asserts that the output for the sample equals the expected file, byte for byte.
fn check(dialect: Dialect, sample: &Path, expected: &Path) {
    let text = fs::read_to_string(sample).unwrap();
    let lines = sample.extension().is_some_and(|extension| extension == "jsonl");
    let documents: Vec<&str> = if lines { text.lines().collect() } else { vec![&text] };
    let mut stream = Frames::new(dialect, Style::default());
    let written: String = documents
        .iter()
        .flat_map(|document| round_trip(dialect, sample, document, &mut stream))
        .map(|line| line + "\n")
        .collect();
    let expected_text = fs::read_to_string(expected).unwrap();
    for (at, (line, expected_line)) in written.lines().zip(expected_text.lines()).enumerate() {
        assert_eq!(line, expected_line, "{} line {}", sample.display(), at + 1);
    }
    assert_eq!(written, expected_text, "{}", sample.display());
}

/// Decodes a document and encodes it again, as determined by the folders of its file.
fn round_trip(dialect: Dialect, sample: &Path, text: &str, stream: &mut Frames) -> Vec<String> {
    let place = sample.strip_prefix(Path::new(ROOT).join(crate::codec::sample_folder(dialect))).unwrap();
    let folders: Vec<&str> = place.iter().map(|name| name.to_str().unwrap()).collect();
    let method = || folders[1..folders.len() - 1].join("/");
    let name = sample.display();
    match folders[0] {
        "operation" => {
            let operation = read_operation(dialect, &method(), text);
            vec![write_operation(
                dialect,
                &operation.unwrap_or_else(|error| panic!("{name}: {error}: {text}")),
            )]
        }
        "reply" => {
            let reply = read_reply(dialect, kind(dialect, &method()), text);
            vec![write_reply(dialect, &reply.unwrap_or_else(|error| panic!("{name}: {error:?}: {text}")))]
        }
        "event" => {
            let event = read_event(dialect, text);
            next_frames(stream, &event.unwrap_or_else(|error| panic!("{name}: {error:?}: {text}")))
        }
        "error" => vec![write_error(dialect, &read_error(dialect, text).unwrap())],
        "envelope" => vec![respond(dialect, text)],
        _ => panic!("{name} is not a sample folder"),
    }
}

/// A server that echoes the decoded request.
fn respond(dialect: Dialect, body: &str) -> String {
    let understood = jsonrpc::decode(body.as_bytes()).and_then(|request| {
        let operation = match dialect {
            // The codec itself: its samples do not name the parameters as a whole.
            Dialect::V1 => v1::operation::decode(&request.method, request.params),
            _ => dialect.decode_operation(&request.method, request.params),
        };
        operation
            .map(|operation| (request.id.clone(), operation))
            .map_err(|error| Refusal { id: request.id, error })
    });
    let respond = match understood {
        Ok((id, operation)) => jsonrpc::encode_result(&id, |writer| {
            writer.object(|writer| {
                writer.maybe_text("method", dialect.method(operation.kind()));
                dialect.encode_operation(writer.key("params"), &operation);
            });
        }),
        Err(Refusal { id, error }) => {
            jsonrpc::encode_error(&id, |writer| dialect.encode_error(writer, &error, now()))
        }
    };
    String::from_utf8(respond).unwrap()
}

fn samples(dialect: Dialect, family: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    collect(&Path::new(ROOT).join(crate::codec::sample_folder(dialect)).join(family), &mut found);
    assert!(!found.is_empty(), "{dialect:?} {family} must have samples");
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
