//! Requests that are invalid outside their parameters: not JSON, not a request, an unknown method, an unsupported
//! version, a wrong media type. Every method gets all of them.

use std::sync::LazyLock;

use super::broken;
use super::case::{
    Case, ExpectedId, ID, INVALID_REQUEST, METHOD_NOT_FOUND, PARSE, VERSION_NOT_SUPPORTED, Version, request,
};
use super::methods::{Dialect, METHODS, Method};
use super::schema::params;
use super::values::{HOSTILE, TYPES};

/// Unsupported versions.
pub(crate) const UNSUPPORTED_VERSIONS: &[&str] = &[
    "9.9",
    "1.1",
    "2.0",
    "0.4",
    "0.9",
    "0.30",
    "00.3",
    "10",
    "1.00",
    "0",
    "abc",
    "v1.0",
    "1,0",
    "-1.0",
    "1.0-beta",
    "1.0 0.3",
    "1.0, 0.3",
    "1..0",
    ".1",
    "1.",
    "0.",
    "٣.٠",
    "latest",
    "*",
    "1e0",
    "0x1",
    "null",
    "true",
    "1.0;q=1",
    "../1.0",
    "${jndi:ldap://127.0.0.1/a}",
    "99999999999999999999.0",
];

/// Media types that are refused for a body.
const REFUSED_MEDIA_TYPES: &[&str] = &[
    "application/xml",
    "text/xml",
    "text/html",
    "text/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/octet-stream",
    "application/jsonl",
    "application/json-rpc-x",
    "application/gzip",
    "application/json, text/plain",
    "json",
    "*/*",
    "../../etc/passwd",
];

/// Too long to be repeated in the error.
static LONG_MEDIA_TYPE: LazyLock<String> = LazyLock::new(|| format!("application/{}", "x".repeat(5_000)));

/// The refused media types, including the long one.
pub(crate) fn refused_media_types() -> impl Iterator<Item = &'static str> {
    REFUSED_MEDIA_TYPES.iter().copied().chain([LONG_MEDIA_TYPE.as_str()])
}

pub(crate) fn cases(method: &Method) -> Vec<Case> {
    let params = params(method.fields, None);
    let whole = request(method.name, &params);
    let mut cases = Vec::new();
    cases.extend(invalid_json(method, &whole));
    cases.extend(not_a_request(method, &whole));
    cases.extend(wrong_members(method, &params));
    cases.extend(repeated_members(method, &params));
    cases.extend(unknown_methods(method, &params));
    cases.extend(versions(method, &whole));
    cases.extend(media_types(method, &whole));
    cases.extend(unusual(method, &params));
    cases
}

fn invalid_json(method: &Method, whole: &str) -> Vec<Case> {
    let refuse = |(name, body)| Case::refused(method, name, body, PARSE).with_id(ExpectedId::Null);
    broken::texts(whole).into_iter().map(refuse).collect()
}

