//! Protocol extensions that an agent declares: `extensions = [{ uri = "…", required = true }]`.

use protocol::{Json, json::write::Writer, model::AgentExtension};

use super::{
    read::{Parsed, Section},
    tree::{Item, Value},
};

pub(super) fn extensions(agent: &Section<'_>) -> Vec<AgentExtension> {
    let mut seen: Vec<AgentExtension> = Vec::new();
    for section in agent.tables("extensions") {
        if !section.has("uri") {
            section.report("uri", "expected the URI of the extension");
        }
        let Some(uri) = section.get("uri", uri) else { continue };
        if seen.iter().any(|extension| extension.uri == uri) {
            section.report("uri", format!("{uri:?} is listed twice"));
        }
        seen.push(AgentExtension {
            uri,
            description: section.get("description", |item| Ok(item.text()?.to_owned())),
            required: section.get("required", Item::boolean).unwrap_or_default(),
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

fn object(item: &Item) -> Parsed<Json> {
    if !matches!(item.value, Value::Table(_)) {
        return Err("expected a table".into());
    }
    let mut writer = Writer::new();
    write(&mut writer, item)?;
    let text = String::from_utf8(writer.finish()).unwrap_or_default();
    Json::parse(&text)
}

/// Writes a TOML value as JSON.
fn write(writer: &mut Writer, item: &Item) -> Parsed<()> {
    let mut written = Ok(());
    match &item.value {
        Value::Text(text) | Value::Typed(text) => writer.string(text),
        Value::Integer(digits) => writer.raw(digits),
        Value::Float(digits) => match digits.replace('_', "").parse::<f64>() {
            Ok(number) if number.is_finite() => writer.raw(&number.to_string()),
            _ => return Err(format!("{digits} cannot be written as JSON")),
        },
        Value::Boolean(flag) => writer.boolean(*flag),
        Value::List(items) => writer.array(items, |writer, item| {
            written = written.clone().and(write(writer, item));
        }),
        Value::Table(table) => writer.object(|writer| {
            for entry in &table.0 {
                written = written.clone().and(write(writer.key(&entry.key), &entry.item));
            }
        }),
        Value::Other(kind) => return Err(format!("{kind} cannot be written as JSON")),
    }
    written
}
