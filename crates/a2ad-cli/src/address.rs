//! Parses addresses as users type them: a URL, or host and port without a scheme.

use std::net::IpAddr;

/// Returns the URL for `typed`: a URL unchanged; `host:port` with `http` for loopback and port 80, else `https`.
/// `None` if it is neither.
pub(crate) fn url(typed: &str) -> Option<String> {
    if typed.contains("://") {
        return Some(typed.to_owned());
    }
    let authority = typed.split(['/', '?', '#']).next().unwrap_or_default();
    let (host, port) = authority.rsplit_once(':')?;
    let port: u16 = port.parse().ok()?;
    if !is_host(host) {
        return None;
    }
    let scheme = if is_loopback(host) || port == 80 { "http" } else { "https" };
    Some(format!("{scheme}://{typed}"))
}

/// Whether a host is `localhost` or a loopback address.
pub(crate) fn is_loopback(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn is_host(host: &str) -> bool {
    if let Some(address) = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        return address.parse::<std::net::Ipv6Addr>().is_ok();
    }
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !host.is_empty() && host.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn host_and_port_get_a_scheme() {
        for (typed, expected) in [
            ("https://h/a", "https://h/a"),
            ("localhost:4242", "http://localhost:4242"),
            ("127.0.0.1:1/a2a/echo?x", "http://127.0.0.1:1/a2a/echo?x"),
            ("[::1]:9", "http://[::1]:9"),
            ("agents.example:80", "http://agents.example:80"),
            ("agents.example:8443/x", "https://agents.example:8443/x"),
            ("10.0.0.7:4242", "https://10.0.0.7:4242"),
        ] {
            assert_eq!(url(typed).as_deref(), Some(expected));
        }
        for typed in ["", "echo", "a.b", "h/a:1", ":1", "a b:1", "h:x", "h:99999", "u@h:1", "[x]:1", "é:1"] {
            assert_eq!(url(typed), None, "{typed}");
        }
    }
}
