//! The plain channel: a text in, a text out, with an API key of the agent.

use crate::{
    CheckError, CheckResult,
    fixture::Fixture,
    http::Response,
    json::{ValueChecks as _, quote},
    mismatch,
    test_client::TestClient,
};

/// A conversation that can be understood only as a whole, which a replaced key continues.
pub(super) async fn text_for_text(at: &Fixture) -> CheckResult {
    let at = at.credentials().await?;
    let client = at.agent("chat", "");
    let key = at.new_key_of("owner-of-chat", "chat").await?;
    let with_key = client.with_key(&key);

    let answer = with_key.post_as("text/plain", "10 USD to INR").await?;
    is_text(&answer, &["10 USD", "INR"])?;
    let first = with_key.post(r#"{"message":"how much is 7 USD?","metadata":{"channel":"test"}}"#).await?;
    is_text(&first, &[])?;
    let chat = first.header("a2ad-context").ok_or_else(|| mismatch("A2AD-Context", &first))?;
    is_text(&reply(&with_key, chat, "in INR, please").await?, &["7 USD", "INR"])?;

    for wrong in [
        r#"{"message":"10 USD to INR","unknown":1}"#,
        r#"{"message":7}"#,
        r#"{"message":"10 USD to INR","chatId":7}"#,
        r#"{"message":"10 USD to INR","metadata":"x"}"#,
    ] {
        let refused = with_key.post(wrong).await?;
        let is_error = refused.at("error").is_ok() || (400..500).contains(&refused.status());
        refused.ensure(is_error && refused.find("result").is_none(), "an error about the field")?;
    }
    for body in [r#"{"message":"10 USD to INR"}"#, "{}"] {
        client.post(body).await?.has_status(403)?;
        client.with_key("wrong").post(body).await?.has_status(403)?;
    }

    let replacement = at.new_key_of("owner-of-chat", "chat").await?;
    at.revoke(&key).await?;
    with_key.post(r#"{"message":"10 USD to INR"}"#).await?.has_status(403)?;
    is_text(&reply(&client.with_key(&replacement), chat, "and in EUR?").await?, &["7 USD", "EUR"])
}

async fn reply(client: &TestClient, chat: &str, text: &str) -> Result<Response, CheckError> {
    client.post(&format!(r#"{{"message":{},"chatId":{}}}"#, quote(text), quote(chat))).await
}

/// Checks that a response is a plain text with all these parts.
fn is_text(response: &Response, parts: &[&str]) -> CheckResult {
    response.has_status(200)?;
    let kind = response.header("content-type").unwrap_or_default();
    let text = String::from_utf8_lossy(response.body());
    let good = kind.starts_with("text/plain") && !text.is_empty() && !text.starts_with('{');
    if good && parts.iter().all(|part| text.contains(part)) {
        return Ok(());
    }
    Err(mismatch(format!("a plain text with {parts:?}"), format!("{kind}: {response}")))
}
