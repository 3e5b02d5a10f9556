//! S2: the profile `pinkfish`. Only the synchronous `message/send` of 0.3, which responds with messages.

use super::{
    CheckError, CheckResult,
    Feature::{Console, Guardrails, Identity},
    Group, Item,
    fixture::Fixture,
    http::{Response, Server},
    json::{MemberOrder, ValueChecks as _, is_exactly, parse, quote},
    mismatch, not_yet, rate_limits,
    test_client::{TestClient, ends_with_final, request, text_part},
    wire,
};

mod allowed_skills;
mod card_url;
mod keys;
mod owners;
mod plain_channel;
mod switches;

pub(crate) const GROUP: Group = Group { name: "S2", items: ITEMS };

const ITEMS: &[Item] = &[
    wire!(1, "the protocol is 0.3.0 over JSON-RPC 2.0", protocol),
    wire!(2, "an agent can be enabled and disabled while the server runs", switches::at_run_time),
    wire!(
        3,
        "plain text requests and responses work with an API key of the agent",
        plain_channel::text_for_text
    ),
    wire!(4, "an agent's API keys have a prefix", keys::prefix),
    wire!(5, "a key is shown once, and only its hash is stored", keys::shown_once),
    wire!(6, "an agent has at most 20 keys", keys::at_most_20),
    wire!(7, "a key is valid for exactly one agent", keys::one_agent),
    wire!(8, "only allowed skills are on the card and can be called", allowed_skills::only_allowed),
    not_yet(9, "tool calls are approved automatically, or the agent pauses for approval", Guardrails),
    wire!(10, "end users are identified by their own token", owners::own_identity),
    wire!(11, "each agent's card is public unless the agent is disabled", public_card),
    wire!(12, "the card has every member that the profile pinkfish defines", card_members),
    wire!(13, "the scheme ApiKey is the header X-Api-Key", keys::header),
    wire!(14, "the card's url is the endpoint and accepts calls", url_works),
    wire!(
        15,
        "our client calls the endpoint that the card names and requests no other path",
        card_url::endpoint_used
    ),
    wire!(16, "the card has Cache-Control public with max-age 60", cache_control),
    wire!(17, "the card has an ETag, and a request with that ETag gets 304 without a body", not_modified),
    wire!(18, "the ETag differs for different skills", etag_of_skills),
    wire!(19, "POST /a2a/{agent} accepts the header X-Api-Key", api_key_header),
    wire!(20, "message/send accepts a message with kind, messageId, role and parts", message_send),
    wire!(21, "parts are text, file by URI and data", parts),
    wire!(22, "the response to a completed send is a new message of the agent", agent_message),
    wire!(23, "a numeric request id is returned as a number", number_id),
    not_yet(24, "a pause for approval or for a connection is a task", Guardrails),
    not_yet(25, "a paused task resumes by its contextId", Guardrails),
    wire!(26, "a first message without contextId gets a new one", new_context),
    wire!(
        27,
        "a message in a known context is handled with the earlier messages of that context",
        known_context
    ),
    wire!(28, "a context belongs to its agent", owners::of_agent),
    wire!(29, "a context belongs to its end user", owners::of_end_user),
    wire!(
        30,
        "the response for another caller's context equals that for an unknown context",
        owners::not_revealed
    ),
    wire!(31, "X-Api-Key is required", keys::required),
    not_yet(32, "X-Selected-Org selects the organisation", Identity),
    wire!(33, "X-End-User-Token is required if the agent is configured so", owners::token_required),
    wire!(
        34,
        "message/stream is -32601 with this profile and streams with the profile neutral",
        stream_rejected
    ),
    wire!(
        35,
        "task and push methods are -32601 with this profile, and the profile neutral serves the task methods",
        task_methods_rejected
    ),
    wire!(
        36,
        "the response is sent when the task is terminal or paused, even with blocking false",
        synchronous
    ),
    wire!(37, "protocol errors have HTTP status 200", status_200),
    wire!(38, "an invalid credential is HTTP 403", keys::forbidden),
    wire!(39, "an unknown or disabled agent is HTTP 404", switches::status_404),
    wire!(40, "invalid JSON is rejected with -32700", invalid_json),
    wire!(41, "a jsonrpc member that is missing or not 2.0 is rejected with -32600", other_jsonrpc),
    wire!(42, "an unknown method is rejected with -32601", unknown_method),
    wire!(43, "a message without parts is rejected with -32602", no_parts),
    wire!(44, "a failed run is reported as -32603", failed_run),
    wire!(45, "a missing credential is -32010", keys::unauthenticated),
    wire!(46, "a disabled agent is -32011", switches::error_code),
    wire!(47, "an exceeded rate limit is -32012 with Retry-After", rate_limits::refusal),
    wire!(48, "the rate limit per key is configurable", rate_limits::per_key),
    not_yet(49, "the web console manages agents, keys and rate limits", Console),
];

