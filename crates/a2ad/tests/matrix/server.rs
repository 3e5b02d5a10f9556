//! A server as the library makes it, on a socket of its own.

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

use crate::wire::{Answer, within};

/// A server that listens, and the ways to it.
pub(crate) struct Server {
    address: SocketAddr,
    /// One connection of HTTP/2 for all calls of gRPC, as its clients keep it.
    calls: http2::SendRequest<Full<Bytes>>,
    tasks: TaskTracker,
}

impl Server {
    pub(crate) async fn open() -> Self {
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
        let (calls, connection) = within(http2::handshake(TokioExecutor::new(), stream)).await.unwrap();
        tasks.spawn(connection);
        Self { address, calls, tasks }
    }

    /// Sends a request over HTTP/1.1, on a connection of its own.
    pub(crate) async fn request(&self, request: Request<Full<Bytes>>) -> Answer {
        let stream = TokioIo::new(connect(self.address).await);
        let (mut sender, connection) = within(http1::handshake(stream)).await.unwrap();
        self.tasks.spawn(connection);
        Answer::of(within(sender.send_request(request)).await.unwrap())
    }

    /// Sends a request over HTTP/2, beside whatever else is under way.
    pub(crate) async fn call(&self, request: Request<Full<Bytes>>) -> Answer {
        let mut sender = self.calls.clone();
        within(sender.ready()).await.unwrap();
        Answer::of(within(sender.send_request(request)).await.unwrap())
    }

    /// Where a path is.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

async fn connect(address: SocketAddr) -> TcpStream {
    let stream = within(TcpStream::connect(address)).await.unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}
