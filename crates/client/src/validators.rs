//! Notices that a document has changed without reading it: by its entity tag and its date.

use std::sync::Arc;

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use url::Url;

use crate::{
    ClientOptions, Error,
    exchange::{parse_url, send},
    transport::Transport,
};

/// A document that may change.
pub struct WatchedDocument {
    transport: Arc<dyn Transport>,
    url: Url,
    headers: HeaderMap,
}

/// What changes with a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validators {
    etag: Option<HeaderValue>,
    modified: Option<HeaderValue>,
}

impl WatchedDocument {
    /// The JSON document at this URL.
    pub fn at(url: &str, options: &ClientOptions) -> Result<Self, Error> {
        let url = parse_url(url)?;
        let mut headers = options.headers.clone();
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        Ok(Self { transport: options.transport_to(&url)?, url, headers })
    }

    /// Requests the validators; `None` if there is no such document.
    pub async fn validators(&self) -> Result<Option<Validators>, Error> {
        let headers = self.headers.clone();
        let response = send(&*self.transport, Method::HEAD, &self.url, headers, Vec::new()).await?;
        match response.status() {
            status if status.is_success() => {
                let value = |name| response.headers().get(name).cloned();
                Ok(Some(Validators { etag: value(header::ETAG), modified: value(header::LAST_MODIFIED) }))
            }
            StatusCode::NOT_FOUND | StatusCode::GONE | StatusCode::METHOD_NOT_ALLOWED => Ok(None),
            status => Err(Error::Status(status)),
        }
    }
}
