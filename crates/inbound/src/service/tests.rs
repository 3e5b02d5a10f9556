//! Tests that are generated from the route table: whatever is served passes the exchange and its checks.

use std::{
    pin::Pin,
    sync::atomic::{AtomicBool, Ordering},
    task::{Context, Poll},
};

use bytes::Bytes;
use engine::{AgentSettings, AuthMethods, Catalog, Clock, Feed, Limits};
use http::{Version, header, request::Parts};
use hyper::body::Frame;
use protocol::{grpc::Service, model::Secret};
use tempfile::TempDir;

use super::*;
use crate::{
    access::{auth::AuthOptions, caller::Caller},
    routes::{self, Access, GrpcService, Methods, Path, Row, TABLE},
};

/// The token of operators.
const ADMIN: &str = "a2ad_admin_token";

/// A server whose agents require a credential, and whose operators have a token.
struct Closed {
    service: HttpService,
    _folder: TempDir,
}

impl Closed {
    fn open() -> Self {
        Self::except(None)
    }

    /// One agent permits everybody.
    fn except(open: Option<&str>) -> Self {
        let auth = AuthOptions { admin_token: Some(Secret::new(ADMIN)), ..AuthOptions::default() };
        Self::with(auth, open)
    }

    fn with(auth: AuthOptions, open: Option<&str>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (feed, clock) = (Feed::default(), Clock::system());
        let options =
            store::SqliteOptions { sync: false, ..store::SqliteOptions::at(folder.path().join("a2ad.db")) };
        let store = Arc::new(store::Sqlite::open(&options, feed.clone(), &clock).unwrap());
        let closed = AgentSettings { auth: AuthMethods::NONE, ..AgentSettings::default() };
        let agents = outbound::agents::demo();
        let agents = agents.into_iter().map(|registered| {
            let is_open = Some(registered.info().id.as_str()) == open;
            if is_open { registered } else { registered.with_settings(closed.clone()) }
        });
        let engine = Engine::start(store, feed, Catalog::new("echo", agents), clock, Limits::default());
        let options = ServerOptions { auth, ..ServerOptions::default() };
        let service = HttpService::new(engine, options, Ready::default());
        Self {
            service: service.bound_to(IpAddr::from([127, 0, 0, 1]), Scheme::Http, RouteSet::All),
            _folder: folder,
        }
    }

    fn requests_of(&self, number: usize) -> u64 {
        let ServiceTarget::Agents(server) = &self.service.served else { panic!("expected agents") };
        server.counters.of(number)
    }

    /// Sends a request. Returns the response, and whether its body was read.
    async fn send(&self, sample: &Sample, change: impl FnOnce(&mut Parts)) -> (Response, bool) {
        let was_read = Arc::new(AtomicBool::new(false));
        let body = Body::new(ObservedBody(Arc::clone(&was_read)));
        let mut req = Request::new(body);
        *req.method_mut() = sample.method.clone();
        *req.uri_mut() = sample.path.parse().unwrap();
        req.headers_mut().insert(header::HOST, HeaderValue::from_static("localhost"));
        if let Some(kind) = sample.content_type {
            req.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        if sample.is_grpc() {
            *req.version_mut() = Version::HTTP_2;
        }
        let (mut head, body) = req.into_parts();
        change(&mut head);
        let response = self.service.clone().handle_request(Request::from_parts(head, body)).await;
        (response, was_read.load(Ordering::Relaxed))
    }
}

/// A body that reports when it is read, and never ends.
struct ObservedBody(Arc<AtomicBool>);

impl hyper::body::Body for ObservedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.store(true, Ordering::Relaxed);
        Poll::Ready(None)
    }
}

/// One request that a row serves.
#[derive(Debug)]
struct Sample {
    number: usize,
    row: &'static Row,
    method: Method,
    path: String,
    content_type: Option<&'static str>,
}

impl Sample {
    fn is_grpc(&self) -> bool {
        matches!(self.row.handler, Handler::Grpc(_))
    }

    fn refuses_credential(&self, response: &Response) -> bool {
        match self.row.handler {
            Handler::Grpc(_) => response.headers()["grpc-status"] == "16",
            _ => response.status() == 401,
        }
    }

    /// Whether the server refuses to check the credential, because it has no secret.
    fn has_no_secret(&self, response: &Response) -> bool {
        self.row.access == Access::Signed && response.status() == 503
    }
}

