//! Requests whose first line is wrong: ids that are none or lead nowhere, agents and tenants that are not here, paths
//! beside those there are, and verbs that do nothing.

use super::super::methods::TASK_NOT_FOUND;
use super::super::values::HOSTILE;
use super::case::{Case, ErrorRow, INVALID_PARAMS, NO_AGENT, NO_PATH, NO_VERB, encoded, of_code, spoken};
use super::operations::{CONFIGS, Generation, Operation};
use super::queries::BROKEN_ESCAPES;

const VERBS: [&str; 18] = [
    "GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "BREW", "get", "Post", "PROPFIND", "LOCK",
    "PURGE", "QUERY", "LINK", "SEARCH", "M-SEARCH", LONG_VERB,
];
const LONG_VERB: &str = "AVERYLONGVERBTHATNOBODYHASEVERHEARDOFBEFORETODAY";
/// As long as a name may be.
const LONGEST: usize = 1_024;

pub(crate) fn cases(operation: &Operation) -> Vec<Case> {
    let mut cases = Vec::new();
    cases.extend(ids(operation, "$TASK", operation.task_field()));
    cases.extend(ids(operation, "$CONFIG", operation.config_field()));
    cases.extend(pairs(operation));
    cases.extend(agents(operation));
    cases.extend(tenants(operation));
    cases.extend(beside(operation));
    cases.extend(misspelt(operation));
    cases.extend(verbs(operation));
    cases
}

/// Names of nothing as they stand in a path.
fn hostile() -> impl Iterator<Item = String> {
    HOSTILE.iter().filter_map(|text| spoken(text)).map(|text| encoded(&text))
}

/// Everything that is put in the place of an id.
fn ids(operation: &Operation, place: &str, field: &str) -> Vec<Case> {
    if !operation.path.contains(place) {
        return Vec::new();
    }
    let put = |piece: &str, error: &'static ErrorRow| {
        let path = operation.path.replacen(place, piece, 1);
        Case::refused(operation, format!("{place} is {piece:.60}"), error).at(operation.generation, &path)
    };
    let mut cases = Vec::new();
    let absent = of_code(operation.absent());
    let near =
        ["%00", "%0d%0aX:%20y", "%2f..", "%2f%2e%2e%2fx", ",", ";v=1", "%20", "%3Acancel", "%23", "%3Fx=1"];
    let near = near.into_iter().map(|tail| format!("{place}{tail}"));
    let raw = [
        ".",
        "..",
        "...",
        "-",
        "~",
        "*",
        "'",
        "(x)",
        "a+b",
        "a=b",
        "a&b",
        "@",
        "!$",
        "%252e%252e",
        "x:y:z",
        "größe",
    ];
    let raw = raw.into_iter().map(str::to_owned);
    let limit = "x".repeat(LONGEST);
    cases.extend(hostile().chain(near).chain(raw).chain([limit]).map(|piece| put(&piece, absent)));
    let nothing = [String::new(), "x".repeat(LONGEST + 1), "x".repeat(5_000), "%41".repeat(LONGEST + 1)];
    let broken = BROKEN_ESCAPES.iter().map(|broken| (*broken).to_owned());
    let behind = BROKEN_ESCAPES.iter().map(|broken| format!("{place}{broken}"));
    let invalid = nothing.into_iter().chain(["%C3%A9".repeat(LONGEST / 2 + 1)]).chain(broken).chain(behind);
    cases.extend(invalid.map(|piece| put(&piece, &INVALID_PARAMS).naming(field)));
    if place == "$TASK" {
        let case = Case::taken(operation, "the id in escapes", "an escape stands for its letter");
        let path = operation.path.replacen(place, "$ESCAPED", 1);
        cases.push(case.at(operation.generation, &path));
    }
    cases
}

/// Two names of nothing at once.
fn pairs(operation: &Operation) -> Vec<Case> {
    if !operation.path.contains("$CONFIG") {
        return Vec::new();
    }
    let names: Vec<String> = hostile().collect();
    let others = names.iter().cycle().skip(names.len() / 2);
    let error = of_code(operation.absent());
    let pair = |(task, config): (&String, &String)| {
        let path = operation.path.replacen("$TASK", task, 1).replacen("$CONFIG", config, 1);
        Case::refused(operation, format!("{config} of {task}"), error).at(operation.generation, &path)
    };
    names.iter().zip(others).map(pair).collect()
}

/// Agents that are not here.
fn agents(operation: &Operation) -> Vec<Case> {
    let to = |agent: &str| {
        let target = format!("/a2a/{agent}{}{}", operation.generation.prefix(), operation.path);
        Case::refused(operation, format!("the agent {agent:.60}"), &NO_AGENT).to(target)
    };
    let broken = BROKEN_ESCAPES.iter().map(|broken| (*broken).to_owned());
    let others = ["nobody", "ECHO", "echo%20", "echo%00", "%65cho%2f", ".", "..", "rpc", "x:y"];
    let others = others.into_iter().map(str::to_owned);
    hostile().chain(broken).chain(others).chain(["x".repeat(5_000)]).map(|agent| to(&agent)).collect()
}

