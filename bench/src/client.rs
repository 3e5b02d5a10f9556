//! One HTTP/1.1 keep-alive connection, parsing just enough of the protocol to find the end of a response.
//!
//! The load generator shares the machine with the server it measures, so this is plain bytes over a socket: requests
//! are already encoded, the response head is scanned for its status and its framing, and buffers are reused. A
//! response is read completely, or, if it is a long-lived stream, chunk by chunk. There is no pipelining and no
//! redirect; anything unexpected is an error.

use std::io;
use std::net::SocketAddr;
use std::ops::Range;

use memchr::memmem;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// An open connection and the last response.
pub struct Connection {
    stream: TcpStream,
    /// Bytes of the current response as received.
    received: Vec<u8>,
    /// Body of the current response after its chunks are joined.
    joined: Vec<u8>,
}

/// The body of a streaming response. It owns the connection, which is closed with it.
pub struct Body {
    connection: Connection,
    /// Offset in the received bytes where the next chunk begins.
    at: usize,
}

/// A response, borrowed from its connection until the next exchange.
pub struct Response<'a> {
    /// The HTTP status.
    pub status: u16,
    /// The whole body, without chunk framing.
    pub body: &'a [u8],
}

impl Connection {
    /// Connects with `TCP_NODELAY`.
    pub async fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, received: Vec::with_capacity(16 * 1024), joined: Vec::new() })
    }

    /// Sends `request` and reads the complete response. After an error, or if this future is dropped, the connection
    /// must not be used again.
    pub async fn exchange(&mut self, request: &[u8]) -> io::Result<Response<'_>> {
        self.received.clear();
        self.stream.write_all(request).await?;
        let body_at = self.read_past(b"\r\n\r\n", 0).await?;
        let head = Head::decode(&self.received[..body_at])?;
        let body = match head.framing {
            Framing::Length(length) => {
                self.read_to(body_at + length).await?;
                self.ends_at(body_at + length)?;
                &self.received[body_at..]
            }
            Framing::Chunked => {
                self.join_chunks(body_at).await?;
                &self.joined
            }
        };
        Ok(Response { status: head.status, body })
    }

    /// Sends `request` and returns as soon as the response begins, which has to be status 200 with chunked encoding.
    pub async fn stream(mut self, request: &[u8]) -> io::Result<Body> {
        self.received.clear();
        self.stream.write_all(request).await?;
        let at = self.read_past(b"\r\n\r\n", 0).await?;
        match Head::decode(&self.received[..at])? {
            Head { status: 200, framing: Framing::Chunked } => Ok(Body { connection: self, at }),
            _ => Err(malformed("the response is not a stream")),
        }
    }

    async fn join_chunks(&mut self, mut at: usize) -> io::Result<()> {
        self.joined.clear();
        loop {
            let data_at = self.read_past(b"\r\n", at).await?;
            let size = chunk_size(&self.received[at..data_at - 2])?;
            at = data_at + size + 2;
            self.read_to(at).await?;
            if size == 0 {
                return self.ends_at(at);
            }
            self.joined.extend_from_slice(&self.received[data_at..data_at + size]);
        }
    }

    /// Reads until `mark` is found at or after `from`; returns the offset after it.
    async fn read_past(&mut self, mark: &[u8], from: usize) -> io::Result<usize> {
        loop {
            let unread = self.received.get(from..).unwrap_or_default();
            if let Some(found) = memmem::find(unread, mark) {
                return Ok(from + found + mark.len());
            }
            self.read_more().await?;
        }
    }

    /// Reads until at least `length` bytes are received.
    async fn read_to(&mut self, length: usize) -> io::Result<()> {
        while self.received.len() < length {
            self.read_more().await?;
        }
        Ok(())
    }

    async fn read_more(&mut self) -> io::Result<()> {
        match self.stream.read_buf(&mut self.received).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(()),
        }
    }

    fn ends_at(&self, length: usize) -> io::Result<()> {
        if self.received.len() == length {
            Ok(())
        } else {
            Err(malformed("bytes after the end of the response"))
        }
    }
}

impl Body {
    /// Waits for the next chunks and appends their data to `into`; `false` at the regular end. Cancellation safe.
    pub async fn read(&mut self, into: &mut Vec<u8>) -> io::Result<bool> {
        let before = into.len();
        loop {
            match self.chunk()? {
                // The last chunk is not consumed, so that further calls find the end again.
                Some((data, _)) if data.is_empty() => return Ok(into.len() > before),
                Some((data, after)) => {
                    into.extend_from_slice(&self.connection.received[data]);
                    self.at = after;
                }
                None if into.len() > before => return Ok(true),
                None => {
                    self.connection.received.drain(..self.at);
                    self.at = 0;
                    self.connection.read_more().await?;
                }
            }
        }
    }

    /// The range of the next chunk's data and the offset after the chunk, if it is completely received.
    fn chunk(&self) -> io::Result<Option<(Range<usize>, usize)>> {
        let unread = &self.connection.received[self.at..];
        let Some(line) = memmem::find(unread, b"\r\n") else { return Ok(None) };
        let size = chunk_size(&unread[..line])?;
        let (start, end) = (self.at + line + 2, self.at + line + 2 + size);
        Ok((end + 2 <= self.connection.received.len()).then_some((start..end, end + 2)))
    }
}

struct Head {
    status: u16,
    framing: Framing,
}

enum Framing {
    Length(usize),
    Chunked,
}

impl Head {
    fn decode(head: &[u8]) -> io::Result<Self> {
        let head = std::str::from_utf8(head).map_err(|_| malformed("the response head is not UTF-8"))?;
        let mut lines = head.split("\r\n");
        let status = lines
            .next()
            .and_then(|line| line.strip_prefix("HTTP/1.1 "))
            .and_then(|rest| rest.get(..3)?.parse().ok())
            .ok_or_else(|| malformed("no HTTP/1.1 status line"))?;
        let framing = lines
            .find_map(framing)
            .ok_or_else(|| malformed("neither Content-Length nor chunked encoding"))?;
        Ok(Self { status, framing })
    }
}

fn framing(line: &str) -> Option<Framing> {
    let (name, value) = line.split_once(':')?;
    if name.eq_ignore_ascii_case("content-length") {
        value.trim().parse().ok().map(Framing::Length)
    } else if name.eq_ignore_ascii_case("transfer-encoding") {
        value.trim().eq_ignore_ascii_case("chunked").then_some(Framing::Chunked)
    } else {
        None
    }
}

fn chunk_size(line: &[u8]) -> io::Result<usize> {
    let digits = std::str::from_utf8(line).map_err(|_| malformed("a chunk size is not UTF-8"))?;
    usize::from_str_radix(digits, 16).map_err(|_| malformed("a chunk size is not a number"))
}

fn malformed(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
