//! gRPC over one HTTP/2 connection, for tests: an error fails the test.

use std::{convert::Infallible, net::SocketAddr};

use bytes::Bytes;
use http::{HeaderMap, Request};
use http_body_util::{StreamBody, combinators::BoxBody};
use hyper::body::Frame;
use protocol::{
    Error, Event, Operation, Reply,
    grpc::{Service, decode_status},
};
pub(crate) use testkit::http2::framed;
use testkit::http2::{self, Body};
use tokio::sync::mpsc;

use super::{Server, TIMEOUT};

/// One HTTP/2 connection.
pub(crate) struct Channel(http2::Channel);

/// How a call ended.
#[derive(Clone, Debug)]
pub(crate) struct Status {
    pub(crate) code: i32,
    pub(crate) message: String,
    /// Decoded from the details.
    pub(crate) error: Option<Error>,
    pub(crate) trailers: HeaderMap,
}

/// A complete response.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) http: u16,
    pub(crate) head: HeaderMap,
    pub(crate) messages: Vec<Bytes>,
    pub(crate) status: Status,
}

/// A response in progress.
pub(crate) struct Streaming {
    pub(crate) head: HeaderMap,
    response: http2::Response,
}

impl Channel {
    pub(crate) async fn open(server: &Server) -> Self {
        Self::to(server.address).await
    }

    /// Connects to an address.
    pub(crate) async fn to(address: SocketAddr) -> Self {
        Self(http2::Channel::open(address).await.unwrap().with_limit(TIMEOUT))
    }

    /// Calls a method of an A2A service and reads the whole response.
    pub(crate) async fn call(
        &self,
        service: Service,
        operation: &Operation,
        metadata: &[(&str, &str)],
    ) -> Outcome {
        self.stream(service, operation, metadata).await.whole().await
    }

    /// Calls a method that must succeed with one message.
    pub(crate) async fn ask(&self, service: Service, operation: &Operation) -> Reply {
        self.call(service, operation, &[]).await.reply(service, operation)
    }

    /// Calls a method of an A2A service, up to the head of the response.
    pub(crate) async fn stream(
        &self,
        service: Service,
        operation: &Operation,
        metadata: &[(&str, &str)],
    ) -> Streaming {
        let method = service.method(operation.kind()).expect("the service has this method");
        let path = format!("/{}/{method}", service.name());
        self.begin(&path, metadata, framed(&service.encode_operation(operation))).await
    }

    /// Posts raw bytes to a path and reads the whole response.
    pub(crate) async fn raw(&self, path: &str, metadata: &[(&str, &str)], body: impl Into<Bytes>) -> Outcome {
        self.begin(path, metadata, body).await.whole().await
    }

    /// Posts raw bytes to a path, up to the head of the response.
    pub(crate) async fn begin(
        &self,
        path: &str,
        metadata: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Streaming {
        self.send(self.request(path, metadata, body)).await
    }

    /// Calls a path with a body that is still being written when the response is awaited.
    pub(crate) fn begin_open(
        &self,
        path: &str,
    ) -> (mpsc::UnboundedSender<Bytes>, impl Future<Output = Streaming>) {
        let (sender, mut pieces) = mpsc::unbounded_channel::<Bytes>();
        let pieces = futures_util::stream::poll_fn(move |cx| {
            pieces.poll_recv(cx).map(|piece| piece.map(|piece| Ok::<_, Infallible>(Frame::data(piece))))
        });
        let request = self.request(path, &[], "").map(|_| BoxBody::new(StreamBody::new(pieces)));
        (sender, self.send(request))
    }

    /// Sends any request.
    pub(crate) async fn send(&self, request: Request<Body>) -> Streaming {
        let response = self.0.request(request).await.unwrap();
        assert_eq!(response.header("content-type"), "application/grpc");
        Streaming { head: response.headers.clone(), response }
    }

    pub(crate) fn request(
        &self,
        path: &str,
        metadata: &[(&str, &str)],
        body: impl Into<Bytes>,
    ) -> Request<Body> {
        self.0.grpc(path, metadata, body).unwrap()
    }

    /// Resolves when the server has ended the connection.
    pub(crate) async fn closed(self) {
        self.0.closed().await.unwrap();
    }
}

impl Streaming {
    /// The next message; `None` after the last one.
    pub(crate) async fn message(&mut self) -> Option<Bytes> {
        self.response.message().await.unwrap()
    }

    /// The next event of an A2A stream.
    pub(crate) async fn event(&mut self, service: Service) -> Option<Event> {
        Some(service.decode_event(&self.message().await?).unwrap())
    }

    /// The rest of the response.
    pub(crate) async fn whole(mut self) -> Outcome {
        let mut messages = Vec::new();
        while let Some(message) = self.message().await {
            messages.push(message);
        }
        Outcome { http: self.response.status, status: self.status(), head: self.head, messages }
    }

    /// How it ended.
    pub(crate) fn status(&self) -> Status {
        let http2::Status { code, message, details } = self.response.grpc_status().unwrap();
        let trailers = self.response.trailers.clone().expect("they have the status");
        Status { code, message, error: details.and_then(|bytes| decode_status(&bytes)), trailers }
    }
}

impl Outcome {
    /// The only message of a successful response.
    pub(crate) fn reply(&self, service: Service, operation: &Operation) -> Reply {
        assert_eq!((self.http, self.status.code), (200, 0), "{:?}", self.status);
        let [message] = self.messages.as_slice() else { panic!("{} messages", self.messages.len()) };
        service.decode_reply(operation.kind(), message).unwrap()
    }

    /// The events of a successful stream.
    pub(crate) fn events(&self, service: Service) -> Vec<Event> {
        assert_eq!((self.http, self.status.code), (200, 0), "{:?}", self.status);
        self.messages.iter().map(|message| service.decode_event(message).unwrap()).collect()
    }
}
