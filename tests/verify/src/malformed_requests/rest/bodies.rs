//! Requests with an invalid body: not JSON, not an object, a content encoding, a wrong media type, and a fault in
//! each member in turn.

use super::super::broken;
use super::super::case::Case;
use super::super::envelope::refused_media_types;
use super::super::errors::{INVALID_PARAMS, INVALID_REQUEST, MEDIA_TYPE, PARSE};
use super::super::params::changes;
use super::super::schema::{Field, params};
use super::super::values::TYPES;
use super::operations::{Body, Operation};

/// A body for operations that ignore it.
const IGNORED_BODY: &str = r#"{"metadata":{"k":1},"id":"x"}"#;
/// Field name of the body as a whole.
const WHOLE_BODY: &str = "";
/// Limit of members of an object.
const MAX_MEMBERS: usize = 10_000;
const REFUSED_ENCODINGS: [&str; 7] =
    ["gzip", "br", "deflate", "zstd", "gzip, gzip", "x-unknown", "identity, gzip"];

pub(crate) fn cases(operation: &Operation) -> Vec<Case> {
    let mut cases = Vec::new();
    let whole = match operation.body {
        Body::None => return unread(operation),
        Body::Ignored => IGNORED_BODY.to_owned(),
        Body::Optional(fields) => params(fields, None),
        Body::Needed(forms) => params(forms[0], None),
    };
    let with_body = |name: String, error, body: &[u8]| operation.refused(name, error).with_body(body);
    cases.extend(broken::texts(&whole).into_iter().map(|(name, body)| with_body(name, PARSE, &body)));
    for media_type in refused_media_types() {
        let case = with_body(format!("Content-Type: {media_type:.60}"), MEDIA_TYPE, whole.as_bytes());
        cases.push(case.with_header("content-type", media_type));
    }
    for encoding in REFUSED_ENCODINGS {
        let case = with_body(format!("Content-Encoding: {encoding}"), MEDIA_TYPE, whole.as_bytes());
        cases.push(case.with_header("content-encoding", encoding));
    }
    if let Body::Needed(_) | Body::Optional(_) = operation.body {
        let roots = TYPES.iter().copied().filter(|text| !text.starts_with('{')).map(str::to_owned);
        for root in roots.chain([format!("[{whole}]"), format!("[{whole},{whole}]")]) {
            let case = with_body(format!("the body is {root:.40}"), INVALID_PARAMS, root.as_bytes());
            cases.push(case.naming_field(WHOLE_BODY));
        }
        let members = r#""unknown":1,"#.repeat(MAX_MEMBERS);
        let case = with_body("too many members".to_owned(), INVALID_PARAMS, b"");
        cases.push(case.naming_field(WHOLE_BODY).with_body(format!(r#"{{{members}"last":1}}"#)));
    }
    if let Body::Needed(_) = operation.body {
        cases.push(with_body("no body".to_owned(), INVALID_REQUEST, b"").naming_field(WHOLE_BODY));
    }
    cases.extend(members(operation));
    cases.extend(unusual(operation, &whole));
    cases
}

fn members(operation: &Operation) -> Vec<Case> {
    let forms = match operation.body {
        Body::None | Body::Ignored => &[],
        Body::Optional(ref fields) => std::slice::from_ref(fields),
        Body::Needed(forms) => forms,
    };
    let good = operation.good();
    let body = |params: &str| params.to_owned();
    // Of several forms only the first one is a complete request.
    let of_form = |(at, fields): (usize, &&'static [Field])| {
        let changes = changes(fields, &good, operation.forbidden_members(), &body).into_iter();
        changes.filter(move |case| at == 0 || case.is_refused())
    };
    forms.iter().enumerate().flat_map(of_form).collect()
}

/// Bodies for operations that do not read one.
fn unread(operation: &Operation) -> Vec<Case> {
    let take = |body: &str| {
        let why = "the body is ignored";
        operation.accepted(format!("with the body {body}"), why).with_body(body)
    };
    let named = take("<html>").with_header("content-type", "text/html");
    vec![take("{}"), take("{"), take(r#"{"id":5,"tenant":"acme"}"#), named]
}

/// Unusual bodies that are accepted.
fn unusual(operation: &Operation, whole: &str) -> Vec<Case> {
    let take = |name: &str, why| operation.accepted(name, why).with_body(whole);
    let mut cases = vec![
        take("white space", "JSON allows white space between tokens")
            .with_body(whole.replace(',', " ,\r\n\t")),
        take("no Content-Type", "a valid JSON body needs no media type").without_header("content-type"),
        take("Content-Encoding: identity", "it means no encoding")
            .with_header("content-encoding", "identity"),
    ];
    for media_type in
        ["application/json", "application/json; charset=utf-8", "APPLICATION/JSON", "application/a2a+json"]
    {
        let case = take(&format!("Content-Type: {media_type}"), "a JSON media type");
        cases.push(case.with_header("content-type", media_type));
    }
    for depth in [64, 1_000, 100_000] {
        let deep = format!("\"unknown\":{}{}", "[".repeat(depth), "]".repeat(depth));
        let comma = if whole == "{}" { "" } else { "," };
        let case = take(&format!("{depth} levels"), "unknown members are ignored at every depth");
        cases.push(case.with_body(format!("{{{deep}{comma}{}", &whole[1..])));
    }
    if let Body::Ignored = operation.body {
        let why = "the body is ignored";
        cases.extend(TYPES.iter().map(|text| take(&format!("the body is {text}"), why).with_body(*text)));
    }
    cases
}
