//! Which URLs are called through a proxy of the environment: `HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY` and `NO_PROXY`, in
//! capital or small letters. Loopback addresses never are.

use std::net::IpAddr;

use http::Uri;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};

/// The proxy of the environment for this URL; `None` if it is called directly.
pub(super) fn from_env(url: &Uri) -> Option<Intercept> {
    select(&Matcher::from_env(), url)
}

fn select(proxies: &Matcher, url: &Uri) -> Option<Intercept> {
    if is_loopback(url) { None } else { proxies.intercept(url) }
}

fn is_loopback(url: &Uri) -> bool {
    let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_addresses_bypass_the_proxy() {
        let proxies = Matcher::builder().all("http://proxy.example:3128").no("direct.example").build();
        for (url, proxied) in [
            ("http://127.0.0.1:1/", false),
            ("http://[::1]/", false),
            ("http://LOCALHOST/", false),
            ("https://direct.example/", false),
            ("http://10.0.0.1/", true),
            ("https://localhost.example/", true),
        ] {
            assert_eq!(select(&proxies, &Uri::from_static(url)).is_some(), proxied, "{url}");
        }
    }
}
