//! Where requests go: the origin and path that every path of a document is appended to.

use std::sync::LazyLock;

use serde_json::json;
use url::{Origin, Url};

use super::{OpenApiConfig, OpenApiError, Tree, document::Document};

/// Maximum length of a server's URL with its variables.
const MAX_URL: usize = 2_000;

/// What a document without servers means.
static ROOT: LazyLock<Tree> = LazyLock::new(|| json!({"url": "/"}));

/// The absolute URL of a server, without a slash at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server(String);

impl Server {
    /// `base_url` of the configuration, else the first server of the document.
    pub(super) fn of(document: &Document, config: &OpenApiConfig) -> Result<Self, OpenApiError> {
        if let Some(url) = &config.base_url {
            return Self::parse(url).map_err(|problem| OpenApiError::BaseUrl { field: "base_url", problem });
        }
        let problem =
            |problem: &str| OpenApiError::BaseUrl { field: "servers[0].url", problem: problem.into() };
        let fetched_from = config.document_url.as_deref().and_then(|url| Url::parse(url).ok());
        let first = first(document).and_then(|server| Self::described(server, fetched_from.as_ref()));
        let server = first
            .ok_or_else(|| problem("expected an absolute http or https URL in the document: set base_url"))?;
        match fetched_from {
            Some(url) if url.origin() != server.origin() => Err(problem(
                "it is not on the server that the document was fetched from: set base_url if requests may go there",
            )),
            _ => Ok(server),
        }
    }

    /// Whether an operation with this Server Object has the same server as its document.
    pub(super) fn is_first(document: &Document, server: &Tree) -> bool {
        let url = |server| with_defaults(server).map(|url| url.trim_end_matches('/').to_owned());
        first(document).is_some_and(|first| url(first) == url(server))
    }

    /// A Server Object of the document. Variables have their defaults.
    fn described(server: &Tree, relative_to: Option<&Url>) -> Option<Self> {
        let url = with_defaults(server)?;
        match relative_to {
            Some(base) => Self::parse(base.join(&url).ok()?.as_str()).ok(),
            None => Self::parse(&url).ok(),
        }
    }

    fn origin(&self) -> Origin {
        Url::parse(&self.0).map_or_else(|_| Origin::new_opaque(), |url| url.origin())
    }

    fn parse(text: &str) -> Result<Self, String> {
        let url = Url::parse(text.trim()).map_err(|error| {
            format!("expected an absolute URL such as https://api.example.com/v1: {error}")
        })?;
        let problem = if !matches!(url.scheme(), "http" | "https") {
            "the scheme must be http or https"
        } else if !url.username().is_empty() || url.password().is_some() {
            "it must not contain a user name or password: use bearer_env or security"
        } else if url.query().is_some() || url.fragment().is_some() {
            "it must not have a query or fragment"
        } else if text.contains(['{', '}']) || url.path().contains("%7B") {
            "it must not contain variables without a value"
        } else {
            let path = url.path().trim_end_matches('/');
            return Ok(Self(format!("{}{path}", url.origin().ascii_serialization())));
        };
        Err(problem.into())
    }

    /// The URL, without a slash at its end.
    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

fn first(document: &Document) -> Option<&Tree> {
    match document.root["servers"].as_array() {
        Some(servers) if !servers.is_empty() => servers.first(),
        _ => Some(&ROOT),
    }
}

/// The URL of a Server Object with the defaults of its variables.
fn with_defaults(server: &Tree) -> Option<String> {
    let mut url = server["url"].as_str()?.to_owned();
    for (name, variable) in server["variables"].as_object().into_iter().flatten().take(20) {
        url = url.replace(&format!("{{{name}}}"), variable["default"].as_str()?);
        if url.len() > MAX_URL {
            return None;
        }
    }
    Some(url)
}

#[cfg(test)]
mod tests {
    use super::{super::parse, *};

    #[test]
    fn base_urls_are_absolute_and_have_no_credentials() {
        let parsed = |text: &str| Server::parse(text).map(|Server(url)| url);
        assert_eq!(parsed("http://127.0.0.1:9001/a/b/").as_deref(), Ok("http://127.0.0.1:9001/a/b"));
        assert_eq!(parsed("https://Example.com:443").as_deref(), Ok("https://example.com"));
        for bad in [
            "/v1",
            "ftp://a/",
            "http://u:p@a/",
            "http://a/?q",
            "http://a/#f",
            "",
            "http://{x}/",
            "http://a/{v}",
        ] {
            assert!(parsed(bad).is_err(), "{bad}");
        }
    }

    fn server(servers: &Tree, document_url: Option<&str>) -> Result<String, String> {
        let document = parse(&json!({"openapi": "3.1.0", "servers": servers}).to_string()).unwrap();
        let config =
            OpenApiConfig { document_url: document_url.map(str::to_owned), ..OpenApiConfig::new("shop") };
        Server::of(&document, &config).map(|Server(url)| url).map_err(|error| error.to_string())
    }

    #[test]
    fn server_variables_have_their_defaults() {
        let servers = json!([{"url": "https://{region}.example.com/{v}", "variables": {
            "region": {"default": "eu"}, "v": {"default": "v2"},
        }}]);
        assert_eq!(server(&servers, None).as_deref(), Ok("https://eu.example.com/v2"));
        for relative in [json!([{"url": "/v1"}]), json!([]), json!(null)] {
            assert!(server(&relative, None).unwrap_err().contains("set base_url"));
        }
    }

    #[test]
    fn fetched_document_names_servers_of_its_own_origin_only() {
        let from = Some("http://127.0.0.1:8000/api/openapi.json");
        for (url, expected) in [
            ("/v1", "http://127.0.0.1:8000/v1"),
            ("v1/", "http://127.0.0.1:8000/api/v1"),
            ("http://127.0.0.1:8000", "http://127.0.0.1:8000"),
        ] {
            assert_eq!(server(&json!([{"url": url}]), from).as_deref(), Ok(expected));
        }
        assert_eq!(server(&json!(null), from).as_deref(), Ok("http://127.0.0.1:8000"));
        for url in ["http://127.0.0.1:8001/", "//169.254.169.254/", "https://127.0.0.1:8000/"] {
            assert!(server(&json!([{"url": url}]), from).unwrap_err().contains("fetched from"), "{url}");
        }
    }
}
