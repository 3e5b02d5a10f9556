//! S3: the profile `agent-native`. 0.3 whose parts also have the draft's `type`, and tasks that survive disconnects,
//! crashes and restarts.

use super::{
    CheckError, CheckResult,
    Feature::{Client, Identity},
    Group, Item,
    crash::SECTIONS,
    fixture::Fixture,
    http::{Response, Server},
    json::{ValueChecks as _, quote},
    mismatch, not_yet,
    test_client::{TestClient, ends_with_final, states, text_part, unique_id},
    wire,
};

mod embedded;
mod process_task;
mod production;
mod public_card;
mod schemes;
mod tokens;

pub(crate) const GROUP: Group = Group { name: "S3", items: ITEMS };

const ITEMS: &[Item] = &[
    wire!(1, "the card at /.well-known/agent-card.json is public, also in production", public_card),
    wire!(2, "POST /_agent-native/a2a accepts JSON-RPC", main_path),
    wire!(3, "_process-task accepts only signed requests", process_task::only_signed),
    wire!(4, "POST /a2a accepts JSON-RPC as well", a2a_path),
    wire!(5, "the _process-task route takes precedence over the path above it", process_task::before_rpc),
    wire!(6, "methods other than GET at the card's path are 405", card_rejects_other_methods),
    wire!(7, "the card has every member that the profile agent-native defines", card_members),
    wire!(8, "the card lists the configured authentication schemes", schemes::on_card),
    wire!(
        9,
        "skills of users and organisations are not on the public card",
        public_card::private_skills_hidden
    ),
    wire!(10, "the operator's own tools are on the public card", public_card::operator_skills_shown),
    not_yet(11, "public responses reveal no tenant", Identity),
    wire!(12, "an authenticated caller sees additional skills", schemes::more_skills),
    wire!(13, "message/send waits and returns the completed task", send_waits),
    wire!(14, "message/send with async returns immediately with a working task", send_async_returns),
    wire!(15, "async is honoured as a parameter only, not in metadata", async_is_parameter_only),
    wire!(16, "the client can choose the contextId", context_chosen),
    wire!(17, "message/stream streams the task, its statuses and its artifacts", streams),
    wire!(18, "message/stream is -32601 where streaming is disabled", stream_off),
    wire!(19, "tasks/get polls a task until it is completed", get_polls),
    wire!(20, "tasks/cancel cancels a working task", cancel_working),
    wire!(21, "a signed request wakes another process to run a task", process_task::wakes_task),
    wire!(22, "such a signature is valid for one task and five minutes", process_task::one_task_five_minutes),
    wire!(23, "text, data and file parts have a type", parts_have_type),
    wire!(
        24,
        "a task that was accepted runs although the process is killed before it starts",
        queued_task_survives_crash
    ),
    not_yet(25, "the client library can fetch a card, send, stream and wait", Client),
    not_yet(26, "the client library reads a task's text from its status", Client),
    not_yet(27, "callAgent returns text for text", Client),
    not_yet(28, "callAgent polls by default", Client),
    not_yet(29, "callAgent signs a token for a user", Client),
    not_yet(30, "the client falls back to /a2a", Client),
    not_yet(31, "the client prefers the card's url", Client),
    not_yet(32, "the client polls with backoff and a deadline", Client),
    wire!(33, "each message creates a task, and six states can be reached", six_states),
    wire!(34, "an error or a panic of the agent sets the task's state to failed", agent_failure),
    wire!(35, "an agent that needs input sets the state input-required", input_required),
    wire!(36, "tasks are persisted and readable after a restart", after_restart),
    wire!(37, "tokens signed with A2A_SECRET are verified before an agent runs", tokens::signed),
    wire!(
        38,
        "a static bearer token can be configured by the name of an environment variable",
        tokens::static_token
    ),
    wire!(39, "signed tokens and a static bearer token can be used together", tokens::both),
    wire!(40, "without credentials in development, the server logs one warning", production::one_warning),
    wire!(41, "without credentials in production, calls get 503 and no agent runs", production::nothing_runs),
    wire!(
        42,
        "production is detected from the hosting provider's environment variables",
        production::detected
    ),
    wire!(43, "_process-task without a secret in production is 503", process_task::without_secret),
    wire!(44, "a request with an invalid token never reaches an agent", tokens::never_reach_agent),
    wire!(
        45,
        "a token is verified with the global secret and then with the organisation's",
        tokens::secret_of_organisation
    ),
    wire!(46, "aud and iss are verified if present, and exp always", tokens::claims),
    wire!(47, "a token for another service is rejected", tokens::other_service),
    wire!(48, "the card offers JWT only where it can be used", production::card_offers_tokens),
    not_yet(49, "a delegation to a remote agent is stored as a separate row", Client),
    not_yet(50, "a delegated task is polled until its result can be delivered", Client),
    not_yet(51, "a delegation fails with a clear error after ten minutes or six attempts", Client),
    not_yet(52, "delegations of a crashed process are resumed exactly once", Client),
    not_yet(53, "tasks that arrived by webhook have three attempts", Client),
    not_yet(54, "every app of a workspace is a peer", Client),
    not_yet(55, "all apps of a workspace share one secret", Client),
    not_yet(56, "an app is reachable at /apps/{id} on the same origin", Client),
    not_yet(57, "outbound tokens identify the caller", Client),
    not_yet(58, "discovery lists the agents of the workspace", Client),
    not_yet(59, "agents outside the workspace use bearer keys", Client),
    wire!(60, "a task is stored before the response is sent, and runs afterwards", stored_before_response),
    wire!(61, "a task continues after the connection that started it is closed", continues_after_disconnect),
    wire!(62, "a task that was claimed and not finished is resumed after a crash", resumed_after_crash),
    not_yet(63, "an @-mention calls the mentioned agent", Client),
    not_yet(64, "local agents run inside the process", Client),
    not_yet(65, "a message is routed to the best-matching app", Client),
    not_yet(66, "adapters reply in the same thread", Client),
    not_yet(67, "one agent calls another and receives text", Client),
    wire!(68, "the server's routes can be mounted into another HTTP app with one call", embedded::mounted),
];

