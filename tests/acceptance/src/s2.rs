//! S2: the profile `pinkfish`. Only the synchronous `message/send` of 0.3, which responds with messages.

use super::{
    Check, CheckError, CheckResult, agents,
    fixture::Fixture,
    http::{Response, Server},
    json::{MemberOrder, ValueChecks as _, is_exactly, parse, quote},
    mismatch,
    test_client::{TestClient, joined, text_part},
    wire,
};

mod allowed_skills;
mod card_url;

/// The checks, by the number of their requirement.
pub(crate) const CHECKS: &[(u16, Check)] = &[
    (1, wire!(protocol)),
    (8, wire!(allowed_skills::only_allowed)),
    (12, wire!(card_members)),
    (14, wire!(url_works)),
    (15, wire!(card_url::endpoint_used)),
    (18, wire!(etag_of_skills)),
    (20, agents!(message_send)),
    (21, agents!(parts, until 17 [Mcp, Http, Command])),
    (22, agents!(agent_message)),
    (26, agents!(new_context)),
    (27, agents!(known_context, until 17 [Mcp, Http, Command])),
    (36, agents!(synchronous, on [Builtin, Mcp, Command])),
    (44, agents!(failed_run)),
];

const CARD: &str = "agent-card.json";

async fn echo(at: &Fixture, text: &str) -> Result<Response, CheckError> {
    at.agent("pinkfish", "echo").message(&text_part(text), "").await
}

async fn protocol(at: &Fixture) -> CheckResult {
    at.card("pinkfish", CARD).await?.is("protocolVersion", "0.3.0")?;
    let response = echo(at, "hello").await?;
    response.is("jsonrpc", "2.0")?;
    let dialect = response.header("a2ad-dialect").unwrap_or_default();
    response.ensure(dialect.starts_with("0.3;"), "a response in 0.3")
}

