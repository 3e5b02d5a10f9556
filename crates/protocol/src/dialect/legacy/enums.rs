//! Enumeration values: roles and task states.

use crate::{
    Role, TaskState,
    dialect::Style,
    json::read::{Node, Read},
};

const ROLES: [(&str, Role); 2] = [("user", Role::User), ("agent", Role::Agent)];
/// Expectation text for a role.
pub(crate) const ROLE: &str = "user or agent";

const STATES: [(&str, TaskState); 9] = [
    ("unknown", TaskState::Unspecified),
    ("submitted", TaskState::Submitted),
    ("working", TaskState::Working),
    ("completed", TaskState::Completed),
    ("failed", TaskState::Failed),
    ("canceled", TaskState::Canceled),
    ("input-required", TaskState::InputRequired),
    ("rejected", TaskState::Rejected),
    ("auth-required", TaskState::AuthRequired),
];
/// The other spelling of canceled: always accepted, written if the compatibility profile selects it.
const CANCELLED: &str = "cancelled";
/// Expectation text for a state.
pub(crate) const STATE: &str = "a task state such as working";

/// The wire name of a role.
pub(crate) fn role(role: Role) -> &'static str {
    ROLES.iter().find(|row| row.1 == role).map_or("user", |row| row.0)
}

/// Reads a role.
pub(crate) fn decode_role(node: Node<'_, '_>) -> Read<Role> {
    let name = node.token().map_err(|_| node.expected(ROLE))?;
    ROLES.iter().find(|row| row.0 == name).map(|row| row.1).ok_or_else(|| node.expected(ROLE))
}

/// The wire name of a state.
pub(crate) fn state(state: TaskState, style: Style) -> &'static str {
    match state {
        TaskState::Canceled if style.cancelled => CANCELLED,
        _ => STATES.iter().find(|row| row.1 == state).map_or("unknown", |row| row.0),
    }
}

/// Reads the state of a remote task. An unknown name becomes `Unspecified` and is returned beside it.
pub(crate) fn decode_state(node: Node<'_, '_>) -> Read<(TaskState, Option<String>)> {
    let name = node.string().map_err(|_| node.expected(STATE))?;
    Ok(state_by_name(&name)
        .map_or_else(|| (TaskState::Unspecified, Some(name.into_owned())), |state| (state, None)))
}

/// Reads the state of a filter, which must be a known one.
pub(crate) fn decode_filter(node: Node<'_, '_>) -> Read<TaskState> {
    node.token().ok().and_then(|name| state_by_name(&name)).ok_or_else(|| node.expected(STATE))
}

/// The state with this wire name. `_` is accepted for `-`, and both spellings of canceled.
pub(crate) fn state_by_name(name: &str) -> Option<TaskState> {
    let name = name.replace('_', "-");
    if name == CANCELLED {
        return Some(TaskState::Canceled);
    }
    STATES.iter().find(|row| row.0 == name).map(|row| row.1)
}
