//! Responses that are read incrementally: HTTP/1.1 with server-sent events, and gRPC over HTTP/2. An error fails the
//! test.

use bytes::Bytes;
use protocol::grpc::{decode_status, kind_of_code};
use testkit::{
    http1::{Connection, Head},
    http2,
};

/// A response whose body is read incrementally.
pub(crate) enum StreamingResponse {
    Http(Connection, Head),
    Grpc(http2::Response),
}

impl StreamingResponse {
    pub(crate) fn status_code(&self) -> u16 {
        match self {
            Self::Http(_, head) => head.status,
            Self::Grpc(response) => response.status,
        }
    }

    /// The value of a header; empty if absent.
    pub(crate) fn header(&self, name: &str) -> &str {
        match self {
            Self::Http(_, head) => head.headers.get(name).unwrap_or_default(),
            Self::Grpc(response) => response.header(name),
        }
    }

    /// Whether the response is a stream of server-sent events.
    pub(crate) fn is_events(&self) -> bool {
        self.status_code() == 200 && self.header("content-type") == "text/event-stream"
    }

    /// The rest of the body as text.
    pub(crate) async fn text(self) -> String {
        let Self::Http(mut connection, _) = self else { panic!("a gRPC response is not text") };
        String::from_utf8(connection.body().await.unwrap()).unwrap()
    }

    /// The id and data of the next server-sent event; `None` after the last one. Anything else fails the test.
    pub(crate) async fn event(&mut self) -> Option<(u64, String)> {
        let Self::Http(connection, _) = self else { panic!("a gRPC response has no events") };
        let block = connection.block().await.unwrap()?;
        let fields = block.strip_suffix("\n\n").and_then(|text| text.strip_prefix("id: "));
        let fields = fields.and_then(|text| text.split_once("\ndata: "));
        let (number, data) = fields.unwrap_or_else(|| panic!("not an event with an id: {block:?}"));
        Some((number.parse().unwrap(), data.to_owned()))
    }

    /// The next gRPC message; `None` after the last one.
    pub(crate) async fn message(&mut self) -> Option<Bytes> {
        let Self::Grpc(response) = self else { panic!("an HTTP/1.1 response has no messages") };
        response.message().await.unwrap()
    }

    /// The status of a gRPC call, available after its last message.
    pub(crate) fn status(&self) -> Result<(), protocol::Error> {
        let Self::Grpc(response) = self else { panic!("an HTTP/1.1 response has no gRPC status") };
        let status = response.grpc_status().unwrap();
        if status.code == 0 {
            return Ok(());
        }
        let error = status.details.and_then(|details| decode_status(&details));
        Err(error.unwrap_or_else(|| protocol::Error::new(kind_of_code(status.code), status.message)))
    }
}
