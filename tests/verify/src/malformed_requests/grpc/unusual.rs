//! Unusual fields that are valid by a rule.

use super::super::schema::{Field, Kind, Need};
use super::any;
use super::schema::{NEW, message, value};
use super::values::hostile_names;
use super::wire::{LENGTH, VARINT, bytes, int, key, long_varint};

/// An unusual field that is accepted, and the rule.
pub(crate) struct Unusual {
    pub(crate) what: String,
    pub(crate) raw: Vec<u8>,
    pub(crate) why: &'static str,
}

/// All unusual fields that are accepted for a field.
pub(crate) fn unusual(field: &Field, task: &str) -> Vec<Unusual> {
    const FREE: &str = "a string that is not a resource name may be any text";
    const UNSET: &str = "an empty value counts as absent";
    const CUT: &str = "a number is truncated to the bits of its field (protobuf)";
    const ALL: &str = "every number of the enum is accepted";
    let number = field.number;
    let text_field = |text: &str, why| Unusual { what: text.to_owned(), raw: bytes(number, text), why };
    let count = |value: i64, why| Unusual { what: value.to_string(), raw: int(number, value), why };
    let named = |list: Vec<any::Named>, why| -> Vec<Unusual> {
        list.into_iter().map(|(what, raw)| Unusual { what, raw: bytes(number, raw), why }).collect()
    };
    let mut unusual: Vec<Unusual> = match field.kind {
        Kind::Content
        | Kind::Text
        | Kind::NonEmpty
        | Kind::Name
        | Kind::Texts
        | Kind::Names
        | Kind::Schemes => {
            hostile_names().iter().map(|text| text_field(&format!("{text}{NEW}"), FREE)).collect()
        }
        Kind::OwnConfigName => hostile_names().iter().map(|text| text_field(text, FREE)).collect(),
        Kind::Tenant => {
            ["default", "default/echo", "/echo"].map(|name| text_field(name, "both name the agent")).into()
        }
        Kind::Count => [0, 1, 2_147_483_647, 4_294_967_297].map(|value| count(value, CUT)).into(),
        Kind::PageSize => [1, 100, 4_294_967_297].map(|value| count(value, CUT)).into(),
        Kind::Flag => [0, 2, -1].map(|value| count(value, "any non-zero value is true (protobuf)")).into(),
        Kind::Enum(values) if values.accepted.contains(&"0") => {
            (0..=values.last).map(|value| count(value, ALL)).collect()
        }
        Kind::Enum(_) => vec![count(4_294_967_297, CUT)],
        Kind::Parts(forms) => {
            let both: Vec<u8> = forms.iter().take(2).flat_map(|form| message(form, task)).collect();
            named(
                vec![("two contents".to_owned(), both)],
                "of several oneof members the last one counts (protobuf)",
            )
        }
        Kind::Metadata | Kind::RequestMetadata | Kind::Struct => named(any::unusual_objects(), any::ANY),
        Kind::Value => named(any::unusual(), any::ANY),
        Kind::Base64 => {
            let raw = [&b""[..], b"\xff\0", b"@@"].map(|raw| (format!("{raw:02x?}"), raw.to_vec()));
            named(raw.into(), "bytes may be any bytes")
        }
        _ => Vec::new(),
    };
    if field.need != Need::Required && field.is_text() && !matches!(field.kind, Kind::Names | Kind::Schemes) {
        unusual.push(text_field("", UNSET));
    }
    if field.in_valid_requests {
        unusual.extend(unusual_encodings(field, task));
    }
    unusual
}

/// Unusual encodings of a valid field.
fn unusual_encodings(field: &Field, task: &str) -> Vec<Unusual> {
    let good = value(field, task);
    let twice = Unusual {
        what: "twice".to_owned(),
        raw: good.repeat(2),
        why: "of a repeated scalar the last one counts, and messages are merged (protobuf)",
    };
    let why = "varints may be longer than needed (protobuf)";
    let kind = u64::from(if field.is_number() { VARINT } else { LENGTH });
    let payload = &good[key(field.number, 0).len()..];
    let raw = [&long_varint(u64::from(field.number) << 3 | kind)[..], payload].concat();
    let key = Unusual { what: "a long key".to_owned(), raw, why };
    vec![twice, key]
}

#[cfg(test)]
mod tests {
    use super::super::super::schema::may;
    use super::super::values::wrong;
    use super::*;

    #[test]
    fn no_value_is_both_invalid_and_valid() {
        for kind in [Kind::Count, Kind::PageSize, Kind::Text, Kind::Metadata, Kind::Value] {
            let field = may("x", kind, "2").at(5);
            let wrong = wrong(&field, "t");
            assert!(
                unusual(&field, "t").iter().all(|unusual| wrong.iter().all(|wrong| wrong.raw != unusual.raw))
            );
        }
    }
}
