//! Requests that are invalid outside their parameters: not JSON, not a request, an unknown method, an unsupported
//! version, a wrong media type. Every method gets all of them.

use std::sync::LazyLock;

use super::broken;
use super::case::{Case, ExpectedId};
use super::errors::{Dialect, INVALID_REQUEST, MEDIA_TYPE, METHOD_NOT_FOUND, PARSE, VERSION};
use super::methods::{ID, METHODS, Method, request};
use super::schema::params;
use super::values::{HOSTILE, TYPES};

/// Unsupported versions.
#[rustfmt::skip]
pub(crate) const UNSUPPORTED_VERSIONS: &[&str] = &[
    "9.9", "1.1", "2.0", "0.4", "0.9", "0.30", "00.3", "10", "1.00", "0", "abc", "v1.0", "1,0", "-1.0",
    "1.0-beta", "1.0 0.3", "1.0, 0.3", "1..0", ".1", "1.", "0.", "٣.٠", "latest", "*", "1e0", "0x1", "null",
    "true", "1.0;q=1", "../1.0", "${jndi:ldap://127.0.0.1/a}", "99999999999999999999.0",
];

/// Media types that are refused for a body.
#[rustfmt::skip]
const REFUSED_MEDIA_TYPES: &[&str] = &[
    "application/xml", "text/xml", "text/html", "text/json", "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x", "application/octet-stream", "application/jsonl",
    "application/json-rpc-x", "application/gzip", "application/json, text/plain", "json", "*/*",
    "../../etc/passwd",
];

/// Too long to be repeated in the error.
static LONG_MEDIA_TYPE: LazyLock<String> = LazyLock::new(|| format!("application/{}", "x".repeat(5_000)));

/// The refused media types, including the long one.
pub(crate) fn refused_media_types() -> impl Iterator<Item = &'static str> {
    REFUSED_MEDIA_TYPES.iter().copied().chain([LONG_MEDIA_TYPE.as_str()])
}

pub(crate) fn cases(method: &Method, good: &Case) -> Vec<Case> {
    let params = params(method.fields, None);
    let whole = method.request(&params);
    [
        invalid_json(good, &whole),
        not_a_request(good, &whole),
        wrong_members(method, good, &params),
        repeated_members(method, good, &params),
        unknown_methods(method, good, &params),
        versions(method, good),
        media_types(good),
    ]
    .concat()
}

/// A case whose response has this id.
fn with_id(case: Case, id: ExpectedId) -> Case {
    case.with(|refusal| refusal.id = id)
}

fn invalid_json(good: &Case, whole: &str) -> Vec<Case> {
    let refuse = |(name, body): broken::Broken| good.refused(name, PARSE).with_body(body);
    broken::texts(whole).into_iter().map(|text| with_id(refuse(text), ExpectedId::Null)).collect()
}

