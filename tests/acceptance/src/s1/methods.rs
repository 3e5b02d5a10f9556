//! Methods that respond with one JSON-RPC response.

use serde_json::Value;

use crate::{
    CheckResult,
    fixture::Fixture,
    http::Response,
    json::{ValueChecks as _, quote},
    mismatch,
    schema::{SchemaChecks as _, UnknownMembers},
    test_client::{TestClient, text, unique_id},
};

pub(super) async fn transport(at: &Fixture) -> CheckResult {
    let client = at.root("echo");
    let (_, response) = client.send_text("hello").await?;
    response.has_status(200)?;
    response.is("jsonrpc", "2.0")?;
    let kind = response.header("content-type").unwrap_or_default();
    response.ensure(kind.starts_with("application/json"), "content-type: application/json")?;
    // The client rejects a stream that does not consist of server-sent events.
    let (_, events) = client.events("hello").await?;
    for event in &events {
        event.data.is("jsonrpc", "2.0")?;
        event.data.is("id", 1)?;
    }
    if events.is_empty() { Err(mismatch("events", "none")) } else { Ok(()) }
}

pub(super) async fn send_required_params(at: &Fixture) -> CheckResult {
    let client = at.root("echo");
    let hello = text("hello");
    for params in [
        "{}".to_owned(),
        format!(r#"{{"message":{hello}}}"#),
        format!(r#"{{"id":{}}}"#, quote(&unique_id())),
        format!(r#"{{"id":"","message":{hello}}}"#),
        format!(r#"{{"id":{},"message":"hello"}}"#, quote(&unique_id())),
    ] {
        client.call("tasks/send", &params).await?.has_error_code(-32602)?;
    }
    let more = r#","historyLength":1,"metadata":{}"#;
    client.send(&unique_id(), &hello, more).await?.has_state("completed")?;
    Ok(())
}

pub(super) async fn send_starts_resumes_reopens(at: &Fixture) -> CheckResult {
    let client = at.root("currency");
    let (task, started) = client.send_text("how much is 1 USD?").await?;
    started.has_state("input-required")?;
    let resumed = client.send(&task, &text("in INR"), "").await?;
    resumed.has_state("completed")?;
    resumed.is("result.sessionId", started.at("result.sessionId")?)?;
    let reopened = client.send(&task, &text("how much is 1 USD?"), "").await?;
    reopened.is("result.id", &task)?;
    let again = client.send(&task, &text("10 EUR in JPY"), "").await?;
    again.has_state("completed")?;
    again.is("result.id", &task)
}

pub(super) async fn send_returns_task(at: &Fixture) -> CheckResult {
    let client = at.root("echo");
    let task = unique_id();
    let params = client.params(&task, &text("hello"), "");
    let body = format!(r#"{{"jsonrpc":"2.0","id":"req-7","method":"tasks/send","params":{params}}}"#);
    let response = client.post(&body).await?;
    response.is("id", "req-7")?;
    response.is("result.id", &task)?;
    response.has_state("completed")?;
    Ok(())
}

pub(super) async fn get_returns_task(at: &Fixture) -> CheckResult {
    let client = at.root("echo");
    let (task, sent) = client.send_text("hello").await?;
    let params = format!(r#"{{"id":{},"historyLength":0,"metadata":{{}}}}"#, quote(&task));
    let got = client.call("tasks/get", &params).await?;
    got.is("result.id", &task)?;
    got.is("result.artifacts", sent.at("result.artifacts")?)
}

pub(super) async fn history_length(at: &Fixture) -> CheckResult {
    let client = at.root("approver");
    let (task, asked) = client.send_text("delete the old backups").await?;
    asked.lacks("result.history")?;
    let done = client.send(&task, &text("approve"), r#","historyLength":9"#).await?;
    done.has_state("completed")?;
    let text_of = |message: &Value| message.text("parts.0.text").map(str::to_owned);
    let whole: Vec<String> = done.list("result.history")?.iter().map(text_of).collect::<Result<_, _>>()?;
    let begins = whole.first().is_some_and(|first| first == "delete the old backups");
    // A built-in agent also says what it has done.
    let count = if at.is_builtin() { 4 } else { 3 };
    done.ensure(
        begins && whole.len() == count && whole[2] == "approve",
        "request, question, answer, result",
    )?;
    for (length, expected) in
        [("0", &whole[count..]), ("2", &whole[count - 2..]), ("3", &whole[count - 3..]), ("50", &whole[..])]
    {
        let params = format!(r#"{{"id":{},"historyLength":{length}}}"#, quote(&task));
        let got = client.call("tasks/get", &params).await?;
        let history: Vec<String> = match got.find("result.history") {
            Some(_) => got.list("result.history")?.iter().map(text_of).collect::<Result<_, _>>()?,
            None => Vec::new(),
        };
        got.ensure(history == expected, &format!("the last {length} messages in order"))?;
    }
    client.get(&task).await?.lacks("result.history")?;
    // The response to a cancel request has no history either.
    let (held, begun) = at.root("echo").send_async("hold").await?;
    begun.lacks("result.history")?;
    client.cancel(&held).await?.lacks("result.history")
}

pub(super) async fn past_retention(at: &Fixture) -> CheckResult {
    let client = at.agent("brief", "echo");
    let (task, _) = client.send_text("hello").await?;
    let gone = client.poll_until(&task, "an error", |response| response.find("error").is_some()).await?;
    gone.has_error_code(-32001)?;
    Ok(())
}

pub(super) async fn cancel_returns_task(at: &Fixture) -> CheckResult {
    let client = at.root("echo");
    let (task, begun) = client.send_async("hold").await?;
    begun.has_state("working")?;
    let params = format!(r#"{{"id":{},"metadata":{{"why":"enough"}}}}"#, quote(&task));
    let canceled = client.call("tasks/cancel", &params).await?;
    canceled.is("result.id", &task)?;
    canceled.has_state("canceled")?;
    client.get(&task).await?.has_state("canceled")?;
    Ok(())
}

pub(super) async fn cancel_of_terminal_task(at: &Fixture) -> CheckResult {
    let client = at.root("echo");
    let (task, _) = client.send_text("hello").await?;
    client.cancel(&task).await?.has_error_code(-32002)?;
    client.get(&task).await?.has_state("completed")?;
    Ok(())
}

pub(super) async fn two_turns(at: &Fixture) -> CheckResult {
    let client = at.root("approver");
    let (task, session) = (unique_id(), unique_id());
    let more = format!(r#","sessionId":{}"#, quote(&session));
    let asked = client.send(&task, &text("request a new phone for me"), &more).await?;
    asked.has_state("input-required")?;
    asked.is("result.status.message.role", "agent")?;
    let question = asked.text("result.status.message.parts.0.text")?;
    asked.ensure(question.contains("approve"), "a message that names the possible answers")?;
    let done = client.send(&task, &text("approve"), &more).await?;
    done.has_state("completed")?;
    done.is("result.id", &task)?;
    done.is("result.sessionId", &session)?;
    done.non_empty("result.artifacts.0.name")?;
    done.non_empty("result.artifacts.0.parts.0.text")?;
    Ok(())
}

pub(super) async fn structured_question(at: &Fixture) -> CheckResult {
    let (_, asked) = at.root("approver").send_text("login to the archive").await?;
    asked.has_state("input-required")?;
    asked.ensure(asked.count("result.status.message.parts") == 2, "two parts")?;
    asked.is("result.status.message.parts.0.type", "text")?;
    asked.non_empty("result.status.message.parts.0.text")?;
    asked.is("result.status.message.parts.1.type", "data")?;
    asked.at("result.status.message.parts.1.data")?;
    Ok(())
}

pub(super) async fn text_and_file(at: &Fixture) -> CheckResult {
    let client = at.root("reminder");
    let task = unique_id();
    let message = r#"{"role":"user","parts":[{"type":"text","text":"this paper in=300ms"},
        {"type":"file","file":{"mimeType":"application/pdf","bytes":"JVBERi0xLjcKJeLjz9MK"}}]}"#;
    client.send(&task, message, r#","async":true"#).await?.has_state("working")?;
    let has_status_message = |response: &Response| {
        response.has_state("working").is_ok()
            && response.non_empty("result.status.message.parts.0.text").is_ok()
    };
    client.poll_until(&task, "working with a status message", has_status_message).await?;
    let done = client.poll_until_state(&task, "completed").await?;
    done.is("result.artifacts.0.parts.1.file.bytes", "JVBERi0xLjcKJeLjz9MK")
}

/// Unknown members are rejected where possible, because a misspelled optional member would otherwise go unnoticed.
pub(super) async fn valid_responses(at: &Fixture) -> CheckResult {
    let valid = |name: &str, response: &Value| response.matches_schema(name, UnknownMembers::Reject);
    let (echo, approver, writer) = (at.root("echo"), at.root("approver"), at.root("slow-writer"));
    let parts = r#"{"role":"user","parts":[{"type":"text","text":"hello","metadata":{"a":1}},
        {"type":"file","file":{"name":"a","uri":"https://files.example/a"}},{"type":"data","data":{"k":[]}}]}"#;
    let task = unique_id();
    let sent = echo.send(&task, parts, r#","historyLength":9"#).await?;
    valid("SendTaskResponse", &sent)?;
    let params = format!(r#"{{"id":{},"historyLength":9}}"#, quote(&task));
    let got = echo.call("tasks/get", &params).await?;
    valid("GetTaskResponse", &got)?;
    valid("CancelTaskResponse", &echo.cancel(&task).await?.clone())?;
    valid("SendTaskResponse", &approver.send_text("login").await?.1)?;
    let (held, begun) = echo.send_async("hold").await?;
    valid("SendTaskResponse", &begun)?;
    valid("CancelTaskResponse", &echo.cancel(&held).await?.clone())?;
    valid("GetTaskResponse", &at.fold("echo").get(&unique_id()).await?.clone())?;
    for client in [echo, approver, writer] {
        for event in client.events("delete it sections=2 delay=1ms").await?.1 {
            valid("SendTaskStreamingResponse", &event.data)?;
        }
    }
    let config = format!(
        r#"{{"id":{},"pushNotificationConfig":{{"url":"https://hooks.example/","token":"t"}}}}"#,
        quote(&task)
    );
    let client = at.root("echo");
    valid(
        "SetTaskPushNotificationResponse",
        &client.call("tasks/pushNotification/set", &config).await?.clone(),
    )?;
    valid(
        "GetTaskPushNotificationResponse",
        &client.call("tasks/pushNotification/get", &params).await?.clone(),
    )?;
    for agent in ["fold", "pinkfish", "terse"] {
        valid_at(&at.agent(agent, "echo"), UnknownMembers::Reject).await?;
    }
    for agent in ["fold", "terse"] {
        for event in at.agent(agent, "echo").events("hello").await?.1 {
            valid("SendTaskStreamingResponse", &event.data)?;
        }
    }
    // The parts of this profile have a `kind` in addition to `type`.
    for agent in ["agent-native", "quiet"] {
        valid_at(&at.agent(agent, "echo"), UnknownMembers::Allow).await?;
    }
    Ok(())
}

/// A caller that uses the draft gets the whole task, also from agents that respond to other callers with messages.
async fn valid_at(client: &TestClient, unknown_members: UnknownMembers) -> CheckResult {
    let (task, sent) = client.send_text("hello").await?;
    sent.matches_schema("SendTaskResponse", unknown_members)?;
    sent.is("result.id", &task)?;
    sent.has_state("completed")?;
    sent.is_timestamp("result.status.timestamp")?;
    sent.is("result.artifacts.0.parts.0.text", "hello")?;
    let (_, asked) = client.with_skill("approver").send_text("delete it").await?;
    asked.matches_schema("SendTaskResponse", unknown_members)?;
    asked.has_state("input-required")?;
    client.get(&task).await?.matches_schema("GetTaskResponse", unknown_members)?;
    client.cancel(&task).await?.matches_schema("CancelTaskResponse", unknown_members)
}

/// Parameters that are not in the schema are ignored, except `acceptedOutputModes`.
pub(super) async fn output_modes(at: &Fixture) -> CheckResult {
    let (writer, plotter) = (at.root("slow-writer"), at.root("plotter"));
    let with_unknown_params = |more: &str| format!(r#","pet":{{"name":"Rex"}},"colour":null{more}"#);
    let sea = text("the sea sections=1 delay=1ms");
    for modes in
        ["", r#","acceptedOutputModes":["text"]"#, r#","acceptedOutputModes":["image/png","text/plain"]"#]
    {
        writer.send(&unique_id(), &sea, &with_unknown_params(modes)).await?.has_state("completed")?;
    }
    let image = r#","acceptedOutputModes":["image/svg+xml"]"#;
    writer.send(&unique_id(), &sea, &with_unknown_params(image)).await?.has_error_code(-32005)?;
    let drawn = plotter.send(&unique_id(), &text("3 1 2 as svg"), &with_unknown_params(image)).await?;
    drawn.is("result.artifacts.0.parts.0.file.mimeType", "image/svg+xml")
}

/// The next message continues the task like one that waits.
pub(super) async fn failed_is_resumed(at: &Fixture) -> CheckResult {
    let client = at.root("tck");
    let (task, failed) = client.send_text("a2ad-fail").await?;
    failed.has_state("failed")?;
    let resumed = client.send(&task, &text("tck-input-required"), "").await?;
    resumed.has_state("input-required")?.is("result.id", &task)
}
