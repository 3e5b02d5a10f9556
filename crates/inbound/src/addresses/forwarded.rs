//! The scheme and host that a client asked a proxy for, and its address, from the headers that proxies add.
//!
//! Each proxy appends to these lists, so the rightmost element is that of the nearest proxy, and what a client sent
//! itself is at the left. Elements of trusted proxies are skipped from the right; the next one was added by the
//! outermost trusted proxy.
//!
//! Most proxies set `X-Forwarded-*` and pass on a `Forwarded` that the client sent. So `Forwarded` (RFC 7239) is used
//! only if there is none of the others.
//!
//! Pure: `origin.rs` decides whether the peer is a proxy at all.

use std::net::{IpAddr, Ipv4Addr};

use http::HeaderMap;

use crate::addresses::authority::{Authority, HostName};

const FOR: &str = "x-forwarded-for";
const HOST: &str = "x-forwarded-host";
const PROTO: &str = "x-forwarded-proto";

/// What a proxy forwarded; the host is not validated.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Forwarded {
    pub(crate) scheme: Option<&'static str>,
    pub(crate) host: Option<String>,
}

/// The address of the client that the outermost trusted proxy has seen; `None` if the proxy reports no client, and the
/// unspecified address if it does not tell which.
pub(crate) fn client_address(headers: &HeaderMap, is_trusted: impl Fn(IpAddr) -> bool) -> Option<IpAddr> {
    let nodes: Vec<&str> = if has_separate_headers(headers) {
        lines(headers, FOR).flat_map(|line| line.split(',')).map(str::trim).collect()
    } else {
        let elements = lines(headers, "forwarded").flat_map(elements);
        elements.map(|element| parameter(element, "for").unwrap_or_default()).collect()
    };
    let chosen = rightmost(&nodes, |node| address(node).is_some_and(&is_trusted))?;
    Some(address(nodes[chosen]).unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED)))
}

fn has_separate_headers(headers: &HeaderMap) -> bool {
    [FOR, HOST, PROTO].iter().any(|name| headers.contains_key(*name))
}

/// The address that an element names, which may have a port; with one, IPv6 is in brackets.
fn address(node: &str) -> Option<IpAddr> {
    if let Ok(address) = node.parse() {
        return Some(address);
    }
    match Authority::parse(node)?.host {
        HostName::Address(address) => Some(address),
        HostName::Name(_) => None,
    }
}

/// Whether a proxy has added one of its headers.
pub(crate) fn is_present(headers: &HeaderMap) -> bool {
    [FOR, HOST, PROTO, "forwarded", "x-real-ip", "via"].iter().any(|name| headers.contains_key(*name))
}

impl Forwarded {
    pub(crate) fn read(headers: &HeaderMap, is_trusted: impl Fn(IpAddr) -> bool) -> Self {
        let is_proxy = |node: &str| address(node).is_some_and(&is_trusted);
        if has_separate_headers(headers) {
            from_separate_headers(headers, is_proxy)
        } else {
            from_forwarded(headers, is_proxy)
        }
    }
}

fn from_separate_headers(headers: &HeaderMap, is_proxy: impl Fn(&str) -> bool) -> Forwarded {
    let list = |name: &'static str| -> Vec<&str> {
        lines(headers, name).flat_map(|line| line.split(',')).map(str::trim).collect()
    };
    let (hosts, schemes) = (list(HOST), list(PROTO));
    let chosen = rightmost(&hosts, &is_proxy);
    // Lists of the same length have one element of each proxy.
    let same_length = hosts.len() == schemes.len();
    let scheme = if same_length { chosen.and_then(|at| schemes.get(at)) } else { schemes.last() };
    let host = chosen.map(|at| hosts[at]).filter(|host| !host.is_empty());
    Forwarded { scheme: scheme.and_then(|scheme| known_scheme(scheme)), host: host.map(str::to_owned) }
}

fn from_forwarded(headers: &HeaderMap, is_proxy: impl Fn(&str) -> bool) -> Forwarded {
    let elements: Vec<&str> = lines(headers, "forwarded").flat_map(elements).collect();
    let is_from_proxy = |element: &str| parameter(element, "for").is_some_and(&is_proxy);
    let Some(chosen) = rightmost(&elements, is_from_proxy).map(|at| elements[at]) else {
        return Forwarded::default();
    };
    Forwarded {
        scheme: parameter(chosen, "proto").and_then(known_scheme),
        host: parameter(chosen, "host").map(str::to_owned),
    }
}

/// The position of the rightmost element that is not a trusted proxy's; of the first one, if all are.
fn rightmost(elements: &[&str], is_proxy: impl Fn(&str) -> bool) -> Option<usize> {
    let last = elements.len().checked_sub(1)?;
    Some((0..=last).rev().find(|at| !is_proxy(elements[*at])).unwrap_or(0))
}

/// The lines of a header; one that is not text is an empty one.
fn lines<'a>(headers: &'a HeaderMap, name: &'static str) -> impl Iterator<Item = &'a str> {
    headers.get_all(name).into_iter().map(|line| line.to_str().unwrap_or_default())
}

