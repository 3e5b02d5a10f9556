//! Requests whose query is wrong: each parameter with each wrong value of its kind, in both spellings of its name and
//! beside others that are right, and escapes that are none.

use super::super::case as rpc;
use super::super::schema::{Field, Kind, snake};
use super::super::values;
use super::case::{Case, INVALID_PARAMS, encoded, of_code, spoken};
use super::operations::Operation;

/// Escapes that are none, or stand for what is no UTF-8.
pub(crate) const BROKEN_ESCAPES: &[&str] = &[
    "%",
    "%2",
    "%zz",
    "%f",
    "%ff",
    "%80",
    "%c3",
    "%c3%28",
    "%c0%af",
    "%e2%82",
    "%ed%a0%80",
    "%f0%9f%92",
    "%f4%90%80%80",
    "%0",
    "%%",
    "%u0041",
    "%-1",
    "%2%30",
    "a%b",
    "100%",
];
/// Beyond what names may have.
const LONG: usize = 1_025;
/// As many parameters as there may be.
const MOST: usize = 1_000;

const LAST: &str = "of equal names the last one counts";
const UNKNOWN: &str = "what nobody knows is ignored";
const EMPTY: &str = "what is empty says nothing";

pub(crate) fn cases(operation: &Operation) -> Vec<Case> {
    let mut cases = Vec::new();
    for field in operation.query {
        cases.extend(wrong(operation, field));
        cases.extend(odd(operation, field));
    }
    let names = operation.query.iter().map(|field| field.name).chain(["unknown"]);
    for name in names {
        for broken in BROKEN_ESCAPES {
            let query = format!("{name}={broken}");
            cases.push(Case::refused(operation, &query, &INVALID_PARAMS).naming(name).asking(&query));
        }
    }
    for broken in BROKEN_ESCAPES {
        let query = format!("{broken}=1");
        cases.push(Case::refused(operation, &query, &INVALID_PARAMS).naming(*broken).asking(&query));
    }
    for hostile in values::HOSTILE.iter().filter_map(|text| spoken(text)) {
        let name = encoded(&hostile);
        let wrong = format!("{name}=%");
        let shown: String = name.chars().take(64).collect();
        cases.push(Case::refused(operation, &wrong, &INVALID_PARAMS).naming(shown).asking(&wrong));
        let right = format!("{name}={name}");
        cases.push(Case::taken(operation, &right, UNKNOWN).asking(&right));
    }
    for count in [MOST + 1, 2 * MOST, 10 * MOST] {
        let case = Case::refused(operation, format!("{count} parameters"), &INVALID_PARAMS).naming("");
        cases.push(case.asking(&vec!["a=1"; count].join("&")));
    }
    let most = Case::taken(operation, format!("{MOST} parameters"), UNKNOWN);
    cases.push(most.asking(&vec!["a=1"; MOST].join("&")));
    for query in ["", "&", "&&=&", "unknown", "unknown=1&unknown=2", "=", "=x", "%75nknown=%31", "a=b=c"] {
        cases.push(Case::taken(operation, format!("the query is {query:?}"), UNKNOWN).asking(query));
    }
    cases
}

fn wrong(operation: &Operation, field: &Field) -> Vec<Case> {
    let beside: Vec<String> = operation
        .query
        .iter()
        .filter(|other| other.usual && other.name != field.name)
        .map(|other| said(other.name, other))
        .collect();
    let good = said(field.name, field);
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
            let case = Case::refused(operation, name, of_code(error)).asking(&query);
            cases.push(if error == rpc::INVALID_PARAMS { case.naming(field.name) } else { case });
        }
    }
    cases
}

/// Values that are wrong though everything is text there, escaped, each with the code of its refusal.
fn wrong_texts(field: &Field) -> Vec<(String, i64)> {
    let is_tenant = matches!(field.kind, Kind::Tenant);
    let mut texts: Vec<(String, i64)> = values::wrong(field)
        .into_iter()
        .filter_map(|wrong| spoken(&wrong.text).map(|text| (text, wrong.code)))
        // Whatever its type would be elsewhere, it is a name here.
        .map(|(text, code)| (text, if is_tenant { rpc::AGENT_DISABLED } else { code }))
        .filter(|(text, _)| !fits(field.kind, text))
        .map(|(text, code)| (encoded(&text), code))
        .collect();
    if matches!(field.kind, Kind::Same) || field.name == "contextId" {
        texts.push(("x".repeat(LONG), rpc::INVALID_PARAMS));
    }
    texts
}

/// Whether a text says what it may, or nothing.
fn fits(kind: Kind, text: &str) -> bool {
    match kind {
        Kind::Text => true,
        Kind::Flag => matches!(text, "" | "true" | "false"),
        Kind::Word(words) => text.is_empty() || words.taken.contains(&text),
        _ => text.is_empty(),
    }
}

fn odd(operation: &Operation, field: &Field) -> Vec<Case> {
    let take = |query: String, why| Case::taken(operation, &query, why).asking(&query);
    let name = field.name;
    let mut cases = vec![take(format!("{name}="), EMPTY), take(name.to_owned(), EMPTY)];
    // A place in a list cannot be made up.
    if matches!(field.kind, Kind::Token) {
        return cases;
    }
    let good = said(name, field);
    cases.extend([
        take(good.clone(), "nothing is wrong with it"),
        take(said(&snake(name), field), "names are read in both spellings"),
        take(format!("{name}=%00x&{good}"), LAST),
        take(format!("%{:02x}{}", name.as_bytes()[0], &good[1..]), "an escape stands for its letter"),
    ]);
    for odd in values::odd(field.kind) {
        let text = spoken(&odd.text).unwrap_or_default();
        cases.push(take(format!("{name}={}", encoded(&text)), odd.why));
    }
    if matches!(field.kind, Kind::Time { .. }) {
        let text = "2026-01-02T03:04:05+05:30";
        cases.push(take(format!("{name}={text}"), "the plus of an offset is no space"));
    }
    cases
}

/// A parameter with a good value.
fn said(name: &str, field: &Field) -> String {
    format!("{name}={}", encoded(&spoken(&field.good()).unwrap_or_default()))
}
