//! Invalid values for each kind of member.
//!
//! Everything is JSON text, so that values no JSON library could represent, such as an unpaired surrogate or a huge
//! number, can be sent too.

use super::errors::{ErrorRow, INVALID_PARAMS, NO_AGENT};
use super::schema::{Field, Kind, Need};

pub(crate) struct Wrong {
    pub(crate) text: String,
    /// Where inside the value the fault is reported: empty, `[0]` or `.name`.
    pub(crate) inside: &'static str,
    pub(crate) error: &'static ErrorRow,
}

const EMPTY: &str = r#""""#;

/// One value of each JSON type, and edge cases of the types.
#[rustfmt::skip]
pub(crate) const TYPES: &[&str] = &[
    "true", "false", "0", "1", "-1", "1.5", "-0.5", "1e400", "18446744073709551616", r#""""#, r#""x""#,
    r#""true""#, r#""1""#, r#""\ud800""#, "[]", "[[]]", r#"["x"]"#, "[null]", "[0]", "{}", r#"{"x":1}"#,
    r#"{"value":"x"}"#,
];

/// Names that do not exist and would be harmful if not treated as plain text: path traversal, header and response
/// splitting, SQL, shell, templates, markup, control and unusual characters.
#[rustfmt::skip]
pub(crate) const HOSTILE: &[&str] = &[
    r#""../../../../etc/passwd""#, r#""..\\..\\..\\windows\\win.ini""#, r#""%2e%2e%2f%2e%2e%2fetc%2fpasswd""#,
    r#""/etc/passwd""#, r#""file:///etc/passwd""#, r#""task/../task""#, r#""a\r\nSet-Cookie: x=1""#,
    r#""a\r\n\r\nHTTP/1.1 200 OK\r\n\r\n{}""#, r#""a\ndata: {}\n\n""#, r#""' OR '1'='1""#,
    r#""1; DROP TABLE tasks; --""#, r#""\" OR \"\"=\"""#, r#""x' UNION SELECT name FROM sqlite_schema --""#,
    r#""x') ; ATTACH DATABASE 'x' AS y; --""#, r#""%""#, r#""_""#, r#""$(id)""#, r#""`id`""#,
    r#""; rm -rf / #""#, r#""| cat /etc/passwd""#, r#""&& id""#, r#""{{7*7}}""#,
    r#""${jndi:ldap://127.0.0.1/a}""#, r#""%s%s%s%n""#, r#""<script>alert(1)</script>""#, r#""__proto__""#,
    r#""null""#, r#""\u0000""#, r#""a\u0000b""#, r#""\u001b[31m""#, r#""\u007f""#, r#""\u0085""#,
    r#""\u2028""#, r#""\u202etxt""#, r#""\ufeff""#, r#""\ufffd""#, r#""\uffff""#, r#""e\u0301""#,
    r#""\ud83d\udca5""#, r#"" ""#, r#""\t""#, r#""a b""#,
];

#[rustfmt::skip]
const BAD_BASE64: &[&str] = &[
    r#""a b""#, r#""aGk=\n""#, r#""====""#, r#""=aGk""#, r#""@@@@""#, r#""YQ==YQ==""#, r#""+/-_""#,
    r#""AAAAA""#, r#""aGk=aGk""#, r#""data:text/plain;base64,aGk=""#, r#""%61%61""#,
    r#""\u00e9\u00e9\u00e9\u00e9""#, r#""aG\u0000k""#, r#""aGk.""#, r#""<bytes>""#,
];

#[rustfmt::skip]
pub(crate) const BAD_URLS: &[&str] = &[
    r#""hooks.example/a""#, r#""//hooks.example/a""#, r#""/a""#, r#""ftp://hooks.example/a""#,
    r#""file:///etc/passwd""#, r#""javascript:alert(1)""#, r#""data:text/plain,hi""#,
    r#""gopher://hooks.example/""#, r#""unix:///var/run/docker.sock""#, r#""http:hooks.example""#,
    r#""http:/hooks.example""#, r#""http://""#, r#""https://""#, r#""https:///a""#, r#""https://?q""#,
    r#""https://:443/""#, r#""https://user@/""#, r#""https://#x""#, r#""http:""#, r#""https://hooks.example/a b""#,
    r#"" https://hooks.example/""#, r#""https://hooks.example/\r\nX: y""#,
    r#""https://hooks.example/\u0000""#, r#""https\u003a//""#, r#""htt\u0440s://hooks.example/""#,
];

