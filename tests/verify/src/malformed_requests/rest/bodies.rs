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
        Body::None => return Vec::new(),
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
    let of_form = |fields: &&'static [Field]| changes(fields, &good, operation.forbidden_members(), &body);
    forms.iter().flat_map(of_form).collect()
}
