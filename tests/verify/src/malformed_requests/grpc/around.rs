//! Requests with a valid message and a fault outside it: in the frame, the path, the HTTP method, the content type.
//! Faults in the metadata are in `metadata.rs`.

use super::super::case::Case;
use super::super::errors::{
    BODY_TOO_LARGE, Dialect, ErrorRow, INVALID_REQUEST, MEDIA_TYPE, METHOD_NOT_FOUND, UNIMPLEMENTED, VERSION,
};
use super::super::methods::Method;
use super::methods::service;

/// The status that gRPC defines for a compressed message without an encoding.
const INTERNAL: u8 = 13;

/// All cases outside the message of a method.
pub(crate) fn cases(method: &Method, good: &Case) -> Vec<Case> {
    let maker = Maker { method, good };
    [maker.frames(), maker.content_types(), maker.paths(), maker.metadata()].concat()
}

/// Makes requests from a valid one.
pub(crate) struct Maker<'a> {
    pub(crate) method: &'a Method,
    pub(crate) good: &'a Case,
}

/// A refusal with a status that gRPC itself defines.
pub(crate) fn with_status(case: Case, status: u8) -> Case {
    case.with(|refusal| refusal.grpc_status = Some(status))
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
            let case = self.refused(format!("{what}: {one}"), INVALID_REQUEST, body);
            cases.push(with_status(case, UNIMPLEMENTED.number));
        }
        if length > 0 {
            for less in [0, length - 1, length / 2] {
                let name = format!("a length of {less} where there are {length} bytes");
                let case = self.refused(name, INVALID_REQUEST, prefixed(0, less));
                cases.push(with_status(case, UNIMPLEMENTED.number));
            }
        }
        let packed = "compressed without a grpc-encoding: gRPC defines this status for it";
        cases.push(with_status(self.refused(packed, INVALID_REQUEST, prefixed(1, length)), INTERNAL));
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
        #[rustfmt::skip]
        let others = [
            "application/grpc-web", "application/grpc-web+proto", "application/grpc-web-text",
            "application/grpc+json", "application/grpc+thrift", "application/grpc+protobuf",
            "application/grpcx", "application/grpc/proto", "application/grpc+", "application/json",
            "application/a2a+json", "application/x-protobuf", "application/octet-stream",
            "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "text/plain", "text/html",
            "grpc", "application/", "*/*", "",
        ];
        let mut cases: Vec<Case> =
            others.map(|kind| self.not_grpc(kind).with_header("content-type", kind)).into();
        cases.push(self.not_grpc("none").without_header("content-type"));
        cases.push(self.not_grpc("no text").with_header("content-type", b"application/\xff\xfe"));
        cases
    }

    /// The refusal of a request that is not gRPC; the HTTP status reports it too.
    fn not_grpc(&self, kind: &str) -> Case {
        let name = format!("content-type {kind:?}: gRPC defines 415 for it");
        let case = self.good.refused(name, MEDIA_TYPE).with_http(415).in_dialect(Dialect::V1);
        with_status(case, UNIMPLEMENTED.number)
    }

    fn paths(&self) -> Vec<Case> {
        let (service, method) = (service(self.method.dialect), self.method.name);
        let unknown = |path: String| self.good.refused(format!("path {path}"), METHOD_NOT_FOUND).to(path);
        let mut cases = Vec::new();
        #[rustfmt::skip]
        let names = [
            method.to_lowercase(), method.to_uppercase(), format!("{method}x"), format!("{method}/"),
            format!("{method}/{method}"), format!("{method}%00"), format!("{method}%20"),
            format!("{method}%0d%0aX:%20y"), format!("%2e%2e/{method}"), format!("/{method}"),
            method[1..].to_owned(), "%ff".to_owned(), "'%20OR%201=1".to_owned(), "__proto__".to_owned(),
            "x".repeat(2_000), String::new(),
        ];
        cases.extend(names.map(|name| unknown(format!("/{service}/{name}"))));
        cases.push(unknown(format!("/{service}")));
        #[rustfmt::skip]
        let services = [
            "a2a.v2.A2AService", "lf.a2a.v2.A2AService", "A2AService", "a2a.v1.a2aservice",
            "LF.A2A.V1.A2ASERVICE", "lf.a2a.v1.A2AServicex", "lf.a2a.v1", "a2a.v1.", "grpc.Nobody", "..",
            "%2e%2e", "%00", "x'%20OR%201=1", "",
        ];
        let services = services.map(str::to_owned).into_iter().chain(["x".repeat(2_000)]);
        cases.extend(services.map(|name| unknown(format!("/{name}/{method}")).in_dialect(Dialect::V1)));
        for verb in ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"] {
            let case = self.good.refused(format!("verb {verb}"), METHOD_NOT_FOUND);
            cases.push(case.with_verb(verb).with_http(405).in_dialect(Dialect::V1));
        }
        let path = &self.good.target;
        let version = self.good.refused("the version in the query", VERSION).without_version();
        cases.push(version.to(format!("{path}?A2A-Version=99.0")).in_dialect(Dialect::V1));
        cases
    }

    fn refused(&self, name: impl Into<String>, error: &'static ErrorRow, body: Vec<u8>) -> Case {
        self.good.refused(name, error).with_body(body)
    }
}
