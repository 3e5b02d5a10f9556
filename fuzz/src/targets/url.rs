//! F-url: URLs that peers choose, and the addresses in them.
//!
//! An input is the text of a URL; its last bytes are also an address. The rules for addresses are written here a second
//! time, as ranges of numbers, and hosts are read a second time, as the C library reads them.

use std::{
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
    sync::LazyLock,
};

use http::Uri;
use outbound::dial::{DialPolicy, address::is_public, guard::check_url};
use url::Url;

use crate::Target;

pub(crate) const TARGET: Target = Target {
    id: "F-url",
    name: "URLs of peers: an allowed address is public, and every parser reads the same host",
    run,
    corpus,
    dictionary: DICTIONARY,
    inputs: 500_000,
};

#[rustfmt::skip]
const DICTIONARY: &[&str] = &[
    "https://", "http://", "HTTPS:", "file://", "//", "/", "\\", "?", "#", "@", ":", ":@", "%40", ":443", ":8443", ":80",
    ":0", ":65536", ".", "..", "%2e", "%2f", "%00", "%25", "\t", "\n", " ", "\u{a0}", "\u{ad}", "\u{3002}", "\u{ff0e}",
    "\u{ff11}", "\u{2460}", "\u{1d7cf}", "[", "]", "::", "::1", "[::ffff:", "[64:ff9b::", "[64:ff9b:1::", "[2002:", "[2001::",
    "fe80::1%25eth0", "0x", "0x7f", "0177", "127.0.0.1", "2130706433", "169.254.169.254", "10.1.2.3", "8.8.8.8",
    "localhost", ".localhost", ".internal", ".local", "example.com", "xn--", "xn--bcher-kva", "\u{df}", "user:pass@",
];

/// First and last address of every IPv4 range that is not public.
#[rustfmt::skip]
const SPECIAL_V4: [(&str, &str); 14] = [
    ("0.0.0.0", "0.255.255.255"), ("10.0.0.0", "10.255.255.255"), ("100.64.0.0", "100.127.255.255"),
    ("127.0.0.0", "127.255.255.255"), ("169.254.0.0", "169.254.255.255"), ("172.16.0.0", "172.31.255.255"),
    ("192.0.0.0", "192.0.0.255"), ("192.0.2.0", "192.0.2.255"), ("192.88.99.0", "192.88.99.255"),
    ("192.168.0.0", "192.168.255.255"), ("198.18.0.0", "198.19.255.255"), ("198.51.100.0", "198.51.100.255"),
    ("203.0.113.0", "203.0.113.255"), ("224.0.0.0", "255.255.255.255"),
];

