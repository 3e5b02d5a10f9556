//! The server's origin (scheme and host) as its clients see it, for the URLs in cards.

use std::net::IpAddr;

use http::{Extensions, HeaderMap, Uri, header};
use ipnet::IpNet;

/// The peer's address; our own accept loop adds it to a request's extensions.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) IpAddr);

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
    pub(crate) fn of(&self, uri: &Uri, headers: &HeaderMap, extensions: &Extensions) -> String {
        if let Some(url) = &self.public_url {
            return url.clone();
        }
        let peer = extensions.get::<Peer>();
        let peer = peer.map(|peer| peer.0.to_canonical());
        let trusted = peer.is_some_and(|peer| self.trusted_proxies.iter().any(|proxy| proxy.contains(&peer)));
        let (scheme, host) = if trusted { forwarded(headers) } else { (None, None) };
        // HTTP/2 has the authority in the target, HTTP/1.1 in the header `Host`.
        let target = || uri.authority().map(|authority| authority.as_str().to_owned());
        let asked = || headers.get(header::HOST).and_then(|host| host.to_str().ok()).map(str::to_owned);
        let host = host.or_else(asked).or_else(target).filter(|host| is_valid_host(host));
        format!("{}://{}", scheme.unwrap_or("http"), host.as_deref().unwrap_or("localhost"))
    }
}

/// Scheme and host from a proxy's headers: `Forwarded` (RFC 7239), else the older `X-Forwarded-*`. The first hop is the
/// client's.
fn forwarded(headers: &HeaderMap) -> (Option<&'static str>, Option<String>) {
    let first = |name: &str| {
        let value = headers.get(name)?.to_str().ok()?.split(',').next()?.trim();
        (!value.is_empty()).then(|| value.to_owned())
    };
    let pairs = first("forwarded").unwrap_or_default();
    let parameter = |name: &str| {
        let mut pairs = pairs.split(';').filter_map(|pair| pair.trim().split_once('='));
        let value = pairs.find(|pair| pair.0.eq_ignore_ascii_case(name))?.1.trim_matches('"');
        Some(value.to_owned())
    };
    let scheme = parameter("proto").or_else(|| first("x-forwarded-proto"));
    let scheme = scheme.and_then(|scheme| match scheme.to_ascii_lowercase().as_str() {
        "https" => Some("https"),
        "http" => Some("http"),
        _ => None,
    });
    (scheme, parameter("host").or_else(|| first("x-forwarded-host")))
}

fn is_valid_host(host: &str) -> bool {
    !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(origins: &Origins, peer: &str, headers: &[(&'static str, &str)]) -> String {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().unwrap());
        }
        let mut extensions = Extensions::new();
        extensions.insert(Peer(peer.parse().unwrap()));
        origins.of(&Uri::from_static("/"), &map, &extensions)
    }

    #[test]
    fn only_trusted_proxies_set_the_origin() {
        let network = "10.0.0.0/8".parse().unwrap();
        let origins = Origins { public_url: None, trusted_proxies: vec![network] };
        let old = [("host", "inner:1"), ("x-forwarded-host", "a.example"), ("x-forwarded-proto", "https")];
        assert_eq!(of(&origins, "10.9.8.7", &old), "https://a.example");
        assert_eq!(of(&origins, "::ffff:10.9.8.7", &old), "https://a.example");
        assert_eq!(of(&origins, "11.0.0.1", &old), "http://inner:1");
        assert_eq!(of(&origins, "::1", &old), "http://inner:1");
        let new =
            [("host", "inner:1"), ("forwarded", "for=1.2.3.4;proto=https;host=\"b.example:8443\", for=x")];
        assert_eq!(of(&origins, "10.0.0.1", &new), "https://b.example:8443");
        let odd = [("host", "inner:1"), ("forwarded", "proto=gopher;host=evil/path")];
        assert_eq!(of(&origins, "10.0.0.1", &odd), "http://localhost");
        let fixed = Origins { public_url: Some("https://c.example".into()), ..origins };
        assert_eq!(of(&fixed, "10.0.0.1", &old), "https://c.example");
    }
}
