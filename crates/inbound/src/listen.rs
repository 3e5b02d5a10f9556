//! Connections become requests.
//!
//! A server has one or more listeners, with or without TLS, which share caps and shutdown. HTTP/1.1 and HTTP/2 share the
//! port, with ALPN over TLS and without negotiation otherwise: the first bytes decide. Every wait has a timeout ([`Caps`]), the
//! number of connections is capped in all and per client, and a reader that is too slow is cut off: its connection over
//! HTTP/1.1, its stream over HTTP/2, and the connection if nothing else is read there. On shutdown nothing new is accepted, and each connection ends after the requests it
//! is serving or at [`Caps::shutdown`]: a peer that answers pings and reads nothing must not keep the process alive.
//!
//! Over HTTP/2 a quiet peer is pinged, which is all the life that a quiet gRPC stream shows. Windows are fixed: they
//! bound what a connection may have sent that was not read yet, and one upload cannot use all of it. A flood of frames that
//! have no use ends the connection (`frame_count.rs`). Adaptive windows
//! would begin at a sixteenth of these, measure by pings of their own, and have no bound of ours.

mod channel;
mod connection_io;
mod connections;
mod corked;
mod descriptors;
mod frame_count;
mod head_timer;
mod opening;
mod refused_body;
mod slow_readers;
mod streams;

use std::{
    convert::Infallible,
    io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use axum::response::Response;
use engine::Clock;
use futures_util::{FutureExt as _, future};
use http::{HeaderValue, header};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use self::{
    channel::Channel,
    connection_io::{NotedBody, Progress, Rate},
    connections::Connections,
    corked::CorkedStream,
    head_timer::HeadTimer,
    opening::{OpenedConnection, Version},
    refused_body::RefusableBody,
    slow_readers::{Pieces, UnsentBytes},
    streams::{StreamCollector, Streams},
};
use crate::{
    bindings::grpc,
    request::connection::Scheme,
    routes::RouteSet,
    service::HttpService,
    tls::{self, ClientCertificate, ServerTls},
};

/// A bound socket, and what is served there.
#[derive(Debug)]
pub struct Socket {
    /// The socket; its address decides which hosts requests may name.
    pub listener: TcpListener,
    /// TLS; `None` serves plain HTTP.
    pub tls: Option<Arc<ServerTls>>,
    /// The routes that exist here.
    pub routes: RouteSet,
}

impl Socket {
    /// Everything, without TLS.
    pub fn plain(listener: TcpListener) -> Self {
        Self { listener, tls: None, routes: RouteSet::All }
    }

    fn scheme(&self) -> Scheme {
        if self.tls.is_some() { Scheme::Https } else { Scheme::Http }
    }
}

/// Bounds on connections.
#[derive(Clone, Copy, Debug)]
pub struct Caps {
    /// Connections in all; more are closed at once. Fewer where the system allows fewer file descriptors.
    pub connections: usize,
    /// Connections of one IPv4 address or one IPv6 /64.
    pub per_address: usize,
    /// How long the TLS handshake may take.
    pub handshake: Duration,
    /// How long the first bytes of a connection may take, after the TLS handshake if there is one.
    pub first_bytes: Duration,
    /// How long the head of a request may take from its first byte on, over HTTP/1.1; over HTTP/2 each frame, and all those
    /// of a head together.
    pub head: Duration,
    /// How long a connection of HTTP/1.1 may be idle between requests. Proxies reuse connections after about a minute,
    /// and turn one that is closed meanwhile into a 502. Over HTTP/2 a quiet peer has pings to answer; one that
    /// leaves a response unread has this time.
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
        handshake: Duration::from_secs(5),
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

/// Serves everything on one socket without TLS; see [`serve_all`].
pub async fn serve(
    listener: TcpListener,
    service: impl Into<HttpService>,
    caps: Caps,
    shutdown: CancellationToken,
) {
    serve_all(vec![Socket::plain(listener)], service, caps, shutdown).await;
}

/// Serves until `shutdown` is cancelled, then until the last connection has ended. All sockets share the caps. Files of TLS
/// are read again when they change.
pub async fn serve_all(
    sockets: Vec<Socket>,
    service: impl Into<HttpService>,
    caps: Caps,
    shutdown: CancellationToken,
) {
    let service: HttpService = service.into();
    let shared = SharedState {
        connections: Arc::new(Connections::new(service.server_metrics())),
        service,
        caps: caps.within_descriptors(),
        tasks: TaskTracker::new(),
        shutdown,
    };
    let all_tls = tls::distinct(sockets.iter().filter_map(|socket| socket.tls.as_ref()));
    shared.service.set_listener_tls(&all_tls);
    let serving = async {
        future::join_all(sockets.into_iter().map(|socket| accept_all(socket, &shared))).await;
        shared.tasks.close();
        shared.tasks.wait().await;
    };
    tokio::select! {
        () = serving => {}
        never = tls::follow(all_tls) => match never {},
    }
}

/// What the sockets of a server have in common.
struct SharedState {
    service: HttpService,
    caps: Caps,
    tasks: TaskTracker,
    connections: Arc<Connections>,
    shutdown: CancellationToken,
}

/// Accepts connections until the shutdown begins, then closes the socket.
async fn accept_all(socket: Socket, shared: &SharedState) {
    let SharedState { service, caps, tasks, connections, shutdown } = shared;
    // Without an address, the strictest rules about hosts apply: those of loopback.
    let own = socket.listener.local_addr().map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |address| address.ip());
    let service = service.clone().bound_to(own, socket.scheme(), socket.routes);
    let Socket { listener, tls, .. } = socket;
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
        let Some(slot) = connections.open(address.ip(), caps) else {
            tracing::warn!(address = %address.ip(), "too many connections; this one is closed");
            continue;
        };
        let accepted = NewConnection { stream, address, tls: tls.clone() };
        let (service, shutdown, caps) = (service.clone(), shutdown.clone(), *caps);
        tasks.spawn(async move {
            if let Err(error) = connection(accepted, service, &caps, &shutdown).await {
                tracing::debug!(%error, "a connection ended early");
            }
            drop(slot);
        });
    }
}

