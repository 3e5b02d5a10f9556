//! One HTTP exchange: what is the same for every request and response, whatever the transport.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Uri, header};
use http_body_util::{BodyExt as _, Full};
use url::Url;

use crate::{
    Error,
    transport::{Request, Response, Transport},
};

/// The name of this client in its requests.
pub(crate) const USER_AGENT: &str = concat!("a2ad/", env!("CARGO_PKG_VERSION"));

/// Sends a request; returns when the response headers have arrived.
pub(crate) async fn send(
    transport: &dyn Transport,
    method: Method,
    url: &Url,
    headers: HeaderMap,
    body: Vec<u8>,
) -> Result<Response, Error> {
    let mut request = Request::new(Full::new(Bytes::from(body)));
    *request.method_mut() = method;
    *request.uri_mut() = uri(url)?;
    *request.headers_mut() = headers;
    request.headers_mut().entry(header::USER_AGENT).or_insert(HeaderValue::from_static(USER_AGENT));
    let response = transport.send(request).await?;
    match response.headers().get(header::LOCATION) {
        Some(location) if response.status().is_redirection() => {
            Err(Error::Redirected { location: String::from_utf8_lossy(location.as_bytes()).into_owned() })
        }
        _ => Ok(response),
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

pub(crate) fn uri(url: &Url) -> Result<Uri, Error> {
    let problem = "it has characters that HTTP does not allow";
    Uri::try_from(url.as_str()).map_err(|_| Error::Url { url: url.to_string(), problem })
}

/// Reads a body up to the size limit.
pub(crate) async fn read_body(response: Response, limit_bytes: usize) -> Result<Vec<u8>, Error> {
    let mut rest = response.into_body();
    let mut body = Vec::new();
    while let Some(frame) = rest.frame().await {
        // Trailers have no data.
        let Ok(chunk) = frame?.into_data() else { continue };
        if body.len() + chunk.len() > limit_bytes {
            return Err(Error::TooLarge { limit_bytes });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
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
}
