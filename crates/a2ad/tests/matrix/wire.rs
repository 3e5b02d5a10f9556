//! Answers as bytes: whole bodies, server-sent events, and gRPC's messages with their status.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use bytes::{Buf as _, Bytes, BytesMut};
use http::{HeaderMap, Response, response::Parts};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use protocol::grpc::{decode_status, kind_of_code};

/// How long anything may take before a test gives it up.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits, but not for ever.
pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes far too long")
}

/// An answer under way.
pub(crate) struct Answer {
    pub(crate) head: Parts,
    body: Incoming,
    /// Read and not yet looked at.
    ahead: BytesMut,
    trailers: Option<HeaderMap>,
}

impl Answer {
    pub(crate) fn of(response: Response<Incoming>) -> Self {
        let (head, body) = response.into_parts();
        // A call of gRPC that is refused at once has its status in its head.
        let trailers = head.headers.contains_key("grpc-status").then(|| head.headers.clone());
        Self { head, body, ahead: BytesMut::new(), trailers }
    }

    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.head.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Whether it is a stream of events.
    pub(crate) fn is_events(&self) -> bool {
        self.head.status == 200 && self.header("content-type") == "text/event-stream"
    }

    /// The rest of the body, which is text.
    pub(crate) async fn text(mut self) -> String {
        while self.fill().await {}
        String::from_utf8(self.ahead.into()).unwrap()
    }

    /// The next server-sent event: its number and its data; `None` behind the last one.
    pub(crate) async fn event(&mut self) -> Option<(u64, String)> {
        let end = loop {
            if let Some(end) = self.ahead.windows(2).position(|pair| pair == b"\n\n") {
                break end;
            }
            if !self.fill().await {
                assert!(self.ahead.is_empty(), "the body ends in the middle of an event");
                return None;
            }
        };
        let event = self.ahead.split_to(end + 2);
        let text = std::str::from_utf8(&event[..end]).unwrap();
        let fields = text.strip_prefix("id: ").and_then(|text| text.split_once("\ndata: "));
        let (number, data) = fields.unwrap_or_else(|| panic!("no numbered event: {text:?}"));
        Some((number.parse().unwrap(), data.to_owned()))
    }

    /// The next message of gRPC; `None` behind the last one.
    pub(crate) async fn message(&mut self) -> Option<Bytes> {
        loop {
            if let Some(prefix) = self.ahead.get(..5) {
                assert_eq!(prefix[0], 0, "nothing is packed");
                let length = u32::from_be_bytes(prefix[1..].try_into().unwrap()) as usize;
                if self.ahead.len() >= 5 + length {
                    self.ahead.advance(5);
                    return Some(self.ahead.split_to(length).freeze());
                }
            }
            if !self.fill().await {
                assert!(self.ahead.is_empty(), "the body ends in the middle of a message");
                return None;
            }
        }
    }

    /// How a call of gRPC ended, behind its last message.
    pub(crate) fn status(&self) -> Result<(), protocol::Error> {
        let trailers = self.trailers.as_ref().expect("a call ends with a status");
        let text = |name: &str| trailers.get(name).map(|value| value.to_str().unwrap());
        let code: i32 = text("grpc-status").unwrap().parse().unwrap();
        if code == 0 {
            return Ok(());
        }
        let details = text("grpc-status-details-bin").map(|text| STANDARD_NO_PAD.decode(text).unwrap());
        let error = details.and_then(|details| decode_status(&details));
        let said = text("grpc-message").unwrap_or_default();
        Err(error.unwrap_or_else(|| protocol::Error::new(kind_of_code(code), said)))
    }

    /// Reads on; `false` at the end of the body.
    async fn fill(&mut self) -> bool {
        let Some(frame) = within(self.body.frame()).await else { return false };
        match frame.unwrap().into_data() {
            Ok(data) => self.ahead.extend_from_slice(&data),
            Err(trailers) => self.trailers = trailers.into_trailers().ok(),
        }
        true
    }
}

/// A message of gRPC behind its prefix.
pub(crate) fn framed(message: &[u8]) -> Bytes {
    let mut out = vec![0];
    out.extend_from_slice(&u32::try_from(message.len()).unwrap().to_be_bytes());
    out.extend_from_slice(message);
    out.into()
}
