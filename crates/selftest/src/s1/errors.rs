//! Errors with the draft's codes and messages.

use crate::{
    CheckError, CheckResult,
    fixture::Fixture,
    http::Response,
    json::ValueChecks as _,
    mismatch,
    test_client::{request, text, unique_id},
};

/// Checks for an error with this code and message.
fn is_error(response: &Response, code: i64, message: &str) -> CheckResult {
    response.has_error_code(code)?;
    response.is("error.message", message)?;
    response.lacks("result")
}

/// Like [`is_error`], and the error's `data` must be null.
fn is_bare_error(response: &Response, code: i64, message: &str) -> CheckResult {
    is_error(response, code, message)?;
    response.is_json("error.data", "null")
}

pub(super) async fn members(at: &Fixture) -> CheckResult {
    let client = at.fold("echo")?;
    let responses = [
        client.post("{").await?,
        client.call("tasks/paint", "{}").await?,
        client.call("tasks/send", "{}").await?,
    ];
    for response in responses {
        response.at("error.code")?;
        response.non_empty("error.message")?;
        let known = ["code", "message", "data"];
        let unknown = response.at("error")?.names().into_iter().find(|name| !known.contains(name));
        response.ensure(unknown.is_none(), "no unknown member of the error")?;
    }
    Ok(())
}

pub(super) async fn parse(at: &Fixture) -> CheckResult {
    for body in ["{", "", "{\"jsonrpc\":\"2.0\",}"] {
        is_error(&at.root("echo")?.post(body).await?, -32700, "Invalid JSON payload")?;
    }
    Ok(())
}

pub(super) async fn invalid_request(at: &Fixture) -> CheckResult {
    for body in ["[]", r#"{"jsonrpc":"2.0","id":1}"#, r#"{"jsonrpc":"1.0","id":1,"method":"tasks/get"}"#] {
        is_error(&at.root("echo")?.post(body).await?, -32600, "Request payload validation error")?;
    }
    Ok(())
}

pub(super) async fn method_not_found(at: &Fixture) -> CheckResult {
    let response = at.root("echo")?.call("tasks/paint", "{}").await?;
    is_bare_error(&response, -32601, "Method not found")
}

pub(super) async fn invalid_params(at: &Fixture) -> CheckResult {
    let response = at.root("echo")?.call("tasks/send", r#"{"id":7}"#).await?;
    is_error(&response, -32602, "Invalid parameters")
}

pub(super) async fn internal(at: &Fixture) -> CheckResult {
    let (_, response) = at.fold("tck")?.send_text("a2ad-panic").await?;
    is_error(&response, -32603, "Internal error")
}

pub(super) async fn task_not_found(at: &Fixture) -> CheckResult {
    let client = at.fold("echo")?;
    is_bare_error(&client.get(&unique_id()).await?, -32001, "Task not found")?;
    is_bare_error(&client.cancel(&unique_id()).await?, -32001, "Task not found")
}

pub(super) async fn not_cancelable(at: &Fixture) -> CheckResult {
    let client = at.root("echo")?;
    let (task, _) = client.send_text("hello").await?;
    is_bare_error(&client.cancel(&task).await?, -32002, "Task cannot be canceled")
}

pub(super) async fn no_push(at: &Fixture) -> CheckResult {
    let client = at.agent("unnotified", "echo")?;
    let (task, _) = client.send_text("hello").await?;
    let params = format!(r#"{{"id":"{task}","pushNotificationConfig":{{"url":"https://hooks.example/"}}}}"#);
    let message = "Push Notification is not supported";
    is_bare_error(&client.call("tasks/pushNotification/set", &params).await?, -32003, message)?;
    is_bare_error(&client.call("tasks/pushNotification/get", &params).await?, -32003, message)
}

/// A canceled task cannot be continued.
pub(super) async fn unsupported(at: &Fixture) -> CheckResult {
    let client = at.root("echo")?;
    let (task, _) = client.send_async("hold").await?;
    client.cancel(&task).await?.has_state("canceled")?;
    let response = client.send(&task, &text("go on"), "").await?;
    is_bare_error(&response, -32004, "This operation is not supported")
}

/// The skill slow-writer produces text only.
pub(super) async fn content_types(at: &Fixture) -> CheckResult {
    let client = at.root("slow-writer")?;
    for modes in [r#"["image/png"]"#, r#"["file","data"]"#, r#"["video/*"]"#] {
        let task = unique_id();
        let more = format!(r#","acceptedOutputModes":{modes}"#);
        let response = client.send(&task, &text("the sea sections=1 delay=1ms"), &more).await?;
        is_bare_error(&response, -32005, "Incompatible content types")?;
        is_bare_error(&client.get(&task).await?, -32001, "Task not found")?;
    }
    Ok(())
}

/// Every error code is one of JSON-RPC's own or lies in the range reserved for implementations.
pub(super) async fn own_codes(at: &Fixture) -> CheckResult {
    let client = at.root("echo")?;
    let mut responses = vec![
        client.post("{").await?,
        client.call("tasks/paint", "{}").await?,
        client.get(&unique_id()).await?,
        at.agent("keyed", "echo")?.send_text("hello").await?.1,
    ];
    for (path, version) in [("/a2a/closed", "0.1"), ("/a2a/no-such-agent", "0.1"), ("/", "9.9")] {
        let headers = [("content-type", "application/json"), ("a2a-version", version)];
        let body = request("tasks/get", r#"{"id":"x"}"#);
        responses.push(client.server.send_request("POST", path, &headers, &body).await?);
    }
    let plain = [("content-type", "image/png")];
    responses.push(client.server.send_request("POST", "/", &plain, "{}").await?);
    for response in responses {
        let code = code(&response)?;
        let standard = code == -32700 || (-32603..=-32600).contains(&code);
        response.ensure(
            standard || (-32099..=-32000).contains(&code),
            "a code of JSON-RPC or between -32099 and -32000",
        )?;
    }
    Ok(())
}

fn code(response: &Response) -> Result<i64, CheckError> {
    let code = response.at("error.code")?.to_string();
    code.parse().map_err(|_| mismatch("an integer", code))
}

pub(super) async fn file_content(at: &Fixture) -> CheckResult {
    let client = at.root("echo")?;
    let file = |file: &str| format!(r#"{{"role":"user","parts":[{{"type":"file","file":{file}}}]}}"#);
    for bad in [r#"{"bytes":"YQ==","uri":"https://files.example/a"}"#, "{}", r#"{"name":"a"}"#] {
        client.send(&unique_id(), &file(bad), "").await?.has_error_code(-32602)?;
    }
    for good in [r#"{"bytes":"YQ=="}"#, r#"{"uri":"https://files.example/a"}"#] {
        client.send(&unique_id(), &file(good), "").await?.has_state("completed")?;
    }
    Ok(())
}
