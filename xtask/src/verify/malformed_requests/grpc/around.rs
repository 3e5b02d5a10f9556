//! Requests with a valid message and a fault outside it: in the frame, the path, the HTTP method, the content type.
//! Faults in the metadata are in `metadata.rs`.

use super::case::{
    BODY_TOO_LARGE, Case, Expected, INTERNAL, INVALID_REQUEST, METHOD_NOT_FOUND, Reason, Refusal, Service,
    UNIMPLEMENTED, UNSUPPORTED_MEDIA_TYPE, VERSION,
};
use super::methods::Method;

/// All cases outside the message of a method.
pub(crate) fn cases(method: &Method, good: &Case) -> Vec<Case> {
    let maker = Maker { method, good };
    let mut cases = maker.frames();
    cases.extend(maker.content_types());
    cases.extend(maker.paths());
    cases.extend(maker.metadata());
    cases
}

/// Makes requests from a valid one.
pub(crate) struct Maker<'a> {
    pub(crate) method: &'a Method,
    good: &'a Case,
}

impl Maker<'_> {
    fn frames(&self) -> Vec<Case> {
        let frame = &self.good.body;
        let message = frame.get(5..).unwrap_or_default();
        let prefixed = |flag: u8, length: u32| [&[flag], &length.to_be_bytes()[..], message].concat();
        let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
        let mut cases = Vec::new();
        let one = "gRPC defines this status for a wrong number of messages";
        for (what, body) in [
            ("no message", Vec::new()),
            ("two messages", frame.repeat(2)),
            ("seven messages", frame.repeat(7)),
            ("a byte after the message", [&frame[..], &[0]].concat()),
            ("a prefix after the message", [&frame[..], &[0; 5]].concat()),
        ] {
            cases
                .push(self.refused(format!("{what}: {one}"), INVALID_REQUEST, body).with_code(UNIMPLEMENTED));
        }
        if length > 0 {
            for less in [0, length - 1, length / 2] {
                let name = format!("a length of {less} where there are {length} bytes");
                let case = self.refused(name, INVALID_REQUEST, prefixed(0, less));
                cases.push(case.with_code(UNIMPLEMENTED));
            }
        }
        let packed = "compressed without a grpc-encoding: gRPC defines this status for it";
        cases.push(self.refused(packed, INVALID_REQUEST, prefixed(1, length)).with_code(INTERNAL));
        for flag in [2, 3, 7, 16, 127, 128, 255] {
            cases.push(self.refused(format!("the flag {flag}"), INVALID_REQUEST, prefixed(flag, length)));
        }
        for bytes in 1..5 {
            cases.push(self.refused(format!("{bytes} bytes of a prefix"), INVALID_REQUEST, vec![0; bytes]));
        }
        for more in [1, 2, 5, 127, 4_096, 1 << 20] {
            let name = format!("a length {more} beyond the end");
            cases.push(self.refused(name, INVALID_REQUEST, prefixed(0, length + more)));
        }
        for large in [1 << 28, (1 << 31) - 1, 1 << 31, u32::MAX] {
            cases.push(self.refused(format!("a length of {large}"), BODY_TOO_LARGE, prefixed(0, large)));
        }
        cases
    }

    fn content_types(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        for kind in [
            "application/grpc-web",
            "application/grpc-web+proto",
            "application/grpc-web-text",
            "application/grpc+json",
            "application/grpc+thrift",
            "application/grpc+protobuf",
            "application/grpcx",
            "application/grpc/proto",
            "application/grpc+",
            "application/json",
            "application/a2a+json",
            "application/x-protobuf",
            "application/octet-stream",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "text/plain",
            "text/html",
            "grpc",
            "application/",
            "*/*",
            "",
        ] {
            cases.push(self.not_grpc(kind).with_header("content-type", Some(kind.as_bytes())));
        }
        cases.push(self.not_grpc("none").with_header("content-type", None));
        cases.push(self.not_grpc("no text").with_header("content-type", Some(b"application/\xff\xfe")));
        for kind in [
            "application/grpc+proto",
            "Application/gRPC",
            "application/grpc;charset=utf-8",
            "application/grpc ; x=y",
        ] {
            let case =
                self.accepted(format!("content-type {kind:?}"), "it is a content type of gRPC with protobuf");
            cases.push(case.with_header("content-type", Some(kind.as_bytes())));
        }
        cases
    }

    /// The refusal of a request that is not gRPC; the HTTP status reports it too.
    fn not_grpc(&self, kind: &str) -> Case {
        let name = format!("content-type {kind:?}: gRPC defines 415 for it");
        let case = self.refused(name, UNSUPPORTED_MEDIA_TYPE, self.good.body.clone());
        case.with_http(415).in_format(Service::V1)
    }

    fn paths(&self) -> Vec<Case> {
        let (service, method) = (self.method.service.name(), self.method.name);
        let unknown = |path: String| self.unchanged(format!("path {path}"), METHOD_NOT_FOUND).at(path);
        let mut cases = Vec::new();
        for name in [
            method.to_lowercase(),
            method.to_uppercase(),
            format!("{method}x"),
            format!("{method}/"),
            format!("{method}/{method}"),
            format!("{method}%00"),
            format!("{method}%20"),
            format!("{method}%0d%0aX:%20y"),
            format!("%2e%2e/{method}"),
            format!("/{method}"),
            method[1..].to_owned(),
            "%ff".to_owned(),
            "'%20OR%201=1".to_owned(),
            "__proto__".to_owned(),
            "x".repeat(2_000),
            String::new(),
        ] {
            cases.push(unknown(format!("/{service}/{name}")));
        }
        cases.push(unknown(format!("/{service}")));
        for service in [
            "a2a.v2.A2AService",
            "lf.a2a.v2.A2AService",
            "A2AService",
            "a2a.v1.a2aservice",
            "LF.A2A.V1.A2ASERVICE",
            "lf.a2a.v1.A2AServicex",
            "lf.a2a.v1",
            "a2a.v1.",
            "grpc.Nobody",
            "..",
            "%2e%2e",
            "%00",
            "x'%20OR%201=1",
            "",
        ] {
            cases.push(unknown(format!("/{service}/{method}")).in_format(Service::V1));
        }
        let long = format!("/{}/{method}", "x".repeat(2_000));
        cases.push(unknown(long).in_format(Service::V1));
        for verb in ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"] {
            let case = self.unchanged(format!("verb {verb}"), METHOD_NOT_FOUND);
            cases.push(case.with_verb(verb).with_http(405).in_format(Service::V1));
        }
        let path = &self.good.path;
        cases.push(self.accepted("a query", "it is ignored").at(format!("{path}?x=1&%ff")));
        let version = self.unchanged("the version in the query", VERSION).with_header("a2a-version", None);
        cases.push(version.at(format!("{path}?A2A-Version=99.0")).in_format(Service::V1));
        cases
    }

    pub(crate) fn refused(&self, name: impl Into<String>, reason: Reason, body: Vec<u8>) -> Case {
        self.good.of(name, body, Expected::Refused(Refusal::new(reason, self.method.service)))
    }

    /// A refused request with a valid body.
    pub(crate) fn unchanged(&self, name: impl Into<String>, reason: Reason) -> Case {
        self.refused(name, reason, self.good.body.clone())
    }

    pub(crate) fn accepted(&self, name: impl Into<String>, why: &'static str) -> Case {
        self.good.of(name, self.good.body.clone(), Expected::Accepted(why))
    }
}