/// The resources of HTTP+JSON with a method for each operation.
const RESOURCES: [(Method, &str); 12] = [
    (Method::POST, "/message:send"),
    (Method::POST, "/message:stream"),
    (Method::GET, "/tasks"),
    (Method::GET, "/tasks/x"),
    (Method::POST, "/tasks/x:cancel"),
    (Method::POST, "/tasks/x:subscribe"),
    (Method::GET, "/tasks/x:subscribe"),
    (Method::POST, "/tasks/x/pushNotificationConfigs"),
    (Method::GET, "/tasks/x/pushNotificationConfigs"),
    (Method::GET, "/tasks/x/pushNotificationConfigs/y"),
    (Method::DELETE, "/tasks/x/pushNotificationConfigs/y"),
    (Method::GET, "/extendedAgentCard"),
];

/// Requests for every row, and for every resource and method below it.
fn samples() -> Vec<Sample> {
    let rows = TABLE.iter().enumerate().filter(|(_, row)| row.methods != Methods::None);
    rows.flat_map(|(number, row)| {
        let method = match row.methods {
            Methods::Get => Method::GET,
            Methods::Delete => Method::DELETE,
            Methods::Post | Methods::Mcp | Methods::OfResource | Methods::None => Method::POST,
        };
        let content_type = match row.handler {
            Handler::Text => Some("text/plain"),
            Handler::Grpc(_) => Some("application/grpc"),
            _ => None,
        };
        let sample = move |method, path| Sample { number, row, method, path, content_type };
        let below = move |prefix: &str| {
            let paths = ["", "/default"].map(|tenant| format!("{prefix}{tenant}"));
            let paths = if prefix == "/a2a" { vec![prefix.to_owned()] } else { paths.to_vec() };
            paths
                .into_iter()
                .flat_map(|at| RESOURCES.map(|(method, resource)| (method, format!("{at}{resource}"))))
                .chain([
                    (Method::POST, format!("{prefix}/v1/message:send")),
                    (Method::GET, format!("{prefix}/v1/card")),
                    (Method::GET, format!("{prefix}/v1/task/x/pushNotificationConfigs")),
                ])
                .map(|(method, path)| sample(method, path))
                .collect::<Vec<_>>()
        };
        match row.path {
            Path::Is(path) => vec![sample(method, path.to_owned())],
            Path::OfAgent(suffix) => vec![sample(method, format!("/a2a/echo{suffix}"))],
            Path::Below(prefix, _) => vec![sample(method, format!("{prefix}echo"))],
            Path::Action(prefix, _, suffix) => vec![sample(method, format!("{prefix}echo{suffix}"))],
            Path::BelowAgent(prefix) => vec![sample(method, format!("/a2a/echo{prefix}echo"))],
            Path::Resources(prefix) => below(prefix),
            Path::ResourcesOfAgent => below("/a2a/echo"),
            Path::Methods(GrpcService::A2a(service)) => service
                .methods()
                .iter()
                .map(|(name, _)| sample(Method::POST, format!("/{}/{name}", service.name())))
                .collect(),
            Path::Methods(service) => vec![sample(Method::POST, format!("/{}/X", service.name()))],
            Path::Unknown => Vec::new(),
        }
    })
    .collect()
}

#[tokio::test]
async fn every_route_passes_the_exchange_and_decides_the_credential_before_the_body() {
    let server = Closed::open();
    for sample in samples() {
        let before = server.requests_of(sample.number);
        let (response, was_read) = server.send(&sample, |_| ()).await;
        assert_eq!(server.requests_of(sample.number), before + 1, "{sample:?}");
        let is_protected = matches!(sample.row.access, Access::Caller | Access::Operator);
        let is_signed = sample.row.access == Access::Signed;
        assert_eq!(is_protected, sample.refuses_credential(&response), "{sample:?} {response:?}");
        assert_eq!(is_signed, sample.has_no_secret(&response), "{sample:?} {response:?}");
        assert!(!((is_protected || is_signed) && was_read), "{sample:?}");
        // A caller that the application has identified passes; it is no operator.
        let identify = |head: &mut Parts| drop(head.extensions.insert(Caller::new("alice")));
        let (response, was_read) = server.send(&sample, identify).await;
        let is_for_operators = sample.row.access == Access::Operator;
        assert_eq!(is_for_operators, sample.refuses_credential(&response), "{sample:?} {response:?}");
        assert!(!(is_for_operators && was_read), "{sample:?}");
    }
}

