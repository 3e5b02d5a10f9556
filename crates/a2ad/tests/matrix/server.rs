//! A server built with the library, listening on a loopback socket.

use std::net::{Ipv4Addr, SocketAddr};

use a2ad::agents::{Approver, Echo, SlowWriter};
use inbound::listen::{self, Caps};
use testkit::{http1::Connection, http2::Channel};
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub(crate) struct Server {
    address: SocketAddr,
    /// One HTTP/2 connection that all gRPC calls share, as gRPC clients do.
    pub(crate) channel: Channel,
    _tasks: TaskTracker,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let server = a2ad::Server::builder()
            .agent("echo", Echo)
            .agent("approver", Approver)
            .agent("slow-writer", SlowWriter)
            .any_host()
            .build()
            .unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let tasks = TaskTracker::new();
        tasks.spawn(listen::serve(listener, server.router(), Caps::default(), CancellationToken::new()));
        Self { address, channel: Channel::open(address).await.unwrap(), _tasks: tasks }
    }

    /// Opens a new HTTP/1.1 connection.
    pub(crate) async fn connect(&self) -> Connection {
        Connection::open(self.address).await.unwrap()
    }
}
