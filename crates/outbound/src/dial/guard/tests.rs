//! A table of spellings, each with its verdict.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::{Forbidden::*, *};

fn policy(allow: &[&str]) -> DialPolicy {
    let allow = allow.iter().map(|net| net.parse().unwrap()).collect();
    DialPolicy { allow, allow_http: true, own_addresses: vec!["93.184.215.14:8443".parse().unwrap()] }
}

fn check(cases: &[(&str, Result<(), Forbidden>)], policy: &DialPolicy) {
    for (url, expected) in cases {
        assert_eq!(check_url(url, policy).map(drop), *expected, "{url}");
    }
}

/// Hosts that are an address which is not public, however it is written.
#[rustfmt::skip]
const NOT_PUBLIC: &[&str] = &[
    // Loopback in every base and length.
    "127.0.0.1", "127.1", "127.0.1", "127.0.0.1.", "127.255.255.254", "2130706433", "017700000001", "0x7f000001",
    "0x7F000001", "0x7f.1", "0x7f.0.0.1", "0x7f.0x0.0x0.0x1", "0177.0.0.1", "0177.1", "0177.0.0.01", "0x7f.0.1",
    "127.0.0.0x1", "127.0x0.0.1", "0300.0250.0.1", "00000177.0.0.1", "0x0000007f.1", "127.0.0.01",
    // Unspecified.
    "0", "0.0.0.0", "0x0", "00", "0.0", "0x", "0.", "0.0.0.0.", "0.1.2.3",
    // Other digits that Unicode maps to these.
    "１２７.０.０.１", "①②⑦.⓪.⓪.①", "𝟏𝟐𝟕.𝟎.𝟎.𝟏", "127。0。0。1", "127．0．0．1", "127｡0｡0｡1", "０ｘ7f.1", "⑫7.0.0.1",
    "１６９.２５４.１６９.２５４",
    // Percent-encoded.
    "%31%32%37.0.0.1", "127%2e0%2e0%2e1", "%30", "%EF%BC%91%EF%BC%92%EF%BC%97.0.0.1",
    // Metadata services and link-local.
    "169.254.169.254", "0xa9fea9fe", "2852039166", "025177524776", "0xa9.0xfe.0xa9.0xfe", "0251.0376.0251.0376",
    "169.254.43518", "169.16689662", "169.254.0.1", "169.254.170.2", "100.100.100.200",
    // Private, shared, benchmarking, documentation, multicast, reserved.
    "10.0.0.1", "10.255.255.255", "167772161", "012.0.0.1", "10.1", "172.16.0.1", "172.31.255.255", "192.168.0.1",
    "192.168.1", "0xc0a80001", "3232235521", "100.64.0.1", "100.127.255.255", "192.0.0.1", "192.0.0.170", "192.0.2.1",
    "192.88.99.1", "198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255",
    "240.0.0.1", "255.255.255.255", "4294967295", "0xffffffff",
    // IPv6: unspecified, loopback, mapped, compatible.
    "[::]", "[::0]", "[0:0:0:0:0:0:0:0]", "[::1]", "[0:0:0:0:0:0:0:1]", "[0000::0001]", "[::0.0.0.1]",
    "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:127.0.0.1]", "[::FFFF:10.0.0.1]", "[::ffff:a9fe:a9fe]",
    "[::ffff:0.0.0.0]", "[::127.0.0.1]", "[::7f00:1]", "[::8.8.8.8]", "[::ffff:0:127.0.0.1]", "[::ffff:0:8.8.8.8]",
    // NAT64 of private addresses, and the local prefix.
    "[64:ff9b::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b::10.0.0.1]", "[64:ff9b::169.254.169.254]",
    "[64:ff9b:1::8.8.8.8]", "[64:ff9b:1::127.0.0.1]", "[64:ff9b:1:a00:0:100::]", "[64:ff9b:0:0:1::8.8.8.8]",
    // 6to4 and Teredo, whatever they contain.
    "[2002:7f00:1::]", "[2002:a00:1::1]", "[2002:a9fe:a9fe::]", "[2002:808:808::]",
    "[2001::1]", "[2001:0:4136:e378:8000:63bf:80ff:fffe]", "[2001:0:808:808::f7f7:f7f7]",
    // Local, documentation, benchmarking, discard, segment routing, multicast, unassigned.
    "[fe80::1]", "[febf::1]", "[fec0::1]", "[feff::1]", "[fc00::1]", "[fd00::1]", "[fd00:ec2::254]", "[fdff::1]",
    "[100::1]", "[100:0:0:1::1]", "[2001:db8::1]", "[2001:2::1]", "[2001:10::1]", "[2001:20::1]", "[3fff::1]",
    "[3fff:fff::1]", "[5f00::1]", "[ff02::1]", "[ff0e::1]", "[1::1]", "[4000::1]", "[8000::1]", "[::1:0:0]",
];

