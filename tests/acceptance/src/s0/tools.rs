//! Agents made of tools. The configuration of the server has an MCP server and nothing else.

use std::time::Duration;

use crate::{
    CheckError, CheckResult,
    fixture::Fixture,
    http::{Response, Server},
    json::{ValueChecks as _, parse},
    mismatch,
    test_client::TestClient,
    tools::mcp_server::{ADD_TOOL, REMOVE_TOOL, description},
};

use super::{CITY, arguments};

/// Tools that the server has all the time.
const TOOLS: [&str; 4] = ["weather-lookup", "rate-lookup", ADD_TOOL, REMOVE_TOOL];
const JSON_ONLY: [&str; 1] = ["application/json"];

pub(super) async fn one_tool_is_enough(at: &Fixture) -> CheckResult {
    let server = at.tools_server().await?;
    for path in ["/.well-known", "/a2a/main/.well-known"] {
        for file in ["agent.json", "agent-card.json"] {
            let card = server.get(&format!("{path}/{file}"), &[]).await?;
            card.has_status(200)?;
            skill(&card, TOOLS[0])?;
        }
    }
    let sent = call(server, TOOLS[0], CITY).await?;
    sent.is("result.artifacts.0.name", format!("{}-result", TOOLS[0]))?;
    let result = parse(sent.text("result.artifacts.0.parts.0.text")?)?;
    result.is("tool", TOOLS[0])?;
    result.is_json("arguments", CITY)
}

/// The MCP server adds a tool, and then removes it, while the server runs.
pub(super) async fn changes_reach_the_card(at: &Fixture) -> CheckResult {
    const TOOL: &str = "added-later";
    let server = at.tools_server().await?;
    let name = format!(r#"{{"name":"{TOOL}"}}"#);
    call(server, ADD_TOOL, &name).await?;
    let card = poll_card(server, TOOL, |card| skill(card, TOOL).is_ok()).await?;
    card.ensure(card.count("skills") == TOOLS.len() + 1, "one more skill")?;
    has_count(&card)?;
    call(server, TOOL, CITY).await?;
    call(server, REMOVE_TOOL, &name).await?;
    let card = poll_card(server, "no removed skill", |card| skill(card, TOOL).is_err()).await?;
    has_count(&card)?;
    let fold = TestClient::new(server, "/_a2a/", TOOL);
    fold.call("tasks/send", &arguments(TOOL, CITY)).await?.has_error_code(-32602)?;
    Ok(())
}

pub(super) async fn description_has_count(at: &Fixture) -> CheckResult {
    has_count(&card(at.tools_server().await?).await?)
}

pub(super) async fn version(at: &Fixture) -> CheckResult {
    card(at.tools_server().await?).await?.is("version", "0.1.0")
}

pub(super) async fn streaming_offered(at: &Fixture) -> CheckResult {
    card(at.tools_server().await?).await?.is("capabilities.streaming", true)
}

/// A value of the profile; other agents offer push notifications.
pub(super) async fn push_not_offered(at: &Fixture) -> CheckResult {
    at.card("fold", "agent.json").await?.is("capabilities.pushNotifications", false)
}

pub(super) async fn skill_for_each_tool(at: &Fixture) -> CheckResult {
    let card = card(at.tools_server().await?).await?;
    for tool in TOOLS {
        let skill = skill(&card, tool)?;
        skill.is("name", tool)?;
        skill.is("description", description(tool))?;
        let with_id = card.list("skills")?.iter().filter(|skill| skill.is("id", tool).is_ok());
        card.ensure(with_id.count() == 1, &format!("one skill {tool}"))?;
    }
    Ok(())
}

pub(super) async fn skill_modes(at: &Fixture) -> CheckResult {
    let card = card(at.tools_server().await?).await?;
    for skill in card.list("skills")? {
        skill.is("inputModes", JSON_ONLY)?;
        skill.is("outputModes", JSON_ONLY)?;
    }
    Ok(())
}

pub(super) async fn default_modes(at: &Fixture) -> CheckResult {
    let card = card(at.tools_server().await?).await?;
    card.is("defaultInputModes", JSON_ONLY)?;
    card.is("defaultOutputModes", JSON_ONLY)
}

async fn card(server: &Server) -> Result<Response, CheckError> {
    let card = server.get("/.well-known/agent.json", &[]).await?;
    card.has_status(200)?;
    Ok(card)
}

fn skill<'a>(card: &'a Response, id: &str) -> Result<&'a serde_json::Value, CheckError> {
    let found = card.list("skills")?.iter().find(|skill| skill.is("id", id).is_ok());
    found.ok_or_else(|| mismatch(format!("the skill {id}"), card))
}

/// Every skill of the card is a tool, so their number is that of the description.
fn has_count(card: &Response) -> CheckResult {
    let count = card.count("skills");
    let expected = format!("with {count} tool(s)");
    card.ensure(count >= TOOLS.len() && card.text("description")?.ends_with(&expected), &expected)
}

/// Calls a tool with bare arguments; the task must be completed.
async fn call(server: &Server, tool: &'static str, given: &str) -> Result<Response, CheckError> {
    let response =
        TestClient::new(server, "/_a2a/", tool).call("tasks/send", &arguments(tool, given)).await?;
    response.has_state("completed")?;
    Ok(response)
}

/// Fetches the card every 25 ms until `holds` is true, for at most 10 seconds.
async fn poll_card(
    server: &Server,
    expected: &str,
    holds: impl Fn(&Response) -> bool,
) -> Result<Response, CheckError> {
    const TIMEOUT: Duration = Duration::from_secs(10);
    let deadline = tokio::time::Instant::now() + TIMEOUT;
    loop {
        let card = card(server).await?;
        if holds(&card) {
            return Ok(card);
        }
        if tokio::time::Instant::now() > deadline {
            let expected = format!("a card with {expected} within {} seconds", TIMEOUT.as_secs());
            return Err(mismatch(expected, card));
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
}
