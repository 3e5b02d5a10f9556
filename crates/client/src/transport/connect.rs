//! Opens connections: to the agent itself, or through a proxy. A proxy forwards requests to `http` URLs, and opens a tunnel
//! to the agent for `https` URLs, so that it cannot read them.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use http::{HeaderMap, HeaderValue, Uri, header, uri::Scheme};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::{
    client::{
        legacy::connect::{Connected, Connection, HttpConnector, proxy::Tunnel},
        proxy::matcher::Intercept,
    },
    rt::TokioIo,
};
use rustls::ClientConfig;
use tokio::{net::TcpStream, time::timeout};
use tower::{Service, service_fn};

use super::BoxError;
use crate::{ClientTls, exchange::USER_AGENT};

/// Maximum time until a connection is open, with its name, TLS and proxy.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Idle time before TCP keep-alive probes, the time between them, and how many are lost before the connection is.
const KEEP_ALIVE: Duration = Duration::from_secs(30);
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
const KEEP_ALIVE_PROBES: u32 = 3;
/// How long data that was sent may remain without acknowledgement.
#[cfg(target_os = "linux")]
const ACKNOWLEDGEMENT_TIMEOUT: Duration = Duration::from_secs(30);

/// Opens connections to the agent, with TLS for `https`.
#[derive(Clone)]
pub(super) struct Connector {
    route: Route,
    tls: Arc<ClientConfig>,
}

/// The way to the agent, without the agent's TLS.
#[derive(Clone)]
enum Route {
    Direct(HttpConnector),
    Through(Arc<Intercept>, ProxyConnector),
}

type ProxyConnector = HttpsConnector<HttpConnector>;
type Stream = MaybeHttpsStream<TokioIo<TcpStream>>;

/// A connection without the agent's TLS.
pub(super) enum Hop {
    /// To the agent, or through a tunnel to it.
    Agent(Stream),
    /// To a proxy that forwards requests.
    Proxy(Stream),
}

impl Connector {
    /// Connections to the origin of this URL.
    pub(super) fn new(uri: &Uri, tls: &ClientTls, proxy: Option<Intercept>) -> Result<Self, rustls::Error> {
        let route = match proxy {
            None => Route::Direct(tcp()),
            Some(proxy) => {
                // A proxy gets no certificate of the client, and speaks HTTP/1.1.
                let mut tls = tls.without_certificate().config(is_plain(proxy.uri()))?;
                tls.alpn_protocols.clear();
                Route::Through(Arc::new(proxy), HttpsConnector::from((tcp(), tls)))
            }
        };
        Ok(Self { route, tls: Arc::new(tls.config(is_plain(uri))?) })
    }

    async fn connect(self, uri: Uri) -> Result<MaybeHttpsStream<Hop>, BoxError> {
        let Self { route, tls } = self;
        let mut connector = HttpsConnector::from((service_fn(move |uri| route.clone().open(uri)), tls));
        let connected = timeout(CONNECT_TIMEOUT, connector.call(uri)).await;
        connected.unwrap_or_else(|_| Err("timed out".into()))
    }
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<Hop>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        Box::pin(self.clone().connect(uri))
    }
}

fn tcp() -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_connect_timeout(Some(CONNECT_TIMEOUT));
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(KEEP_ALIVE));
    tcp.set_keepalive_interval(Some(KEEP_ALIVE_INTERVAL));
    tcp.set_keepalive_retries(Some(KEEP_ALIVE_PROBES));
    #[cfg(target_os = "linux")]
    tcp.set_tcp_user_timeout(Some(ACKNOWLEDGEMENT_TIMEOUT));
    tcp
}

fn is_plain(uri: &Uri) -> bool {
    uri.scheme() == Some(&Scheme::HTTP)
}

impl Route {
    async fn open(self, uri: Uri) -> Result<Hop, BoxError> {
        match self {
            Self::Direct(mut tcp) => Ok(Hop::Agent(tcp.call(uri).await?.into())),
            Self::Through(proxy, mut connector) if is_plain(&uri) => {
                connector.call(proxy.uri().clone()).await.map(Hop::Proxy)
            }
            Self::Through(proxy, connector) => Ok(Hop::Agent(tunnel(&proxy, connector).call(uri).await?)),
        }
    }
}

fn tunnel(proxy: &Intercept, connector: ProxyConnector) -> Tunnel<ProxyConnector> {
    let mut headers = HeaderMap::new();
    headers.insert(header::USER_AGENT, HeaderValue::from_static(USER_AGENT));
    let tunnel = Tunnel::new(proxy.uri().clone(), connector).with_headers(headers);
    match proxy.basic_auth() {
        Some(credentials) => tunnel.with_auth(credentials.clone()),
        None => tunnel,
    }
}

impl Hop {
    fn stream(self: Pin<&mut Self>) -> Pin<&mut Stream> {
        match self.get_mut() {
            Self::Agent(stream) | Self::Proxy(stream) => Pin::new(stream),
        }
    }
}

impl Connection for Hop {
    fn connected(&self) -> Connected {
        match self {
            Self::Agent(stream) => stream.connected(),
            Self::Proxy(stream) => stream.connected().proxy(true),
        }
    }
}

impl Read for Hop {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        self.stream().poll_read(cx, buffer)
    }
}

impl Write for Hop {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.stream().poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream().poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Agent(stream) | Self::Proxy(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.stream().poll_write_vectored(cx, bytes)
    }
}
