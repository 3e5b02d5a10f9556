//! Protocol extensions: those a client requests, those an agent requires, and those that are activated.

use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue};
use protocol::{Dialect, Error, ErrorKind, Operation, model::AgentExtension};

/// Rejects a request that does not name every extension the agent requires. The extended card is exempt: a client reads
/// it to learn which extensions are required.
pub(super) fn check(
    declared: &[AgentExtension],
    headers: &HeaderMap,
    operation: &Operation,
) -> Result<(), Error> {
    if matches!(operation, Operation::GetExtendedCard(_)) {
        return Ok(());
    }
    let used = match operation {
        Operation::SendMessage(req) | Operation::SendStreamingMessage(req) => &req.message.extensions[..],
        _ => &[],
    };
    let missing: Vec<&str> = declared
        .iter()
        .filter(|extension| extension.required)
        .map(|extension| extension.uri.as_str())
        .filter(|uri| !requested(headers).any(|asked| asked == *uri) && !used.iter().any(|one| one == uri))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.join(", ");
    let text = format!("this agent requires the extension {missing}; name it in the header A2A-Extensions");
    Err(Error::new(ErrorKind::ExtensionSupportRequired, text).with("requiredExtensions", missing))
}

/// Adds the header of activated extensions to a response, if there are any.
pub(crate) fn set_activated_header(
    mut response: Response,
    declared: &[AgentExtension],
    dialect: Dialect,
    headers: &HeaderMap,
) -> Response {
    if let Some((name, value)) = activated_header(declared, dialect, headers) {
        response.headers_mut().insert(name, value);
    }
    response
}

/// The header that lists the activated extensions: those that the client requested and the agent declares. `None` if
/// there are none.
pub(crate) fn activated_header(
    declared: &[AgentExtension],
    dialect: Dialect,
    headers: &HeaderMap,
) -> Option<(HeaderName, HeaderValue)> {
    if declared.is_empty() {
        return None;
    }
    let name = HeaderName::from_static(dialect.rules().extensions_header?);
    let uris = declared.iter().map(|extension| extension.uri.as_str());
    let active: Vec<&str> = uris.filter(|uri| requested(headers).any(|asked| asked == *uri)).collect();
    let value = HeaderValue::from_str(&active.join(", ")).ok()?;
    (!active.is_empty()).then_some((name, value))
}

/// The extensions a client requests, in the header of any protocol version, given once or repeatedly.
fn requested(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let names =
        [Dialect::V1, Dialect::V03].into_iter().filter_map(|dialect| dialect.rules().extensions_header);
    let values = names.flat_map(|name| headers.get_all(name));
    values.filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).map(str::trim)
}
