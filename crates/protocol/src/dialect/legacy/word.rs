//! Words of a closed set: who speaks, and how a task stands.

use crate::{
    Role, TaskState,
    dialect::Style,
    json::read::{Node, Read},
};

const ROLES: [(&str, Role); 2] = [("user", Role::User), ("agent", Role::Agent)];
/// What a role should have been.
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
/// The other spelling of canceled, read everywhere and written where the house does.
const CANCELLED: &str = "cancelled";
/// What a state should have been.
pub(crate) const STATE: &str = "a task state such as working";

/// The word for a role.
pub(crate) fn role(role: Role) -> &'static str {
    ROLES.iter().find(|row| row.1 == role).map_or("user", |row| row.0)
}

/// Reads a role.
pub(crate) fn decode_role(node: Node<'_, '_>) -> Read<Role> {
    let word = node.word().map_err(|_| node.expected(ROLE))?;
    ROLES.iter().find(|row| row.0 == word).map(|row| row.1).ok_or_else(|| node.expected(ROLE))
}

/// The word for a state.
pub(crate) fn state(state: TaskState, style: Style) -> &'static str {
    match state {
        TaskState::Canceled if style.cancelled => CANCELLED,
        _ => STATES.iter().find(|row| row.1 == state).map_or("unknown", |row| row.0),
    }
}

/// Reads the state of a foreign task. A word nobody knows says nothing; it is handed back beside that.
pub(crate) fn decode_state(node: Node<'_, '_>) -> Read<(TaskState, Option<String>)> {
    let word = node.string().map_err(|_| node.expected(STATE))?;
    Ok(by_word(&word)
        .map_or_else(|| (TaskState::Unspecified, Some(word.into_owned())), |state| (state, None)))
}

/// Reads the state of a filter, which must be one we know.
pub(crate) fn decode_filter(node: Node<'_, '_>) -> Read<TaskState> {
    node.word().ok().and_then(|word| by_word(&word)).ok_or_else(|| node.expected(STATE))
}

/// The state of a word, with `_` for `-` and both spellings of canceled.
pub(crate) fn by_word(word: &str) -> Option<TaskState> {
    let word = word.replace('_', "-");
    if word == CANCELLED {
        return Some(TaskState::Canceled);
    }
    STATES.iter().find(|row| row.0 == word).map(|row| row.1)
}
