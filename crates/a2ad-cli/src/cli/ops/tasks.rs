//! `a2ad ops tasks`: lists tasks of all owners, following the page tokens up to the limit.

use clap::Args;
use protocol::{
    TaskState, Timestamp,
    json::read::{Object, Read},
};

use crate::cli::{
    calls::outcome,
    failure::Failure,
    named_value::NamedValue,
    operators::{Access, List, OperatorFlags, counted, read_time},
};

#[derive(Debug, Args)]
pub(in crate::cli) struct TasksFlags {
    /// Only tasks of this agent.
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Only tasks in this state, such as working or input-required.
    #[arg(long, value_name = "STATE", value_parser = NamedValue { names: &outcome::STATES, parse: outcome::parse_state })]
    state: Option<TaskState>,
    /// Only tasks of this principal, such as key:alice or anonymous.
    #[arg(long, value_name = "OWNER")]
    owner: Option<String>,
    /// Only tasks whose state is of this time or later, such as 2026-01-02T03:04:05Z.
    #[arg(long, value_name = "TIME", value_parser = read_time)]
    since: Option<Timestamp>,
    /// Print at most N tasks; 0 prints all.
    #[arg(long, value_name = "N", default_value_t = 100)]
    limit: usize,
    #[command(flatten)]
    operator: OperatorFlags,
}

pub(super) fn run(flags: &TasksFlags) -> Result<u8, Failure> {
    let TasksFlags { agent, state, owner, since, limit, operator } = flags;
    let since = since.map(|time| time.to_string());
    let filters = [
        ("agent", agent.as_deref()),
        ("owner", owner.as_deref()),
        ("state", state.map(outcome::state_name)),
        ("since", since.as_deref()),
    ];
    let tasks = List { nouns: ["task", "tasks"], filters: &filters, row };
    tasks.print_pages(&Access::open(operator)?, operator, *limit)
}

fn row(object: &Object<'_, '_>) -> Read<[String; 6]> {
    let owner = object.need_text("owner")?;
    let attempts = object.need("attempts", "a number", |node| node.int32())?;
    Ok([
        object.need_text("id")?,
        object.need_text("state")?,
        object.need_text("agent")?,
        object.text("endUser")?.map_or(owner.clone(), |user| format!("{owner} for {user}")),
        object.need_text("statusAt")?,
        counted(usize::try_from(attempts).unwrap_or(0), "attempt", "attempts"),
    ])
}
