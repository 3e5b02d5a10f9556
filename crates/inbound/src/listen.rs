//! Connections become requests.
//!
//! A connection has five seconds to say its first bytes and, over HTTP/1.1, ten to finish the head of a request, a write
//! that does not move for half a minute ends it, or over HTTP/2 its stream, and there are caps in all and per address. HTTP/1.1 and HTTP/2
//! without negotiation share the port: the first bytes tell. When the process drains, nothing new is accepted,
//! and each connection ends after the requests it is serving, or when its time is up: a peer that answers pings
//! and reads nothing must not keep the process from ending.
//!
//! Over HTTP/2 a peer is asked for a sign of life now and then, which is all that a quiet stream of gRPC has. Windows
//! are fixed. What a connection may have sent and we have not read is bounded by them, and one upload cannot take
//! all of it; windows that adapt would begin at a sixteenth of these, measure by pings of their own, and have no bound
//! of ours.

mod corked;
mod patient;
mod streams;
mod unread;

use std::{
    collections::HashMap,
    io,
    net::IpAddr,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use futures_util::TryFutureExt as _;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    corked::Corked,
    patient::Patient,
    streams::{Begun, Streams},
};
use crate::front::Front;

/// Bounds on connections.
#[derive(Clone, Copy, Debug)]
pub struct Caps {
    /// Connections in all; more are closed at once.
    pub connections: usize,
    /// Connections of one address.
    pub per_address: usize,
    /// How long the first bytes of a connection may take.
    pub first_bytes: Duration,
    /// How long the head of a request may take over HTTP/1.1; over HTTP/2 a peer that is silent has its pings to answer.
    pub head: Duration,
    /// How long a write may stand still.
    pub stalled_write: Duration,
    /// How long a connection may go on when the process is told to stop.
    pub last_words: Duration,
}

impl Default for Caps {
    fn default() -> Self {
        Self {
            connections: 16_384,
            per_address: 12_288,
            first_bytes: Duration::from_secs(5),
            head: Duration::from_secs(10),
            stalled_write: Duration::from_secs(30),
            last_words: Duration::from_secs(28),
        }
    }
}

/// Serves until `drain` is cancelled, then until the last connection has ended.
pub async fn serve(listener: TcpListener, front: impl Into<Front>, caps: Caps, drain: CancellationToken) {
    let front = front.into();
    let connections = TaskTracker::new();
    let open = Arc::new(Open::default());
    loop {
        let accepted = tokio::select! {
            biased;
            () = drain.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                pause(&error).await;
                continue;
            }
        };
        let Some(place) = Open::enter(&open, address.ip(), &caps) else {
            tracing::warn!(address = %address.ip(), "too many connections; this one is closed");
            continue;
        };
        let (front, drain) = (front.clone(), drain.clone());
        connections.spawn(async move {
            if let Err(error) = connection(stream, address.ip(), front, &caps, &drain).await {
                tracing::debug!(%error, "a connection ended early");
            }
            drop(place);
        });
    }
    drop(listener);
    connections.close();
    connections.wait().await;
}

/// Running out of descriptors does not get better by asking again at once.
async fn pause(error: &io::Error) {
    let passing = matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset);
    if !passing {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn connection(
    stream: TcpStream,
    peer: IpAddr,
    front: Front,
    caps: &Caps,
    drain: &CancellationToken,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    stream.set_nodelay(true)?;
    let http2 = tokio::select! {
        biased;
        first = tokio::time::timeout(caps.first_bytes, speaks_http2(&stream)) => first??,
        () = drain.cancelled() => return Ok(()),
    };
    let stream = Patient::new(stream, caps.stalled_write);
    if http2 {
        let answer =
            move |req| front.clone().answer_to(peer, req).map_ok(|response| response.map(unread::in_pieces));
        let service = service_fn(answer);
        let (begun, io) = (Begun::new(caps.stalled_write), Corked::new(stream));
        let mut streams = Streams::new(begun.clone(), io.clone());
        let mut builder = hyper::server::conn::http2::Builder::new(begun);
        builder
            .timer(TokioTimer::new())
            .max_concurrent_streams(128)
            .max_header_list_size(32 << 10)
            .initial_stream_window_size(1 << 20)
            .initial_connection_window_size(4 << 20)
            .keep_alive_interval(Duration::from_secs(30))
            .keep_alive_timeout(Duration::from_secs(20));
        let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(io), service));
        tokio::select! {
            result = streams.drive(connection.as_mut()) => return result,
            () = drain.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        tokio::time::timeout(caps.last_words, streams.drive(connection)).await?
    } else {
        let service = service_fn(move |req| front.clone().answer_to(peer, req));
        let mut builder = hyper::server::conn::http1::Builder::new();
        builder.timer(TokioTimer::new()).header_read_timeout(caps.head).max_buf_size(64 << 10);
        let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(stream), service));
        tokio::select! {
            result = connection.as_mut() => return Ok(result?),
            () = drain.cancelled() => connection.as_mut().graceful_shutdown(),
        }
        Ok(tokio::time::timeout(caps.last_words, connection).await??)
    }
}

/// Whether the connection starts with the preface of HTTP/2, which is waited for as a whole: nobody else would set a
/// time for the rest of it. Takes nothing off the stream.
async fn speaks_http2(stream: &TcpStream) -> io::Result<bool> {
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    loop {
        let mut first = [0; PREFACE.len()];
        let read = stream.peek(&mut first).await?;
        if read == 0 || first[..read] != PREFACE[..read] {
            return Ok(false);
        }
        if read == PREFACE.len() {
            return Ok(true);
        }
        // A peek sees the same bytes again at once: give the rest time to arrive.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// The connections that are open now.
#[derive(Default)]
struct Open(Mutex<OpenCounts>);

#[derive(Default)]
struct OpenCounts {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// One open connection; counted until dropped.
struct Place {
    open: Arc<Open>,
    address: IpAddr,
}

impl Open {
    fn enter(open: &Arc<Self>, address: IpAddr, caps: &Caps) -> Option<Place> {
        let mut counts = open.0.lock().unwrap_or_else(PoisonError::into_inner);
        let here = counts.by_address.get(&address).copied().unwrap_or_default();
        if counts.all >= caps.connections || here >= caps.per_address {
            return None;
        }
        counts.all += 1;
        counts.by_address.insert(address, here + 1);
        Some(Place { open: Arc::clone(open), address })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut counts = self.open.0.lock().unwrap_or_else(PoisonError::into_inner);
        counts.all -= 1;
        let left = counts.by_address.get(&self.address).map_or(0, |here| here - 1);
        if left == 0 {
            counts.by_address.remove(&self.address);
        } else {
            counts.by_address.insert(self.address, left);
        }
    }
}
