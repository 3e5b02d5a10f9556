//! Counts of visible tasks: per scope and state, and of open and finished ones per agent. Written once per commit, not
//! per change.

use std::{collections::HashMap, sync::Arc};

use engine::metrics::StoreMetrics;
use protocol::TaskState;
use rusqlite::{Connection, OptionalExtension as _, params};

/// Cached agents of scopes before the cache is cleared.
const MAX_AGENTS: usize = 10_000;

/// Differences that the current commit makes to the stored counts.
pub(crate) struct Counts {
    /// Has the sums over all scopes.
    metrics: Arc<StoreMetrics>,
    by_state: HashMap<(i64, u8), i64>,
    by_agent: HashMap<Arc<TenantAgent>, AgentCounts>,
    /// The agents of scopes. They never change, and the id of a deleted scope is not used again.
    agents: HashMap<i64, Arc<TenantAgent>>,
}

/// Tenant and agent of a scope.
type TenantAgent = (String, String);

#[derive(Default)]
struct AgentCounts {
    open: i64,
    finished: i64,
}

impl Counts {
    /// Reads the sums of the stored counts.
    pub(crate) fn load(connection: &Connection, metrics: Arc<StoreMetrics>) -> rusqlite::Result<Self> {
        let mut statement = connection.prepare("SELECT state, sum(n) FROM counts GROUP BY state")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let state: u8 = row.get(0)?;
            if let Some(tasks) = metrics.tasks.get(usize::from(state)) {
                tasks.add(row.get(1)?);
            }
        }
        Ok(Self { metrics, by_state: HashMap::new(), by_agent: HashMap::new(), agents: HashMap::new() })
    }

    /// Counts a task that has become terminal.
    pub(crate) fn finish(&self, state: TaskState) {
        self.metrics.finished[usize::from(state.number())].increment();
    }

    /// Counts a task that lists now include.
    pub(crate) fn add(&mut self, scope: i64, state: TaskState) {
        self.count(scope, state, 1);
    }

    /// Subtracts a task that lists no longer include with this state.
    pub(crate) fn remove(&mut self, scope: i64, state: TaskState) {
        self.count(scope, state, -1);
    }

    fn count(&mut self, scope: i64, state: TaskState, difference: i64) {
        *self.by_state.entry((scope, state.number())).or_default() += difference;
    }

    /// The number of visible tasks, with the differences of the current commit.
    pub(crate) fn of(&self, connection: &Connection, scope: i64, state: TaskState) -> rusqlite::Result<i64> {
        let stored: Option<i64> = connection
            .prepare_cached("SELECT n FROM counts WHERE scope = ?1 AND state = ?2")?
            .query_row(params![scope, state.number()], |row| row.get(0))
            .optional()?;
        let difference = self.by_state.get(&(scope, state.number())).copied();
        Ok(stored.unwrap_or_default() + difference.unwrap_or_default())
    }

    /// Writes the differences.
    pub(crate) fn flush(&mut self, connection: &Connection) -> rusqlite::Result<()> {
        let by_state = std::mem::take(&mut self.by_state);
        for (&(scope, state), &difference) in by_state.iter().filter(|entry| *entry.1 != 0) {
            connection
                .prepare_cached(
                    "INSERT INTO counts (scope, state, n) VALUES (?1, ?2, ?3)
                     ON CONFLICT (scope, state) DO UPDATE SET n = n + excluded.n",
                )?
                .execute(params![scope, state, difference])?;
            // Not committed yet; if the commit fails, the process ends.
            self.metrics.tasks[usize::from(state)].add(difference);
            let agent = self.agent(connection, scope)?;
            let counts = self.by_agent.entry(agent).or_default();
            if TaskState::from_number(state).is_some_and(TaskState::is_terminal) {
                counts.finished += difference;
            } else {
                counts.open += difference;
            }
        }
        // Kept for its capacity.
        self.by_state = by_state;
        self.by_state.clear();
        for (agent, AgentCounts { open, finished }) in self.by_agent.drain() {
            if (open, finished) != (0, 0) {
                connection
                    .prepare_cached(
                        "INSERT INTO agent_counts (tenant, agent, open, finished) VALUES (?1, ?2, ?3, ?4)
                         ON CONFLICT (tenant, agent) DO UPDATE
                         SET open = open + excluded.open, finished = finished + excluded.finished",
                    )?
                    .execute(params![agent.0, agent.1, open, finished])?;
            }
        }
        Ok(())
    }

    fn agent(&mut self, connection: &Connection, scope: i64) -> rusqlite::Result<Arc<TenantAgent>> {
        if let Some(agent) = self.agents.get(&scope) {
            return Ok(Arc::clone(agent));
        }
        let agent = connection
            .prepare_cached("SELECT tenant, agent FROM scopes WHERE id = ?1")?
            .query_row(params![scope], |row| Ok(Arc::new((row.get(0)?, row.get(1)?))))?;
        if self.agents.len() >= MAX_AGENTS {
            self.agents.clear();
        }
        self.agents.insert(scope, Arc::clone(&agent));
        Ok(agent)
    }
}
