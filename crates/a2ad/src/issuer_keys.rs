//! Fetches the keys of token issuers: connects `inbound`, which verifies tokens, with the dialler of `outbound`.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, StatusCode, header};
use http_body_util::Full;
use inbound::{FetchKeys, KEY_FETCH_TIMEOUT, KeyFetchError, KeyUrl, MAX_KEY_DOCUMENT_BYTES};
use outbound::dial::{Dialer, FetchLimits, UrlSource};

/// Fetches documents with keys. An address that a discovery document names is treated as a peer's: it may not be local.
#[derive(Clone, Debug)]
pub struct IssuerKeyFetcher {
    dialer: Dialer,
}

impl IssuerKeyFetcher {
    /// With a dialler, whose policy decides which addresses discovery documents may name.
    pub fn new(dialer: Dialer) -> Self {
        Self { dialer }
    }
}

impl FetchKeys for IssuerKeyFetcher {
    fn fetch(&self, url: KeyUrl) -> BoxFuture<'static, Result<Bytes, KeyFetchError>> {
        Box::pin(fetch(self.dialer.clone(), url))
    }
}

async fn fetch(dialer: Dialer, url: KeyUrl) -> Result<Bytes, KeyFetchError> {
    let (url, source) = match url {
        KeyUrl::Configured(url) => (url, UrlSource::Operator),
        KeyUrl::Discovered(url) => {
            let url = dialer.check_url(&url).map_err(|problem| {
                KeyFetchError(format!("the jwks_uri of its discovery document is not allowed: {problem}"))
            })?;
            (url.into(), UrlSource::Peer)
        }
    };
    let request = Request::get(url)
        .header(header::ACCEPT, "application/json")
        .header(header::USER_AGENT, concat!("a2ad/", env!("CARGO_PKG_VERSION")))
        .body(Full::default())
        .map_err(|_| KeyFetchError("its address is not an absolute http or https URL".into()))?;
    let limits = FetchLimits { time: KEY_FETCH_TIMEOUT, body: MAX_KEY_DOCUMENT_BYTES };
    let fetched = dialer.fetch(request, source, limits).await;
    let response = fetched.map_err(|error| KeyFetchError(error.to_string()))?;
    match response.status() {
        StatusCode::OK => Ok(response.into_body()),
        status => Err(KeyFetchError(format!("the server responded {status}"))),
    }
}
