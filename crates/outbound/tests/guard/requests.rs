//! What is sent on a connection to a peer's URL, and what is not done with the response.

use std::{
    net::{IpAddr, Ipv6Addr, SocketAddr},
    sync::Arc,
};

use a2ad_outbound::dial::{
    DialPolicy, Dialer, FetchLimits,
    UrlSource::{Operator, Peer},
};
use client::{Client, ClientOptions, Error};
use http::{Request, Response};
use http_body_util::Full;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::{ClientConfig, RootCertStore, ServerConfig, crypto::aws_lc_rs, pki_types::PrivatePkcs8KeyDer};
use tokio::{net::TcpListener, sync::watch, task::JoinSet, time::Duration};

use super::{
    listeners::{Listeners, Seen, get, kind, respond},
    name_server::NameServer,
    namespace,
};

const PUBLIC: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(93, 184, 215, 14));

#[test]
fn responses_cause_no_further_requests_and_leave_no_state() {
    namespace::run("requests::responses_cause_no_further_requests_and_leave_no_state", async || {
        let _names = NameServer::start().await;
        let listeners = Listeners::start().await;
        let policy = DialPolicy { allow_http: true, ..DialPolicy::default() };
        let dialer = Dialer::builder().policy(policy).build();
        let (status, _) = get(&dialer, "http://public.example/redirect", Peer).await.unwrap();
        assert_eq!(status, 302);
        for _ in 0..2 {
            // The content is marked as compressed, which it is not: it arrives as it was sent.
            let (status, body) = get(&dialer, "http://public.example/a?b=c", Peer).await.unwrap();
            assert_eq!((status.as_u16(), &body[..]), (200, &b"ok"[..]));
        }
        let seen = listeners.seen().await;
        // Neither the address of the redirect nor that of the proxy.
        assert_eq!(seen.connections, [SocketAddr::new(PUBLIC, 80)]);
        assert_eq!(seen.requests[1], "GET /a?b=c HTTP/1.1\r\nhost: public.example");
        assert_eq!(seen.requests[2], seen.requests[1]);
    });
}

#[test]
fn a_client_calls_only_allowed_addresses() {
    namespace::run("requests::a_client_calls_only_allowed_addresses", async || {
        let _names = NameServer::start().await;
        let listeners = Listeners::start().await;
        let policy = DialPolicy { allow_http: true, ..DialPolicy::default() };
        let dialer = Dialer::builder().policy(policy).build();
        let call = async |url: &str, source| {
            let options = ClientOptions::default().with_transport(dialer.transport(source));
            Client::connect_with(url, options).unwrap().get_task("t-1").await.unwrap_err()
        };
        let error = call("http://169.254.169.254/rpc", Peer).await;
        assert_eq!(
            error.to_string(),
            "requests to http://169.254.169.254 are not allowed: its address is not public"
        );
        assert!(!error.is_retryable());
        assert!(listeners.seen().await.connections.is_empty());
        // The listeners are not agents.
        for (url, source) in [("http://169.254.169.254/rpc", Operator), ("http://public.example/rpc", Peer)] {
            let error = call(url, source).await;
            assert!(matches!(error, Error::Malformed(_)), "{url}: {error}");
        }
        let seen = listeners.seen().await;
        assert_eq!(seen.connections.len(), 2);
        assert!(
            seen.requests.iter().all(|request| request.starts_with("POST /rpc HTTP/1.1\r\n")),
            "{seen:?}"
        );
    });
}

