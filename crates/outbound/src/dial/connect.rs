//! Opens connections for the pools, and makes sure that they reach the address that was chosen.

use std::{
    error::Error,
    io,
    net::{IpAddr, SocketAddr},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::future::BoxFuture;
use http::Uri;
use hyper_rustls::MaybeHttpsStream;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::{
    net::TcpStream,
    time::{Instant, timeout, timeout_at},
};
use tokio_rustls::TlsConnector;
use tower::Service;
use url::Host;

use super::{
    guard::{self, Target},
    resolve::{self, Resolve},
    tls::Tls,
};

/// Maximum time until a connection is open, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

type OpenStream = MaybeHttpsStream<TokioIo<TcpStream>>;
type BoxError = Box<dyn Error + Send + Sync>;

/// The connector of one pool.
#[derive(Clone)]
pub(super) struct Connector {
    pub(super) destination: Destination,
    pub(super) tls: Arc<Tls>,
}

/// The addresses to which a pool connects.
#[derive(Clone)]
pub(super) enum Destination {
    /// Those of the URL's host, whatever they are.
    ByName(Arc<dyn Resolve>),
    /// These, which have been checked.
    Checked(Arc<[SocketAddr]>),
}

impl Service<Uri> for Connector {
    type Response = OpenStream;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<OpenStream, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(async move { connector.connect(&uri).await })
    }
}

impl Connector {
    async fn connect(&self, uri: &Uri) -> Result<OpenStream, BoxError> {
        let url = guard::parse(&uri.to_string())?;
        let target = Target::of(&url)?;
        let addresses = match &self.destination {
            Destination::ByName(resolver) => resolve::addresses(&target, &**resolver).await?.into(),
            Destination::Checked(addresses) => Arc::clone(addresses),
        };
        let deadline = Instant::now() + CONNECT_TIMEOUT;
        let tcp = open(&addresses, deadline).await?;
        if let Destination::Checked(checked) = &self.destination {
            has_reached_one_of(checked, &tcp)?;
        }
        tcp.set_nodelay(true)?;
        let tcp = TokioIo::new(tcp);
        if url.scheme() == "http" {
            return Ok(tcp.into());
        }
        let tls = TlsConnector::from(self.tls.config().await?);
        let handshake = tls.connect(server_name(&target.host)?, TokioIo::new(tcp));
        Ok(timeout_at(deadline, handshake).await??.into())
    }
}

/// Connects to the first of these addresses that accepts; each gets an equal share of the time that is left.
#[expect(clippy::disallowed_methods, reason = "the one place that opens connections")]
async fn open(addresses: &[SocketAddr], deadline: Instant) -> io::Result<TcpStream> {
    let mut problem = io::Error::from(io::ErrorKind::TimedOut);
    for (tried, address) in addresses.iter().enumerate() {
        let left = deadline.saturating_duration_since(Instant::now());
        let share = left / u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
        match timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => problem = error,
            Err(_) => problem = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(problem)
}

fn has_reached_one_of(checked: &[SocketAddr], stream: &TcpStream) -> io::Result<()> {
    let reached = stream.peer_addr()?;
    let is_reached = |one: &SocketAddr| {
        one.port() == reached.port() && one.ip().to_canonical() == reached.ip().to_canonical()
    };
    if checked.iter().any(is_reached) {
        return Ok(());
    }
    Err(io::Error::other("connected to another address than was checked"))
}

fn server_name(host: &Host<String>) -> io::Result<ServerName<'static>> {
    match host {
        Host::Domain(name) => {
            ServerName::try_from(name.trim_end_matches('.').to_owned()).map_err(io::Error::other)
        }
        Host::Ipv4(address) => Ok(IpAddr::from(*address).into()),
        Host::Ipv6(address) => Ok(IpAddr::from(*address).into()),
    }
}