fn not_a_request(good: &Case, whole: &str) -> Vec<Case> {
    let twice = format!("[{whole},{whole}]");
    let once = format!("[{whole}]");
    let roots = TYPES.iter().copied().filter(|text| !text.starts_with('{'));
    let roots = roots.chain(["null", "[null,null]", r#"[{"method":1}]"#, &once, &twice]);
    let refuse =
        |body: &str| good.refused(format!("the request is {body:.40}"), INVALID_REQUEST).with_body(body);
    roots.map(|body| with_id(refuse(body), ExpectedId::Null)).collect()
}

fn wrong_members(method: &Method, good: &Case, params: &str) -> Vec<Case> {
    let name = method.name;
    let refuse = |what: String, body: String, field: &str| {
        good.refused(what, INVALID_REQUEST).with_body(body).naming_field(field)
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
    #[rustfmt::skip]
    let ids = [
        "true", "false", "1.5", "-0.5", "1.0", "1e3", "1E400", "[]", "[1]", "{}", r#"{"x":1}"#, r#""\ud800""#,
    ];
    for value in ids {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{value},"method":"{name}","params":{params}}}"#);
        cases.push(with_id(refuse(format!("id = {value}"), body, "id"), ExpectedId::Null));
    }
    for members in [
        String::new(),
        format!(r#","params":{params}"#),
        format!(r#","Method":"{name}","params":{params}"#),
        format!(r#","method ":"{name}","params":{params}"#),
        r#","result":{}"#.to_owned(),
        r#","error":{"code":1,"message":"x"}"#.to_owned(),
    ] {
        let body = format!(r#"{{"jsonrpc":"2.0","id":{ID}{members}}}"#);
        cases.push(refuse(format!("no method: {body:.60}"), body, "method"));
    }
    if !method.is_unversioned() {
        for key in ["", r#""JSONRPC":"2.0","#, r#""jsonRpc":"2.0","#, r#""json_rpc":"2.0","#] {
            let body = format!(r#"{{{key}"id":{ID},"method":"{name}","params":{params}}}"#);
            cases.push(refuse(format!("no jsonrpc but {key}"), body, "jsonrpc"));
        }
    }
    cases.push(with_id(refuse("an empty object".to_owned(), "{}".to_owned(), "jsonrpc"), ExpectedId::Null));
    cases
}

fn repeated_members(method: &Method, good: &Case, params: &str) -> Vec<Case> {
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
                let case = good.refused(format!("{key} {what} {side}"), INVALID_REQUEST).with_body(body);
                cases.push(with_id(case.naming_field(*key), ExpectedId::Either));
            }
        }
    }
    cases
}

fn unknown_methods(method: &Method, good: &Case, params: &str) -> Vec<Case> {
    let name = method.name;
    let half = name.len() / 2;
    #[rustfmt::skip]
    let variants = [
        String::new(), name.to_lowercase(), name.to_uppercase(), format!("{name} "), format!(" {name}"),
        format!("{name}\\u0000"), format!("{name}\\n"), format!("{name}/"), format!("/{name}"),
        format!("{name}{name}"), format!("{name}?x=1"), format!("{name}#"), format!("{name};"),
        format!("{}\\u200b{}", &name[..half], &name[half..]), name[..half].to_owned(), name.replace('/', "."),
        name.replace('/', "//"), name.replace('e', "\\u0435"), format!("rpc.{name}"),
        "rpc.discover".to_owned(), "system.listMethods".to_owned(), "tools/call".to_owned(),
        "__proto__".to_owned(), "tasks/*".to_owned(), "x".repeat(10_000),
    ];
    let hostile = HOSTILE.iter().map(|text| text[1..text.len() - 1].to_owned());
    variants
        .into_iter()
        .chain(hostile)
        .filter(|variant| METHODS.iter().all(|known| known.name != variant))
        .map(|variant| {
            let case = good.refused(format!("the method is {variant:.60}"), METHOD_NOT_FOUND);
            case.with_body(request(&variant, params))
        })
        .collect()
}

/// Unsupported versions, and versions of a generation other than the method's. All are refused in the format of
/// 1.0.
fn versions(method: &Method, good: &Case) -> Vec<Case> {
    let refuse = |name: String, error| good.refused(name, error).in_dialect(Dialect::V1);
    let in_header =
        |version: &str, error| refuse(format!("A2A-Version: {version}"), error).with_version(version);
    let in_query = |version: &str| {
        let query = format!("A2A-Version={version}");
        refuse(format!("?{query}"), VERSION).without_version().with_query(&query)
    };
    let plain = |version: &str| version.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.');
    let (foreign, error): (&[&str], _) = match method.dialect {
        Dialect::V1 => (&["0.3", "0.2", "0.1", "0.0", "0.3.0", "0.2.6", " 0.3 "], VERSION),
        _ => (&["1.0", "1", "1.0.0", "1.0.1", " 1.0 "], METHOD_NOT_FOUND),
    };
    let unsupported = UNSUPPORTED_VERSIONS.iter().copied();
    let mut cases: Vec<Case> = unsupported.clone().map(|version| in_header(version, VERSION)).collect();
    cases.extend(unsupported.filter(|version| plain(version)).map(in_query));
    cases.extend(foreign.iter().map(|version| in_header(version, error)));
    cases
}

fn media_types(good: &Case) -> Vec<Case> {
    let refuse = |media_type| {
        let case = good.refused(format!("Content-Type: {media_type:.60}"), MEDIA_TYPE);
        with_id(case.with_header("content-type", media_type).with_http(MEDIA_TYPE.http), ExpectedId::Null)
    };
    refused_media_types().map(refuse).collect()
}
