//! Requests with an invalid message, generated from the method's description: each field in turn missing, of each
//! wrong type and with each invalid value of its kind; each message with bytes that are not a valid field. Also
//! those that are unusual but accepted.

use super::super::case::Case;
use super::super::errors::{ErrorRow, INVALID_PARAMS};
use super::super::methods::Method;
use super::super::schema::{Field, Kind, Need};
use super::schema::{TIME, message, numbered, value};
use super::wire::{
    FIXED32, FIXED64, GROUP, GROUP_END, LENGTH, VARINT, bytes, double, framed, group, int, key, varint,
};
use super::{unusual, values};

const IGNORED: &str = "unknown fields are ignored at every depth";
const UNSET: &str = "the field is optional";
/// Field numbers that no message here uses.
const UNKNOWN: [u32; 8] = [16, 99, 2_047, 2_048, 19_000, 262_143, 262_144, 536_870_911];

/// All cases for the message of a method.
pub(crate) fn cases(method: &Method, good: &Case, task: &str) -> Vec<Case> {
    let mut maker = Maker { good, task, cases: Vec::new() };
    let whole = Nested { fields: method.fields, path: "", always_refused: None, wrap: &|message| message };
    maker.message(&whole);
    maker.cases
}

struct Maker<'a> {
    good: &'a Case,
    task: &'a str,
    cases: Vec<Case>,
}

/// A message inside the request.
struct Nested<'a> {
    fields: &'static [Field],
    path: &'a str,
    /// Why every request with this message is refused.
    always_refused: Option<&'static ErrorRow>,
    /// Puts the message into the enclosing request.
    wrap: &'a dyn Fn(Vec<u8>) -> Vec<u8>,
}

impl Maker<'_> {
    fn message(&mut self, nested: &Nested<'_>) {
        let Nested { fields, path, always_refused, wrap } = *nested;
        let good = message(fields, self.task);
        let numbers = if path.is_empty() { &UNKNOWN[..] } else { &UNKNOWN[1..2] };
        for (what, raw) in numbers.iter().flat_map(|number| broken(*number)).chain(invalid_keys()) {
            let name = format!("{path}: {what}");
            self.refuse(name, &wrap([&good[..], &raw].concat()), INVALID_PARAMS, path);
        }
        if path.is_empty() {
            // Decoders allow a nesting depth of about 100; the error does not name a field.
            let deep = [key(99, GROUP).repeat(200), key(99, GROUP_END).repeat(200), good.clone()].concat();
            self.refuse("200 nested groups".to_owned(), &wrap(deep), INVALID_PARAMS, "");
        }
        for (what, raw) in unknown() {
            let name = format!("{path}: {what}");
            self.accept(name.clone(), &wrap([&good[..], &raw].concat()), IGNORED, always_refused);
            self.accept(format!("{name}, first"), &wrap([&raw[..], &good].concat()), IGNORED, always_refused);
        }
        for field in numbered(fields) {
            self.field(field, nested);
        }
    }

    fn field(&mut self, field: &'static Field, around: &Nested<'_>) {
        let path = join(around.path, field.name);
        let always_refused = around.always_refused.or(field.always_refused);
        let others = numbered(around.fields).into_iter();
        let others = others.filter(|other| other.in_valid_requests && other.number != field.number);
        let (before, after): (Vec<_>, Vec<_>) = others.partition(|other| other.number < field.number);
        let encoded = |fields: Vec<&Field>| -> Vec<u8> {
            fields.into_iter().flat_map(|field| value(field, self.task)).collect()
        };
        let (before, after) = (encoded(before), encoded(after));
        let put = |raw: &[u8]| (around.wrap)([&before[..], raw, &after].concat());
        let put_last = |raw: &[u8]| (around.wrap)([&before[..], &after, raw].concat());

        for wrong in values::wrong(field, self.task) {
            let request = if wrong.last { put_last(&wrong.raw) } else { put(&wrong.raw) };
            let named = format!("{path}{}", wrong.inside);
            let name = format!("{path} = {}", shown(&wrong.what));
            self.refuse(name, &request, wrong.error, &named);
            if matches!(field.kind, Kind::Tenant) && wrong.error != INVALID_PARAMS {
                // Without the header, which names the agent too and would contradict the tenant.
                let case = self.cases.pop().map(|case| case.without_header("a2a-agent"));
                self.cases.extend(case);
            }
        }
        for unusual in unusual::unusual(field, self.task) {
            let name = format!("{path} = {}", shown(&unusual.what));
            self.accept(name, &put(&unusual.raw), unusual.why, always_refused);
        }
        self.absence(field, around, &path, &put(&[]));
        let nested = |fields, path: &str, maker: &mut Self| {
            let wrap = |message: Vec<u8>| put(&bytes(field.number, message));
            maker.message(&Nested { fields, path, always_refused, wrap: &wrap });
        };
        match field.kind {
            Kind::Object(fields) => nested(fields, &path, self),
            Kind::Time { .. } => nested(TIME, &path, self),
            Kind::Parts(forms) => {
                for form in forms {
                    nested(form, &format!("{path}[0]"), self);
                }
            }
            _ => {}
        }
    }

    fn absence(&mut self, field: &Field, around: &Nested<'_>, path: &str, request: &[u8]) {
        let name = format!("no {path}");
        match field.need {
            Need::Required => self.refuse(name, request, INVALID_PARAMS, path),
            Need::Content => self.refuse(name, request, INVALID_PARAMS, around.path),
            Need::Optional => self.accept(name, request, UNSET, around.always_refused),
        }
    }

    fn refuse(&mut self, name: String, message: &[u8], error: &'static ErrorRow, field: &str) {
        let case = self.good.refused(name, error).with_body(framed(message));
        let named = error == INVALID_PARAMS && !field.is_empty();
        self.cases.push(if named { case.naming_field(field) } else { case });
    }

    fn accept(
        &mut self,
        name: String,
        message: &[u8],
        why: &'static str,
        always_refused: Option<&'static ErrorRow>,
    ) {
        match always_refused {
            Some(error) => self.refuse(name, message, error, ""),
            None => self.cases.push(self.good.accepted(name, why).with_body(framed(message))),
        }
    }
}