/// A piece before the path: in 1.0 a tenant, of which there is one, before that nothing.
fn tenants(operation: &Operation) -> Vec<Case> {
    let others = [".", "..", "nobody", "DEFAULT", "default%20", "x:y"].into_iter().map(str::to_owned);
    let pieces = hostile().chain(others).chain(["x".repeat(5_000)]);
    let generation = operation.generation;
    let at = |piece: &str, error| {
        let path = format!("/{piece}{}", operation.path);
        Case::refused(operation, format!("below {piece:.60}"), error).at(generation, &path)
    };
    if generation == Generation::V03 {
        let more = ["", "default", "v1", "%zz"].map(str::to_owned);
        return pieces.chain(more).map(|piece| at(&piece, &NO_PATH)).collect();
    }
    let mut cases: Vec<Case> = pieces.map(|piece| at(&piece, &NO_AGENT)).collect();
    let broken = BROKEN_ESCAPES.iter();
    cases.extend(broken.map(|piece| at(piece, &INVALID_PARAMS).naming("tenant")));
    let take = |path: String| {
        let case = Case::taken(operation, format!("at {path}"), "that is the tenant there is");
        case.at(generation, &path)
    };
    cases.push(take(format!("/default{}", operation.path)));
    cases.push(take(format!("/%64efault{}", operation.path)));
    if operation.query.iter().any(|field| field.name == "tenant") {
        cases.push(take(format!("/default{}?tenant=default", operation.path)));
        for other in ["acme", "DEFAULT", "default%20", "%00"] {
            let case = at("default", &INVALID_PARAMS).naming("tenant").asking(&format!("tenant={other}"));
            cases.push(Case { name: format!("default is not {other}"), ..case });
        }
    }
    cases
}

/// Paths that go on where nothing is.
fn beside(operation: &Operation) -> Vec<Case> {
    let beyond = match operation.path {
        "/tasks" => "/x",
        path if path.ends_with(CONFIGS) => "/c",
        _ => "",
    };
    let tails =
        ["", ".", "..", "x", "x/y/z", "tasks", "message:send", "x?y=1"].into_iter().map(str::to_owned);
    let at = |tail: String| {
        let path = format!("{}{beyond}/{tail}", operation.path);
        Case::refused(operation, format!("followed by {beyond}/{tail}"), &NO_PATH)
            .at(operation.generation, &path)
    };
    hostile().chain(tails).map(at).collect()
}

/// The words of a path, spelt otherwise.
fn misspelt(operation: &Operation) -> Vec<Case> {
    let generation = operation.generation;
    let pieces: Vec<&str> = operation.path.split('/').skip(1).collect();
    let mut cases = Vec::new();
    for (at, piece) in pieces.iter().enumerate() {
        let (before, word) = piece.split_at(piece.find(':').map_or(0, |colon| colon + 1));
        // Where a path of 1.0 does not begin as it should, it could be anything.
        let is_anything = generation == Generation::V1 && at == 0 && before.is_empty();
        if word.starts_with('$') || is_anything {
            continue;
        }
        for wrong in other_words(word) {
            let mut pieces = pieces.clone();
            let piece = format!("{before}{wrong}");
            pieces[at] = &piece;
            let path = format!("/{}", pieces.join("/"));
            let refuse = |error| Case::refused(operation, format!("at {path}"), error);
            let case = match (before.starts_with('$'), operation.verb) {
                (false, _) => refuse(&NO_PATH),
                // What is no verb is part of an id.
                (true, "GET") => refuse(of_code(TASK_NOT_FOUND)),
                (true, _) => refuse(&NO_VERB).allowing("GET, HEAD"),
            };
            cases.push(case.at(generation, &path));
        }
    }
    cases
}

fn other_words(word: &str) -> Vec<String> {
    let mut words = vec![
        word.to_uppercase(),
        format!("{}{}", word[..1].to_uppercase(), &word[1..]),
        format!("{word}x"),
        word[..word.len() - 1].to_owned(),
        word[1..].to_owned(),
        format!("{word}{word}"),
        format!("%{:02x}{}", word.as_bytes()[0], &word[1..]),
    ];
    let tails = ["%00", "%20", "%0d%0a", "%2f", ".json", ";v=1", ",", "*", "~", "!"];
    words.extend(tails.map(|tail| format!("{word}{tail}")));
    // The older protobuf file has this word too.
    words.retain(|word| word != "task" && word != "tasks");
    words
}

fn verbs(operation: &Operation) -> Vec<Case> {
    let does_nothing = |verb: &&str| !operation.allow.split(", ").any(|allowed| allowed == *verb);
    let refuse = |verb: &str| Case::refused(operation, verb, &NO_VERB).allowing(operation.allow).by(verb);
    VERBS.iter().filter(|verb| does_nothing(verb)).map(|verb| refuse(verb)).collect()
}
