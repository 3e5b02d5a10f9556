//! Points in time: RFC 3339, and also without a zone, as the published examples have them.

use crate::{
    Timestamp,
    json::read::{Node, Read},
};

/// Reads a point in time; without a zone it is UTC.
pub(crate) fn decode(node: Node<'_, '_>) -> Read<Timestamp> {
    node.timestamp().or_else(|violation| {
        let text = node.word().map_err(|_| violation.clone())?;
        Timestamp::parse(&format!("{text}Z")).ok_or(violation)
    })
}
