//! Documents of every kind and dialect, explained in all dialects.

#![allow(clippy::unwrap_used, reason = "a test fails on any error")]

use std::{fs, path::Path};

use a2ad_protocol::{Timestamp, explain};

fn explain(input: &str) -> Result<String, explain::Error> {
    explain::explain(input, Timestamp::from_millis(0))
}

/// The section of the output for one dialect.
fn section<'a>(shown: &'a str, dialect: &str) -> &'a str {
    let start = shown.find(&format!("── {dialect}")).unwrap_or_else(|| panic!("no {dialect} in {shown}"));
    let rest = &shown[start..];
    rest[3..].find("\n── ").map_or(rest, |end| &rest[..end + 3])
}

/// Checks the recognised type and dialect, and texts in the sections of the given dialects.
fn check(input: &str, recognised_as: &str, expected: &[(&str, &[&str])]) {
    let shown = explain(input).unwrap_or_else(|error| panic!("{error}: {input}"));
    assert!(shown.starts_with(recognised_as), "{recognised_as:?}: {shown}");
    for (dialect, texts) in expected {
        let section = section(&shown, dialect);
        for text in *texts {
            assert!(section.contains(text), "{dialect}: {text:?} is not in {section}");
        }
    }
}

/// The documents of `explain/cases.txt`. A case has its type and dialect behind `=>`, its text, and lines with what is shown
/// of it in a dialect.
#[test]
fn documents_are_recognised_and_shown_in_every_dialect() {
    let cases = include_str!("explain/cases.txt").split("=> ").skip(1);
    let mut seen = 0;
    for case in cases {
        let (recognised_as, rest) = case.split_once('\n').unwrap();
        let (expected, input): (Vec<&str>, Vec<&str>) = rest.lines().partition(|line| line.contains("| "));
        let expected: Vec<_> = expected.iter().map(|line| line.split_once("| ").unwrap()).collect();
        let texts: Vec<_> = expected.iter().map(|(_, text)| text.replace("\\n", "\n")).collect();
        for ((dialect, _), text) in expected.iter().zip(&texts) {
            check(&input.join("\n"), recognised_as, &[(dialect, &[text])]);
        }
        assert!(!expected.is_empty(), "{case}");
        seen += 1;
    }
    assert_eq!(seen, 28);
    let wire = "id: 7\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"task\":{\"id\":\"t-1\",\"contextId\":\"c-1\",\"status\":{\"state\":\"TASK_STATE_COMPLETED\"},\"artifacts\":[{\"artifactId\":\"a\",\"parts\":[{\"text\":\"x\"}]}]}}}\n\n";
    check(wire, "a task as an event or response of 1.0", &[("draft", &["one event becomes 2 frames"])]);
}

#[test]
fn losses_are_reported_in_every_dialect() {
    // Message ids, which the draft lacks and the other dialects require.
    let without_id = r#"{"role":"user","parts":[{"type":"text","text":"hi"}]}"#;
    let missing: &[&str] = &["missing     messageId: expected a non-empty string"];
    check(without_id, "a message of draft", &[("0.3 (JSON-RPC", missing), ("0.3 (HTTP", missing)]);
    let shown = explain(without_id).unwrap();
    for dialect in ["0.3 (JSON-RPC", "0.3 (HTTP", "1.0"] {
        let section = section(&shown, dialect);
        assert_eq!(section.matches("missing").count(), 1, "{section}");
        assert!(!section.contains("nothing lost") && !section.contains("defaulted"), "{section}");
    }
    // Unknown members.
    let extra = r#"{"kind":"task","id":"t","contextId":"c","status":{"state":"rejected"},"extra":{"a":1}}"#;
    let lost: &[&str] = &["lost        extra.a = 1: unknown member, not read"];
    let expected =
        [("draft", lost), ("0.3 (HTTP", lost), ("1.0", lost), ("0.3 (JSON-RPC", &["ignored     extra.a"])];
    check(extra, "a task of 0.3 (JSON-RPC", &expected);
    // Timestamps are stored in milliseconds.
    let task = |fraction: &str| {
        format!(
            r#"{{"id":"t","sessionId":"s","status":{{"state":"completed","timestamp":"2025-04-02T16:59:25.{fraction}"}}}}"#
        )
    };
    for dialect in ["draft", "0.3 (JSON-RPC", "0.3 (HTTP", "1.0"] {
        let finer = "digits beyond milliseconds";
        check(&task("331844"), "a task of draft", &[(dialect, &["lost        status.timestamp = ", finer])]);
        assert!(!section(&explain(&task("331000Z")).unwrap(), dialect).contains(finer), "{dialect}");
    }
    // No loss is reported for other spellings, type tags, empty values, and cards for two generations.
    let file = r#"{"messageId":"m","role":"ROLE_USER","parts":[{"raw":"AAE=","filename":"f"}]}"#;
    let proto: &[&str] = &["translated  parts.raw → content.file.fileWithBytes", "nothing lost"];
    check(file, "a message of 1.0", &[("0.3 (HTTP", proto)]);
    assert!(!explain(file).unwrap().contains("defaulted   content[0].file.fileWithBytes"));
    let aliases = r#"{"kind":"message","message_id":"m","role":"user","metadata":null,
        "parts":[{"kind":"text","type":"text","text":"x"},{"kind":"file","file":{"fileWithBytes":"aGk="}}]}"#;
    check(
        aliases,
        "a message of 0.3 (JSON-RPC",
        &[("1.0", &["nothing lost"]), ("0.3 (HTTP", &["nothing lost"])],
    );
    let get = r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"id":"t"}}"#;
    assert!(!explain(get).unwrap().contains(" = {}\n"));
    // Signatures are read and shown in 1.0; the other dialects lack them.
    let signed = r#"{"name":"a","description":"b","url":"https://x","version":"1","protocolVersion":"0.3.0","capabilities":{},
        "skills":[],"defaultInputModes":[],"defaultOutputModes":[],"signatures":[{"protected":"cA","signature":"cw"}],"odd":"q"}"#;
    let lost: &[&str] = &[
        r#"lost        signatures[0].protected = "cA""#,
        r#"lost        odd = "q": unknown member, not read"#,
    ];
    check(
        signed,
        "a card of 0.3 (JSON-RPC",
        &[("draft", lost), ("0.3 (HTTP", lost), ("1.0", &[r#""protected": "cA""#])],
    );
    let shown = explain(signed).unwrap();
    assert_eq!(shown.matches(": unknown member, not read").count(), 3, "{shown}");
}

#[test]
fn a_stream_is_explained_event_by_event() {
    let event = |state: &str| {
        let update =
            format!(r#""statusUpdate":{{"taskId":"t","contextId":"c","status":{{"state":"{state}"}}}}"#);
        format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{{update}}}}}"#)
    };
    let (working, done) = (event("TASK_STATE_WORKING"), event("TASK_STATE_COMPLETED"));
    for stream in
        [format!("id: 1\ndata: {working}\n\nid: 2\ndata: {done}\n\n"), format!("{working}\n{done}\n")]
    {
        let shown = explain(&stream).unwrap();
        let (first, second) = shown.split_once("\n══ 2 of 2: a status event of 1.0").unwrap();
        assert!(first.starts_with("══ 1 of 2: a status event of 1.0 (all bindings)\n"), "{first}");
        assert!(
            first.contains("state TASK_STATE_WORKING → working") && !first.contains("COMPLETED"),
            "{first}"
        );
        assert!(second.contains("state TASK_STATE_COMPLETED → completed"), "{second}");
    }
    let broken = explain(&format!("data: {working}\n\ndata: {{}}\n\n")).unwrap_err().to_string();
    assert!(broken.starts_with("2 of 2: expected one of role and parts"), "{broken}");
}

