//! Requests whose body is wrong: no JSON, no object, packed or called something else, and each member in turn.

use super::super::broken;
use super::super::envelope::no_media_types;
use super::super::params::{Outcome, changes};
use super::super::schema::params;
use super::super::values::TYPES;
use super::case::{Case, INVALID_PARAMS, INVALID_REQUEST, MEDIA_TYPE, PARSE, of_code};
use super::operations::{Body, Operation};

/// What is said where nobody listens.
const SMALL_TALK: &str = r#"{"metadata":{"k":1},"id":"x"}"#;
/// What the body as a whole is called.
const WHOLE: &str = "";
/// As many members as an object may have.
const MOST_MEMBERS: usize = 10_000;
const NO_ENCODINGS: [&str; 7] =
    ["gzip", "br", "deflate", "zstd", "gzip, gzip", "x-unknown", "identity, gzip"];

pub(crate) fn cases(operation: &Operation) -> Vec<Case> {
    let mut cases = Vec::new();
    let whole = match operation.body {
        Body::None => return unread(operation),
        Body::Ignored => SMALL_TALK.to_owned(),
        Body::Optional(fields) => params(fields, None),
        Body::Needed(_) => operation.good_body(),
    };
    let saying =
        |name: String, error, body: &[u8]| Case::refused(operation, name, error).saying(body.to_vec());
    cases.extend(broken::texts(&whole).into_iter().map(|(name, body)| saying(name, &PARSE, &body)));
    for media_type in no_media_types() {
        let case = saying(format!("Content-Type: {media_type:.60}"), &MEDIA_TYPE, whole.as_bytes());
        cases.push(Case { content_type: Some(media_type), ..case });
    }
    for encoding in NO_ENCODINGS {
        let case = saying(format!("Content-Encoding: {encoding}"), &MEDIA_TYPE, whole.as_bytes());
        cases.push(Case { encoding: Some(encoding), ..case });
    }
    if let Body::Needed(_) | Body::Optional(_) = operation.body {
        let roots = TYPES.iter().copied().filter(|text| !text.starts_with('{')).map(str::to_owned);
        for root in roots.chain([format!("[{whole}]"), format!("[{whole},{whole}]")]) {
            let case = saying(format!("the body is {root:.40}"), &INVALID_PARAMS, root.as_bytes());
            cases.push(case.naming(WHOLE));
        }
        let members = r#""unknown":1,"#.repeat(MOST_MEMBERS);
        let case = saying("too many members".to_owned(), &INVALID_PARAMS, b"");
        cases.push(case.naming(WHOLE).saying(format!(r#"{{{members}"last":1}}"#)));
    }
    if let Body::Needed(_) = operation.body {
        cases.push(saying("no body".to_owned(), &INVALID_REQUEST, b"").naming(WHOLE));
    }
    cases.extend(members(operation));
    cases.extend(odd(operation, &whole));
    cases
}

fn members(operation: &Operation) -> Vec<Case> {
    let forms = match operation.body {
        Body::None | Body::Ignored => &[],
        Body::Optional(ref fields) => std::slice::from_ref(fields),
        Body::Needed(forms) => forms,
    };
    // Where there are several forms, a request is complete by itself in the first one only.
    let changes = forms.iter().enumerate().flat_map(|(at, fields)| {
        let changes = changes(fields, operation.generation.seconds()).into_iter();
        changes.filter(move |changed| at == 0 || !matches!(changed.outcome, Outcome::Taken(_)))
    });
    let case = |changed: super::super::params::Changed| {
        let case = match changed.outcome {
            Outcome::Taken(why) => Case::taken(operation, changed.name, why),
            Outcome::Refused { code, field: None } => Case::refused(operation, changed.name, of_code(code)),
            Outcome::Refused { code, field: Some(field) } => {
                Case::refused(operation, changed.name, of_code(code)).naming(field)
            }
        };
        case.saying(changed.text)
    };
    changes.map(case).collect()
}

/// Bodies where nobody looks.
fn unread(operation: &Operation) -> Vec<Case> {
    let take = |body: &str| {
        let why = "nobody asks for a body there";
        Case::taken(operation, format!("with the body {body}"), why).saying(body)
    };
    let named = Case { content_type: Some("text/html"), ..take("<html>") };
    vec![take("{}"), take("{"), take(r#"{"id":5,"tenant":"acme"}"#), named]
}

/// What is odd about a body and taken.
fn odd(operation: &Operation, whole: &str) -> Vec<Case> {
    let take = |name: &str, why| Case::taken(operation, name, why).saying(whole);
    let mut cases = vec![
        take("white space", "JSON allows white space between tokens").saying(whole.replace(',', " ,\r\n\t")),
        Case { content_type: None, ..take("no Content-Type", "what parses needs no name") },
        Case { encoding: Some("identity"), ..take("Content-Encoding: identity", "that is as it is") },
    ];
    for media_type in
        ["application/json", "application/json; charset=utf-8", "APPLICATION/JSON", "application/a2a+json"]
    {
        let case = take(&format!("Content-Type: {media_type}"), "a form of JSON");
        cases.push(Case { content_type: Some(media_type), ..case });
    }
    for depth in [64, 1_000, 100_000] {
        let deep = format!("\"unknown\":{}{}", "[".repeat(depth), "]".repeat(depth));
        let comma = if whole == "{}" { "" } else { "," };
        let case = take(&format!("{depth} levels"), "unknown members are ignored at every depth");
        cases.push(case.saying(format!("{{{deep}{comma}{}", &whole[1..])));
    }
    if let Body::Ignored = operation.body {
        let why = "the path says it all";
        cases.extend(TYPES.iter().map(|text| take(&format!("the body is {text}"), why).saying(*text)));
    }
    cases
}
