//! Locates the invalid field of a message that failed to decode.
//!
//! The protobuf decoder only reports that decoding failed, but the caller needs the field, by its JSON name.
//! Names and types are known from the descriptors, so the bytes are scanned a second time, only after a
//! failure.

use std::{collections::HashMap, sync::LazyLock};

use prost::Message as _;
use prost_types::{
    DescriptorProto, FieldDescriptorProto, FileDescriptorSet,
    field_descriptor_proto::{Label, Type},
};

use crate::{Violation, json::read::Path};

use super::{
    DESCRIPTORS,
    read::expected,
    wire::{Fields, Payload},
};

/// The fields of every message, by the message's full name.
static MESSAGES: LazyLock<HashMap<String, Vec<Field>>> = LazyLock::new(|| {
    let files = FileDescriptorSet::decode(DESCRIPTORS).unwrap_or_default();
    let mut messages = HashMap::new();
    for file in &files.file {
        for message in &file.message_type {
            add(&mut messages, file.package(), message);
        }
    }
    messages
});

struct Field {
    number: u32,
    name: String,
    repeated: bool,
    kind: Kind,
}

/// The type of a field's payload.
enum Kind {
    Integer,
    Flag,
    Double,
    Text,
    Bytes,
    Message(String),
    /// A `Struct` or `Value`, whose reader reports the field itself.
    Any(String),
}

/// The violation for bytes that are not a valid message of this type.
pub(super) fn of(message: &str, bytes: &[u8]) -> Violation {
    walk(message, bytes, &Path::Root).unwrap_or_else(|| not_a_message(message, &Path::Root))
}

fn walk(message: &str, bytes: &[u8], path: &Path<'_>) -> Option<Violation> {
    let known = MESSAGES.get(message)?;
    let mut seen = Vec::new();
    let mut rest = Fields::new(bytes);
    while !rest.is_empty() {
        let Ok((number, wire)) = rest.key() else { return Some(not_a_message(message, path)) };
        let payload = rest.payload(wire, number);
        let Some(field) = known.iter().find(|field| field.number == number) else {
            if payload.is_err() {
                return Some(not_a_message(message, path));
            }
            continue;
        };
        let named = Path::Field(path, &field.name);
        let place = if field.repeated { Path::Index(&named, index_of(&mut seen, number)) } else { named };
        if wire != field.kind.wire() {
            return Some(expected(&place, &field.kind.description()));
        }
        let Ok(payload) = payload else {
            let what = format!("{}, but the data is truncated", field.kind.description());
            return Some(expected(&place, &what));
        };
        let fault = match (&field.kind, payload) {
            (Kind::Text, Payload::Bytes(text)) if std::str::from_utf8(text).is_err() => {
                Some(expected(&place, "UTF-8 text"))
            }
            (Kind::Message(name), Payload::Bytes(nested)) => walk(name, nested, &place),
            (Kind::Any(name), Payload::Bytes(nested)) if Fields::new(nested).any(|field| field.is_err()) => {
                Some(not_a_message(name, &place))
            }
            _ => None,
        };
        if fault.is_some() {
            return fault;
        }
    }
    None
}

/// The index of this occurrence of a repeated field.
fn index_of(seen: &mut Vec<(u32, usize)>, number: u32) -> usize {
    if let Some((_, count)) = seen.iter_mut().find(|(known, _)| *known == number) {
        *count += 1;
        return *count;
    }
    seen.push((number, 0));
    0
}

fn not_a_message(name: &str, path: &Path<'_>) -> Violation {
    expected(path, &format!("a {name} in protobuf encoding"))
}

impl Kind {
    fn of(field: &FieldDescriptorProto) -> Self {
        let name = || field.type_name().trim_start_matches('.').to_owned();
        match field.r#type() {
            Type::String => Self::Text,
            Type::Bytes => Self::Bytes,
            Type::Bool => Self::Flag,
            Type::Double => Self::Double,
            Type::Message => match field.type_name() {
                ".google.protobuf.Struct" | ".google.protobuf.Value" => Self::Any(name()),
                _ => Self::Message(name()),
            },
            // The files use no other numeric types than int32, int64 and enums; a test checks that.
            _ => Self::Integer,
        }
    }

    /// The wire type number.
    fn wire(&self) -> u8 {
        match self {
            Self::Integer | Self::Flag => 0,
            Self::Double => 1,
            Self::Text | Self::Bytes | Self::Message(_) | Self::Any(_) => 2,
        }
    }

    fn description(&self) -> String {
        match self {
            Self::Integer => "an integer".to_owned(),
            Self::Flag => "true or false".to_owned(),
            Self::Double => "a double".to_owned(),
            Self::Text => "a string".to_owned(),
            Self::Bytes => "bytes".to_owned(),
            Self::Message(name) | Self::Any(name) => name.clone(),
        }
    }
}

fn add(messages: &mut HashMap<String, Vec<Field>>, around: &str, message: &DescriptorProto) {
    let name = format!("{around}.{}", message.name());
    for nested in &message.nested_type {
        add(messages, &name, nested);
    }
    let fields = message.field.iter().map(|field| Field {
        number: u32::try_from(field.number()).unwrap_or_default(),
        name: field.json_name().to_owned(),
        repeated: field.label() == Label::Repeated,
        kind: Kind::of(field),
    });
    messages.insert(name, fields.collect());
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every field of every message, recursively.
    fn fields(messages: &[DescriptorProto]) -> Vec<&FieldDescriptorProto> {
        let each = |message| {
            let DescriptorProto { field, nested_type, .. }: &DescriptorProto = message;
            field.iter().chain(fields(nested_type))
        };
        messages.iter().flat_map(each).collect()
    }

    #[test]
    fn integer_kinds_are_varint_types() {
        let files = FileDescriptorSet::decode(DESCRIPTORS).unwrap();
        let fields: Vec<_> = files.file.iter().flat_map(|file| fields(&file.message_type)).collect();
        assert!(fields.len() > 100, "{}", fields.len());
        for field in fields {
            // Other numeric types have fixed width or use another varint encoding.
            let taken = matches!(Kind::of(field), Kind::Integer);
            let is_one = matches!(field.r#type(), Type::Int32 | Type::Int64 | Type::Enum);
            assert_eq!(taken, is_one, "{field:?}");
        }
    }

    #[test]
    fn every_message_has_json_field_names() {
        for (message, number, name) in [
            ("lf.a2a.v1.SendMessageRequest", 2, "message"),
            ("lf.a2a.v1.Message", 8, "referenceTaskIds"),
            ("a2a.v1.SendMessageRequest", 1, "message"),
            ("google.protobuf.Timestamp", 1, "seconds"),
        ] {
            let found = MESSAGES[message].iter().find(|field| field.number == number);
            assert_eq!(found.map(|field| field.name.as_str()), Some(name), "{message}");
        }
    }
}
