//! What a certificate (RFC 5280) says: from when to when it is valid, and whom it names. Pure.
//!
//! The signatures of client certificates have been verified by rustls before anything is read here.

use std::{fmt::Write as _, sync::Arc};

use protocol::Timestamp;

use super::der::{GENERALIZED_TIME, OBJECT_ID, OCTET_STRING, SEQUENCE, SET, UTC_TIME, Value, Values};

/// What the principals of client certificates begin with.
pub(crate) const PRINCIPAL: &str = "mtls:";
/// The longest name of a holder.
const MAX_NAME: usize = 1 << 10;

/// The extension with alternative names of the holder (2.5.29.17).
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 0x11];
/// The tag of a URI in it.
const URI: u8 = 0x86;
/// The tags of the optional version and of the extensions of a certificate.
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;

/// The attributes of names that have a short name (RFC 4514 3).
const ATTRIBUTES: [(&[u8], &str); 9] = [
    (&[0x55, 0x04, 0x03], "CN"),
    (&[0x55, 0x04, 0x07], "L"),
    (&[0x55, 0x04, 0x08], "ST"),
    (&[0x55, 0x04, 0x0a], "O"),
    (&[0x55, 0x04, 0x0b], "OU"),
    (&[0x55, 0x04, 0x06], "C"),
    (&[0x55, 0x04, 0x09], "STREET"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 0x01, 0x19], "DC"),
    (&[0x09, 0x92, 0x26, 0x89, 0x93, 0xf2, 0x2c, 0x64, 0x01, 0x01], "UID"),
];

/// From when to when a certificate is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Validity {
    pub(super) not_before: Timestamp,
    pub(super) not_after: Timestamp,
}

impl Validity {
    /// Of a certificate in DER.
    pub(super) fn of(certificate: &[u8]) -> Option<Self> {
        let mut times = Fields::of(certificate)?.validity.values();
        Some(Self { not_before: time(times.next()?)?, not_after: time(times.next()?)? })
    }
}

/// The principal of the holder of a verified client certificate: `mtls:uri:` and the first URI among its alternative names,
/// else `mtls:dn:` and its subject as RFC 4514 writes it. The kind is a part of it, because nothing makes an authority write
/// a URI into the place of a URI. `None` if it names nobody, or in a form that cannot be shown.
pub(crate) fn principal(certificate: &[u8]) -> Option<Arc<str>> {
    let fields = Fields::of(certificate)?;
    let (kind, name) = match fields.first_uri() {
        Some(uri) => ("uri", uri.is_ascii().then(|| String::from_utf8_lossy(uri).into_owned())?),
        None => ("dn", distinguished_name(fields.subject)?),
    };
    let is_shown =
        |name: &str| !name.is_empty() && name.len() <= MAX_NAME && !name.contains(char::is_control);
    is_shown(&name).then(|| format!("{PRINCIPAL}{kind}:{name}").into())
}

/// The fields of a certificate that are used here.
struct Fields<'a> {
    validity: Value<'a>,
    subject: Value<'a>,
    extensions: Option<Value<'a>>,
}

impl<'a> Fields<'a> {
    fn of(certificate: &'a [u8]) -> Option<Self> {
        let mut fields = Values::new(certificate).expect(SEQUENCE)?.values().expect(SEQUENCE)?.values();
        // A version comes before the serial number, unless it is the first one.
        if fields.next()?.tag == VERSION {
            fields.next()?;
        }
        let (_algorithm, _issuer) = (fields.expect(SEQUENCE)?, fields.expect(SEQUENCE)?);
        let (validity, subject) = (fields.expect(SEQUENCE)?, fields.expect(SEQUENCE)?);
        Some(Self { validity, subject, extensions: fields.find(|field| field.tag == EXTENSIONS) })
    }

