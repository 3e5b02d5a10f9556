//! Metadata: the version, the time a caller waits, how a message is packed, the agent, and what nobody asks for.

use super::around::Maker;
use super::case::{AGENT_UNKNOWN, Case, INVALID_REQUEST, Service, UNSUPPORTED_MEDIA_TYPE, VERSION};
use super::values::hostile;

impl Maker<'_> {
    /// Every case about metadata.
    pub(crate) fn metadata(&self) -> Vec<Case> {
        let parts =
            [self.versions(), self.timeouts(), self.encodings(), self.agents(), self.other_metadata()];
        parts.concat()
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
            (None, "the service says which generation it is"),
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
        let why = "metadata that nobody asks for is let pass, and so are extensions nobody has";
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
}
