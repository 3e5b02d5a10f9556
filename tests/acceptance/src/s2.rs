//! S2: the profile `pinkfish`. Only the synchronous `message/send` of 0.3, which responds with messages.

use super::{
    CheckError, CheckResult, Group, Item, agents,
    fixture::Fixture,
    http::{Response, Server},
    json::{MemberOrder, ValueChecks as _, is_exactly, parse, quote},
    mismatch, not_yet, test,
    test_client::{TestClient, joined, text_part},
    wire,
};

mod allowed_skills;
mod card_url;

pub(crate) const GROUP: Group = Group { name: "S2", items: ITEMS };

const ITEMS: &[Item] = &[
    wire!(1, "the protocol is 0.3.0 over JSON-RPC 2.0", protocol),
    test(
        2,
        "an agent can be enabled and disabled while the server runs",
        "crates/a2ad-cli/tests/program/operators.rs::agents_are_switched_on_a_server_and_in_its_store",
    ),
    test(
        3,
        "plain text requests and responses work with an API key of the agent",
        "crates/inbound/tests/socket/text/json_messages.rs::chat_id_continues_the_conversation_in_every_profile",
    ),
    test(
        4,
        "an agent's API keys have a prefix",
        "crates/inbound/tests/socket/operators.rs::an_agent_has_as_many_keys_as_configured",
    ),
    test(
        5,
        "a key is shown once, and only its hash is stored",
        "crates/a2ad-cli/tests/program/api_keys.rs::a_key_of_a_running_server_is_used_and_revoked_at_once",
    ),
    test(
        6,
        "an agent has at most 20 keys",
        "crates/inbound/tests/socket/operators.rs::an_agent_has_as_many_keys_as_configured",
    ),
    test(
        7,
        "a key is valid for exactly one agent",
        "crates/inbound/tests/socket/api_keys.rs::every_binding_accepts_a_key_in_both_headers_and_nothing_else",
    ),
    wire!(8, "only allowed skills are on the card and can be called", allowed_skills::only_allowed),
    not_yet(9, "tool calls are approved automatically, or the agent pauses for approval", 23),
    test(
        10,
        "end users are identified by their own token",
        "crates/inbound/tests/socket/tokens/end_users.rs::end_user_is_the_subject_of_its_token",
    ),
    test(
        11,
        "each agent's card is public unless the agent is disabled",
        "crates/inbound/tests/socket/profiles/pinkfish.rs::card_lists_the_endpoint_and_the_api_key",
    ),
    wire!(12, "the card has every member that the profile pinkfish defines", card_members),
    test(
        13,
        "the scheme ApiKey is the header X-Api-Key",
        "crates/inbound/tests/socket/profiles/pinkfish.rs::card_lists_the_endpoint_and_the_api_key",
    ),
    wire!(14, "the card's url is the endpoint and accepts calls", url_works),
    wire!(
        15,
        "our client calls the endpoint that the card names and requests no other path",
        card_url::endpoint_used
    ),
    test(
        16,
        "the card has Cache-Control public with max-age 60",
        "crates/inbound/tests/socket/cards.rs::only_cards_with_a_public_url_are_for_shared_caches",
    ),
    test(
        17,
        "the card has an ETag, and a request with that ETag gets 304 without a body",
        "crates/inbound/tests/socket/cards.rs::cached_card_is_not_modified",
    ),
    wire!(18, "the ETag differs for different skills", etag_of_skills),
    test(
        19,
        "POST /a2a/{agent} accepts the header X-Api-Key",
        "crates/inbound/tests/socket/api_keys.rs::every_binding_accepts_a_key_in_both_headers_and_nothing_else",
    ),
    agents!(20, "message/send accepts a message with kind, messageId, role and parts", message_send),
    agents!(21, "parts are text, file by URI and data", parts, on [Builtin], until 17 [Mcp, Http, Command]),
    agents!(22, "the response to a completed send is a new message of the agent", agent_message),
    test(
        23,
        "a numeric request id is returned as a number",
        "crates/inbound/tests/socket/methods.rs::request_ids_are_echoed_at_both_paths_of_the_agent",
    ),
    not_yet(24, "a pause for approval or for a connection is a task", 23),
    not_yet(25, "a paused task resumes by its contextId", 23),
    agents!(26, "a first message without contextId gets a new one", new_context),
    agents!(27, "a message in a known context is handled with the earlier messages of that context", known_context, on [Builtin], until 17 [Mcp, Http, Command]),
    test(
        28,
        "a context belongs to its agent",
        "crates/inbound/tests/socket/profiles/pinkfish.rs::unknown_and_foreign_contexts_are_rejected_alike",
    ),
    test(
        29,
        "a context belongs to its end user",
        "crates/inbound/src/service/access_matrix.rs::foreign_ids_are_absent_in_every_cell",
    ),
    test(
        30,
        "the response for another caller's context equals that for an unknown context",
        "crates/inbound/src/service/access_matrix.rs::foreign_ids_are_absent_in_every_cell",
    ),
    test(
        31,
        "X-Api-Key is required",
        "crates/inbound/tests/socket/profiles/pinkfish.rs::protocol_errors_are_200_missing_credentials_403_and_unknown_agents_404",
    ),
    not_yet(32, "X-Selected-Org selects the organisation", 24),
    test(
        33,
        "X-End-User-Token is required if the agent is configured so",
        "crates/inbound/tests/socket/tokens/end_users.rs::end_user_is_the_subject_of_its_token",
    ),
    test(
        34,
        "message/stream is -32601 with this profile and streams with the profile neutral",
        "crates/inbound/tests/socket/profiles/pinkfish.rs::only_sends_are_supported",
    ),
    test(
        35,
        "task and push methods are -32601 with this profile, and the profile neutral serves the task methods",
        "crates/inbound/tests/socket/profiles/pinkfish.rs::only_sends_are_supported",
    ),
    agents!(36, "the response is sent when the task is terminal or paused, even with blocking false", synchronous, on [Builtin, Mcp, Command]),
    test(
        37,
        "protocol errors have HTTP status 200",
        "crates/inbound/tests/socket/profiles/pinkfish.rs::protocol_errors_are_200_missing_credentials_403_and_unknown_agents_404",
    ),
    test(
        38,
        "an invalid credential is HTTP 403",
        "crates/inbound/tests/socket/tokens/bad_tokens.rs::bad_token_is_refused_in_the_form_of_the_profile",
    ),
    test(
        39,
        "an unknown or disabled agent is HTTP 404",
        "crates/inbound/tests/socket/profiles/pinkfish.rs::protocol_errors_are_200_missing_credentials_403_and_unknown_agents_404",
    ),
    test(
        40,
        "invalid JSON is rejected with -32700",
        "crates/inbound/tests/socket/profiles/pinkfish.rs::protocol_errors_are_200_missing_credentials_403_and_unknown_agents_404",
    ),
    test(
        41,
        "a jsonrpc member that is missing or not 2.0 is rejected with -32600",
        "crates/inbound/tests/socket/profiles/pinkfish.rs::protocol_errors_are_200_missing_credentials_403_and_unknown_agents_404",
    ),
    test(
        42,
        "an unknown method is rejected with -32601",
        "crates/inbound/tests/socket/profiles/pinkfish.rs::protocol_errors_are_200_missing_credentials_403_and_unknown_agents_404",
    ),
    test(
        43,
        "a message without parts is rejected with -32602",
        "crates/inbound/tests/socket/profiles/pinkfish.rs::protocol_errors_are_200_missing_credentials_403_and_unknown_agents_404",
    ),
    agents!(44, "a failed run is reported as -32603", failed_run),
    test(
        45,
        "a missing credential is -32010",
        "crates/inbound/tests/socket/profiles/pinkfish.rs::protocol_errors_are_200_missing_credentials_403_and_unknown_agents_404",
    ),
    test(
        46,
        "a disabled agent is -32011",
        "crates/inbound/tests/socket/profiles/pinkfish.rs::protocol_errors_are_200_missing_credentials_403_and_unknown_agents_404",
    ),
    test(
        47,
        "an exceeded rate limit is -32012 with Retry-After",
        "crates/inbound/tests/socket/rate_limits.rs::refusals_have_the_form_of_the_binding_and_dialect",
    ),
    test(
        48,
        "the rate limit per key is configurable",
        "crates/inbound/tests/socket/rate_limits.rs::a_caller_over_its_rate_is_refused_and_others_are_served",
    ),
    not_yet(49, "the web console manages agents, keys and rate limits", 25),
    not_yet(50, "text, a file by URI and structured data each reach the user's own tool", 17),
    not_yet(
        51,
        "a rate limit is -32012 with status 200 and Retry-After, and a structured reply begins with a text",
        17,
    ),
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