/// A new connection.
struct NewConnection {
    stream: TcpStream,
    address: SocketAddr,
    tls: Option<Arc<ServerTls>>,
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
    accepted: NewConnection,
    service: HttpService,
    caps: &Caps,
    shutdown: &CancellationToken,
) -> Ended {
    let NewConnection { stream, address, tls } = accepted;
    stream.set_nodelay(true)?;
    let progress = Arc::new(Progress::default());
    let opened = tokio::select! {
        biased;
        opened = opening::open(stream, tls.as_ref(), &progress, caps) => opened?,
        () = shutdown.cancelled() => return Ok(()),
    };
    let Some(OpenedConnection { transport, version, prefix, certificate }) = opened else { return Ok(()) };
    let service = service.of_peer(address.ip(), certificate.clone());
    let end = End { shutdown, certificate: certificate.as_deref() };
    let io = Channel::new(transport, prefix, Arc::clone(&progress));
    match version {
        Version::Http1 => http1(io, progress, service, caps, end).await,
        Version::Http2 => http2(io.counting_frames(caps.head), service, caps, end).await,
    }
}

/// What ends a connection: it takes no more requests then.
struct End<'a> {
    shutdown: &'a CancellationToken,
    certificate: Option<&'a ClientCertificate>,
}

impl End<'_> {
    /// Resolves when the certificate of the client is not valid any more. Its requests in progress are completed.
    async fn certificate_ended(&self) {
        tls::ended(self.certificate, &Clock::system()).await;
    }
}

async fn http1(
    io: Channel,
    progress: Arc<Progress>,
    service: HttpService,
    caps: &Caps,
    end: End<'_>,
) -> Ended {
    let timer = HeadTimer { progress: Arc::clone(&progress), timeout: caps.head };
    let service = service_fn(move |req: hyper::Request<hyper::body::Incoming>| {
        service.clone().handle(req.map(|body| NotedBody::new(body, &progress))).map(Ok::<_, Infallible>)
    });
    let mut builder = hyper::server::conn::http1::Builder::new();
    builder.timer(timer).header_read_timeout(caps.idle).max_buf_size(64 << 10);
    let mut connection = std::pin::pin!(builder.serve_connection(TokioIo::new(io), service));
    tokio::select! {
        result = connection.as_mut() => return Ok(result?),
        () = end.certificate_ended() => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                result = connection.as_mut() => return Ok(result?),
                () = end.shutdown.cancelled() => {}
            }
        }
        () = end.shutdown.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    Ok(tokio::time::timeout(caps.shutdown, connection).await??)
}

async fn http2(io: Channel, service: HttpService, caps: &Caps, end: End<'_>) -> Ended {
    let unsent = Arc::<UnsentBytes>::default();
    let (counted, clock) = (Arc::clone(&unsent), Clock::system());
    let begun = StreamCollector::new(caps.write_window);
    let known = begun.clone();
    let answer = move |req: hyper::Request<hyper::body::Incoming>| {
        let counted = Arc::clone(&counted);
        let answered = service.clone().handle(req.map(|body| RefusableBody::new(body, &known)));
        let clock = clock.clone();
        answered.map(move |mut response| {
            if !grpc::is_content_type(response.headers()) {
                set_date(&mut response, &clock);
            }
            Ok::<_, Infallible>(response.map(|body| Pieces::new(body, &counted)))
        })
    };
    let service = service_fn(answer);
    let io = CorkedStream::new(io);
    let mut streams = Streams::new(begun.clone(), io.clone(), Arc::clone(&unsent), caps.idle);
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
        () = end.certificate_ended() => {
            connection.as_mut().graceful_shutdown();
            tokio::select! {
                result = streams.drive(connection.as_mut()) => return result,
                () = end.shutdown.cancelled() => {}
            }
        }
        () = end.shutdown.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    tokio::time::timeout(caps.shutdown, streams.drive(connection)).await?
}

fn set_date(response: &mut Response, clock: &Clock) {
    if let Ok(date) = HeaderValue::try_from(clock.now().http_date()) {
        response.headers_mut().entry(header::DATE).or_insert(date);
    }
}
