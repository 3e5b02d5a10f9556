//! Which hosts a request may name.
//!
//! A name that an attacker owns can be made to resolve to this machine, and a page loaded from that name then reaches
//! the server as its own origin (DNS rebinding). Such a request has the attacker's name in `Host`, so only known names
//! are served. Ports are not compared: tunnels and port mappings change them, and an attacker gains nothing by one.
//!
//! Pure: `host_and_origin.rs` applies this to requests.

use std::{
    fmt::{self, Display, Formatter},
    net::IpAddr,
    str::FromStr,
};

use http::{HeaderMap, HeaderValue, Uri, Version, header};

use crate::addresses::authority::{Authority, HostName};

/// Where requests come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listener {
    /// An application that has the router mounted; its listener is unknown.
    Application,
    /// Standard input of this process: no page can send there, so any host is accepted.
    #[cfg(feature = "mcp")]
    Stdio,
    /// A socket of ours, bound to this address.
    Bound(IpAddr),
}

impl Listener {
    /// Whether only this machine can reach it.
    pub(crate) fn is_loopback(self) -> bool {
        matches!(self, Self::Bound(address) if address.to_canonical().is_loopback())
    }
}

/// A host that requests may name, with any port unless it has one.
#[derive(Clone, Debug)]
pub struct AllowedHost(Authority<String>);

impl AllowedHost {
    fn matches(&self, named: &Authority<&str>) -> bool {
        self.0.host.is_same(&named.host) && self.0.port.is_none_or(|port| named.port == Some(port))
    }
}

impl FromStr for AllowedHost {
    /// What is wrong, as the end of a sentence that begins with the text.
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let authority = Authority::parse(text).ok_or(
            "is not a host with or without a port, such as agents.example.com, 10.0.0.5:4242 or [::1]; schemes, \
             paths and wildcards are not supported",
        )?;
        Ok(Self(authority.into_owned()))
    }
}

impl Display for AllowedHost {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// Why a request is refused because of its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostError {
    /// No `Host` and, over HTTP/2, no `:authority` either.
    Missing,
    /// `Host` more than once.
    Repeated,
    /// Not a host with or without a port.
    Invalid,
    /// Not a host of this server.
    Foreign,
    /// Not a loopback name, for a mounted router of which nobody has said which hosts it has.
    Unconfigured,
}

/// The hosts that a mounted router accepts where neither a public URL nor allowed hosts are configured: its listener is
/// unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MountedHosts {
    /// Loopback names.
    #[default]
    Loopback,
    /// Any, also beside configured ones.
    Any,
}

/// The hosts of a server.
#[derive(Debug)]
pub(crate) struct HostPolicy {
    /// The host of `public_url`, and `allowed_hosts`.
    listed: Vec<AllowedHost>,
    /// Whether either is configured.
    is_restricted: bool,
    mounted: MountedHosts,
}

impl HostPolicy {
    pub(crate) fn new(
        public_url: Option<&str>,
        allowed_hosts: Vec<AllowedHost>,
        mounted: MountedHosts,
    ) -> Self {
        let is_restricted = public_url.is_some() || !allowed_hosts.is_empty();
        let public = public_url.and_then(public_authority).map(|(_, authority)| {
            // Some proxies send the host without its port.
            AllowedHost(Authority { port: None, ..authority.into_owned() })
        });
        Self { listed: allowed_hosts.into_iter().chain(public).collect(), is_restricted, mounted }
    }

