//! Requests with an unsupported version, or with a version of a generation other than their path's. All are refused
//! in the format of 1.0 and in JSON, whatever the client accepts.

use super::super::case::Case;
use super::super::envelope::UNSUPPORTED_VERSIONS;
use super::super::errors::{Dialect, VERSION};
use super::encoded;
use super::operations::Operation;

#[rustfmt::skip]
const NON_JSON_TYPES: [&str; 9] = [
    "text/html", "text/plain", "*/*", "application/xml, text/xml;q=0.9", "image/*", "text/event-stream",
    "application/json;q=0", "application/a2a+json;q=0.1", ";;,,",
];

pub(crate) fn cases(operation: &Operation) -> Vec<Case> {
    let refuse = |name: String| operation.refused(name, VERSION).in_dialect(Dialect::V1);
    let in_query = |version: &str| format!("A2A-Version={version}");
    let mut cases = Vec::new();
    let long = format!("1.{}", "0".repeat(10_000));
    for version in UNSUPPORTED_VERSIONS.iter().copied().chain([long.as_str()]) {
        let name = format!("{version:.40}");
        cases.push(refuse(format!("A2A-Version: {name}")).with_version(version));
        let query = in_query(&encoded(version));
        cases.push(refuse(format!("?A2A-Version={name}")).without_version().with_query(&query));
        cases.push(
            refuse(format!("{name}, and another in the query"))
                .with_version(version)
                .with_query(&in_query(operation.dialect.version())),
        );
    }
    let foreign: &[&str] = if operation.is_v1() {
        &["0.3", "0.2", "0.1", "0.0", "0.3.0", "0.2.6"]
    } else {
        &["1.0", "1", "1.0.0", "1.0.1", " 1.0 "]
    };
    for version in foreign {
        cases.push(refuse(format!("A2A-Version: {version}")).with_version(version));
        let query = in_query(version.trim());
        cases.push(refuse(format!("?{query}")).without_version().with_query(&query));
    }
    for accept in NON_JSON_TYPES {
        let case = refuse(format!("Accept: {accept}")).with_version("9.9");
        cases.push(case.with_header("accept", accept));
    }
    cases
}
