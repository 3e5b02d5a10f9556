//! Which web pages may call: the `Origin` of a request, and the headers of CORS.
//!
//! A browser sends some requests of any page without a question, such as a POST of plain text, and only hides the
//! response from the page. So a request of a page from elsewhere is refused here, whatever its content type. Pages of
//! the origins in `server.cors_origins` may call: the browser asks first (preflight), and may show them the response.
//!
//! A page that embeds a URL of the server, for example as an image, sends no `Origin`. Browsers mark such a request with
//! `Sec-Fetch-Site` if the server is on loopback or uses TLS.
//!
//! Pure: `host_and_origin.rs` applies this to requests.

use std::{
    fmt::{self, Display, Formatter},
    str::FromStr,
};

use axum::{body::Body, response::Response};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};

use crate::addresses::{authority::Authority, host::public_authority};

/// The methods that the routes have.
const METHODS: HeaderValue = HeaderValue::from_static("GET, HEAD, POST, DELETE");

/// The request headers that calls may have.
const REQUEST_HEADERS: HeaderValue = HeaderValue::from_static(
    "Content-Type, Authorization, X-Api-Key, X-End-User-Token, A2A-Version, A2A-Extensions, X-A2A-Extensions, \
     Idempotency-Key, Last-Event-ID, If-None-Match, Prefer, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name",
);

/// The response headers that pages may read, beside those that they always may.
const RESPONSE_HEADERS: HeaderValue = HeaderValue::from_static(
    "A2AD-Context, A2AD-Dialect, A2AD-Push-Health, A2AD-Replayed, A2AD-Webhook-Secret, A2AD-Task, A2AD-State, A2AD-Unreadable, A2A-Extensions, X-A2A-Extensions, Allow, ETag, Location, \
     Mcp-Session-Id, Retry-After, WWW-Authenticate",
);

/// How long browsers may remember the response to a preflight, in seconds.
const PREFLIGHT_MAX_AGE: HeaderValue = HeaderValue::from_static("600");

/// `Access-Control-Allow-Origin` of public documents.
pub(crate) const ANY_ORIGIN: HeaderValue = HeaderValue::from_static("*");

/// An origin whose pages may call, such as `https://app.example.com`.
#[derive(Clone, Debug)]
pub struct CorsOrigin(WebOrigin<String>);

impl FromStr for CorsOrigin {
    /// What is wrong, as the end of a sentence that begins with the text.
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "*" => return Err("is not an origin; list each one, because any page could call otherwise"),
            "null" => {
                return Err("cannot be allowed: sandboxed pages and local files of anybody have this origin");
            }
            _ => {}
        }
        let origin = WebOrigin::parse(text).ok_or(
            "is not an origin such as https://app.example.com or http://localhost:3000, without a path",
        )?;
        let scheme = origin.scheme.to_ascii_lowercase();
        Ok(Self(WebOrigin { scheme, authority: origin.authority.into_owned() }))
    }
}

impl Display for CorsOrigin {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "{}://{}", self.0.scheme, self.0.authority)
    }
}

/// Scheme, host and port of a page.
#[derive(Clone, Copy, Debug)]
struct WebOrigin<S> {
    scheme: S,
    authority: Authority<S>,
}

impl<'a> WebOrigin<&'a str> {
    fn parse(text: &'a str) -> Option<Self> {
        let (scheme, authority) = text.split_once("://")?;
        let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte);
        let is_scheme =
            scheme.starts_with(|first: char| first.is_ascii_alphabetic()) && scheme.bytes().all(is_valid);
        Some(Self { scheme, authority: Authority::parse(authority)? }).filter(|_| is_scheme)
    }
}

impl<S: AsRef<str>> WebOrigin<S> {
    fn port(&self) -> Option<u16> {
        self.authority.port.or_else(|| default_port(self.scheme.as_ref()))
    }

    fn is_same<T: AsRef<str>>(&self, other: &WebOrigin<T>) -> bool {
        self.scheme.as_ref().eq_ignore_ascii_case(other.scheme.as_ref()) && self.has_host_and_port_of(other)
    }

