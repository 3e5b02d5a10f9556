//! Extensions of the protocol: which ones a client asks for, which an agent insists on, which are in use.

use axum::response::Response;
use http::{HeaderMap, HeaderName, HeaderValue};
use protocol::{Dialect, Error, ErrorKind, Operation, model::AgentExtension};

/// Refuses a client that does not speak what the agent insists on. The extended card is for those who are still
/// finding that out.
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

/// Says on an answer which of the extensions that were asked for are in use.
pub(crate) fn tell(
    mut response: Response,
    declared: &[AgentExtension],
    dialect: Dialect,
    headers: &HeaderMap,
) -> Response {
    if let Some((name, value)) = activated(declared, dialect, headers) {
        response.headers_mut().insert(name, value);
    }
    response
}

/// The header that tells a client which of the extensions it asked for are in use; none where none is.
pub(crate) fn activated(
    declared: &[AgentExtension],
    dialect: Dialect,
    headers: &HeaderMap,
) -> Option<(HeaderName, HeaderValue)> {
    if declared.is_empty() {
        return None;
    }
    let name = HeaderName::from_static(dialect.extensions_header()?);
    let uris = declared.iter().map(|extension| extension.uri.as_str());
    let active: Vec<&str> = uris.filter(|uri| requested(headers).any(|asked| asked == *uri)).collect();
    let value = HeaderValue::from_str(&active.join(", ")).ok()?;
    (!active.is_empty()).then_some((name, value))
}

/// What a client asks for, under the name of any generation, in one header or several.
fn requested(headers: &HeaderMap) -> impl Iterator<Item = &str> {
    let names = [Dialect::V1, Dialect::V03].into_iter().filter_map(Dialect::extensions_header);
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

    fn asking(values: &[(&'static str, &'static str)]) -> HeaderMap {
        let values = values.iter();
        values.map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value))).collect()
    }

    fn get_task() -> Operation {
        Operation::GetTask(protocol::GetTask { id: "t".into(), history_length: None, tenant: None })
    }

    #[test]
    fn a_required_extension_may_be_named_under_both_names_and_among_others() {
        let agent = [declared("urn:a", true), declared("urn:b", false)];
        for headers in [
            asking(&[("a2a-extensions", "urn:a")]),
            asking(&[("a2a-extensions", "urn:x, urn:a ,urn:y")]),
            asking(&[("a2a-extensions", "urn:x"), ("a2a-extensions", "urn:a")]),
            asking(&[("x-a2a-extensions", "urn:a")]),
        ] {
            assert_eq!(check(&agent, &headers, &get_task()), Ok(()), "{headers:?}");
        }
        for headers in [asking(&[]), asking(&[("a2a-extensions", "urn:b")])] {
            let refused = check(&agent, &headers, &get_task()).unwrap_err();
            assert_eq!(refused.kind, ErrorKind::ExtensionSupportRequired);
            assert!(refused.message.contains("urn:a"), "{refused}");
        }
        let card = Operation::GetExtendedCard(GetExtendedCard::default());
        assert_eq!(check(&agent, &asking(&[]), &card), Ok(()));
    }

    #[test]
    fn only_what_the_agent_declares_is_in_use() {
        let agent = [declared("urn:a", true), declared("urn:b", false)];
        let asked = asking(&[("a2a-extensions", "urn:b,urn:c,urn:a")]);
        let told = |dialect| activated(&agent, dialect, &asked);
        for (dialect, name) in [(Dialect::V1, "a2a-extensions"), (Dialect::V03, "x-a2a-extensions")] {
            let value = HeaderValue::from_static("urn:a, urn:b");
            assert_eq!(told(dialect), Some((HeaderName::from_static(name), value)));
        }
        assert_eq!(told(Dialect::Draft), None);
        assert_eq!(activated(&agent, Dialect::V1, &asking(&[("a2a-extensions", "urn:c")])), None);
    }
}
