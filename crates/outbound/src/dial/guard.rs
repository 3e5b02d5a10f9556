//! Which URLs a peer may choose (pure).
//!
//! URLs are parsed as browsers do, so that every spelling of an address (`2130706433`, `0x7f.1`, full-width digits)
//! is judged as the address. A URL that passes [`check_url`] may still be forbidden when it is used: what a name
//! resolves to is checked for each connection, with `Target::check_address`.

use std::net::{IpAddr, SocketAddr};

use url::{Host, Url};

use super::{
    DialPolicy,
    address::{canonical, is_public},
};

/// Names of this machine and of local networks, with everything below them.
const LOCAL_NAMES: [&str; 3] = ["localhost", "internal", "local"];

/// Why a URL or an address is not allowed. The texts contain neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Forbidden {
    /// Not an absolute URL with a host, or with characters that parsers treat differently.
    #[error("it is not an absolute http or https URL")]
    NotAUrl,
    /// Plain `http` without `outbound.allow_http`, or another scheme.
    #[error("its scheme must be https, unless the operator sets outbound.allow_http")]
    Scheme,
    /// User name or password.
    #[error("a URL must not contain a user name or password")]
    Credentials,
    /// A port that is neither usual nor in `outbound.allow`.
    #[error("its port is not allowed")]
    Port,
    /// `localhost` and names of local networks.
    #[error("its host is a local name")]
    LocalName,
    /// Private, loopback, link-local, reserved and so on.
    #[error("its address is not public")]
    NotPublic,
    /// This server.
    #[error("its address is that of this server")]
    OwnAddress,
    /// The name has more addresses than are checked.
    #[error("its name has too many addresses")]
    TooManyAddresses,
}

/// Checks a URL when it is registered: its syntax, and its host if that is an address.
pub fn check_url(text: &str, policy: &DialPolicy) -> Result<Url, Forbidden> {
    let url = parse(text)?;
    let target = Target::from_peer(&url, policy)?;
    if let Some(address) = target.literal() {
        target.check_address(address, policy)?;
    }
    Ok(url)
}

/// An http or https URL without credentials.
pub(super) fn parse(text: &str) -> Result<Url, Forbidden> {
    // The parser removes white space and control characters, which others may not.
    if text.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(Forbidden::NotAUrl);
    }
    let url = Url::parse(text).map_err(|_| Forbidden::NotAUrl)?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(Forbidden::Scheme);
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Forbidden::Credentials);
    }
    Ok(url)
}

/// Where a request goes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Target {
    pub(super) host: Host<String>,
    pub(super) port: u16,
    /// The port or the name is allowed only for addresses in `outbound.allow`.
    only_allowed: Option<Forbidden>,
}

impl Target {
    /// The target of a URL that has been parsed by [`parse`], whoever chose it.
    pub(super) fn of(url: &Url) -> Result<Self, Forbidden> {
        let host = url.host().ok_or(Forbidden::NotAUrl)?.to_owned();
        let port = url.port_or_known_default().ok_or(Forbidden::NotAUrl)?;
        Ok(Self { host, port, only_allowed: None })
    }

    /// The target of a peer's URL.
    pub(super) fn from_peer(url: &Url, policy: &DialPolicy) -> Result<Self, Forbidden> {
        let target = Self::of(url)?;
        if url.scheme() != "https" && !policy.allow_http {
            return Err(Forbidden::Scheme);
        }
        let usual_port = matches!((url.scheme(), target.port), ("http", 80) | (_, 443 | 8443));
        let only_allowed = match &target.host {
            Host::Domain(name) if is_local_name(name) => Some(Forbidden::LocalName),
            _ if !usual_port => Some(Forbidden::Port),
            _ => None,
        };
        match only_allowed {
            Some(problem) if policy.allow.is_empty() => Err(problem),
            only_allowed => Ok(Self { only_allowed, ..target }),
        }
    }

    /// The host, if it is an address and not a name.
    pub(super) fn literal(&self) -> Option<IpAddr> {
        match &self.host {
            Host::Domain(_) => None,
            Host::Ipv4(address) => Some((*address).into()),
            Host::Ipv6(address) => Some((*address).into()),
        }
    }

    /// Checks one address of the host.
    pub(super) fn check_address(&self, address: IpAddr, policy: &DialPolicy) -> Result<(), Forbidden> {
        let reached = SocketAddr::new(canonical(address), self.port);
        let is_own = |own: &SocketAddr| own.port() == reached.port() && canonical(own.ip()) == reached.ip();
        if policy.own_addresses.iter().any(is_own) {
            return Err(Forbidden::OwnAddress);
        }
        // The system connects the unspecified address to loopback, whatever is allowed.
        if reached.ip().is_unspecified() {
            return Err(Forbidden::NotPublic);
        }
        if policy.allow.iter().any(|net| net.contains(&address.to_canonical())) {
            return Ok(());
        }
        match self.only_allowed {
            Some(problem) => Err(problem),
            None if is_public(address) => Ok(()),
            None => Err(Forbidden::NotPublic),
        }
    }
}

fn is_local_name(name: &str) -> bool {
    let name = name.trim_end_matches('.');
    let last = name.rsplit('.').next().unwrap_or_default();
    LOCAL_NAMES.iter().any(|local| last.eq_ignore_ascii_case(local))
}

#[cfg(test)]
mod tests {
    use super::{Forbidden::*, *};

    #[test]
    fn allowed_networks_lift_the_rules_for_ports_and_names() {
        let allow = vec!["10.1.0.0/16".parse().unwrap()];
        let policy = DialPolicy { allow, allow_http: true, own_addresses: Vec::new() };
        for (url, address, expected) in [
            ("http://localhost:9000/", "10.1.2.3", Ok(())),
            ("http://localhost:9000/", "127.0.0.1", Err(LocalName)),
            ("http://localhost/", "8.8.8.8", Err(LocalName)),
            ("http://example.com:9000/", "10.1.2.3", Ok(())),
            ("http://example.com:9000/", "::ffff:10.1.2.3", Ok(())),
            ("http://example.com:9000/", "8.8.8.8", Err(Port)),
            ("http://example.com/", "8.8.8.8", Ok(())),
            ("http://example.com/", "10.2.0.1", Err(NotPublic)),
        ] {
            let target = Target::from_peer(&parse(url).unwrap(), &policy).unwrap();
            assert_eq!(target.check_address(address.parse().unwrap(), &policy), expected, "{url} {address}");
        }
    }
}
