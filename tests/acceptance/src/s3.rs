//! S3: the profile `agent-native`. 0.3 whose parts also have the draft's `type`, and tasks that survive disconnects,
//! crashes and restarts.

use super::{
    Check, CheckError, CheckResult, agents,
    crash::SECTIONS,
    fixture::Fixture,
    http::{Response, Server},
    json::{ValueChecks as _, quote},
    mismatch,
    test_client::{TestClient, ends_with_final, has_sections, states, text_part, unique_id},
    wire,
};

mod public_card;

/// The checks, by the number of their requirement.
pub(crate) const CHECKS: &[(u16, Check)] = &[
    (1, wire!(public_card)),
    (7, wire!(card_members)),
    (9, wire!(public_card::private_skills_hidden)),
    (10, wire!(public_card::operator_skills_shown)),
    (13, agents!(send_waits)),
    (14, agents!(send_async_returns)),
    (15, agents!(async_is_parameter_only)),
    (16, agents!(context_chosen)),
    (17, agents!(streams)),
    (19, agents!(get_polls)),
    (20, agents!(cancel_working)),
    (23, agents!(parts_have_type, until 17 [Mcp, Http, Command])),
    (24, agents!(queued_task_survives_crash)),
    (33, agents!(six_states, on [Builtin, Mcp, Command])),
    (34, agents!(agent_failure)),
    (35, agents!(input_required, on [Builtin, Mcp, Command])),
    (36, agents!(after_restart)),
    (60, agents!(stored_before_response)),
    (61, agents!(continues_after_disconnect)),
    (62, agents!(resumed_after_crash)),
    (69, agents!(text_in_status)),
    (70, agents!(without_message_id)),
    (71, agents!(updates_have_status)),
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
