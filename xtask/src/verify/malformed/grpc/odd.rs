//! Fields that are odd and right by a ruling.

use super::any;
use super::schema::{Field, Kind, NEW, Need, message, value};
use super::values::hostile;
use super::wire::{LENGTH, VARINT, bytes, int, key, long_varint};

/// An odd field that is taken, and why.
pub(crate) struct Odd {
    pub(crate) what: String,
    pub(crate) raw: Vec<u8>,
    pub(crate) why: &'static str,
}

/// Everything odd that is taken in place of a field.
pub(crate) fn odd(field: &Field, task: &str) -> Vec<Odd> {
    const FREE: &str = "a text that is no name of ours is any text";
    const UNSET: &str = "what is empty counts as not set";
    const CUT: &str = "a number is cut to the bits of its field (protobuf)";
    const ALL: &str = "every number of the set is one of it";
    let number = field.number;
    let say = |text: &str, why| Odd { what: text.to_owned(), raw: bytes(number, text), why };
    let count = |value: i64, why| Odd { what: value.to_string(), raw: int(number, value), why };
    let mut odd: Vec<Odd> = match field.kind {
        Kind::Content(_)
        | Kind::Text(_)
        | Kind::Filled(_)
        | Kind::Name(_)
        | Kind::Texts(_)
        | Kind::Names(_) => hostile().iter().map(|text| say(&format!("{text}{NEW}"), FREE)).collect(),
        Kind::OwnConfigName => hostile().iter().map(|text| say(text, FREE)).collect(),
        Kind::Tenant => {
            ["default", "default/echo", "/echo"].map(|name| say(name, "both name the agent")).into()
        }
        Kind::Count(_) => [0, 1, 2_147_483_647, 4_294_967_297].map(|value| count(value, CUT)).into(),
        Kind::PageSize => [1, 100, 4_294_967_297].map(|value| count(value, CUT)).into(),
        Kind::Flag => [0, 2, -1].map(|value| count(value, "what is not zero is true (protobuf)")).into(),
        Kind::Word { last, zero: true } => (0..=last).map(|value| count(value, ALL)).collect(),
        Kind::Word { .. } => vec![count(4_294_967_297, CUT)],
        Kind::Parts(forms) => {
            let both: Vec<u8> = forms.iter().take(2).flat_map(|form| message(form, task)).collect();
            vec![Odd {
                what: "two contents".to_owned(),
                raw: bytes(number, both),
                why: "of several contents the last one counts (protobuf)",
            }]
        }
        Kind::Object | Kind::RequestObject => {
            let objects = any::odd_objects().into_iter();
            objects.map(|(what, raw)| Odd { what, raw: bytes(number, raw), why: any::ANY }).collect()
        }
        Kind::Value => {
            let values = any::odd().into_iter();
            values.map(|(what, raw)| Odd { what, raw: bytes(number, raw), why: any::ANY }).collect()
        }
        Kind::Bytes => [&b""[..], b"\xff\0", b"@@"]
            .map(|raw| Odd {
                what: format!("{raw:02x?}"),
                raw: bytes(number, raw),
                why: "bytes are any bytes",
            })
            .into(),
        Kind::Task(_)
        | Kind::TaskName(_)
        | Kind::ConfigName(_)
        | Kind::Token
        | Kind::Url
        | Kind::Number(_)
        | Kind::Message(_)
        | Kind::Time => Vec::new(),
    };
    if field.need != Need::Required && field.is_text() && !matches!(field.kind, Kind::Names(_)) {
        odd.push(say("", UNSET));
    }
    if field.usual {
        odd.extend(written_oddly(field, task));
    }
    odd
}

/// A good field in another writing.
fn written_oddly(field: &Field, task: &str) -> Vec<Odd> {
    let good = value(field, task);
    let twice = Odd {
        what: "twice".to_owned(),
        raw: good.repeat(2),
        why: "of a field that stands twice the last one counts, and messages are put together (protobuf)",
    };
    let why = "numbers may take more bytes than they need (protobuf)";
    let kind = u64::from(if field.is_number() { VARINT } else { LENGTH });
    let behind = &good[key(field.number, 0).len()..];
    let raw = [&long_varint(u64::from(field.number) << 3 | kind)[..], behind].concat();
    let key = Odd { what: "a long key".to_owned(), raw, why };
    vec![twice, key]
}

#[cfg(test)]
mod tests {
    use super::super::schema::may;
    use super::super::values::wrong;
    use super::*;

    #[test]
    fn nothing_wrong_is_also_right() {
        for kind in [Kind::Count(2), Kind::PageSize, Kind::Text("x"), Kind::Object, Kind::Value] {
            let field = may(5, "x", kind);
            let wrong = wrong(&field, "t");
            assert!(odd(&field, "t").iter().all(|odd| wrong.iter().all(|wrong| wrong.raw != odd.raw)));
        }
    }
}
