//! Calls through the proxies of the environment. The proxy is a small one of this file: it connects to the server whatever
//! the name, so that the server has a name that is not a loopback address.

use std::sync::{Arc, Mutex, PoisonError};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use rcgen::CertifiedKey;
use testkit::process::Server;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _, copy_bidirectional},
    net::{TcpListener, TcpStream},
    task::JoinSet,
};

use crate::common::{ANY_PORT as ANY, Ended, Running, a2ad, finish, pem};

const VARIABLES: [&str; 8] = [
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "https_proxy",
    "http_proxy",
    "all_proxy",
    "no_proxy",
];
const NAMED: &str = "[skills.echo]\nbuiltin = \"echo\"\n[server]\nallowed_hosts = [\"agent.test\"]\n";

/// A proxy for clients with the user `user` and the password `p@ss`.
struct Proxy {
    address: String,
    requests: Arc<Mutex<Vec<String>>>,
    _serving: JoinSet<()>,
}

impl Proxy {
    /// A proxy that knows one server.
    async fn to(server: &str) -> Self {
        let (server, requests) = (server.to_owned(), Arc::default());
        let seen: Arc<Mutex<Vec<String>>> = Arc::clone(&requests);
        let listener = TcpListener::bind(ANY).await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut open = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                open.spawn(pass_on(client, server.clone(), Arc::clone(&seen)));
            }
        });
        Self { address, requests, _serving: serving }
    }

    fn url(&self) -> String {
        format!("http://user:p%40ss@{}", self.address)
    }

    /// The heads of the requests that it has got, one for each connection.
    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn pass_on(mut client: TcpStream, server: String, seen: Arc<Mutex<Vec<String>>>) {
    let mut received = Vec::new();
    while !received.windows(4).any(|four| four == b"\r\n\r\n") {
        if client.read_buf(&mut received).await.unwrap_or(0) == 0 {
            return;
        }
    }
    let text = String::from_utf8_lossy(&received).into_owned();
    let head = text.split("\r\n\r\n").next().unwrap().to_owned();
    seen.lock().unwrap_or_else(PoisonError::into_inner).push(head.clone());
    let credentials = format!("proxy-authorization: basic {}", BASE64_STANDARD.encode("user:p@ss"));
    if !head.to_ascii_lowercase().contains(&credentials.to_ascii_lowercase()) {
        let _ = client
            .write_all(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n")
            .await;
        return;
    }
    let mut server = TcpStream::connect(server).await.unwrap();
    if head.starts_with("CONNECT ") {
        client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
    } else {
        server.write_all(&received).await.unwrap();
    }
    let _ = copy_bidirectional(&mut client, &mut server).await;
}

/// A client command with these variables, and without those of the developer's proxies.
async fn client(server: &Running, arguments: &[&str], variables: &[(&str, &str)]) -> Ended {
    let mut command = a2ad(server.path(), arguments);
    for name in VARIABLES {
        command.env_remove(name);
    }
    command.envs(variables.iter().copied());
    finish(command).await
}

/// A server that `agent.test` names.
async fn server() -> Running {
    Running::configured(NAMED).await
}

/// The same with TLS at a second address, which is returned.
async fn tls_server() -> (Running, String) {
    let folder = tempfile::tempdir().unwrap();
    let CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["agent.test".to_owned()]).unwrap();
    let key = signing_key.serialize_der();
    std::fs::write(folder.path().join("cert.pem"), pem("CERTIFICATE", cert.der())).unwrap();
    std::fs::write(folder.path().join("key.pem"), pem("PRIVATE KEY", &key)).unwrap();
    let tls = format!("{{ address = \"{ANY}\", tls = {{ cert = \"cert.pem\", key = \"key.pem\" }} }}");
    let config = format!("{NAMED}listen = [\"{ANY}\", {tls}]\n");
    std::fs::write(folder.path().join("a2ad.toml"), config).unwrap();
    let server = Server::start_command(a2ad(folder.path(), &[])).await.unwrap();
    let log = server.log();
    let (_, rest) = log.split_once("\"other_urls\":\"https://").unwrap_or_else(|| panic!("{log}"));
    let secure = rest.split('"').next().unwrap().to_owned();
    (Running { folder, server }, secure)
}

#[tokio::test]
async fn https_uses_a_tunnel_with_the_credentials_of_the_proxy() {
    let (server, secure) = tls_server().await;
    let proxy = Proxy::to(&secure).await;
    let arguments = ["send", "https://agent.test/a2a/main", "hello", "--ca", "cert.pem"];
    for name in ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"] {
        let output = client(&server, &arguments, &[(name, &proxy.url())]).await;
        assert!(output.code == 0 && output.out.contains("hello"), "{name}: {}", output.err);
    }
    let requests = proxy.requests();
    assert!(requests.len() >= 3, "{requests:?}");
    for request in requests {
        assert!(
            request.starts_with("CONNECT agent.test:443 HTTP/1.1\r\nHost: agent.test:443\r\n"),
            "{request}"
        );
        assert!(request.contains("user-agent: a2ad/"), "{request}");
    }
    let without = format!("http://{}", proxy.address);
    let refused = client(&server, &arguments, &[("HTTPS_PROXY", &without)]).await;
    refused.ends(1, &["cannot connect to https://agent.test: ", "proxy authorization required"]);
}

#[tokio::test]
async fn http_is_forwarded_by_the_proxy() {
    let server = server().await;
    let proxy = Proxy::to(&server.address()).await;
    let arguments = ["send", "http://agent.test/a2a/main", "hello"];
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY"] {
        let output = client(&server, &arguments, &[(name, &proxy.url())]).await;
        assert!(output.code == 0 && output.out.contains("hello"), "{name}: {}", output.err);
    }
    for request in proxy.requests() {
        assert!(request.contains(" http://agent.test/a2a/main"), "{request}");
        assert!(request.contains("host: agent.test"), "{request}");
    }
}

#[tokio::test]
async fn loopback_addresses_and_no_proxy_bypass_the_proxy() {
    let server = server().await;
    let proxy = Proxy::to(&server.address()).await;
    let url = format!("{}/a2a/main", server.url());
    let direct = client(&server, &["send", &url, "hello"], &[("ALL_PROXY", &proxy.url())]).await;
    assert_eq!(direct.code, 0, "{}", direct.err);
    for name in ["NO_PROXY", "no_proxy"] {
        let variables = [("ALL_PROXY", proxy.url()), (name, "agent.test".to_owned())];
        let variables = variables.each_ref().map(|(name, value)| (*name, value.as_str()));
        let output = client(&server, &["card", "http://agent.test/a2a/main"], &variables).await;
        output.ends(1, &["cannot connect to http://agent.test: "]);
    }
    assert!(proxy.requests().is_empty(), "{:?}", proxy.requests());
}
