//! Requests that name a foreign host, and requests of web pages from elsewhere.

use a2ad_inbound::{
    HttpService, MountedHosts, Ready, ServerOptions,
    listen::{self, Caps},
};
use http::Request;
use testkit::{
    http1::{self, Connection},
    http2::{self, full},
};
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::common::{Answer, Server, Setup, channel::Channel, hosts, request, send_params};

const CARD: &str = "/.well-known/agent-card.json";

/// A page that has nothing to do with the server.
const EVIL: &str = "https://evil.test";

/// A page that the server is configured for in some tests.
const APP: &str = "https://app.example";

/// A server on loopback without configured hosts, unless `change` adds some.
async fn open(change: impl FnOnce(&mut ServerOptions)) -> Server {
    let setup = Setup::with(|options| {
        options.allowed_hosts.clear();
        change(options);
    });
    setup.open().await
}

fn allow_app(options: &mut ServerOptions) {
    options.cors_origins = vec![APP.parse().unwrap()];
}

/// Sends a request with these headers, to `localhost:4242` unless they have a host.
async fn ask(server: &Server, line: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let mut head = format!("{line} HTTP/1.1");
    if !headers.iter().any(|header| header.0 == "host") {
        head += "\r\nhost: localhost:4242";
    }
    for (name, value) in headers {
        head += &format!("\r\n{name}: {value}");
    }
    server.exchange(&head, body).await
}

/// Checks that a response is 403 with an error as JSON, which no page of another site may read.
fn check_refused(answer: &Answer, what: &str) {
    assert_eq!(answer.status, 403, "{what}: {}", answer.body);
    assert!(answer.header("content-type").is_some_and(|kind| kind.ends_with("json")), "{what}");
    let is_error = answer.body.starts_with('{') && answer.body.contains("PERMISSION_DENIED");
    assert!(is_error, "{what}: {}", answer.body);
    assert_eq!(answer.header("access-control-allow-origin"), None, "{what}");
}

