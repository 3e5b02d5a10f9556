//! Timestamps: RFC 3339, also without a time zone as in the published examples.

use crate::{
    Task, Timestamp,
    json::{
        read::{Node, Read},
        write::Writer,
    },
};

/// Reads a timestamp; without a zone it is UTC.
pub(crate) fn decode(node: Node<'_, '_>) -> Read<Timestamp> {
    node.timestamp().or_else(|violation| {
        let text = node.token().map_err(|_| violation.clone())?;
        Timestamp::parse(&format!("{text}Z")).ok_or(violation)
    })
}

/// Writes when a task was created, in milliseconds, if that is known: only clients of some platforms expect it.
pub(crate) fn encode_created(writer: &mut Writer, task: &Task) {
    if let Some(at) = task.created_at {
        writer.key("createdAt").int(at.as_millis());
    }
}
