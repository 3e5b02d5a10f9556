//! One HTTP/2 connection with prior knowledge, making unary gRPC calls: one after the other, or several at once.
//!
//! The counterpart of `client` and equally minimal, so that the comparison is between the server's bindings and not
//! between two clients: a call is two frames, calls that begin together are one write, and responses are read frame by
//! frame. Optional features that a server has no reason to use here (padding, split headers) are an error.

use std::io;
use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::hpack::{Request, Table};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const FRAME_HEAD: usize = 9;
/// The default maximum frame size, which this client does not raise.
const MAX_FRAME: usize = 16 * 1024;
/// The default flow-control window of a connection and of each stream.
const FIRST_WINDOW: u32 = 65_535;
const MAX_WINDOW: u32 = (1 << 31) - 1;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

/// Flag of `SETTINGS` and `PING`.
const ACK: u8 = 1;
/// Flag of `DATA` and `HEADERS`.
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const PADDED: u8 = 8;
const PRIORITY: u8 = 0x20;

const HEADER_TABLE_SIZE: u16 = 1;
const INITIAL_WINDOW_SIZE: u16 = 4;

/// An open connection and its calls.
pub struct Connection {
    stream: TcpStream,
    headers: Request,
    /// Bytes to send next.
    sending: Vec<u8>,
    /// Received bytes, and the offset of the first unread frame.
    received: Vec<u8>,
    at: usize,
    table: Table,
    /// Stream id of the call that began last; 0 before the first.
    last_call: u32,
    /// Calls without a complete response.
    open_calls: Vec<OpenCall>,
    /// Flow-control windows for sending, of this connection and of a new stream.
    window: u32,
    stream_window: u32,
    /// Received bytes for which no WINDOW_UPDATE was sent yet.
    unacknowledged: u32,
    /// The body of the last complete response.
    body: Vec<u8>,
}

struct OpenCall {
    stream: u32,
    body: Vec<u8>,
}

struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    /// Offsets of the payload in the received bytes.
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
            last_call: 0,
            open_calls: Vec::new(),
            window: FIRST_WINDOW,
            stream_window: FIRST_WINDOW,
            unacknowledged: MAX_WINDOW - FIRST_WINDOW,
            body: Vec::new(),
        };
        push_frame(&mut connection.sending, SETTINGS, 0, 0, &setting(INITIAL_WINDOW_SIZE, MAX_WINDOW));
        connection.send_window_update();
        connection.send().await?;
        let settings = connection.next_frame().await?;
        if settings.kind != SETTINGS || settings.flags & ACK != 0 {
            return Err(malformed("the server does not start with SETTINGS"));
        }
        connection.handle_control_frame(&settings).await?;
        Ok(connection)
    }

    /// Makes a call with `message` and returns the response body; its `grpc-status` has to be 0. After an error, or
    /// if this future is dropped, the connection must not be used again.
    pub async fn exchange(&mut self, message: &[u8]) -> io::Result<&[u8]> {
        self.begin(message).await?;
        Ok(self.next_response().await?.1)
    }

    /// Begins a call with `message`; returns its stream id. It is sent with the next [`Self::next_response`].
    pub async fn begin(&mut self, message: &[u8]) -> io::Result<u32> {
        let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
        if length > self.stream_window {
            return Err(malformed("the message is larger than the server's stream window"));
        }
        while length > self.window {
            self.send().await?;
            let frame = self.next_frame().await?;
            self.handle_control_frame(&frame).await?;
        }
        self.window -= length;
        let block = if self.last_call == 0 { &self.headers.first } else { &self.headers.again };
        // Streams opened by a client have odd ids.
        self.last_call = if self.last_call == 0 { 1 } else { self.last_call + 2 };
        push_frame(&mut self.sending, HEADERS, END_HEADERS, self.last_call, block);
        push_frame(&mut self.sending, DATA, END_STREAM, self.last_call, message);
        if self.unacknowledged > MAX_WINDOW / 2 {
            self.send_window_update();
        }
        let mut body = std::mem::take(&mut self.body);
        body.clear();
        self.open_calls.push(OpenCall { stream: self.last_call, body });
        Ok(self.last_call)
    }

    /// Sends the calls that have begun, and reads until a call has its whole response; returns its stream id and body.
    pub async fn next_response(&mut self) -> io::Result<(u32, &[u8])> {
        self.send().await?;
        loop {
            if let Some(stream) = self.read_response_frame().await? {
                return Ok((stream, &self.body));
            }
        }
    }

    /// Whether the next frame is still to be received.
    pub fn has_read_all(&self) -> bool {
        self.at == self.received.len()
    }

    /// Reads one frame; the stream id if it was the last of a successful response.
    async fn read_response_frame(&mut self) -> io::Result<Option<u32>> {
        let frame = self.next_frame().await?;
        let Some(index) = self.open_calls.iter().position(|call| call.stream == frame.stream) else {
            self.handle_control_frame(&frame).await?;
            return Ok(None);
        };
        let payload = &self.received[frame.start..frame.end];
        let ends = frame.flags & END_STREAM != 0;
        match frame.kind {
            DATA if frame.flags & PADDED == 0 => {
                self.open_calls[index].body.extend_from_slice(payload);
                self.unacknowledged += payload.len() as u32;
                if ends { Err(malformed("the response ends without a grpc-status")) } else { Ok(None) }
            }
            HEADERS if frame.flags & (END_HEADERS | PADDED | PRIORITY) == END_HEADERS => {
                let block =
                    self.table.read(payload).ok_or_else(|| malformed("a header block cannot be decoded"))?;
                match (block.grpc_status, ends) {
                    (Some(0), true) => {
                        self.body = self.open_calls.swap_remove(index).body;
                        Ok(Some(frame.stream))
                    }
                    (Some(status), true) => Err(io::Error::other(format!("grpc-status {status}"))),
                    (None, false) if block.ok => Ok(None),
                    _ => Err(malformed("the response has neither status 200 nor a grpc-status")),
                }
            }
            WINDOW_UPDATE => Ok(None),
            RST_STREAM => Err(io::ErrorKind::ConnectionReset.into()),
            _ => Err(malformed("unexpected frame in a response")),
        }
    }

    /// Handles a frame that does not belong to a call.
    async fn handle_control_frame(&mut self, frame: &Frame) -> io::Result<()> {
        let payload = &self.received[frame.start..frame.end];
        match (frame.kind, frame.flags & ACK) {
            (SETTINGS, 0) => {
                for setting in payload.chunks_exact(6) {
                    let value = u32_at(setting, 2);
                    match u16::from_be_bytes([setting[0], setting[1]]) {
                        INITIAL_WINDOW_SIZE => self.stream_window = value,
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
                self.window = self.window.saturating_add(u32_at(payload, 0));
                Ok(())
            }
            (GOAWAY, _) => Err(io::ErrorKind::ConnectionAborted.into()),
            (HEADERS | DATA, _) => Err(malformed("a response to another call")),
            _ => Ok(()),
        }
    }

    /// Reads until a frame is complete.
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
                    return Err(malformed("the frame is too large or this is not HTTP/2"));
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
        if self.sending.is_empty() {
            return Ok(());
        }
        self.stream.write_all(&self.sending).await?;
        self.sending.clear();
        Ok(())
    }

    fn send_window_update(&mut self) {
        push_frame(&mut self.sending, WINDOW_UPDATE, 0, 0, &self.unacknowledged.to_be_bytes());
        self.unacknowledged = 0;
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
