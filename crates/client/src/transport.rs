//! One HTTP exchange: the only code that builds an HTTP client.

use std::time::Duration;

use http::{HeaderMap, Method, header};
use reqwest::{Response, Url, redirect};

use crate::{ClientTls, Error};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Idle time before TCP keep-alive probes.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
const NAME: &str = concat!("a2ad/", env!("CARGO_PKG_VERSION"));

/// An HTTP connection pool.
#[derive(Clone)]
pub(crate) struct Transport(reqwest::Client);

impl Transport {
    /// A transport for this URL. Proxies from the environment are used except for loopback addresses.
    #[expect(clippy::disallowed_methods, reason = "the one place of this crate that builds an HTTP client")]
    pub(crate) fn to(url: &Url, tls: &ClientTls) -> Result<Self, Error> {
        let tls = tls.config(url.scheme() == "http").map_err(Error::transport)?;
        let mut builder = reqwest::Client::builder()
            .redirect(redirect::Policy::none())
            .referer(false)
            .connect_timeout(CONNECT_TIMEOUT)
            .tcp_keepalive(KEEP_ALIVE)
            .tcp_nodelay(true)
            .user_agent(NAME)
            .tls_backend_preconfigured(tls);
        if is_loopback(url) {
            builder = builder.no_proxy();
        }
        builder.build().map(Self).map_err(Error::transport)
    }

    /// Sends a request; returns when the response headers have arrived.
    pub(crate) async fn send(
        &self,
        method: Method,
        url: Url,
        headers: HeaderMap,
        body: Vec<u8>,
    ) -> Result<Response, Error> {
        let response = self.0.request(method, url).headers(headers).body(body).send().await;
        let response = response.map_err(Error::transport)?;
        match response.headers().get(header::LOCATION) {
            Some(location) if response.status().is_redirection() => {
                Err(Error::Redirected { location: String::from_utf8_lossy(location.as_bytes()).into_owned() })
            }
            _ => Ok(response),
        }
    }
}

/// Parses an http or https URL without credentials.
pub(crate) fn parse_url(text: &str) -> Result<Url, Error> {
    let refuse = |problem| Error::Url { url: text.to_owned(), problem };
    if !text.contains("://") {
        return Err(refuse("it is not absolute, start it with http:// or https://"));
    }
    let url = Url::parse(text).map_err(|_| refuse("it is not a URL"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(refuse("its scheme is neither http nor https"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Error::Url {
            url: without_secrets(url),
            problem: "credentials are not allowed in a URL",
        });
    }
    Ok(url)
}

/// Reads a body up to the size limit.
pub(crate) async fn read_body(mut response: Response, limit_bytes: usize) -> Result<Vec<u8>, Error> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(Error::transport)? {
        if body.len() + chunk.len() > limit_bytes {
            return Err(Error::TooLarge { limit_bytes });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn without_secrets(mut url: Url) -> String {
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_url_error_has_the_reason() {
        let cases = [
            ("ftp://agent.example/", "neither http nor https"),
            ("agent.example:80", "not absolute"),
            ("/rpc", "not absolute"),
            ("", "not absolute"),
            ("http://", "not a URL"),
            ("http://a b/", "not a URL"),
            ("https://user:secret@agent.example/", "credentials"),
        ];
        for (url, expected) in cases {
            let problem = parse_url(url).unwrap_err().to_string();
            assert!(problem.contains(expected), "{url}: {problem}");
            assert!(!problem.contains("secret"), "{problem}");
        }
        for url in ["http://127.0.0.1:8080/a?b=c", "https://agent.example/"] {
            assert_eq!(parse_url(url).unwrap().as_str(), url);
        }
    }

    #[test]
    fn loopback_addresses_bypass_the_proxy() {
        for (url, loopback) in [
            ("http://127.0.0.1:1/", true),
            ("http://[::1]/", true),
            ("http://LOCALHOST/", true),
            ("http://10.0.0.1/", false),
            ("https://localhost.example/", false),
        ] {
            assert_eq!(is_loopback(&parse_url(url).unwrap()), loopback, "{url}");
        }
    }
}
