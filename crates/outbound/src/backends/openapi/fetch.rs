//! Fetches a document whose URL the operator has configured.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, header};
use http_body_util::Full;

use super::{OpenApiError, document::MAX_DOCUMENT};
use crate::dial::{DialError, Dialer, FetchLimits, UrlSource};

/// Maximum time to fetch a document.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Fetches the text of a document. Redirects are not followed.
///
/// # Errors
///
/// The server cannot be reached, its response is not successful, too large, too slow or not UTF-8.
pub async fn fetch(url: &str, dialer: &Dialer) -> Result<String, OpenApiError> {
    let request = Request::get(url)
        .header(header::ACCEPT, "application/vnd.oai.openapi, application/json, application/yaml, */*;q=0.8")
        .header(header::USER_AGENT, concat!("a2ad/", env!("CARGO_PKG_VERSION")))
        .body(Full::new(Bytes::new()))
        .map_err(|_| OpenApiError::Fetch("url: expected an absolute http or https URL".into()))?;
    let limits = FetchLimits { time: TIMEOUT, body: MAX_DOCUMENT };
    let response = dialer.fetch(request, UrlSource::Operator, limits).await.map_err(|error| match error {
        DialError::TooLarge => OpenApiError::TooLarge { size: MAX_DOCUMENT + 1, max: MAX_DOCUMENT },
        DialError::TimedOut => {
            OpenApiError::Fetch(format!("no complete response within {} s", TIMEOUT.as_secs()))
        }
        other => OpenApiError::Fetch(other.to_string()),
    })?;
    if !response.status().is_success() {
        return Err(OpenApiError::Fetch(format!("the server responded {}", response.status())));
    }
    String::from_utf8(response.into_body().into()).map_err(|_| OpenApiError::Fetch("it is not UTF-8".into()))
}
