//! Metadata: the version, the deadline, the message encoding and the agent.

use super::super::case::Case;
use super::super::errors::{Dialect, INVALID_REQUEST, MEDIA_TYPE, NO_AGENT, UNIMPLEMENTED, VERSION};
use super::around::{Maker, with_status};
use super::values::hostile_names;

impl Maker<'_> {
    pub(crate) fn metadata(&self) -> Vec<Case> {
        [self.versions(), self.timeouts(), self.encodings(), self.agents()].concat()
    }

    fn versions(&self) -> Vec<Case> {
        let of_v1 = self.method.dialect == Dialect::V1;
        let other: [&[u8]; 4] =
            if of_v1 { [b"0.3", b"0.3.0", b"0.2.6", b"0.1"] } else { [b"1.0", b"1", b"1.0.1", b" 1.0 "] };
        #[rustfmt::skip]
        let unsupported: &[&[u8]] = &[
            b"2.0", b"1.1", b"99.0", b"0", b"10", b"1.00", b"01.0", b"1,0", b"1.0,0.3", b"v1.0", b"-1.0",
            b"1e0", b"0.4", b"0.30", b"latest", b"null", b"*", b"' OR 1=1", b"$(id)", b"../1.0", b"{{7*7}}",
            b"\xff\xfe", b"1.0\xa0", b"\xd9\xa1.\xd9\xa0", b"%31%2e%30", b"<script>",
        ];
        let long = [b'1'; 3_000];
        let all = other.iter().chain(unsupported).copied().chain([&long[..]]);
        let refuse = |version: &[u8]| {
            let case = self.good.refused(format!("a2a-version {}", shown(version)), VERSION);
            case.with_version(version).in_dialect(Dialect::V1)
        };
        all.map(refuse).collect()
    }

    fn timeouts(&self) -> Vec<Case> {
        #[rustfmt::skip]
        let wrong: &[&[u8]] = &[
            b"", b" ", b"S", b"H", b"1", b"60", b"1s", b"1h", b"1ms", b"-1S", b"+1S", b"1.5S", b"1e3S",
            b"123456789S", b"000000001S", b"99999999999999999999n", b"1 S", b" 1S ", b"1S1S", b"1S,2S",
            b"1S;", b"0x1S", b"SS", b"1\xc3\xa9", b"\xff", b"1\xb5", b"\xd9\xa1S", b"NaNS", b"infS", b"PT1S",
            b"$(id)S", b"' OR 1=1",
        ];
        let refuse = |timeout: &[u8]| {
            let case = self.good.refused(format!("grpc-timeout {}", shown(timeout)), INVALID_REQUEST);
            case.naming_field("grpc-timeout").with_header("grpc-timeout", timeout)
        };
        let digits = [b'1'; 3_000];
        wrong.iter().copied().chain([&digits[..]]).map(refuse).collect()
    }

    fn encodings(&self) -> Vec<Case> {
        let mut cases = Vec::new();
        #[rustfmt::skip]
        let wrong: &[&[u8]] = &[
            b"gzip", b"GZIP", b"deflate", b"br", b"zstd", b"snappy", b"lz4", b"x", b"", b"*",
            b"identity,gzip", b"gzip, identity", b"identity;q=0", b"none", b"\xff", b"../gzip",
        ];
        for coding in wrong {
            let case = self.good.refused(format!("grpc-encoding {}", shown(coding)), MEDIA_TYPE);
            let case = with_status(case.with_header("grpc-encoding", coding), UNIMPLEMENTED.number);
            let mut packed = case.clone();
            packed.name.push_str(", with the compressed flag");
            packed.body[0] = 1;
            cases.extend([case, packed]);
        }
        cases
    }

    /// Unknown agents, named in the metadata.
    fn agents(&self) -> Vec<Case> {
        let printable =
            |name: &String| !name.trim().is_empty() && name.chars().all(|character| !character.is_control());
        let names = hostile_names().into_iter().filter(printable).map(String::into_bytes);
        #[rustfmt::skip]
        let further: [&[u8]; 8] = [
            b"nobody", b"Echo", b"echo/", b"acme/echo", b"default/nobody", b"\xff", b"echo\xff",
            &[b'x'; 3_000],
        ];
        let names = names.chain(further.map(<[u8]>::to_vec));
        let refuse = |agent: Vec<u8>| {
            let case = self.good.refused(format!("a2a-agent {}", shown(&agent)), NO_AGENT);
            case.with_header("a2a-agent", agent)
        };
        names.map(refuse).collect()
    }
}

/// The beginning of a value.
fn shown(value: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(&value[..value.len().min(40)]))
}