    fn has_host_and_port_of<T: AsRef<str>>(&self, other: &WebOrigin<T>) -> bool {
        self.authority.host.is_same(&other.authority.host) && self.port() == other.port()
    }
}

fn default_port(scheme: &str) -> Option<u16> {
    let known = [("http", 80), ("https", 443)];
    known.into_iter().find(|(name, _)| scheme.eq_ignore_ascii_case(name)).map(|(_, port)| port)
}

/// What a request reveals about the page that sends it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum OriginVerdict {
    /// There is none: the client is not a page, a page of this server reads, or the user opens a URL.
    Absent,
    /// A page of this server.
    Same,
    /// A page that may call; the value is its origin.
    Allowed(HeaderValue),
    /// Any other page.
    Foreign,
}

/// The origins of a server's callers.
#[derive(Debug)]
pub(crate) struct OriginPolicy {
    public: Option<WebOrigin<String>>,
    allowed: Vec<CorsOrigin>,
}

impl OriginPolicy {
    pub(crate) fn new(public_url: Option<&str>, allowed: Vec<CorsOrigin>) -> Self {
        let public = public_url.and_then(public_authority).map(|(scheme, authority)| WebOrigin {
            scheme: scheme.to_owned(),
            authority: authority.into_owned(),
        });
        Self { public, allowed }
    }

    /// Compares the origin with the host that the request names.
    pub(crate) fn check(&self, host: Option<&Authority<&str>>, headers: &HeaderMap) -> OriginVerdict {
        let mut values = headers.get_all(header::ORIGIN).iter();
        let Some(value) = values.next() else {
            return if is_embedded(headers) { OriginVerdict::Foreign } else { OriginVerdict::Absent };
        };
        let origin = value.to_str().ok().and_then(WebOrigin::parse).filter(|_| values.next().is_none());
        match origin {
            Some(origin) if self.allowed.iter().any(|allowed| allowed.0.is_same(&origin)) => {
                OriginVerdict::Allowed(value.clone())
            }
            Some(origin) if self.is_own(host, &origin) => OriginVerdict::Same,
            Some(_) | None => OriginVerdict::Foreign,
        }
    }

    /// Whether host and port are those of the request or of `public_url`. The scheme of the request is unknown: a proxy
    /// may have ended TLS. So a host without a port has the default port of either scheme.
    fn is_own(&self, host: Option<&Authority<&str>>, origin: &WebOrigin<&str>) -> bool {
        let is_requested = host.is_some_and(|host| {
            let requested = WebOrigin { scheme: origin.scheme, authority: *host };
            origin.has_host_and_port_of(&requested)
        });
        let is_public = || self.public.as_ref().is_some_and(|public| origin.has_host_and_port_of(public));
        default_port(origin.scheme).is_some() && (is_requested || is_public())
    }
}

/// Whether a page of another origin has the requested URL in it. A link to this server that a user follows is not: no
/// page can read what the browser then shows.
fn is_embedded(headers: &HeaderMap) -> bool {
    let has = |name: &str, value: &str| headers.get(name).is_some_and(|found| found == value);
    let is_elsewhere = ["cross-site", "same-site"].iter().any(|site| has("sec-fetch-site", site));
    is_elsewhere && !has("sec-fetch-dest", "document")
}

/// Whether a browser asks what a page may send.
pub(crate) fn is_preflight(method: &Method, headers: &HeaderMap) -> bool {
    let has = |name: HeaderName| headers.contains_key(name);
    *method == Method::OPTIONS && has(header::ORIGIN) && has(header::ACCESS_CONTROL_REQUEST_METHOD)
}

/// The response to a preflight that permits everything a call needs.
pub(crate) fn preflight_response(origin: HeaderValue) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, REQUEST_HEADERS);
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, PREFLIGHT_MAX_AGE);
    allow(headers, origin);
    response
}

/// Permits the pages of an origin to read a response.
pub(crate) fn set_cors_headers(mut response: Response, origin: HeaderValue) -> Response {
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, RESPONSE_HEADERS);
    // Public documents permit all origins already.
    if !headers.contains_key(header::ACCESS_CONTROL_ALLOW_ORIGIN) {
        allow(headers, origin);
    }
    response
}

