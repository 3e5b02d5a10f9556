//! gRPC calls over HTTP/2 with arbitrary bodies, and complete responses.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request};
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

use super::super::case::Case;
use super::super::checker::Received;

/// Base64 with optional padding: some senders pad, some do not.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// One connection, and the task that drives it. A clone uses the same connection.
#[derive(Clone)]
pub(crate) struct Channel {
    sender: SendRequest<Full<Bytes>>,
    address: SocketAddr,
    /// Stops the driver when the last clone is dropped.
    _driver: Arc<JoinSet<Result<(), hyper::Error>>>,
}

impl Channel {
    pub(crate) async fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) =
            http2::handshake::<_, _, Full<Bytes>>(TokioExecutor::new(), TokioIo::new(stream)).await?;
        let mut driver = JoinSet::new();
        driver.spawn(connection);
        Ok(Self { sender, address, _driver: Arc::new(driver) })
    }

    /// Sends a request and reads the complete response.
    pub(crate) async fn call(&mut self, case: &Case) -> Result<Received> {
        let uri = format!("http://{}{}", self.address, case.target);
        let mut request = Request::builder().method(case.verb).uri(uri);
        for (name, value) in &case.headers {
            request = request.header(*name, HeaderValue::from_bytes(value)?);
        }
        let request = request.body(Full::new(Bytes::from(case.body.clone())))?;
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        let (head, body) = response.into_parts();
        let body = body.collect().await.context("the response was not complete")?;
        let trailers = body.trailers().cloned();
        let ends = trailers.as_ref().unwrap_or(&head.headers);
        Ok(Received {
            http: head.status.as_u16(),
            content_type: text(&head.headers, "content-type"),
            status: text(ends, "grpc-status"),
            message: unescaped(&text(ends, "grpc-message")),
            details: ends.get("grpc-status-details-bin").and_then(|value| BASE64.decode(value).ok()),
            body: body.to_bytes().to_vec(),
            allow: None,
        })
    }
}

fn text(headers: &HeaderMap, name: &str) -> String {
    headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()).unwrap_or_default()
}

/// Decodes the percent-encoding of `grpc-message`. A text that is not valid percent-encoding is returned unchanged.
fn unescaped(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|_| byte == b'%');
        let digits = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        out.push(digits.unwrap_or(byte));
        rest = if digits.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_encoded_messages_are_decoded() {
        assert_eq!(unescaped("100 %25 of \"%C3%A4\"%0A"), "100 % of \"ä\"\n");
        assert_eq!(unescaped("%"), "%");
    }
}
