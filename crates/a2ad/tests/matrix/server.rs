//! A server built with the library, listening on a loopback socket.

use std::net::{Ipv4Addr, SocketAddr};

use a2ad::agents::{Approver, Echo, SlowWriter};
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use inbound::listen::{self, Caps};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::wire::{StreamingResponse, with_timeout};

pub(crate) struct Server {
    address: SocketAddr,
    /// One HTTP/2 connection that all gRPC calls share, as gRPC clients do.
    calls: http2::SendRequest<Full<Bytes>>,
    tasks: TaskTracker,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let server = a2ad::Server::builder()
            .agent("echo", Echo)
            .agent("approver", Approver)
            .agent("slow-writer", SlowWriter)
            .build()
            .unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let tasks = TaskTracker::new();
        tasks.spawn(listen::serve(listener, server.router(), Caps::default(), CancellationToken::new()));
        let stream = TokioIo::new(connect(address).await);
        let (calls, connection) = with_timeout(http2::handshake(TokioExecutor::new(), stream)).await.unwrap();
        tasks.spawn(connection);
        Self { address, calls, tasks }
    }

    /// Sends a request over a new HTTP/1.1 connection.
    pub(crate) async fn request(&self, request: Request<Full<Bytes>>) -> StreamingResponse {
        let stream = TokioIo::new(connect(self.address).await);
        let (mut sender, connection) = with_timeout(http1::handshake(stream)).await.unwrap();
        self.tasks.spawn(connection);
        StreamingResponse::of(with_timeout(sender.send_request(request)).await.unwrap())
    }

    /// Sends a request over the shared HTTP/2 connection.
    pub(crate) async fn call(&self, request: Request<Full<Bytes>>) -> StreamingResponse {
        let mut sender = self.calls.clone();
        with_timeout(sender.ready()).await.unwrap();
        StreamingResponse::of(with_timeout(sender.send_request(request)).await.unwrap())
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

async fn connect(address: SocketAddr) -> TcpStream {
    let stream = with_timeout(TcpStream::connect(address)).await.unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}
