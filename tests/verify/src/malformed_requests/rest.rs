//! The HTTP+JSON binding in both generations: every operation gets some hundred requests that are invalid in one
//! respect each, in the path, the query, the body or the headers.
//!
//! `rest/operations.rs` describes the operations; the other files generate the requests. Deliberately not here:
//! bytes that are not HTTP, which are answered before a binding is chosen.

mod bodies;
pub(super) mod checker;
mod operations;
mod paths;
mod queries;
mod versions;

use self::operations::{OPERATIONS, Operation};
use super::Suite;

/// The requests for every operation at its paths.
pub(super) fn suites() -> impl Iterator<Item = Suite> {
    OPERATIONS.iter().map(suite)
}

fn suite(operation: &'static Operation) -> Suite {
    let cases = [
        paths::cases(operation),
        queries::cases(operation),
        bodies::cases(operation),
        versions::cases(operation),
    ];
    Suite { label: operation.label(), good: operation.good(), cases: cases.concat() }
}

/// Percent-encodes a text for a path or a query.
fn encoded(text: &str) -> String {
    // Placeholders are replaced when the request is sent.
    if matches!(text, "$TASK" | "$CONFIG" | "$NEW") {
        return text.to_owned();
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let segment = |byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(segment).collect()
}

/// A JSON value as text of a query: a string without its quotes; `None` for an invalid string.
fn as_text(json: &str) -> Option<String> {
    if json.starts_with('"') { serde_json::from_str(json).ok() } else { Some(json.to_owned()) }
}
