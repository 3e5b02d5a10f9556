//! Where bytes stop being the message they should be.
//!
//! Decoding says that they are none; a caller needs to know which field to look at, by the name it has in JSON. Both are
//! known from the descriptors, so the bytes are gone through once more, only when they have been refused.

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

/// The fields of every message, by its full name.
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

/// What the payload of a field is.
enum Kind {
    Integer,
    Flag,
    Double,
    Text,
    Bytes,
    Message(String),
    /// A value of any shape, whose reader names the field by itself.
    Any(String),
}

/// What is wrong with bytes that are no message of this name.
pub(super) fn of(message: &str, bytes: &[u8]) -> Violation {
    walk(message, bytes, &Path::Root).unwrap_or_else(|| no_message(message, &Path::Root))
}

fn walk(message: &str, bytes: &[u8], path: &Path<'_>) -> Option<Violation> {
    let known = MESSAGES.get(message)?;
    let mut seen = Vec::new();
    let mut rest = Fields::new(bytes);
    while !rest.is_empty() {
        let Ok((number, wire)) = rest.key() else { return Some(no_message(message, path)) };
        let payload = rest.payload(wire, number);
        let Some(field) = known.iter().find(|field| field.number == number) else {
            if payload.is_err() {
                return Some(no_message(message, path));
            }
            continue;
        };
        let named = Path::Field(path, &field.name);
        let place = if field.repeated { Path::Index(&named, index_of(&mut seen, number)) } else { named };
        if wire != field.kind.wire() {
            return Some(expected(&place, &field.kind.words()));
        }
        let Ok(payload) = payload else {
            let words = format!("{}, found its beginning only", field.kind.words());
            return Some(expected(&place, &words));
        };
        let fault = match (&field.kind, payload) {
            (Kind::Text, Payload::Bytes(text)) if std::str::from_utf8(text).is_err() => {
                Some(expected(&place, "UTF-8 text"))
            }
            (Kind::Message(name), Payload::Bytes(inside)) => walk(name, inside, &place),
            (Kind::Any(name), Payload::Bytes(inside)) if Fields::new(inside).any(|field| field.is_err()) => {
                Some(no_message(name, &place))
            }
            _ => None,
        };
        if fault.is_some() {
            return fault;
        }
    }
    None
}

/// How many of the field came before.
fn index_of(seen: &mut Vec<(u32, usize)>, number: u32) -> usize {
    if let Some((_, count)) = seen.iter_mut().find(|(known, _)| *known == number) {
        *count += 1;
        return *count;
    }
    seen.push((number, 0));
    0
}

fn no_message(name: &str, path: &Path<'_>) -> Violation {
    expected(path, &format!("{name} as protobuf writes it"))
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
            // The files have no other numbers than these, which a test looks after: int32, int64 and those of names.
            _ => Self::Integer,
        }
    }

    /// How the wire calls it.
    fn wire(&self) -> u8 {
        match self {
            Self::Integer | Self::Flag => 0,
            Self::Double => 1,
            Self::Text | Self::Bytes | Self::Message(_) | Self::Any(_) => 2,
        }
    }

    fn words(&self) -> String {
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

    /// Every field of every message in these files.
    fn fields(messages: &[DescriptorProto]) -> Vec<&FieldDescriptorProto> {
        let each = |message| {
            let DescriptorProto { field, nested_type, .. }: &DescriptorProto = message;
            field.iter().chain(fields(nested_type))
        };
        messages.iter().flat_map(each).collect()
    }

    #[test]
    fn what_is_taken_for_an_integer_is_one() {
        let files = FileDescriptorSet::decode(DESCRIPTORS).unwrap();
        let fields: Vec<_> = files.file.iter().flat_map(|file| fields(&file.message_type)).collect();
        assert!(fields.len() > 100, "{}", fields.len());
        for field in fields {
            // Of the other numbers some take four bytes or eight, and some are not what their varint says.
            let taken = matches!(Kind::of(field), Kind::Integer);
            let is_one = matches!(field.r#type(), Type::Int32 | Type::Int64 | Type::Enum);
            assert_eq!(taken, is_one, "{field:?}");
        }
    }

    #[test]
    fn every_message_is_known_by_the_names_of_json() {
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