fn not_a_request(method: &Method, whole: &str) -> Vec<Case> {
    let twice = format!("[{whole},{whole}]");
    let once = format!("[{whole}]");
    let roots = TYPES.iter().copied().filter(|text| !text.starts_with('{'));
    let roots = roots.chain(["null", "[null,null]", r#"[{"method":1}]"#, &once, &twice]);
    roots
        .map(|body| {
            let name = format!("the request is {body:.40}");
            Case::refused(method, name, body, INVALID_REQUEST).with_id(ExpectedId::Null)
        })
        .collect()
}

fn wrong_members(method: &Method, params: &str) -> Vec<Case> {
    let name = method.name;
    let refuse = |what: String, body: String, field: &str| {
        Case::refused(method, what, body, INVALID_REQUEST).naming_field(field)
    };
    let mut cases = Vec::new();
    let versions =
        [r#""2""#, r#""2.0 ""#, r#""2.00""#, r#""1.0""#, r#""3.0""#, r#""２.0""#, "2", "2.0", "null"];
    for value in TYPES.iter().copied().chain(versions) {
        let body = format!(r#"{{"jsonrpc":{value},"id":{ID},"method":"{name}","params":{params}}}"#);
        cases.push(refuse(format!("jsonrpc = {value}"), body, "jsonrpc"));
    }
    let no_text = |text: &&str| !text.starts_with('"') || *text == r#""\ud800""#;
    for value in TYPES.iter().copied().filter(no_text).chain(["null"]) {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{ID},"method":{value},"params":{params}}}"#);
        cases.push(refuse(format!("method = {value}"), body, "method"));
    }
    let ids = [
        "true",
        "false",
        "1.5",
        "-0.5",
        "1.0",
        "1e3",
        "1E400",
        "[]",
        "[1]",
        "{}",
        r#"{"x":1}"#,
        r#""\ud800""#,
    ];
    for value in ids {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{value},"method":"{name}","params":{params}}}"#);
        cases.push(refuse(format!("id = {value}"), body, "id").with_id(ExpectedId::Null));
    }
    let missing = [
        ("method", format!(r#"{{"jsonrpc":"2.0","id":{ID},"params":{params}}}"#)),
        ("method", format!(r#"{{"jsonrpc":"2.0","id":{ID},"Method":"{name}","params":{params}}}"#)),
        ("method", format!(r#"{{"jsonrpc":"2.0","id":{ID},"method ":"{name}","params":{params}}}"#)),
        ("method", format!(r#"{{"jsonrpc":"2.0","id":{ID},"result":{{}}}}"#)),
        ("method", format!(r#"{{"jsonrpc":"2.0","id":{ID},"error":{{"code":1,"message":"x"}}}}"#)),
        ("method", format!(r#"{{"jsonrpc":"2.0","id":{ID}}}"#)),
    ];
    for (field, body) in missing {
        cases.push(refuse(format!("no {field}: {body:.60}"), body, field));
    }
    if !method.unversioned {
        for key in ["", r#""JSONRPC":"2.0","#, r#""jsonRpc":"2.0","#, r#""json_rpc":"2.0","#] {
            let body = format!(r#"{{{key}"id":{ID},"method":"{name}","params":{params}}}"#);
            cases.push(refuse(format!("no jsonrpc but {key}"), body, "jsonrpc"));
        }
    }
    cases.push(refuse("an empty object".to_owned(), "{}".to_owned(), "jsonrpc").with_id(ExpectedId::Null));
    cases
}

fn repeated_members(method: &Method, params: &str) -> Vec<Case> {
    let name = method.name;
    let members = [
        ("jsonrpc", r#""2.0""#.to_owned()),
        ("id", ID.to_owned()),
        ("method", format!("\"{name}\"")),
        ("params", params.to_owned()),
        ("unknown", "1".to_owned()),
    ];
    let whole: Vec<String> = members.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
    let whole = whole.join(",");
    let mut cases = Vec::new();
    for (key, value) in &members {
        let escaped = format!("\\u{:04x}{}", u32::from(key.as_bytes()[0]), &key[1..]);
        for (what, again) in [
            ("again", format!("\"{key}\":{value}")),
            ("again as null", format!("\"{key}\":null")),
            ("again in escapes", format!("\"{escaped}\":{value}")),
        ] {
            for (side, body) in
                [("after", format!("{{{whole},{again}}}")), ("before", format!("{{{again},{whole}}}"))]
            {
                let case = Case::refused(method, format!("{key} {what} {side}"), body, INVALID_REQUEST);
                cases.push(case.naming_field(*key).with_id(ExpectedId::Either));
            }
        }
    }
    cases
}

fn unknown_methods(method: &Method, params: &str) -> Vec<Case> {
    let name = method.name;
    let half = name.len() / 2;
    let variants = [
        String::new(),
        name.to_lowercase(),
        name.to_uppercase(),
        format!("{name} "),
        format!(" {name}"),
        format!("{name}\\u0000"),
        format!("{name}\\n"),
        format!("{name}/"),
        format!("/{name}"),
        format!("{name}{name}"),
        format!("{name}?x=1"),
        format!("{name}#"),
        format!("{name};"),
        format!("{}\\u200b{}", &name[..half], &name[half..]),
        name[..half].to_owned(),
        name.replace('/', "."),
        name.replace('/', "//"),
        name.replace('e', "\\u0435"),
        format!("rpc.{name}"),
        "rpc.discover".to_owned(),
        "system.listMethods".to_owned(),
        "tools/call".to_owned(),
        "__proto__".to_owned(),
        "tasks/*".to_owned(),
        "x".repeat(10_000),
    ];
    let hostile = HOSTILE.iter().map(|text| text[1..text.len() - 1].to_owned());
    variants
        .into_iter()
        .chain(hostile)
        .filter(|variant| METHODS.iter().all(|known| known.name != variant))
        .map(|variant| {
            let what = format!("the method is {variant:.60}");
            Case::refused(method, what, request(&variant, params), METHOD_NOT_FOUND)
        })
        .collect()
}

/// Unsupported versions, and versions of a generation other than the method's. All are refused in the format of
/// 1.0.
fn versions(method: &Method, whole: &str) -> Vec<Case> {
    let refuse = |version: Version, code: i64| {
        let name = match &version {
            Version::Header(text) => format!("A2A-Version: {text}"),
            Version::Query(text) => format!("?A2A-Version={text}"),
            Version::Absent => "no A2A-Version".to_owned(),
        };
        Case::refused(method, name, whole, code).in_dialect(Dialect::V1).with_version(version)
    };
    let mut cases = Vec::new();
    for version in UNSUPPORTED_VERSIONS {
        cases.push(refuse(Version::Header((*version).to_owned()), VERSION_NOT_SUPPORTED));
        if version.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.') {
            cases.push(refuse(Version::Query((*version).to_owned()), VERSION_NOT_SUPPORTED));
        }
    }
    let (foreign, code): (&[&str], _) = match method.dialect {
        Dialect::V1 => (&["0.3", "0.2", "0.1", "0.0", "0.3.0", "0.2.6", " 0.3 "], VERSION_NOT_SUPPORTED),
        _ => (&["1.0", "1", "1.0.0", "1.0.1", " 1.0 "], METHOD_NOT_FOUND),
    };
    cases.extend(foreign.iter().map(|version| refuse(Version::Header((*version).to_owned()), code)));
    cases
}

fn media_types(method: &Method, whole: &str) -> Vec<Case> {
    const UNSUPPORTED: u16 = 415;
    refused_media_types()
        .map(|media_type| {
            let case =
                Case::refused(method, format!("Content-Type: {media_type:.60}"), whole, INVALID_REQUEST);
            case.with_media_type(media_type).with_status(UNSUPPORTED).with_id(ExpectedId::Null)
        })
        .collect()
}

/// Unusual envelopes that are accepted.
fn unusual(method: &Method, params: &str) -> Vec<Case> {
    let name = method.name;
    let whole = request(name, params);
    let take = |what: &str, body: String, why: &'static str| Case::accepted(method, what, body, why);
    let any_id = "an id is a string, an integer of any size or null, and may be absent";
    let mut cases = vec![
        take("no id", format!(r#"{{"jsonrpc":"2.0","method":"{name}","params":{params}}}"#), any_id),
        take(
            "an unknown member",
            whole.replacen('{', r#"{"unknown":[{}],"#, 1),
            "unknown members are ignored",
        ),
        take("white space", whole.replace(',', " ,\r\n\t"), "JSON allows white space between tokens"),
        take("the method in escapes", whole.replacen(name, &escaped(name), 1), "JSON allows escapes"),
    ];
    for id in ["null", "0", "-7", r#""""#, "123456789012345678901234567890", r#""\u00e9""#] {
        cases.push(take(&format!("id = {id}"), whole.replacen(ID, id, 1), any_id));
    }
    for media_type in ["application/json; charset=utf-8", "APPLICATION/JSON", "application/a2a+json"] {
        let case = take(&format!("Content-Type: {media_type}"), whole.clone(), "a JSON media type");
        cases.push(case.with_media_type(media_type));
    }
    if method.unversioned {
        let body = whole.replacen(r#""jsonrpc":"2.0","#, "", 1);
        cases.push(take("no jsonrpc", body, "the samples of the draft omit it"));
    }
    let absent = take("no A2A-Version", whole, "the method or the task determines the version");
    cases.push(absent.with_version(Version::Absent));
    cases
}

fn escaped(name: &str) -> String {
    name.bytes().map(|byte| format!("\\u{byte:04x}")).collect()
}
