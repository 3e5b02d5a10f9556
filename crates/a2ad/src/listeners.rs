//! The addresses of a server: which ones may be used, and how they are shown.
//!
//! All of them are bound before anything else starts, so that a server never serves on a part of them.
//!
//! `[::]` accepts connections of IPv4 too, where the system permits it, unless an address of IPv4 has the same port.

use std::{io, net::SocketAddr, path::Path, sync::Arc};

use inbound::{RouteSet, listen::Socket, tls::ServerTls};
use store::ServedAt;
use tokio::net::{TcpListener, TcpSocket};

use crate::{port_holder, serve::ServeError};

/// One address of a server.
#[derive(Clone, Debug)]
pub struct ListenAddress {
    /// Port 0 selects a free port.
    pub address: SocketAddr,
    /// `None`: plain HTTP.
    pub tls: Option<Arc<ServerTls>>,
    /// What is served there.
    pub routes: RouteSet,
}

impl ListenAddress {
    /// Everything, without TLS.
    pub fn plain(address: SocketAddr) -> Self {
        Self { address, tls: None, routes: RouteSet::All }
    }

    /// The URL of the server at this address.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }

    /// Whether clients that send a certificate are identified by it.
    pub fn verifies_clients(&self) -> bool {
        let verifies = |tls: &Arc<ServerTls>| tls.files().client_ca.is_some();
        self.is_for_callers() && self.tls.as_ref().is_some_and(verifies)
    }

    fn is_loopback(&self) -> bool {
        is_loopback(self.address)
    }

    fn is_for_callers(&self) -> bool {
        self.routes != RouteSet::Operators
    }

    fn is_for_operators(&self) -> bool {
        self.routes != RouteSet::Callers
    }
}

/// Whether only this machine can reach an address.
pub fn is_loopback(address: SocketAddr) -> bool {
    address.ip().to_canonical().is_loopback()
}

/// The bound addresses of a server.
#[derive(Debug)]
pub struct Listeners {
    /// With the ports that were selected.
    pub addresses: Vec<ListenAddress>,
    /// The sockets, in the same order.
    pub sockets: Vec<Socket>,
}

impl Listeners {
    /// Binds all addresses. One that others can reach is refused while there are agents that everybody may call and of
    /// which nobody has decided that, and one for operators only that others can reach without TLS.
    pub async fn bind(
        addresses: impl IntoIterator<Item = ListenAddress>,
        unprotected: &[&str],
    ) -> Result<Self, ServeError> {
        let addresses: Vec<_> = addresses.into_iter().collect();
        let all: Vec<_> = addresses.iter().map(|address| address.address).collect();
        let mut bound = Self { addresses: Vec::new(), sockets: Vec::new() };
        for address in addresses {
            check(&address, unprotected)?;
            let listener = bind(address.address, IpVersions::of(address.address, &all)).await?;
            let local = listener.local_addr().unwrap_or(address.address);
            let ListenAddress { tls, routes, .. } = address;
            bound.addresses.push(ListenAddress { address: local, tls: tls.clone(), routes });
            bound.sockets.push(Socket { listener, tls, routes });
        }
        Ok(bound)
    }
}

fn check(address: &ListenAddress, unprotected: &[&str]) -> Result<(), ServeError> {
    let ListenAddress { address: socket, .. } = *address;
    if address.is_loopback() {
        return Ok(());
    }
    if address.is_for_callers() && !unprotected.is_empty() {
        return Err(ServeError::Unprotected { address: socket, agents: unprotected.join(", ") });
    }
    if !address.is_for_callers() && address.tls.is_none() {
        return Err(ServeError::PlainOperators { address: socket });
    }
    Ok(())
}

/// Connections of which versions of IP a socket accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum IpVersions {
    /// As the system decides: at `[::]` usually both.
    Default,
    /// IPv6 only, so that a socket of IPv4 can have the same port.
    OnlyV6,
}

impl IpVersions {
    /// Those of one of the addresses of a server.
    fn of(address: SocketAddr, all: &[SocketAddr]) -> Self {
        let is_v4 = |other: &SocketAddr| other.is_ipv4() && other.port() == address.port();
        let is_v6 = address.is_ipv6() && address.ip().is_unspecified();
        if is_v6 && all.iter().any(is_v4) { Self::OnlyV6 } else { Self::Default }
    }
}

async fn bind(address: SocketAddr, versions: IpVersions) -> Result<TcpListener, ServeError> {
    let bound = match versions {
        IpVersions::Default => TcpListener::bind(address).await,
        IpVersions::OnlyV6 => bind_only_v6(address),
    };
    match bound {
        Ok(listener) => Ok(listener),
        Err(reason) => {
            let in_use = reason.kind() == std::io::ErrorKind::AddrInUse;
            let holder = if in_use { port_holder::describe(address).await } else { None };
            Err(ServeError::Listen { address, reason, holder })
        }
    }
}

/// As [`TcpListener::bind`] does it, and without connections of IPv4.
fn bind_only_v6(address: SocketAddr) -> io::Result<TcpListener> {
    const BACKLOG: u32 = 128;
    let socket = TcpSocket::new_v6()?;
    socket.set_reuseaddr(true)?;
    rustix::net::sockopt::set_ipv6_v6only(&socket, true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// The URLs for callers, in the order of the addresses.
pub(crate) fn caller_urls(addresses: &[ListenAddress]) -> Vec<String> {
    addresses.iter().filter(|address| address.is_for_callers()).map(ListenAddress::url).collect()
}

/// The address that only operators use.
pub(crate) fn operators_only(addresses: &[ListenAddress]) -> Option<&ListenAddress> {
    addresses.iter().find(|address| !address.is_for_callers())
}

/// What the audience of tokens is unless it is configured: the public URL, else the addresses for callers.
pub fn audiences(public_url: Option<&str>, addresses: &[ListenAddress]) -> Vec<String> {
    if let Some(url) = public_url {
        return vec![url.to_owned()];
    }
    let names = |address: &ListenAddress| {
        let by_name = address.is_loopback().then(|| {
            let url = address.url();
            let scheme = url.split_once("://").map_or("http", |(scheme, _)| scheme);
            format!("{scheme}://localhost:{}", address.address.port())
        });
        [address.url()].into_iter().chain(by_name)
    };
    addresses.iter().filter(|address| address.is_for_callers()).flat_map(names).collect()
}

/// What the lock file of the store says about these addresses. Commands of this machine prefer an address without TLS, because
/// the name in a certificate is not the address that they use.
pub(crate) fn served_at(addresses: &[ListenAddress]) -> ServedAt {
    let preferred = |is_for: fn(&ListenAddress) -> bool| {
        let rank = |address: &&ListenAddress| (address.tls.is_some(), !address.is_loopback());
        addresses.iter().filter(|address| is_for(address)).min_by_key(rank)
    };
    let operators = preferred(ListenAddress::is_for_operators);
    let certificate =
        operators.and_then(|address| address.tls.as_ref()).map(|tls| absolute(&tls.files().cert));
    let shown = addresses.iter().map(|address| match &address.tls {
        None => address.address.to_string(),
        Some(_) => address.url(),
    });
    ServedAt {
        address: shown.collect::<Vec<_>>().join(", "),
        callers: preferred(ListenAddress::is_for_callers).map(ListenAddress::url),
        operators: operators.map(ListenAddress::url),
        certificate,
    }
}

fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}
