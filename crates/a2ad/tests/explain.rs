//! One thing of each kind, in each dialect, shown in all of them.

#![allow(clippy::unwrap_used, reason = "a test that meets an error is to fail")]

use std::{fs, path::Path};

use a2ad::explain;

/// The part of a text that is about one dialect.
fn section<'a>(shown: &'a str, dialect: &str) -> &'a str {
    let start = shown.find(&format!("── {dialect} (")).unwrap_or_else(|| panic!("no {dialect} in {shown}"));
    let rest = &shown[start..];
    rest[3..].find("\n── ").map_or(rest, |end| &rest[..end + 3])
}

/// Checks what something is taken for, and what is said about it in each dialect.
fn check(input: &str, taken_for: &str, said: &[(&str, &[&str])]) {
    let shown = explain(input).unwrap_or_else(|error| panic!("{error}: {input}"));
    assert!(shown.starts_with(taken_for), "{taken_for:?}: {shown}");
    for (dialect, words) in said {
        let section = section(&shown, dialect);
        for word in *words {
            assert!(section.contains(word), "{dialect}: {word:?} is not in {section}");
        }
    }
}

#[test]
fn a_message_is_shown_in_every_dialect() {
    let v1 = r#"{"messageId":"m-1","role":"ROLE_USER","contextId":"c-1","referenceTaskIds":["t-9"],
        "parts":[{"text":"hi","mediaType":"text/markdown"},{"data":[1,2]}]}"#;
    check(
        v1,
        "a message of v1",
        &[
            ("v1", &["as given"]),
            (
                "v03",
                &[
                    r#""kind": "message""#,
                    "translated  role ROLE_USER → user",
                    r#"carried     parts[0].metadata.a2ad.mediaType = "text/markdown""#,
                    "carried     parts[1].metadata.data_part_compat = true",
                    "nothing lost",
                ],
            ),
            ("v03-proto", &["translated  parts → content", "carried     metadata.a2ad.referenceTaskIds[0]"]),
            (
                "draft",
                &[r#"carried     metadata.a2ad.messageId = "m-1""#, r#"lost        contextId = "c-1""#],
            ),
        ],
    );
    let v03 = r#"{"kind":"message","messageId":"m-1","role":"user","parts":[{"kind":"file","file":{"uri":"https://x/y"}}]}"#;
    check(v03, "a message of v03", &[("v1", &["translated  role user → ROLE_USER", "file.uri → url"])]);
    let proto = r#"{"messageId":"m-1","role":"ROLE_AGENT","content":[{"text":"hi"}]}"#;
    check(proto, "a message of v03-proto", &[("v1", &["content → parts", "nothing lost"])]);
    let draft = r#"{"role":"user","parts":[{"type":"text","text":"hi"}]}"#;
    check(draft, "a message of draft", &[("draft", &["as given"]), ("v1", &["missing     messageId: "])]);
}

#[test]
fn a_task_is_shown_in_every_dialect() {
    let draft = r#"{"id":"t-1","sessionId":"c-1","status":{"state":"completed"},
        "artifacts":[{"parts":[{"type":"text","text":"done"}],"index":0}]}"#;
    check(
        draft,
        "a task of draft",
        &[
            ("draft", &["defaulted   history = []"]),
            ("v03", &["translated  sessionId → contextId", "nothing lost"]),
            ("v1", &["translated  state completed → TASK_STATE_COMPLETED"]),
        ],
    );
    let v03 = r#"{"kind":"task","id":"t-1","contextId":"c-1","status":{"state":"auth-required"}}"#;
    check(
        v03,
        "a task of v03",
        &[(
            "draft",
            &[
                "translated  state auth-required → input-required",
                "carried     metadata.a2ad.state",
                "nothing lost",
            ],
        )],
    );
    let v1 = r#"{"id":"t-1","contextId":"c-1","status":{"state":"TASK_STATE_CANCELED"}}"#;
    check(v1, "a task of v1", &[("v03-proto", &["TASK_STATE_CANCELED → TASK_STATE_CANCELLED"])]);
    let proto = r#"{"id":"t-1","contextId":"c-1","status":{"state":"TASK_STATE_CANCELLED"}}"#;
    check(proto, "a task of v03-proto", &[("v03", &["TASK_STATE_CANCELLED → canceled"])]);
}

