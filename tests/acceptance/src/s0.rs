//! S0: the profile `fold` (fold.run). The draft of the protocol, with skills that are called with bare JSON arguments.

mod endpoints;
mod function_stream;
mod tools;

use std::time::Duration;

use super::{
    CheckError, CheckResult, Group, Item, agents,
    fixture::Fixture,
    json::{MemberOrder, ValueChecks as _, is_exactly, parse},
    mismatch, not_yet, test,
    test_client::{TestClient, ends_with_final, has_begun, states, text, unique_id},
    wire,
};

pub(crate) const GROUP: Group = Group { name: "S0", items: ITEMS };

const ITEMS: &[Item] = &[
    wire!(
        1,
        "one configured tool is enough for the server to publish a card and an endpoint",
        tools::one_tool_is_enough
    ),
    not_yet(2, "the request's host selects the tenant, and each tenant has its own card", 24),
    not_yet(3, "a tenant's card at /.well-known/agent.json is public", 24),
    wire!(
        4,
        "adding or removing a tool adds or removes its skill on the card",
        tools::changes_reach_the_card
    ),
    not_yet(5, "the card's name is made of the brand and the tenant", 24),
    wire!(6, "the card's description contains the number of tools", tools::description_has_count),
    not_yet(7, "the card's url is the tenant's origin", 24),
    wire!(8, "the card's version is 0.1.0 by default", tools::version),
    wire!(9, "the card of an agent made of tools offers streaming", tools::streaming_offered),
    wire!(
        10,
        "the card of an agent with the profile fold does not offer push notifications",
        tools::push_not_offered
    ),
    wire!(11, "each tool is a skill with the tool's name and description", tools::skill_for_each_tool),
    wire!(12, "the skill of a tool accepts and returns application/json", tools::skill_modes),
    wire!(13, "the default modes of an agent made of tools are application/json", tools::default_modes),
    test(
        14,
        "POST /_a2a/ accepts JSON-RPC, with and without the trailing slash",
        "crates/inbound/tests/socket/endpoints.rs::every_endpoint_serves_the_same_agent_in_every_generation",
    ),
    agents!(15, "the named skill receives the message as its arguments, unchanged", exact_arguments, on [Builtin, Http, Command], until 17 [Mcp]),
    not_yet(16, "a tenant can allow anonymous calls", 24),
    test(
        17,
        "the response has the request's id with its JSON type",
        "crates/inbound/tests/socket/methods.rs::request_ids_are_echoed_at_both_paths_of_the_agent",
    ),
    agents!(
        18,
        "the result is a task with an id that begins with task_, a status and artifacts",
        result_is_a_task
    ),
    agents!(
        19,
        "a task that finishes immediately is completed in the response of the same request",
        completed_in_response
    ),
    agents!(20, "the artifact's name is the skill's id followed by -result", artifact_name),
    agents!(21, "the artifact is one text part that holds the result as JSON", result_as_text),
    agents!(22, "tasks/get returns the status and artifacts of an earlier task", earlier_task),
    agents!(23, "tasks/cancel of a working task sets the state canceled and stops the work", cancel_stops),
    agents!(24, "a submitted task can be canceled, and a terminal task cannot", cancel_by_state),
    agents!(
        25,
        "the states submitted, working, completed, failed and canceled can all be reached",
        all_states
    ),
    agents!(26, "a queued task has the state submitted", queued_is_submitted),
    agents!(27, "a completed task has artifacts", completed_has_artifacts),
    agents!(28, "an error of the skill sets the task's state to failed", error_sets_failed),
    agents!(
        29,
        "a finished task is deleted after its retention time, which is 24 hours by default",
        deleted_after_retention
    ),
    agents!(30, "tasks/send, tasks/sendSubscribe, tasks/get and tasks/cancel are served", four_methods),
    agents!(31, "tasks/sendSubscribe streams statuses and artifacts while the skill runs", streams, on [Builtin, Http, Command]),
    test(
        32,
        "a malformed request is rejected with -32600",
        "crates/inbound/tests/socket/profiles/fold.rs::errors_have_distinct_codes",
    ),
    test(
        33,
        "an unknown method is rejected with -32601",
        "crates/inbound/tests/socket/profiles/fold.rs::errors_have_distinct_codes",
    ),
    test(
        34,
        "an unknown skill is rejected with -32602",
        "crates/inbound/tests/socket/profiles/fold.rs::errors_have_distinct_codes",
    ),
    agents!(35, "a panic in the skill is reported as -32603", panic_is_internal_error, on [Builtin], until 17 [Mcp, Http, Command]),
    not_yet(36, "an active pipeline is a skill on the card", 22),
    not_yet(37, "an inactive pipeline is not on the card", 22),
    not_yet(38, "a pipeline runs when its skill is called", 22),
    not_yet(39, "pipelines have steps, mappings, parallel groups and a run history", 22),
    not_yet(40, "guardrails check the input", 23),
    not_yet(41, "guardrails check the output", 23),
    not_yet(42, "a blocked request is an error and does not run the skill", 23),
    not_yet(43, "guardrails support every kind of check, target and action", 23),
    agents!(44, "one function can be called over MCP, A2A and plain HTTP", endpoints::one_function, on [Builtin, Http, Command], until 17 [Mcp]),
    agents!(45, "the three protocols give the same result, and a task that names its endpoint", endpoints::same_result_and_trail, on [Builtin, Http, Command], until 17 [Mcp]),
    wire!(46, "a function's stream is forwarded without buffering", function_stream::forwarded_unbuffered),
    not_yet(47, "the example request of the platform works at the url of the card that it belongs to", 17),
    not_yet(48, "our client calls an agent with the profile fold of which it has only the card", 20),
    not_yet(
        49,
        "arguments that break the schema are -32602 with the field's name, the skill does not run, and nothing is stored",
        17,
    ),
    not_yet(50, "pipelines can be called over MCP and plain HTTP, as functions can", 22),
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
