//! Credentials: how a card announces them, where a request carries them, and what a caller without one gets.

use serde_json::json;

use crate::{
    CheckError, CheckResult,
    credentials::{BEARER, is_refused, token_of},
    fixture::Fixture,
    http::{Response, Server},
    json::{ValueChecks as _, quote},
    mismatch,
    test_client::{TestClient, text, text_part, unique_id},
    token_issuer::DISCOVERY,
};

/// A valid token and a valid key everywhere but in their headers, then in their headers.
pub(super) async fn only_in_headers(at: &Fixture) -> CheckResult {
    let at = at.credentials().await?;
    let key = at.new_key("neutral").await?;
    for (client, credential) in [(at.native("echo"), token_of("ada")), (at.agent("neutral", "echo"), key)] {
        let quoted = quote(&credential);
        let members = [
            format!(
                r#","metadata":{{"authorization":"Bearer {credential}","x-api-key":{quoted},"apiKey":{quoted}}}"#
            ),
            format!(r#","authorization":"Bearer {credential}","apiKey":{quoted},"token":{quoted}"#),
            format!(r#","authentication":{{"schemes":["bearer"],"credentials":{quoted}}}"#),
        ];
        for members in &members {
            let params = client.message_params(&text_part("hello"), members, members);
            is_refused(&client.call("message/send", &params).await?)?;
        }
        let parts =
            format!(r#"[{{"kind":"data","data":{{"apiKey":{quoted}}}}},{{"kind":"text","text":{quoted}}}]"#);
        is_refused(&client.message(&parts, "").await?)?;
        for name in ["api_key", "x-api-key", "access_token", "token"] {
            let path = format!("{}?{name}={credential}", client.path);
            is_refused(&TestClient { path, ..client.clone() }.hello().await?)?;
        }
        is_refused(&client.with_header("cookie", format!("token={credential}")).hello().await?)?;
        client.with_bearer(&credential).hello().await?.has_state("completed")?;
    }
    Ok(())
}

/// Each announced scheme works as it is announced.
pub(super) async fn announced(at: &Fixture) -> CheckResult {
    let at = at.credentials().await?;
    let (key, token) = (at.new_key("neutral").await?, token_of("ada"));
    for (agent, scheme, credential) in [("neutral", "ApiKey", &key), ("signed", "jwtBearer", &token)] {
        let card = at.card(agent, "agent-card.json").await?;
        card.is("security", json!([{ scheme: [] }]))?;
        let scheme = card.at(&format!("securitySchemes.{scheme}"))?;
        let client = at.agent(agent, "echo");
        is_refused(&client.hello().await?)?;
        let response = follow_scheme(&client, scheme, credential).await?;
        response.has_state("completed")?;
        let draft = at.card(agent, "agent.json").await?;
        draft.ensure(draft.count("authentication.schemes") == 1, "one scheme")?;
    }
    at.card("main", "agent.json").await?.list("authentication.schemes")?;
    Ok(())
}

/// Sends a credential in the place that a security scheme names.
async fn follow_scheme(
    client: &TestClient,
    scheme: &serde_json::Value,
    credential: &str,
) -> Result<Response, CheckError> {
    let (name, value) = match scheme.text("type")? {
        "apiKey" => {
            scheme.is("in", "header")?;
            (scheme.text("name")?, credential.to_owned())
        }
        "http" => ("authorization", format!("{} {credential}", scheme.text("scheme")?)),
        other => return Err(mismatch("apiKey or http", other)),
    };
    let headers = [("content-type", "application/json"), (name, value.as_str())];
    let params = client.message_params(&text_part("hello"), "", "");
    let body = crate::test_client::request("message/send", &params);
    client.server.send_request("POST", &client.path, &headers, &body).await
}

/// Every binding and every method, without a credential and with wrong ones.
pub(super) async fn every_request(at: &Fixture) -> CheckResult {
    let at = at.credentials().await?;
    for agent in ["neutral", "signed"] {
        for request in requests(agent) {
            let missing = send(&at.server, &request, None).await?;
            missing.has_status(401)?;
            let challenge = missing.header("www-authenticate").unwrap_or_default();
            let scheme = if agent == "neutral" { "X-Api-Key" } else { "Bearer" };
            if !challenge.contains(scheme) {
                return Err(mismatch(format!("WWW-Authenticate with {scheme} for {request:?}"), challenge));
            }
            for wrong in [
                ("x-api-key", "pf_a2a_wrong"),
                ("authorization", "Bearer wrong"),
                ("authorization", "Basic d3Jvbmc6"),
            ] {
                is_refused(&send(&at.server, &request, Some(wrong)).await?)?;
            }
        }
    }
    let valid = format!("Bearer {}", token_of("ada"));
    for request in requests("signed") {
        let response = send(&at.server, &request, Some(("authorization", &valid))).await?;
        response.ensure(!matches!(response.status(), 401 | 403), "a request that is not refused")?;
    }
    Ok(())
}

/// One request.
#[derive(Debug)]
struct Request {
    verb: &'static str,
    path: String,
    media_type: &'static str,
    body: String,
}

/// Requests of all bindings over HTTP/1.1.
fn requests(agent: &str) -> Vec<Request> {
    let client = TestClient::new(&Server::at(""), "", "echo");
    let rpc = |method: &str, params: &str| crate::test_client::request(method, params);
    let message = client.message_params(&text_part("hello"), "", "");
    let task = format!(r#"{{"id":{}}}"#, quote(&unique_id()));
    let at = |path: &str| format!("/a2a/{agent}{path}");
    let json = "application/json";
    let post = |path: &str, media_type, body| Request { verb: "POST", path: at(path), media_type, body };
    let rest = r#"{"message":{"messageId":"m","role":"ROLE_USER","parts":[{"text":"hello"}]}}"#;
    let old_rest = r#"{"message":{"messageId":"m","role":"ROLE_USER","content":[{"text":"hello"}]}}"#;
    vec![
        post("", json, rpc("message/send", &message)),
        post("", json, rpc("message/stream", &message)),
        post("", json, rpc("tasks/send", &client.params(&unique_id(), &text("hello"), ""))),
        post("", json, rpc("tasks/get", &task)),
        post("", json, rpc("tasks/cancel", &task)),
        post("", json, rpc("SendMessage", rest)),
        post("", json, rpc("ListTasks", "{}")),
        post("", "text/plain", "hello".into()),
        post("/message:send", json, rest.into()),
        post("/v1/message:send", json, old_rest.into()),
        Request { verb: "GET", path: at("/tasks"), media_type: json, body: String::new() },
        post("/run/echo", "text/plain", "hello".into()),
        post("/mcp", json, rpc("tools/list", "{}")),
    ]
}

async fn send(
    server: &Server,
    request: &Request,
    credential: Option<(&str, &str)>,
) -> Result<Response, CheckError> {
    let Request { verb, path, media_type, body } = request;
    let mut headers = vec![("content-type", *media_type), ("accept", "application/json, text/event-stream")];
    headers.extend(credential);
    server.send_request(verb, path, &headers, body).await
}

/// The link leads to the document of the issuer, whose tokens are accepted.
pub(super) async fn discovery_linked(at: &Fixture) -> CheckResult {
    let at = at.credentials().await?;
    let card = at.card("issued", "agent-card.json").await?;
    let schemes = card.at("securitySchemes")?.as_object();
    let scheme = schemes
        .and_then(|schemes| schemes.values().find(|scheme| scheme.is("type", "openIdConnect").is_ok()));
    let scheme = scheme.ok_or_else(|| mismatch("a scheme of type openIdConnect", &card))?;
    let expected = at.issuer.url() + DISCOVERY;
    scheme.is("openIdConnectUrl", &expected)?;
    let document = Server::at(at.issuer.host()).get(DISCOVERY, &[]).await?;
    document.is("issuer", at.issuer.url())?;
    let client = at.agent("issued", "echo");
    let token = at.issuer.token(&json!({}));
    client.with_bearer(&token).hello().await?.has_state("completed")?;
    for wrong in [
        at.issuer.forged_token(&json!({}))?,
        at.issuer.token(&json!({ "aud": "another" })),
        at.issuer.token(&json!({ "iss": "http://127.0.0.1:1" })),
        token_of("ada"),
        BEARER.to_owned(),
    ] {
        is_refused(&client.with_bearer(&wrong).hello().await?)?;
    }
    Ok(())
}

/// The agent asks for a credential, which is not part of a message: any next message continues the task.
pub(super) async fn asked_during_task(at: &Fixture) -> CheckResult {
    let client = at.root("approver")?;
    let (task, asked) = client.send_text("login to the archive").await?;
    asked.has_state("input-required")?;
    asked.non_empty("result.status.message.parts.0.text")?;
    let parts = asked.list("result.status.message.parts")?;
    let data = parts.iter().find(|part| part.is("type", "data").is_ok());
    let data = data.ok_or_else(|| mismatch("a data part", &asked))?;
    data.ensure(!data.texts("data.schemes")?.is_empty(), "the schemes of the credential")?;
    client.send(&task, &text("done"), "").await?.has_state("completed")?;
    // 0.3 has a state for it.
    let newer = client.message(&text_part("login to the archive"), "").await?;
    newer.has_state("auth-required")?;
    Ok(())
}
