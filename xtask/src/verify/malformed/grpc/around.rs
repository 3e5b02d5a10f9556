//! Requests whose message is good, and something around it is not: the frame, the path, the verb, the metadata.

use super::case::{
    AGENT_UNKNOWN, BODY_TOO_LARGE, Case, Expected, INTERNAL, INVALID_REQUEST, METHOD_NOT_FOUND, Reason,
    Refusal, Service, UNIMPLEMENTED, UNSUPPORTED_MEDIA_TYPE, VERSION,
};
use super::methods::Method;
use super::values::hostile;

/// Every case about what stands around the message of a method.
pub(crate) fn cases(method: &Method, good: &Case) -> Vec<Case> {
    let maker = Maker { method, good };
    let mut cases = maker.frames();
    cases.extend(maker.content_types());
    cases.extend(maker.paths());
    cases.extend(maker.versions());
    cases.extend(maker.timeouts());
    cases.extend(maker.encodings());
    cases.extend(maker.agents());
    cases.extend(maker.other_metadata());
    cases
}

struct Maker<'a> {
    method: &'a Method,
    good: &'a Case,
}

impl Maker<'_> {
    fn frames(&self) -> Vec<Case> {
        let frame = &self.good.body;
        let message = frame.get(5..).unwrap_or_default();
        let prefixed = |flag: u8, length: u32| [&[flag], &length.to_be_bytes()[..], message].concat();
        let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
        let mut cases = Vec::new();
        let one = "gRPC has this status for another number of messages than the method has";
        for (what, body) in [
            ("no message", Vec::new()),
            ("two messages", frame.repeat(2)),
            ("seven messages", frame.repeat(7)),
            ("a byte behind the message", [&frame[..], &[0]].concat()),
            ("a prefix behind the message", [&frame[..], &[0; 5]].concat()),
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
        for flag in [1, 2, 3, 7, 16, 127, 128, 255] {
            let name = format!("the flag {flag}: gRPC has this status for it");
            cases.push(self.refused(name, INVALID_REQUEST, prefixed(flag, length)).with_code(INTERNAL));
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
            cases.push(self.no_grpc(kind).saying("content-type", Some(kind.as_bytes())));
        }
        cases.push(self.no_grpc("none").saying("content-type", None));
        cases.push(self.no_grpc("no text").saying("content-type", Some(b"application/\xff\xfe")));
        for kind in [
            "application/grpc+proto",
            "Application/gRPC",
            "application/grpc;charset=utf-8",
            "application/grpc ; x=y",
        ] {
            let case =
                self.taken(format!("content-type {kind:?}"), "it is one of gRPC with messages of protobuf");
            cases.push(case.saying("content-type", Some(kind.as_bytes())));
        }
        cases
    }

    /// The refusal of what is not gRPC, which HTTP tells too.
    fn no_grpc(&self, kind: &str) -> Case {
        let name = format!("content-type {kind:?}: gRPC has 415 for it");
        let case = self.refused(name, UNSUPPORTED_MEDIA_TYPE, self.good.body.clone());
        case.with_http(415).told_by(Service::V1)
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
            cases.push(unknown(format!("/{service}/{method}")).told_by(Service::V1));
        }
        let long = format!("/{}/{method}", "x".repeat(2_000));
        cases.push(unknown(long).told_by(Service::V1));
        for verb in ["GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"] {
            let case = self.unchanged(format!("verb {verb}"), METHOD_NOT_FOUND);
            cases.push(case.by(verb).with_http(405).told_by(Service::V1));
        }
        let path = &self.good.path;
        cases.push(self.taken("a query", "nobody asks for it").at(format!("{path}?x=1&%ff")));
        let version = self.unchanged("the version in the query", VERSION).saying("a2a-version", None);
        cases.push(version.at(format!("{path}?A2A-Version=99.0")).told_by(Service::V1));
        cases
    }

    fn versions(&self) -> Vec<Case> {
        let other = match self.method.service {
            Service::V03 => ["1.0", "1", "1.0.1", " 1.0 "],
            Service::V1 => ["0.3", "0.3.0", "0.2.6", "0.1"],
        };
        let nobody: &[&[u8]] = &[
            b"2.0",
            b"1.1",
            b"99.0",
            b"0",
            b"10",
            b"1.00",
            b"01.0",
            b"1,0",
            b"1.0,0.3",
            b"v1.0",
            b"-1.0",
            b"1e0",
            b"0.4",
            b"0.30",
            b"latest",
            b"null",
            b"*",
            b"' OR 1=1",
            b"$(id)",
            b"../1.0",
            b"{{7*7}}",
            b"\xff\xfe",
            b"1.0\xa0",
            b"\xd9\xa1.\xd9\xa0",
            b"%31%2e%30",
            b"<script>",
        ];
        let long = [b'1'; 3_000];
        let all =
            other.iter().map(|version| version.as_bytes()).chain(nobody.iter().copied()).chain([&long[..]]);
        let mut cases: Vec<Case> = all
            .map(|version| {
                let name =
                    format!("a2a-version {:?}", String::from_utf8_lossy(&version[..version.len().min(40)]));
                self.unchanged(name, VERSION).saying("a2a-version", Some(version)).told_by(Service::V1)
            })
            .collect();
        for (version, why) in [
            (None, "the service says which generation it is (wire-dialects 4.5)"),
            (Some(&b""[..]), "an empty version says nothing"),
            (Some(&b"  "[..]), "an empty version says nothing"),
        ] {
            cases.push(self.taken(format!("a2a-version {version:?}"), why).saying("a2a-version", version));
        }
        cases
    }

    fn timeouts(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        let wrong: &[&[u8]] = &[
            b"",
            b" ",
            b"S",
            b"H",
            b"1",
            b"60",
            b"1s",
            b"1h",
            b"1ms",
            b"-1S",
            b"+1S",
            b"1.5S",
            b"1e3S",
            b"123456789S",
            b"000000001S",
            b"99999999999999999999n",
            b"1 S",
            b" 1S ",
            b"1S1S",
            b"1S,2S",
            b"1S;",
            b"0x1S",
            b"SS",
            b"1\xc3\xa9",
            b"\xff",
            b"1\xb5",
            b"\xd9\xa1S",
            b"NaNS",
            b"infS",
            b"PT1S",
            b"$(id)S",
            b"' OR 1=1",
        ];
        for timeout in wrong {
            let name = format!("grpc-timeout {:?}", String::from_utf8_lossy(timeout));
            let case = self.unchanged(name, INVALID_REQUEST).saying("grpc-timeout", Some(timeout));
            cases.push(case.naming("grpc-timeout"));
        }
        let long = self.unchanged("a grpc-timeout of 3000 digits", INVALID_REQUEST).naming("grpc-timeout");
        cases.push(long.saying("grpc-timeout", Some(&[b'1'; 3_000])));
        for timeout in ["1H", "99999999H", "99999999S", "60000m", "99999999u", "00000060S"] {
            let case = self.taken(format!("grpc-timeout {timeout}"), "it is long enough");
            cases.push(case.saying("grpc-timeout", Some(timeout.as_bytes())));
        }
        cases
    }

    fn encodings(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        let wrong: &[&[u8]] = &[
            b"gzip",
            b"GZIP",
            b"deflate",
            b"br",
            b"zstd",
            b"snappy",
            b"lz4",
            b"x",
            b"",
            b"*",
            b"identity,gzip",
            b"gzip, identity",
            b"identity;q=0",
            b"none",
            b"\xff",
            b"../gzip",
        ];
        for coding in wrong {
            let name = format!("grpc-encoding {:?}", String::from_utf8_lossy(coding));
            let case = self.unchanged(name, UNSUPPORTED_MEDIA_TYPE).saying("grpc-encoding", Some(coding));
            cases.push(case.clone());
            let mut packed = case;
            packed.name.push_str(", and flagged so");
            packed.body[0] = 1;
            cases.push(packed);
        }
        for coding in ["identity", "Identity"] {
            let case = self.taken(format!("grpc-encoding {coding}"), "that is as it is");
            cases.push(case.saying("grpc-encoding", Some(coding.as_bytes())));
        }
        cases
    }

    /// Agents that are not there, named beside the message.
    fn agents(&self) -> Vec<Case> {
        let printable =
            |name: &String| !name.trim().is_empty() && name.chars().all(|character| !character.is_control());
        let names = hostile().into_iter().filter(printable).map(String::into_bytes);
        let further: [&[u8]; 8] = [
            b"nobody",
            b"Echo",
            b"echo/",
            b"acme/echo",
            b"default/nobody",
            b"\xff",
            b"echo\xff",
            &[b'x'; 3_000],
        ];
        let names = names.chain(further.map(<[u8]>::to_vec));
        let mut cases: Vec<Case> = names
            .map(|agent| {
                let name = format!("a2a-agent {:?}", String::from_utf8_lossy(&agent[..agent.len().min(40)]));
                self.unchanged(name, AGENT_UNKNOWN).saying("a2a-agent", Some(&agent))
            })
            .collect();
        let case = self.taken("a2a-agent with its tenant", "a tenant may be named");
        cases.push(case.saying("a2a-agent", Some(b" default/echo ")));
        cases
    }

    /// Metadata that nobody asks for, or that only says what a client would like.
    fn other_metadata(&self) -> Vec<Case> {
        let why =
            "metadata that nobody asks for is let pass, and so are extensions nobody has (wire-dialects 13)";
        let list: [(&'static str, &[u8]); 14] = [
            ("a2a-extensions", b""),
            ("a2a-extensions", b",,, ,"),
            ("a2a-extensions", b"https://e.example/unknown"),
            ("a2a-extensions", b"\xff\xfe"),
            ("a2a-extensions", &[b'x'; 3_000]),
            ("a2a-extensions", b"' OR 1=1 --, $(id), ../../etc"),
            ("x-a2a-extensions", b"not a uri"),
            ("x-unknown-bin", b"!!! no base64 !!!"),
            ("x-unknown", b"\x80\xff"),
            ("grpc-accept-encoding", b"nothing,at,all"),
            ("grpc-trace-bin", b"%%%"),
            ("traceparent", b"no trace"),
            ("last-event-id", b"abc"),
            ("user-agent", b"grpc-nobody/0 \xff"),
        ];
        let mut cases: Vec<Case> = list
            .into_iter()
            .map(|(name, value)| {
                let shown = String::from_utf8_lossy(&value[..value.len().min(40)]).into_owned();
                self.taken(format!("{name} {shown:?}"), why).saying(name, Some(value))
            })
            .collect();
        cases.push(self.taken("no te", "what comes back is trailers all the same").saying("te", None));
        cases
    }

    fn refused(&self, name: impl Into<String>, reason: Reason, body: Vec<u8>) -> Case {
        self.good.of(name, body, Expected::Refused(Refusal::new(reason, self.method.service)))
    }

    /// Refused with a body that is as it should be.
    fn unchanged(&self, name: impl Into<String>, reason: Reason) -> Case {
        self.refused(name, reason, self.good.body.clone())
    }

    fn taken(&self, name: impl Into<String>, why: &'static str) -> Case {
        self.good.of(name, self.good.body.clone(), Expected::Taken(why))
    }
}
