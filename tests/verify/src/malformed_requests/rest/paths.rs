//! Requests with an invalid request line: invalid or unknown ids, unknown agents and tenants, unknown paths, and
//! wrong HTTP methods.

use super::super::case::Case;
use super::super::errors::{ErrorRow, INVALID_PARAMS, METHOD_NOT_FOUND, NO_AGENT, NO_TASK};
use super::super::values::HOSTILE;
use super::operations::{CONFIGS, Operation};
use super::queries::BROKEN_ESCAPES;
use super::{as_text, encoded};

const VERBS: [&str; 18] = [
    "GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW", "get", "Post", "PROPFIND", "LOCK",
    "PURGE", "QUERY", "LINK", "SEARCH", "M-SEARCH", LONG_VERB,
];
const LONG_VERB: &str = "AVERYLONGVERBTHATNOBODYHASEVERHEARDOFBEFORETODAY";
/// Maximum length of a name.
const MAX_NAME_LENGTH: usize = 1_024;

pub(crate) fn cases(operation: &Operation) -> Vec<Case> {
    [
        ids(operation, "$TASK", operation.task_field()),
        ids(operation, "$CONFIG", operation.config_field()),
        pairs(operation),
        agents(operation),
        tenants(operation),
        additional_segments(operation),
        misspelt(operation),
        verbs(operation),
    ]
    .concat()
}

/// Hostile names, encoded for a path.
fn hostile_names() -> impl Iterator<Item = String> {
    HOSTILE.iter().filter_map(|text| as_text(text)).map(|text| encoded(&text))
}

/// All values for an id in the path.
fn ids(operation: &Operation, placeholder: &str, field: &str) -> Vec<Case> {
    if !operation.path.contains(placeholder) {
        return Vec::new();
    }
    let put = |segment: &str, error: &'static ErrorRow| {
        let path = operation.path.replacen(placeholder, segment, 1);
        operation.refused(format!("{placeholder} is {segment:.60}"), error).to(operation.address(&path))
    };
    let mut cases = Vec::new();
    let absent = operation.absent();
    let near =
        ["%00", "%0d%0aX:%20y", "%2f..", "%2f%2e%2e%2fx", ",", ";v=1", "%20", "%3Acancel", "%23", "%3Fx=1"];
    let near = near.into_iter().map(|tail| format!("{placeholder}{tail}"));
    #[rustfmt::skip]
    let raw = [
        ".", "..", "...", "-", "~", "*", "'", "(x)", "a+b", "a=b", "a&b", "@", "!$", "%252e%252e", "x:y:z", "größe",
    ];
    let raw = raw.into_iter().map(str::to_owned);
    let limit = "x".repeat(MAX_NAME_LENGTH);
    cases.extend(hostile_names().chain(near).chain(raw).chain([limit]).map(|segment| put(&segment, absent)));
    let nothing = [
        String::new(),
        "x".repeat(MAX_NAME_LENGTH + 1),
        "x".repeat(5_000),
        "%41".repeat(MAX_NAME_LENGTH + 1),
    ];
    let broken = BROKEN_ESCAPES.iter().map(|broken| (*broken).to_owned());
    let after = BROKEN_ESCAPES.iter().map(|broken| format!("{placeholder}{broken}"));
    let invalid =
        nothing.into_iter().chain(["%C3%A9".repeat(MAX_NAME_LENGTH / 2 + 1)]).chain(broken).chain(after);
    cases.extend(invalid.map(|segment| put(&segment, INVALID_PARAMS).naming_field(field)));
    cases
}

/// Two invalid ids at once.
fn pairs(operation: &Operation) -> Vec<Case> {
    if !operation.path.contains("$CONFIG") {
        return Vec::new();
    }
    let names: Vec<String> = hostile_names().collect();
    let others = names.iter().cycle().skip(names.len() / 2);
    let error = operation.absent();
    let pair = |(task, config): (&String, &String)| {
        let path = operation.path.replacen("$TASK", task, 1).replacen("$CONFIG", config, 1);
        operation.refused(format!("{config} of {task}"), error).to(operation.address(&path))
    };
    names.iter().zip(others).map(pair).collect()
}

/// Unknown agents.
fn agents(operation: &Operation) -> Vec<Case> {
    let to = |agent: &str| {
        let target = operation.address_of(agent, operation.path);
        operation.refused(format!("the agent {agent:.60}"), NO_AGENT).to(target)
    };
    let broken = BROKEN_ESCAPES.iter().map(|broken| (*broken).to_owned());
    let others = ["nobody", "ECHO", "echo%20", "echo%00", "%65cho%2f", ".", "..", "rpc", "x:y"];
    let others = others.into_iter().map(str::to_owned);
    hostile_names().chain(broken).chain(others).chain(["x".repeat(5_000)]).map(|agent| to(&agent)).collect()
}