const CARD: &str = "agent-card.json";

async fn echo(at: &Fixture, text: &str) -> Result<Response, CheckError> {
    at.agent("pinkfish", "echo")?.message(&text_part(text), "").await
}

async fn protocol(at: &Fixture) -> CheckResult {
    at.card("pinkfish", CARD).await?.is("protocolVersion", "0.3.0")?;
    let response = echo(at, "hello").await?;
    response.is("jsonrpc", "2.0")?;
    let dialect = response.header("a2ad-dialect").unwrap_or_default();
    response.ensure(dialect.starts_with("0.3;"), "a response in 0.3")
}

async fn public_card(at: &Fixture) -> CheckResult {
    at.card("pinkfish", CARD).await?;
    // The card of an agent that requires an API key for calls is public too.
    at.card("keyed", CARD).await?;
    at.server.get("/a2a/closed/.well-known/agent-card.json", &[]).await?.has_status(404)
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

/// A card is public if the server has a configured URL; otherwise its url depends on the request, and a shared cache
/// could return that of another client.
async fn cache_control(at: &Fixture) -> CheckResult {
    let check = |card: &Response, scope: &str| {
        let control = card.header("cache-control").unwrap_or_default();
        let good = control.contains(scope) && control.contains("max-age=60");
        if good { Ok(()) } else { Err(mismatch(format!("cache-control: {scope}, max-age=60"), control)) }
    };
    let card = at.card("pinkfish", CARD).await?;
    if at.is_self_started() {
        check(&card, "private")?;
        let published = at.published().await?;
        let path = "/a2a/pinkfish/.well-known/agent-card.json";
        return check(&published.server.get(path, &[]).await?, "public");
    }
    if check(&card, "private").is_ok() {
        return Err(CheckError::NotOffered("public_url of the server".into()));
    }
    check(&card, "public")
}

async fn not_modified(at: &Fixture) -> CheckResult {
    let card = at.card("pinkfish", CARD).await?;
    let etag = card.header("etag").ok_or_else(|| mismatch("an ETag", &card))?;
    let path = "/a2a/pinkfish/.well-known/agent-card.json";
    let again = at.server.get(path, &[("if-none-match", etag)]).await?;
    again.has_status(304)?;
    again.ensure(again.body().is_empty(), "no body")?;
    at.server.get(path, &[("if-none-match", "\"another\"")]).await?.has_status(200)
}

/// Compares two servers whose agents have the same name and url but different skills.
async fn etag_of_skills(at: &Fixture) -> CheckResult {
    at.agent("pinkfish", "echo")?;
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

async fn api_key_header(at: &Fixture) -> CheckResult {
    let client = at.agent("pinkfish", "echo")?;
    let body = request("message/send", &client.message_params(&text_part("hello"), "", ""));
    let headers = [("content-type", "application/json"), ("x-api-key", "pf_a2a_0123456789")];
    client.server.send_request("POST", &client.path, &headers, &body).await?.is("result.role", "agent")
}

/// A request with a literal body, independent of the client's message builders.
async fn message_send(at: &Fixture) -> CheckResult {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"kind":"message",
        "messageId":"11111111-1111-1111-1111-111111111111","role":"user",
        "parts":[{"kind":"text","text":"hello"}]}}}"#;
    let response = at.agent("pinkfish", "echo")?.post(body).await?;
    response.has_status(200)?;
    response.is_json("result.parts", r#"[{"kind":"text","text":"hello"}]"#)
}

async fn parts(at: &Fixture) -> CheckResult {
    let parts = r#"[{"kind":"text","text":"look"},
        {"kind":"file","file":{"uri":"https://files.example/a.pdf","mimeType":"application/pdf"}},
        {"kind":"data","data":{"rows":[1,2.50]}}]"#;
    let response = at.agent("pinkfish", "echo")?.message(parts, "").await?;
    is_exactly(response.json_text("result.parts")?, parts, MemberOrder::Any)
}

