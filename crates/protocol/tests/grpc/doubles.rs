//! JSON with numbers rounded to doubles and without duplicate names: what a protobuf value can represent.
//!
//! Written with the project's JSON reader, not with the code under test.

use a2ad_protocol::{
    Event, Operation, Reply,
    dialect::v1,
    json::{
        Raw,
        read::{Node, Path},
        write::Writer,
    },
};

/// Rounds every number to the nearest double and keeps everything else.
pub(crate) fn through_doubles(text: &str) -> String {
    let mut writer = Writer::new();
    copy(&mut writer, Node::new(Raw::parse_text(text).unwrap(), &Path::Root));
    String::from_utf8(writer.finish()).unwrap()
}

/// The 1.0 JSON with every number rounded to a double, for comparing two values.
pub(crate) fn operation(operation: &Operation) -> String {
    written(|writer| v1::operation::encode(writer, operation))
}

pub(crate) fn reply(reply: &Reply) -> String {
    written(|writer| v1::reply::encode(writer, reply))
}

pub(crate) fn event(event: &Event) -> String {
    written(|writer| v1::event::encode(writer, event))
}

fn written(write: impl FnOnce(&mut Writer)) -> String {
    let mut writer = Writer::new();
    write(&mut writer);
    through_doubles(&String::from_utf8(writer.finish()).unwrap())
}

fn copy(writer: &mut Writer, node: Node<'_, '_>) {
    match node.text().as_bytes()[0] {
        b'{' => writer.object(|writer| {
            let object = node.object().unwrap();
            let names = object.entries(|name, _| Ok(name.to_owned())).unwrap();
            let mut rest = names.iter().map(String::as_str);
            let copied = object.entries(|name, value| {
                rest.next();
                // The last duplicate name wins.
                if !rest.clone().any(|later| later == name) {
                    copy(writer.key(name), value);
                }
                Ok(())
            });
            copied.unwrap();
        }),
        b'[' => {
            // The writer needs all elements at once, the reader returns them one by one.
            let mut elements = Vec::new();
            node.list(|value| {
                elements.push(through_doubles(value.text()));
                Ok(())
            })
            .unwrap();
            writer.array(elements, |writer, element| writer.raw(&element));
        }
        b'"' => writer.string(&node.string().unwrap()),
        b't' | b'f' | b'n' => writer.raw(node.text()),
        _ => writer.raw(&number(node.text())),
    }
}

fn number(text: &str) -> String {
    let number: f64 = text.parse().unwrap();
    let number = number.clamp(f64::MIN, f64::MAX);
    if number == 0.0 {
        return if number.is_sign_negative() { "-0" } else { "0" }.to_owned();
    }
    let whole = number.fract() == 0.0 && number.abs() < 2f64.powi(63);
    if whole { format!("{number:.0}") } else { serde_json::to_string(&number).unwrap() }
}
