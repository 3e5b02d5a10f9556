//! Where requests go: the origin and path that every path of a document is appended to.

use url::Url;

use super::{OpenApiConfig, OpenApiError, Tree, document::Document};

/// Maximum length of a server's URL with its variables.
const MAX_URL: usize = 2_000;

/// The absolute URL of a server, without a slash at its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Server(String);

impl Server {
    /// `base_url` of the configuration, else the first server of the document.
    pub(super) fn of(document: &Document, config: &OpenApiConfig) -> Result<Self, OpenApiError> {
        if let Some(url) = &config.base_url {
            return Self::parse(url).map_err(|problem| OpenApiError::BaseUrl { field: "base_url", problem });
        }
        let first = document.root["servers"].get(0);
        first.and_then(Self::described).ok_or_else(|| OpenApiError::BaseUrl {
            field: "servers[0].url",
            problem: "expected an absolute http or https URL in the document: set base_url".into(),
        })
    }

    /// A Server Object of the document, if its URL is absolute. Variables have their defaults.
    pub(super) fn described(server: &Tree) -> Option<Self> {
        let mut url = server["url"].as_str()?.to_owned();
        for (name, variable) in server["variables"].as_object().into_iter().flatten().take(20) {
            url = url.replace(&format!("{{{name}}}"), variable["default"].as_str()?);
            if url.len() > MAX_URL {
                return None;
            }
        }
        Self::parse(&url).ok()
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
        } else if url.path().contains(['{', '}']) || url.path().contains("%7B") {
            "it must not contain variables"
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

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

    #[test]
    fn server_variables_have_their_defaults() {
        let server = json!({"url": "https://{region}.example.com/{v}", "variables": {
            "region": {"default": "eu"}, "v": {"default": "v2"},
        }});
        assert_eq!(Server::described(&server), Some(Server("https://eu.example.com/v2".into())));
        assert_eq!(Server::described(&json!({"url": "/v1"})), None);
    }
}
