//! `cargo xtask verify guard_oracle [--addresses N] [--seed S]`: compares the rules for addresses with those of the crate
//! `ssrf-guard`, on random addresses of which most are in or near special ranges.
//!
//! An address that only `ssrf-guard` refuses is a failure. Where only a2ad refuses one, the difference has to be one of
//! those below, and each of those has to occur.

#![allow(clippy::print_stdout, reason = "the result is the output of this program")]

#[path = "../../../crates/outbound/src/dial/address.rs"]
mod address;

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use anyhow::{Context, Result, ensure};
use fastrand::Rng;

const ADDRESSES: u64 = 1_000_000;

/// Why a2ad refuses an address that `ssrf-guard` allows.
const DIFFERENCES: [&str; 4] = [UNASSIGNED, COMPATIBLE, TRANSLATED, ASSIGNMENTS];
/// `ssrf-guard` refuses the known special ranges; a2ad allows only `2000::/3`, so that a range that gets a special meaning
/// later is refused too.
const UNASSIGNED: &str = "not global unicast";
/// `ssrf-guard` judges `::a.b.c.d` by the IPv4 address. It is deprecated, and no gateway is known to take it out.
const COMPATIBLE: &str = "IPv4-compatible, of a public address";
/// The same for `::ffff:0:a.b.c.d`.
const TRANSLATED: &str = "IPv4-translated, of a public address";
/// `ssrf-guard` refuses Teredo and benchmarking; a2ad refuses all of `2001::/23`, where protocols have their addresses.
const ASSIGNMENTS: &str = "protocol assignments";

/// Ranges of which addresses are taken, inside and at their edges.
#[rustfmt::skip]
const RANGES: &[&str] = &[
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
    "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
    "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4", "255.255.255.255/32",
    "::/128", "::1/128", "::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64",
    "100:0:0:1::/64", "2000::/3", "2001::/23", "2001::/32", "2001:1::/32", "2001:2::/48", "2001:3::/32", "2001:4:112::/48",
    "2001:10::/28", "2001:20::/28", "2001:30::/28", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
    "4000::/2", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
];

/// So many of them, the first, are of IPv4.
const V4_RANGES: usize = 19;

/// Where an IPv6 address contains an IPv4 address: the other bits, and by how many bits it is shifted.
const EMBEDDINGS: [(&str, u32); 8] = [
    ("::", 0),
    ("::ffff:0:0", 0),
    ("::ffff:0:0:0", 0),
    ("64:ff9b::", 0),
    ("64:ff9b:1::", 0),
    ("2002::", 80),
    ("2001::", 64),
    ("2001:4860::", 0),
];

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (addresses, seed) = (option(&args, "--addresses", ADDRESSES)?, option(&args, "--seed", 1)?);
    let mut rng = Rng::with_seed(seed);
    let ranges: Vec<(u128, u128, bool)> = RANGES.iter().map(|range| bounds(range)).collect::<Result<_>>()?;
    let mut found = BTreeMap::<&str, u64>::new();
    for _ in 0..addresses {
        let address = random(&mut rng, &ranges);
        let (ours, theirs) = (address::is_public(address), ssrf_guard::is_public(address));
        ensure!(theirs || !ours, "only ssrf-guard refuses {address}");
        if theirs && !ours {
            let kind = explain(address).with_context(|| format!("only a2ad refuses {address}"))?;
            *found.entry(kind).or_default() += 1;
        }
    }
    let agreed = addresses - found.values().sum::<u64>();
    let counts: Vec<String> = found.iter().map(|(kind, count)| format!("\"{kind}\":{count}")).collect();
    println!(
        "{{\"proof\":\"guard_oracle\",\"seed\":{seed},\"addresses\":{addresses},\"agreed\":{agreed},\"stricter\":{{{}}}}}",
        counts.join(",")
    );
    let missing: Vec<&str> = DIFFERENCES.into_iter().filter(|kind| !found.contains_key(kind)).collect();
    ensure!(missing.is_empty(), "these differences do not exist: {}", missing.join(", "));
    Ok(())
}

/// The kind of a difference; `None` if none is known.
fn explain(address: IpAddr) -> Option<&'static str> {
    let IpAddr::V6(address) = address else { return None };
    match address.segments() {
        [0, 0, 0, 0, 0, 0, ..] => Some(COMPATIBLE),
        [0, 0, 0, 0, 0xffff, 0, ..] => Some(TRANSLATED),
        [0x2001, 0..0x200, ..] => Some(ASSIGNMENTS),
        [0x2000..0x4000, ..] => None,
        _ => Some(UNASSIGNED),
    }
}

/// Half of the addresses are in a range or at most two outside of it, a third contain such an IPv4 address, the rest are
/// any.
fn random(rng: &mut Rng, ranges: &[(u128, u128, bool)]) -> IpAddr {
    let kind = rng.u8(..6);
    let any = rng.usize(..ranges.len());
    match kind {
        0..3 => near(rng, ranges[any]),
        3 | 4 => {
            let (prefix, shift) = EMBEDDINGS[rng.usize(..EMBEDDINGS.len())];
            let prefix: Ipv6Addr = prefix.parse().expect("an address");
            let v4 = ranges[any % V4_RANGES];
            let inner = match near(rng, v4) {
                IpAddr::V4(inner) => inner.to_bits(),
                IpAddr::V6(_) => unreachable!("the first ranges are those of IPv4"),
            };
            Ipv6Addr::from_bits(prefix.to_bits() | u128::from(inner) << shift).into()
        }
        _ if rng.bool() => Ipv4Addr::from_bits(rng.u32(..)).into(),
        _ => Ipv6Addr::from_bits(rng.u128(..)).into(),
    }
}

fn near(rng: &mut Rng, (first, last, is_v4): (u128, u128, bool)) -> IpAddr {
    let bits = match rng.u8(..4) {
        0 => first.wrapping_sub(rng.u128(..3)),
        1 => last.wrapping_add(rng.u128(..3)),
        _ => rng.u128(first..=last),
    };
    if is_v4 { Ipv4Addr::from_bits(bits as u32).into() } else { Ipv6Addr::from_bits(bits).into() }
}

/// First and last address of a range, and whether it is one of IPv4.
fn bounds(range: &str) -> Result<(u128, u128, bool)> {
    Ok(match range.parse().with_context(|| range.to_owned())? {
        ipnet::IpNet::V4(net) => (net.network().to_bits().into(), net.broadcast().to_bits().into(), true),
        ipnet::IpNet::V6(net) => (net.network().to_bits(), net.broadcast().to_bits(), false),
    })
}

fn option(args: &[String], name: &str, default: u64) -> Result<u64> {
    let Some(at) = args.iter().position(|arg| arg == name) else { return Ok(default) };
    args.get(at + 1).and_then(|value| value.parse().ok()).with_context(|| format!("{name} takes a number"))
}
