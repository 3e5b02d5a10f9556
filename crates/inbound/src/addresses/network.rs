//! What counts as one sender: an IPv4 address, or the /64 of an IPv6 address, which is what one host is given. Its owner
//! can use any address in it. Pure.

use std::net::IpAddr;

/// The network of an address, as its first address.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((address.to_bits() >> 64 << 64).into()),
        address => address,
    }
}
