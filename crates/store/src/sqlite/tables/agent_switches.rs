//! Operators' decisions about agents: the writer records them, and they are read when the store is opened.

use engine::{AgentSwitch, SwitchState};
use protocol::Timestamp;
use rusqlite::{Connection, Row, params};

pub(crate) fn list(connection: &Connection) -> rusqlite::Result<Vec<AgentSwitch>> {
    let mut statement = connection.prepare(EVERY)?;
    statement.query_map([], read)?.collect()
}

pub(crate) const EVERY: &str =
    "SELECT agent, tenant, enabled, decided_at, decided_by FROM agent_switches ORDER BY tenant, agent";

pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<AgentSwitch> {
    let enabled: bool = row.get("enabled")?;
    Ok(AgentSwitch {
        tenant: row.get("tenant")?,
        agent: row.get("agent")?,
        state: if enabled { SwitchState::Enabled } else { SwitchState::Disabled },
        at: Timestamp::from_millis(row.get("decided_at")?),
        by: row.get("decided_by")?,
    })
}

/// Records a decision in the place of an earlier one. Always `true`.
pub(crate) fn set(connection: &Connection, switch: &AgentSwitch) -> rusqlite::Result<bool> {
    let enabled = match switch.state {
        SwitchState::Enabled => true,
        SwitchState::Disabled => false,
    };
    let mut statement = connection.prepare_cached(
        "INSERT INTO agent_switches (tenant, agent, enabled, decided_at, decided_by) VALUES (?1, ?2, ?3, ?4, ?5)
         ON CONFLICT (tenant, agent) DO UPDATE SET enabled = excluded.enabled, decided_at = excluded.decided_at,
             decided_by = excluded.decided_by",
    )?;
    let AgentSwitch { tenant, agent, at, by, .. } = switch;
    Ok(statement.execute(params![tenant, agent, enabled, at.as_millis(), by])? == 1)
}
