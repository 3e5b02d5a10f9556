//! HTTP/2 with prior knowledge, and gRPC over it with messages as bytes.
//!
//! Deliberately not here: encoding and decoding of protobuf messages, which callers do with the types they test.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use bytes::{Buf as _, Bytes, BytesMut};
use http::{HeaderMap, Request};
use http_body_util::{BodyExt as _, Full, combinators::BoxBody};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tokio_util::task::TaskTracker;

use crate::{Error, LIMIT, limited, malformed};

/// The length prefix of a gRPC message.
const PREFIX_BYTES: usize = 5;

/// The body of a request.
pub type Body = BoxBody<Bytes, Infallible>;

/// A body of known bytes.
pub fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).boxed()
}

/// One connection; clones share it. It is closed when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct Channel {
    sender: SendRequest<Body>,
    address: SocketAddr,
    limit: Duration,
    tasks: TaskTracker,
}

/// A response whose body is read as it arrives.
#[derive(Debug)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The response headers.
    pub headers: HeaderMap,
    /// The last headers; those of the head in a gRPC response without a body.
    pub trailers: Option<HeaderMap>,
    body: Incoming,
    ahead: BytesMut,
    limit: Duration,
}

/// How a gRPC call ended.
#[derive(Clone, Debug)]
pub struct Status {
    /// The value of `grpc-status`.
    pub code: i32,
    /// The decoded value of `grpc-message`.
    pub message: String,
    /// The decoded value of `grpc-status-details-bin`: a `google.rpc.Status`.
    pub details: Option<Vec<u8>>,
}

impl Channel {
    /// Connects to a server.
    pub async fn open(address: SocketAddr) -> Result<Self, Error> {
        Self::open_with(address, &Builder::new(TokioExecutor::new())).await
    }

    /// Connects with this initial window of each stream.
    pub async fn open_with_window(address: SocketAddr, bytes: u32) -> Result<Self, Error> {
        Self::open_with(address, Builder::new(TokioExecutor::new()).initial_stream_window_size(bytes)).await
    }

    #[expect(clippy::disallowed_methods, reason = "the driver of the tests has its own connections")]
    async fn open_with(address: SocketAddr, builder: &Builder<TokioExecutor>) -> Result<Self, Error> {
        let stream = limited(LIMIT, TcpStream::connect(address)).await?;
        stream.set_nodelay(true)?;
        let (sender, connection) = limited(LIMIT, builder.handshake(TokioIo::new(stream))).await?;
        let tasks = TaskTracker::new();
        tasks.spawn(connection);
        Ok(Self { sender, address, limit: LIMIT, tasks })
    }

    /// Sets the limit of each single wait.
    pub fn with_limit(self, limit: Duration) -> Self {
        Self { limit, ..self }
    }