async fn check_no_task(server: &Server) {
    let list = ask(server, "POST /", &[("a2a-version", "1.0")], &request("ListTasks", "{}")).await;
    assert!(list.body.contains(r#""totalSize":0"#), "{}", list.body);
}

const JSON: &[(&str, &str)] = &[("content-type", "application/json"), ("a2a-version", "1.0")];
const TEXT: &[(&str, &str)] = &[("content-type", "text/plain")];

/// Request line, headers and body.
type Route = (&'static str, &'static [(&'static str, &'static str)], String);

/// A request for each kind of route but cards.
fn every_route() -> [Route; 23] {
    let list = || request("ListTasks", "{}");
    let send = || send_params("hi", "");
    let empty = String::new;
    [
        ("POST /", JSON, list()),
        ("POST /", &[], list()),
        ("POST /a2a", JSON, list()),
        ("POST /a2a/echo", JSON, list()),
        ("POST /a2a/echo", &[], list()),
        ("POST /a2a/echo", TEXT, "hi".into()),
        ("POST /a2a/nobody", JSON, list()),
        ("POST /a2a/rpc", JSON, list()),
        ("POST /tasks/send", JSON, list()),
        ("POST /message:send", JSON, send()),
        ("POST /a2a/echo/message:send", JSON, send()),
        ("POST /a2a/echo/message:stream", JSON, send()),
        ("POST /v1/message:send", JSON, send()),
        ("GET /tasks", &[], empty()),
        ("GET /a2a/echo/tasks", &[], empty()),
        ("DELETE /tasks/t/pushNotificationConfigs/c", &[], empty()),
        ("GET /extendedAgentCard", &[], empty()),
        ("GET /agent/authenticatedExtendedCard", &[], empty()),
        ("GET /", &[], empty()),
        ("GET /readyz", &[], empty()),
        ("GET /nowhere", &[], empty()),
        ("OPTIONS /", &[], empty()),
        ("PUT /healthz/", &[], empty()),
    ]
}

#[tokio::test]
async fn loopback_names_and_configured_hosts_are_served() {
    let server = open(|options| {
        options.public_url = Some("https://agents.example/below".into());
        options.allowed_hosts = hosts(&["tunnel.example"]);
    });
    let server = server.await;
    for host in [
        "localhost",
        "LOCALHOST.:1",
        "127.0.0.1:4242",
        "[::1]:4242",
        "[::ffff:127.0.0.1]",
        "agents.example",
        "Tunnel.Example:99",
    ] {
        assert_eq!(ask(&server, "GET /tasks", &[("host", host)], "").await.status, 200, "{host}");
    }
    check_refused(&ask(&server, "GET /tasks", &[("host", "other.example")], "").await, "other.example");
}

#[tokio::test]
async fn refusal_names_the_host_and_the_key_of_the_configuration() {
    let server = open(|_| {}).await;
    for version in ["1.0", "0.3"] {
        let headers = [("host", "evil.test"), ("a2a-version", version)];
        let body = ask(&server, "POST /", &headers, &request("ListTasks", "{}")).await.body;
        for text in [r#"\"evil.test\""#, "server.allowed_hosts"] {
            assert!(body.contains(text), "{version}: {text} in {body}");
        }
    }
}

/// Sends bytes and reads the response until the server closes the connection.
async fn raw(server: &Server, text: &str) -> String {
    let mut wire = server.connect().await;
    wire.write(text.as_bytes()).await;
    wire.closed().await
}

#[tokio::test]
async fn host_that_is_missing_repeated_or_invalid_is_a_bad_request() {
    let server = open(|_| {}).await;
    for (line, hosts) in [
        ("GET /tasks", ""),
        ("GET /healthz", ""),
        ("GET http://localhost/tasks", ""),
        ("GET /tasks", "host: localhost\r\nhost: localhost\r\n"),
        ("GET /tasks", "host: localhost\r\nHost: evil.test\r\n"),
        ("GET /healthz", "host: localhost\r\nhost: localhost\r\n"),
        ("GET /tasks", "host:\r\n"),
        ("GET /tasks", "host: user@localhost\r\n"),
        ("GET /tasks", "host: localhost/\r\n"),
        ("GET /tasks", "host: localhost?\r\n"),
        ("GET /tasks", "host: localhost#\r\n"),
        ("GET /tasks", "host: localhost, evil.test\r\n"),
        ("GET /tasks", "host: ::1\r\n"),
        ("GET /tasks", "host: löcalhost\r\n"),
        ("GET http://user@localhost/tasks", "host: localhost\r\n"),
    ] {
        let answer = raw(&server, &format!("{line} HTTP/1.1\r\nconnection: close\r\n{hosts}\r\n")).await;
        assert!(answer.starts_with("HTTP/1.1 400 "), "{line} {hosts:?}: {answer}");
    }
    // HTTP/1.0 has no `Host`, and some load balancers use it.
    assert!(raw(&server, "GET /healthz HTTP/1.0\r\n\r\n").await.starts_with("HTTP/1.0 200 "));
    assert!(raw(&server, "GET /tasks HTTP/1.0\r\n\r\n").await.starts_with("HTTP/1.0 400 "));
}

#[tokio::test]
async fn target_in_absolute_form_and_host_are_both_checked() {
    let server = open(|_| {}).await;
    for (target, host, status) in [
        ("http://localhost:4242/tasks", "localhost:4242", 200),
        ("http://127.0.0.1:1/tasks", "localhost:4242", 200),
        ("http://evil.test/tasks", "localhost:4242", 403),
        ("http://localhost:4242/tasks", "evil.test", 403),
        ("http://evil.test/healthz", "evil.test", 200),
    ] {
        let answer = ask(&server, &format!("GET {target}"), &[("host", host)], "").await;
        assert_eq!(answer.status, status, "{target} {host}: {}", answer.body);
    }
}

/// The first byte of the response head to a request of HTTP/2 whose header block is `fields`. Names and values that
/// HPACK has in its static table are one byte.
async fn http2_status(server: &Server, fields: &[u8]) -> u8 {
    const HEADERS: u8 = 1;
    const FRAME_HEAD: usize = 9;
    let mut connection = Connection::open(server.address).await.unwrap();
    let length = u8::try_from(fields.len()).unwrap();
    let settings = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    let head = [0, 0, length, HEADERS, 0x05, 0, 0, 0, 1];
    let bytes = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &settings, &head, fields].concat();
    connection.write(&bytes).await.unwrap();
    let mut received = Vec::new();
    loop {
        let more = connection.read_some(1 << 10).await.unwrap().expect("the connection is open");
        received.extend_from_slice(&more);
        while received.len() > FRAME_HEAD {
            let length = usize::from(u16::from_be_bytes([received[1], received[2]]));
            if received[3] == HEADERS {
                return received[FRAME_HEAD];
            }
            if received.len() < FRAME_HEAD + length {
                break;
            }
            received.drain(..FRAME_HEAD + length);
        }
    }
}

#[tokio::test]
async fn http2_without_authority_and_host_is_a_bad_request() {
    const STATUS_200: u8 = 0x88;
    const STATUS_400: u8 = 0x8c;
    let server = open(|_| {}).await;
    // `:method: GET`, `:scheme: http`, `:path: /`
    let request = [0x82, 0x86, 0x84];
    assert_eq!(http2_status(&server, &request).await, STATUS_400);
    // `host: localhost`, with the name as entry 38 of the static table.
    let host = [&request[..], &[0x0f, 0x17, 9], b"localhost"].concat();
    assert_eq!(http2_status(&server, &host).await, STATUS_200);
    // `:authority: localhost`, entry 1.
    let authority = [&request[..], &[0x01, 9], b"localhost"].concat();
    assert_eq!(http2_status(&server, &authority).await, STATUS_200);
}

#[tokio::test]
async fn http2_checks_authority_and_origin() {
    let server = open(allow_app).await;
    let channel = http2::Channel::open(server.address).await.unwrap();
    let list = || full(request("ListTasks", "{}"));
    for (uri, header, status) in [
        (channel.uri("/"), None, 200),
        (channel.uri("/"), Some(("origin", EVIL)), 403),
        (channel.uri("/"), Some(("origin", APP)), 200),
        ("http://evil.test/".to_owned(), None, 403),
        (channel.uri("/"), Some(("host", "localhost:2")), 200),
        (channel.uri("/"), Some(("host", "evil.test")), 403),
    ] {
        let mut request = Request::post(&uri);
        if let Some((name, value)) = header {
            request = request.header(name, value);
        }
        let response = channel.request(request.body(list()).unwrap()).await.unwrap();
        assert_eq!(response.status, status, "{uri} {header:?}");
    }
}

#[tokio::test]
async fn grpc_with_foreign_authority_or_origin_is_permission_denied() {
    const LIST: &str = "/lf.a2a.v1.A2AService/ListTasks";
    let server = open(|_| {}).await;
    let channel = Channel::open(&server).await;
    let mut foreign_host = channel.request(LIST, &[], "");
    *foreign_host.uri_mut() = format!("http://evil.test{LIST}").parse().unwrap();
    let foreign_origin = channel.request(LIST, &[("origin", EVIL)], "");
    for (request, key) in [(foreign_host, "server.allowed_hosts"), (foreign_origin, "server.cors_origins")] {
        let outcome = channel.send(request).await.whole().await;
        assert_eq!((outcome.http, outcome.status.code), (403, 7), "{:?}", outcome.status);
        assert!(outcome.status.message.contains(key), "{}", outcome.status.message);
    }
}

/// A page may send plain text without a preflight.
#[tokio::test]
async fn plain_text_of_a_foreign_page_runs_no_agent() {
    let server = open(|_| {}).await;
    for origin in [EVIL, "null", "http://localhost", "http://localhost:3000", "http://127.0.0.1:4242"] {
        let headers = [("content-type", "text/plain"), ("origin", origin)];
        check_refused(&ask(&server, "POST /a2a/echo", &headers, "hi").await, origin);
    }
    check_no_task(&server).await;
}

/// So may it send a body without a content type.
#[tokio::test]
async fn json_rpc_of_a_foreign_page_runs_no_agent_without_content_type() {
    let server = open(|_| {}).await;
    let send = request("SendMessage", &send_params("hi", ""));
    for path in ["/", "/a2a", "/a2a/echo", "/a2a/rpc", "/tasks/send"] {
        let answer = ask(&server, &format!("POST {path}"), &[("origin", EVIL)], &send).await;
        check_refused(&answer, path);
        assert!(answer.body.contains("server.cors_origins"), "{}", answer.body);
    }
    check_no_task(&server).await;
}

/// The host, the origin, and what a browser says of a page that embeds a URL, for example as an image.
#[tokio::test]
async fn foreign_requests_are_refused_on_every_route_but_cards() {
    let server = open(allow_app).await;
    let foreign = [("host", "evil.test"), ("host", "evil.test:4242"), ("host", "localhost.evil.test")];
    let foreign =
        foreign.into_iter().chain([("host", "127.1:4242"), ("host", "0.0.0.0:4242"), ("origin", EVIL)]);
    let sites = ["cross-site", "same-site"].map(|site| ("sec-fetch-site", site));
    for header in foreign.chain(sites) {
        let (name, _) = header;
        let given = [header, ("sec-fetch-dest", "image")];
        let given = if name == "sec-fetch-site" { &given[..] } else { &given[..1] };
        for (line, headers, body) in every_route() {
            let answer = ask(&server, line, &[headers, given].concat(), &body).await;
            check_refused(&answer, &format!("{header:?} {line}"));
            assert!(name != "sec-fetch-site" || answer.body.contains("Sec-Fetch-Site: "), "{}", answer.body);
        }
        for card in [CARD, "/.well-known/agent.json", "/a2a/echo/.well-known/agent-card.json"] {
            let answer = ask(&server, &format!("GET {card}"), given, "").await;
            if name == "host" {
                check_refused(&answer, card)
            } else {
                assert_eq!(answer.status, 200, "{card}")
            }
        }
        let healthz = ask(&server, "GET /healthz", given, "").await;
        match name {
            "host" => assert_eq!(healthz.status, 200),
            "origin" => check_refused(&healthz, "healthz"),
            _ => {}
        }
    }
    for site in ["cross-site", "same-site"] {
        let link = [("sec-fetch-site", site), ("sec-fetch-dest", "document")];
        assert_eq!(ask(&server, "GET /", &link, "").await.status, 200);
    }
    for site in ["same-origin", "none"] {
        let own = [("sec-fetch-site", site), ("sec-fetch-dest", "empty")];
        assert_eq!(ask(&server, "GET /tasks", &own, "").await.status, 200);
    }
    let preflight = [("origin", EVIL), ("access-control-request-method", "POST")];
    check_refused(&ask(&server, "OPTIONS /", &preflight, "").await, "preflight");
    let twice = [("origin", APP), ("origin", EVIL)];
    check_refused(&ask(&server, "GET /tasks", &twice, "").await, "two origins");
    check_no_task(&server).await;
}

#[tokio::test]
async fn cards_are_readable_from_any_origin() {
    let server = open(|_| {}).await;
    for path in [CARD, "/.well-known/agent.json", "/a2a/echo/.well-known/agent-card.json"] {
        for origin in [EVIL, "null"] {
            let card = ask(&server, &format!("GET {path}"), &[("origin", origin)], "").await;
            assert_eq!(card.status, 200, "{path}: {}", card.body);
            assert_eq!(card.header("access-control-allow-origin"), Some("*"), "{path}");
        }
        // A page that names its version has to ask first.
        let preflight = [
            ("origin", EVIL),
            ("access-control-request-method", "GET"),
            ("access-control-request-headers", "a2a-version"),
        ];
        let permitted = ask(&server, &format!("OPTIONS {path}"), &preflight, "").await;
        assert_eq!((permitted.status, permitted.header("access-control-allow-origin")), (204, Some("*")));
        let headers = permitted.header("access-control-allow-headers").unwrap();
        assert!(headers.contains("A2A-Version"), "{headers}");
        let posted = ask(&server, &format!("POST {path}"), &[("origin", EVIL)], "{}").await;
        check_refused(&posted, path);
    }
}

#[tokio::test]
async fn own_pages_may_call() {
    let server = open(|options| options.public_url = Some("https://agents.example".into())).await;
    for (host, origin) in [
        ("localhost:4242", "http://localhost:4242"),
        ("[::1]:4242", "http://[::1]:4242"),
        ("127.0.0.1:4242", "https://agents.example"),
        ("agents.example", "https://agents.example"),
    ] {
        let headers = [("host", host), ("origin", origin), ("a2a-version", "1.0")];
        let answer = ask(&server, "POST /", &headers, &request("ListTasks", "{}")).await;
        assert_eq!(answer.status, 200, "{host} {origin}: {}", answer.body);
        assert_eq!(answer.header("access-control-allow-origin"), None, "no permission is needed");
    }
}

#[tokio::test]
async fn configured_origin_may_call_after_a_preflight() {
    let server = open(allow_app).await;
    let preflight = [
        ("origin", APP),
        ("access-control-request-method", "POST"),
        ("access-control-request-headers", "content-type,a2a-version"),
    ];
    for path in ["/", "/a2a/echo", "/tasks/t/pushNotificationConfigs/c"] {
        let permitted = ask(&server, &format!("OPTIONS {path}"), &preflight, "").await;
        assert_eq!((permitted.status, permitted.body.as_str()), (204, ""), "{path}");
        assert_eq!(permitted.header("access-control-allow-origin"), Some(APP));
        assert_eq!(permitted.header("vary"), Some("Origin"));
        assert_eq!(permitted.header("access-control-max-age"), Some("600"));
        assert_eq!(permitted.header("access-control-allow-credentials"), None);
        for (name, values) in [
            ("access-control-allow-methods", &["GET", "POST", "DELETE"][..]),
            (
                "access-control-allow-headers",
                &[
                    "Content-Type",
                    "Authorization",
                    "A2A-Version",
                    "A2A-Extensions",
                    "Last-Event-ID",
                    "Idempotency-Key",
                    "X-Api-Key",
                ],
            ),
        ] {
            let listed: Vec<&str> = permitted.header(name).unwrap().split(", ").collect();
            assert!(values.iter().all(|value| listed.contains(value)), "{name}: {listed:?}");
        }
    }
    // Without the question it is an ordinary request, for a method that the path does not have.
    assert_eq!(ask(&server, "OPTIONS /", &[("origin", APP)], "").await.status, 405);
}

#[tokio::test]
async fn responses_to_a_configured_origin_name_it() {
    let server = open(allow_app).await;
    let json = [("origin", APP), ("content-type", "application/json"), ("a2a-version", "1.0")];
    let text = [("origin", APP), ("content-type", "text/plain")];
    let stream = request("SendStreamingMessage", &send_params("hi", ""));
    for (line, headers, body, status) in [
        ("POST /", &json[..], request("ListTasks", "{}"), 200),
        ("POST /", &json, stream, 200),
        ("POST /", &json, "{".to_owned(), 200),
        ("POST /a2a/echo", &text, "hi".to_owned(), 200),
        ("GET /tasks", &json, String::new(), 200),
        ("GET /tasks/unknown", &json, String::new(), 404),
        ("GET /nowhere", &json, String::new(), 404),
    ] {
        let answer = ask(&server, line, headers, &body).await;
        assert_eq!(answer.status, status, "{line}: {}", answer.body);
        assert_eq!(answer.header("access-control-allow-origin"), Some(APP), "{line}");
        assert_eq!(answer.header("vary"), Some("Origin"), "{line}");
        let exposed = answer.header("access-control-expose-headers").unwrap();
        for name in [
            "A2AD-Dialect",
            "A2AD-Replayed",
            "A2AD-Task",
            "A2AD-State",
            "Retry-After",
            "ETag",
            "WWW-Authenticate",
        ] {
            assert!(exposed.contains(name), "{line}: {exposed}");
        }
    }
    // A card is for everybody, so it does not vary.
    let card = ask(&server, &format!("GET {CARD}"), &json[..1], "").await;
    assert_eq!(card.header("access-control-allow-origin"), Some("*"));
    assert_eq!(card.header("vary"), Some("A2A-Version"));
    // Clients that are no pages get no such headers.
    let plain = ask(&server, "GET /tasks", &[], "").await;
    assert_eq!((plain.header("access-control-allow-origin"), plain.header("vary")), (None, None));
}

/// Serves the router inside an application and gets `/tasks` with this host.
async fn mounted_status(server: &Server, options: ServerOptions, headers: &[(&str, &str)]) -> u16 {
    let service = HttpService::new(server.engine.clone(), options, Ready::default());
    let app = axum::Router::new().fallback_service(service.router());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (tasks, drain) = (TaskTracker::new(), CancellationToken::new());
    tasks.spawn(listen::serve(listener, app, Caps::default(), drain.clone()));
    let status = http1::request(address, "GET", "/tasks", headers, b"").await.unwrap().status;
    drain.cancel();
    status
}

#[tokio::test]
async fn mounted_router_accepts_loopback_names_unless_hosts_are_configured() {
    let server = open(|_| {}).await;
    let none = || ServerOptions::default();
    assert_eq!(mounted_status(&server, none(), &[]).await, 200, "the address is a loopback address");
    assert_eq!(mounted_status(&server, none(), &[("host", "evil.test")]).await, 403);
    let any = || ServerOptions { mounted_hosts: MountedHosts::Any, ..none() };
    assert_eq!(mounted_status(&server, any(), &[("host", "evil.test")]).await, 200);
    let allowed = ServerOptions { allowed_hosts: hosts(&["app.example"]), ..none() };
    let public = ServerOptions { public_url: Some("https://app.example/agents".into()), ..none() };
    for options in [allowed, public] {
        assert_eq!(mounted_status(&server, options.clone(), &[("host", "app.example")]).await, 200);
        assert_eq!(mounted_status(&server, options.clone(), &[("host", "evil.test")]).await, 403);
        assert_eq!(mounted_status(&server, options, &[]).await, 403, "the address is not configured");
    }
    let foreign_page = [("host", "app.example"), ("origin", EVIL)];
    assert_eq!(mounted_status(&server, any(), &foreign_page).await, 403);
}
