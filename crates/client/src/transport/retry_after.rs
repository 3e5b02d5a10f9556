//! Requests that a server refuses for now are sent again: while it starts (503 with `"status":"starting"`), and beyond a
//! rate limit (429), after the time in `Retry-After`. A server that refuses for another reason is not asked again.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Body as _;
use tokio::time::{Instant, sleep};

use super::{Request, Response, ResponseFuture, Transport, TransportError};

/// The longest body that may say that a server starts.
const MAX_BODY: u64 = 1 << 10;

/// Another transport with repeated requests.
#[derive(Debug)]
pub(crate) struct RetryAfter {
    pub(crate) transport: Arc<dyn Transport>,
    /// How long a request is repeated.
    pub(crate) patience: Duration,
}

impl RetryAfter {
    async fn send_until_accepted(&self, request: Request) -> Result<Response, TransportError> {
        let end = Instant::now() + self.patience;
        loop {
            let response = self.transport.send(request.clone()).await?;
            let (response, is_for_now) = is_refused_for_now(response).await?;
            let pause = retry_after(&response).filter(|pause| is_for_now && Instant::now() + *pause <= end);
            match pause {
                Some(pause) => sleep(pause).await,
                None => return Ok(response),
            }
        }
    }
}

impl Transport for RetryAfter {
    fn send(&self, request: Request) -> ResponseFuture<'_> {
        Box::pin(self.send_until_accepted(request))
    }
}

/// Whether the same request may be accepted soon.
async fn is_refused_for_now(response: Response) -> Result<(Response, bool), TransportError> {
    let is_short = response.body().size_hint().upper().is_some_and(|upper| upper <= MAX_BODY);
    match response.status() {
        StatusCode::TOO_MANY_REQUESTS => Ok((response, true)),
        StatusCode::SERVICE_UNAVAILABLE if is_short => {
            let (head, body) = response.into_parts();
            let body: Bytes = body.collect().await?.to_bytes();
            let starts = is_starting(&body);
            let body = Full::new(body).map_err(|never| match never {}).boxed();
            Ok((Response::from_parts(head, body), starts))
        }
        _ => Ok((response, false)),
    }
}

/// Whether a body is what a server answers that starts.
fn is_starting(body: &[u8]) -> bool {
    String::from_utf8_lossy(body).replace(' ', "").contains(r#""status":"starting""#)
}

/// The pause that the server asks for, if it is a number of seconds.
fn retry_after(response: &Response) -> Option<Duration> {
    let seconds = response.headers().get(header::RETRY_AFTER)?.to_str().ok()?.trim().parse().ok()?;
    Some(Duration::from_secs(seconds))
}
