//! The catalogue of agents, at `/.well-known/agents.json`.

use crate::{CheckResult, fixture::Fixture, json::ValueChecks as _};

/// The list names the default agent, refers to cards that exist, and finds an agent by the description of its skill.
pub(super) async fn listed(at: &Fixture) -> CheckResult {
    let list = at.server.get("/.well-known/agents.json", &[]).await?;
    list.has_status(200)?;
    let default = list.text("defaultAgent")?;
    let agents = list.list("agents")?;
    list.ensure(agents.iter().any(|agent| agent.is("id", default).is_ok()), "the default agent in the list")?;
    for agent in agents {
        let path = format!("/a2a/{}/.well-known/agent-card.json", agent.text("id")?);
        agent.ensure(agent.text("card")?.ends_with(&path), "the URL of the agent's card")?;
        let card = at.server.get(&path, &[]).await?;
        card.has_status(200)?;
        card.is("name", agent.at("name")?)?;
        agent.is("skillCount", card.count("skills"))?;
    }
    let Some(skill) = agents.iter().find_map(|agent| agent.find("skills.0")) else { return Ok(()) };
    let found = at
        .server
        .get(&format!("/.well-known/agents.json?q={}", query(skill.text("description")?)), &[])
        .await?;
    found.is("agents.0.skills.0.description", skill.at("description")?)
}

fn query(text: &str) -> String {
    let plain = |character: char| if character.is_ascii_alphanumeric() { character } else { '+' };
    text.chars().map(plain).collect()
}
