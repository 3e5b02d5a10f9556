//! The data model: tasks, sessions, messages, parts and artifacts.

use crate::{
    CheckError, CheckResult,
    fixture::Fixture,
    http::Response,
    json::{MemberOrder, ValueChecks as _, is_exactly, quote},
    mismatch,
    schema::SchemaChecks as _,
    test_client::{states, text, unique_id},
};

/// The first bytes of files of several media types, including bytes that are not valid UTF-8.
const FILES: [(&str, &str); 4] = [
    ("audio/wav", "UklGRiQAAABXQVZFZm10IBAAAAABAAEA//79AA=="),
    ("video/mp4", "AAAAGGZ0eXBtcDQyAAAAAG1wNDJpc29t"),
    ("image/png", "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ"),
    ("application/pdf", "JVBERi0xLjcKJeLjz9MKAAECAwQF"),
];

const TEXT: &str = "naïve 漢字 🦀 \u{202e} \" \\ \n end";
const DATA: &str = r#"{"n":1.50,"big":12345678901234567890,"z":null,"a":[{"":[]},"é"]}"#;

pub(super) async fn every_modality(at: &Fixture) -> CheckResult {
    let client = at.root("echo");
    for (kind, bytes) in FILES {
        let file = format!(r#"{{"name":"f","mimeType":"{kind}","bytes":"{bytes}"}}"#);
        let parts = |tag: &str| {
            let text = quote(TEXT);
            format!(
                r#"[{{"{tag}":"text","text":{text}}},{{"{tag}":"file","file":{file}}},{{"{tag}":"data","data":{DATA}}}]"#
            )
        };
        let draft =
            client.send(&unique_id(), &format!(r#"{{"role":"user","parts":{}}}"#, parts("type")), "").await?;
        same_bytes(&draft, "text", "file.bytes", "data", bytes)?;
        let v03 = client.message(&parts("kind"), "").await?;
        same_bytes(&v03, "text", "file.bytes", "data", bytes)?;
        let parts = format!(
            r#"[{{"text":{}}},{{"raw":"{bytes}","mediaType":"{kind}","filename":"f"}},{{"data":{DATA}}}]"#,
            quote(TEXT)
        );
        let id = quote(&unique_id());
        let params = format!(
            r#"{{"message":{{"messageId":{id},"role":"ROLE_USER","parts":{parts}}},"metadata":{{"skillId":"echo"}}}}"#
        );
        let v1 = client.call("SendMessage", &params).await?;
        same_bytes(&v1, "text", "raw", "data", bytes)?;
    }
    Ok(())
}

/// Checks that the echoed parts equal the sent ones. Data is compared as text, including the order of members and the
/// spelling of numbers.
fn same_bytes(response: &Response, text: &str, raw: &str, data: &str, bytes: &str) -> CheckResult {
    let path = if response.find("result.task").is_some() { "result.task" } else { "result" };
    let task = response.at(path)?;
    task.is(&format!("artifacts.0.parts.0.{text}"), TEXT)?;
    task.is(&format!("artifacts.0.parts.1.{raw}"), bytes)?;
    let data = response.json_text(&format!("{path}.artifacts.0.parts.2.{data}"))?;
    is_exactly(data, DATA, MemberOrder::Same)
}

pub(super) async fn task_members(at: &Fixture) -> CheckResult {
    let (task, response) = at.root("echo").send_text("hello").await?;
    response.is("result.id", &task)?;
    response.non_empty("result.sessionId")?;
    response.non_empty("result.status.state")?;
    let known = ["id", "sessionId", "status", "history", "artifacts", "metadata"];
    let unknown = response.at("result")?.names().into_iter().find(|name| !known.contains(name));
    response.ensure(unknown.is_none(), "no unknown member of the task")
}

pub(super) async fn sessions(at: &Fixture) -> CheckResult {
    let client = at.root("echo");
    let (_, first) = client.send_text("hello").await?;
    let session = first.non_empty("result.sessionId")?;
    let more = format!(r#","sessionId":{}"#, quote(session));
    let second = client.send(&unique_id(), &text("hello"), &more).await?;
    second.is("result.sessionId", session)?;
    second.ensure(first.text("result.id")? != second.text("result.id")?, "two tasks")?;
    // A session id that the client chooses.
    let named = unique_id();
    let more = format!(r#","sessionId":{}"#, quote(&named));
    client.send(&unique_id(), &text("hello"), &more).await?.is("result.sessionId", &named)
}

pub(super) async fn status_members(at: &Fixture) -> CheckResult {
    let (_, question) = at.root("currency").send_text("how much is 1 USD?").await?;
    question.has_state("input-required")?;
    question.is_timestamp("result.status.timestamp")?;
    question.is("result.status.message.role", "agent")?;
    let known = ["state", "message", "timestamp"];
    let unknown = question.at("result.status")?.names().into_iter().find(|name| !known.contains(name));
    question.ensure(unknown.is_none(), "no unknown member of the status")
}

const STATES: [&str; 7] =
    ["submitted", "working", "input-required", "completed", "canceled", "failed", "unknown"];

pub(super) async fn states_of_the_draft(at: &Fixture) -> CheckResult {
    let (echo, tck) = (at.root("echo"), at.root("tck"));
    let (_, events) = echo.events("hello").await?;
    let mut seen: Vec<String> = states(&events).into_iter().map(str::to_owned).collect();
    // The later states rejected and auth-required are mapped to states of the draft.
    for text in ["a2ad-fail", "tck-input-required", "tck-reject-task"] {
        seen.push(tck.send_text(text).await?.1.text("result.status.state")?.to_owned());
    }
    let login = at.root("approver").send_text("login").await?.1;
    seen.push(login.text("result.status.state")?.to_owned());
    let (task, _) = echo.send_async("hold").await?;
    seen.push(echo.cancel(&task).await?.text("result.status.state")?.to_owned());
    let unknown = seen.iter().find(|state| !STATES.contains(&state.as_str()));
    let missing = STATES[..6].iter().find(|state| !seen.iter().any(|seen| seen == **state));
    match (unknown, missing) {
        (None, None) => Ok(()),
        _ => Err(mismatch(STATES[..6].join(", "), seen.join(", "))),
    }
}

pub(super) async fn server_sets_status(at: &Fixture) -> CheckResult {
    let client = at.root("echo");
    let task = unique_id();
    let more = r#","async":true,"status":{"state":"completed"},"artifacts":[]"#;
    client.send(&task, &text("hold"), more).await?.has_state("working")?;
    client.get(&task).await?.has_state("working")?;
    let params = format!(r#"{{"id":{},"status":{{"state":"failed"}}}}"#, quote(&task));
    client.call("tasks/get", &params).await?.has_state("working")?;
    client.cancel(&task).await?.has_state("canceled")?;
    Ok(())
}

/// Sends two questions under the same task id and returns both responses.
async fn ask_two_questions(at: &Fixture) -> Result<(Response, Response), CheckError> {
    let client = at.root("currency");
    let (task, first) = client.send_text("how much is 1 USD in INR?").await?;
    first.has_state("completed")?;
    let second = client.send(&task, &text("and in EUR?"), "").await?;
    second.has_state("completed")?;
    second.is("result.id", &task)?;
    Ok((first, second))
}

pub(super) async fn continued(at: &Fixture) -> CheckResult {
    let (first, second) = ask_two_questions(at).await?;
    first.ensure(first.count("result.artifacts") == 1, "one artifact")?;
    second.ensure(second.count("result.artifacts") == 2, "a second artifact")?;
    let text = second.text("result.artifacts.1.parts.0.text")?;
    second.ensure(text.contains("EUR"), "an artifact about EUR")
}

pub(super) async fn message_members(at: &Fixture) -> CheckResult {
    let (task, _) = at.root("approver").send_text("delete the old backups").await?;
    let params = format!(r#"{{"id":{},"historyLength":9}}"#, quote(&task));
    let got = at.root("approver").call("tasks/get", &params).await?;
    got.ensure(got.count("result.history") == 2, "two messages")?;
    for (message, role) in got.list("result.history")?.iter().zip(["user", "agent"]) {
        message.is("role", role)?;
        message.ensure(message.count("parts") > 0, "parts")?;
        let unknown = message.names().into_iter().find(|name| !["role", "parts", "metadata"].contains(name));
        message.ensure(unknown.is_none(), "no unknown member of the message")?;
    }
    let wrong_role = r#"{"role":"system","parts":[{"type":"text","text":"hello"}]}"#;
    at.root("echo").send(&unique_id(), wrong_role, "").await?.has_error_code(-32602)?;
    Ok(())
}

/// Sends parts to the skill echo and returns the response.
async fn echo_parts(at: &Fixture, parts: &str) -> Result<Response, CheckError> {
    at.root("echo").send(&unique_id(), &format!(r#"{{"role":"user","parts":{parts}}}"#), "").await
}

pub(super) async fn part_kinds(at: &Fixture) -> CheckResult {
    let parts = r#"[{"type":"text","text":"a","metadata":{"m":1}},
        {"type":"file","file":{"name":"a.pdf","mimeType":"application/pdf","bytes":"JVBERg=="},"metadata":{"m":2}},
        {"type":"file","file":{"uri":"https://files.example/a"},"metadata":{"m":3}},
        {"type":"data","data":{"k":"v"},"metadata":{"m":4}}]"#;
    echo_parts(at, parts).await?.is_json("result.artifacts.0.parts", parts)?;
    let both = r#"[{"type":"file","file":{"bytes":"JVBERg==","uri":"https://files.example/a"}}]"#;
    echo_parts(at, both).await?.has_error_code(-32602)?;
    Ok(())
}

pub(super) async fn untyped_parts(at: &Fixture) -> CheckResult {
    let bare = r#"[{"text":"a"},{"file":{"bytes":"JVBERg=="}},{"data":{"k":"v"}}]"#;
    let typed = r#"[{"type":"text","text":"a"},{"type":"file","file":{"bytes":"JVBERg=="}},
        {"type":"data","data":{"k":"v"}}]"#;
    echo_parts(at, bare).await?.is_json("result.artifacts.0.parts", typed)
}

pub(super) async fn artifact_index(at: &Fixture) -> CheckResult {
    let (first, second) = ask_two_questions(at).await?;
    first.is("result.artifacts.0.index", 0)?;
    second.is("result.artifacts.0.index", 0)?;
    second.is("result.artifacts.1.index", 1)?;
    let known = ["name", "description", "parts", "metadata", "index", "append", "lastChunk"];
    for artifact in second.list("result.artifacts")? {
        artifact.ensure(artifact.count("parts") > 0, "parts")?;
        let unknown = artifact.names().into_iter().find(|name| !known.contains(name));
        artifact.ensure(unknown.is_none(), "no unknown member of the artifact")?;
    }
    Ok(())
}

/// Checked for several agents.
pub(super) async fn artifacts_are_immutable(at: &Fixture) -> CheckResult {
    let (_, events) = at.root("slow-writer").events("the sea sections=3 delay=1ms").await?;
    let appended =
        events.iter().filter(|event| event.data.is("result.artifact.append", true).is_ok()).count();
    if appended != 2 {
        return Err(mismatch("two chunks that are appended", appended));
    }
    let (first, second) = ask_two_questions(at).await?;
    second.is("result.artifacts.0", first.at("result.artifacts.0")?)?;
    for (skill, one, two) in
        [("echo", "one", "two"), ("slow-writer", "a sections=1 delay=1ms", "b sections=1 delay=1ms")]
    {
        let client = at.root(skill);
        let (task, first) = client.send_text(one).await?;
        let second = client.send(&task, &text(two), "").await?;
        second.is("result.artifacts.0", first.at("result.artifacts.0")?)?;
        second.ensure(second.count("result.artifacts") == 2, "a second artifact")?;
    }
    Ok(())
}

pub(super) async fn metadata_preserved(at: &Fixture) -> CheckResult {
    let client = at.root("echo");
    let task = unique_id();
    let message = r#"{"role":"user","metadata":{"on":"message"},
        "parts":[{"type":"text","text":"hello","metadata":{"on":"part"}}]}"#;
    let more = r#","historyLength":9,"metadata":{"on":"params"}"#;
    let sent = client.send(&task, message, more).await?;
    let params = format!(r#"{{"id":{},"historyLength":9}}"#, quote(&task));
    let got = client.call("tasks/get", &params).await?;
    for response in [sent, got] {
        response.is("result.history.0.metadata.on", "message")?;
        response.is("result.history.0.parts.0.metadata.on", "part")?;
        response.is("result.artifacts.0.parts.0.metadata.on", "part")?;
        response.is("result.metadata.on", "params")?;
    }
    artifact_metadata_preserved(at).await
}

/// Metadata that an agent sets on its artifact: the numbers of the chart.
async fn artifact_metadata_preserved(at: &Fixture) -> CheckResult {
    let client = at.root("plotter");
    let (task, sent) = client.send_text("3 1 2").await?;
    for response in [sent, client.get(&task).await?] {
        response.is_json("result.artifacts.0.metadata", r#"{"bars":[3,1,2]}"#)?;
    }
    let (_, events) = client.events("3 1 2").await?;
    let artifact = events.iter().find_map(|event| event.data.find("result.artifact"));
    artifact.ok_or_else(|| mismatch("an artifact", "none"))?.is_json("metadata", r#"{"bars":[3,1,2]}"#)
}

pub(super) async fn found_by_session(at: &Fixture) -> CheckResult {
    let (client, session) = (at.root("echo"), unique_id());
    let (one, other) = (unique_id(), unique_id());
    let more = format!(r#","sessionId":{}"#, quote(&session));
    for task in [&one, &other] {
        client.send(task, &text("hello"), &more).await?.has_state("completed")?;
    }
    client.send_text("hello").await?;
    let found = client.call("ListTasks", &format!(r#"{{"contextId":{}}}"#, quote(&session))).await?;
    let mut ids: Vec<&str> =
        found.list("result.tasks")?.iter().map(|task| task.text("id")).collect::<Result<_, _>>()?;
    ids.sort_unstable();
    let mut expected = [one.as_str(), other.as_str()];
    expected.sort_unstable();
    found.ensure(ids == expected, "both tasks of the session")
}
