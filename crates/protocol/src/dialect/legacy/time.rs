//! Timestamps: RFC 3339, also without a time zone as in the published examples.

use crate::{
    Timestamp,
    json::read::{Node, Read},
};

/// Reads a timestamp; without a zone it is UTC.
pub(crate) fn decode(node: Node<'_, '_>) -> Read<Timestamp> {
    node.timestamp().or_else(|violation| {
        let text = node.token().map_err(|_| violation.clone())?;
        Timestamp::parse(&format!("{text}Z")).ok_or(violation)
    })
}