/// Hosts that are public addresses or names.
#[rustfmt::skip]
const PUBLIC: &[&str] = &[
    "8.8.8.8", "134744072", "0x08080808", "1.1.1.1", "93.184.215.14", "9.255.255.255", "11.0.0.0", "100.63.255.255",
    "100.128.0.0", "126.255.255.255", "128.0.0.1", "169.253.255.255", "169.255.0.1", "172.15.255.255", "172.32.0.1",
    "191.255.255.255", "192.0.1.1", "192.167.255.255", "192.169.0.1", "198.17.255.255", "198.20.0.1", "203.0.112.1",
    "223.255.255.255", "[2606:4700::1111]", "[2001:4860:4860::8888]", "[2a00:1450::1]", "[2003::1]", "[3ffe::1]",
    "[2001:200::1]", "[64:ff9b::8.8.8.8]", "[64:ff9b::808:808]", "[::ffff:8.8.8.8]",
    // Names are checked when they are resolved.
    "example.com", "EXAMPLE.com", "example.com.", "localhost.example.com", "internal.example", "mylocalhost",
    "local.example.org", "bücher.example", "xn--bcher-kva.example", "a.b.c.d.e", "127.0.0.1.nip.io", "metadata",
    "0x7f.0.0.1.example", "example。com",
];

/// Names of this machine and of local networks.
#[rustfmt::skip]
const LOCAL: &[&str] = &[
    "localhost", "LOCALHOST", "LocalHost", "localhost.", "localhost..", "a.localhost", "a.b.localhost", "a.localhost.",
    "ｌｏｃａｌｈｏｓｔ", "ⓛocalhost", "l%6fcalhost", "local\u{ad}host", "localhost%2e", "metadata.google.internal",
    "metadata.google.internal.", "x.internal", "internal", "printer.local", "printer.LOCAL", "printer.local.", "local",
    "x。local",
];

/// Texts that are not URLs for us.
#[rustfmt::skip]
const MALFORMED: &[&str] = &[
    "", "/", "//example.com/", "example.com", "https:", "https://", "https:///", "https://:443/", "https://[",
    "https://[::1", "https://[fe80::1%25eth0]/", "https://[fe80::1%eth0]/", "https://[::1%25lo]/", "https://[::g]/",
    "https://[127.0.0.1]/", "https://256.256.256.256/", "https://1.2.3.4.5/", "https://1.2.3.256/", "https://0x100000000/",
    "https://4294967296/", "https://127.0.0.08/", "https://09.1.1.1/", "https://127..0.1/", "https://exa mple.com/",
    "https://example.com:99999/", "https://example.com:-1/", "https://example.com:x/", " https://example.com/",
    "https://example.com/ ", "https://example.com/\n", "ht\ttps://127.0.0.1/", "https://127.0.0.1\r\n/", "https://a%00b/",
    "https://a<b/", "https://a|b/", "https://%zz/", "https://exam\u{a0}ple/", "https://a/\u{2028}", "https://xn--localhost.local/",
];

#[test]
fn every_spelling_of_an_address_that_is_not_public_is_forbidden() {
    for host in NOT_PUBLIC {
        for url in
            [format!("https://{host}/hook"), format!("http://{host}"), format!("https://{host}:8443/?q#f")]
        {
            assert_eq!(check_url(&url, &policy(&[])).map(drop), Err(NotPublic), "{url}");
        }
    }
}

#[test]
fn public_addresses_and_names_are_allowed() {
    for host in PUBLIC {
        for url in [format!("https://{host}/hook"), format!("http://{host}:80/")] {
            let checked = check_url(&url, &policy(&[])).unwrap_or_else(|problem| panic!("{url}: {problem}"));
            if let Some(address) = Target::of(&checked).unwrap().literal() {
                assert!(is_public(canonical(address)), "{url}");
            }
        }
    }
}

#[test]
fn local_names_are_forbidden_also_in_other_letters() {
    for host in LOCAL {
        let url = format!("https://{host}/");
        assert_eq!(check_url(&url, &policy(&[])).map(drop), Err(LocalName), "{url}");
    }
}

#[test]
fn malformed_texts_are_forbidden() {
    for text in MALFORMED {
        assert_eq!(check_url(text, &policy(&[])).map(drop), Err(NotAUrl), "{text:?}");
    }
}

#[test]
fn tables_have_the_required_size() {
    let sizes = [NOT_PUBLIC.len(), PUBLIC.len(), LOCAL.len(), MALFORMED.len()];
    assert!(sizes.iter().sum::<usize>() >= 200, "{sizes:?}");
}