    /// The host that a request names: that of its target, which is `:authority` over HTTP/2 and the absolute form
    /// before that, else `Host`. Both have to be hosts of this server. `None` only in an application: its own server
    /// has read the request, or a test has made it.
    pub(crate) fn check<'a>(
        &self,
        listener: Listener,
        version: Version,
        uri: &'a Uri,
        headers: &'a HeaderMap,
    ) -> Result<Option<Authority<&'a str>>, HostError> {
        let mut values = headers.get_all(header::HOST).iter();
        let host = values.next();
        if values.next().is_some() {
            return Err(HostError::Repeated);
        }
        let target = uri.authority().map(|authority| parse(authority.as_str())).transpose()?;
        let host = host.map(parse_value).transpose()?;
        let required = if version < Version::HTTP_2 { host } else { target.or(host) };
        if required.is_none() && matches!(listener, Listener::Bound(_)) {
            return Err(HostError::Missing);
        }
        if target.iter().chain(&host).any(|named| !self.allows(listener, named)) {
            let is_configured = self.is_restricted || listener != Listener::Application;
            return Err(if is_configured { HostError::Foreign } else { HostError::Unconfigured });
        }
        Ok(target.or(host))
    }

    fn allows(&self, listener: Listener, named: &Authority<&str>) -> bool {
        let by_listener = match listener {
            Listener::Bound(address) if address.to_canonical().is_loopback() => named.host.is_loopback(),
            Listener::Bound(address) => !self.is_restricted || is_own_address(address, &named.host),
            Listener::Application => match self.mounted {
                MountedHosts::Any => true,
                MountedHosts::Loopback => !self.is_restricted && named.host.is_loopback(),
            },
            #[cfg(feature = "mcp")]
            Listener::Stdio => true,
        };
        by_listener || self.listed.iter().any(|host| host.matches(named))
    }
}

/// Whether a host is the address of a listener. A listener on all addresses has every address: which ones reach it may
/// be decided outside of this machine, and DNS rebinding needs a name.
fn is_own_address(address: IpAddr, host: &HostName<&str>) -> bool {
    match host {
        HostName::Address(named) => address.is_unspecified() || address.to_canonical() == *named,
        HostName::Name(_) => false,
    }
}

fn parse(text: &str) -> Result<Authority<&str>, HostError> {
    Authority::parse(text).ok_or(HostError::Invalid)
}

fn parse_value(value: &HeaderValue) -> Result<Authority<&str>, HostError> {
    parse(value.to_str().map_err(|_| HostError::Invalid)?)
}

/// The scheme and the host of a base URL; `None` if it has none.
pub(crate) fn public_authority(url: &str) -> Option<(&str, Authority<&str>)> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let is_http = ["http", "https"].iter().any(|known| scheme.eq_ignore_ascii_case(known));
    Some((scheme, Authority::parse(authority)?)).filter(|_| is_http)
}

