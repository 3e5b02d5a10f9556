//! Who owns a context: the agent, the caller and, where the agent requires it, the end user.

use serde_json::json;

use crate::{
    CheckError, CheckResult,
    credentials::{CredentialServer, FOREIGN_SECRET, token_of, token_with},
    fixture::Fixture,
    http::Response,
    json::{ValueChecks as _, quote},
    mismatch,
    test_client::{TestClient, text_part},
    token::{hs256, now},
};

const END_USER: &str = "x-end-user-token";

/// Starts a conversation and returns its context.
async fn new_context(client: &TestClient) -> Result<String, CheckError> {
    let response = client.hello().await?;
    Ok(response.non_empty("result.contextId")?.to_owned())
}

async fn send_in(client: &TestClient, context: &str) -> Result<Response, CheckError> {
    let member = format!(r#","contextId":{}"#, quote(context));
    client.call("message/send", &client.message_params(&text_part("hello"), &member, "")).await
}

/// The keys of both agents have the same owner, so that only the agent differs.
pub(super) async fn of_agent(at: &Fixture) -> CheckResult {
    let at = at.credentials().await?;
    let [one, other] = [client_of(at, "keyed").await?, client_of(at, "other").await?];
    let context = new_context(&one).await?;
    send_in(&other, &context).await?.has_error_code(-32602)?;
    send_in(&one, &context).await?.is("result.contextId", &context)
}

async fn client_of(at: &CredentialServer, agent: &str) -> Result<TestClient, CheckError> {
    Ok(at.agent(agent, "echo").with_key(&at.new_key_of("owner-of-contexts", agent).await?))
}

/// The same key acts for two end users.
pub(super) async fn of_end_user(at: &Fixture) -> CheckResult {
    let at = at.credentials().await?;
    let client = client_of(at, "connected").await?;
    let [ada, bob] = ["ada", "bob"].map(|user| client.with_header(END_USER, token_of(user)));
    let context = new_context(&ada).await?;
    send_in(&bob, &context).await?.has_error_code(-32602)?;
    send_in(&ada, &context).await?.is("result.contextId", &context)?;
    // Another token of the same user.
    let again = client.with_header(END_USER, token_with(&json!({ "sub": "ada", "jti": "another" })));
    send_in(&again, &context).await?.is("result.contextId", &context)
}

/// The context of another agent, of another caller and of another end user, and one that never existed.
pub(super) async fn not_revealed(at: &Fixture) -> CheckResult {
    let at = at.credentials().await?;
    let own = client_of(at, "keyed").await?;
    let other_agent = client_of(at, "other").await?;
    let other_caller = at.agent("keyed", "echo").with_key(&at.new_key("keyed").await?);
    let mut contexts = vec![new_context(&other_agent).await?, new_context(&other_caller).await?];
    contexts.push(unknown_like(&contexts[0]));
    contexts.push("unknown".into());
    let mut bytes = Vec::new();
    for context in &contexts {
        let response = send_in(&own, context).await?;
        response.has_error_code(-32602)?;
        bytes.push((response.status(), response.body().to_vec()));
    }
    let connected = client_of(at, "connected").await?;
    let [ada, bob] = ["ada", "bob"].map(|user| connected.with_header(END_USER, token_of(user)));
    let response = send_in(&bob, &new_context(&ada).await?).await?;
    bytes.push((response.status(), response.body().to_vec()));
    match bytes.iter().find(|response| **response != bytes[0]) {
        None => Ok(()),
        Some((_, other)) => {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            Err(mismatch(text(&bytes[0].1), text(other)))
        }
    }
}

/// An id of the same form with other characters at its end.
fn unknown_like(id: &str) -> String {
    let last = if id.ends_with("22") { "33" } else { "22" };
    format!("{}{last}", &id[..id.len() - 2])
}

/// Each end user has its own tasks, although the key is the same.
pub(super) async fn own_identity(at: &Fixture) -> CheckResult {
    let at = at.credentials().await?;
    let client = client_of(at, "users").await?;
    for wrong in wrong_tokens() {
        client.with_header(END_USER, wrong).hello().await?.has_status(401)?;
    }
    let [ada, bob] = ["ada", "bob"].map(|user| client.with_header(END_USER, token_of(user)));
    let sent = ada.hello().await?;
    let task = sent.has_state("completed")?.non_empty("result.id")?;
    ada.get(task).await?.is("result.id", task)?;
    bob.get(task).await?.has_error_code(-32001)?;
    // The token of an end user is no credential of a caller.
    at.agent("users", "echo").with_header(END_USER, token_of("ada")).hello().await?.has_status(401)
}

/// Tokens that identify nobody.
fn wrong_tokens() -> Vec<String> {
    vec![
        "nonsense".into(),
        hs256(FOREIGN_SECRET, &json!({})),
        token_with(&json!({ "exp": now() - 120 })),
        token_with(&json!({ "exp": null })),
    ]
}

pub(super) async fn token_required(at: &Fixture) -> CheckResult {
    let at = at.credentials().await?;
    let client = client_of(at, "connected").await?;
    let missing = client.hello().await?;
    missing.has_status(403)?;
    missing.has_error_code(-32010)?;
    for wrong in wrong_tokens() {
        client.with_header(END_USER, wrong).hello().await?.has_status(403)?;
    }
    let known = client.with_header(END_USER, token_of("ada"));
    known.hello().await?.is("result.kind", "message")?;
    // Not where the agent does not require it.
    let keyed = client_of(at, "keyed").await?;
    for client in [keyed.with_header(END_USER, "nonsense"), keyed] {
        client.hello().await?.is("result.kind", "message")?;
    }
    Ok(())
}