fn allow(headers: &mut HeaderMap, origin: HeaderValue) {
    if origin != ANY_ORIGIN {
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
    }
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(public_url: &str, allowed: &[&str]) -> OriginPolicy {
        let public_url = Some(public_url).filter(|url| !url.is_empty());
        OriginPolicy::new(public_url, allowed.iter().map(|origin| origin.parse().unwrap()).collect())
    }

    fn verdict(policy: &OriginPolicy, host: &str, origins: &[&str]) -> OriginVerdict {
        let mut headers = HeaderMap::new();
        for origin in origins {
            headers.append(header::ORIGIN, HeaderValue::from_bytes(origin.as_bytes()).unwrap());
        }
        policy.check(Authority::parse(host).as_ref(), &headers)
    }

    #[test]
    fn origin_with_host_and_port_of_the_request_is_the_same() {
        let policy = policy("", &[]);
        for (host, origin) in [
            ("localhost:4242", "http://localhost:4242"),
            ("LOCALHOST.:4242", "http://localhost:4242"),
            ("localhost:4242", "HTTP://LocalHost:4242"),
            ("localhost:4242", "https://localhost:4242"),
            ("127.0.0.1:4242", "http://127.0.0.1:4242"),
            ("[::1]:4242", "http://[::1]:4242"),
            ("[0:0::1]:4242", "http://[::1]:4242"),
            ("[::ffff:127.0.0.1]:4242", "http://[::ffff:7f00:1]:4242"),
            ("a.example", "http://a.example"),
            ("a.example", "https://a.example"),
            ("a.example", "https://a.example:443"),
            ("a.example:80", "http://a.example"),
            ("a.example:443", "https://a.example"),
            ("a.example", "http://a.example:80"),
        ] {
            assert_eq!(verdict(&policy, host, &[origin]), OriginVerdict::Same, "{host} {origin}");
        }
        assert_eq!(verdict(&policy, "localhost:4242", &[]), OriginVerdict::Absent);
    }

    #[test]
    fn request_that_a_page_of_another_origin_embeds_is_foreign() {
        for (site, destination, expected) in [
            ("cross-site", "image", OriginVerdict::Foreign),
            ("same-site", "image", OriginVerdict::Foreign),
            ("cross-site", "empty", OriginVerdict::Foreign),
            ("cross-site", "iframe", OriginVerdict::Foreign),
            ("cross-site", "document", OriginVerdict::Absent),
            ("same-site", "document", OriginVerdict::Absent),
            ("same-origin", "empty", OriginVerdict::Absent),
            ("none", "document", OriginVerdict::Absent),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert("sec-fetch-site", HeaderValue::from_static(site));
            headers.insert("sec-fetch-dest", HeaderValue::from_static(destination));
            let policy = policy("", &["https://app.example"]);
            let check =
                |headers: &HeaderMap| policy.check(Authority::parse("localhost:4242").as_ref(), headers);
            assert_eq!(check(&headers), expected, "{site} {destination}");
            headers.insert(header::ORIGIN, HeaderValue::from_static("https://app.example"));
            assert!(matches!(check(&headers), OriginVerdict::Allowed(_)), "{site} {destination}");
        }
    }

    #[test]
    fn any_other_origin_is_foreign() {
        let policy = policy("", &[]);
        for (host, origin) in [
            ("localhost:4242", "null"),
            ("localhost:4242", ""),
            ("localhost:4242", "*"),
            ("localhost:4242", "https://evil.test"),
            ("localhost:4242", "http://localhost"),
            ("localhost:4242", "http://localhost:3000"),
            ("localhost:4242", "http://127.0.0.1:4242"),
            ("localhost:4242", "http://[::1]:4242"),
            ("localhost:4242", "http://localhost.evil.test:4242"),
            ("localhost:4242", "http://evil.test@localhost:4242"),
            ("localhost:4242", "http://localhost:4242/"),
            ("localhost:4242", "http://localhost:4242@evil.test"),
            ("localhost:4242", "http://localhost:4242, http://evil.test"),
            ("localhost:4242", "http://localhost:4242 https://evil.test"),
            ("localhost:4242", "localhost:4242"),
            ("localhost:4242", "//localhost:4242"),
            ("localhost:4242", "://localhost:4242"),
            ("localhost:4242", "app://localhost:4242"),
            ("localhost:4242", "http://löcalhost:4242"),
            ("localhost", "http://localhost:443"),
            ("localhost:443", "http://localhost"),
            ("0.0.0.0:4242", "http://127.0.0.1:4242"),
            ("", "http://localhost:4242"),
        ] {
            assert_eq!(verdict(&policy, host, &[origin]), OriginVerdict::Foreign, "{host} {origin}");
        }
        let twice = ["http://localhost:4242", "http://localhost:4242"];
        assert_eq!(verdict(&policy, "localhost:4242", &twice), OriginVerdict::Foreign);
    }

    #[test]
    fn origin_of_the_public_url_is_the_same() {
        let policy = policy("https://agents.example/below", &[]);
        for (origin, expected) in [
            ("https://agents.example", OriginVerdict::Same),
            ("https://AGENTS.example:443", OriginVerdict::Same),
            ("http://agents.example:443", OriginVerdict::Same),
            ("https://agents.example:8443", OriginVerdict::Foreign),
            ("http://agents.example", OriginVerdict::Foreign),
            ("https://other.example", OriginVerdict::Foreign),
        ] {
            assert_eq!(verdict(&policy, "inner:1", &[origin]), expected, "{origin}");
            assert_eq!(verdict(&policy, "", &[origin]), expected, "{origin}");
        }
    }

    #[test]
    fn only_listed_origins_are_allowed() {
        let policy = policy("", &["https://App.example", "http://localhost:3000", "chrome-extension://abc"]);
        for origin in [
            "https://app.example",
            "https://app.example:443",
            "http://localhost:3000",
            "chrome-extension://abc",
        ] {
            let expected = OriginVerdict::Allowed(HeaderValue::from_static(origin));
            assert_eq!(verdict(&policy, "localhost:4242", &[origin]), expected);
        }
        for origin in ["http://app.example", "https://app.example:1", "https://x.app.example", "null"] {
            assert_eq!(verdict(&policy, "localhost:4242", &[origin]), OriginVerdict::Foreign, "{origin}");
        }
        let twice = ["https://app.example", "https://evil.test"];
        assert_eq!(verdict(&policy, "localhost:4242", &twice), OriginVerdict::Foreign);
    }

    #[test]
    fn configured_origin_has_scheme_and_host_only() {
        for (text, shown) in [
            ("HTTPS://App.example.", "https://app.example"),
            ("http://[::1]:3000", "http://[::1]:3000"),
            ("tauri://localhost", "tauri://localhost"),
        ] {
            assert_eq!(text.parse::<CorsOrigin>().unwrap().to_string(), shown);
        }
        for text in
            ["", "*", "null", "app.example", "https://", "https://a/", "https://a/b", "https://u@a", "1a://b"]
        {
            assert!(text.parse::<CorsOrigin>().is_err(), "{text}");
        }
    }

    #[test]
    fn cors_headers_name_the_origin_and_keep_vary() {
        let origin = HeaderValue::from_static("https://app.example");
        let mut response = Response::new(Body::empty());
        response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
        let response = set_cors_headers(response, origin.clone());
        assert_eq!(response.headers()[header::ACCESS_CONTROL_ALLOW_ORIGIN], origin);
        let vary: Vec<_> = response.headers().get_all(header::VARY).iter().collect();
        assert_eq!(vary, ["Accept", "Origin"]);
        let mut public = Response::new(Body::empty());
        public.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, ANY_ORIGIN);
        let public = set_cors_headers(public, origin);
        assert_eq!(public.headers()[header::ACCESS_CONTROL_ALLOW_ORIGIN], ANY_ORIGIN);
        assert!(!public.headers().contains_key(header::VARY));
    }
}
