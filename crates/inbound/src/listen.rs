//! Connections become requests.
//!
//! HTTP/1.1 and HTTP/2 without negotiation share the port: the first bytes decide. Every wait has a timeout ([`Caps`]), the
//! number of connections is capped in all and per client, and a reader that is too slow is cut off: its connection over
//! HTTP/1.1, its stream over HTTP/2. On shutdown nothing new is accepted, and each connection ends after the requests it
//! is serving or at [`Caps::shutdown`]: a peer that answers pings and reads nothing must not keep the process alive.
//!
//! Over HTTP/2 a quiet peer is pinged, which is all the life that a quiet gRPC stream shows. Windows are fixed: they
//! bound what a connection may have sent that was not read yet, and one upload cannot use all of it. Adaptive windows
//! would begin at a sixteenth of these, measure by pings of their own, and have no bound of ours.

mod connection_io;
mod connections;
mod corked;
mod descriptors;
mod head_timer;
mod slow_readers;
mod streams;

use std::{
    convert::Infallible,
    io,
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::Duration,
};

use axum::response::Response;
use bytes::Bytes;
use engine::Clock;
use futures_util::FutureExt as _;
use http::{HeaderValue, header};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::AsyncReadExt as _,
    net::{TcpListener, TcpStream},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    connection_io::{ConnectionIo, NotedBody, Progress, Rate},
    connections::Connections,
    corked::Corked,
    head_timer::HeadTimer,
    slow_readers::{Pieces, Unsent},
    streams::{Begun, Streams},
};
use crate::{bindings::grpc, service::HttpService};

/// Bounds on connections.
#[derive(Clone, Copy, Debug)]
pub struct Caps {
    /// Connections in all; more are closed at once. Fewer where the system allows fewer file descriptors.
    pub connections: usize,
    /// Connections of one IPv4 address or one IPv6 /64.
    pub per_address: usize,
    /// How long the first bytes of a connection may take.
    pub first_bytes: Duration,
    /// How long the head of a request may take from its first byte on, over HTTP/1.1.
    pub head: Duration,
    /// How long a connection of HTTP/1.1 may be idle between requests. Proxies reuse connections after about a minute,
    /// and turn one that is closed meanwhile into a 502. Over HTTP/2 a quiet peer has pings to answer.
    pub idle: Duration,
    /// In each of these windows a blocked response has to make progress.
    pub write_window: Duration,
    /// By at least so many bytes a second.
    pub min_write_rate: u64,
    /// How long a connection may go on when the process shuts down.
    pub shutdown: Duration,
}

impl Default for Caps {
    fn default() -> Self {
        Self::USUAL
    }
}

impl Caps {
    /// What a server has unless something else is asked for.
    pub const USUAL: Self = Self {
        connections: 16_384,
        per_address: 12_288,
        first_bytes: Duration::from_secs(5),
        head: Duration::from_secs(10),
        idle: Duration::from_secs(90),
        write_window: Duration::from_secs(30),
        min_write_rate: 256,
        shutdown: Duration::from_secs(28),
    };

    /// These, lowered to what the system allows: with few descriptors left, new connections are refused before the
    /// store and the open connections run out of them.
    fn within_descriptors(self) -> Self {
        let Some(limit) = descriptors::raise_limit() else { return self };
        let connections = self.connections.min(descriptors::connections(limit));
        Self { connections, per_address: self.per_address.min(connections.div_ceil(4) * 3), ..self }
    }

    fn write_rate(&self) -> Rate {
        let bytes = self.min_write_rate.saturating_mul(self.write_window.as_millis() as u64) / 1_000;
        Rate { bytes: bytes.max(1), window: self.write_window }
    }
}

/// Serves until `shutdown` is cancelled, then until the last connection has ended.
pub async fn serve(
    listener: TcpListener,
    service: impl Into<HttpService>,
    caps: Caps,
    shutdown: CancellationToken,
) {
    // Without an address, the strictest rules about hosts apply: those of loopback.
    let address = listener.local_addr().map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |address| address.ip());
    let service: HttpService = service.into();
    let service = service.bound_to(address);
    let caps = caps.within_descriptors();
    let tasks = TaskTracker::new();
    let connections = Arc::new(Connections::default());
    loop {
        let accepted = tokio::select! {
            biased;
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let (stream, address) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "a connection could not be accepted");
                back_off(&error).await;
                continue;
            }
        };
        let Some(slot) = connections.open(address.ip(), &caps) else {
            tracing::warn!(address = %address.ip(), "too many connections; this one is closed");
            continue;
        };
        let (service, shutdown) = (service.clone(), shutdown.clone());
        tasks.spawn(async move {
            if let Err(error) = connection(stream, address.ip(), service, &caps, &shutdown).await {
                tracing::debug!(%error, "a connection ended early");
            }
            drop(slot);
        });
    }
    drop(listener);
    tasks.close();
    tasks.wait().await;
}

