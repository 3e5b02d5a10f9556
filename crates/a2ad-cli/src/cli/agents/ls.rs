//! `a2ad agents ls`: lists the agents for operators, one line each, the id first.

use protocol::json::read::{Object, Read};

use crate::cli::{
    failure::Failure,
    operators::{Access, List, OperatorFlags},
    ops::states,
};

pub(super) fn run(flags: &OperatorFlags) -> Result<u8, Failure> {
    List { nouns: ["agent", "agents"], filters: &[], row }.print(&Access::open(flags)?, flags)
}

/// Id, state, who decided it, open and finished tasks, name.
fn row(object: &Object<'_, '_>) -> Read<[String; 5]> {
    let state =
        if object.need("enabled", "a boolean", |node| node.boolean())? { "enabled" } else { "disabled" };
    let decided_at = object.text("decidedAt")?;
    let by = object.need_text("decidedBy")?;
    let tasks = object.need("tasks", "an object", |node| states(&node.object()?))?;
    Ok([
        object.need_text("id")?,
        state.to_owned(),
        decided_at.map_or(by.clone(), |time| format!("{by} {time}")),
        if tasks.is_empty() { "no tasks".to_owned() } else { tasks },
        object.need_text("name")?,
    ])
}
