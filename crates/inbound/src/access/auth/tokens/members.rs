//! Reads JSON objects strictly: every name occurs once, and names are compared exactly. A document that two readers could
//! understand differently is not read at all.

use std::borrow::Cow;

use protocol::json::{
    Raw,
    read::{Node, Path},
};

/// Passes the members of a JSON object to `each`, in their order, until one of them is refused. The error is `malformed`
/// if the document is not an object whose names occur once.
pub(super) fn read<'a, E>(
    document: &'a [u8],
    malformed: E,
    each: impl FnMut(&str, Raw<'a>) -> Result<(), E>,
) -> Result<(), E> {
    match Raw::parse(document) {
        Ok(raw) => read_raw(raw, malformed, each),
        Err(_) => Err(malformed),
    }
}

/// The same for a value of a document.
pub(super) fn read_raw<'a, E>(
    raw: Raw<'a>,
    malformed: E,
    mut each: impl FnMut(&str, Raw<'a>) -> Result<(), E>,
) -> Result<(), E> {
    let Ok(object) = node(raw).object() else { return Err(malformed) };
    if object.repeated().is_some() {
        return Err(malformed);
    }
    let mut result = Ok(());
    let read = object.entries(|name, node| {
        if result.is_ok() {
            result = each(name, node.raw());
        }
        Ok(())
    });
    read.map_err(|_| malformed).and(result)
}

/// The value as text; `None` if it is anything else.
pub(super) fn text(raw: Raw<'_>) -> Option<Cow<'_, str>> {
    raw.get().starts_with('"').then(|| node(raw).string().ok()).flatten()
}

/// The value as a list of at most `max` values; `None` if it is anything else.
pub(super) fn list(raw: Raw<'_>, max: usize) -> Option<Vec<Raw<'_>>> {
    raw.get()
        .starts_with('[')
        .then(|| node(raw).list_up_to(max, "values", |node| Ok(node.raw())).ok())
        .flatten()
}

fn node(raw: Raw<'_>) -> Node<'_, 'static> {
    Node::new(raw, &Path::Root)
}