/// A segment before the path: in 1.0 a tenant, of which there is one; before 1.0 invalid.
fn tenants(operation: &Operation) -> Vec<Case> {
    let others = [".", "..", "nobody", "DEFAULT", "default%20", "x:y"].into_iter().map(str::to_owned);
    let pieces = hostile_names().chain(others).chain(["x".repeat(5_000)]);
    let at = |segment: &str, error| {
        let path = format!("/{segment}{}", operation.path);
        operation.refused(format!("below {segment:.60}"), error).to(operation.address(&path))
    };
    if !operation.is_v1() {
        let more = ["", "default", "v1", "%zz"].map(str::to_owned);
        return pieces.chain(more).map(|segment| at(&segment, METHOD_NOT_FOUND)).collect();
    }
    let mut cases: Vec<Case> = pieces.map(|segment| at(&segment, NO_AGENT)).collect();
    let broken = BROKEN_ESCAPES.iter();
    cases.extend(broken.map(|segment| at(segment, INVALID_PARAMS).naming_field("tenant")));
    if operation.query.iter().any(|field| field.name == "tenant") {
        for other in ["acme", "DEFAULT", "default%20", "%00"] {
            let case =
                at("default", INVALID_PARAMS).naming_field("tenant").with_query(&format!("tenant={other}"));
            cases.push(Case { name: format!("default is not {other}"), ..case });
        }
    }
    cases
}

/// Paths with additional segments.
fn additional_segments(operation: &Operation) -> Vec<Case> {
    let beyond = match operation.path {
        "/tasks" => "/x",
        path if path.ends_with(CONFIGS) => "/c",
        _ => "",
    };
    let tails =
        ["", ".", "..", "x", "x/y/z", "tasks", "message:send", "x?y=1"].into_iter().map(str::to_owned);
    let at = |tail: String| {
        let path = format!("{}{beyond}/{tail}", operation.path);
        operation
            .refused(format!("followed by {beyond}/{tail}"), METHOD_NOT_FOUND)
            .to(operation.address(&path))
    };
    hostile_names().chain(tails).map(at).collect()
}

/// Misspelt path segments.
fn misspelt(operation: &Operation) -> Vec<Case> {
    let pieces: Vec<&str> = operation.path.split('/').skip(1).collect();
    let mut cases = Vec::new();
    for (at, segment) in pieces.iter().enumerate() {
        let (before, segment_name) = segment.split_at(segment.find(':').map_or(0, |colon| colon + 1));
        // A path of 1.0 with an unknown first segment could be any path.
        let is_anything = operation.is_v1() && at == 0 && before.is_empty();
        if segment_name.starts_with('$') || is_anything {
            continue;
        }
        for wrong in other_spellings(segment_name) {
            let mut pieces = pieces.clone();
            let segment = format!("{before}{wrong}");
            pieces[at] = &segment;
            let path = format!("/{}", pieces.join("/"));
            let refuse = |error| operation.refused(format!("at {path}"), error);
            let case = match (before.starts_with('$'), operation.verb) {
                (false, _) => refuse(METHOD_NOT_FOUND),
                // A suffix that is not a custom verb is part of the id.
                (true, "GET") => refuse(NO_TASK),
                (true, _) => not_allowed(refuse(METHOD_NOT_FOUND), "GET, HEAD"),
            };
            cases.push(case.to(operation.address(&path)));
        }
    }
    cases
}

fn other_spellings(segment_name: &str) -> Vec<String> {
    let mut spellings = vec![
        segment_name.to_uppercase(),
        format!("{}{}", segment_name[..1].to_uppercase(), &segment_name[1..]),
        format!("{segment_name}x"),
        segment_name[..segment_name.len() - 1].to_owned(),
        segment_name[1..].to_owned(),
        format!("{segment_name}{segment_name}"),
        format!("%{:02x}{}", segment_name.as_bytes()[0], &segment_name[1..]),
    ];
    let tails = ["%00", "%20", "%0d%0a", "%2f", ".json", ";v=1", ",", "*", "~", "!"];
    spellings.extend(tails.map(|tail| format!("{segment_name}{tail}")));
    // Both spellings are valid in the older protobuf file.
    spellings.retain(|segment_name| segment_name != "task" && segment_name != "tasks");
    spellings
}

fn verbs(operation: &Operation) -> Vec<Case> {
    let does_nothing = |verb: &&&str| !operation.allow.split(", ").any(|allowed| allowed == **verb);
    let refuse = |verb| operation.refused(verb, METHOD_NOT_FOUND).with_verb(verb);
    VERBS.iter().filter(does_nothing).map(|verb| not_allowed(refuse(*verb), operation.allow)).collect()
}

/// The refusal of an HTTP method; the response lists the allowed ones.
fn not_allowed(case: Case, allow: &'static str) -> Case {
    case.with_http(405).with(|refusal| refusal.allow = Some(allow))
}