    /// The URI of a path.
    pub fn uri(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// A gRPC request; the content type is `application/grpc` unless given.
    pub fn grpc(
        &self,
        path: &str,
        metadata: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Result<Request<Body>, Error> {
        let mut request = Request::post(self.uri(path)).header("te", "trailers");
        if !metadata.iter().any(|pair| pair.0 == "content-type") {
            request = request.header("content-type", "application/grpc");
        }
        for (name, value) in metadata {
            request = request.header(*name, *value);
        }
        request.body(full(body)).map_err(|error| malformed(format!("the request: {error}")))
    }

    /// Sends a request and reads the head of the response.
    pub async fn request(&self, request: Request<Body>) -> Result<Response, Error> {
        let mut sender = self.sender.clone();
        limited(self.limit, sender.ready()).await?;
        let (head, body) = limited(self.limit, sender.send_request(request)).await?.into_parts();
        Ok(Response {
            status: head.status.as_u16(),
            trailers: head.headers.contains_key("grpc-status").then(|| head.headers.clone()),
            headers: head.headers,
            body,
            ahead: BytesMut::new(),
            limit: self.limit,
        })
    }

    /// Waits until the server has ended the connection.
    pub async fn closed(self) -> Result<(), Error> {
        self.tasks.close();
        let ended = tokio::time::timeout(self.limit, self.tasks.wait()).await;
        ended.map_err(|_| Error::TimedOut(self.limit))
    }
}

impl Response {
    /// The value of a header; empty if it is absent or not text.
    pub fn header(&self, name: &str) -> &str {
        text(&self.headers, name)
    }

    /// The next bytes of the body; `None` at its end.
    pub async fn bytes(&mut self) -> Result<Option<Bytes>, Error> {
        while self.ahead.is_empty() {
            if !self.fill().await? {
                return Ok(None);
            }
        }
        Ok(Some(self.ahead.split().freeze()))
    }

    /// The rest of the body.
    pub async fn body(&mut self) -> Result<Bytes, Error> {
        while self.fill().await? {}
        Ok(self.ahead.split().freeze())
    }

    /// The next gRPC message; `None` after the last one.
    pub async fn message(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            if let Some(&[compressed, a, b, c, d]) = self.ahead.first_chunk::<PREFIX_BYTES>() {
                if compressed != 0 {
                    return Err(malformed("a message is compressed"));
                }
                let length = u32::from_be_bytes([a, b, c, d]) as usize;
                if self.ahead.len() >= PREFIX_BYTES + length {
                    self.ahead.advance(PREFIX_BYTES);
                    return Ok(Some(self.ahead.split_to(length).freeze()));
                }
            }
            if !self.fill().await? {
                return match self.ahead.is_empty() {
                    true => Ok(None),
                    false => Err(malformed("the body ends in the middle of a message")),
                };
            }
        }
    }

    /// How a gRPC call ended, available after its last message.
    pub fn grpc_status(&self) -> Result<Status, Error> {
        Status::of(self.trailers.as_ref().ok_or_else(|| malformed("the call ends without a status"))?)
    }

    async fn fill(&mut self) -> Result<bool, Error> {
        let frame = tokio::time::timeout(self.limit, self.body.frame()).await;
        match frame.map_err(|_| Error::TimedOut(self.limit))? {
            None => return Ok(false),
            Some(frame) => match frame?.into_data() {
                Ok(data) => self.ahead.extend_from_slice(&data),
                Err(frame) => self.trailers = frame.into_trailers().ok(),
            },
        }
        Ok(true)
    }
}

impl Status {
    /// Reads the status from trailers.
    pub fn of(trailers: &HeaderMap) -> Result<Self, Error> {
        let code = text(trailers, "grpc-status");
        let code = code.parse().map_err(|_| malformed(format!("grpc-status {code:?}")))?;
        let message = percent_encoding::percent_decode_str(text(trailers, "grpc-message")).decode_utf8();
        let message = message.map_err(|_| malformed("grpc-message is not UTF-8"))?.into_owned();
        let details = trailers.get("grpc-status-details-bin").map(|value| STANDARD_NO_PAD.decode(value));
        let details = details.transpose().map_err(|_| malformed("the details are not unpadded base64"))?;
        Ok(Self { code, message, details })
    }
}

/// A gRPC message with its length prefix.
pub fn framed(message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    [&[0][..], &length.to_be_bytes(), message].concat().into()
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(message: &'static str, details: &'static str) -> Result<Status, Error> {
        let pairs = [("grpc-status", "3"), ("grpc-message", message), ("grpc-status-details-bin", details)];
        Status::of(
            &pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect(),
        )
    }

    #[test]
    fn status_is_decoded() {
        let status = status("100 %25 of \"%C3%A4\"%0A %", "AQI").unwrap();
        assert_eq!((status.code, &*status.message), (3, "100 % of \"ä\"\n %"));
        assert_eq!(status.details.as_deref(), Some(&[1, 2][..]));
    }

    #[test]
    fn invalid_status_is_malformed() {
        assert!(status("%FF", "AQI").is_err());
        assert!(status("x", "AQI=").is_err());
        assert!(Status::of(&HeaderMap::new()).is_err());
    }
}
