//! The draft's currency agent sample, with the requests of its published documentation.

use std::time::Duration;

use crate::{
    CheckError, CheckResult,
    fixture::Fixture,
    http::Response,
    json::{ValueChecks as _, quote},
    mismatch,
    server_process::{ANY_PORT, ServerProcess},
    test_client::{TestClient, states, text, unique_id},
};

const QUESTION: &str = "How much is the exchange rate for 1 USD to INR?";
const ANSWER: &str = "The exchange rate for 1 USD to INR is ";

/// The address of the sample. Another process may use the port temporarily.
const ADDRESS: &str = "127.0.0.1:10000";

/// Starts the sample with its own configuration file. If another process keeps the port, everything except the port is
/// checked at another port, and a line says so.
pub(super) async fn port(at: &Fixture) -> CheckResult {
    let (program, port_in_use) = match start_sample(at).await? {
        Some(program) => (program, false),
        None => (at.sample(Some(ANY_PORT)).await?, true),
    };
    let client = TestClient::new(&program.server, "/", "currency");
    let response = send_question(&client, &unique_id(), "").await?;
    response.has_state("completed")?;
    let text = response.text("result.artifacts.0.parts.0.text")?;
    response.ensure(text.starts_with(ANSWER), "the rate in one sentence")?;
    let host = &program.server.host;
    if port_in_use {
        eprintln!("S1-80: {ADDRESS} is in use by another process; checked at {host}");
        return Ok(());
    }
    if host == ADDRESS { Ok(()) } else { Err(mismatch(ADDRESS, host)) }
}

/// The sample's server; retries for about five seconds while its port is in use, then returns `None`.
async fn start_sample(at: &Fixture) -> Result<Option<ServerProcess>, CheckError> {
    for _ in 0..12 {
        match at.sample(None).await {
            Err(CheckError { got, .. }) if got.contains(ADDRESS) => {}
            other => return other.map(Some),
        }
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
    Ok(None)
}

/// The documented request: without a skill, and with `acceptedOutputModes`, which is not in the schema.
async fn send_question(client: &TestClient, task: &str, more: &str) -> Result<Response, CheckError> {
    let message = text(QUESTION);
    let task = quote(task);
    let params = format!(r#"{{"id":{task},"acceptedOutputModes":["text"],"message":{message}{more}}}"#);
    client.call("tasks/send", &params).await
}

async fn send_default_question(at: &Fixture, task: &str, more: &str) -> Result<Response, CheckError> {
    send_question(&at.root("currency"), task, more).await
}

pub(super) async fn complete(at: &Fixture) -> CheckResult {
    let response =
        send_default_question(at, &unique_id(), r#","sessionId":"8f01f3d172cd4396a0e535ae8aec6687""#).await?;
    response.has_state("completed")?;
    response.ensure(response.count("result.artifacts") == 1, "one artifact")?;
    response.is("result.artifacts.0.index", 0)?;
    let text = response.text("result.artifacts.0.parts.0.text")?;
    response.ensure(text.starts_with(ANSWER), "the rate in one sentence")?;
    response.is_json("result.history", "[]")
}

pub(super) async fn incomplete(at: &Fixture) -> CheckResult {
    let client = at.root("currency");
    let (task, question) = client.send_text("how much is 1 USD?").await?;
    question.has_state("input-required")?;
    let text_of = question.text("result.status.message.parts.0.text")?;
    question.ensure(text_of.contains("currency"), "a question about the currency")?;
    let response = client.send(&task, &text("in INR"), "").await?;
    response.has_state("completed")?;
    let text_of = response.text("result.artifacts.0.parts.0.text")?;
    response.ensure(text_of.contains("1 USD to INR"), "the rate of 1 USD to INR")
}

pub(super) async fn streamed(at: &Fixture) -> CheckResult {
    let (_, events) = at.root("currency").events("how much is 100 CAD in GBP?").await?;
    let status_text = |index: usize| {
        events.get(index).and_then(|event| event.data.text("result.status.message.parts.0.text").ok())
    };
    let progress: Vec<&str> = (0..events.len()).filter_map(status_text).collect();
    let has = |phrase: &str| progress.iter().any(|text| text.to_lowercase().contains(phrase));
    if !has("looking up") || !has("processing") {
        return Err(mismatch("looking up, processing", progress.join(", ")));
    }
    let artifact = events.iter().position(|event| event.data.find("result.artifact").is_some());
    let is_second_last = artifact.is_some_and(|index| index + 2 == events.len());
    if is_second_last && states(&events).last() == Some(&"completed") {
        return Ok(());
    }
    Err(mismatch("the artifact, then completed", states(&events).join(", ")))
}

/// Ids are scoped to the caller. If the id exists already, the request continues that task.
pub(super) async fn short_id(at: &Fixture) -> CheckResult {
    let response = send_default_question(at, "129", "").await?;
    response.is("result.id", "129")?;
    response.has_state("completed")?;
    at.root("currency").get("129").await?.is("result.id", "129")
}

pub(super) async fn session_made(at: &Fixture) -> CheckResult {
    send_default_question(at, &unique_id(), "").await?.non_empty("result.sessionId")?;
    Ok(())
}

/// The started servers have an empty environment and so no API key to use.
pub(super) async fn no_key(at: &Fixture) -> CheckResult {
    let response = send_default_question(at, &unique_id(), "").await?;
    response.has_state("completed")?;
    let text = response.text("result.artifacts.0.parts.0.text")?;
    response.ensure(text.chars().any(|c| c.is_ascii_digit()), "a rate")
}
