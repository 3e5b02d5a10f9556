//! Errors with the draft's codes and words.

use crate::selftest::{
    Checked, Trouble,
    door::{fresh, request, text},
    fixture::Fixture,
    http::Answer,
    wrong,
};

/// An error with this code and these words. Those about what cannot be had say nothing more.
fn is_error(answer: &Answer, code: i64, message: &str) -> Checked {
    answer.fails(code)?;
    answer.is("error.message", message)?;
    answer.lacks("result")
}

fn is_bare_error(answer: &Answer, code: i64, message: &str) -> Checked {
    is_error(answer, code, message)?;
    answer.reads("error.data", "null")
}

pub(super) async fn members(at: &Fixture) -> Checked {
    let door = at.fold("echo")?;
    let answers =
        [door.post("{").await?, door.call("tasks/paint", "{}").await?, door.call("tasks/send", "{}").await?];
    for answer in answers {
        answer.at("error.code")?;
        answer.filled("error.message")?;
        let known = ["code", "message", "data"];
        let strange = answer.at("error")?.names().into_iter().find(|name| !known.contains(name));
        answer.must(strange.is_none(), "no member that an error has not got")?;
    }
    Ok(())
}

pub(super) async fn parse(at: &Fixture) -> Checked {
    for body in ["{", "", "{\"jsonrpc\":\"2.0\",}"] {
        is_error(&at.root("echo")?.post(body).await?, -32700, "Invalid JSON payload")?;
    }
    Ok(())
}

pub(super) async fn invalid_request(at: &Fixture) -> Checked {
    for body in ["[]", r#"{"jsonrpc":"2.0","id":1}"#, r#"{"jsonrpc":"1.0","id":1,"method":"tasks/get"}"#] {
        is_error(&at.root("echo")?.post(body).await?, -32600, "Request payload validation error")?;
    }
    Ok(())
}

pub(super) async fn method_not_found(at: &Fixture) -> Checked {
    let answer = at.root("echo")?.call("tasks/paint", "{}").await?;
    is_bare_error(&answer, -32601, "Method not found")
}

pub(super) async fn invalid_params(at: &Fixture) -> Checked {
    let answer = at.root("echo")?.call("tasks/send", r#"{"id":7}"#).await?;
    is_error(&answer, -32602, "Invalid parameters")
}

pub(super) async fn internal(at: &Fixture) -> Checked {
    let (_, answer) = at.fold("tck")?.say("a2ad-panic").await?;
    is_error(&answer, -32603, "Internal error")
}

pub(super) async fn task_not_found(at: &Fixture) -> Checked {
    let door = at.fold("echo")?;
    is_bare_error(&door.get(&fresh()).await?, -32001, "Task not found")?;
    is_bare_error(&door.cancel(&fresh()).await?, -32001, "Task not found")
}

pub(super) async fn not_cancelable(at: &Fixture) -> Checked {
    let door = at.root("echo")?;
    let (task, _) = door.say("hello").await?;
    is_bare_error(&door.cancel(&task).await?, -32002, "Task cannot be canceled")
}

pub(super) async fn no_push(at: &Fixture) -> Checked {
    let door = at.root("echo")?;
    let (task, _) = door.say("hello").await?;
    let params = format!(r#"{{"id":"{task}","pushNotificationConfig":{{"url":"https://hooks.example/"}}}}"#);
    let message = "Push Notification is not supported";
    is_bare_error(&door.call("tasks/pushNotification/set", &params).await?, -32003, message)?;
    is_bare_error(&door.call("tasks/pushNotification/get", &params).await?, -32003, message)
}

/// A canceled task does not go on.
pub(super) async fn unsupported(at: &Fixture) -> Checked {
    let door = at.root("echo")?;
    let (task, _) = door.begin("hold").await?;
    door.cancel(&task).await?.state("canceled")?;
    let answer = door.send(&task, &text("go on"), "").await?;
    is_bare_error(&answer, -32004, "This operation is not supported")
}

/// The writer gives text, whoever asks and however.
pub(super) async fn content_types(at: &Fixture) -> Checked {
    let door = at.root("slow-writer")?;
    for modes in [r#"["image/png"]"#, r#"["file","data"]"#, r#"["video/*"]"#] {
        let task = fresh();
        let more = format!(r#","acceptedOutputModes":{modes}"#);
        let answer = door.send(&task, &text("the sea sections=1 delay=1ms"), &more).await?;
        is_bare_error(&answer, -32005, "Incompatible content types")?;
        is_bare_error(&door.get(&task).await?, -32001, "Task not found")?;
    }
    Ok(())
}

/// Every error that can be had is one of JSON-RPC's own or stays in the range that is left to implementations.
pub(super) async fn own_codes(at: &Fixture) -> Checked {
    let door = at.root("echo")?;
    let mut answers = vec![
        door.post("{").await?,
        door.call("tasks/paint", "{}").await?,
        door.get(&fresh()).await?,
        at.agent("keyed", "echo")?.say("hello").await?.1,
    ];
    for (path, version) in [("/a2a/closed", "0.1"), ("/a2a/no-such-agent", "0.1"), ("/", "9.9")] {
        let headers = [("content-type", "application/json"), ("a2a-version", version)];
        let body = request("tasks/get", r#"{"id":"x"}"#);
        answers.push(door.server.ask("POST", path, &headers, &body).await?);
    }
    let plain = [("content-type", "image/png")];
    answers.push(door.server.ask("POST", "/", &plain, "{}").await?);
    for answer in answers {
        let code = code(&answer)?;
        let standard = code == -32700 || (-32603..=-32600).contains(&code);
        answer.must(standard || (-32099..=-32000).contains(&code), "a code of one of the two ranges")?;
    }
    Ok(())
}

fn code(answer: &Answer) -> Result<i64, Trouble> {
    let code = answer.at("error.code")?.to_string();
    code.parse().map_err(|_| wrong("a whole number", code))
}

pub(super) async fn file_content(at: &Fixture) -> Checked {
    let door = at.root("echo")?;
    let file = |file: &str| format!(r#"{{"role":"user","parts":[{{"type":"file","file":{file}}}]}}"#);
    for bad in [r#"{"bytes":"YQ==","uri":"https://files.example/a"}"#, "{}", r#"{"name":"a"}"#] {
        door.send(&fresh(), &file(bad), "").await?.fails(-32602)?;
    }
    for good in [r#"{"bytes":"YQ=="}"#, r#"{"uri":"https://files.example/a"}"#] {
        door.send(&fresh(), &file(good), "").await?.state("completed")?;
    }
    Ok(())
}