/// Sets the credentials of a request.
fn present(credentials: &[(&'static str, String)]) -> impl FnOnce(&mut Parts) {
    move |head| {
        for (name, value) in credentials {
            head.headers.append(*name, value.parse().unwrap());
        }
    }
}

#[tokio::test]
async fn routes_of_operators_require_the_admin_token_before_the_body() {
    let server = Closed::open();
    let bearer = |token: &str| ("authorization", format!("Bearer {token}"));
    let samples: Vec<Sample> =
        samples().into_iter().filter(|sample| sample.row.access == Access::Operator).collect();
    assert_eq!(samples.len(), TABLE.iter().filter(|row| row.access == Access::Operator).count());
    for sample in &samples {
        for refused in [
            vec![bearer("")],
            vec![bearer("other")],
            vec![bearer(&ADMIN[..ADMIN.len() - 1])],
            vec![bearer(&format!("{ADMIN}x"))],
            vec![bearer(&ADMIN.to_uppercase())],
            vec![("authorization", ADMIN.to_owned())],
            vec![("authorization", format!("Basic {ADMIN}"))],
            vec![("x-api-key", ADMIN.to_owned())],
            vec![bearer(ADMIN), bearer(ADMIN)],
            vec![bearer(ADMIN), ("x-api-key", "a2ad_x_y".to_owned())],
        ] {
            let (response, was_read) = server.send(sample, present(&refused)).await;
            assert_eq!((response.status().as_u16(), was_read), (401, false), "{sample:?} {refused:?}");
            assert_eq!(response.headers()[header::WWW_AUTHENTICATE], "Bearer");
            assert_eq!(response.headers()[header::CACHE_CONTROL], "no-store");
        }
        let (response, _) = server.send(sample, present(&[bearer(ADMIN)])).await;
        assert!(!sample.refuses_credential(&response), "{sample:?} {response:?}");
        assert_eq!(response.headers()[header::CACHE_CONTROL], "no-store");
    }
}

#[tokio::test]
async fn routes_of_operators_do_not_exist_without_an_admin_token() {
    let server = Closed::with(AuthOptions::default(), None);
    for sample in samples().into_iter().filter(|sample| sample.row.access == Access::Operator) {
        for method in [sample.method.clone(), Method::PUT] {
            let at = |path: &str| Sample { method: method.clone(), path: path.into(), ..sample };
            let credential = [("authorization", format!("Bearer {ADMIN}"))];
            let (response, was_read) = server.send(&at(&sample.path), present(&credential)).await;
            assert_eq!((response.status().as_u16(), was_read), (404, false), "{method} {sample:?}");
            let (unknown, _) = server.send(&at("/console/api/unknown"), |_| ()).await;
            assert_eq!(text(response).await, text(unknown).await, "{method} {sample:?}");
            assert_eq!(server.requests_of(sample.number), 0);
        }
    }
}

/// The body of a response without its time.
async fn text(response: Response) -> String {
    let bytes = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let text = String::from_utf8(bytes.to_vec()).unwrap();
    text.split("\"timestamp\"").next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn agent_in_grpc_metadata_decides_the_credential_before_the_body() {
    let server = Closed::except(Some("currency"));
    for sample in samples().into_iter().filter(|sample| sample.is_grpc()) {
        let is_call = sample.row.access == Access::Caller;
        let name = |agent: &'static str| {
            move |head: &mut Parts| drop(head.headers.insert("a2a-agent", HeaderValue::from_static(agent)))
        };
        let (response, was_read) = server.send(&sample, name("echo")).await;
        assert_eq!(
            (sample.refuses_credential(&response), was_read && is_call),
            (is_call, false),
            "{sample:?}"
        );
        let (response, was_read) = server.send(&sample, name("currency")).await;
        assert!(!sample.refuses_credential(&response) && (was_read || !is_call), "{sample:?} {response:?}");
    }
}

/// Requests that no row serves: with another method, at another path, at a path that is reserved.
fn unserved() -> Vec<Sample> {
    let row = &TABLE[0];
    let sample = |method, path: &str, content_type| Sample {
        number: 0,
        row,
        method,
        path: path.to_owned(),
        content_type,
    };
    let mut unserved: Vec<Sample> = samples()
        .into_iter()
        .flat_map(|sample| {
            [Method::OPTIONS, Method::HEAD, Method::PUT, Method::DELETE].map(|method| Sample {
                method,
                path: sample.path.clone(),
                ..sample
            })
        })
        .collect();
    for path in [
        "/x",
        "/a2a/mcp",
        "/run",
        "/run/",
        "/a2a/echo/run",
        "/a2a/echo/x/y",
        "/tasks/a/b",
        "/a2a/v1/extendedAgentCard",
    ] {
        unserved.push(sample(Method::GET, path, None));
        unserved.push(sample(Method::POST, path, None));
        unserved.push(sample(Method::POST, path, Some("application/grpc")));
    }
    unserved
}

#[tokio::test]
async fn foreign_host_and_origin_are_refused_where_nothing_is_served() {
    let server = Closed::open();
    for sample in unserved() {
        let is_exempt = |access| sample.row.access == access;
        for (name, value, exempt) in [
            (header::HOST, "evil.test", is_exempt(Access::Probe)),
            (header::ORIGIN, "http://evil.test", is_exempt(Access::Public) && sample.method == Method::HEAD),
        ] {
            let set = |head: &mut Parts| drop(head.headers.insert(&name, value.parse().unwrap()));
            let (response, was_read) = server.send(&sample, set).await;
            assert!(exempt || response.status() == 403, "{sample:?} {name}: {response:?}");
            assert!(!was_read, "{sample:?}");
        }
    }
}

#[tokio::test]
async fn foreign_host_is_refused_on_every_route_but_liveness() {
    let server = Closed::open();
    for sample in samples() {
        for host in ["evil.test", "evil.test:4242", "10.0.0.1"] {
            let name = |head: &mut Parts| drop(head.headers.insert(header::HOST, host.parse().unwrap()));
            let (response, was_read) = server.send(&sample, name).await;
            let is_probe = sample.row.access == Access::Probe;
            assert_eq!(response.status() == 403, !is_probe, "{sample:?} {host}: {response:?}");
            assert!(!was_read, "{sample:?}");
        }
        let omit = |head: &mut Parts| drop(head.headers.remove(header::HOST));
        let (response, was_read) = server.send(&sample, omit).await;
        assert_eq!((response.status().as_u16(), was_read), (400, false), "{sample:?}");
    }
}

#[tokio::test]
async fn foreign_origin_is_refused_on_every_route_but_public_cards() {
    let server = Closed::open();
    for sample in samples() {
        for origin in ["http://evil.test", "null", "http://localhost:1"] {
            let name = |head: &mut Parts| drop(head.headers.insert(header::ORIGIN, origin.parse().unwrap()));
            let (response, was_read) = server.send(&sample, name).await;
            let is_public = sample.row.access == Access::Public;
            assert_eq!(response.status() == 403, !is_public, "{sample:?} {origin}: {response:?}");
            assert!(!was_read, "{sample:?}");
        }
    }
}

#[test]
fn every_handler_and_every_operation_has_a_row() {
    let number = |handler: Handler| match handler {
        Handler::JsonRpc(_) => 0,
        Handler::Rest => 1,
        Handler::Text => 2,
        Handler::Grpc(GrpcService::A2a(_)) => 3,
        Handler::Grpc(GrpcService::Health) => 4,
        Handler::Grpc(GrpcService::Reflection) => 5,
        Handler::Grpc(GrpcService::ReflectionAlpha) => 6,
        Handler::Card(_) => 7,
        Handler::ExtendedCard => 8,
        Handler::HomePage => 9,
        Handler::Liveness => 10,
        Handler::Readiness => 11,
        Handler::Nothing => 12,
        Handler::Run => 13,
        Handler::OpenApi => 14,
        Handler::AgentList => 15,
        Handler::ProcessTask => 16,
        Handler::Operators(_) => 17,
        Handler::Metrics => 18,
        Handler::PublishedKeys => 19,
        Handler::Mcp => 20,
    };
    let served: std::collections::BTreeSet<usize> = TABLE.iter().map(|row| number(row.handler)).collect();
    // MCP is the last one, and a feature.
    assert_eq!(served, (0..=19 + usize::from(cfg!(feature = "mcp"))).collect());
    for (_, kind) in Service::V1.methods() {
        for prefix in ["", "/a2a", "/a2a/echo"] {
            let found = RESOURCES.iter().any(|(method, resource)| {
                let path = format!("{prefix}{resource}");
                let target = routes::find(method, Version::HTTP_11, &path, &http::HeaderMap::new());
                target.row.handler == Handler::Rest && target.operation == Some(*kind)
            });
            assert!(found, "{kind:?} below {prefix:?}");
        }
    }
}