#[test]
fn an_event_is_shown_in_every_dialect() {
    let v1 =
        r#"{"statusUpdate":{"taskId":"t-1","contextId":"c-1","status":{"state":"TASK_STATE_REJECTED"}}}"#;
    check(
        v1,
        "a status event of v1",
        &[
            ("v03", &["without the statusUpdate around it", "defaulted   final = true"]),
            ("v03-proto", &["defaulted   statusUpdate.final = true"]),
            (
                "draft",
                &["state TASK_STATE_REJECTED → failed", r#"lost        statusUpdate.contextId = "c-1""#],
            ),
        ],
    );
    let v03 = r#"{"kind":"status-update","taskId":"t-1","contextId":"c-1","status":{"state":"working"},"final":false}"#;
    check(v03, "a status event of v03", &[("v1", &["inside statusUpdate", "nothing lost"])]);
    let proto = r#"{"statusUpdate":{"taskId":"t-1","contextId":"c-1","status":{"state":"TASK_STATE_COMPLETED"},"final":true}}"#;
    check(proto, "a status event of v03-proto", &[("v1", &["nothing lost"])]);
    let draft = r#"{"id":"t-1","artifact":{"name":"a","parts":[{"type":"text","text":"x"}],"index":2,"append":true}}"#;
    check(draft, "an artifact event of draft", &[("v1", &[r#""append": true"#]), ("v03", &["id → taskId"])]);
    let wire = "id: 7\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"task\":{\"id\":\"t-1\",\"contextId\":\"c-1\",\"status\":{\"state\":\"TASK_STATE_COMPLETED\"},\"artifacts\":[{\"artifactId\":\"a\",\"parts\":[{\"text\":\"x\"}]}]}}}\n\n";
    check(wire, "a task as an event or answer of v1", &[("draft", &["one event becomes 2 frames"])]);
}

#[test]
fn a_request_is_shown_with_the_method_of_each_dialect() {
    let v1 = r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{"id":"t-1","historyLength":0}}"#;
    check(
        v1,
        "a request, GetTask, of v1",
        &[
            ("v03", &[": tasks/get\n", "changed     historyLength: 0 → 1"]),
            ("v03-proto", &[r#"task "t-1" in the path"#, "historyLength=1 in the query"]),
            ("draft", &[": tasks/get\n", "nothing lost"]),
        ],
    );
    let draft = r#"{"method":"tasks/send","params":{"id":"t-1","message":{"role":"user","parts":[{"type":"text","text":"hi"}]}}}"#;
    check(draft, "a request, tasks/send, of draft", &[("v03", &[": message/send\n", "id → message.taskId"])]);
    let v03 =
        r#"{"jsonrpc":"2.0","id":1,"method":"tasks/pushNotificationConfig/list","params":{"id":"t-1"}}"#;
    check(
        v03,
        "a request, tasks/pushNotificationConfig/list, of v03",
        &[
            ("draft", &["lost        all of it: this generation has no method for ListPushConfigs"]),
            ("v1", &[": ListTaskPushNotificationConfigs\n", "id → taskId"]),
        ],
    );
    let proto = r#"{"message":{"messageId":"m","role":"ROLE_USER","content":[{"text":"hi"}]},"configuration":{"blocking":false}}"#;
    check(
        proto,
        "the parameters of a send of v03-proto",
        &[
            ("v1", &[r#""returnImmediately": true"#, "nothing lost"]),
            ("draft", &["missing     id: required"]),
        ],
    );
}

#[test]
fn answers_errors_cards_and_webhooks_are_known_too() {
    let error = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"Task not found","data":null}}"#;
    check(error, "an error of draft", &[("v1", &["TASK_NOT_FOUND"])]);
    let card = r#"{"name":"a","description":"b","url":"https://x","version":"1","protocolVersion":"0.3.0",
        "capabilities":{},"defaultInputModes":[],"defaultOutputModes":[],"skills":[]}"#;
    check(card, "a card of v03", &[("v1", &["supportedInterfaces"])]);
    let only = r#"{"name":"a","description":"b","version":"1","capabilities":{},"skills":[],"defaultInputModes":["text"],
        "defaultOutputModes":["text"],"supportedInterfaces":[{"url":"https://x","protocolBinding":"JSONRPC","protocolVersion":"1.0"}]}"#;
    check(only, "a card of v1", &[("draft", &["lost        all of it: the card names no interface"])]);
    let webhook = r#"{"taskId":"t-1","pushNotificationConfig":{"id":"c","url":"https://x/y"}}"#;
    check(webhook, "a webhook of v03", &[("v1", &[r#""url": "https://x/y""#])]);
    let page = r#"{"jsonrpc":"2.0","id":1,"result":{"tasks":[{"id":"t","contextId":"c","status":{"state":"TASK_STATE_WORKING"}}],"nextPageToken":"","pageSize":50,"totalSize":1}}"#;
    check(page, "a page of tasks of v1", &[("v03", &["TASK_STATE_WORKING → working"])]);
}

#[test]
fn what_cannot_be_read_is_named_in_one_sentence() {
    for (input, words) in [
        ("", "the input is not JSON"),
        ("{\"a\":\n 1,", "the input is not JSON: EOF while parsing an object at line 2 column 3"),
        ("[]", "expected one JSON object"),
        ("{}", "expected one of role and parts"),
        (
            r#"{"messageId":"m","role":"ROLE_USER","parts":[]}"#,
            "as a message of v1: parts: expected at least one part",
        ),
        (
            r#"{"kind":"message","messageId":"m","role":"robot","parts":[{"kind":"text","text":"x"}]}"#,
            "as a message of v03: role: ",
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tasks/make"}"#,
            "method: \"tasks/make\" is a method of no generation",
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"GetTask","params":{}}"#, "as a request of v1: params.id: "),
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{"kind":"task","id":"t"}}"#,
            "as a task of v03: result.status: ",
        ),
        (r#"{"jsonrpc":"2.0","id":1,"result":null}"#, "result: expected an object"),
        (r#"{"skills":[]}"#, "as a card of "),
    ] {
        let text = explain(input).unwrap_err().to_string();
        assert!(text.starts_with(words), "{input}: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}

/// Every file below a folder.
fn files(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files(&path, found) } else { found.push(path) }
    }
}

#[test]
fn every_sample_of_the_codecs_is_known_for_what_it_is() {
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../protocol/tests/samples");
    let mut seen = 0;
    for dialect in ["draft", "v03", "v1"] {
        let mut found = Vec::new();
        files(&samples.join(dialect).join("operation"), &mut found);
        found.retain(|path| path.extension().is_some_and(|kind| kind == "json"));
        for path in found {
            let method =
                path.parent().unwrap().strip_prefix(samples.join(dialect).join("operation")).unwrap();
            let method = method.to_str().unwrap();
            let params = fs::read_to_string(&path).unwrap();
            // The draft alone may leave out the version, by which the names it shares are told apart.
            let version = if dialect == "draft" { "" } else { r#""jsonrpc":"2.0","# };
            let request = format!(r#"{{{version}"id":1,"method":"{method}","params":{params}}}"#);
            check(&request, &format!("a request, {method}, of {dialect} "), &[]);
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
                // What 1.0 lets pass of the older protobuf file is that file's.
                let older = ["TASK_STATE_CANCELLED", "\"final\""].iter().any(|word| event.contains(word));
                let older = older && first.contains(" of v03-proto ");
                assert!(older || first.contains(&format!(" of {dialect} ")), "{}: {first}", path.display());
                seen += 1;
            }
        }
    }
    assert!(seen > 100, "{seen} samples");
}
