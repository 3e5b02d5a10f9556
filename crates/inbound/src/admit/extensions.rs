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

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::GetExtendedCard;

    fn declared(uri: &str, required: bool) -> AgentExtension {
        AgentExtension { uri: uri.into(), description: None, required, params: None }
    }

    fn headers_with(values: &[(&'static str, &'static str)]) -> HeaderMap {
        let values = values.iter();
        values.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    fn get_task() -> Operation {
        Operation::GetTask(protocol::GetTask { id: "t".into(), history_length: None, tenant: None })
    }

    #[test]
    fn required_extension_is_accepted_in_either_header_and_among_others() {
        let agent = [declared("urn:a", true), declared("urn:b", false)];
        for headers in [
            headers_with(&[("a2a-extensions", "urn:a")]),
            headers_with(&[("a2a-extensions", "urn:x, urn:a ,urn:y")]),
            headers_with(&[("a2a-extensions", "urn:x"), ("a2a-extensions", "urn:a")]),
            headers_with(&[("x-a2a-extensions", "urn:a")]),
        ] {
            assert_eq!(check(&agent, &headers, &get_task()), Ok(()), "{headers:?}");
        }
        for headers in [headers_with(&[]), headers_with(&[("a2a-extensions", "urn:b")])] {
            let refused = check(&agent, &headers, &get_task()).unwrap_err();
            assert_eq!(refused.kind, ErrorKind::ExtensionSupportRequired);
            assert!(refused.message.contains("urn:a"), "{refused}");
        }
        let card = Operation::GetExtendedCard(GetExtendedCard::default());
        assert_eq!(check(&agent, &headers_with(&[]), &card), Ok(()));
    }

    #[test]
    fn only_declared_extensions_are_activated() {
        let agent = [declared("urn:a", true), declared("urn:b", false)];
        let asked = headers_with(&[("a2a-extensions", "urn:b,urn:c,urn:a")]);
        let header_for = |dialect| activated_header(&agent, dialect, &asked);
        for (dialect, name) in [(Dialect::V1, "a2a-extensions"), (Dialect::V03, "x-a2a-extensions")] {
            let value = HeaderValue::from_static("urn:a, urn:b");
            assert_eq!(header_for(dialect), Some((HeaderName::from_static(name), value)));
        }
        assert_eq!(header_for(Dialect::Draft), None);
        assert_eq!(
            activated_header(&agent, Dialect::V1, &headers_with(&[("a2a-extensions", "urn:c")])),
            None
        );
    }
}
