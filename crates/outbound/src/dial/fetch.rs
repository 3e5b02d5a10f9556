//! A request whose response is read as a whole, within limits of time and size.

use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;

use super::{DialError, Dialer, UrlSource};

/// Limits of a response that is read as a whole.
#[derive(Clone, Copy, Debug)]
pub struct FetchLimits {
    /// Maximum time from the resolution of the name to the last byte.
    pub time: Duration,
    /// Maximum size of the body in bytes.
    pub body: usize,
}

impl Dialer {
    /// Sends a request like [`Dialer::send`] and reads the whole response.
    ///
    /// # Errors
    ///
    /// See [`DialError`]; among them that a limit was exceeded.
    pub async fn fetch(
        &self,
        request: Request<Full<Bytes>>,
        source: UrlSource,
        limits: FetchLimits,
    ) -> Result<Response<Bytes>, DialError> {
        limits.read(self.send(request, source)).await
    }
}

impl FetchLimits {
    /// Reads the whole response to a request of [`Dialer`].
    pub(crate) async fn read(
        self,
        sent: impl Future<Output = Result<Response<Incoming>, DialError>>,
    ) -> Result<Response<Bytes>, DialError> {
        let fetched = async {
            let (head, body) = sent.await?.into_parts();
            let body = Limited::new(body, self.body).collect().await.map_err(|error| {
                if error.is::<LengthLimitError>() { DialError::TooLarge } else { DialError::Lost(error) }
            })?;
            Ok(Response::from_parts(head, body.to_bytes()))
        };
        tokio::time::timeout(self.time, fetched).await.unwrap_or(Err(DialError::TimedOut))
    }
}
