//! Verdicts about URLs when they are registered: a table of spellings, each with its verdict.

use std::net::{IpAddr, Ipv4Addr};

use a2ad_outbound::dial::{
    DialPolicy,
    address::is_public,
    guard::{
        Forbidden::{self, Credentials, LocalName, NotAUrl, NotPublic, OwnAddress, Port, Scheme},
        check_url,
    },
};
use url::Host;

use super::spellings;

fn policy(allow: &[&str]) -> DialPolicy {
    let allow = allow.iter().map(|net| net.parse().unwrap()).collect();
    DialPolicy { allow, allow_http: true, own_addresses: vec!["93.184.215.14:8443".parse().unwrap()] }
}

fn check(cases: &[(&str, Result<(), Forbidden>)], policy: &DialPolicy) {
    for (url, expected) in cases {
        assert_eq!(check_url(url, policy).map(drop), *expected, "{url}");
    }
}

#[test]
fn every_spelling_of_an_address_that_is_not_public_is_forbidden() {
    let hosts = spellings::not_public();
    assert!(hosts.len() >= 400, "{}", hosts.len());
    for host in hosts {
        for url in
            [format!("https://{host}/hook"), format!("http://{host}"), format!("https://{host}:8443/?q#f")]
        {
            assert_eq!(check_url(&url, &policy(&[])).map(drop), Err(NotPublic), "{url}");
        }
    }
}

#[test]
fn public_addresses_and_names_are_allowed() {
    for host in spellings::public() {
        for url in [format!("https://{host}/hook"), format!("http://{host}:80/")] {
            let checked = check_url(&url, &policy(&[])).unwrap_or_else(|problem| panic!("{url}: {problem}"));
            let address: Option<IpAddr> = match checked.host().unwrap() {
                Host::Domain(_) => None,
                Host::Ipv4(address) => Some(address.into()),
                Host::Ipv6(address) => Some(address.into()),
            };
            assert!(address.is_none_or(is_public), "{url}");
        }
    }
}

#[test]
fn local_names_are_forbidden_also_in_other_letters() {
    for host in spellings::local() {
        let url = format!("https://{host}/");
        assert_eq!(check_url(&url, &policy(&[])).map(drop), Err(LocalName), "{url}");
    }
}

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
fn malformed_texts_are_forbidden() {
    for text in MALFORMED {
        assert_eq!(check_url(text, &policy(&[])).map(drop), Err(NotAUrl), "{text:?}");
    }
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
    let own = DialPolicy { own_addresses: vec!["10.1.2.3:9000".parse().unwrap()], ..policy };
    check(&[("http://10.1.2.3:9000/", Err(OwnAddress)), ("http://10.1.2.3:9001/", Ok(()))], &own);
}

/// The system connects to loopback then.
#[test]
fn unspecified_address_is_forbidden_also_if_everything_is_allowed() {
    let everything = policy(&["0.0.0.0/0", "::/0"]);
    let cases = [
        ("http://0.0.0.0:9000/", Err(NotPublic)),
        ("http://0/", Err(NotPublic)),
        ("http://[::]:9000/", Err(NotPublic)),
        ("http://[::ffff:0.0.0.0]/", Err(NotPublic)),
        ("http://127.0.0.1:9000/", Ok(())),
        ("http://[::1]:9000/", Ok(())),
    ];
    check(&cases, &everything);
}

/// Every spelling of random addresses gets the verdict of the address itself.
#[test]
fn verdict_does_not_depend_on_the_spelling() {
    let mut number = 0x2545_f491_4f6c_dd1d_u64;
    for _ in 0..20_000 {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let address = Ipv4Addr::from_bits((number >> 32) as u32);
        let expected = if is_public(address.into()) { Ok(()) } else { Err(NotPublic) };
        for host in spellings::equivalent(address) {
            let url = format!("https://{host}/");
            assert_eq!(check_url(&url, &policy(&[])).map(drop), expected, "{url}");
        }
    }
}