#[rustfmt::skip]
const BAD_TIMES: &[&str] = &[
    r#""now""#, r#""2026-01-02""#, r#""2026-01-02 03:04:05Z""#, r#""2026-1-2T3:4:5Z""#,
    r#""2026-13-01T00:00:00Z""#, r#""2026-00-01T00:00:00Z""#, r#""2026-02-30T00:00:00Z""#,
    r#""2026-01-32T00:00:00Z""#, r#""2026-01-02T25:00:00Z""#, r#""2026-01-02T03:60:00Z""#,
    r#""2026-01-02T03:04:05.Z""#, r#""2026-01-02T03:04:05.0000000000Z""#, r#""2026-01-02T03:04:05+2:00""#,
    r#""2026-01-02T03:04:05+99:99""#, r#""2026-01-02T03:04:05Zjunk""#, r#""2026-01-02T03:04:05[UTC]""#,
    r#""+002026-01-02T03:04:05Z""#, r#""-2026-01-02T03:04:05Z""#, r#""99999-01-02T03:04:05Z""#,
    r#""20260102T030405Z""#, r#""Fri, 02 Jan 2026 03:04:05 GMT""#, r#""1767322800""#, "1767322800",
    "1767322800.5", r#""\u0662\u0660\u0662\u0666-01-02T03:04:05Z""#, r#""2026-01-02T03:04:05Z\u0000""#,
    r#"{"seconds":1}"#,
];

#[rustfmt::skip]
const BAD_COUNTS: &[&str] = &[
    "-2147483648", "2147483648", "4294967296", "9223372036854775808", "-9223372036854775809", "0.1", "1e10",
    r#""-1""#, r#""1.5""#, r#"" 1""#, r#""1 ""#, r#""0x10""#, r#""1_000""#, r#""1,000""#, r#""\u0661""#,
    r#""NaN""#, r#""Infinity""#, r#""2147483648""#,
];

/// All values that are refused for a member.
pub(crate) fn wrong(field: &Field) -> Vec<Wrong> {
    let mut wrong = wrong_for(json_kind(field));
    if field.need == Need::Optional && matches!(field.kind, Kind::Task { .. } | Kind::Tenant) {
        // An empty string counts as absent.
        wrong.retain(|wrong| wrong.text != EMPTY);
    }
    wrong
}

/// Lengths are not tested here, so that some kinds are the same.
fn json_kind(field: &Field) -> Kind {
    match field.kind {
        Kind::Name if field.need == Need::Required => Kind::NonEmpty,
        Kind::Name | Kind::Content => Kind::Text,
        Kind::Struct => Kind::Value,
        kind => kind,
    }
}

