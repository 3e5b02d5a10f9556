//! A minimal gRPC client: an HTTP/2 connection with frames built by hand.

use std::{convert::Infallible, net::SocketAddr};

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use bytes::{Buf as _, Bytes, BytesMut};
use http::{HeaderMap, Request, Response};
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::BoxBody};
use hyper::{
    body::{Frame, Incoming},
    client::conn::http2::{SendRequest, handshake},
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use protocol::{
    Error, Event, Operation, Reply,
    grpc::{Service, decode_status},
};
use tokio::{net::TcpStream, sync::mpsc};
use tokio_util::task::TaskTracker;

use super::{Server, with_timeout};

type Body = BoxBody<Bytes, Infallible>;

/// One HTTP/2 connection.
pub(crate) struct Channel {
    sender: SendRequest<Body>,
    authority: String,
    tasks: TaskTracker,
}

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
    pub(crate) http: u16,
    pub(crate) head: HeaderMap,
    body: Incoming,
    ahead: BytesMut,
    trailers: Option<HeaderMap>,
}

impl Channel {
    pub(crate) async fn open(server: &Server) -> Self {
        Self::to(server.address).await
    }

    /// Connects to an address.
    pub(crate) async fn to(address: SocketAddr) -> Self {
        let stream = with_timeout(TcpStream::connect(address)).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (sender, connection) =
            with_timeout(handshake(TokioExecutor::new(), TokioIo::new(stream))).await.unwrap();
        let tasks = TaskTracker::new();
        tasks.spawn(connection);
        Self { sender, authority: address.to_string(), tasks }
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
        self.send(self.request(path, metadata, Full::new(body.into()).boxed())).await
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
        (sender, self.send(self.request(path, &[], BoxBody::new(StreamBody::new(pieces)))))
    }

    /// Sends any request.
    pub(crate) async fn send(&self, request: Request<Body>) -> Streaming {
        let mut sender = self.sender.clone();
        with_timeout(sender.ready()).await.unwrap();
        Streaming::of(with_timeout(sender.send_request(request)).await.unwrap())
    }

    pub(crate) fn request(&self, path: &str, metadata: &[(&str, &str)], body: Body) -> Request<Body> {
        let mut request = Request::post(format!("http://{}{path}", self.authority)).header("te", "trailers");
        if !metadata.iter().any(|pair| pair.0 == "content-type") {
            request = request.header("content-type", "application/grpc");
        }
        for (name, value) in metadata {
            request = request.header(*name, *value);
        }
        request.body(body).unwrap()
    }

    /// Resolves when the server has ended the connection.
    pub(crate) async fn closed(self) {
        self.tasks.close();
        with_timeout(self.tasks.wait()).await;
    }
}

impl Streaming {
    fn of(response: Response<Incoming>) -> Self {
        let (head, body) = response.into_parts();
        assert_eq!(head.headers["content-type"], "application/grpc");
        Self {
            http: head.status.as_u16(),
            // A response without a body has its status in its head.
            trailers: head.headers.contains_key("grpc-status").then(|| head.headers.clone()),
            head: head.headers,
            body,
            ahead: BytesMut::new(),
        }
    }

    /// The next message; `None` after the last one.
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
            let Some(frame) = with_timeout(self.body.frame()).await else {
                assert!(self.ahead.is_empty(), "the body ends in the middle of a message");
                return None;
            };
            match frame.unwrap().into_data() {
                Ok(data) => self.ahead.extend_from_slice(&data),
                Err(trailers) => self.trailers = trailers.into_trailers().ok(),
            }
        }
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
        Outcome { http: self.http, status: self.status(), head: self.head, messages }
    }

    /// How it ended.
    pub(crate) fn status(&self) -> Status {
        let trailers = self.trailers.clone().expect("an answer ends with a status");
        let text = |name: &str| trailers.get(name).map(|value| value.to_str().unwrap().to_owned());
        let details = text("grpc-status-details-bin").map(|text| STANDARD_NO_PAD.decode(text).unwrap());
        let code = text("grpc-status").unwrap().parse().unwrap();
        let message = unescape(&text("grpc-message").unwrap_or_default());
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

/// A message with its length prefix.
pub(crate) fn framed(message: &[u8]) -> Bytes {
    let mut out = vec![0];
    out.extend_from_slice(&u32::try_from(message.len()).unwrap().to_be_bytes());
    out.extend_from_slice(message);
    out.into()
}

fn unescape(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8().unwrap().into_owned()
}