    /// The first URI among the alternative names.
    fn first_uri(&self) -> Option<&'a [u8]> {
        let extensions = self.extensions?.values().expect(SEQUENCE)?;
        let is_alternative_name = |extension: &Value<'a>| {
            extension.values().expect(OBJECT_ID).is_some_and(|id| id.content == SUBJECT_ALT_NAME)
        };
        let found = extensions.values().find(is_alternative_name)?;
        let content = found.values().find(|field| field.tag == OCTET_STRING)?.content;
        let names = Values::new(content).expect(SEQUENCE)?;
        names.values().find(|name| name.tag == URI).map(|name| name.content)
    }
}

/// `YYMMDDHHMMSSZ`, where years from 50 on are those of the last century, or the same with four digits of the year.
fn time(value: Value<'_>) -> Option<Timestamp> {
    let text = std::str::from_utf8(value.content).ok()?;
    let (year, rest) = match value.tag {
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            (format!("{}{year}", if year < "50" { "20" } else { "19" }), rest)
        }
        GENERALIZED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (year.to_owned(), rest)
        }
        _ => return None,
    };
    let digits = rest.strip_suffix('Z').filter(|rest| rest.len() == 10 && rest.is_ascii())?;
    let part = |at: usize| &digits[at..at + 2];
    Timestamp::parse(&format!("{year}-{}-{}T{}:{}:{}Z", part(0), part(2), part(4), part(6), part(8)))
}

/// A name as RFC 4514 writes it, such as `CN=alice,O=Example`: the last part first.
fn distinguished_name(name: Value<'_>) -> Option<String> {
    let mut parts = Vec::new();
    for part in name.values() {
        let attributes: Option<Vec<String>> = part.values().map(attribute).collect();
        parts.push(attributes.filter(|found| part.tag == SET && !found.is_empty())?.join("+"));
    }
    parts.reverse();
    Some(parts.join(","))
}

fn attribute(attribute: Value<'_>) -> Option<String> {
    let mut fields = attribute.values();
    let (kind, value) = (fields.expect(OBJECT_ID)?, fields.next()?);
    let name = ATTRIBUTES.iter().find(|(id, _)| *id == kind.content).map(|(_, name)| *name);
    // UTF8String, PrintableString, IA5String; the others are rare and written in hexadecimal.
    let text = Some(value.content).filter(|_| matches!(value.tag, 0x0c | 0x13 | 0x16));
    let text = text.and_then(|text| std::str::from_utf8(text).ok());
    Some(match (name, text) {
        (Some(name), Some(text)) => format!("{name}={}", escaped(text)),
        (Some(name), None) => format!("{name}=#{}", hexadecimal(value.whole)),
        (None, _) => format!("{}=#{}", dotted(kind.content)?, hexadecimal(value.whole)),
    })
}

