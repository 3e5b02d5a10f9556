//! Protocol extensions that an agent declares: `extensions = [{ uri = "…", required = true }]`.

use protocol::model::AgentExtension;

use super::{
    json_value::object,
    read::{Parsed, Section},
    tree::Item,
    values::text,
};

pub(super) fn extensions(agent: &Section<'_>) -> Vec<AgentExtension> {
    let mut seen: Vec<AgentExtension> = Vec::new();
    for section in agent.tables("extensions") {
        let Some(uri) = section.required("uri", "expected the URI of the extension", uri) else { continue };
        if seen.iter().any(|extension| extension.uri == uri) {
            section.report("uri", format!("{uri:?} is listed twice"));
        }
        seen.push(AgentExtension {
            uri,
            description: section.get("description", text),
            required: section.value("required", Item::boolean),
            params: section.get("params", object),
        });
    }
    seen
}

/// Clients list extension URIs in a header, separated by commas, so a URI must not contain one.
fn uri(item: &Item) -> Parsed<String> {
    let text = item.text()?;
    let plain = |byte: u8| byte.is_ascii_graphic() && byte != b',';
    if text.contains(':') && text.bytes().all(plain) {
        return Ok(text.to_owned());
    }
    Err(format!("{text:?} is not a URI such as https://example.com/extensions/mine or urn:example:mine"))
}
