//! Tasks and their counts as JSON, for operators.

use engine::{ListedTask, OperatorList, store::TaskCounts};
use protocol::{
    Task, TaskId, Timestamp,
    dialect::{v1, v03::task::state_name},
    json::write::Writer,
};

use super::agent_document::{number, write_states};

/// A page of tasks as JSON.
pub(super) fn list(list: &OperatorList) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.object(|out| {
        out.key("tasks").array(&list.tasks, |out, task| out.object(|out| write_members(out, task)));
        out.maybe_text("nextPageToken", list.next_page_token.as_deref());
    });
    writer.finish()
}

/// A task as JSON: as its owner sees it over 1.0, with what operators need.
pub(super) fn one(found: &ListedTask, task: &Task) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.object(|out| {
        write_members(out, found);
        v1::task::encode(out.key("task"), task);
    });
    writer.finish()
}

fn write_members(out: &mut Writer, task: &ListedTask) {
    let (row, owner) = (&task.owned.row, task.owned.scope.parts());
    out.text("id", task.id.as_str());
    out.maybe_text("clientId", row.client_id.as_ref().map(TaskId::as_str));
    out.text("contextId", task.context_id.as_str());
    out.text("agent", &owner.agent);
    out.text("owner", &owner.principal);
    out.maybe_text("endUser", Some(owner.end_user.as_str()).filter(|user| !user.is_empty()));
    out.maybe_text("skill", row.skill.as_deref());
    out.text("state", state_name(row.state));
    out.text("statusAt", &row.status_at.to_string());
    out.key("turn").int(row.turn);
    out.key("attempts").int(row.attempt);
    out.key("crashes").int(row.crashes);
    out.text("origin", row.origin.label());
    out.key("bytes").int(i64::try_from(row.size).unwrap_or(i64::MAX));
}

/// The counts of one tenant as JSON; queue, runs and open streams are those of the whole server. Only a server has
/// streams.
pub(super) fn counts(counts: &TaskCounts, streams: Option<u64>, tenant: &str, now: Timestamp) -> Vec<u8> {
    let mut writer = Writer::new();
    writer.object(|out| {
        let agents = counts.agents.iter().filter(|counts| counts.agent.tenant == tenant);
        out.key("agents").array(agents, |out, counts| {
            out.object(|out| {
                out.text("id", &counts.agent.agent);
                write_states(out.key("tasks"), &counts.states);
            });
        });
        out.key("complete").boolean(counts.is_complete);
        out.key("queued").int(number(counts.queued));
        if let Some(since) = counts.oldest_due {
            // Work that is retried later is queued too.
            let age = now.as_millis().saturating_sub(since.as_millis()).max(0);
            out.key("oldestQueuedMs").int(age);
        }
        out.key("running").int(number(counts.running));
        if let Some(streams) = streams {
            out.key("streams").int(number(streams));
        }
    });
    writer.finish()
}