#[test]
fn schemes_credentials_and_ports() {
    let cases = [
        ("ftp://example.com/", Err(Scheme)),
        ("file:///etc/passwd", Err(Scheme)),
        ("gopher://example.com:443/", Err(Scheme)),
        ("ws://example.com/", Err(Scheme)),
        ("wss://example.com/", Err(Scheme)),
        ("javascript:alert(1)", Err(Scheme)),
        ("data:text/plain,x", Err(Scheme)),
        ("unix:/run/docker.sock", Err(Scheme)),
        ("localhost:8080", Err(Scheme)),
        ("HTTPS://example.com/", Ok(())),
        ("https:example.com", Ok(())),
        ("https:/example.com", Ok(())),
        ("https:\\\\example.com\\a", Ok(())),
        ("https://user@example.com/", Err(Credentials)),
        ("https://user:secret@example.com/", Err(Credentials)),
        ("https://:secret@example.com/", Err(Credentials)),
        ("https://example.com@127.0.0.1/", Err(Credentials)),
        ("https://127.0.0.1@example.com/", Err(Credentials)),
        ("https://example.com:443@127.0.0.1/", Err(Credentials)),
        ("https://example.com\\@127.0.0.1/", Ok(())),
        ("https://127.0.0.1\\@example.com/", Err(NotPublic)),
        ("https://127.0.0.1#@example.com/", Err(NotPublic)),
        ("https://127.0.0.1?@example.com/", Err(NotPublic)),
        ("https://@127.0.0.1/", Err(NotPublic)),
        ("https://example.com:443/", Ok(())),
        ("https://example.com:8443/", Ok(())),
        ("https://example.com:/", Ok(())),
        ("https://example.com:80/", Err(Port)),
        ("https://example.com:22/", Err(Port)),
        ("https://example.com:0/", Err(Port)),
        ("https://example.com:8080/", Err(Port)),
        ("https://example.com:65535/", Err(Port)),
        ("https://127.0.0.1:6379/", Err(Port)),
        ("http://example.com/", Ok(())),
        ("http://example.com:80/", Ok(())),
        ("http://example.com:8443/", Ok(())),
        ("http://example.com:25/", Err(Port)),
        ("https://93.184.215.14/", Ok(())),
        ("https://93.184.215.14:8443/", Err(OwnAddress)),
        ("https://[::ffff:93.184.215.14]:8443/", Err(OwnAddress)),
        ("https://[64:ff9b::93.184.215.14]:8443/", Err(OwnAddress)),
    ];
    check(&cases, &policy(&[]));
}

#[test]
fn http_needs_a_setting() {
    let strict = DialPolicy::default();
    check(&[("http://example.com/", Err(Scheme)), ("https://example.com/", Ok(()))], &strict);
    let allowed = DialPolicy { allow: vec!["127.0.0.0/8".parse().unwrap()], ..strict };
    check(&[("http://127.0.0.1/", Err(Scheme)), ("https://127.0.0.1/", Ok(()))], &allowed);
}

#[test]
fn allowed_network_has_no_port_and_name_rules() {
    let cases = [
        ("http://10.1.2.3:9000/", Ok(())),
        ("http://[::ffff:10.1.2.3]:9000/", Ok(())),
        ("https://10.1.2.3/", Ok(())),
        ("https://10.2.0.1/", Err(NotPublic)),
        ("https://8.8.8.8:9000/", Err(Port)),
        // These reach the network through a gateway, which the operator has not named.
        ("https://[64:ff9b::10.1.2.3]/", Err(NotPublic)),
        ("https://[2002:a01:203::]/", Err(NotPublic)),
        // Decided when the name is resolved.
        ("http://localhost:9000/", Ok(())),
        ("http://example.com:9000/", Ok(())),
    ];
    let policy = policy(&["10.1.0.0/16"]);
    check(&cases, &policy);
    for (url, address, expected) in [
        ("http://localhost:9000/", "10.1.2.3", Ok(())),
        ("http://localhost:9000/", "127.0.0.1", Err(LocalName)),
        ("http://localhost/", "8.8.8.8", Err(LocalName)),
        ("http://example.com:9000/", "10.1.2.3", Ok(())),
        ("http://example.com:9000/", "8.8.8.8", Err(Port)),
        ("http://example.com/", "8.8.8.8", Ok(())),
    ] {
        let target = Target::from_peer(&parse(url).unwrap(), &policy).unwrap();
        assert_eq!(target.check_address(address.parse().unwrap(), &policy), expected, "{url} {address}");
    }
    let own = DialPolicy { own_addresses: vec!["10.1.2.3:9000".parse().unwrap()], ..policy };
    check(&[("http://10.1.2.3:9000/", Err(OwnAddress)), ("http://10.1.2.3:9001/", Ok(()))], &own);
}

/// Every spelling of random addresses gets the verdict of the address itself.
#[test]
fn verdict_does_not_depend_on_the_spelling() {
    let mut number = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..20_000 {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let bits = (number >> 32) as u32;
        let address = Ipv4Addr::from_bits(bits);
        let [a, b, c, d] = address.octets();
        let spellings = [
            format!("{address}"),
            format!("{bits}"),
            format!("0x{bits:x}"),
            format!("0{bits:o}"),
            format!("{a}.{}", bits & 0xff_ffff),
            format!("0x{a:x}.0{b:o}.{}", bits & 0xffff),
            format!("{a}.{b}.{c}.{d}."),
            format!("[{}]", address.to_ipv6_mapped()),
            format!("[{}]", Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, (bits >> 16) as u16, bits as u16)),
        ];
        let expected = if is_public(address.into()) { Ok(()) } else { Err(NotPublic) };
        for host in spellings {
            let url = format!("https://{host}/");
            assert_eq!(check_url(&url, &policy(&[])).map(drop), expected, "{url}");
        }
    }
}