/// Invalid fields with an unused number.
fn broken(number: u32) -> Vec<(String, Vec<u8>)> {
    let with = |kind, payload: &[u8]| [&key(number, kind)[..], payload].concat();
    let length = |length| with(LENGTH, &[&varint(length)[..], b"abc"].concat());
    let list = [
        ("a varint of no bytes", with(VARINT, &[])),
        ("a truncated varint", with(VARINT, &[0x80])),
        ("nine bytes of a varint", with(VARINT, &[0xff; 9])),
        ("a varint of eleven bytes", with(VARINT, &[&[0x80; 10][..], &[1]].concat())),
        ("no bytes of eight", with(FIXED64, &[])),
        ("seven bytes of eight", with(FIXED64, &[0; 7])),
        ("no bytes of four", with(FIXED32, &[])),
        ("three bytes of four", with(FIXED32, &[0; 3])),
        ("no length", with(LENGTH, &[])),
        ("a truncated length", with(LENGTH, &[0xff])),
        ("a length one beyond the end", length(4)),
        ("a length of two gigabytes", length(1 << 31)),
        ("a length of four gigabytes", length((1 << 32) + 3)),
        ("a length beyond all memory", length(u64::MAX)),
        ("an unterminated group", with(GROUP, &[])),
        (
            "a group whose end is inside another",
            [with(GROUP, &[]), bytes(99, key(number, GROUP_END))].concat(),
        ),
        ("a group that ends as another", [with(GROUP, &[]), key(number - 1, GROUP_END)].concat()),
        ("an end of group without a start", with(GROUP_END, &[])),
        ("the wire type 6", with(6, &[0])),
        ("the wire type 7", with(7, &[0])),
    ];
    list.map(|(what, raw)| (format!("{what} at {number}"), raw)).into()
}

/// Bytes that cannot be the key of a field.
fn invalid_keys() -> Vec<(String, Vec<u8>)> {
    let mut list: Vec<(String, Vec<u8>)> =
        (0..8).map(|kind| (format!("the field 0 of wire type {kind}"), vec![kind, 0])).collect();
    let further = [
        ("half a key", vec![0x80]),
        ("four bytes of a key", vec![0xff; 4]),
        ("a key of eleven bytes", [&[0x80; 10][..], &[1]].concat()),
        ("a key of more than 32 bits", [varint(1 << 35 | 8), vec![0]].concat()),
    ];
    list.extend(further.map(|(what, raw)| (what.to_owned(), raw)));
    list
}

/// Unknown fields.
fn unknown() -> Vec<(String, Vec<u8>)> {
    let list = [
        ("an unknown number", int(99, 1)),
        ("an unknown text", bytes(99, "x")),
        ("an unknown string that is not UTF-8", bytes(99, [0xff])),
        ("unknown bytes, many", bytes(99, vec![0; 20_000])),
        ("an unknown double", double(99, 1.0)),
        ("unknown four bytes", [key(99, FIXED32), vec![0; 4]].concat()),
        ("an unknown group", group(99, &[int(1, 1), group(2, &bytes(3, "x"))].concat())),
        ("unknown groups, 50 deep", [key(99, GROUP).repeat(50), key(99, GROUP_END).repeat(50)].concat()),
        ("the largest number there is", int(536_870_911, -1)),
        ("a number that is reserved", int(19_000, 1)),
    ];
    list.map(|(what, raw)| (what.to_owned(), raw)).into()
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn shown(what: &str) -> String {
    what.chars().take(60).flat_map(char::escape_debug).collect()
}

#[cfg(test)]
mod tests {
    use super::super::methods::{METHODS, good};
    use super::*;

    #[test]
    fn every_method_has_enough_invalid_cases() {
        for method in METHODS {
            let good = good(method, "t-1");
            let cases = cases(method, &good, "t-1");
            let refused = cases.iter().filter(|case| case.is_refused()).count();
            assert!(refused > 150, "{}: {refused}", method.label());
        }
    }
}
