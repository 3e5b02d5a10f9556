//! Errors with the draft's codes and messages.

use crate::{
    CheckResult,
    fixture::Fixture,
    http::Response,
    json::ValueChecks as _,
    test_client::{text, unique_id},
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

pub(super) async fn internal(at: &Fixture) -> CheckResult {
    let (_, response) = at.fold("tck").send_text("a2ad-panic").await?;
    is_error(&response, -32603, "Internal error")
}

/// A canceled task cannot be continued.
pub(super) async fn unsupported(at: &Fixture) -> CheckResult {
    let client = at.root("echo");
    let (task, _) = client.send_async("hold").await?;
    client.cancel(&task).await?.has_state("canceled")?;
    let response = client.send(&task, &text("go on"), "").await?;
    is_bare_error(&response, -32004, "This operation is not supported")
}

/// The skill slow-writer produces text only.
pub(super) async fn content_types(at: &Fixture) -> CheckResult {
    let client = at.root("slow-writer");
    for modes in [r#"["image/png"]"#, r#"["file","data"]"#, r#"["video/*"]"#] {
        let task = unique_id();
        let more = format!(r#","acceptedOutputModes":{modes}"#);
        let response = client.send(&task, &text("the sea sections=1 delay=1ms"), &more).await?;
        is_bare_error(&response, -32005, "Incompatible content types")?;
        is_bare_error(&client.get(&task).await?, -32001, "Task not found")?;
    }
    Ok(())
}
