//! S3: the profile `agent-native`. 0.3 whose parts also have the draft's `type`, and tasks that survive disconnects,
//! crashes and restarts.

use super::{
    CheckError, CheckResult, Group, Item, agents,
    crash::SECTIONS,
    fixture::Fixture,
    http::{Response, Server},
    json::{ValueChecks as _, quote},
    mismatch, not_yet, test,
    test_client::{TestClient, ends_with_final, has_sections, states, text_part, unique_id},
    wire,
};

mod public_card;

pub(crate) const GROUP: Group = Group { name: "S3", items: ITEMS };

const ITEMS: &[Item] = &[
    wire!(1, "the card at /.well-known/agent-card.json is public, also in production", public_card),
    test(
        2,
        "POST /_agent-native/a2a accepts JSON-RPC",
        "crates/inbound/tests/socket/endpoints.rs::every_endpoint_serves_the_same_agent_in_every_generation",
    ),
    test(
        3,
        "_process-task accepts only signed requests",
        "crates/inbound/tests/socket/process_task.rs::token_must_be_signed_for_the_task_and_be_valid_now",
    ),
    test(
        4,
        "POST /a2a accepts JSON-RPC as well",
        "crates/inbound/tests/socket/endpoints.rs::every_endpoint_serves_the_same_agent_in_every_generation",
    ),
    test(
        5,
        "the _process-task route takes precedence over the path above it",
        "crates/inbound/tests/socket/process_task.rs::path_is_not_part_of_json_rpc",
    ),
    test(
        6,
        "methods other than GET at the card's path are 405",
        "crates/inbound/tests/socket/paths.rs::wrong_method_error_lists_the_allowed_methods",
    ),
    wire!(7, "the card has every member that the profile agent-native defines", card_members),
    test(
        8,
        "the card lists the configured authentication schemes",
        "crates/inbound/tests/socket/declared_credentials.rs::cards_of_every_dialect_declare_what_the_agent_accepts",
    ),
    wire!(
        9,
        "skills of users and organisations are not on the public card",
        public_card::private_skills_hidden
    ),
    wire!(10, "the operator's own tools are on the public card", public_card::operator_skills_shown),
    not_yet(11, "public responses reveal no tenant", 24),
    test(
        12,
        "an authenticated caller sees additional skills",
        "crates/a2ad/tests/library/api.rs::extended_skills_are_for_callers_who_can_get_the_extended_card",
    ),
    agents!(13, "message/send waits and returns the completed task", send_waits),
    agents!(14, "message/send with async returns immediately with a working task", send_async_returns),
    agents!(15, "async is honoured as a parameter only, not in metadata", async_is_parameter_only),
    agents!(16, "the client can choose the contextId", context_chosen),
    agents!(17, "message/stream streams the task, its statuses and its artifacts", streams),
    test(
        18,
        "message/stream is -32601 where streaming is disabled",
        "crates/inbound/tests/socket/profiles/agent_native.rs::streaming_methods_are_not_found_if_disabled",
    ),
    agents!(19, "tasks/get polls a task until it is completed", get_polls),
    agents!(20, "tasks/cancel cancels a working task", cancel_working),
    test(
        21,
        "a signed request wakes another process to run a task",
        "crates/inbound/tests/socket/process_task.rs::queued_work_of_the_signed_task_starts_at_once",
    ),
    test(
        22,
        "such a signature is valid for one task and five minutes",
        "crates/inbound/tests/socket/process_task.rs::token_must_be_signed_for_the_task_and_be_valid_now",
    ),
    agents!(23, "text, data and file parts have a type", parts_have_type, on [Builtin], until 17 [Mcp, Http, Command]),
    agents!(
        24,
        "a task that was accepted runs although the process is killed before it starts",
        queued_task_survives_crash
    ),
    not_yet(25, "the client library can fetch a card, send, stream and wait", 20),
    not_yet(26, "the client library reads a task's text from its status", 20),
    not_yet(27, "callAgent returns text for text", 20),
    not_yet(28, "callAgent polls by default", 20),
    not_yet(29, "callAgent signs a token for a user", 20),
    not_yet(30, "the client falls back to /a2a", 20),
    not_yet(31, "the client prefers the card's url", 20),
    not_yet(32, "the client polls with backoff and a deadline", 20),
    agents!(33, "each message creates a task, and six states can be reached", six_states, on [Builtin, Mcp, Command]),
    agents!(34, "an error or a panic of the agent sets the task's state to failed", agent_failure),
    agents!(35, "an agent that needs input sets the state input-required", input_required, on [Builtin, Mcp, Command]),
    agents!(36, "tasks are persisted and readable after a restart", after_restart),
    test(
        37,
        "tokens signed with A2A_SECRET are verified before an agent runs",
        "crates/inbound/tests/socket/tokens/bad_tokens.rs::no_bad_token_is_accepted",
    ),
    test(
        38,
        "a static bearer token can be configured by the name of an environment variable",
        "crates/a2ad-cli/tests/program/credentials/client.rs::bearer_token_is_accepted_in_every_version_of_the_card",
    ),
    test(
        39,
        "signed tokens and a static bearer token can be used together",
        "crates/a2ad/tests/library/credentials.rs::agents_accept_what_they_list_else_what_the_server_verifies",
    ),
    test(
        40,
        "without credentials in development, the server logs one warning",
        "crates/a2ad-cli/tests/program/credentials/start.rs::every_configuration_starts_or_is_refused_as_documented",
    ),
    test(
        41,
        "without credentials in production, calls get 503 and no agent runs",
        "crates/inbound/tests/socket/declared_credentials.rs::agent_without_authentication_in_production_is_unavailable",
    ),
    test(
        42,
        "production is detected from the hosting provider's environment variables",
        "crates/a2ad-cli/tests/program/credentials/start.rs::every_configuration_starts_or_is_refused_as_documented",
    ),
    test(
        43,
        "_process-task without a secret in production is 503",
        "crates/inbound/tests/socket/process_task.rs::signature_needs_a_secret_and_no_other_credential",
    ),
    test(
        44,
        "a request with an invalid token never reaches an agent",
        "crates/inbound/tests/socket/tokens/bad_tokens.rs::no_bad_token_is_accepted",
    ),
    test(
        45,
        "a token is verified with the global secret and then with the organisation's",
        "crates/inbound/tests/socket/tokens/secrets.rs::secret_of_the_server_is_tried_before_that_of_the_organisation",
    ),
    test(
        46,
        "aud and iss are verified if present, and exp always",
        "crates/inbound/tests/socket/tokens/secrets.rs::lifetime_issuer_and_audience_are_checked",
    ),
    test(
        47,
        "a token for another service is rejected",
        "crates/inbound/tests/socket/tokens/secrets.rs::lifetime_issuer_and_audience_are_checked",
    ),
    test(
        48,
        "the card offers JWT only where it can be used",
        "crates/inbound/tests/socket/declared_credentials.rs::agent_without_authentication_in_production_is_unavailable",
    ),
    not_yet(49, "a delegation to a remote agent is stored as a separate row", 21),
    not_yet(50, "a delegated task is polled until its result can be delivered", 21),
    not_yet(51, "a delegation fails with a clear error after ten minutes or six attempts", 21),
    not_yet(52, "delegations of a crashed process are resumed exactly once", 21),
    not_yet(53, "tasks that arrived by webhook have three attempts", 21),
    not_yet(54, "every app of a workspace is a peer", 21),
    not_yet(55, "all apps of a workspace share one secret", 21),
    not_yet(56, "an app is reachable at /apps/{id} on the same origin", 21),
    not_yet(57, "outbound tokens identify the caller", 21),
    not_yet(58, "discovery lists the agents of the workspace", 21),
    not_yet(59, "agents outside the workspace use bearer keys", 21),
    agents!(60, "a task is stored before the response is sent, and runs afterwards", stored_before_response),
    agents!(
        61,
        "a task continues after the connection that started it is closed",
        continues_after_disconnect
    ),
    agents!(62, "a task that was claimed and not finished is resumed after a crash", resumed_after_crash),
    not_yet(63, "an @-mention calls the mentioned agent", 21),
    not_yet(64, "local agents run inside the process", 21),
    not_yet(65, "a message is routed to the best-matching app", 21),
    not_yet(66, "adapters reply in the same thread", 21),
    not_yet(67, "one agent calls another and receives text", 21),
    test(
        68,
        "the server's routes can be mounted into another HTTP app with one call",
        "crates/a2ad/tests/library/api.rs::a_mounted_server_leaves_the_routes_of_the_app_intact",
    ),
    agents!(69, "the status of a completed task has the agent's text", text_in_status, on [], until 17 [Builtin, Mcp, Http, Command]),
    agents!(70, "a message without messageId works at the card's url and at /a2a", without_message_id, on [], until 17 [Builtin, Mcp, Http, Command]),
    agents!(71, "every update of a stream has a status", updates_have_status, on [], until 17 [Builtin, Mcp, Http, Command]),
    not_yet(72, "the secrets of organisations are managed while the server runs", 17),
    not_yet(73, "the signed endpoints for continuations and webhook tasks exist", 21),
    not_yet(74, "operators add agents that can be mentioned, and further providers of their names", 21),
];