fn wrong_for(kind: Kind) -> Vec<Wrong> {
    let texts: Vec<&str> = match kind {
        Kind::Task { absent, digits } => return wrong_task(absent, digits),
        Kind::Tenant => return wrong_task(NO_AGENT, false),
        Kind::OwnTask => types_except(|text| is_name(text) || is_digits(text)),
        Kind::NonEmpty => types_except(is_name),
        Kind::Text => types_except(is_text),
        Kind::Token | Kind::Skill | Kind::FromPath => [&types_except(|text| text == EMPTY), HOSTILE].concat(),
        Kind::Texts => return wrong_list(&[]),
        Kind::Names => return wrong_list(&[r#"[""]"#]),
        Kind::Schemes => return wrong_schemes(),
        Kind::Count => [&types_except(is_count), BAD_COUNTS].concat(),
        Kind::PageSize => {
            let sizes = ["101", "1000", "2147483647", r#""0""#, r#""101""#];
            [&types_except(|text| is_count(text) && text != "0"), BAD_COUNTS, &sizes].concat()
        }
        Kind::Flag => {
            let flags = [r#""false""#, r#""yes""#, "-0", "1e0"];
            [&types_except(|text| matches!(text, "true" | "false")), &flags[..]].concat()
        }
        Kind::Time { zone: true } => [TYPES, BAD_TIMES, &[r#""2026-01-02T03:04:05""#]].concat(),
        Kind::Time { zone: false } => [TYPES, BAD_TIMES].concat(),
        Kind::Enum(enum_values) => {
            [&types_except(|text| enum_values.accepted.contains(&text)), enum_values.wrong].concat()
        }
        Kind::Metadata => return wrong_object(),
        Kind::RequestMetadata => {
            return wrong_object().into_iter().chain([at(".skillId", r#"{"skillId":"nope"}"#)]).collect();
        }
        Kind::Value | Kind::Data => return too_deep_or_wide(),
        // Four letters of the alphabet are valid base64.
        Kind::Base64 => [&types_except(|text| matches!(text, EMPTY | r#""true""#)), BAD_BASE64].concat(),
        Kind::Url => [TYPES, BAD_URLS].concat(),
        Kind::Object(_) => types_except(|text| text.starts_with('{')),
        Kind::Parts(_) => return wrong_parts(),
        // Replaced above, or only in gRPC.
        Kind::Name | Kind::Content | Kind::Struct | Kind::Number => Vec::new(),
        Kind::TaskName(_) | Kind::ConfigName(_) | Kind::OwnConfigName => Vec::new(),
    };
    texts.into_iter().map(whole_value).collect()
}

/// One value of each type, except those that fit.
fn types_except(fits: impl Fn(&str) -> bool) -> Vec<&'static str> {
    TYPES.iter().copied().filter(|text| !fits(text)).collect()
}

fn whole_value(text: impl Into<String>) -> Wrong {
    at("", text)
}

/// A value with a fault inside.
fn at(inside: &'static str, text: impl Into<String>) -> Wrong {
    Wrong { text: text.into(), inside, error: INVALID_PARAMS }
}

fn wrong_task(absent: &'static ErrorRow, digits: bool) -> Vec<Wrong> {
    let names = |text: &str| is_name(text) || digits && is_digits(text);
    let error = |text: &str| if names(text) { absent } else { INVALID_PARAMS };
    let texts = TYPES.iter().chain(HOSTILE);
    texts.map(|text| Wrong { error: error(text), ..whole_value(*text) }).collect()
}

fn wrong_list(further: &[&str]) -> Vec<Wrong> {
    let inside = |text: &str| if text.starts_with('[') { "[0]" } else { "" };
    let first = TYPES.iter().filter(|text| !matches!(**text, "[]" | r#"["x"]"#)).chain(further);
    let second = [r#"["x",5]"#, r#"["x",null]"#, r#"["x",{}]"#, r#"["x","\udc00"]"#];
    first.map(|text| at(inside(text), *text)).chain(second.map(|text| at("[1]", text))).collect()
}

/// Credentials require at least one scheme.
fn wrong_schemes() -> Vec<Wrong> {
    let mut wrong = wrong_list(&[r#"[""]"#]);
    wrong.retain(|wrong| !is_name(&wrong.text));
    wrong.push(whole_value("[]"));
    wrong
}

fn wrong_object() -> Vec<Wrong> {
    let types = TYPES.iter().filter(|text| !text.starts_with('{')).map(|text| whole_value(*text));
    types.chain(too_deep_or_wide()).collect()
}

/// Values that exceed the limits of depth or size.
fn too_deep_or_wide() -> Vec<Wrong> {
    let deep = |open: &str, depth: usize, close: &str| {
        format!(r#"{{"a":{}1{}}}"#, open.repeat(depth), close.repeat(depth))
    };
    let members: Vec<String> = (0..10_001).map(|at| format!(r#""k{at}":0"#)).collect();
    let lists = [30, 64, 127, 128, 2_000].map(|depth| deep("[", depth, "]"));
    let objects = [30, 64, 2_000].map(|depth| deep(r#"{"a":"#, depth, "}"));
    let others = [
        deep(r#"[{"a":"#, 500, "}]"),
        format!(r#"{{"a":[{}0]}}"#, "0,".repeat(10_000)),
        format!(r#"{{"a":[{}[]]}}"#, "[],".repeat(10_000)),
        format!("{{{}}}", members.join(",")),
    ];
    lists.into_iter().chain(objects).chain(others).map(whole_value).collect()
}

fn wrong_parts() -> Vec<Wrong> {
    let inside = |text: &str| if text.starts_with('[') && text != "[]" { "[0]" } else { "" };
    let types = TYPES.iter().map(|text| at(inside(text), *text));
    let parts = |count: usize| whole_value(format!("[{}]", vec![r#"{"text":"x"}"#; count].join(",")));
    let further = [
        ("[{}]", "[0]"),
        (r#"[{"x":1}]"#, "[0]"),
        (r#"[{"text":"a","data":{"k":1}}]"#, "[0]"),
        (r#"[{"text":"a"},{}]"#, "[1]"),
        (r#"[{"text":"a"},null]"#, "[1]"),
        (r#"[{"text":"a"},[{"text":"a"}]]"#, "[1]"),
        (r#"[{"text":"a"},{"text":5}]"#, "[1].text"),
    ];
    let further = further.map(|(text, inside)| at(inside, text));
    types.chain(further).chain([parts(1_001), parts(3_000)]).collect()
}

/// An unpaired surrogate has the form of a string but is invalid.
fn is_text(text: &str) -> bool {
    text.starts_with('"') && text != r#""\ud800""#
}

fn is_name(text: &str) -> bool {
    is_text(text) && text != EMPTY
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_count(text: &str) -> bool {
    matches!(text, "0" | "1" | r#""1""#)
}
