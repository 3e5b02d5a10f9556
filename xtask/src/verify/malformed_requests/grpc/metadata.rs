//! Metadata: the version, the deadline, the message encoding, the agent, and metadata that is ignored.

use super::around::Maker;
use super::case::{AGENT_UNKNOWN, Case, INVALID_REQUEST, Service, UNSUPPORTED_MEDIA_TYPE, VERSION};
use super::values::hostile_names;

impl Maker<'_> {
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
        let unsupported: &[&[u8]] = &[
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
        let all = other
            .iter()
            .map(|version| version.as_bytes())
            .chain(unsupported.iter().copied())
            .chain([&long[..]]);
        let mut cases: Vec<Case> = all
            .map(|version| {
                let name =
                    format!("a2a-version {:?}", String::from_utf8_lossy(&version[..version.len().min(40)]));
                self.unchanged(name, VERSION).with_header("a2a-version", Some(version)).in_format(Service::V1)
            })
            .collect();
        for (version, why) in [
            (None, "the service determines the generation"),
            (Some(&b""[..]), "an empty version counts as absent"),
            (Some(&b"  "[..]), "an empty version counts as absent"),
        ] {
            cases.push(
                self.accepted(format!("a2a-version {version:?}"), why).with_header("a2a-version", version),
            );
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
            let case = self.unchanged(name, INVALID_REQUEST).with_header("grpc-timeout", Some(timeout));
            cases.push(case.naming_field("grpc-timeout"));
        }
        let long =
            self.unchanged("a grpc-timeout of 3000 digits", INVALID_REQUEST).naming_field("grpc-timeout");
        cases.push(long.with_header("grpc-timeout", Some(&[b'1'; 3_000])));
        for timeout in ["1H", "99999999H", "99999999S", "60000m", "99999999u", "00000060S"] {
            let case = self.accepted(format!("grpc-timeout {timeout}"), "it is long enough");
            cases.push(case.with_header("grpc-timeout", Some(timeout.as_bytes())));
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
            let case =
                self.unchanged(name, UNSUPPORTED_MEDIA_TYPE).with_header("grpc-encoding", Some(coding));
            cases.push(case.clone());
            let mut packed = case;
            packed.name.push_str(", with the compressed flag");
            packed.body[0] = 1;
            cases.push(packed);
        }
        for coding in ["identity", "Identity"] {
            let case = self.accepted(format!("grpc-encoding {coding}"), "it means uncompressed");
            cases.push(case.with_header("grpc-encoding", Some(coding.as_bytes())));
        }
        cases
    }

    /// Unknown agents, named in the metadata.
    fn agents(&self) -> Vec<Case> {
        let printable =
            |name: &String| !name.trim().is_empty() && name.chars().all(|character| !character.is_control());
        let names = hostile_names().into_iter().filter(printable).map(String::into_bytes);
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
                self.unchanged(name, AGENT_UNKNOWN).with_header("a2a-agent", Some(&agent))
            })
            .collect();
        let case = self.accepted("a2a-agent with its tenant", "a tenant may be named");
        cases.push(case.with_header("a2a-agent", Some(b" default/echo ")));
        cases
    }

    /// Metadata that is ignored, or that only states preferences of the client.
    fn other_metadata(&self) -> Vec<Case> {
        let why = "unknown metadata and unknown extensions are ignored";
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
                self.accepted(format!("{name} {shown:?}"), why).with_header(name, Some(value))
            })
            .collect();
        cases.push(self.accepted("no te", "the response has trailers nevertheless").with_header("te", None));
        cases
    }
}