#[test]
fn errors_name_the_invalid_field_in_one_line() {
    for (input, expected) in [
        ("", "the input is not JSON"),
        ("{\"a\":\n 1,", "the input is not JSON: EOF while parsing an object at line 2 column 3"),
        ("[]", "expected one JSON object"),
        ("{}", "expected one of role and parts"),
        (
            r#"{"messageId":"m","role":"ROLE_USER","parts":"x"}"#,
            "as a message of 1.0: parts: expected an array",
        ),
        (
            r#"{"kind":"message","messageId":"m","role":"robot","parts":[{"kind":"text","text":"x"}]}"#,
            "as a message of 0.3: role: ",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tasks/make"}"#,
            "method: \"tasks/make\" is not a method of any version",
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{}}"#, "as a request of 1.0: params.id: "),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{"kind":"task","id":"t"}}"#,
            "as a task of 0.3: result.status: ",
        ),
        (r#"{"jsonrpc":"2.0","id":1,"result":null}"#, "result: expected an object"),
        (r#"{"skills":[]}"#, "as a card of "),
    ] {
        let text = explain(input).unwrap_err().to_string();
        assert!(text.starts_with(expected), "{input}: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}

/// Collects every file below a folder.
fn files(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

#[test]
fn every_codec_sample_is_recognised() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    let mut seen = 0;
    for (dialect, label) in [("draft", "draft"), ("v03", "0.3"), ("v1", "1.0")] {
        let mut found = Vec::new();
        files(&samples.join(dialect).join("operation"), &mut found);
        found.retain(|path| path.extension().is_some_and(|kind| kind == "json"));
        for path in found {
            let method =
                path.parent().unwrap().strip_prefix(samples.join(dialect).join("operation")).unwrap();
            let method = method.to_str().unwrap();
            let params = fs::read_to_string(&path).unwrap();
            // Only the draft may omit `jsonrpc`, which distinguishes the method names that it shares with 0.3.
            let version = if dialect == "draft" { "" } else { r#""jsonrpc":"2.0","# };
            let request = format!(r#"{{{version}"id":1,"method":"{method}","params":{params}}}"#);
            check(&request, &format!("a request, {method}, of {label} "), &[]);
            seen += 1;
        }
        let mut found = Vec::new();
        files(&samples.join(dialect).join("event"), &mut found);
        for path in found {
            let text = fs::read_to_string(&path).unwrap();
            let lines = path.extension().is_some_and(|kind| kind == "jsonl");
            for event in if lines { text.lines().collect() } else { vec![text.as_str()] } {
                let shown = explain(event).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
                let first = shown.lines().next().unwrap();
                // Samples of 1.0 with members that 1.0 only tolerates are recognised as `v03-proto`.
                let older = ["TASK_STATE_CANCELLED", "\"final\""].iter().any(|text| event.contains(text));
                let older = older && first.contains(" of 0.3 (HTTP");
                assert!(older || first.contains(&format!(" of {label} ")), "{}: {first}", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 100, "{seen} samples");
}
