//! Diagnoses why a server cannot be reached: probes its port and suggests what to do.

use std::io;

use a2ad::internal::{ProbeResult, probe};
use client::Error;
use http::StatusCode;
use protocol::ErrorKind;

use crate::cli::suggest;

use super::target::Target;
use crate::address;

/// Whether a probe of the port may explain an error.
pub(crate) fn needs_probe(error: &Error) -> bool {
    match error {
        Error::Transport(_) | Error::Status(StatusCode::BAD_REQUEST | StatusCode::SERVICE_UNAVAILABLE) => {
            true
        }
        Error::Protocol(error) => error.kind == ErrorKind::Unavailable,
        _ => false,
    }
}

/// The likely cause and what to do, if it can be determined.
pub(crate) async fn advice(target: &Target, error: &Error) -> Option<String> {
    if error.is_untrusted_certificate() {
        return Some(CERTIFICATE.to_owned());
    }
    let advice = advice_for(target, matches!(error, Error::Transport(_))).await;
    // A server that refuses a call because it shuts down reports that itself.
    let refused = matches!(error, Error::Protocol(_));
    advice.map(|advice| if refused && advice == DRAINING { RESTARTED.to_owned() } else { advice })
}

/// The same for a server that did not answer within the timeout.
pub(crate) async fn advice_for_timeout(target: &Target) -> Option<String> {
    advice_for(target, true).await
}

/// Why no call to a server can succeed, if a probe of its port shows it.
pub(crate) async fn advice_before_calls(url: &str) -> Option<String> {
    advice_for(&Target::Server(url.trim_end_matches('/').to_owned()), true).await
}

/// What a probe of the server's port shows. `no_answer`: the call got no HTTP response.
async fn advice_for(target: &Target, no_answer: bool) -> Option<String> {
    let url = target.url();
    let (scheme, authority) = origin_of(&url)?;
    if !address::is_loopback(host_of(&url)) && has_proxy() {
        return None;
    }
    let (tls, rest) = (scheme == "https", &url[scheme.len()..]);
    match probe(&authority, "/readyz").await {
        ProbeResult::Http { status: 503, body } if !tls && body.contains("\"starting\"") => {
            Some(STARTING.to_owned())
        }
        ProbeResult::Http { status: 503, .. } if !tls => Some(DRAINING.to_owned()),
        ProbeResult::Http { .. } if tls => Some(format!("that port answers plain http: try http{rest}")),
        ProbeResult::Http { status: 400, body } if body.to_ascii_lowercase().contains("https") => {
            Some(try_https(rest))
        }
        ProbeResult::Http { .. } => None,
        ProbeResult::Tls if !tls => Some(try_https(rest)),
        ProbeResult::Unreachable(kind) => Some(unreachable(target, kind)),
        ProbeResult::Unknown if !tls && no_answer => Some(format!(
            "something listens there and does not answer http: it may expect https{rest}, or be shutting down"
        )),
        ProbeResult::Tls | ProbeResult::Unknown => None,
    }
}

const DRAINING: &str =
    "the server is shutting down (draining) and accepts no new work: try again when it has restarted";

const STARTING: &str = "the server is starting, and waits for its tools: try again in a moment";

const RESTARTED: &str = "it accepts new work again when it has restarted";

const CERTIFICATE: &str = "name a PEM file with the authorities to trust with --ca or SSL_CERT_FILE, or use a certificate from an \
                           authority this machine trusts";

fn try_https(rest: &str) -> String {
    format!("that port expects TLS: try https{rest}")
}

fn unreachable(target: &Target, kind: io::ErrorKind) -> String {
    match (kind, target.serve_flags()) {
        (io::ErrorKind::ConnectionRefused, Some(flags)) => {
            let command = suggest::command("serve", &[], &flags);
            format!("nothing listens there; start a server with: {command}")
        }
        (io::ErrorKind::ConnectionRefused, None) => {
            "nothing listens there: check the address, and that the server runs".to_owned()
        }
        (io::ErrorKind::TimedOut, _) => "no answer: check the address, and any firewall before it".to_owned(),
        _ => "check the host name and the network".to_owned(),
    }
}

/// Whether connections to other machines go through a proxy, which a probe would bypass.
fn has_proxy() -> bool {
    let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"].into_iter().any(set)
}

/// The scheme of a URL, and its host and port.
pub(crate) fn origin_of(url: &str) -> Option<(&str, String)> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next().filter(|authority| !authority.is_empty())?;
    let has_port = authority.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let port = if scheme == "https" { 443 } else { 80 };
    Some((scheme, if has_port { authority.to_owned() } else { format!("{authority}:{port}") }))
}

/// The host of a URL, without its port.
pub(crate) fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match authority.rsplit_once(':') {
        Some((host, port)) if port.parse::<u16>().is_ok() => host,
        _ => authority,
    }
}

/// The path of a URL without a trailing slash.
pub(crate) fn path_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    rest.find('/').map_or("", |at| rest[at..].trim_end_matches('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_split_into_origin_host_and_path() {
        assert_eq!(origin_of("http://h:1/a?b"), Some(("http", "h:1".to_owned())));
        assert_eq!(origin_of("https://[::1]"), Some(("https", "[::1]:443".to_owned())));
        assert_eq!(origin_of("h:1"), None);
        assert_eq!((host_of("http://[::1]:9/a"), host_of("http://h?x:1")), ("[::1]", "h"));
        assert_eq!((path_of("http://h:1/"), path_of("http://h/a/b/")), ("", "/a/b"));
    }
}
