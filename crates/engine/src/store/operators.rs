//! What operators read: tasks of all owners and counts. The only reads, beside those of the runner, that no
//! [`Scope`] restricts; `inbound` permits them to holders of the admin token.

use protocol::{TaskState, Timestamp};

use super::{TaskRow, TenantAgent};
use crate::{access::scope::Scope, ids::TaskNo};

/// How many tasks one page may examine. A page of a filter that no index serves may therefore have fewer tasks than
/// asked for, or none, although there are others.
pub const MAX_EXAMINED: usize = 10_000;

/// Filter and page of a list of all tasks.
#[derive(Clone, Debug)]
pub struct OperatorQuery {
    /// Of which tenant.
    pub tenant: String,
    /// Only those of this agent.
    pub agent: Option<String>,
    /// Only those of this principal.
    pub principal: Option<String>,
    /// Only this state.
    pub state: Option<TaskState>,
    /// Only those whose status is of this time or later.
    pub since: Option<Timestamp>,
    /// Only tasks that are older than this one.
    pub before: Option<TaskNo>,
    /// Page size.
    pub size: usize,
}

/// A page of tasks of all owners, the newest task first.
#[derive(Clone, Debug, Default)]
pub struct OperatorPage {
    /// At most as many as asked for.
    pub tasks: Vec<OwnedTask>,
    /// Before which task the next page begins; `None` on the last one.
    pub next: Option<TaskNo>,
    /// How many tasks of this page are left out because they are damaged.
    pub unreadable: u64,
}

/// A task with its owner.
#[derive(Clone, Debug)]
pub struct OwnedTask {
    /// The row.
    pub row: TaskRow,
    /// The owner.
    pub scope: Scope,
}

/// How many tasks there are, and how much work.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskCounts {
    /// Ordered by tenant and agent.
    pub agents: Vec<AgentTaskCounts>,
    /// Whether all owners are counted; there may be too many.
    pub is_complete: bool,
    /// Tasks whose work waits for a run.
    pub queued: u64,
    /// Since when the first of them has been due.
    pub oldest_due: Option<Timestamp>,
    /// Tasks whose work a process holds.
    pub running: u64,
}

/// The tasks of one agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgentTaskCounts {
    /// The agent, registered or not.
    pub agent: TenantAgent,
    /// The states that some task has, with their number.
    pub states: Vec<(TaskState, u64)>,
}
