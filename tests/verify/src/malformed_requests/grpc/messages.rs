//! Requests with an invalid message, generated from the method's description: each field in turn missing, of each
//! wrong type and with each invalid value of its kind; each message with bytes that are not a valid field.

use super::super::case::Case;
use super::super::errors::{ErrorRow, INVALID_PARAMS};
use super::super::methods::Method;
use super::super::schema::{Field, Kind, Need};
use super::schema::{TIME, message, numbered, value};
use super::values;
use super::wire::{FIXED32, FIXED64, GROUP, GROUP_END, LENGTH, VARINT, bytes, framed, key, varint};

/// Field numbers that no message here uses.
const UNKNOWN: [u32; 4] = [99, 2_047, 19_000, 536_870_911];

/// All cases for the message of a method.
pub(crate) fn cases(method: &Method, good: &Case, task: &str) -> Vec<Case> {
    let mut maker = Maker { good, task, cases: Vec::new() };
    let whole = Nested { fields: method.fields, path: "", wrap: &|message| message };
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
    /// Puts the message into the enclosing request.
    wrap: &'a dyn Fn(Vec<u8>) -> Vec<u8>,
}

impl Maker<'_> {
    fn message(&mut self, nested: &Nested<'_>) {
        let Nested { fields, path, wrap } = *nested;
        let good = message(fields, self.task);
        let numbers = if path.is_empty() { &UNKNOWN[..] } else { &UNKNOWN[..1] };
        for (what, raw) in numbers.iter().flat_map(|number| broken(*number)).chain(invalid_keys()) {
            let name = format!("{path}: {what}");
            self.refuse(name, &wrap([&good[..], &raw].concat()), INVALID_PARAMS, path);
        }
        if path.is_empty() {
            // Decoders allow a nesting depth of about 100; the error does not name a field.
            let deep = [key(99, GROUP).repeat(200), key(99, GROUP_END).repeat(200), good].concat();
            self.refuse("200 nested groups".to_owned(), &wrap(deep), INVALID_PARAMS, "");
        }
        for field in numbered(fields) {
            self.field(field, nested);
        }
    }

    fn field(&mut self, field: &'static Field, around: &Nested<'_>) {
        let path = join(around.path, field.name);
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
        self.absence(field, around, &path, &put(&[]));
        let nested = |fields, path: &str, maker: &mut Self| {
            let wrap = |message: Vec<u8>| put(&bytes(field.number, message));
            maker.message(&Nested { fields, path, wrap: &wrap });
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
            Need::Optional => {}
        }
    }

    fn refuse(&mut self, name: String, message: &[u8], error: &'static ErrorRow, field: &str) {
        let case = self.good.refused(name, error).with_body(framed(message));
        let named = error == INVALID_PARAMS && !field.is_empty();
        self.cases.push(if named { case.naming_field(field) } else { case });
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

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

fn shown(what: &str) -> String {
    what.chars().take(60).flat_map(char::escape_debug).collect()
}
