//! Which addresses are public (pure).
//!
//! The IANA registries of special-purpose addresses, read strictly: of IPv6 only global unicast (`2000::/3`) can be
//! public. An IPv4 address inside an IPv6 address is judged as IPv4 where the network is known to take it out again
//! (mapped addresses, NAT64). 6to4, Teredo, IPv4-compatible addresses and the local NAT64 prefix are not public
//! whatever they contain: a relay or the local network decides where such a connection ends.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{Ipv4Net, Ipv6Net};

const NOT_PUBLIC_V4: [Ipv4Net; 15] = [
    v4([0, 0, 0, 0], 8),
    v4([10, 0, 0, 0], 8),
    v4([100, 64, 0, 0], 10),
    v4([127, 0, 0, 0], 8),
    v4([169, 254, 0, 0], 16),
    v4([172, 16, 0, 0], 12),
    v4([192, 0, 0, 0], 24),
    v4([192, 0, 2, 0], 24),
    v4([192, 88, 99, 0], 24),
    v4([192, 168, 0, 0], 16),
    v4([198, 18, 0, 0], 15),
    v4([198, 51, 100, 0], 24),
    v4([203, 0, 113, 0], 24),
    v4([224, 0, 0, 0], 4),
    v4([240, 0, 0, 0], 4),
];

/// Global unicast: everything that is assigned to networks. Loopback, link-local, unique local, multicast and the other
/// special ranges are outside.
const GLOBAL_UNICAST: Ipv6Net = v6([0x2000, 0], 3);

/// Special ranges inside global unicast.
const NOT_PUBLIC_V6: [Ipv6Net; 4] = [
    // Protocol assignments, among them Teredo, benchmarking and ORCHID.
    v6([0x2001, 0], 23),
    // Documentation.
    v6([0x2001, 0xdb8], 32),
    v6([0x3fff, 0], 20),
    // 6to4.
    v6([0x2002, 0], 16),
];

/// The prefix from which every NAT64 gateway takes the IPv4 address.
const NAT64: Ipv6Net = v6([0x64, 0xff9b], 96);

/// Whether anybody on the internet can have this address.
pub fn is_public(address: IpAddr) -> bool {
    match canonical(address) {
        IpAddr::V4(address) => !NOT_PUBLIC_V4.iter().any(|net| net.contains(&address)),
        IpAddr::V6(address) => {
            GLOBAL_UNICAST.contains(&address) && !NOT_PUBLIC_V6.iter().any(|net| net.contains(&address))
        }
    }
}

/// The address that a connection reaches: the IPv4 address inside a mapped or NAT64 address, else the address itself.
pub fn canonical(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(wrapped) if NAT64.contains(&wrapped) => {
            let [.., a, b, c, d] = wrapped.octets();
            Ipv4Addr::new(a, b, c, d).into()
        }
        address => address,
    }
}

const fn v4(address: [u8; 4], prefix: u8) -> Ipv4Net {
    let [a, b, c, d] = address;
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), prefix)
}

const fn v6(start: [u16; 2], prefix: u8) -> Ipv6Net {
    Ipv6Net::new_assert(Ipv6Addr::new(start[0], start[1], 0, 0, 0, 0, 0, 0), prefix)
}
