//! Sends one request as bytes and reads the response while still sending, because a server may refuse before it has
//! received everything.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use crate::http::{Connection, Error};

/// A body of any size that is never held in memory as a whole.
#[derive(Clone)]
pub(crate) struct Body {
    pub(crate) head: Vec<u8>,
    /// Repeated `times` times between head and tail.
    pub(crate) unit: Vec<u8>,
    pub(crate) times: usize,
    pub(crate) tail: Vec<u8>,
}

/// A complete response.
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) body: Vec<u8>,
    /// From the first byte of the request to the last byte of the response.
    pub(crate) after: Duration,
}

const LIMIT: Duration = Duration::from_secs(30);
const BLOCK_BYTES: usize = 64 * 1024;

impl Body {
    pub(crate) fn of(bytes: impl Into<Vec<u8>>) -> Self {
        Self { head: bytes.into(), unit: Vec::new(), times: 0, tail: Vec::new() }
    }

    pub(crate) fn repeated(
        head: impl Into<Vec<u8>>,
        unit: impl Into<Vec<u8>>,
        times: usize,
        tail: impl Into<Vec<u8>>,
    ) -> Self {
        Self { head: head.into(), unit: unit.into(), times, tail: tail.into() }
    }

    pub(crate) fn len(&self) -> usize {
        self.head.len() + self.unit.len() * self.times + self.tail.len()
    }

    /// The same body in chunked encoding; the middle may be up to a block longer.
    pub(crate) fn in_chunks(&self) -> Self {
        let chunk = |bytes: &[u8]| match bytes {
            [] => Vec::new(),
            _ => [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat(),
        };
        let per_block = (BLOCK_BYTES / self.unit.len().max(1)).clamp(1, self.times.max(1));
        Self {
            head: chunk(&self.head),
            unit: chunk(&self.unit.repeat(per_block)),
            times: self.times.div_ceil(per_block),
            tail: [chunk(&self.tail), b"0\r\n\r\n".to_vec()].concat(),
        }
    }

    async fn write(&self, to: &mut (impl AsyncWrite + Unpin)) -> io::Result<()> {
        to.write_all(&self.head).await?;
        let per_block = (BLOCK_BYTES / self.unit.len().max(1)).clamp(1, self.times.max(1));
        let block = self.unit.repeat(per_block);
        let mut left = self.times;
        while left > 0 {
            let now = left.min(per_block);
            to.write_all(&block[..now * self.unit.len()]).await?;
            left -= now;
        }
        to.write_all(&self.tail).await
    }
}

/// Sends a head and a body on its own connection and reads the response.
pub(crate) async fn exchange(address: SocketAddr, head: &[u8], body: &Body) -> Result<Response, Error> {
    timeout(LIMIT, exchange_unlimited(address, head, body)).await.map_err(|_| Error::TimedOut(LIMIT))?
}

async fn exchange_unlimited(address: SocketAddr, head: &[u8], body: &Body) -> Result<Response, Error> {
    let mut connection = Connection::open(address).await?;
    let started = Instant::now();
    let response = connection.exchange_with(async |to| {
        to.write_all(head).await?;
        body.write(to).await
    });
    let response = response.await?;
    let content_type = response.headers.get("content-type").unwrap_or_default().to_owned();
    Ok(Response { status: response.status, content_type, body: response.body, after: started.elapsed() })
}
