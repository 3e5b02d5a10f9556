//! A connection as the load sees it, whichever HTTP it speaks.

use std::io;
use std::net::SocketAddr;

use crate::call::Mode;
use crate::client::{self, Response};
use crate::{grpc, http2};

/// An open connection for calls of one mode.
pub enum Line {
    /// HTTP/1.1, for JSON.
    Http1(client::Connection),
    /// HTTP/2, for gRPC.
    Http2(http2::Connection),
}

impl Line {
    /// Connects.
    pub async fn open(mode: Mode, address: SocketAddr) -> io::Result<Self> {
        match mode {
            Mode::SendGrpc => http2::Connection::open(address, grpc::SEND_MESSAGE).await.map(Self::Http2),
            _ => client::Connection::open(address).await.map(Self::Http1),
        }
    }

    /// Sends what `Calls` wrote and reads the answer to the end. After an error, or if dropped half-way, the line
    /// must not be used again.
    pub async fn exchange(&mut self, request: &[u8]) -> io::Result<Response<'_>> {
        match self {
            Self::Http1(connection) => connection.exchange(request).await,
            // It refuses any other status by itself.
            Self::Http2(connection) => {
                connection.exchange(request).await.map(|body| Response { status: 200, body })
            }
        }
    }
}
