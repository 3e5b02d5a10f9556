//! Samples as files: each line is decoded, encoded again, and compared byte for byte with the expected
//! output.
//!
//! The expected output of `x.jsonl` is `x.expected.jsonl`, or the sample itself if there is no such file.
//! Operation and reply files are named after their operation; the path of an operation contains the task
//! `t-1`. Adding a file adds a test; no test writes one.

use std::{
    fs,
    path::{Path, PathBuf},
};

use a2ad_protocol::OperationKind;

use crate::codec::{
    at, read_error, read_event, read_operation, read_reply, write_error, write_event, write_operation,
    write_reply,
};

const ROOT: &str = "tests/v03_proto/samples";

#[test]
fn operations_are_written_exactly() {
    check_family("operation", |name, body| {
        let operation = read_operation(kind(name), &at("t-1", "", &[]), Some(body)).unwrap();
        let (address, written) = write_operation(&operation);
        assert_eq!(address.task.is_some(), kind(name) == OperationKind::CreatePushConfig);
        written
    });
}

#[test]
fn replies_are_written_exactly() {
    check_family("reply", |name, body| write_reply(&read_reply(kind(name), body).unwrap()));
}

#[test]
fn events_are_written_exactly() {
    check_family("event", |_, body| write_event(&read_event(body).unwrap()));
}

#[test]
fn errors_are_written_exactly() {
    check_family("error", |_, body| write_error(&read_error(body).unwrap()));
}

fn check_family(family: &str, round_trip: impl Fn(&str, &str) -> String) {
    let files: Vec<PathBuf> =
        fs::read_dir(Path::new(ROOT).join(family)).unwrap().map(|entry| entry.unwrap().path()).collect();
    let samples: Vec<&PathBuf> =
        files.iter().filter(|path| !path.to_str().unwrap().contains(".expected.")).collect();
    assert!(!samples.is_empty(), "{family} must have samples");
    for sample in samples {
        let other = sample.with_extension("expected.jsonl");
        let expected = if other.exists() { &other } else { sample };
        check(sample, expected, &round_trip);
        check(expected, expected, &round_trip);
    }
}

fn check(sample: &Path, expected: &Path, round_trip: &impl Fn(&str, &str) -> String) {
    let name = sample.file_stem().unwrap().to_str().unwrap();
    let text = fs::read_to_string(sample).unwrap();
    let expected = fs::read_to_string(expected).unwrap();
    assert_eq!(text.lines().count(), expected.lines().count(), "{}", sample.display());
    for (at, (line, expected)) in text.lines().zip(expected.lines()).enumerate() {
        assert_eq!(round_trip(name, line), expected, "{} line {}", sample.display(), at + 1);
    }
}

/// The operation a file is named after: its name up to the first dot or dash.
fn kind(name: &str) -> OperationKind {
    match name.split(['.', '-']).next().unwrap() {
        "send" => OperationKind::SendMessage,
        "get" => OperationKind::GetTask,
        "list" => OperationKind::ListTasks,
        "push" => OperationKind::CreatePushConfig,
        "pushes" => OperationKind::ListPushConfigs,
        "delete" => OperationKind::DeletePushConfig,
        "card" => OperationKind::GetExtendedCard,
        other => panic!("unknown operation {other}"),
    }
}
