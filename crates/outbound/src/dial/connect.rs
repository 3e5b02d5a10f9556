//! Opens connections for the pool: resolves the name, checks every address, and connects to a checked address.

use std::{
    error::Error,
    io,
    net::{IpAddr, SocketAddr, UdpSocket},
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::future::BoxFuture;
use http::Uri;
use rustls::pki_types::ServerName;
use tokio::{
    net::TcpStream,
    time::{Instant, timeout, timeout_at},
};
use tokio_rustls::TlsConnector;
use tower::Service;
use url::Host;

use super::{
    DialPolicy, Resolve, UrlSource,
    address::canonical,
    guard::{self, Forbidden, Target},
    stream::OpenStream,
    tls::Tls,
};

/// Maximum time for the resolution of a name.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of addresses of a name.
const MAX_ADDRESSES: usize = 16;
/// Maximum time until a connection is open, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

type BoxError = Box<dyn Error + Send + Sync>;

/// The connector of one pool.
#[derive(Clone)]
pub(super) struct Connector {
    pub(super) source: UrlSource,
    pub(super) shared: Arc<Shared>,
}

/// What the pools have in common.
pub(super) struct Shared {
    pub(super) policy: DialPolicy,
    pub(super) resolver: Box<dyn Resolve>,
    pub(super) tls: Tls,
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
        let target = match self.source {
            UrlSource::Operator => Target::of(&url)?,
            UrlSource::Peer => Target::from_peer(&url, &self.shared.policy)?,
        };
        let addresses = self.addresses(&target).await?;
        let deadline = Instant::now() + CONNECT_TIMEOUT;
        let tcp = open(&addresses, deadline).await?;
        tcp.set_nodelay(true)?;
        if url.scheme() == "http" {
            return Ok(OpenStream::plain(tcp));
        }
        let tls = TlsConnector::from(self.shared.tls.config().await?);
        let handshake = tls.connect(server_name(&target.host)?, tcp);
        Ok(OpenStream::tls(timeout_at(deadline, handshake).await??))
    }

    /// The addresses of a target, at least one, all of them checked.
    async fn addresses(&self, target: &Target) -> Result<Vec<SocketAddr>, BoxError> {
        let mut found = match target.literal() {
            Some(address) => vec![address],
            None => {
                let name = target.host.to_string();
                timeout(RESOLVE_TIMEOUT, self.shared.resolver.resolve(&name)).await??
            }
        };
        if found.is_empty() {
            return Err(io::Error::other("the name has no address").into());
        }
        match self.source {
            UrlSource::Operator => found.truncate(MAX_ADDRESSES),
            UrlSource::Peer => self.check(target, &found)?,
        }
        Ok(found.into_iter().map(|address| SocketAddr::new(address, target.port)).collect())
    }

    /// One address that is not allowed is enough to refuse a name.
    fn check(&self, target: &Target, found: &[IpAddr]) -> Result<(), Forbidden> {
        let Shared { policy, .. } = &*self.shared;
        if found.len() > MAX_ADDRESSES {
            return Err(Forbidden::TooManyAddresses);
        }
        let on_all = |own: &SocketAddr| own.ip().is_unspecified() && own.port() == target.port;
        let listens_on_all = policy.own_addresses.iter().any(on_all);
        for address in found {
            target.check_address(*address, policy)?;
            if listens_on_all && is_of_this_machine(*address) {
                return Err(Forbidden::OwnAddress);
            }
        }
        Ok(())
    }
}

/// Connects to the first of these addresses that accepts; each gets an equal share of the time that is left.
async fn open(addresses: &[SocketAddr], deadline: Instant) -> io::Result<TcpStream> {
    let mut problem = io::Error::from(io::ErrorKind::TimedOut);
    for (tried, address) in addresses.iter().enumerate() {
        let left = deadline.saturating_duration_since(Instant::now());
        let share = left / u32::try_from(addresses.len() - tried).unwrap_or(u32::MAX);
        match timeout(share, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => return same_peer(stream, *address),
            Ok(Err(error)) => problem = error,
            Err(_) => problem = io::ErrorKind::TimedOut.into(),
        }
    }
    Err(problem)
}

/// The connection must have reached the address that was checked.
fn same_peer(stream: TcpStream, checked: SocketAddr) -> io::Result<TcpStream> {
    let reached = stream.peer_addr()?;
    let same = reached.port() == checked.port() && reached.ip().to_canonical() == checked.ip().to_canonical();
    if same { Ok(stream) } else { Err(io::Error::other("connected to another address than was checked")) }
}

/// Whether an address belongs to an interface of this machine: then the system would use it as the source too.
/// Connecting a UDP socket sends nothing.
fn is_of_this_machine(address: IpAddr) -> bool {
    let address = canonical(address);
    let any: IpAddr = if address.is_ipv4() { [0; 4].into() } else { [0u16; 8].into() };
    let source = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect((address, 9))?;
        socket.local_addr()
    });
    source.is_ok_and(|source| source.ip() == address)
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