/// Whether a text can be the base URL of a server: `http` or `https`, and a host.
pub fn is_public_url(url: &str) -> bool {
    public_authority(url).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOOPBACK: Listener = Listener::Bound(IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));

    fn policy(public_url: &str, allowed: &[&str]) -> HostPolicy {
        let public_url = Some(public_url).filter(|url| !url.is_empty());
        let allowed = allowed.iter().map(|host| host.parse().unwrap()).collect();
        HostPolicy::new(public_url, allowed, MountedHosts::default())
    }

    fn bound(address: &str) -> Listener {
        Listener::Bound(address.parse().unwrap())
    }

    /// The result for a request of HTTP/1.1 with this target and these `Host` headers.
    fn check(
        policy: &HostPolicy,
        listener: Listener,
        target: &str,
        hosts: &[&[u8]],
    ) -> Result<Option<String>, HostError> {
        let mut headers = HeaderMap::new();
        for host in hosts {
            headers.append(header::HOST, HeaderValue::from_bytes(host).unwrap());
        }
        let uri: Uri = target.parse().unwrap();
        let found = policy.check(listener, Version::HTTP_11, &uri, &headers)?;
        Ok(found.map(|authority| authority.to_string()))
    }

    fn is_allowed(policy: &HostPolicy, listener: Listener, host: &str) -> bool {
        match check(policy, listener, "/", &[host.as_bytes()]) {
            Ok(_) => true,
            Err(HostError::Foreign | HostError::Unconfigured) => false,
            Err(other) => panic!("{host}: {other:?}"),
        }
    }

    #[test]
    fn loopback_listener_serves_loopback_names_and_configured_hosts() {
        let none = policy("", &[]);
        let some = policy("https://agents.example:8443/below", &["Tunnel.example", "other.example:99"]);
        for listener in [LOOPBACK, bound("::1"), bound("127.0.0.7"), bound("::ffff:127.0.0.1")] {
            for host in ["localhost", "LOCALHOST.:1", "127.0.0.1:4242", "[::1]", "a.localhost", "127.9.9.9"] {
                assert!(is_allowed(&none, listener, host), "{host}");
                assert!(is_allowed(&some, listener, host), "{host}");
            }
            for host in ["evil.test", "127.1", "0.0.0.0:4242", "[::]", "10.0.0.1", "localhost.evil.test"] {
                assert!(!is_allowed(&none, listener, host), "{host}");
                assert!(!is_allowed(&some, listener, host), "{host}");
            }
            for host in ["agents.example", "AGENTS.example.:8443", "agents.example:1", "tunnel.example:5"] {
                assert!(!is_allowed(&none, listener, host), "{host}");
                assert!(is_allowed(&some, listener, host), "{host}");
            }
            assert!(is_allowed(&some, listener, "other.example:99"));
            assert!(!is_allowed(&some, listener, "other.example:98"));
            assert!(!is_allowed(&some, listener, "other.example"));
        }
    }

    #[test]
    fn other_listener_serves_any_host_only_without_configured_hosts() {
        let none = policy("", &[]);
        for host in ["evil.test", "localhost", "10.0.0.5:4242"] {
            assert!(is_allowed(&none, bound("10.0.0.5"), host), "{host}");
        }
        for some in [policy("https://agents.example", &[]), policy("", &["agents.example"])] {
            for host in ["agents.example", "10.0.0.5", "10.0.0.5:4242", "[::ffff:10.0.0.5]:4242"] {
                assert!(is_allowed(&some, bound("10.0.0.5"), host), "{host}");
            }
            for host in ["evil.test", "localhost", "127.0.0.1", "10.0.0.6"] {
                assert!(!is_allowed(&some, bound("10.0.0.5"), host), "{host}");
            }
            for listener in [bound("0.0.0.0"), bound("::")] {
                assert!(is_allowed(&some, listener, "192.0.2.7:4242"));
                assert!(is_allowed(&some, listener, "[2001:db8::7]:4242"));
                assert!(!is_allowed(&some, listener, "evil.test"));
                assert!(!is_allowed(&some, listener, "localhost"));
            }
        }
    }

    #[test]
    fn application_accepts_loopback_names_unless_hosts_are_configured() {
        let none = policy("", &[]);
        for host in ["localhost:1", "127.0.0.1", "[::1]"] {
            assert!(is_allowed(&none, Listener::Application, host), "{host}");
        }
        let foreign = check(&none, Listener::Application, "/", &[b"evil.test"]);
        assert_eq!(foreign, Err(HostError::Unconfigured));
        let any = HostPolicy { mounted: MountedHosts::Any, ..policy("", &["agents.example"]) };
        assert!(is_allowed(&any, Listener::Application, "evil.test"));
        #[cfg(feature = "mcp")]
        assert!(is_allowed(&none, Listener::Stdio, "evil.test"));
        for some in [policy("https://agents.example/below", &[]), policy("", &["agents.example"])] {
            assert!(is_allowed(&some, Listener::Application, "agents.example"));
            assert!(!is_allowed(&some, Listener::Application, "evil.test"));
            assert!(!is_allowed(&some, Listener::Application, "127.0.0.1"));
        }
        // A URL that has no host allows none.
        assert!(!is_allowed(&policy("agents.example", &[]), Listener::Application, "agents.example"));
    }

    /// The server of an application has decided already whether a request needs one.
    #[test]
    fn application_may_omit_the_host_and_not_repeat_it() {
        let at = |hosts: &[&[u8]]| check(&policy("", &[]), Listener::Application, "/", hosts);
        assert_eq!(at(&[]), Ok(None));
        assert_eq!(at(&[b"a", b"a"]), Err(HostError::Repeated));
    }

    #[test]
    fn public_url_needs_scheme_and_host() {
        for url in ["https://a.example", "http://127.0.0.1:1/below", "HTTPS://[::1]"] {
            assert!(is_public_url(url), "{url}");
        }
        for url in
            ["", "a.example", "ftp://a.example", "https://", "https://user@a.example", "https://ä.example"]
        {
            assert!(!is_public_url(url), "{url}");
        }
    }
}
