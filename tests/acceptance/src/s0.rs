//! S0: the profile `fold` (fold.run). The draft of the protocol, with skills that are called with bare JSON arguments.

mod endpoints;
mod function_stream;
mod tools;

use std::time::Duration;

use super::{
    Check, CheckError, CheckResult, agents,
    fixture::Fixture,
    json::{MemberOrder, ValueChecks as _, is_exactly, parse},
    mismatch,
    test_client::{TestClient, ends_with_final, has_begun, states, text, unique_id},
    wire,
};

/// The checks, by the number of their requirement.
pub(crate) const CHECKS: &[(u16, Check)] = &[
    (1, wire!(tools::one_tool_is_enough)),
    (4, wire!(tools::changes_reach_the_card)),
    (6, wire!(tools::description_has_count)),
    (8, wire!(tools::version)),
    (9, wire!(tools::streaming_offered)),
    (10, wire!(tools::push_not_offered)),
    (11, wire!(tools::skill_for_each_tool)),
    (12, wire!(tools::skill_modes)),
    (13, wire!(tools::default_modes)),
    (15, agents!(exact_arguments, until 17 [Mcp])),
    (18, agents!(result_is_a_task)),
    (19, agents!(completed_in_response)),
    (20, agents!(artifact_name)),
    (21, agents!(result_as_text)),
    (22, agents!(earlier_task)),
    (23, agents!(cancel_stops)),
    (24, agents!(cancel_by_state)),
    (25, agents!(all_states)),
    (26, agents!(queued_is_submitted)),
    (27, agents!(completed_has_artifacts)),
    (28, agents!(error_sets_failed)),
    (29, agents!(deleted_after_retention)),
    (30, agents!(four_methods)),
    (31, agents!(streams, on [Builtin, Http, Command])),
    (35, agents!(panic_is_internal_error, until 17 [Http, Command])),
    (44, agents!(endpoints::one_function, until 17 [Mcp])),
    (45, agents!(endpoints::same_result_and_trail, until 17 [Mcp])),
    (46, wire!(function_stream::forwarded_unbuffered)),
];

