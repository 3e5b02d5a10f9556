//! Hosts in many spellings. The fuzz target of the guard begins with the same files.

use std::net::Ipv4Addr;

/// Hosts that are an address which is not public: from the file, and every form of some addresses.
pub(crate) fn not_public() -> Vec<String> {
    let files = lines(include_str!("hosts/not_public.txt")).map(str::to_owned);
    files.chain(NOT_PUBLIC.iter().flat_map(|address| forms(address.parse().unwrap()))).collect()
}

/// Names of this machine and of local networks.
pub(crate) fn local() -> impl Iterator<Item = &'static str> {
    lines(include_str!("hosts/local.txt"))
}

/// Public addresses, and names, which are checked when they are resolved.
pub(crate) fn public() -> impl Iterator<Item = &'static str> {
    lines(include_str!("hosts/public.txt"))
}

fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with('#'))
}

/// One or two of each range.
const NOT_PUBLIC: &[&str] = &[
    "0.0.0.0",
    "10.0.0.1",
    "10.255.255.254",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.1.2.3",
    "169.254.169.254",
    "172.16.0.1",
    "192.0.0.8",
    "192.0.2.7",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.3",
    "203.0.113.9",
    "240.0.0.1",
];

/// The spellings of an address that is not public.
fn forms(address: Ipv4Addr) -> Vec<String> {
    [equivalent(address), embedded(address)].concat()
}

/// The spellings of an IPv4 address that are judged as that address.
pub(crate) fn equivalent(address: Ipv4Addr) -> Vec<String> {
    let bits = address.to_bits();
    let [a, b, c, d] = address.octets();
    let (high, low) = (bits >> 16, bits & 0xffff);
    let dotted = address.to_string();
    vec![
        dotted.clone(),
        format!("{dotted}."),
        bits.to_string(),
        format!("0x{bits:x}"),
        format!("0X{bits:08X}"),
        format!("0{bits:o}"),
        format!("{a}.{}", bits & 0xff_ffff),
        format!("{a}.{b}.{low}"),
        format!("0x{a:x}.0x{b:x}.0x{c:x}.0x{d:x}"),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("0x{a:x}.0{b:o}.{low}"),
        format!("0000{a:o}.{b}.0x000{c:x}.{d}"),
        in_digits(&dotted, '\u{ff10}'),
        in_digits(&dotted, '\u{1d7ce}'),
        dotted.replace('.', "\u{3002}"),
        dotted.bytes().map(|byte| format!("%{byte:02x}")).collect(),
        format!("[::ffff:{dotted}]"),
        format!("[::ffff:{high:x}:{low:x}]"),
        format!("[0000:0000:0000:0000:0000:FFFF:{high:04X}:{low:04X}]"),
        format!("[64:ff9b::{dotted}]"),
    ]
}

/// IPv6 addresses that contain an IPv4 address, and are not public whatever it is.
fn embedded(address: Ipv4Addr) -> Vec<String> {
    let bits = address.to_bits();
    let (high, low) = (bits >> 16, bits & 0xffff);
    // Teredo inverts the address of its client.
    let inverted = !bits;
    vec![
        format!("[::{address}]"),
        format!("[::ffff:0:{address}]"),
        format!("[64:ff9b:1::{address}]"),
        format!("[2002:{high:x}:{low:x}::1]"),
        format!("[2001:0:{high:x}:{low:x}::1]"),
        format!("[2001::{:x}:{:x}]", inverted >> 16, inverted & 0xffff),
    ]
}

/// The same text with other digits, which Unicode maps to those of ASCII.
fn in_digits(dotted: &str, zero: char) -> String {
    let digit = |character: char| match character.to_digit(10) {
        Some(digit) => char::from_u32(u32::from(zero) + digit).unwrap(),
        None => character,
    };
    dotted.chars().map(digit).collect()
}