async fn agent_message(at: &Fixture) -> CheckResult {
    let client = at.agent("pinkfish", "echo")?;
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

async fn number_id(at: &Fixture) -> CheckResult {
    let client = at.agent("pinkfish", "echo")?;
    let params = client.message_params(&text_part("hello"), "", "");
    let body = format!(r#"{{"jsonrpc":"2.0","id":42,"method":"message/send","params":{params}}}"#);
    client.post(&body).await?.is("id", 42)
}

async fn new_context(at: &Fixture) -> CheckResult {
    let (one, two) = (echo(at, "hello").await?, echo(at, "hello").await?);
    let differ = one.non_empty("result.contextId")? != two.non_empty("result.contextId")?;
    one.ensure(differ, "a new context for each first message")
}

/// Each message can be understood only with the earlier ones of the context: the first task waits for input, the
/// others are completed.
async fn known_context(at: &Fixture) -> CheckResult {
    let client = at.agent("pinkfish", "currency")?;
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

async fn stream_rejected(at: &Fixture) -> CheckResult {
    let client = at.agent("pinkfish", "echo")?;
    let params = client.message_params(&text_part("hello"), "", "");
    client.call("message/stream", &params).await?.has_error_code(-32601)?;
    let elsewhere = at.root("echo")?;
    let events = elsewhere.stream("message/stream", &params).await?.all().await?;
    ends_with_final(&events)
}

async fn task_methods_rejected(at: &Fixture) -> CheckResult {
    let client = at.agent("pinkfish", "echo")?;
    for method in ["tasks/get", "tasks/cancel", "tasks/resubscribe"] {
        client.call(method, r#"{"id":"x"}"#).await?.has_error_code(-32601)?;
    }
    for method in ["set", "get", "list", "delete"] {
        let params = r#"{"id":"x","taskId":"x","pushNotificationConfigId":"y",
            "pushNotificationConfig":{"url":"https://hooks.example/"}}"#;
        client
            .call(&format!("tasks/pushNotificationConfig/{method}"), params)
            .await?
            .has_error_code(-32601)?;
    }
    let elsewhere = at.root("echo")?;
    let sent = elsewhere.message(&text_part("hello"), "").await?;
    let done = sent.text("result.id")?;
    elsewhere.get(done).await?.has_state("completed")?;
    elsewhere.cancel(done).await?.has_error_code(-32002)?;
    let params = format!(r#"{{"id":{}}}"#, quote(done));
    let rest = elsewhere.stream("tasks/resubscribe", &params).await?.all().await?;
    let last = rest.last().ok_or_else(|| mismatch("an event", "none"))?;
    last.data.is("result.status.state", "completed")
}

/// `blocking: false` has no effect: with this profile there is no method to read the task later.
async fn synchronous(at: &Fixture) -> CheckResult {
    let writer = at.agent("pinkfish", "slow-writer")?;
    for more in ["", r#","configuration":{"blocking":true}"#, r#","configuration":{"blocking":false}"#] {
        let response = writer.message(&text_part("the sea sections=2 delay=30ms"), more).await?;
        response.is("result.kind", "message")?;
        response.ensure(response.count("result.parts") == 2, "two sections")?;
    }
    let paused = at.agent("pinkfish", "currency")?.message(&text_part("how much is 1 USD?"), "").await?;
    paused.is("result.kind", "task")?;
    paused.has_state("input-required")?;
    Ok(())
}

async fn status_200(at: &Fixture) -> CheckResult {
    let client = at.agent("pinkfish", "echo")?;
    for body in ["{", r#"{"jsonrpc":"1.0","id":1,"method":"message/send"}"#, r#"{"jsonrpc":"2.0","id":1}"#] {
        is_200(&client.post(body).await?)?;
    }
    is_200(&client.call("message/paint", "{}").await?)?;
    is_200(&client.message("[]", "").await?)?;
    is_200(&client.with_skill("tck").message(&text_part("a2ad-fail"), "").await?)
}

fn is_200(error: &Response) -> CheckResult {
    error.at("error.code")?;
    error.has_status(200)
}

async fn invalid_json(at: &Fixture) -> CheckResult {
    at.agent("pinkfish", "echo")?.post(r#"{"jsonrpc":"2.0""#).await?.has_error_code(-32700)?;
    Ok(())
}

async fn other_jsonrpc(at: &Fixture) -> CheckResult {
    let client = at.agent("pinkfish", "echo")?;
    let params = client.message_params(&text_part("hello"), "", "");
    for version in [r#""jsonrpc":"1.0","#, r#""jsonrpc":2,"#, ""] {
        let body = format!(r#"{{{version}"id":1,"method":"message/send","params":{params}}}"#);
        client.post(&body).await?.has_error_code(-32600)?;
    }
    Ok(())
}

async fn unknown_method(at: &Fixture) -> CheckResult {
    at.agent("pinkfish", "echo")?.call("message/paint", "{}").await?.has_error_code(-32601)?;
    Ok(())
}

async fn no_parts(at: &Fixture) -> CheckResult {
    at.agent("pinkfish", "echo")?.message("[]", "").await?.has_error_code(-32602)?;
    Ok(())
}

async fn failed_run(at: &Fixture) -> CheckResult {
    let client = at.agent("pinkfish", "tck")?;
    for text in ["a2ad-fail", "a2ad-panic"] {
        client.message(&text_part(text), "").await?.has_error_code(-32603)?;
    }
    Ok(())
}
