//! F-tmpl: requests of HTTP functions and of OpenAPI operations.
//!
//! Whatever the arguments are, a request that is built is one well-formed HTTP request to the configured origin, below
//! the configured path, with the configured credentials. The schemas of the arguments are not checked before: the
//! property does not depend on them.
//!
//! An input is a template in lines (`METHOD URL`, then a query parameter and a header as `name: value`, or `-`), or the
//! name of an operation of a fixed document, and then the arguments, after an empty line.

use std::{collections::BTreeMap, sync::LazyLock};

use bytes::Bytes;
use http::{HeaderName, Request, header};
use outbound::{
    backends::{
        http::{CallFacts, HttpConfig, HttpFunction},
        openapi::{Credential, OpenApiConfig, Operation, parse},
    },
    dial::Dialer,
};
use protocol::{Json, model::Secret};
use url::{Position, Url};

use crate::Target;

pub(crate) const TARGET: Target = Target {
    id: "F-tmpl",
    name: "requests of HTTP functions and OpenAPI operations: always one request to the configured origin",
    run,
    corpus,
    dictionary: DICTIONARY,
    inputs: 200_000,
};

/// Inputs that become a request.
const VALID: &str = include_str!("../../corpus/tmpl/valid.txt");
/// Inputs that are rejected.
const BROKEN: &str = include_str!("../../corpus/tmpl/broken.txt");
const DOCUMENT: &str = include_str!("../../corpus/tmpl/document.yaml");
/// Between two inputs of a corpus file.
const SEPARATOR: &str = "\n----\n";

const BASE_URL: &str = "http://127.0.0.1:9/base/v1";
const SECRET: &str = "s3cret";

#[rustfmt::skip]
const DICTIONARY: &[&str] = &[
    "\n\n", "{", "}", "{id}", "{q}", "\"id\":", "\"q\":", "GET ", "POST ", "http://h:1", "://", "@", ":", "/", "//",
    "\\\\", "..", ".", "%2e", "%2F", "%5c", ";", "..;", "?", "#", "&", "=", "[", "]", "[]", "%", "%25", "%0d%0a",
    "\\r\\n", "\\n", "\\u0000", "\\u0085", "\\ud800", "\\t", " ", "ü", "\u{2028}", "\r\n", "null", "true", "1e400",
    "-0", "[1,\"a\"]", "{\"k\":\"v\"}", "api_key", "API_KEY", "sid", "x-key", "host", "content-length",
    "transfer-encoding", "HTTP/1.1", "simple", "label", "matrix", "form", "body", "deep", "free", "color", "X-Trace",
    "theme",
];

static OPERATIONS: LazyLock<BTreeMap<String, Operation>> = LazyLock::new(|| {
    let token = |name: &str| (name.to_owned(), Credential::Token(Secret::new(SECRET)));
    let config = OpenApiConfig {
        base_url: Some(BASE_URL.into()),
        security: ["query", "head", "cookie"].map(token).into(),
        ..OpenApiConfig::new("fuzz")
    };
    let operations = parse(DOCUMENT).and_then(|document| document.operations(&config));
    let operations = operations.expect("the document is valid");
    assert!(operations.skipped.is_empty(), "{:?}", operations.skipped);
    operations.offered.into_iter().map(|operation| (operation.id.clone(), operation)).collect()
});

static DIALER: LazyLock<Dialer> = LazyLock::new(Dialer::new);

fn run(input: &[u8]) {
    if let Some(built) = build(input) {
        built.check();
    }
}

/// A request, and what it must keep of its configuration.
struct Built {
    request: Request<Bytes>,
    /// Scheme, host and port.
    origin: String,
    /// The beginning of the path.
    base_path: String,
    /// How many segments the path has.
    segments: usize,
    /// A header with a fixed value.
    fixed: Option<(HeaderName, String)>,
    /// Whether [`SECRET`] is in the headers and the query.
    has_secret: bool,
}

fn build(input: &[u8]) -> Option<Built> {
    let input = std::str::from_utf8(input).ok()?;
    let (head, arguments) = input.split_once("\n\n")?;
    let arguments = Json::parse(arguments).ok()?;
    let trace = &protocol::TraceContext::begin(1, 1);
    let facts = CallFacts {
        idempotency_key: "a2ad:1:t:1",
        attempt: 1,
        task: head,
        context: "ü\r\n",
        skill: "s",
        trace,
    };
    match OPERATIONS.get(head) {
        Some(operation) => of_operation(operation, &arguments, &facts),
        None => of_function(head, &arguments, &facts),
    }
}

fn of_operation(operation: &Operation, arguments: &Json, facts: &CallFacts<'_>) -> Option<Built> {
    let request = operation.request(arguments, facts).ok()?;
    let base = Url::parse(BASE_URL).expect("a constant");
    Some(Built {
        request,
        origin: base[..Position::BeforePath].to_owned(),
        base_path: format!("{}/{}/", base.path(), operation.id),
        segments: 4,
        fixed: None,
        has_secret: true,
    })
}