/// Waits before the next accept, unless only this one connection was bad.
async fn back_off(error: &io::Error) {
    let passing = matches!(error.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset);
    if !passing {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

type Ended = Result<(), Box<dyn std::error::Error + Send + Sync>>;

async fn connection(
    mut stream: TcpStream,
    peer: IpAddr,
    service: HttpService,
    caps: &Caps,
    shutdown: &CancellationToken,
) -> Ended {
    stream.set_nodelay(true)?;
    let (version, prefix) = tokio::select! {
        biased;
        first = tokio::time::timeout(caps.first_bytes, Version::of(&mut stream)) => first??,
        () = shutdown.cancelled() => return Ok(()),
    };
    let progress = Arc::new(Progress::default());
    let io = ConnectionIo::new(stream, prefix, Arc::clone(&progress), caps.write_rate());
    match version {
        Version::Http1 => http1(io, progress, peer, service, caps, shutdown).await,
        Version::Http2 => http2(io, peer, service, caps, shutdown).await,
    }
}

async fn http1(
    io: ConnectionIo<TcpStream>,
    progress: Arc<Progress>,
    peer: IpAddr,
    service: HttpService,
    caps: &Caps,
    shutdown: &CancellationToken,
) -> Ended {
    let timer = HeadTimer { progress: Arc::clone(&progress), timeout: caps.head };
    let service = service_fn(move |req: hyper::Request<hyper::body::Incoming>| {
        service
            .clone()
            .handle_from(peer, req.map(|body| NotedBody::new(body, &progress)))
            .map(Ok::<_, Infallible>)
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(timer).header_read_timeout(caps.idle).max_buf_size(64 << 10);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(io), service));
    tokio::select! {
        result = connection.as_mut() => return Ok(result?),
        () = shutdown.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    Ok(tokio::time::timeout(caps.shutdown, connection).await??)
}

async fn http2(
    io: ConnectionIo<TcpStream>,
    peer: IpAddr,
    service: HttpService,
    caps: &Caps,
    shutdown: &CancellationToken,
) -> Ended {
    let unsent = Arc::<Unsent>::default();
    let (counted, clock) = (Arc::clone(&unsent), Clock::system());
    let answer = move |req| {
        let counted = Arc::clone(&counted);
        let answered = service.clone().handle_from(peer, req);
        let clock = clock.clone();
        answered.map(move |mut response| {
            if !grpc::is_content_type(response.headers()) {
                set_date(&mut response, &clock);
            }
            Ok::<_, Infallible>(response.map(|body| Pieces::new(body, &counted)))
        })
    };
    let service = service_fn(answer);
    let (begun, io) = (Begun::new(caps.write_window), Corked::new(io));
    let mut streams = Streams::new(begun.clone(), io.clone(), Arc::clone(&unsent));
    let mut builder = hyper::server::conn::http2::Builder::new(begun);
    builder
        .timer(TokioTimer::new())
        // gRPC has no use for the header; other responses get it from `set_date`.
        .auto_date_header(false)
        .max_concurrent_streams(128)
        .max_header_list_size(32 << 10)
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(4 << 20)
        .keep_alive_interval(Duration::from_secs(30))
        .keep_alive_timeout(Duration::from_secs(20));
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(io), service));
    tokio::select! {
        result = streams.drive(connection.as_mut()) => return result,
        () = shutdown.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    tokio::time::timeout(caps.shutdown, streams.drive(connection)).await?
}

fn set_date(response: &mut Response, clock: &Clock) {
    if let Ok(date) = HeaderValue::try_from(clock.now().http_date()) {
        response.headers_mut().entry(header::DATE).or_insert(date);
    }
}

enum Version {
    Http1,
    Http2,
}

impl Version {
    /// The version a connection begins with, and the bytes that were read to find out. The preface of HTTP/2 is read as a
    /// whole, because nothing later has a timeout for the rest of it.
    async fn of(stream: &mut TcpStream) -> io::Result<(Self, Bytes)> {
        const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
        let mut buffer = [0; 1 << 10];
        let mut length = 0;
        loop {
            let read = stream.read(&mut buffer[length..]).await?;
            length += read;
            let compared = length.min(PREFACE.len());
            let version = match buffer[..compared] == PREFACE[..compared] {
                true if compared == PREFACE.len() => Self::Http2,
                true if read > 0 => continue,
                _ => Self::Http1,
            };
            return Ok((version, Bytes::copy_from_slice(&buffer[..length])));
        }
    }
}
