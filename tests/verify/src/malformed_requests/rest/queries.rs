//! Requests with an invalid query: each parameter with each invalid value of its kind, in both spellings of its
//! name and next to valid ones, and invalid percent-encoding.

use super::super::case::Case;
use super::super::errors::{ErrorRow, INVALID_PARAMS, NO_AGENT};
use super::super::schema::{Field, Kind, snake};
use super::super::values;
use super::operations::Operation;
use super::{as_text, encoded};

/// Invalid percent-encoding, and encodings of bytes that are not UTF-8.
#[rustfmt::skip]
pub(crate) const BROKEN_ESCAPES: &[&str] = &[
    "%", "%2", "%zz", "%f", "%ff", "%80", "%c3", "%c3%28", "%c0%af", "%e2%82", "%ed%a0%80", "%f0%9f%92",
    "%f4%90%80%80", "%0", "%%", "%u0041", "%-1", "%2%30", "a%b", "100%",
];
/// A length above the limit of names.
const LONG: usize = 1_025;
/// Limit of query parameters.
const MAX_PARAMETERS: usize = 1_000;

pub(crate) fn cases(operation: &Operation) -> Vec<Case> {
    let mut cases = Vec::new();
    for field in operation.query {
        cases.extend(wrong(operation, field));
    }
    let names = operation.query.iter().map(|field| field.name).chain(["unknown"]);
    for name in names {
        for broken in BROKEN_ESCAPES {
            let query = format!("{name}={broken}");
            cases.push(operation.refused(&query, INVALID_PARAMS).naming_field(name).with_query(&query));
        }
    }
    for broken in BROKEN_ESCAPES {
        let query = format!("{broken}=1");
        cases.push(operation.refused(&query, INVALID_PARAMS).naming_field(*broken).with_query(&query));
    }
    for hostile in values::HOSTILE.iter().filter_map(|text| as_text(text)) {
        let name = encoded(&hostile);
        let wrong = format!("{name}=%");
        let shown: String = name.chars().take(64).collect();
        cases.push(operation.refused(&wrong, INVALID_PARAMS).naming_field(shown).with_query(&wrong));
    }
    for count in [MAX_PARAMETERS + 1, 2 * MAX_PARAMETERS, 10 * MAX_PARAMETERS] {
        let case = operation.refused(format!("{count} parameters"), INVALID_PARAMS).naming_field("");
        cases.push(case.with_query(&vec!["a=1"; count].join("&")));
    }
    cases
}

fn wrong(operation: &Operation, field: &Field) -> Vec<Case> {
    let beside: Vec<String> = operation
        .query
        .iter()
        .filter(|other| other.in_valid_requests && other.name != field.name)
        .map(|other| parameter(other.name, other))
        .collect();
    let good = parameter(field.name, field);
    let mut cases = Vec::new();
    for (text, error) in wrong_texts(field) {
        let mut queries = vec![
            format!("{}={text}", field.name),
            format!("{}={text}", snake(field.name)),
            format!("{good}&{}={text}", field.name),
            format!("unknown=1&{}={text}&another=2", field.name),
        ];
        queries.extend((!beside.is_empty()).then(|| format!("{}&{}={text}", beside.join("&"), field.name)));
        for query in queries {
            let name = format!("{query:.120}");
            let case = operation.refused(name, error).with_query(&query);
            cases.push(if error == INVALID_PARAMS { case.naming_field(field.name) } else { case });
        }
    }
    cases
}

/// Values that are invalid as query text, percent-encoded, each with the code of its refusal.
fn wrong_texts(field: &Field) -> Vec<(String, &'static ErrorRow)> {
    let is_tenant = matches!(field.kind, Kind::Tenant);
    let mut texts: Vec<(String, &'static ErrorRow)> = values::wrong(field)
        .into_iter()
        .filter_map(|wrong| as_text(&wrong.text).map(|text| (text, wrong.error)))
        // Any text is a tenant name here, so the error is that of an unknown tenant.
        .map(|(text, error)| (text, if is_tenant { NO_AGENT } else { error }))
        .filter(|(text, _)| !fits(field.kind, text))
        .map(|(text, error)| (encoded(&text), error))
        .collect();
    if matches!(field.kind, Kind::FromPath | Kind::Name) {
        texts.push(("x".repeat(LONG), INVALID_PARAMS));
    }
    texts
}

/// Whether a text is a valid value, or empty.
fn fits(kind: Kind, text: &str) -> bool {
    match kind {
        Kind::Text | Kind::Name => true,
        Kind::Flag => matches!(text, "" | "true" | "false"),
        Kind::Enum(enum_values) => text.is_empty() || enum_values.accepted.contains(&text),
        _ => text.is_empty(),
    }
}

/// A parameter with a valid value.
fn parameter(name: &str, field: &Field) -> String {
    format!("{name}={}", encoded(&as_text(&field.good()).unwrap_or_default()))
}
