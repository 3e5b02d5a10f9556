//! Hosts and ports as `Host`, `:authority`, `Origin` and the configuration have them.
//!
//! Pure: no name is resolved. Only the form that browsers send is recognised as an address: `127.1` and `0x7f000001`
//! are names here, and not names of loopback.

use std::{
    fmt::{self, Display, Formatter},
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

/// A host and, if there is one, a port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Authority<S> {
    pub(crate) host: HostName<S>,
    pub(crate) port: Option<u16>,
}

/// The host of an [`Authority`].
#[derive(Clone, Copy, Debug)]
pub(crate) enum HostName<S> {
    /// An IPv4 address that is written as an IPv6 address is an IPv4 address here.
    Address(IpAddr),
    /// Without a dot at its end. Upper and lower case are the same.
    Name(S),
}

impl<'a> Authority<&'a str> {
    /// Parses `host` or `host:port`; `None` for anything else, such as user information or a path.
    pub(crate) fn parse(text: &'a str) -> Option<Self> {
        let (host, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (address, port) = rest.split_once(']')?;
                let address: Ipv6Addr = address.parse().ok()?;
                (HostName::Address(IpAddr::V6(address).to_canonical()), port)
            }
            None => {
                let (host, port) = text.split_at(text.find(':').unwrap_or(text.len()));
                (HostName::parse(host)?, port)
            }
        };
        Some(Self { host, port: parse_port(port)? })
    }

    pub(crate) fn into_owned(self) -> Authority<String> {
        let host = match self.host {
            HostName::Address(address) => HostName::Address(address),
            HostName::Name(name) => HostName::Name(name.to_ascii_lowercase()),
        };
        Authority { host, port: self.port }
    }
}

/// What follows the host: nothing, or a colon and digits; no digits are no port (RFC 3986 3.2.3).
fn parse_port(text: &str) -> Option<Option<u16>> {
    let Some(digits) = text.strip_prefix(':') else { return text.is_empty().then_some(None) };
    // `parse` would accept a sign, and any number of leading zeros.
    if digits.len() > 5 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    if digits.is_empty() { Some(None) } else { digits.parse().ok().map(Some) }
}

impl<'a> HostName<&'a str> {
    fn parse(text: &'a str) -> Option<Self> {
        const MAX_NAME: usize = 253;
        let name = text.strip_suffix('.').unwrap_or(text);
        if let Ok(address) = name.parse::<Ipv4Addr>() {
            return Some(Self::Address(address.into()));
        }
        let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        let mut labels = name.split('.');
        let labels_are_valid = labels.all(|label| !label.is_empty() && label.bytes().all(is_valid));
        (labels_are_valid && name.len() <= MAX_NAME).then_some(Self::Name(name))
    }
}

impl<S: AsRef<str>> HostName<S> {
    pub(crate) fn is_same<T: AsRef<str>>(&self, other: &HostName<T>) -> bool {
        match (self, other) {
            (Self::Address(address), HostName::Address(other)) => address == other,
            (Self::Name(name), HostName::Name(other)) => name.as_ref().eq_ignore_ascii_case(other.as_ref()),
            _ => false,
        }
    }

    /// Whether this always means the client's own machine: a loopback address, or `localhost` and the names below it
    /// (RFC 6761 6.3).
    pub(crate) fn is_loopback(&self) -> bool {
        match self {
            Self::Address(address) => address.is_loopback(),
            Self::Name(name) => {
                name.as_ref().rsplit('.').next().is_some_and(|top| top.eq_ignore_ascii_case("localhost"))
            }
        }
    }
}

impl<S: AsRef<str>> Display for Authority<S> {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        match &self.host {
            HostName::Address(IpAddr::V4(address)) => write!(out, "{address}")?,
            HostName::Address(IpAddr::V6(address)) => write!(out, "[{address}]")?,
            HostName::Name(name) => out.write_str(name.as_ref())?,
        }
        self.port.map_or(Ok(()), |port| write!(out, ":{port}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_normalised() {
        for (text, expected) in [
            ("localhost", "localhost"),
            ("LocalHost:4242", "localhost:4242"),
            ("localhost.", "localhost"),
            ("localhost.:4242", "localhost:4242"),
            ("localhost:", "localhost"),
            ("localhost:0080", "localhost:80"),
            ("a-b_c.example.com:65535", "a-b_c.example.com:65535"),
            ("127.0.0.1:4242", "127.0.0.1:4242"),
            ("127.0.0.1.", "127.0.0.1"),
            ("127.1", "127.1"),
            ("[::1]", "[::1]"),
            ("[::1]:4242", "[::1]:4242"),
            ("[0:0:0:0:0:0:0:1]:", "[::1]"),
            ("[2001:DB8::1]:80", "[2001:db8::1]:80"),
            ("[::ffff:127.0.0.1]:1", "127.0.0.1:1"),
            ("[::ffff:7f00:1]", "127.0.0.1"),
            ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ] {
            let parsed = Authority::parse(text).map(|authority| authority.into_owned().to_string());
            assert_eq!(parsed.as_deref(), Some(expected), "{text}");
        }
    }

    #[test]
    fn everything_else_is_rejected() {
        let long = format!("{}.example", "a".repeat(250));
        for text in [
            "",
            ":4242",
            ".",
            "..",
            "a..b",
            ".a",
            "a..",
            "user@localhost",
            "user:secret@localhost:4242",
            "localhost:4242:1",
            "localhost:+80",
            "localhost:-1",
            "localhost:65536",
            "localhost:000080",
            "localhost:x",
            "localhost: 80",
            " localhost",
            "localhost ",
            "localhost/",
            "localhost?x",
            "localhost#x",
            "localhost\\x",
            "http://localhost",
            "localhost,evil.test",
            "localhost%2eevil.test",
            "bücher.example",
            "::1",
            "[::1",
            "::1]",
            "[::1]4242",
            "[::1]:x",
            "[::1%25lo]:4242",
            "[127.0.0.1]",
            "[localhost]",
            "[]",
            "*",
            "*.example.com",
            "a<b",
            long.as_str(),
        ] {
            assert!(Authority::parse(text).is_none(), "{text:?}");
        }
    }

    #[test]
    fn loopback_names_are_recognised() {
        let is_loopback = |text| Authority::parse(text).unwrap().host.is_loopback();
        for text in [
            "localhost",
            "LOCALHOST.:1",
            "agents.localhost",
            "127.0.0.1",
            "127.255.0.9:80",
            "[::1]",
            "[::ffff:127.0.0.1]",
        ] {
            assert!(is_loopback(text), "{text}");
        }
        for text in [
            "127.1",
            "2130706433",
            "0x7f.0.0.1",
            "0127.0.0.1",
            "0.0.0.0",
            "[::]",
            "[::2]",
            "10.0.0.1",
            "localhost.evil.test",
            "notlocalhost",
            "127.0.0.1.evil.test",
        ] {
            assert!(!is_loopback(text), "{text}");
        }
    }
}
