//! Reads HTTP responses: whole bodies, server-sent events, and gRPC messages with their status.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use bytes::{Buf as _, Bytes, BytesMut};
use http::{HeaderMap, Response, response::Parts};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use protocol::grpc::{decode_status, kind_of_code};

/// The time limit of one operation.
const TIMEOUT: Duration = Duration::from_secs(60);

pub(crate) async fn with_timeout<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(TIMEOUT, future).await.expect("the operation timed out")
}

/// A response whose body is read incrementally.
pub(crate) struct StreamingResponse {
    pub(crate) head: Parts,
    body: Incoming,
    /// Bytes that were read and not yet consumed.
    buffered: BytesMut,
    trailers: Option<HeaderMap>,
}

impl StreamingResponse {
    pub(crate) fn of(response: Response<Incoming>) -> Self {
        let (head, body) = response.into_parts();
        // A gRPC call that fails without a message has its status in the response headers.
        let trailers = head.headers.contains_key("grpc-status").then(|| head.headers.clone());
        Self { head, body, buffered: BytesMut::new(), trailers }
    }

    /// The value of a header; empty if absent.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.head.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Whether the response is a stream of server-sent events.
    pub(crate) fn is_events(&self) -> bool {
        self.head.status == 200 && self.header("content-type") == "text/event-stream"
    }

    /// The rest of the body as text.
    pub(crate) async fn text(mut self) -> String {
        while self.fill().await {}
        String::from_utf8(self.buffered.into()).unwrap()
    }

    /// The id and data of the next server-sent event; `None` after the last one.
    pub(crate) async fn event(&mut self) -> Option<(u64, String)> {
        let end = loop {
            if let Some(end) = self.buffered.windows(2).position(|pair| pair == b"\n\n") {
                break end;
            }
            if !self.fill().await {
                assert!(self.buffered.is_empty(), "the body ends in the middle of an event");
                return None;
            }
        };
        let event = self.buffered.split_to(end + 2);
        let text = std::str::from_utf8(&event[..end]).unwrap();
        let fields = text.strip_prefix("id: ").and_then(|text| text.split_once("\ndata: "));
        let (number, data) = fields.unwrap_or_else(|| panic!("not an event with an id: {text:?}"));
        Some((number.parse().unwrap(), data.to_owned()))
    }

    /// The next gRPC message; `None` after the last one.
    pub(crate) async fn message(&mut self) -> Option<Bytes> {
        loop {
            if let Some(prefix) = self.buffered.get(..5) {
                assert_eq!(prefix[0], 0, "the message is not compressed");
                let length = u32::from_be_bytes(prefix[1..].try_into().unwrap()) as usize;
                if self.buffered.len() >= 5 + length {
                    self.buffered.advance(5);
                    return Some(self.buffered.split_to(length).freeze());
                }
            }
            if !self.fill().await {
                assert!(self.buffered.is_empty(), "the body ends in the middle of a message");
                return None;
            }
        }
    }

    /// The status of a gRPC call, available after its last message.
    pub(crate) fn status(&self) -> Result<(), protocol::Error> {
        let trailers = self.trailers.as_ref().expect("a gRPC call ends with a status");
        let text = |name: &str| trailers.get(name).map(|value| value.to_str().unwrap());
        let code: i32 = text("grpc-status").unwrap().parse().unwrap();
        if code == 0 {
            return Ok(());
        }
        let details = text("grpc-status-details-bin").map(|text| STANDARD_NO_PAD.decode(text).unwrap());
        let error = details.and_then(|details| decode_status(&details));
        let message = text("grpc-message").unwrap_or_default();
        Err(error.unwrap_or_else(|| protocol::Error::new(kind_of_code(code), message)))
    }

    /// Reads the next frame of the body; `false` at its end.
    async fn fill(&mut self) -> bool {
        let Some(frame) = with_timeout(self.body.frame()).await else { return false };
        match frame.unwrap().into_data() {
            Ok(data) => self.buffered.extend_from_slice(&data),
            Err(trailers) => self.trailers = trailers.into_trailers().ok(),
        }
        true
    }
}

/// A gRPC message with its length prefix.
pub(crate) fn framed(message: &[u8]) -> Bytes {
    let mut out = vec![0];
    out.extend_from_slice(&u32::try_from(message.len()).unwrap().to_be_bytes());
    out.extend_from_slice(message);
    out.into()
}
