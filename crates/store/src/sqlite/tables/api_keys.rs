//! API keys: the writer adds and revokes them, a reader lists them.

use engine::ApiKey;
use protocol::Timestamp;
use rusqlite::{Connection, Row, params};

/// All keys, newest first.
pub(crate) fn list(tx: &Connection) -> rusqlite::Result<Vec<ApiKey>> {
    let mut statement = tx.prepare_cached(EVERY)?;
    statement.query_map([], read)?.collect()
}

pub(crate) const EVERY: &str = "SELECT id, tenant, agent, owner, prefix, ending, digest, created_at, revoked_at FROM api_keys ORDER BY n DESC";

pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<ApiKey> {
    let revoked_at: Option<i64> = row.get("revoked_at")?;
    Ok(ApiKey {
        id: row.get("id")?,
        tenant: row.get("tenant")?,
        agent: row.get("agent")?,
        owner: row.get("owner")?,
        prefix: row.get("prefix")?,
        ending: row.get("ending")?,
        digest: row.get("digest")?,
        created_at: Timestamp::from_millis(row.get("created_at")?),
        revoked_at: revoked_at.map(Timestamp::from_millis),
    })
}

/// Adds a key, unless its agent has `max` valid ones or another key has its id. Returns whether it was added.
pub(crate) fn insert(connection: &Connection, key: &ApiKey, max: usize) -> rusqlite::Result<bool> {
    let mut statement = connection.prepare_cached(
        "INSERT INTO api_keys (id, tenant, agent, owner, prefix, ending, digest, created_at, revoked_at)
         SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9
         WHERE (SELECT count(*) FROM api_keys WHERE tenant = ?2 AND agent = ?3 AND revoked_at IS NULL) < ?10
         ON CONFLICT (id) DO NOTHING",
    )?;
    let inserted = statement.execute(params![
        key.id,
        key.tenant,
        key.agent,
        key.owner,
        key.prefix,
        key.ending,
        key.digest,
        key.created_at.as_millis(),
        key.revoked_at.map(|time| time.as_millis()),
        i64::try_from(max).unwrap_or(i64::MAX),
    ])?;
    Ok(inserted == 1)
}

/// Revokes a valid key. Returns whether there was one with this id.
pub(crate) fn revoke(connection: &Connection, id: &str, now: Timestamp) -> rusqlite::Result<bool> {
    let update = "UPDATE api_keys SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL";
    Ok(connection.prepare_cached(update)?.execute(params![id, now.as_millis()])? == 1)
}