/// With a backslash before every character that means something else in a name.
fn escaped(text: &str) -> String {
    let last = text.chars().count().saturating_sub(1);
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.chars().enumerate() {
        let at_edge = c == ' ' && (at == 0 || at == last) || c == '#' && at == 0;
        if c.is_control() {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                let _ = write!(out, "\\{byte:02X}");
            }
            continue;
        }
        if at_edge || "\"+,;<>\\=".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// An object identifier in decimal numbers.
fn dotted(id: &[u8]) -> Option<String> {
    let mut numbers: Vec<u64> = Vec::new();
    let mut number = 0_u64;
    for byte in id {
        number = number.checked_mul(128)? + u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            numbers.push(std::mem::take(&mut number));
        }
    }
    // The first two numbers are one.
    let first = *numbers.first()?;
    let top = (first / 40).min(2);
    let all = [top, first - 40 * top].into_iter().chain(numbers.into_iter().skip(1));
    Some(all.map(|number| number.to_string()).collect::<Vec<_>>().join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(tag: u8, content: &[u8]) -> Vec<u8> {
        let mut out = vec![tag];
        match content.len() {
            length @ 0..=0x7f => out.push(length as u8),
            length => out.extend([0x82, (length >> 8) as u8, length as u8]),
        }
        out.extend(content);
        out
    }

    fn attribute_of(id: &[u8], tag: u8, text: &[u8]) -> Vec<u8> {
        value(SET, &value(SEQUENCE, &[value(OBJECT_ID, id), value(tag, text)].concat()))
    }

    const CN: &[u8] = &[0x55, 0x04, 0x03];
    const O: &[u8] = &[0x55, 0x04, 0x0a];
    const EMAIL: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x09, 0x01];

    fn certificate(subject: &[u8], uris: &[&str]) -> Vec<u8> {
        let times = [value(UTC_TIME, b"500102030405Z"), value(GENERALIZED_TIME, b"20491231235959Z")].concat();
        let names: Vec<u8> = uris
            .iter()
            .flat_map(|uri| [value(0x82, b"a.example"), value(URI, uri.as_bytes())].concat())
            .collect();
        let alternative = value(
            SEQUENCE,
            &[
                value(OBJECT_ID, SUBJECT_ALT_NAME),
                value(0x01, &[0xff]),
                value(OCTET_STRING, &value(SEQUENCE, &names)),
            ]
            .concat(),
        );
        let other =
            value(SEQUENCE, &[value(OBJECT_ID, &[0x55, 0x1d, 0x13]), value(OCTET_STRING, b"x")].concat());
        let fields = [
            value(VERSION, &value(0x02, &[2])),
            value(0x02, &[1]),
            value(SEQUENCE, b""),
            value(SEQUENCE, b""),
            value(SEQUENCE, &times),
            value(SEQUENCE, subject),
            value(SEQUENCE, b"key"),
            value(EXTENSIONS, &value(SEQUENCE, &[other, alternative].concat())),
        ];
        value(SEQUENCE, &value(SEQUENCE, &fields.concat()))
    }

    #[test]
    fn the_first_uri_takes_precedence_over_the_subject() {
        let alice = [attribute_of(O, 0x13, b"Example"), attribute_of(CN, 0x0c, b"alice")].concat();
        let name = |certificate: &[u8]| principal(certificate).map(|name| name.to_string());
        assert_eq!(name(&certificate(&alice, &[])).unwrap(), "mtls:dn:CN=alice,O=Example");
        let uris = ["spiffe://example/alice", "https://other.example"];
        assert_eq!(name(&certificate(&alice, &uris)).unwrap(), "mtls:uri:spiffe://example/alice");
        // The text of another certificate's subject is not its name.
        assert_eq!(
            name(&certificate(&alice, &["CN=alice,O=Example"])).unwrap(),
            "mtls:uri:CN=alice,O=Example"
        );
        assert_eq!(name(&certificate(&alice, &["a\nb"])), None);
        assert_eq!(name(&certificate(&alice, &["ä"])), None);
        assert_eq!(name(&certificate(b"", &[])), None);
        assert_eq!(name(&certificate(&attribute_of(CN, 0x0c, &[b'x'; 2_000]), &[])), None);
        let whole = certificate(&alice, &[]);
        for length in 0..whole.len() {
            assert_eq!(name(&whole[..length]), None, "{length}");
        }
    }

    #[test]
    fn names_are_written_without_ambiguity() {
        let name = |subject: &[u8]| principal(&certificate(subject, &[])).unwrap().to_string();
        assert_eq!(name(&attribute_of(CN, 0x0c, "a,O=b ä".as_bytes())), "mtls:dn:CN=a\\,O\\=b ä");
        assert_eq!(name(&attribute_of(CN, 0x0c, b" #a\n ")), "mtls:dn:CN=\\ #a\\0A\\ ");
        assert_eq!(name(&attribute_of(CN, 0x0c, b"#a")), "mtls:dn:CN=\\#a");
        assert_eq!(name(&attribute_of(CN, 0x1e, &[0, b'a'])), "mtls:dn:CN=#1e020061");
        assert_eq!(name(&attribute_of(EMAIL, 0x16, b"a@b")), "mtls:dn:1.2.840.113549.1.9.1=#1603614062");
    }

    #[test]
    fn validity_has_years_of_two_and_of_four_digits() {
        let validity = Validity::of(&certificate(b"", &[])).unwrap();
        assert_eq!(validity.not_before, Timestamp::parse("1950-01-02T03:04:05Z").unwrap());
        assert_eq!(validity.not_after, Timestamp::parse("2049-12-31T23:59:59Z").unwrap());
    }
}