fn of_function(head: &str, arguments: &Json, facts: &CallFacts<'_>) -> Option<Built> {
    let mut lines = head.split('\n');
    let (method, url) = lines.next()?.split_once(' ')?;
    let pair =
        |line: Option<&str>| line.and_then(|line| line.split_once(": ")).map(owned).into_iter().collect();
    let mut config = HttpConfig { method: method.into(), ..HttpConfig::new(url) };
    config.query = pair(lines.next());
    config.headers = pair(lines.next());
    let function = HttpFunction::new(&config, DIALER.clone()).ok()?;
    let request = function.request(arguments, facts).ok()?;
    let (scheme, rest) = url.split_once("://")?;
    let (authority, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let path = target.split('?').next()?;
    let origin = Url::parse(&format!("{scheme}://{authority}/")).ok()?;
    let fixed = config.headers.first().filter(|(_, value)| !value.contains('{'));
    Some(Built {
        request,
        origin: origin[..Position::BeforePath].to_owned(),
        base_path: path.split('{').next()?.to_owned(),
        segments: path.matches('/').count().max(1),
        fixed: fixed.and_then(|(name, value)| Some((name.parse().ok()?, value.clone()))),
        has_secret: false,
    })
}

fn owned((name, value): (&str, &str)) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

impl Built {
    fn check(&self) {
        let uri = self.request.uri();
        let url = Url::parse(&uri.to_string()).expect("the URL is valid for another parser");
        assert_eq!(url[..Position::BeforePath], self.origin, "{uri}");
        assert!(url.fragment().is_none() && url.username().is_empty() && url.password().is_none(), "{uri}");
        // The parser would have removed dot segments.
        assert_eq!(url.path(), uri.path(), "{uri}");
        assert!(uri.path().starts_with(&self.base_path), "{uri} {}", self.base_path);
        assert_eq!(uri.path().matches('/').count(), self.segments, "{uri}");
        self.check_bytes();
        if let Some((name, value)) = &self.fixed {
            assert_eq!(self.request.headers()[name].as_bytes(), value.as_bytes());
        }
        if self.has_secret {
            let query = uri.query().unwrap_or_default();
            let keys = query.split('&').filter(|pair| pair.to_ascii_lowercase().starts_with("api_key="));
            assert_eq!(keys.collect::<Vec<_>>(), ["api_key=s3cret"], "{uri}");
            assert_eq!(self.request.headers()["x-key"], SECRET);
            let cookie = self.request.headers()[header::COOKIE].to_str().expect("cookies are ASCII");
            let sessions = cookie.split("; ").filter(|pair| pair.starts_with("sid="));
            assert_eq!(sessions.collect::<Vec<_>>(), ["sid=s3cret"], "{cookie}");
        }
    }

    /// Another parser reads the bytes as the same request.
    fn check_bytes(&self) {
        let (method, uri, headers) = (self.request.method(), self.request.uri(), self.request.headers());
        let target = uri.path_and_query().expect("there is a path").as_str();
        let mut bytes = format!("{method} {target} HTTP/1.1\r\n").into_bytes();
        for (name, value) in headers {
            bytes.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
        }
        bytes.extend(b"\r\n");
        let mut seen = [httparse::EMPTY_HEADER; 64];
        let mut parsed = httparse::Request::new(&mut seen);
        let status = parsed.parse(&bytes).expect("the request is well-formed");
        assert_eq!(status, httparse::Status::Complete(bytes.len()));
        assert_eq!((parsed.method, parsed.path), (Some(method.as_str()), Some(target)));
        assert_eq!(parsed.headers.len(), headers.len());
        for name in ["content-length", "transfer-encoding", "host", "connection"] {
            assert!(!headers.contains_key(name), "{name} belongs to the connection");
        }
    }
}

fn corpus() -> Vec<Vec<u8>> {
    VALID.split(SEPARATOR).chain(BROKEN.split(SEPARATOR)).map(Vec::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutate::Mutator;

    #[test]
    fn corpus_is_sorted_into_valid_and_broken() {
        for input in VALID.split(SEPARATOR) {
            build(input.as_bytes()).unwrap_or_else(|| panic!("rejected: {input}")).check();
        }
        for input in BROKEN.split(SEPARATOR) {
            assert!(build(input.as_bytes()).is_none(), "accepted: {input}");
        }
    }

    #[test]
    fn some_mutated_inputs_still_become_requests() {
        let mutator = Mutator::new((TARGET.corpus)(), TARGET.dictionary, 7);
        let accepted = (1_000..3_000).filter(|number| build(&mutator.input(*number)).is_some()).count();
        assert!((100..1_800).contains(&accepted), "{accepted} of 2000");
    }
}
