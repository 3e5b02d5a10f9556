//! Values of any form that JSON has, written in the file as TOML.

use protocol::{Json, json::write::Writer};

use super::{
    read::Parsed,
    tree::{Item, Value},
};

/// A table as a JSON object.
pub(super) fn object(item: &Item) -> Parsed<Json> {
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
