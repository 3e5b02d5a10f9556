//! Which addresses a connection may go to: those of the name, and for a peer's URL only if all of them are allowed.

use std::{
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket},
    time::Duration,
};

use futures_util::future::BoxFuture;
use tokio::time::timeout;

use super::{
    DialError, DialPolicy,
    address::canonical,
    guard::{Forbidden, Target},
};

/// Maximum time for the resolution of a name.
const RESOLVE_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of addresses of a name.
const MAX_ADDRESSES: usize = 16;

/// Finds the addresses of a name.
pub trait Resolve: Send + Sync + 'static {
    /// All addresses of the name.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// Resolves names as the system does.
pub(super) struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// The addresses of a target that the operator chose: at least one, at most [`MAX_ADDRESSES`].
pub(super) async fn addresses(target: &Target, resolver: &dyn Resolve) -> io::Result<Vec<SocketAddr>> {
    let found = resolve(target, resolver).await?;
    Ok(found.into_iter().take(MAX_ADDRESSES).map(|address| SocketAddr::new(address, target.port)).collect())
}

/// The addresses of a target that a peer chose. One address that is not allowed is enough to refuse a name.
pub(super) async fn checked_addresses(
    target: &Target,
    resolver: &dyn Resolve,
    policy: &DialPolicy,
) -> Result<Vec<SocketAddr>, DialError> {
    let found = resolve(target, resolver).await.map_err(|error| DialError::Unreachable(error.into()))?;
    check(target, &found, policy).map_err(DialError::Forbidden)?;
    Ok(found.into_iter().map(|address| SocketAddr::new(address, target.port)).collect())
}

async fn resolve(target: &Target, resolver: &dyn Resolve) -> io::Result<Vec<IpAddr>> {
    if let Some(address) = target.literal() {
        return Ok(vec![address]);
    }
    let name = target.host.to_string();
    let found = timeout(RESOLVE_TIMEOUT, resolver.resolve(&name)).await??;
    if found.is_empty() {
        return Err(io::Error::other("the name has no address"));
    }
    Ok(found)
}

fn check(target: &Target, found: &[IpAddr], policy: &DialPolicy) -> Result<(), Forbidden> {
    if found.len() > MAX_ADDRESSES {
        return Err(Forbidden::TooManyAddresses);
    }
    for address in found {
        target.check_address(*address, policy)?;
        check_not_own(target, *address, policy)?;
    }
    Ok(())
}

/// Refuses every address of this machine if the server listens on all of them with this port.
pub(super) fn check_not_own(target: &Target, address: IpAddr, policy: &DialPolicy) -> Result<(), Forbidden> {
    let on_all = |own: &SocketAddr| own.ip().is_unspecified() && own.port() == target.port;
    if policy.own_addresses.iter().any(on_all) && is_of_this_machine(canonical(address)) {
        return Err(Forbidden::OwnAddress);
    }
    Ok(())
}

/// Whether a connection to this address ends on this machine. Only addresses of this machine can be bound, unless the
/// system is set to allow others (`ip_nonlocal_bind`); then it is the address that the system would send from.
fn is_of_this_machine(address: IpAddr) -> bool {
    let can_bind = |address: IpAddr| UdpSocket::bind((address, 0)).is_ok();
    let documentation: IpAddr = match address {
        IpAddr::V4(_) => Ipv4Addr::new(192, 0, 2, 1).into(),
        IpAddr::V6(_) => Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1).into(),
    };
    let is_source = || source_to(address).is_ok_and(|source| source == address);
    address.is_loopback() || can_bind(address) && (!can_bind(documentation) || is_source())
}

/// The address from which the system would send to this one. Connecting a UDP socket sends nothing.
#[expect(clippy::disallowed_methods, reason = "nothing is sent")]
fn source_to(address: IpAddr) -> io::Result<IpAddr> {
    let any: IpAddr =
        if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect((address, 9))?;
    Ok(socket.local_addr()?.ip())
}