async fn public_card(at: &Fixture) -> CheckResult {
    card_is_public(&at.server).await?;
    if at.is_self_started() {
        // The card is public also for an agent that rejects anonymous calls, and in production.
        at.agent("keyed", "slow-writer")?.message(&text_part("the sea"), "").await?.has_status(403)?;
        at.card("keyed", "agent-card.json").await?.non_empty("name")?;
        card_is_public(&at.production().await?.server).await?;
    }
    Ok(())
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

async fn main_path(at: &Fixture) -> CheckResult {
    let response = at.native("echo")?.message(&text_part("hello"), "").await?;
    response.has_status(200)?;
    response.has_state("completed")?;
    Ok(())
}

async fn a2a_path(at: &Fixture) -> CheckResult {
    let client = TestClient { path: "/a2a".into(), ..at.root("echo")? };
    client.message(&text_part("hello"), "").await?.has_state("completed")?;
    Ok(())
}

async fn card_rejects_other_methods(at: &Fixture) -> CheckResult {
    for verb in ["POST", "PUT", "DELETE"] {
        let response = at.server.send_request(verb, "/.well-known/agent-card.json", &[], "").await?;
        response.has_status(405)?;
        let allow = response.header("allow").unwrap_or_default();
        response.ensure(allow.contains("GET"), "an allow header with GET")?;
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
    let response = at.native("slow-writer")?.message(&text_part(SLOW), "").await?;
    response.is("result.kind", "task")?;
    response.has_state("completed")?;
    response.ensure(response.count("result.artifacts.0.parts") == 2, "both sections")
}

/// Sends with `async` and returns the task's id with the response.
async fn send_async(client: &TestClient, text: &str) -> Result<(String, Response), CheckError> {
    let response = client.message(&text_part(text), r#","async":true"#).await?;
    Ok((response.non_empty("result.id")?.to_owned(), response))
}

async fn send_async_returns(at: &Fixture) -> CheckResult {
    let client = at.native("slow-writer")?;
    let (task, response) = send_async(&client, SLOW).await?;
    response.has_state("working")?;
    client.poll_until_state(&task, "completed").await?;
    Ok(())
}

async fn async_is_parameter_only(at: &Fixture) -> CheckResult {
    let client = at.native("slow-writer")?;
    let message_members = r#","metadata":{"async":true}"#;
    let params = client.message_params(&text_part(SLOW), message_members, message_members);
    client.call("message/send", &params).await?.has_state("completed")?;
    Ok(())
}

async fn context_chosen(at: &Fixture) -> CheckResult {
    let client = at.native("echo")?;
    let context = unique_id();
    let more = format!(r#","contextId":{}"#, quote(&context));
    for _ in 0..2 {
        client.message(&text_part("hello"), &more).await?.is("result.contextId", &context)?;
    }
    client.message(&text_part("hello"), "").await?.non_empty("result.contextId")?;
    Ok(())
}

async fn streams(at: &Fixture) -> CheckResult {
    let client = at.native("slow-writer")?;
    let params = client.message_params(&text_part(SLOW), "", "");
    let events = client.stream("message/stream", &params).await?.all().await?;
    ends_with_final(&events)?;
    let kinds: Vec<&str> = events.iter().filter_map(|event| event.data.text("result.kind").ok()).collect();
    let has = |kind| kinds.contains(&kind);
    let good = kinds.first() == Some(&"task") && has("status-update") && has("artifact-update");
    let good = good && states(&events).last() == Some(&"completed");
    if good { Ok(()) } else { Err(mismatch("task, status-update, artifact-update", kinds.join(", "))) }
}

async fn stream_off(at: &Fixture) -> CheckResult {
    let client = at.agent("quiet", "echo")?;
    let params = client.message_params(&text_part("hello"), "", "");
    client.call("message/stream", &params).await?.has_error_code(-32601)?;
    client.call("message/send", &params).await?.has_state("completed")?;
    Ok(())
}

async fn get_polls(at: &Fixture) -> CheckResult {
    let client = at.native("slow-writer")?;
    let (task, _) = send_async(&client, SLOW).await?;
    let done = client.poll_until_state(&task, "completed").await?;
    done.is("result.kind", "task")?;
    done.ensure(done.count("result.artifacts.0.parts") == 2, "both sections")
}

async fn cancel_working(at: &Fixture) -> CheckResult {
    let client = at.native("echo")?;
    let (task, _) = send_async(&client, "hold").await?;
    client.cancel(&task).await?.has_state("canceled")?;
    client.get(&task).await?.has_state("canceled")?;
    Ok(())
}

async fn parts_have_type(at: &Fixture) -> CheckResult {
    let parts = r#"[{"type":"text","text":"Show signups"},{"type":"data","data":{"dateRange":"last-30d"}},
        {"type":"file","file":{"name":"report.csv","mimeType":"text/csv","bytes":"YSxiCg=="}}]"#;
    let response = at.native("echo")?.message(parts, "").await?;
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
    let (echo, tck) = (at.native("echo")?, at.native("tck")?);
    let (one, two) =
        (echo.message(&text_part("hello"), "").await?, echo.message(&text_part("hello"), "").await?);
    one.ensure(one.non_empty("result.id")? != two.non_empty("result.id")?, "a task for each message")?;
    let params = echo.message_params(&text_part("hello"), "", "");
    let events = echo.stream("message/stream", &params).await?.all().await?;
    let seen = states(&events);
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
    let tck = at.native("tck")?;
    for text in ["a2ad-fail", "a2ad-panic"] {
        tck.message(&text_part(text), "").await?.has_state("failed")?;
    }
    Ok(())
}

async fn input_required(at: &Fixture) -> CheckResult {
    let response = at.native("approver")?.message(&text_part("delete the old backups"), "").await?;
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
    let client = at.native("slow-writer")?;
    let (sent, _) = send_async(&client, "the sea sections=3 delay=40ms").await?;
    let params = client.message_params(&text_part("the sea sections=3 delay=40ms"), "", "");
    let mut events = client.stream("message/stream", &params).await?;
    let first = events.next().await?.ok_or_else(|| mismatch("an event", "none"))?;
    let streamed = first.data.non_empty("result.id")?.to_owned();
    drop(events);
    for task in [sent, streamed] {
        let done = client.poll_until_state(&task, "completed").await?;
        done.ensure(done.count("result.artifacts.0.parts") == 3, "all three sections")?;
    }
    Ok(())
}

async fn resumed_after_crash(at: &Fixture) -> CheckResult {
    let crash = at.crash().await?;
    let done = crash.client().poll_until_state(&crash.running.0, "completed").await?;
    // No section is lost or duplicated.
    let texts: Result<Vec<&str>, CheckError> =
        done.list("result.artifacts.0.parts")?.iter().map(|part| part.text("text")).collect();
    let expected = |number| format!("Section {number} of {SECTIONS}: more about the sea.\n");
    let all: Vec<String> = (1..=SECTIONS).map(expected).collect();
    done.ensure(texts? == all, "every section exactly once")
}

fn echo_client(server: &Server, path: &str) -> TestClient {
    TestClient::new(server, path, "echo")
}
