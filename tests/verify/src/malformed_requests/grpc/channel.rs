//! gRPC calls over HTTP/2 with arbitrary bodies, and complete responses.

use anyhow::{Context, Result};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request};
pub(crate) use testkit::http2::Channel;
use testkit::http2::{Status, full};

use super::super::case::Case;
use super::super::checker::Received;

/// Sends a request and reads the complete response.
pub(crate) async fn call(channel: &Channel, case: &Case) -> Result<Received> {
    let mut request = Request::builder().method(case.verb).uri(channel.uri(&case.target));
    for (name, value) in &case.headers {
        request = request.header(*name, HeaderValue::from_bytes(value)?);
    }
    let mut response = channel.request(request.body(full(Bytes::from(case.body.clone())))?).await?;
    let body = response.body().await.context("the response was not complete")?.to_vec();
    let (http, content_type) = (response.status, text(&response.headers, "content-type"));
    let trailers = response.trailers.as_ref().unwrap_or(&response.headers);
    let received =
        Received { http, content_type, status: text(trailers, "grpc-status"), body, ..Received::default() };
    let Ok(Status { message, details, .. }) = Status::of(trailers) else { return Ok(received) };
    Ok(Received { message, details, ..received })
}

fn text(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).unwrap_or_default()
}
