//! One HTTP/2 connection with prior knowledge, making one unary gRPC call after the other.
//!
//! The counterpart of `client` and as plain, so that what is compared are the server's bindings and not two ways to
//! write a client: a call is one write of two frames, and what comes back is read frame by frame. Whatever a server
//! is free to do but has no reason to do here (pad, split headers) is an error, not a feature.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::hpack::{Request, Table};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const FRAME_HEAD: usize = 9;
/// What no peer sends more of who was not told that it may.
const MAX_FRAME: usize = 16 * 1024;
/// What a peer may send before it is told otherwise, on a connection and on each stream.
const FIRST_WINDOW: u32 = 65_535;
const MAX_WINDOW: u32 = (1 << 31) - 1;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

/// Of `SETTINGS` and `PING`.
const ACK: u8 = 1;
/// Of `DATA` and `HEADERS`.
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 0x20;

const HEADER_TABLE_SIZE: u16 = 1;
const INITIAL_WINDOW_SIZE: u16 = 4;

/// An open connection and the answer it last read.
pub struct Connection {
    stream: TcpStream,
    headers: Request,
    /// What goes out next.
    sending: Vec<u8>,
    /// Bytes as they came, and where the first unread frame begins.
    received: Vec<u8>,
    at: usize,
    table: Table,
    /// The current call.
    call: u32,
    /// How much may be sent, on this connection and on a new stream.
    credit: u32,
    stream_credit: u32,
    /// How much was received that the server has not been given credit for.
    owed: u32,
    body: Vec<u8>,
}

struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    /// Where in what was received its payload is.
    start: usize,
    end: usize,
}

