//! A skill that a message names and that the agent does not have: it may become known while an MCP server of the agent
//! starts. Nothing is recorded meanwhile, and no run slot is held.

use std::{sync::Arc, time::Duration};

use protocol::{Dialect, SendMessage};
use tokio::time::timeout;

use crate::{
    catalog::RegisteredAgent,
    engine::{Call, EngineInner},
    error::{Error, Result},
    skill::Skill,
};

/// How long a message waits until the skill that it names is known.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// How many messages wait at a time.
pub(crate) const MAX_WAITING: usize = 1_000;
/// The longest list of skills in an error.
const MAX_LISTED: usize = 50;

/// The request field that holds the skill id, for error texts.
pub(super) fn skill_field(dialect: Dialect, req: &SendMessage) -> &'static str {
    match (&req.skill, dialect) {
        (None, _) => "metadata.skillId",
        (Some(_), Dialect::Draft) => "skill",
        (Some(_), Dialect::V03 | Dialect::V03Proto | Dialect::V1) => "configuration.skillId",
    }
}

/// The agent as soon as it has a skill that it does not have yet for this caller.
///
/// # Errors
///
/// The skill is unknown, and no server that may have it is starting, or none has started in time.
pub(super) async fn await_agent(
    engine: &EngineInner,
    call: &Call,
    registered: &Arc<RegisteredAgent>,
    skill: &str,
    field: &str,
) -> Result<Arc<RegisteredAgent>> {
    if registered.skills().pending().is_empty() {
        return Err(unknown(registered, call, field));
    }
    let _place = engine.skill_waits.try_acquire().map_err(|_| {
        Error::later("too many messages wait for servers that start; nothing was recorded, send it again")
    })?;
    let found = tokio::select! {
        found = timeout(MAX_WAIT, agent_with(engine, call, skill)) => found.unwrap_or_else(|_| agent(engine, call)),
        () = engine.runner.draining() => {
            return Err(Error::later("the server is shutting down; send the message again in a moment"));
        }
    };
    match found {
        Some(found) if found.skill_for(skill, &call.scope).is_some() => Ok(found),
        found => Err(unknown(found.as_ref().unwrap_or(registered), call, field)),
    }
}

/// The agent when it has the skill, or all its skills are known; `None` if it is removed or disabled.
async fn agent_with(engine: &EngineInner, call: &Call, skill: &str) -> Option<Arc<RegisteredAgent>> {
    // Before the first look, so that no change is missed.
    let mut changes = engine.runner.catalog().changes();
    loop {
        let found = agent(engine, call)?;
        if found.skill_for(skill, &call.scope).is_some() || found.skills().pending().is_empty() {
            return Some(found);
        }
        changes.changed().await.ok()?;
    }
}

/// The agent in the current catalog, if it is enabled.
fn agent(engine: &EngineInner, call: &Call) -> Option<Arc<RegisteredAgent>> {
    let catalog = engine.runner.catalog().load();
    catalog.get(call.scope.tenant(), call.scope.agent()).filter(|agent| agent.settings().enabled).cloned()
}

/// The error for a skill that the agent does not have for this caller.
fn unknown(registered: &RegisteredAgent, call: &Call, field: &str) -> Error {
    let known = || registered.skills_for(&call.scope).map(Skill::id);
    let listed: Vec<&str> = known().take(MAX_LISTED).collect();
    let pending = registered.skills().pending();
    let mut wanted = match (listed.as_slice(), known().count() - listed.len()) {
        ([], _) if !pending.is_empty() => "no skill of this agent is known yet".to_owned(),
        ([], _) => "expected none: this agent has no skills to choose from".to_owned(),
        (listed, 0) => format!("expected one of {}", listed.join(", ")),
        (listed, more) => format!("expected one of {} and {more} more on its card", listed.join(", ")),
    };
    if !pending.is_empty() {
        wanted += &format!("; {} is starting and may have more, try again later", pending.join(", "));
    }
    Error::invalid(field, wanted)
}