#[test]
fn fetch_is_limited_in_size_and_time() {
    namespace::run("requests::fetch_is_limited_in_size_and_time", async || {
        let _names = NameServer::start().await;
        let _listeners = Listeners::start().await;
        let policy = DialPolicy { allow_http: true, ..DialPolicy::default() };
        let dialer = Dialer::builder().policy(policy).build();
        let fetch = async |path: &str, body, time| {
            let request = Request::get(format!("http://public.example{path}")).body(Full::default()).unwrap();
            let limits = FetchLimits { time: Duration::from_millis(time), body };
            dialer.fetch(request, Peer, limits).await.map(Response::into_body).map_err(|error| kind(&error))
        };
        assert_eq!(fetch("/", 2, 30_000).await, Ok("ok".into()));
        assert_eq!(fetch("/", 1, 30_000).await, Err("too large"));
        assert_eq!(fetch("/endless", 64 * 1024, 30_000).await, Err("too large"));
        assert_eq!(fetch("/incomplete", 64 * 1024, 200).await, Err("timed out"));
    });
}

#[test]
fn tls_is_for_the_name_of_the_url() {
    namespace::run("requests::tls_is_for_the_name_of_the_url", async || {
        let _names = NameServer::start().await;
        let certified = generate_simple_self_signed(["public.example".to_owned()]).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(certified.cert.der().clone()).unwrap();
        let server = TlsServer::start(certified).await;
        let provider = Arc::new(aws_lc_rs::default_provider());
        let tls =
            ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let dialer = Dialer::builder().tls(tls.with_root_certificates(roots).with_no_client_auth()).build();

        get(&dialer, "https://public.example/x", Peer).await.unwrap();
        get(&dialer, "https://public.example./x", Peer).await.unwrap();
        // The same address under another name: its certificate is not valid, and nothing is sent.
        for url in ["https://public-chain.example/", "https://93.184.215.14/"] {
            assert_eq!(kind(&get(&dialer, url, Peer).await.unwrap_err()), "unreachable", "{url}");
        }
        // The system's root certificates do not contain that of the test, or there are none.
        assert_eq!(
            kind(&get(&Dialer::new(), "https://public.example/", Peer).await.unwrap_err()),
            "unreachable"
        );

        let requests = server.seen.borrow().requests.clone();
        let hosts = ["public.example", "public.example."];
        assert_eq!(requests, hosts.map(|host| format!("GET /x HTTP/1.1\r\nhost: {host}")));
        let names: Vec<Option<&str>> = vec![
            Some("public.example"),
            Some("public.example"),
            Some("public-chain.example"),
            None,
            Some("public.example"),
        ];
        assert_eq!(server.names.borrow().iter().map(Option::as_deref).collect::<Vec<_>>(), names);
    });
}

/// A server with TLS that records the name each client asks for.
struct TlsServer {
    seen: watch::Sender<Seen>,
    names: watch::Receiver<Vec<Option<String>>>,
    _task: JoinSet<()>,
}

impl TlsServer {
    async fn start(certified: CertifiedKey<rcgen::KeyPair>) -> Self {
        let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
        let provider = Arc::new(aws_lc_rs::default_provider());
        let config =
            ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_no_client_auth();
        let config = config.with_single_cert(vec![certified.cert.der().clone()], key.into()).unwrap();
        let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, 443)).await.unwrap();
        let (seen, (names, received)) = (watch::Sender::default(), watch::channel(Vec::new()));
        let mut task = JoinSet::new();
        task.spawn(serve(listener, Arc::new(config), names, seen.clone()));
        Self { seen, names: received, _task: task }
    }
}

async fn serve(
    listener: TcpListener,
    config: Arc<ServerConfig>,
    names: watch::Sender<Vec<Option<String>>>,
    seen: watch::Sender<Seen>,
) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (config, names, seen) = (Arc::clone(&config), names.clone(), seen.clone());
        connections.spawn(async move {
            let acceptor = tokio_rustls::LazyConfigAcceptor::new(rustls::server::Acceptor::default(), stream);
            let Ok(start) = acceptor.await else { return };
            let name = start.client_hello().server_name().map(str::to_owned);
            names.send_modify(|names| names.push(name));
            if let Ok(stream) = start.into_stream(config).await {
                respond(stream, seen).await;
            }
        });
    }
}
