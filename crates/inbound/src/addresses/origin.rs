//! The server's origin (scheme and host) as its clients see it, for the URLs in cards.

use std::net::IpAddr;

use http::{HeaderMap, Uri, header};
use ipnet::IpNet;

use crate::{
    addresses::{
        authority::Authority,
        forwarded::{self, Forwarded},
    },
    documents::card::CacheScope,
    request::connection::Connection,
};

/// How the origin is determined.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origins {
    /// Configured scheme and host; takes precedence over the request.
    pub(crate) public_url: Option<String>,
    /// Networks of proxies whose forwarding headers are trusted.
    pub(crate) trusted_proxies: Vec<IpNet>,
}

impl Origins {
    /// The origin: as configured, else from a trusted proxy's headers, else from the request.
    pub(crate) fn of(&self, uri: &Uri, headers: &HeaderMap, connection: &Connection) -> String {
        if let Some(url) = &self.public_url {
            return url.clone();
        }
        let from_proxy = connection.peer.is_some_and(|peer| self.is_proxy(peer));
        let forwarded = from_proxy.then(|| Forwarded::read(headers, |address| self.is_proxy(address)));
        let Forwarded { scheme, host } = forwarded.unwrap_or_default();
        // HTTP/2 has the authority in the target. So has the absolute form of HTTP/1.1, and then `Host` is ignored
        // (RFC 9112 3.2.2).
        let target = || uri.authority().map(|authority| authority.as_str().to_owned());
        let asked = || headers.get(header::HOST).and_then(|host| host.to_str().ok()).map(str::to_owned);
        let host = host.or_else(target).or_else(asked);
        // In one spelling, because cards are kept by their URL.
        let host = host.as_deref().and_then(Authority::parse).map(|host| host.into_owned().to_string());
        format!(
            "{}://{}",
            scheme.unwrap_or(connection.scheme.as_str()),
            host.as_deref().unwrap_or("localhost")
        )
    }

    /// The address of the client: as a trusted proxy reports it, else that of the peer.
    pub(crate) fn client_address(&self, headers: &HeaderMap, peer: Option<IpAddr>) -> Option<IpAddr> {
        let peer = peer?;
        let forwarded =
            || forwarded::client_address(headers, |address| self.is_proxy(address)).unwrap_or(peer);
        Some(if self.is_proxy(peer) { forwarded() } else { peer })
    }

    /// Which caches may keep what contains the origin.
    pub(crate) fn cache_scope(&self) -> CacheScope {
        if self.public_url.is_some() { CacheScope::Public } else { CacheScope::Private }
    }

    fn is_proxy(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.trusted_proxies.iter().any(|proxy| proxy.contains(&address))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(origins: &Origins, peer: &str, headers: &[(&'static str, &str)]) -> String {
        of_target(origins, "/", peer, headers)
    }

    fn of_target(origins: &Origins, target: &str, peer: &str, headers: &[(&'static str, &str)]) -> String {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        let connection = Connection { peer: Some(peer.parse().unwrap()), ..Connection::APPLICATION };
        origins.of(&target.parse().unwrap(), &map, &connection)
    }

    #[test]
    fn only_trusted_proxies_set_the_origin() {
        let network = "10.0.0.0/8".parse().unwrap();
        let origins = Origins { public_url: None, trusted_proxies: vec![network] };
        assert_eq!(origins.cache_scope(), CacheScope::Private);
        let old = [("host", "inner:1"), ("x-forwarded-host", "a.example"), ("x-forwarded-proto", "https")];
        assert_eq!(of(&origins, "10.9.8.7", &old), "https://a.example");
        assert_eq!(of(&origins, "::ffff:10.9.8.7", &old), "https://a.example");
        assert_eq!(of(&origins, "11.0.0.1", &old), "http://inner:1");
        assert_eq!(of(&origins, "::1", &old), "http://inner:1");
        let new =
            [("host", "inner:1"), ("forwarded", "for=x, for=1.2.3.4;proto=https;host=\"b.example:8443\"")];
        assert_eq!(of(&origins, "10.0.0.1", &new), "https://b.example:8443");
        let odd = [("host", "inner:1"), ("forwarded", "proto=gopher;host=evil/path")];
        assert_eq!(of(&origins, "10.0.0.1", &odd), "http://localhost");
        let fixed = Origins { public_url: Some("https://c.example".into()), ..origins };
        assert_eq!(of(&fixed, "10.0.0.1", &old), "https://c.example");
        assert_eq!(fixed.cache_scope(), CacheScope::Public);
    }

    #[test]
    fn only_trusted_proxies_report_the_address_of_the_client() {
        let network = "10.0.0.0/8".parse().unwrap();
        let origins = Origins { public_url: None, trusted_proxies: vec![network] };
        let client = |peer: &str, name: &'static str, value: &str| {
            let headers =
                HeaderMap::from_iter([(http::HeaderName::from_static(name), value.parse().unwrap())]);
            origins.client_address(&headers, Some(peer.parse().unwrap())).unwrap().to_string()
        };
        let separate = "x-forwarded-for";
        assert_eq!(client("10.0.0.1", separate, "6.6.6.6, 1.2.3.4, 10.0.0.2"), "1.2.3.4");
        assert_eq!(client("11.0.0.1", separate, "1.2.3.4"), "11.0.0.1");
        assert_eq!(client("10.0.0.1", separate, "6.6.6.6, unknown"), "0.0.0.0");
        assert_eq!(client("10.0.0.1", separate, "2001:db8::1"), "2001:db8::1");
        assert_eq!(client("10.0.0.1", separate, "10.0.0.3, 10.0.0.2"), "10.0.0.3");
        let standard = "for=6.6.6.6, for=\"[2001:db8::1]:99\";proto=https, for=10.0.0.2";
        assert_eq!(client("10.0.0.1", "forwarded", standard), "2001:db8::1");
        assert_eq!(client("10.0.0.1", "accept", "*/*"), "10.0.0.1");
    }

    #[test]
    fn target_takes_precedence_over_host() {
        let (origins, host) = (Origins::default(), [("host", "b.example")]);
        assert_eq!(of_target(&origins, "http://a.example:1/x", "::1", &host), "http://a.example:1");
        assert_eq!(of_target(&origins, "/x", "::1", &host), "http://b.example");
        assert_eq!(of_target(&origins, "http://user@a.example/x", "::1", &host), "http://localhost");
    }
}
