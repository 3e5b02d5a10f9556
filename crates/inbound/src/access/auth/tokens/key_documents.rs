//! Fetches the keys of an issuer: the document with its keys, after its discovery document if only that names it.

use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use bytes::Bytes;

use super::{discovery, jwks::KeySet};
use crate::access::auth::{
    FetchKeys, Issuer, KEY_FETCH_TIMEOUT, KeyFetchError, KeyUrl, MAX_KEY_DOCUMENT_BYTES,
};

/// Where the keys of an issuer are, and how they are fetched.
pub(super) struct KeySource {
    issuer: Issuer,
    fetch: Arc<dyn FetchKeys>,
}

/// The keys that were fetched.
pub(super) struct FetchedKeys {
    pub(super) keys: KeySet,
    /// Two documents with the same digest have the same keys.
    pub(super) digest: [u8; 32],
}

impl KeySource {
    pub(super) fn new(issuer: Issuer, fetch: Arc<dyn FetchKeys>) -> Self {
        Self { issuer, fetch }
    }

    pub(super) fn issuer(&self) -> &str {
        &self.issuer.issuer
    }

    /// Fetches the keys now. An error is for the log.
    pub(super) async fn fetch(&self) -> Result<FetchedKeys, KeyFetchError> {
        let url = match &self.issuer.jwks_uri {
            Some(url) => KeyUrl::Configured(url.clone()),
            None => {
                let document = self.document(discovery::url(self.issuer())).await?;
                discovery::jwks_url(&document, self.issuer()).map_err(error)?
            }
        };
        let document = self.document(url).await?;
        let hash = digest(&SHA256, &document);
        let keys = KeySet::read(&document).map_err(error)?;
        Ok(FetchedKeys { keys, digest: hash.as_ref().try_into().expect("SHA-256 has 32 bytes") })
    }

    /// One document, within the limits of size and time.
    async fn document(&self, url: KeyUrl) -> Result<Bytes, KeyFetchError> {
        let fetched = tokio::time::timeout(KEY_FETCH_TIMEOUT, self.fetch.fetch(url)).await;
        let document = fetched.unwrap_or_else(|_| Err(error("the server did not respond in time")))?;
        if document.len() > MAX_KEY_DOCUMENT_BYTES {
            return Err(error("the response is too large"));
        }
        Ok(document)
    }
}

fn error(text: &str) -> KeyFetchError {
    KeyFetchError(text.to_owned())
}
