//! The forms of agent cards by path and requested version.

use std::time::Duration;

use a2ad_inbound::{AcceptedVersions, AgentSettings, CardShape, IpNet, Profile};

use crate::common::{
    Answer, NOW, Server, Setup,
    generation::{Generation, UserMessage},
    hosts, member, request,
};

const PATHS: [&str; 4] = [
    "/.well-known/agent-card.json",
    "/a2a/echo/.well-known/agent-card.json",
    "/.well-known/agent.json",
    "/a2a/echo/.well-known/agent.json",
];

async fn get(server: &Server, path: &str, version: Option<&str>) -> Answer {
    let version = version.map_or(String::new(), |version| format!("\r\nA2A-Version: {version}"));
    server.exchange(&format!("GET {path} HTTP/1.1{version}"), "").await
}

const SKILL: &str = r#"{"id":"echo","name":"Echo","description":"Gives back what it is given","tags":["demo"],"examples":["hello","hold on"]}"#;
const MODES: &str = r#"["text/plain","application/json","*/*"]"#;

/// The card of `echo` in a form, with a url.
fn card(shape: &str, url: &str) -> String {
    let base = url.trim_end_matches('/');
    let interface = |(url, binding, version): (&str, &str, &str)| {
        format!(r#"{{"url":"{url}","protocolBinding":"{binding}","protocolVersion":"{version}"}}"#)
    };
    let interfaces = [
        (url, "JSONRPC", "1.0"),
        (base, "HTTP+JSON", "1.0"),
        ("example.test:80", "GRPC", "1.0"),
        (url, "JSONRPC", "0.3"),
        (base, "HTTP+JSON", "0.3"),
        ("example.test:80", "GRPC", "0.3"),
        (url, "JSONRPC", "0.1"),
    ];
    let interfaces = interfaces.map(interface).join(",");
    let name = r#""name":"Echo","description":"Gives back what it is given""#;
    let version = format!(r#""version":"{}""#, env!("CARGO_PKG_VERSION"));
    let flags = r#""streaming":true,"pushNotifications":false"#;
    let rest = format!(r#""defaultInputModes":{MODES},"defaultOutputModes":{MODES},"skills":[{SKILL}]"#);
    let others = format!(
        r#"{{"url":"{base}","transport":"HTTP+JSON"}},{{"url":"example.test:80","transport":"GRPC"}}"#
    );
    let at = format!(
        r#""url":"{url}","preferredTransport":"JSONRPC","additionalInterfaces":[{others}],"protocolVersion":"0.3.0""#
    );
    match shape {
        "v1" => format!(
            r#"{{{name},"supportedInterfaces":[{interfaces}],{version},"capabilities":{{{flags},"extendedAgentCard":false}},{rest}}}"#
        ),
        "merged" => format!(
            r#"{{{name},"supportedInterfaces":[{interfaces}],{version},"capabilities":{{{flags},"extendedAgentCard":false,"stateTransitionHistory":false}},{rest},{at},"supportsAuthenticatedExtendedCard":false}}"#
        ),
        "v03" => format!(
            r#"{{{name},{at},{version},"capabilities":{{{flags},"stateTransitionHistory":false}},{rest},"supportsAuthenticatedExtendedCard":false}}"#
        ),
        "draft" => format!(
            r#"{{{name},{at},{version},"capabilities":{{{flags},"stateTransitionHistory":false}},"authentication":{{"schemes":[]}},{rest},"supportsAuthenticatedExtendedCard":false}}"#
        ),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn card_has_the_form_of_the_requested_version() {
    for (style, usual) in [(CardShape::Merged, "merged"), (CardShape::V1, "v1"), (CardShape::V03, "v03")] {
        let server = Setup::with(|options| options.card.shape = style).open().await;
        for path in PATHS {
            let url = if path.starts_with("/a2a/") { "/a2a/echo" } else { "/" };
            let newer = path.ends_with("agent-card.json");
            for (version, shape) in [
                (None, usual),
                (Some(""), usual),
                (Some("1.0"), "v1"),
                (Some("1"), "v1"),
                (Some("0.3"), "v03"),
                (Some("0.2.6"), "v03"),
                (Some("0.1"), "draft"),
            ] {
                // The older path has only one form.
                let shape = if newer { shape } else { "draft" };
                let answer = get(&server, path, version).await;
                assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
                let expected = card(shape, &format!("http://example.test{url}"));
                assert_eq!(answer.body, expected, "{style:?} {path} {version:?}");
                assert_eq!(answer.header("vary"), Some("A2A-Version"), "{path}");
                assert_eq!(answer.header("access-control-allow-origin"), Some("*"), "{path}");
                assert_eq!(answer.header("access-control-allow-credentials"), None, "{path}");
            }
            let unknown = get(&server, path, Some("9")).await;
            assert_eq!(unknown.header("a2ad-dialect"), Some("1.0;profile=neutral"));
            assert!(unknown.body.contains(r#""code":-32009"#), "{path}: {}", unknown.body);
            assert!(unknown.body.contains(r#""supportedVersions":"1.0, 0.3, 0.1""#), "{}", unknown.body);
        }
    }
}

#[tokio::test]
async fn card_version_may_be_a_query_parameter() {
    let server = Server::open().await;
    let answer = server.get("/.well-known/agent-card.json?A2A-Version=0.3").await;
    assert_eq!(answer.body, card("v03", "http://example.test/"));
}

#[tokio::test]
async fn each_card_form_has_its_own_etag() {
    let server = Setup::with(|options| options.card.max_age = Duration::from_secs(7)).open().await;
    let mut tags = Vec::new();
    for path in PATHS {
        for version in ["", "1.0", "0.3", "0.1"] {
            let whole = get(&server, path, Some(version)).await;
            let tag = whole.header("etag").unwrap().to_owned();
            assert_eq!(whole.header("cache-control"), Some("private, max-age=7"));
            assert_eq!(whole.header("last-modified"), Some("Fri, 02 Jan 2026 03:04:05 GMT"), "as of {NOW}");
            let head = format!("GET {path} HTTP/1.1\r\na2a-version: {version}\r\nif-none-match: {tag}");
            let known = server.exchange(&head, "").await;
            assert_eq!((known.status, known.body.as_str()), (304, ""), "{path} {version}");
            for name in ["etag", "cache-control", "last-modified", "vary", "access-control-allow-origin"] {
                assert_eq!(known.header(name), whole.header(name), "{path} {version} {name}");
            }
            tags.push((tag, whole.body));
        }
    }
    // Two cards have the same tag exactly if their bytes are equal.
    for (tag, body) in &tags {
        assert!(tags.iter().all(|(other, bytes)| (tag == other) == (body == bytes)));
    }
    // A tag of one form does not match another.
    let merged = get(&server, PATHS[0], None).await;
    let head = format!(
        "GET {} HTTP/1.1\r\na2a-version: 1.0\r\nif-none-match: {}",
        PATHS[0],
        merged.header("etag").unwrap()
    );
    assert_eq!(server.exchange(&head, "").await.status, 200);
}

#[tokio::test]
async fn card_lists_only_accepted_versions() {
    let all = AcceptedVersions::default();
    let of = |accepted_versions: AcceptedVersions| {
        Setup::with(|options| options.accepted_versions = accepted_versions).open()
    };
    // Which of the two file names is served, and the versions that the card lists.
    let cases = [
        (AcceptedVersions { draft: false, v03: false, ..all }, [true, false], vec!["1.0"]),
        (AcceptedVersions { draft: false, ..all }, [true, true], vec!["1.0", "0.3"]),
        (AcceptedVersions { v03: false, ..all }, [true, true], vec!["1.0", "0.1"]),
    ];
    for (accepted_versions, there, versions) in cases {
        let server = of(accepted_versions).await;
        for (path, there) in [PATHS[0], PATHS[2]].into_iter().zip(there) {
            let card = get(&server, path, None).await;
            assert_eq!(
                card.status,
                if there { 200 } else { 404 },
                "{accepted_versions:?} {path}: {}",
                card.body
            );
            if !there {
                assert!(card.body.contains(r#""code":-32011"#), "{}", card.body);
            }
        }
        let card = get(&server, PATHS[0], Some("1.0")).await.body;
        assert_eq!(listed(&card), versions, "{accepted_versions:?}");
    }
    // Without 0.3 the merged form is that of 1.0, and there is no card for 0.3.
    let server = of(AcceptedVersions { v03: false, ..all }).await;
    let merged = get(&server, PATHS[0], None).await.body;
    assert!(!merged.contains("preferredTransport"), "{merged}");
    assert_ne!(get(&server, PATHS[0], Some("0.3")).await.status, 200);
    // If only the draft is accepted, its card has no field of later generations.
    let server = of(AcceptedVersions { v03: false, v1: false, ..all }).await;
    let card = get(&server, PATHS[2], None).await;
    assert_eq!(member(&card.body, "url"), "http://example.test/");
    for later in ["preferredTransport", "protocolVersion", "securitySchemes", "supportedInterfaces"] {
        assert!(!card.body.contains(later), "{later} in {}", card.body);
    }
    // Without 1.0 the newer path serves the card of 0.3.
    let server = of(AcceptedVersions { v1: false, ..all }).await;
    let card = get(&server, PATHS[0], None).await;
    assert!(card.body.contains(r#""protocolVersion":"0.3.0""#) && !card.body.contains("supportedInterfaces"));
    // Clients of 1.0 still get a card in their form, which lists the other versions.
    let card = get(&server, PATHS[0], Some("1.0")).await;
    assert_eq!((card.status, listed(&card.body)), (200, vec!["0.3", "0.1"]));
}

/// The versions that a card of 1.0 lists.
fn listed(card: &str) -> Vec<&str> {
    let after = |(at, key): (usize, &str)| &card[at + key.len()..][..3];
    let versions = card.match_indices(r#""protocolVersion":""#).map(|(at, key)| after((at, key)));
    let mut versions: Vec<&str> = versions.collect();
    versions.dedup();
    versions
}

#[tokio::test]
async fn card_of_unknown_version_is_a_bad_request() {
    let server = Server::open().await;
    for path in PATHS {
        let answer = get(&server, path, Some("9")).await;
        assert_eq!((answer.status, answer.header("content-type")), (400, Some("application/json")), "{path}");
    }
}

#[tokio::test]
async fn missing_card_form_is_not_found_and_varies_by_version() {
    let accepted_versions = AcceptedVersions { v03: false, ..AcceptedVersions::default() };
    let server = Setup::with(|options| options.accepted_versions = accepted_versions).open().await;
    let answer = get(&server, PATHS[0], Some("0.3")).await;
    assert_eq!(answer.status, 404);
    assert_eq!(answer.header("vary"), Some("A2A-Version"));
}

/// The `url` of a card.
async fn url(server: &Server, path: &str, more: &str) -> String {
    let card = server.exchange(&format!("GET {path} HTTP/1.1{more}"), "").await;
    assert_eq!(card.status, 200, "{}", card.body);
    member(&card.body, "url")
}

#[tokio::test]
async fn public_url_overrides_host_and_forwarding_headers() {
    let server = Setup::with(|options| {
        options.public_url = Some("https://agents.example".into());
        options.trusted_proxies = vec![loopback()];
        options.allowed_hosts = hosts(&["inner"]);
    });
    let server = server.open().await;
    let headers = "\r\nhost: inner:1\r\nx-forwarded-host: evil.test\r\nx-forwarded-proto: http\r\nforwarded: host=evil.test";
    for (path, url_path) in
        [(PATHS[0], "/"), (PATHS[1], "/a2a/echo"), (PATHS[2], "/"), (PATHS[3], "/a2a/echo")]
    {
        assert_eq!(url(&server, path, headers).await, format!("https://agents.example{url_path}"));
    }
}

fn loopback() -> IpNet {
    "127.0.0.0/8".parse().unwrap()
}

#[tokio::test]
async fn forwarding_headers_are_used_only_from_trusted_proxies() {
    let cases = [
        ("\r\nhost: inner:1\r\nx-forwarded-host: out.test\r\nx-forwarded-proto: https", "https://out.test/"),
        ("\r\nhost: inner:1\r\nx-forwarded-proto: https", "https://inner:1/"),
        ("\r\nhost: inner:1\r\nx-forwarded-host: out.test:8443", "http://out.test:8443/"),
        (
            "\r\nhost: inner:1\r\nforwarded: for=1.2.3.4;proto=https;host=\"out.test:1\"",
            "https://out.test:1/",
        ),
        ("\r\nhost: inner:1\r\nx-forwarded-host: first.test, second.test", "http://second.test/"),
        ("\r\nhost: inner:1\r\nx-forwarded-host: out.test, 127.0.0.9:1", "http://out.test/"),
        (
            "\r\nhost: inner:1\r\nforwarded: host=evil.test, for=1.2.3.4;host=out.test, for=127.0.0.9",
            "http://out.test/",
        ),
        (
            "\r\nhost: inner:1\r\nforwarded: host=evil.test;proto=https\r\nx-forwarded-for: 1.2.3.4",
            "http://inner:1/",
        ),
        ("\r\nhost: inner:1\r\nx-forwarded-proto: gopher", "http://inner:1/"),
        ("\r\nhost: inner:1\r\nx-forwarded-host: evil/path", "http://localhost/"),
        ("\r\nhost: inner:1", "http://inner:1/"),
    ];
    let with_proxies = async |trusted_proxies: Vec<IpNet>| {
        let setup = Setup::with(|options| {
            options.trusted_proxies = trusted_proxies;
            options.allowed_hosts = hosts(&["inner"]);
        });
        setup.open().await
    };
    let trusting = with_proxies(vec![loopback()]).await;
    let wary = with_proxies(vec!["10.0.0.0/8".parse().unwrap()]).await;
    let alone = with_proxies(Vec::new()).await;
    for (headers, expected) in cases {
        assert_eq!(url(&trusting, PATHS[0], headers).await, expected, "{headers}");
        assert_eq!(url(&wary, PATHS[0], headers).await, "http://inner:1/", "{headers}");
        assert_eq!(url(&alone, PATHS[0], headers).await, "http://inner:1/", "{headers}");
    }
}

#[tokio::test]
async fn card_url_follows_the_profile() {
    let cases = [
        (Profile::neutral(), ["/", "/a2a/echo", "/a2a/approver"]),
        (Profile::agentos(), ["/a2a/echo", "/a2a/echo", "/a2a/approver"]),
        (Profile::pinkfish(), ["/a2a/echo", "/a2a/echo", "/a2a/approver"]),
        (Profile::fold(), ["", "", "/a2a/approver"]),
        (Profile::agent_native(), ["", "", "/a2a/approver"]),
    ];
    for (profile, expected) in cases {
        let name = profile.name;
        let mut setup = Setup::default();
        for agent in ["echo", "approver"] {
            let settings = AgentSettings { profile: profile.clone(), ..AgentSettings::default() };
            setup.options.agents.insert(agent.into(), settings);
        }
        let server = setup.open().await;
        // The listed addresses accept calls.
        for expected in expected {
            let path = if expected.is_empty() { "/" } else { expected };
            let answer = server
                .post(path, &request("message/send", &Generation::V03.send_params(UserMessage::new("hi"))))
                .await;
            assert!(answer.body.contains("\"result\""), "{name} {path}: {}", answer.body);
        }
        for file in ["agent-card.json", "agent.json"] {
            let paths = ["", "/a2a/echo", "/a2a/approver"];
            for (base, expected) in paths.into_iter().zip(expected) {
                let path = format!("{base}/.well-known/{file}");
                assert_eq!(
                    url(&server, &path, "").await,
                    format!("http://example.test{expected}"),
                    "{name} {path}"
                );
            }
        }
    }
}
