//! Requests of a version nobody speaks, or of another generation than their path. All of it is told as 1.0 does,
//! and in JSON, whatever the client would rather have.

use super::super::envelope::UNKNOWN_VERSIONS;
use super::case::{Case, VERSION, encoded};
use super::operations::{Generation, Operation};

const NO_JSON: [&str; 9] = [
    "text/html",
    "text/plain",
    "*/*",
    "application/xml, text/xml;q=0.9",
    "image/*",
    "text/event-stream",
    "application/json;q=0",
    "application/a2a+json;q=0.1",
    ";;,,",
];

pub(crate) fn cases(operation: &Operation) -> Vec<Case> {
    let refuse = |name: String| Case::refused(operation, name, &VERSION).told_in(Generation::V1);
    let in_query = |version: &str| format!("A2A-Version={version}");
    let mut cases = Vec::new();
    let long = format!("1.{}", "0".repeat(10_000));
    for version in UNKNOWN_VERSIONS.iter().copied().chain([long.as_str()]) {
        let name = format!("{version:.40}");
        cases.push(refuse(format!("A2A-Version: {name}")).of_version(Some(version)));
        let query = in_query(&encoded(version));
        cases.push(refuse(format!("?A2A-Version={name}")).of_version(None).asking(&query));
        cases.push(
            refuse(format!("{name}, and another in the query"))
                .of_version(Some(version))
                .asking(&in_query(operation.generation.version())),
        );
    }
    let (own, foreign): (&[&str], &[&str]) = match operation.generation {
        Generation::V1 => {
            (&["1", "1.0.0", "1.0.1", " 1.0 "], &["0.3", "0.2", "0.1", "0.0", "0.3.0", "0.2.6"])
        }
        Generation::V03 => (&["0.2", "0.3.0", "0.2.6", " 0.3 "], &["1.0", "1", "1.0.0", "1.0.1", " 1.0 "]),
    };
    for version in foreign {
        cases.push(refuse(format!("A2A-Version: {version}")).of_version(Some(version)));
        let query = in_query(version.trim());
        cases.push(refuse(format!("?{query}")).of_version(None).asking(&query));
    }
    for accept in NO_JSON {
        let case = refuse(format!("Accept: {accept}")).of_version(Some("9.9"));
        cases.push(Case { accept: Some(accept), ..case });
    }
    cases.extend(odd(operation, own));
    cases
}

fn odd(operation: &Operation, own: &[&str]) -> Vec<Case> {
    let why = "patch numbers take no part";
    let mut cases = Vec::new();
    for version in own {
        let case = Case::taken(operation, format!("A2A-Version: {version}"), why);
        cases.push(case.of_version(Some(version)));
    }
    let version = operation.generation.version();
    let take = |name: &str, why| Case::taken(operation, name, why);
    cases.extend([
        take("no A2A-Version", "the path says it").of_version(None),
        take("an empty A2A-Version", "what is empty says nothing").of_version(Some("")),
        take("the version in the query", "it may stand there")
            .of_version(None)
            .asking(&format!("a2a-version={version}")),
        take("the version in escapes", "an escape stands for its letter")
            .of_version(None)
            .asking(&format!("A2A-Version={}", version.replace('.', "%2e"))),
        take("another version in the query", "the header counts").asking("A2A-Version=9.9"),
    ]);
    cases
}