/// The elements of a line of `Forwarded`. A line whose quotes do not match is one empty element, so that a client
/// cannot begin a quoted string that hides the elements of proxies.
fn elements(line: &str) -> Vec<&str> {
    if line.matches('"').count() % 2 == 1 {
        return vec![""];
    }
    split_unquoted(line, ',').map(str::trim).collect()
}

/// A parameter of an element, without quotes.
fn parameter<'a>(element: &'a str, name: &str) -> Option<&'a str> {
    let mut pairs = split_unquoted(element, ';').filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|pair| pair.0.eq_ignore_ascii_case(name)).map(|pair| pair.1.trim_matches('"'))
}

fn split_unquoted(text: &str, separator: char) -> impl Iterator<Item = &str> {
    let mut quoted = false;
    text.split(move |character: char| {
        quoted ^= character == '"';
        character == separator && !quoted
    })
}

fn known_scheme(text: &str) -> Option<&'static str> {
    ["https", "http"].into_iter().find(|known| text.eq_ignore_ascii_case(known))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads headers with 10.0.0.0/8 and fd00::/8 as trusted proxies; shown as `scheme host`.
    fn read(lines: &[(&'static str, &str)]) -> String {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        let found = Forwarded::read(&headers, |address| match address {
            IpAddr::V4(address) => address.octets()[0] == 10,
            IpAddr::V6(address) => address.octets()[0] == 0xfd,
        });
        format!("{} {}", found.scheme.unwrap_or("-"), found.host.as_deref().unwrap_or("-"))
    }

    #[test]
    fn rightmost_element_that_is_not_a_trusted_proxy_is_used() {
        for (value, expected) in [
            ("for=1.2.3.4;proto=https;host=a.example", "https a.example"),
            ("host=evil.test, for=1.2.3.4;proto=https;host=a.example", "https a.example"),
            ("host=evil.test, for=1.2.3.4;host=a.example, for=10.0.0.2;host=inner", "- a.example"),
            ("host=evil.test, for=1.2.3.4;host=a.example, for=\"10.0.0.2:99\";host=inner", "- a.example"),
            ("host=evil.test, For=1.2.3.4;Host=a.example, FOR=\"[fd00::1]:99\";host=inner", "- a.example"),
            ("host=evil.test, for=1.2.3.4", "- -"),
            ("host=evil.test, for=unknown;host=a.example", "- a.example"),
            ("host=evil.test, for=_hidden;host=a.example", "- a.example"),
            ("for=10.0.0.3;host=first.example, for=10.0.0.2;host=inner", "- first.example"),
            ("for=1.2.3.4;host=\"b.example:8443\";proto=HTTPS", "https b.example:8443"),
            ("for=1.2.3.4;proto=gopher;host=a.example", "- a.example"),
            ("for=1.2.3.4;host=a.example;host=evil.test", "- a.example"),
            ("for=\"a,b;host=evil.test\";host=a.example", "- a.example"),
            ("host=evil.test;for=\", for=1.2.3.4;host=a.example", "- -"),
            ("host=evil.test;for=\", for=1.2.3.4;host=\"a.example\"", "- -"),
            ("", "- -"),
        ] {
            assert_eq!(read(&[("forwarded", value)]), expected, "{value}");
        }
        // A proxy may append a line of its own.
        let lines = [("forwarded", "host=evil.test;for=\""), ("forwarded", "for=1.2.3.4;host=a.example")];
        assert_eq!(read(&lines), "- a.example");
    }

    #[test]
    fn older_headers_are_read_from_the_right() {
        for (host, scheme, expected) in [
            ("a.example", "https", "https a.example"),
            ("evil.test, a.example", "https", "https a.example"),
            ("evil.test, a.example", "http, https", "https a.example"),
            ("evil.test, a.example, 10.0.0.2:4242", "http, https, http", "https a.example"),
            ("evil.test, a.example, [fd00::1]", "gopher", "- a.example"),
            ("a.example", "https, http", "http a.example"),
            ("10.0.0.2:4242", "http", "http 10.0.0.2:4242"),
            ("evil.test,", "http", "http -"),
        ] {
            let lines = [(HOST, host), (PROTO, scheme)];
            assert_eq!(read(&lines), expected, "{host}; {scheme}");
        }
        assert_eq!(read(&[(HOST, "evil.test"), (HOST, "a.example")]), "- a.example");
        assert_eq!(read(&[(PROTO, "https")]), "https -");
    }

    #[test]
    fn forwarded_of_a_client_is_ignored_if_the_proxy_sets_other_headers() {
        let client = ("forwarded", "proto=http;host=evil.test");
        assert_eq!(read(&[client, (HOST, "a.example"), (PROTO, "https")]), "https a.example");
        assert_eq!(read(&[client, (PROTO, "https")]), "https -");
        assert_eq!(read(&[client, (FOR, "1.2.3.4")]), "- -");
        assert_eq!(read(&[client]), "http evil.test");
    }
}
