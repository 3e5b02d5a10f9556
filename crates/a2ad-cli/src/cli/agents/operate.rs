//! `a2ad agents ls`, `enable` and `disable`: agents for operators, on a running server or in the store.

use std::sync::Arc;

use clap::Args;
use engine::{AgentSwitch, DEFAULT_TENANT, OperatedTasks, SwitchState};
use http::Method;
use inbound::{
    AuditEntry,
    agent_document::{self, OperatedAgent},
};
use protocol::json::read::{Object, Read};

use crate::cli::{
    failure::{Failure, code},
    operate::{
        Access, MissingStore, OPERATOR, OperateFlags, StoppedStore, columns, counted, find_agent,
        read_document, segment,
    },
    output::Output,
    runtime,
};

#[derive(Debug, Args)]
pub(in crate::cli) struct LsFlags {
    #[command(flatten)]
    operate: OperateFlags,
}

#[derive(Debug, Args)]
pub(in crate::cli) struct SwitchFlags {
    /// Id of the agent: the first column of a2ad agents ls.
    #[arg(value_name = "AGENT")]
    agent: String,
    #[command(flatten)]
    operate: OperateFlags,
}

pub(super) fn ls(flags: &LsFlags) -> Result<u8, Failure> {
    let output = Output::new();
    let access = Access::open(&flags.operate, MissingStore::Refuse, &output)?;
    let document = runtime()?.block_on(list(&access))?;
    let rows = read_document(&document, |object| object.list("agents", |node| row(&node.object()?)))?;
    output.message(&format!("a2ad: {} {}", counted(rows.len(), "agent", "agents"), access.place()));
    if flags.operate.json {
        output.document(&document)?;
    } else {
        output.text(&columns(&rows))?;
    }
    Ok(code::SUCCESS)
}

pub(super) fn switch(flags: &SwitchFlags, state: SwitchState) -> Result<u8, Failure> {
    let output = Output::new();
    let check = |config: Option<&_>| find_agent(config, &flags.agent).map(drop);
    let access = Access::open(&flags.operate, MissingStore::CreateIf(&check), &output)?;
    let switched = runtime()?.block_on(decide(&access, &flags.agent, state));
    let document = switched.map_err(|failure| match failure.code {
        code::NOT_FOUND if failure.next.is_none() => failure.with_next("a2ad agents ls lists the ids"),
        _ => failure,
    })?;
    let done = match state {
        SwitchState::Enabled => "enabled",
        SwitchState::Disabled => "disabled",
    };
    output.message(&format!("a2ad: {done} the agent {:?} {}", flags.agent, access.place()));
    if flags.operate.json {
        output.document(&document)?;
    }
    Ok(code::SUCCESS)
}

async fn list(access: &Access) -> Result<Vec<u8>, Failure> {
    match access {
        Access::Server(server) => server.get("/agents").await,
        Access::Store(store) => list_stored(store).await,
    }
}

/// The agents of the configuration if it is known, and those that the store knows.
async fn list_stored(store: &StoppedStore) -> Result<Vec<u8>, Failure> {
    let counts = OperatedTasks::new(Arc::clone(&store.store)).counts().await?;
    let switches = store.store.agent_switches();
    let of_agent =
        |id: &str| switches.iter().find(|found| found.tenant == DEFAULT_TENANT && found.agent == id);
    let agents = store.config.as_ref().map(|config| config.agents.as_slice()).unwrap_or_default();
    let is_configured = |id: &str| agents.iter().any(|agent| agent.id == id);
    let with_tasks = counts.agents.iter().filter(|counts| counts.agent.tenant == DEFAULT_TENANT);
    let mut others: Vec<&str> = with_tasks.map(|counts| counts.agent.agent.as_str()).collect();
    others.extend(switches.iter().map(|switch| switch.agent.as_str()));
    others.retain(|id| !is_configured(id));
    others.sort_unstable();
    others.dedup();
    // Where the configuration is known, other agents are not served.
    let others = others.into_iter().filter(|_| store.config.is_none());
    let default = store.config.as_ref().map(|config| config.default_agent.as_str());
    let known = agents.iter().map(|agent| (agent.id.as_str(), agent.name.as_deref(), agent.enabled));
    let all = known.chain(others.map(|id| (id, None, true))).map(|(id, name, enabled)| OperatedAgent {
        id,
        name: name.unwrap_or(id),
        enabled: of_agent(id).map_or(enabled, |switch| switch.state == SwitchState::Enabled),
        switch: of_agent(id),
        is_default: default == Some(id),
        skills: None,
        tasks: agent_document::tasks_of(&counts.agents, DEFAULT_TENANT, id),
    });
    let mut all: Vec<OperatedAgent<'_>> = all.collect();
    all.sort_by_key(|agent| agent.id);
    Ok(agent_document::list(all))
}

async fn decide(access: &Access, agent: &str, state: SwitchState) -> Result<Vec<u8>, Failure> {
    let store = match access {
        Access::Server(server) => {
            let action = match state {
                SwitchState::Enabled => "enable",
                SwitchState::Disabled => "disable",
            };
            return server
                .send(Method::POST, &format!("/agents/{}/{action}", segment(agent)), Vec::new())
                .await;
        }
        Access::Store(store) => store,
    };
    find_agent(store.config.as_ref(), agent)?;
    let is_id = (1..=64).contains(&agent.len()) && agent.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_id {
        return Err(Failure::usage("expected the id of an agent: 1 to 64 characters of ASCII"));
    }
    let switch = AgentSwitch {
        tenant: DEFAULT_TENANT.into(),
        agent: agent.into(),
        state,
        at: store.clock.now(),
        by: OPERATOR.into(),
    };
    store.store.set_agent_switch(switch.clone()).await?;
    let action = match state {
        SwitchState::Enabled => "agent.enable",
        SwitchState::Disabled => "agent.disable",
    };
    store.record(AuditEntry { agent: Some(switch.agent.clone()), ..store.change(action) }).await?;
    Ok(agent_document::switched(&switch))
}

/// Id, state, who decided it, open and finished tasks, name.
fn row(object: &Object<'_, '_>) -> Read<[String; 5]> {
    let state =
        if object.need("enabled", "a boolean", |node| node.boolean())? { "enabled" } else { "disabled" };
    let decided_at = object.text("decidedAt")?;
    let by = object.need_text("decidedBy")?;
    let tasks = object.need("tasks", "an object", |node| super::super::ops::states(&node.object()?))?;
    Ok([
        object.need_text("id")?,
        state.to_owned(),
        decided_at.map_or(by.clone(), |time| format!("{by} {time}")),
        if tasks.is_empty() { "no tasks".to_owned() } else { tasks },
        object.need_text("name")?,
    ])
}
