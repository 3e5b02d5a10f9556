//! A connection of the load generator, for either HTTP version.

use std::io;
use std::net::SocketAddr;

use crate::call::Mode;
use crate::client::{self, Response};
use crate::{grpc, http2};

/// An open connection for calls of one mode.
pub enum LoadConnection {
    /// HTTP/1.1, for JSON.
    Http1(client::Connection),
    /// HTTP/2, for gRPC.
    Http2(http2::Connection),
}

impl LoadConnection {
    /// Connects with the HTTP version that the mode needs.
    pub async fn open(mode: Mode, address: SocketAddr) -> io::Result<Self> {
        match mode {
            Mode::SendGrpc | Mode::SendGrpcMultiplexed => {
                http2::Connection::open(address, grpc::SEND_MESSAGE).await.map(Self::Http2)
            }
            _ => client::Connection::open(address).await.map(Self::Http1),
        }
    }

    /// Sends a request encoded by `Calls` and reads the complete response. After an error, or if this future is
    /// dropped, the connection must not be used again.
    pub async fn exchange(&mut self, request: &[u8]) -> io::Result<Response<'_>> {
        match self {
            Self::Http1(connection) => connection.exchange(request).await,
            // It rejects any other status itself.
            Self::Http2(connection) => {
                connection.exchange(request).await.map(|body| Response { status: 200, body })
            }
        }
    }
}