async fn card_members(at: &Fixture) -> CheckResult {
    let card = at.card("keyed", CARD).await?;
    card.non_empty("name")?;
    card.non_empty("description")?;
    card.is("protocolVersion", "0.3.0")?;
    card.ensure(card.text("url")?.ends_with("/a2a/keyed"), "a url that is the endpoint")?;
    card.is("preferredTransport", "JSONRPC")?;
    card.at("capabilities")?;
    card.at("securitySchemes.ApiKey")?;
    card.is_json("security", r#"[{"ApiKey":[]}]"#)?;
    card.ensure(card.count("skills") > 0, "skills")?;
    card.is_json("defaultInputModes", r#"["text/plain"]"#)?;
    card.is_json("defaultOutputModes", r#"["text/plain"]"#)
}

/// A client for the endpoint in a card's url.
fn client_for_card_url(card: &Response, skill: &'static str) -> Result<TestClient, CheckError> {
    let url = card.text("url")?;
    let rest = url.strip_prefix("http://").and_then(|rest| rest.split_once('/'));
    let (host, path) = rest.ok_or_else(|| mismatch("an http URL with a path", url))?;
    Ok(TestClient::new(&Server::at(host), format!("/{path}"), skill))
}

async fn url_works(at: &Fixture) -> CheckResult {
    let card = at.card("pinkfish", CARD).await?;
    client_for_card_url(&card, "echo")?
        .message(&text_part("hello"), "")
        .await?
        .is("result.kind", "message")?;
    // The url has the host of the request. Servers on loopback reject hosts that are not names of loopback.
    let request = at.server.get("/a2a/pinkfish/.well-known/agent-card.json", &[("host", "localhost:8443")]);
    request.await?.is("url", "http://localhost:8443/a2a/pinkfish")
}

/// Compares two servers whose agents have the same name and url but different skills.
async fn etag_of_skills(at: &Fixture) -> CheckResult {
    let single_task_server = at.single_task_server().await?;
    let fetch = async |server: &Server| {
        let host = [("host", "localhost")];
        let card = server.get("/a2a/pinkfish/.well-known/agent-card.json", &host).await?;
        card.has_status(200)?;
        let etag = card.header("etag").unwrap_or_default().to_owned();
        Ok::<_, CheckError>((etag, card.at("url")?.clone(), card.count("skills")))
    };
    let (one, other) = (fetch(&at.server).await?, fetch(single_task_server.server()).await?);
    let holds = one.0 != other.0 && one.1 == other.1 && one.2 != other.2;
    if holds { Ok(()) } else { Err(mismatch("another ETag for other skills", format!("{one:?} {other:?}"))) }
}

/// A request with a literal body, independent of the client's message builders.
async fn message_send(at: &Fixture) -> CheckResult {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"skill":"echo","message":{"kind":"message",
        "messageId":"11111111-1111-1111-1111-111111111111","role":"user",
        "parts":[{"kind":"text","text":"hello"}]}}}"#;
    let response = at.agent("pinkfish", "echo").post(body).await?;
    response.has_status(200)?;
    response.is_json("result.parts", r#"[{"kind":"text","text":"hello"}]"#)
}

async fn parts(at: &Fixture) -> CheckResult {
    let parts = r#"[{"kind":"text","text":"look"},
        {"kind":"file","file":{"uri":"https://files.example/a.pdf","mimeType":"application/pdf"}},
        {"kind":"data","data":{"rows":[1,2.50]}}]"#;
    let response = at.agent("pinkfish", "echo").message(parts, "").await?;
    is_exactly(response.json_text("result.parts")?, parts, MemberOrder::Any)
}

async fn agent_message(at: &Fixture) -> CheckResult {
    let client = at.agent("pinkfish", "echo");
    let params = client.message_params(&text_part("hello"), "", "");
    let response = client.call("message/send", &params).await?;
    response.is("result.kind", "message")?;
    response.is("result.role", "agent")?;
    response.non_empty("result.contextId")?;
    response.ensure(response.count("result.parts") > 0, "parts")?;
    let sent = parse(&params)?;
    let is_new = response.non_empty("result.messageId")? != sent.text("message.messageId")?;
    response.ensure(is_new, "a new messageId")
}

async fn new_context(at: &Fixture) -> CheckResult {
    let (one, two) = (echo(at, "hello").await?, echo(at, "hello").await?);
    let differ = one.non_empty("result.contextId")? != two.non_empty("result.contextId")?;
    one.ensure(differ, "a new context for each first message")
}

/// Each message can be understood only with the earlier ones of the context: the first task waits for input, the
/// others are completed.
async fn known_context(at: &Fixture) -> CheckResult {
    let client = at.agent("pinkfish", "currency");
    let first = client.message(&text_part("how much is 7 USD?"), "").await?;
    let context = first.non_empty("result.contextId")?;
    let message_members = format!(r#","contextId":{}"#, quote(context));
    for (input, expected) in [
        ("in INR, please", ["7 USD", "INR"]),
        ("and in EUR?", ["7 USD", "EUR"]),
        ("and 8 GBP?", ["8 GBP", "EUR"]),
    ] {
        let response = client
            .call("message/send", &client.message_params(&text_part(input), &message_members, ""))
            .await?;
        response.is("result.kind", "message")?;
        response.is("result.contextId", context)?;
        let text = response.text("result.parts.0.text")?;
        response.ensure(expected.iter().all(|part| text.contains(part)), &expected.join(" in "))?;
    }
    Ok(())
}

/// `blocking: false` has no effect: with this profile there is no method to read the task later.
async fn synchronous(at: &Fixture) -> CheckResult {
    let writer = at.agent("pinkfish", "slow-writer");
    for more in ["", r#","configuration":{"blocking":true}"#, r#","configuration":{"blocking":false}"#] {
        let response = writer.message(&text_part("the sea sections=2 delay=30ms"), more).await?;
        response.is("result.kind", "message")?;
        let text = joined(&response, "result.parts")?;
        response.ensure(text.contains("1 of 2") && text.contains("2 of 2"), "two sections")?;
    }
    let paused = at.agent("pinkfish", "currency").message(&text_part("how much is 1 USD?"), "").await?;
    paused.is("result.kind", "task")?;
    paused.has_state("input-required")?;
    Ok(())
}

async fn failed_run(at: &Fixture) -> CheckResult {
    let client = at.agent("pinkfish", "tck");
    for text in ["a2ad-fail", "a2ad-panic"] {
        client.message(&text_part(text), "").await?.has_error_code(-32603)?;
    }
    Ok(())
}