/// The parameters of `tasks/send` with bare arguments as the message and without a task id.
fn arguments(skill: &str, arguments: &str) -> String {
    format!(r#"{{"skill":"{skill}","message":{arguments}}}"#)
}

const CITY: &str = r#"{"city":"San Francisco"}"#;

async fn exact_arguments(at: &Fixture) -> CheckResult {
    let given =
        r#"{"city":"San Francisco","n":1.50,"big":12345678901234567890,"deep":[{"a":null}],"é":"\u0041"}"#;
    let response = at.fold("args").call("tasks/send", &arguments("args", given)).await?;
    is_exactly(response.text("result.artifacts.0.parts.0.text")?, given, MemberOrder::Any)
}

async fn result_is_a_task(at: &Fixture) -> CheckResult {
    let response = at.fold("args").call("tasks/send", &arguments("args", CITY)).await?;
    let id = response.text("result.id")?;
    response.ensure(id.starts_with("task_"), "an id that begins with task_")?;
    response.non_empty("result.status.state")?;
    response.ensure(response.count("result.artifacts") > 0, "artifacts")
}

async fn completed_in_response(at: &Fixture) -> CheckResult {
    at.fold("args").call("tasks/send", &arguments("args", CITY)).await?.has_state("completed")?;
    Ok(())
}

/// Checked for several skills.
async fn artifact_name(at: &Fixture) -> CheckResult {
    for (skill, input) in
        [("echo", "hello"), ("currency", "1 USD in INR"), ("slow-writer", "the sea sections=2 delay=1ms")]
    {
        let client = at.fold(skill);
        let (task, sent) = client.send_text(input).await?;
        sent.has_state("completed")?;
        for response in [sent, client.get(&task).await?] {
            response.is("result.artifacts.0.name", format!("{skill}-result").as_str())?;
        }
    }
    let sent = at.fold("args").call("tasks/send", &arguments("args", CITY)).await?;
    sent.is("result.artifacts.0.name", "args-result")
}

async fn result_as_text(at: &Fixture) -> CheckResult {
    let response = at.fold("args").call("tasks/send", &arguments("args", CITY)).await?;
    response.ensure(response.count("result.artifacts.0.parts") == 1, "one part")?;
    response.is("result.artifacts.0.parts.0.type", "text")?;
    parse(response.text("result.artifacts.0.parts.0.text")?)?.is("city", "San Francisco")
}

async fn earlier_task(at: &Fixture) -> CheckResult {
    let fold = at.fold("args");
    let sent = fold.call("tasks/send", &arguments("args", CITY)).await?;
    let got = fold.get(sent.text("result.id")?).await?;
    got.is("result.id", sent.at("result.id")?)?;
    got.is("result.status", sent.at("result.status")?)?;
    got.is("result.artifacts", sent.at("result.artifacts")?)
}

async fn cancel_stops(at: &Fixture) -> CheckResult {
    let writer = at.fold("slow-writer");
    let (task, _) = writer.send_async("the sea sections=200 delay=20ms").await?;
    writer.poll_until(&task, "a first section", has_begun).await?;
    writer.cancel(&task).await?.has_state("canceled")?;
    // A section may have been committed together with the cancellation; no section may follow after that.
    let after = writer.get(&task).await?;
    after.has_state("canceled")?;
    tokio::time::sleep(Duration::from_millis(120)).await;
    writer.get(&task).await?.is("result", after.at("result")?)
}

/// Starts a task that occupies the run slot, and waits until it is working: the slot of an earlier task may not be
/// free yet.
async fn working_task(echo: &TestClient) -> Result<String, CheckError> {
    let (task, _) = echo.send_async("hold").await?;
    echo.poll_until_state(&task, "working").await?;
    Ok(task)
}

async fn cancel_by_state(at: &Fixture) -> CheckResult {
    let single_task_server = at.single_task_server().await?;
    let echo = single_task_server.fold("echo");
    let first = working_task(&echo).await?;
    let (second, response) = echo.send_async("hold").await?;
    response.has_state("submitted")?;
    echo.cancel(&second).await?.has_state("canceled")?;
    echo.cancel(&first).await?.has_state("canceled")?;
    echo.cancel(&second).await?.has_error_code(-32002)?;
    let (completed, _) = echo.send_text("hello").await?;
    echo.cancel(&completed).await?.has_error_code(-32002)?;
    echo.get(&completed).await?.has_state("completed")?;
    let tck = at.fold("tck");
    let (failed, _) = tck.send_text("a2ad-fail").await?;
    tck.cancel(&failed).await?.has_error_code(-32002)?;
    Ok(())
}

async fn all_states(at: &Fixture) -> CheckResult {
    let (echo, tck) = (at.fold("echo"), at.fold("tck"));
    let (_, events) = echo.events("hello").await?;
    let seen = states(&events);
    if seen != ["submitted", "working", "completed"] {
        return Err(mismatch("submitted, working, completed", seen.join(", ")));
    }
    tck.send_text("a2ad-fail").await?.1.has_state("failed")?;
    let (task, _) = echo.send_async("hold").await?;
    echo.poll_until_state(&task, "working").await?;
    echo.cancel(&task).await?.has_state("canceled")?;
    Ok(())
}

async fn queued_is_submitted(at: &Fixture) -> CheckResult {
    let single_task_server = at.single_task_server().await?;
    let echo = single_task_server.fold("echo");
    let first = working_task(&echo).await?;
    let (second, response) = echo.send_async("hello").await?;
    response.has_state("submitted")?;
    echo.get(&second).await?.has_state("submitted")?;
    echo.cancel(&first).await?.has_state("canceled")?;
    echo.poll_until_state(&second, "completed").await?;
    Ok(())
}

/// Includes a built-in agent that responds with a message instead of an artifact.
async fn completed_has_artifacts(at: &Fixture) -> CheckResult {
    let message = at.is_builtin().then_some(("tck", "tck-message-response"));
    for (skill, input) in [("echo", "hello"), ("currency", "1 USD in INR")].into_iter().chain(message) {
        let client = at.fold(skill);
        let (task, sent) = client.send_text(input).await?;
        sent.has_state("completed")?;
        for response in [sent, client.get(&task).await?] {
            response.ensure(response.count("result.artifacts.0.parts") > 0, "an artifact with parts")?;
        }
    }
    Ok(())
}

async fn error_sets_failed(at: &Fixture) -> CheckResult {
    let tck = at.fold("tck");
    let (task, sent) = tck.send_text("a2ad-fail").await?;
    sent.has_state("failed")?;
    sent.non_empty("result.status.message.parts.0.text")?;
    tck.get(&task).await?.has_state("failed")?;
    Ok(())
}

async fn deleted_after_retention(at: &Fixture) -> CheckResult {
    let brief = at.agent("brief", "echo");
    let (task, sent) = brief.send_text("hello").await?;
    sent.has_state("completed")?;
    brief.get(&task).await?.has_state("completed")?;
    brief.poll_until(&task, "-32001", |response| response.has_error_code(-32001).is_ok()).await?;
    if !at.is_builtin() {
        return Ok(());
    }
    // The default retention time is one day.
    let effective_config = at.effective_config().await?;
    let main = effective_config.list("agents")?.iter().find(|agent| agent.is("id", "main").is_ok());
    main.ok_or_else(|| mismatch("the agent main", &effective_config))?
        .is("retention.max_age_ms", 24 * 60 * 60 * 1_000)
}

async fn four_methods(at: &Fixture) -> CheckResult {
    let fold = at.fold("echo");
    let (task, sent) = fold.send_text("hello").await?;
    sent.has_state("completed")?;
    fold.get(&task).await?.has_state("completed")?;
    fold.cancel(&task).await?.has_error_code(-32002)?;
    ends_with_final(&fold.events("hello").await?.1)
}

async fn streams(at: &Fixture) -> CheckResult {
    let writer = at.fold("slow-writer");
    let task = unique_id();
    let params = writer.params(&task, &text("the sea sections=2 delay=150ms"), "");
    let mut events = writer.stream("tasks/sendSubscribe", &params).await?;
    let first = events.next().await?.ok_or_else(|| mismatch("an event", "none"))?;
    // The first event must arrive before the task is completed.
    let state = writer.get(&task).await?;
    state.ensure(state.has_state("completed").is_err(), "the first event before the task is completed")?;
    let mut all = vec![first];
    all.extend(events.all().await?);
    ends_with_final(&all)?;
    let artifacts = all.iter().filter(|event| event.data.find("result.artifact").is_some()).count();
    let seen = states(&all);
    if artifacts == 2 && seen.contains(&"working") && seen.last() == Some(&"completed") {
        return Ok(());
    }
    Err(mismatch("working, two artifact events, completed", format!("{seen:?}, {artifacts} artifact events")))
}

async fn panic_is_internal_error(at: &Fixture) -> CheckResult {
    let tck = at.fold("tck");
    let (task, response) = tck.send_text("a2ad-panic").await?;
    response.has_error_code(-32603)?;
    // The server keeps running, and the task is stored as failed.
    tck.get(&task).await?.has_state("failed")?;
    Ok(())
}