/// First and last address of every IPv6 range that is not public.
#[rustfmt::skip]
const SPECIAL_V6: [(&str, &str); 6] = [
    ("::", "1fff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"), ("2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("2001:db8::", "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff"), ("2002::", "2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    ("3fff::", "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff"), ("4000::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
];

/// Where IPv6 addresses contain an IPv4 address: the upper bits, and by how many bits it is shifted.
const EMBEDDINGS: [(&str, u32); 7] = [
    ("::ffff:0:0", 0),
    ("64:ff9b::", 0),
    ("64:ff9b:1::", 0),
    ("::ffff:0:0:0", 0),
    ("::", 0),
    ("2002::", 80),
    ("2001::", 64),
];

static STRICT: LazyLock<DialPolicy> = LazyLock::new(|| policy(&[]));
static WITH_ALLOWED: LazyLock<DialPolicy> = LazyLock::new(|| policy(&["10.1.0.0/16", "fd00::/8"]));

fn policy(allow: &[&str]) -> DialPolicy {
    let allow = allow.iter().map(|network| network.parse().expect("a network")).collect();
    DialPolicy { allow, allow_http: true, own_addresses: Vec::new() }
}

fn run(input: &[u8]) {
    let text = String::from_utf8_lossy(input);
    if let Ok(url) = check_url(&text, &STRICT) {
        check_allowed(&url, &STRICT);
        let port = url.port_or_known_default();
        assert!(matches!((url.scheme(), port), ("http", Some(80)) | (_, Some(443 | 8443))), "{url}");
        assert!(!is_local(url.host_str().unwrap_or_default()), "{url}");
        assert!(
            check_url(&text, &WITH_ALLOWED).is_ok(),
            "{url}: forbidden because another network is allowed"
        );
    }
    if let Ok(url) = check_url(&text, &WITH_ALLOWED) {
        check_allowed(&url, &WITH_ALLOWED);
    }
    check_addresses(input);
}

/// What holds for every URL that is allowed.
fn check_allowed(url: &Url, policy: &DialPolicy) {
    assert!(url.username().is_empty() && url.password().is_none(), "{url}");
    assert_eq!(check_url(url.as_str(), policy).as_ref(), Ok(url), "its own text gets another verdict");
    let host = url.host_str().unwrap_or_default();
    assert!(!host.is_empty() && host.is_ascii(), "{url}");
    if let Some(address) = address_in(host) {
        let allowed = policy.allow.iter().any(|network| network.contains(&address.to_canonical()));
        assert!(allowed || is_public_by_ranges(address), "{url}");
    }
    if let Ok(uri) = url.as_str().parse::<Uri>() {
        assert_eq!(uri.host(), Some(host), "the HTTP library reads another host");
        assert_eq!(uri.port_u16(), url.port(), "the HTTP library reads another port");
    }
}

/// The last bytes as an IPv6 address, as an IPv4 address, and as an IPv4 address in each embedding.
fn check_addresses(input: &[u8]) {
    let number =
        input.iter().rev().take(16).rev().fold(0, |number: u128, byte| number << 8 | u128::from(*byte));
    let v4 = Ipv4Addr::from_bits(number as u32);
    let embedded = EMBEDDINGS.iter().map(|(prefix, shift)| {
        let prefix: Ipv6Addr = prefix.parse().expect("an address");
        Ipv6Addr::from_bits(prefix.to_bits() | u128::from(v4.to_bits()) << shift).into()
    });
    for address in embedded.chain([v4.into(), Ipv6Addr::from_bits(number).into()]) {
        assert_eq!(is_public(address), is_public_by_ranges(address), "{address}");
    }
}

fn is_public_by_ranges(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_outside(address, &SPECIAL_V4),
        IpAddr::V6(address) => match address.to_bits() >> 32 {
            // Mapped addresses and NAT64 are judged by the IPv4 address in them.
            0xffff | 0x0064_ff9b_0000_0000_0000_0000 => {
                is_outside(Ipv4Addr::from_bits(address.to_bits() as u32), &SPECIAL_V4)
            }
            _ => is_outside(address, &SPECIAL_V6),
        },
    }
}

fn is_outside<T: Copy + Ord + std::str::FromStr>(address: T, ranges: &[(&str, &str)]) -> bool {
    let parse = |text: &str| text.parse::<T>().unwrap_or_else(|_| panic!("{text} is an address"));
    !ranges.iter().any(|(first, last)| parse(first) <= address && address <= parse(last))
}

/// The address that a host stands for, read like `inet_aton` and `inet_pton` do.
fn address_in(host: &str) -> Option<IpAddr> {
    if let Some(inner) = host.strip_prefix('[') {
        return Some(inner.strip_suffix(']')?.parse::<Ipv6Addr>().ok()?.into());
    }
    let parts: Vec<&str> = host.strip_suffix('.').unwrap_or(host).split('.').collect();
    let (last, first) = parts.split_last()?;
    if first.len() > 3 {
        return None;
    }
    let mut bits = 0;
    for part in first {
        bits = bits << 8 | number(part).filter(|number| *number < 256)?;
    }
    let rest = 8 * (4 - first.len() as u32);
    let bits = bits << rest | number(last).filter(|number| *number >> rest == 0)?;
    Some(Ipv4Addr::from_bits(bits as u32).into())
}

/// A number in base 8, 10 or 16, as C writes it.
fn number(text: &str) -> Option<u64> {
    let lower = text.to_ascii_lowercase();
    let (digits, base) = match (lower.strip_prefix("0x"), lower.strip_prefix('0')) {
        (Some(digits), _) => (digits, 16),
        (None, Some(digits)) if !digits.is_empty() => (digits, 8),
        _ => (lower.as_str(), 10),
    };
    if digits.starts_with('+') { None } else { u64::from_str_radix(digits, base).ok() }
}

fn is_local(host: &str) -> bool {
    let host = format!(".{}", host.trim_end_matches('.').to_ascii_lowercase());
    [".localhost", ".internal", ".local"].iter().any(|local| host.ends_with(local))
}

/// Every spelling of the tests of the guard, and what can be wrong with the rest of a URL.
fn corpus() -> Vec<Vec<u8>> {
    let files = [
        include_str!("../../../crates/outbound/tests/guard/hosts/not_public.txt"),
        include_str!("../../../crates/outbound/tests/guard/hosts/public.txt"),
        include_str!("../../../crates/outbound/tests/guard/hosts/local.txt"),
    ];
    let hosts = files.iter().flat_map(|file| file.lines()).filter(|line| !line.starts_with('#'));
    let urls = hosts.map(|host| format!("https://{host}/hook?x=y"));
    urls.chain(OTHER_URLS.iter().map(|url| (*url).to_owned()))
        .chain(large())
        .map(String::into_bytes)
        .collect()
}

#[rustfmt::skip]
const OTHER_URLS: &[&str] = &[
    "", "https:", "https:example.com", "https:\\\\example.com\\@127.0.0.1/", "https://127.0.0.1\\@example.com/",
    "https://example.com:443@127.0.0.1/", "https://user:password@example.com/",
    "https://example.com:8443/a/../b;c?d=e#f", "http://example.com:80/", "http://10.1.2.3:9000/",
    "http://[fd00::1]:9000/", "http://localhost:9000/", "ftp://example.com/", "https://example.com:99999/",
    "https://[fe80::1%25eth0]/", "https://exam\u{ad}ple.com/", "https://\u{66e}\u{5d0}.example/",
];

/// Long names, and long texts around a short one.
fn large() -> [String; 4] {
    [
        format!("https://{}example.com/", "a.".repeat(20_000)),
        format!("https://{}/", "\u{fc}".repeat(10_000)),
        format!("https://{}.0.0.1/", "0".repeat(50_000)),
        format!("https://example.com/{}", "%2e/".repeat(20_000)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutate::Mutator;

    #[test]
    fn corpus_passes_and_some_mutated_urls_are_allowed() {
        corpus().iter().for_each(|input| run(input));
        let mutator = Mutator::new(corpus(), DICTIONARY, 7);
        let is_allowed = |number: &u64| {
            let input = mutator.input(1_000 + *number);
            check_url(&String::from_utf8_lossy(&input), &STRICT).is_ok()
        };
        let allowed = (0..2_000).filter(is_allowed).count();
        assert!((100..1_900).contains(&allowed), "{allowed} of 2000");
    }

    #[test]
    fn hosts_are_read_as_in_c() {
        let loopback = Some(IpAddr::from([127, 0, 0, 1]));
        for host in ["127.0.0.1", "127.1", "0x7f.1", "0177.0.0.1", "2130706433", "017700000001", "127.0.0.1."]
        {
            assert_eq!(address_in(host), loopback, "{host}");
        }
        for host in ["example.com", "127.0.0.1.example", "1.2.3.4.5", "256.1.1.1", "08.1.1.1", "4294967296"] {
            assert_eq!(address_in(host), None, "{host}");
        }
    }
}
