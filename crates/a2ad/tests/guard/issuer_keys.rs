//! Where the keys of token issuers are fetched from: an address that a discovery document names may not be local.

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex},
};

use a2ad::internal::IssuerKeyFetcher;
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use inbound::{AuthOptions, FetchKeys as _, Issuer, KeyUrl, TokenCheck};
use outbound::dial::{DialPolicy, Dialer, address::is_public};
use protocol::{ErrorKind, Timestamp};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpListener,
    task::JoinSet,
};

use super::{
    listeners::Listeners,
    name_server::{FORBIDDEN_NAMES, NameServer},
    namespace, spellings,
};

fn fetcher(allow: &[&str]) -> IssuerKeyFetcher {
    let allow = allow.iter().map(|net| net.parse().unwrap()).collect();
    let policy = DialPolicy { allow, allow_http: true, own_addresses: Vec::new() };
    IssuerKeyFetcher::new(Dialer::builder().policy(policy).build())
}

fn forbidden_hosts() -> Vec<String> {
    let names = spellings::local().chain(FORBIDDEN_NAMES.iter().copied()).map(str::to_owned);
    spellings::not_public().into_iter().chain(names).collect()
}

#[test]
fn discovered_keys_are_fetched_from_public_addresses_only() {
    namespace::run("issuer_keys::discovered_keys_are_fetched_from_public_addresses_only", async || {
        let _names = NameServer::start().await;
        let listeners = Listeners::start().await;
        let fetcher = fetcher(&[]);
        let hosts = forbidden_hosts();
        assert!(hosts.len() >= 400, "{}", hosts.len());
        for host in &hosts {
            for url in [format!("http://{host}/"), format!("https://{host}/"), format!("http://{host}:9000/")]
            {
                assert!(fetcher.fetch(KeyUrl::Discovered(url.clone())).await.is_err(), "{url}");
            }
        }
        assert_eq!(listeners.addresses().await, [] as [IpAddr; 0]);

        let fetch = async |path: &str| {
            let fetched = fetcher.fetch(KeyUrl::Discovered(format!("http://public.example{path}"))).await;
            fetched.map_err(|error| error.to_string())
        };
        assert_eq!(fetch("/keys").await, Ok("ok".into()));
        // Redirects, and more than a document may have, are refused.
        assert_eq!(fetch("/redirect").await, Err("the server responded 302 Found".into()));
        assert_eq!(fetch("/endless").await, Err("the response is too large".into()));
        let seen = listeners.seen().await;
        assert!(seen.connections.iter().all(|address| is_public(address.ip())), "{:?}", seen.connections);
        let request = seen.requests[0].to_lowercase();
        assert!(
            request.starts_with("get /keys http/1.1") && request.contains("accept: application/json"),
            "{request}"
        );

        // What the operator has configured may be local.
        for url in ["http://127.0.0.1:9000/keys", "http://10.1.2.3/keys"] {
            assert!(fetcher.fetch(KeyUrl::Configured(url.into())).await.is_ok(), "{url}");
        }
    });
}

/// The whole way: a token of a configured issuer, whose discovery document names an address.
#[test]
fn discovery_document_cannot_name_local_keys() {
    namespace::run("issuer_keys::discovery_document_cannot_name_local_keys", async || {
        let _names = NameServer::start().await;
        let listeners = Listeners::start().await;
        let issuer = DiscoveryServer::start().await;
        let error = async |host: &str, fetcher: IssuerKeyFetcher| {
            issuer.name_keys_at(&format!("http://{host}/jwks"));
            let options = AuthOptions {
                issuers: vec![Issuer { issuer: issuer.url(), audience: "x".into(), jwks_uri: None }],
                fetch: Some(Arc::new(fetcher)),
                ..AuthOptions::default()
            };
            let check = TokenCheck::new(&options);
            check.principal(&issuer.token(), Timestamp::from_millis(0)).await.unwrap_err()
        };
        for host in forbidden_hosts() {
            assert_eq!(error(&host, fetcher(&[])).await.kind, ErrorKind::Unavailable, "{host}");
        }
        assert_eq!(listeners.addresses().await, [] as [IpAddr; 0]);
        // A network that the operator allows. What its listener sends is no document with keys.
        assert_eq!(error("10.1.2.3:9000", fetcher(&["10.1.0.0/16"])).await.kind, ErrorKind::Unavailable);
        let seen = listeners.seen().await;
        assert_eq!(seen.connections, [SocketAddr::from(([10, 1, 2, 3], 9000))]);
        assert!(seen.requests[0].starts_with("GET /jwks "), "{:?}", seen.requests);
    });
}

/// An issuer on loopback that serves nothing but its discovery document.
struct DiscoveryServer {
    address: SocketAddr,
    jwks_uri: Arc<Mutex<String>>,
    _task: JoinSet<()>,
}

impl DiscoveryServer {
    async fn start() -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let jwks_uri = Arc::new(Mutex::new(String::new()));
        let (shared, mut task) = (Arc::clone(&jwks_uri), JoinSet::new());
        task.spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut received = Vec::new();
                while !received.ends_with(b"\r\n\r\n") {
                    stream.read_buf(&mut received).await.unwrap();
                }
                let body = {
                    let jwks_uri = shared.lock().unwrap();
                    format!(r#"{{"issuer":"http://{address}","jwks_uri":"{jwks_uri}"}}"#)
                };
                let head =
                    format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
                stream.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
            }
        });
        Self { address, jwks_uri, _task: task }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn name_keys_at(&self, url: &str) {
        url.clone_into(&mut self.jwks_uri.lock().unwrap());
    }

    /// A token of this issuer. Its keys are wanted before its signature is looked at.
    fn token(&self) -> String {
        let claims = format!(r#"{{"iss":"{}","aud":"x","sub":"a","exp":1}}"#, self.url());
        format!("{}.{}.AAAA", URL_SAFE_NO_PAD.encode(r#"{"alg":"ES256"}"#), URL_SAFE_NO_PAD.encode(claims))
    }
}