impl Connection {
    /// Connects with `TCP_NODELAY` to call the method at `path`, and exchanges settings.
    pub async fn open(address: SocketAddr, path: &str) -> io::Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let fields = [("content-type", "application/grpc"), ("te", "trailers"), ("a2a-version", "1.0")];
        let mut connection = Self {
            stream,
            headers: Request::post(path, &address.to_string(), &fields),
            sending: PREFACE.to_vec(),
            received: Vec::with_capacity(16 * 1024),
            at: 0,
            table: Table::default(),
            call: 0,
            credit: FIRST_WINDOW,
            stream_credit: FIRST_WINDOW,
            owed: MAX_WINDOW - FIRST_WINDOW,
            body: Vec::new(),
        };
        push_frame(&mut connection.sending, SETTINGS, 0, 0, &setting(INITIAL_WINDOW_SIZE, MAX_WINDOW));
        connection.give_credit();
        connection.send().await?;
        let settings = connection.next_frame().await?;
        if settings.kind != SETTINGS || settings.flags & ACK != 0 {
            return Err(malformed("the server does not begin with its settings"));
        }
        connection.housekeeping(&settings).await?;
        Ok(connection)
    }

    /// Makes a call with `message` and returns the body of its answer, whose `grpc-status` has to be 0. After an
    /// error, or if dropped half-way, the connection must not be used again.
    pub async fn exchange(&mut self, message: &[u8]) -> io::Result<&[u8]> {
        let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
        if length > self.stream_credit {
            return Err(malformed("the server does not take a message of this size at once"));
        }
        while length > self.credit {
            let frame = self.next_frame().await?;
            self.housekeeping(&frame).await?;
        }
        self.credit -= length;
        let block = if self.call == 0 { &self.headers.first } else { &self.headers.again };
        // Calls of a client have odd numbers.
        self.call = if self.call == 0 { 1 } else { self.call + 2 };
        push_frame(&mut self.sending, HEADERS, END_HEADERS, self.call, block);
        push_frame(&mut self.sending, DATA, END_STREAM, self.call, message);
        if self.owed > MAX_WINDOW / 2 {
            self.give_credit();
        }
        self.send().await?;
        self.body.clear();
        while !self.read_answer().await? {}
        Ok(&self.body)
    }

    /// Reads one frame; `true` if it was the last of a good answer.
    async fn read_answer(&mut self) -> io::Result<bool> {
        let frame = self.next_frame().await?;
        if frame.stream != self.call {
            self.housekeeping(&frame).await?;
            return Ok(false);
        }
        let payload = &self.received[frame.start..frame.end];
        let ends = frame.flags & END_STREAM != 0;
        match frame.kind {
            DATA if frame.flags & PADDED == 0 => {
                self.body.extend_from_slice(payload);
                self.owed += payload.len() as u32;
                if ends { Err(malformed("the answer ends without a grpc-status")) } else { Ok(false) }
            }
            HEADERS if frame.flags & (END_HEADERS | PADDED | PRIORITY) == END_HEADERS => {
                let block =
                    self.table.read(payload).ok_or_else(|| malformed("a header block cannot be read"))?;
                match (block.grpc_status, ends) {
                    (Some(0), true) => Ok(true),
                    (Some(status), true) => Err(io::Error::other(format!("grpc-status {status}"))),
                    (None, false) if block.good => Ok(false),
                    _ => Err(malformed("the answer is neither 200 nor has it a grpc-status")),
                }
            }
            WINDOW_UPDATE => Ok(false),
            RST_STREAM => Err(io::ErrorKind::ConnectionReset.into()),
            _ => Err(malformed("a frame that no answer needs")),
        }
    }

    /// Takes in a frame that has nothing to do with the current call.
    async fn housekeeping(&mut self, frame: &Frame) -> io::Result<()> {
        let payload = &self.received[frame.start..frame.end];
        match (frame.kind, frame.flags & ACK) {
            (SETTINGS, 0) => {
                for setting in payload.chunks_exact(6) {
                    let value = u32_at(setting, 2);
                    match u16::from_be_bytes([setting[0], setting[1]]) {
                        INITIAL_WINDOW_SIZE => self.stream_credit = value,
                        HEADER_TABLE_SIZE if value < 4096 => {
                            return Err(malformed("the server's header table is too small"));
                        }
                        _ => {}
                    }
                }
                push_frame(&mut self.sending, SETTINGS, ACK, 0, &[]);
                self.send().await
            }
            (PING, 0) => {
                let payload = payload.to_vec();
                push_frame(&mut self.sending, PING, ACK, 0, &payload);
                self.send().await
            }
            (WINDOW_UPDATE, _) if frame.stream == 0 && payload.len() == 4 => {
                self.credit = self.credit.saturating_add(u32_at(payload, 0));
                Ok(())
            }
            (GOAWAY, _) => Err(io::ErrorKind::ConnectionAborted.into()),
            (HEADERS | DATA, _) => Err(malformed("an answer to another call")),
            _ => Ok(()),
        }
    }

    /// Reads on until a frame is whole.
    async fn next_frame(&mut self) -> io::Result<Frame> {
        if self.at == self.received.len() {
            self.received.clear();
            self.at = 0;
        }
        loop {
            let unread = &self.received[self.at..];
            if let Some(head) = unread.get(..FRAME_HEAD) {
                let length = u32_at(head, 0) as usize >> 8;
                if length > MAX_FRAME {
                    return Err(malformed("this is not HTTP/2"));
                }
                if unread.len() >= FRAME_HEAD + length {
                    let start = self.at + FRAME_HEAD;
                    self.at = start + length;
                    let stream = u32_at(head, 5) & MAX_WINDOW;
                    return Ok(Frame { kind: head[3], flags: head[4], stream, start, end: self.at });
                }
            }
            if self.stream.read_buf(&mut self.received).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    async fn send(&mut self) -> io::Result<()> {
        self.stream.write_all(&self.sending).await?;
        self.sending.clear();
        Ok(())
    }

    fn give_credit(&mut self) {
        push_frame(&mut self.sending, WINDOW_UPDATE, 0, 0, &self.owed.to_be_bytes());
        self.owed = 0;
    }
}

fn setting(name: u16, value: u32) -> [u8; 6] {
    let ([a, b], [c, d, e, f]) = (name.to_be_bytes(), value.to_be_bytes());
    [a, b, c, d, e, f]
}

fn push_frame(into: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    into.extend_from_slice(&(payload.len() as u32).to_be_bytes()[1..]);
    into.extend_from_slice(&[kind, flags]);
    into.extend_from_slice(&stream.to_be_bytes());
    into.extend_from_slice(payload);
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn malformed(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::net::SocketAddr;

    use axum::http::{HeaderMap, Response};
    use h2::server::Builder;
    use tokio::net::TcpListener;

    /// A server of somebody else's making that sends messages back, with this `grpc-status` if any.
    async fn serve(status: Option<&'static str>) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            stream.set_nodelay(true).unwrap();
            let mut builder = Builder::new();
            builder.initial_connection_window_size(1 << 16);
            let mut connection = builder.handshake::<_, axum::body::Bytes>(stream).await.unwrap();
            while let Some(Ok((request, mut respond))) = connection.accept().await {
                tokio::spawn(async move {
                    assert_eq!((request.method().as_str(), request.uri().path()), ("POST", "/echo"));
                    let mut fields =
                        ["content-type", "te", "a2a-version"].map(|name| &request.headers()[name]);
                    fields.sort();
                    assert_eq!(fields, ["1.0", "application/grpc", "trailers"]);
                    let mut body = request.into_body();
                    let message = body.data().await.unwrap().unwrap();
                    body.flow_control().release_capacity(message.len()).unwrap();
                    let answer =
                        Response::builder().header("content-type", "application/grpc").body(()).unwrap();
                    let mut answer = respond.send_response(answer, false).unwrap();
                    answer.send_data(message, status.is_none()).unwrap();
                    if let Some(status) = status {
                        let fields = [("grpc-status", status)]
                            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()));
                        answer.send_trailers(HeaderMap::from_iter(fields)).unwrap();
                    }
                });
            }
        });
        address
    }

    #[tokio::test]
    async fn calls_follow_each_other_on_one_connection() {
        let mut connection = Connection::open(serve(Some("0")).await, "/echo").await.unwrap();
        // More than the server takes before it has to give credit again.
        for n in 0..500_u32 {
            let message = n.to_be_bytes().repeat(100);
            assert_eq!(connection.exchange(&message).await.unwrap(), message);
        }
    }

    #[tokio::test]
    async fn only_status_0_will_do() {
        for (status, said) in
            [(Some("5"), "grpc-status 5"), (Some("14"), "grpc-status 14"), (None, "without")]
        {
            let mut connection = Connection::open(serve(status).await, "/echo").await.unwrap();
            let error = connection.exchange(b"ping").await.unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
    }

    #[tokio::test]
    async fn a_server_without_http_2_is_an_error() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
            // Stays open until the other end has had enough.
            let _ = stream.read_to_end(&mut Vec::new()).await;
        });
        assert!(Connection::open(address, "/echo").await.is_err());
    }
}