async fn public_card(at: &Fixture) -> CheckResult {
    card_is_public(&at.server).await?;
    // The card is public also for an agent that rejects anonymous calls, and in production.
    at.agent("keyed", "slow-writer").message(&text_part("the sea"), "").await?.has_status(403)?;
    at.card("keyed", "agent-card.json").await?.non_empty("name")?;
    card_is_public(&at.production().await?.server).await
}

/// The card is returned also with an invalid credential, which is ignored.
async fn card_is_public(server: &Server) -> CheckResult {
    for headers in [&[][..], &[("authorization", "Bearer nonsense")][..]] {
        let card = server.get("/.well-known/agent-card.json", headers).await?;
        card.has_status(200)?;
        card.non_empty("name")?;
    }
    Ok(())
}

/// Uses the single-task server, whose default agent has this profile.
async fn card_members(at: &Fixture) -> CheckResult {
    let single_task_server = at.single_task_server().await?;
    let card = single_task_server.server().get("/.well-known/agent-card.json", &[]).await?;
    card.non_empty("name")?;
    card.non_empty("description")?;
    card.is("url", format!("http://{}", single_task_server.server().host))?;
    card.is("version", "1.0.0")?;
    card.is("protocolVersion", "0.3")?;
    card.is("capabilities.streaming", true)?;
    card.is("capabilities.pushNotifications", false)?;
    card.is("capabilities.stateTransitionHistory", true)?;
    for skill in card.list("skills")? {
        skill.non_empty("id")?;
        skill.non_empty("name")?;
        skill.non_empty("description")?;
        skill.texts("tags")?;
        skill.texts("examples")?;
    }
    card.is("securitySchemes.apiKey.type", "http")?;
    let scheme = card.text("securitySchemes.apiKey.scheme")?;
    card.ensure(scheme.eq_ignore_ascii_case("bearer"), "the scheme bearer")?;
    // The agent also accepts anonymous calls, which the empty requirement expresses.
    card.is_json("security", r#"[{"apiKey":[]},{}]"#)
}

const SLOW: &str = "the sea sections=2 delay=40ms";

async fn send_waits(at: &Fixture) -> CheckResult {
    let response = at.native("slow-writer").message(&text_part(SLOW), "").await?;
    response.is("result.kind", "task")?;
    response.has_state("completed")?;
    has_sections(&response, 2)
}

/// Sends with `async` and returns the task's id with the response.
async fn send_async(client: &TestClient, text: &str) -> Result<(String, Response), CheckError> {
    let response = client.message(&text_part(text), r#","async":true"#).await?;
    Ok((response.non_empty("result.id")?.to_owned(), response))
}

async fn send_async_returns(at: &Fixture) -> CheckResult {
    let client = at.native("slow-writer");
    let (task, response) = send_async(&client, SLOW).await?;
    response.has_state("working")?;
    client.poll_until_state(&task, "completed").await?;
    Ok(())
}

async fn async_is_parameter_only(at: &Fixture) -> CheckResult {
    let client = at.native("slow-writer");
    let message_members = r#","metadata":{"async":true}"#;
    let params = client.message_params(&text_part(SLOW), message_members, message_members);
    client.call("message/send", &params).await?.has_state("completed")?;
    Ok(())
}

async fn context_chosen(at: &Fixture) -> CheckResult {
    let client = at.native("echo");
    let context = unique_id();
    let more = format!(r#","contextId":{}"#, quote(&context));
    for _ in 0..2 {
        client.message(&text_part("hello"), &more).await?.is("result.contextId", &context)?;
    }
    client.message(&text_part("hello"), "").await?.non_empty("result.contextId")?;
    Ok(())
}

async fn streams(at: &Fixture) -> CheckResult {
    let client = at.native("slow-writer");
    let params = client.message_params(&text_part(SLOW), "", "");
    let events = client.stream("message/stream", &params).await?.all().await?;
    ends_with_final(&events)?;
    let kinds: Vec<&str> = events.iter().filter_map(|event| event.data.text("result.kind").ok()).collect();
    let has = |kind| kinds.contains(&kind);
    let good = kinds.first() == Some(&"task") && has("status-update") && has("artifact-update");
    let good = good && states(&events).last() == Some(&"completed");
    if good { Ok(()) } else { Err(mismatch("task, status-update, artifact-update", kinds.join(", "))) }
}

async fn get_polls(at: &Fixture) -> CheckResult {
    let client = at.native("slow-writer");
    let (task, _) = send_async(&client, SLOW).await?;
    let done = client.poll_until_state(&task, "completed").await?;
    done.is("result.kind", "task")?;
    has_sections(&done, 2)
}

async fn cancel_working(at: &Fixture) -> CheckResult {
    let client = at.native("echo");
    let (task, _) = send_async(&client, "hold").await?;
    client.cancel(&task).await?.has_state("canceled")?;
    client.get(&task).await?.has_state("canceled")?;
    Ok(())
}

async fn parts_have_type(at: &Fixture) -> CheckResult {
    let parts = r#"[{"type":"text","text":"Show signups"},{"type":"data","data":{"dateRange":"last-30d"}},
        {"type":"file","file":{"name":"report.csv","mimeType":"text/csv","bytes":"YSxiCg=="}}]"#;
    let response = at.native("echo").message(parts, "").await?;
    for (index, kind) in ["text", "data", "file"].into_iter().enumerate() {
        response.is(&format!("result.artifacts.0.parts.{index}.type"), kind)?;
    }
    response.is("result.artifacts.0.parts.0.text", "Show signups")?;
    response.is_json("result.artifacts.0.parts.1.data", r#"{"dateRange":"last-30d"}"#)?;
    let file = r#"{"name":"report.csv","mimeType":"text/csv","bytes":"YSxiCg=="}"#;
    response.is_json("result.artifacts.0.parts.2.file", file)
}

async fn queued_task_survives_crash(at: &Fixture) -> CheckResult {
    let crash = at.crash().await?;
    let done = crash.client().poll_until_state(&crash.queued.0, "completed").await?;
    done.is("result.artifacts.0.parts.0.text", "after")
}

async fn six_states(at: &Fixture) -> CheckResult {
    let (echo, tck) = (at.native("echo"), at.native("tck"));
    let (one, two) =
        (echo.message(&text_part("hello"), "").await?, echo.message(&text_part("hello"), "").await?);
    one.ensure(one.non_empty("result.id")? != two.non_empty("result.id")?, "a task for each message")?;
    let params = echo.message_params(&text_part("hello"), "", "");
    let events = echo.stream("message/stream", &params).await?.all().await?;
    let mut seen = states(&events);
    // Updates of artifacts have a status too.
    seen.dedup();
    if seen != ["submitted", "working", "completed"] {
        return Err(mismatch("submitted, working, completed", seen.join(", ")));
    }
    tck.message(&text_part("a2ad-fail"), "").await?.has_state("failed")?;
    tck.message(&text_part("tck-input-required"), "").await?.has_state("input-required")?;
    let (task, _) = send_async(&echo, "hold").await?;
    echo.cancel(&task).await?.has_state("canceled")?;
    Ok(())
}

async fn agent_failure(at: &Fixture) -> CheckResult {
    let tck = at.native("tck");
    for text in ["a2ad-fail", "a2ad-panic"] {
        tck.message(&text_part(text), "").await?.has_state("failed")?;
    }
    Ok(())
}

async fn input_required(at: &Fixture) -> CheckResult {
    let response = at.native("approver").message(&text_part("delete the old backups"), "").await?;
    response.has_state("input-required")?;
    response.non_empty("result.status.message.parts.0.text")?;
    Ok(())
}

async fn after_restart(at: &Fixture) -> CheckResult {
    let crash = at.crash().await?;
    let (task, before) = &crash.finished;
    let after = crash.client().get(task).await?;
    after.is("result", before.at("result")?)
}

async fn stored_before_response(at: &Fixture) -> CheckResult {
    let crash = at.crash().await?;
    let (task, response) = &crash.running;
    response.has_status(200)?;
    response.ensure(response.has_state("completed").is_err(), "a response before the task is completed")?;
    response.lacks("result.artifacts")?;
    // The process that sent the response was killed; the task must still be stored.
    crash.after_restart.is("result.id", task)?;
    crash.after_restart.ensure(crash.after_restart.has_state("failed").is_err(), "a task that is not lost")
}

/// One connection is closed after the response, and one is dropped in the middle of a stream.
async fn continues_after_disconnect(at: &Fixture) -> CheckResult {
    let client = at.native("slow-writer");
    let (sent, _) = send_async(&client, "the sea sections=3 delay=40ms").await?;
    let params = client.message_params(&text_part("the sea sections=3 delay=40ms"), "", "");
    let mut events = client.stream("message/stream", &params).await?;
    let first = events.next().await?.ok_or_else(|| mismatch("an event", "none"))?;
    let streamed = first.data.non_empty("result.id")?.to_owned();
    drop(events);
    for task in [sent, streamed] {
        let done = client.poll_until_state(&task, "completed").await?;
        has_sections(&done, 3)?;
    }
    Ok(())
}

async fn resumed_after_crash(at: &Fixture) -> CheckResult {
    let crash = at.crash().await?;
    let done = crash.client().poll_until_state(&crash.running.0, "completed").await?;
    has_sections(&done, SECTIONS)
}

async fn text_in_status(at: &Fixture) -> CheckResult {
    let response = at.native("echo").message(&text_part("hello"), "").await?;
    response.has_state("completed")?.is("result.status.message.parts.0.text", "hello")
}

/// The default agent of this server has the profile.
async fn without_message_id(at: &Fixture) -> CheckResult {
    let server = at.single_task_server().await?;
    let message = r#"{"role":"user","parts":[{"type":"text","text":"hello"}]}"#;
    for path in ["/", "/a2a"] {
        let params = format!(r#"{{"skill":"echo","message":{message}}}"#);
        let client = TestClient::new(server.server(), path, "echo");
        client.call("message/send", &params).await?.has_state("completed")?;
    }
    Ok(())
}

async fn updates_have_status(at: &Fixture) -> CheckResult {
    let client = at.native("echo");
    let params = client.message_params(&text_part("hello"), "", "");
    for event in client.stream("message/stream", &params).await?.all().await? {
        event.data.non_empty("result.status.state")?;
    }
    Ok(())
}
