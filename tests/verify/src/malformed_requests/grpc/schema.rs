//! The protobuf encoding of requests: valid messages made from the descriptions in `../schema.rs`.

use super::super::schema::{Field, Kind, may};
use super::wire::{bytes, double, int};

/// Placeholder for an unused name; replaced when a request is sent, by one of the same length.
pub(crate) const NEW: &str = "new-0000000000";

/// The fields of a timestamp.
pub(crate) const TIME: &[Field] =
    &[may("seconds", Kind::Number, "1767322800").at(1), may("nanos", Kind::Number, "5").at(2)];

impl Field {
    /// Whether it may occur several times.
    pub(crate) fn repeated(&self) -> bool {
        matches!(self.kind, Kind::Parts(_) | Kind::Texts | Kind::Names | Kind::Schemes)
    }

    /// Whether its payload is a number.
    pub(crate) fn is_number(&self) -> bool {
        matches!(self.kind, Kind::Number | Kind::Count | Kind::PageSize | Kind::Flag | Kind::Enum(_))
    }

    /// Whether its payload is an object of any members.
    pub(crate) fn is_struct(&self) -> bool {
        matches!(self.kind, Kind::Metadata | Kind::RequestMetadata | Kind::Struct)
    }

    /// Whether its payload is a string.
    pub(crate) fn is_text(&self) -> bool {
        !self.is_number()
            && !self.is_struct()
            && !matches!(
                self.kind,
                Kind::Object(_) | Kind::Parts(_) | Kind::Value | Kind::Base64 | Kind::Time { .. }
            )
    }
}

/// The fields that a protobuf message has, by number.
pub(crate) fn numbered(fields: &'static [Field]) -> Vec<&'static Field> {
    let mut fields: Vec<&Field> = fields.iter().filter(|field| field.number > 0).collect();
    fields.sort_by_key(|field| field.number);
    fields
}

/// A valid message with all usual fields.
pub(crate) fn message(fields: &'static [Field], task: &str) -> Vec<u8> {
    let usual = numbered(fields).into_iter().filter(|field| field.in_valid_requests);
    usual.flat_map(|field| value(field, task)).collect()
}

/// A field with a valid value.
pub(crate) fn value(field: &Field, task: &str) -> Vec<u8> {
    let number = field.number;
    match field.kind {
        Kind::Flag => int(number, i64::from(field.sample == "true")),
        Kind::Enum(_) => int(number, 1),
        _ if field.is_number() => int(number, field.sample.parse().expect("the sample is a number")),
        Kind::Object(fields) => bytes(number, message(fields, task)),
        Kind::Parts(forms) => bytes(number, message(forms[0], task)),
        Kind::Time { .. } => bytes(number, message(TIME, task)),
        Kind::Value => bytes(number, double(2, 1.0)),
        _ if field.is_struct() => bytes(number, entry("k", double(2, 1.0))),
        _ => bytes(number, filled(field.sample, task)),
    }
}

/// One member of an object.
pub(crate) fn entry(name: impl AsRef<[u8]>, value: Vec<u8>) -> Vec<u8> {
    bytes(1, [bytes(1, name), bytes(2, value)].concat())
}

/// Replaces the placeholders of a string.
pub(crate) fn filled(text: &str, task: &str) -> String {
    text.replace("$TASK", task).replace("$NEW", NEW)
}
