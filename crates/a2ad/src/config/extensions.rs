//! Extensions of the protocol that an agent declares: `extensions = [{ uri = "…", required = true }]`.

use protocol::{Json, json::write::Writer, model::AgentExtension};

use super::{
    read::{Read, Section},
    tree::{Item, Value},
};

/// The extensions of an agent.
pub(super) fn extensions(agent: &Section<'_>) -> Vec<AgentExtension> {
    let mut met: Vec<AgentExtension> = Vec::new();
    for section in agent.tables("extensions") {
        if !section.has("uri") {
            section.wrong("uri", "expected the URI that names the extension");
        }
        let Some(uri) = section.get("uri", uri) else { continue };
        if met.iter().any(|extension| extension.uri == uri) {
            section.wrong("uri", format!("{uri:?} is there already"));
        }
        met.push(AgentExtension {
            uri,
            description: section.get("description", |item| Ok(item.text()?.to_owned())),
            required: section.get("required", Item::boolean).unwrap_or_default(),
            params: section.get("params", object),
        });
    }
    met
}

/// Clients name it in a header, where commas separate several.
fn uri(item: &Item) -> Read<String> {
    let text = item.text()?;
    let plain = |byte: u8| byte.is_ascii_graphic() && byte != b',';
    if text.contains(':') && text.bytes().all(plain) {
        return Ok(text.to_owned());
    }
    Err(format!("{text:?} is not a URI such as https://example.com/extensions/mine or urn:example:mine"))
}

fn object(item: &Item) -> Read<Json> {
    if !matches!(item.value, Value::Table(_)) {
        return Err("expected a table".into());
    }
    let mut writer = Writer::new();
    write(&mut writer, item)?;
    let text = String::from_utf8(writer.finish()).unwrap_or_default();
    Json::parse(&text)
}

/// A value of the file as JSON.
fn write(writer: &mut Writer, item: &Item) -> Read<()> {
    let mut written = Ok(());
    match &item.value {
        Value::Text(text) | Value::Typed(text) => writer.string(text),
        Value::Integer(digits) => writer.raw(digits),
        Value::Float(digits) => match digits.replace('_', "").parse::<f64>() {
            Ok(number) if number.is_finite() => writer.raw(&number.to_string()),
            _ => return Err(format!("{digits} has no place in JSON")),
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
        Value::Other(kind) => return Err(format!("{kind} has no place in JSON")),
    }
    written
}
