//! States that a client has no name for: written as the closest one that it has, with the state in the metadata.

use std::borrow::Cow;

use crate::{Json, TaskState, dialect::Style};

use super::{carrier, enums};

/// The closest state that the draft has a name for.
pub(crate) fn closest(state: TaskState) -> TaskState {
    match state {
        TaskState::Rejected => TaskState::Failed,
        TaskState::AuthRequired => TaskState::InputRequired,
        _ => state,
    }
}

/// The metadata of a task or an update, with the state added if its closest one is written instead.
pub(crate) fn metadata_with_state(state: TaskState, metadata: Option<&Json>) -> Option<Cow<'_, Json>> {
    if closest(state) == state {
        return metadata.map(Cow::Borrowed);
    }
    let name = enums::state(state, Style::default());
    carrier::with_carried(metadata, |writer| writer.text("state", name)).map(Cow::Owned)
}

/// The state that the metadata carries if `written` is the closest one to it, and the metadata without it.
pub(crate) fn take_state(metadata: Option<Json>, written: TaskState) -> (Option<Json>, Option<TaskState>) {
    carrier::take_carried(metadata, &["state"], |carried| {
        let carried_state = carried.need("state", enums::STATE, enums::decode_filter)?;
        if closest(carried_state) == written && carried_state != written {
            Ok(carried_state)
        } else {
            Err(carried.expected("another state"))
        }
    })
}
