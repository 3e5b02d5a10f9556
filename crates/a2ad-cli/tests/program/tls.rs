//! Several addresses, TLS and client certificates of the program, from outside.

use std::{
    fs,
    net::{Ipv6Addr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use engine::Clock;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, SanType, date_time_ymd};
use rusqlite::Connection;
use rustix::process::Signal;
use serde_json::json;
use tempfile::TempDir;
use testkit::{
    http1,
    process::Server,
    rpc::{Caller, Failure, message},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use tokio_rustls::{
    TlsConnector,
    rustls::{
        ClientConfig, RootCertStore,
        crypto::aws_lc_rs,
        pki_types::{CertificateDer, PrivateKeyDer, ServerName, pem::PemObject as _},
    },
};

use super::common::{ECHO, a2ad, eventually, pem, run, stop, within};

/// A store of the schema before the kind of a name was a part of it: the callers `mtls:CN=alice` and
/// `mtls:spiffe://example/bob` have a task each.
const EARLIER_NAMES: &str = include_str!("../../../store/tests/fixtures/schema-10-certificates.sql");
const OF_ALICE: &str = "task_xkc670dbb4tyxryaaeb3ffxdrbac8";
const OF_BOB: &str = "task_9xr7j9bjqv4vje46b1bjm80bz4ycr";
/// The ids of the messages that made them.
const BY_ALICE: &str = "3f2b8c1e-7d4a-4b6f-9c0d-5e8a1b2c3d4e";
const BY_BOB: &str = "8c1e3f2b-4a7d-4f6b-8d0c-1b2c3d4e5e8a";
/// An authority, and the certificates it has signed, as files of a folder.
struct Authority {
    folder: PathBuf,
    name: &'static str,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new(folder: &Path, name: &'static str) -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        fs::write(
            folder.join(format!("{name}.pem")),
            pem("CERTIFICATE", params.self_signed(&key).unwrap().der()),
        )
        .unwrap();
        Self { folder: folder.to_owned(), name, issuer: Issuer::new(params, key) }
    }

    /// Signs a certificate; its files are `NAME.pem` and `NAME.key`.
    fn sign(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) {
        let mut params = CertificateParams::new(["localhost".into(), "127.0.0.1".into()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        fs::write(self.folder.join(format!("{name}.pem")), pem("CERTIFICATE", certificate.der())).unwrap();
        fs::write(self.folder.join(format!("{name}.key")), pem("PRIVATE KEY", &key.serialize_der())).unwrap();
    }

    /// A client that trusts this authority, with a certificate of another one.
    fn client_of(&self, other: &Self, certificate: &str) -> Client {
        let mut client = self.client(None);
        let resolver = other.client(Some(certificate)).0.client_auth_cert_resolver.clone();
        Arc::get_mut(&mut client.0).unwrap().client_auth_cert_resolver = resolver;
        client
    }

    /// A client that trusts this authority, with or without a certificate.
    fn client(&self, certificate: Option<&str>) -> Client {
        let mut roots = RootCertStore::empty();
        let own = self.folder.join(format!("{}.pem", self.name));
        roots.add(CertificateDer::from_pem_file(own).unwrap()).unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let builder = builder.unwrap().with_root_certificates(roots);
        Client(Arc::new(match certificate {
            None => builder.with_no_client_auth(),
            Some(name) => {
                let chain = CertificateDer::from_pem_file(self.folder.join(format!("{name}.pem"))).unwrap();
                let key = PrivateKeyDer::from_pem_file(self.folder.join(format!("{name}.key"))).unwrap();
                builder.with_client_auth_cert(vec![chain], key).unwrap()
            }
        }))
    }
}

struct Client(Arc<ClientConfig>);

struct Answer {
    text: String,
    /// The certificate of the server, in DER.
    certificate: Vec<u8>,
}

impl Client {
    /// Sends a request on a connection of its own and returns everything that arrives.
    async fn request(&self, address: SocketAddr, request: &str) -> std::io::Result<Answer> {
        let exchange = async {
            let stream = TcpStream::connect(address).await?;
            let name = ServerName::try_from("localhost").unwrap();
            let mut stream = TlsConnector::from(Arc::clone(&self.0)).connect(name, stream).await?;
            stream.write_all(request.as_bytes()).await?;
            let mut text = Vec::new();
            stream.read_to_end(&mut text).await?;
            let certificate = stream.get_ref().1.peer_certificates().unwrap()[0].to_vec();
            Ok(Answer { text: String::from_utf8(text).unwrap(), certificate })
        };
        within(exchange).await
    }

    async fn get(&self, address: SocketAddr, path: &str) -> std::io::Result<Answer> {
        let head =
            format!("GET {path} HTTP/1.1\r\nhost: localhost:{}\r\nconnection: close\r\n\r\n", address.port());
        self.request(address, &head).await
    }

    /// Sends a message with an id to the agent `closed`.
    async fn send_again(&self, address: SocketAddr, id: &str, text: &str) -> std::io::Result<Answer> {
        let call =
            json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": message(id, text, false)});
        let body = call.to_string();
        let head = format!(
            "POST /a2a/closed HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\na2a-version: 1.0\r\n\
             content-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        self.request(address, &(head + &body)).await
    }

    /// Sends a text to an agent.
    async fn send(&self, address: SocketAddr, agent: &str, text: &str) -> std::io::Result<Answer> {
        let request = format!(
            "POST /a2a/{agent} HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/plain\r\ncontent-length: {}\r\n\
             connection: close\r\n\r\n{text}",
            text.len()
        );
        self.request(address, &request).await
    }
}

impl Answer {
    fn status(&self) -> &str {
        self.text.split(' ').nth(1).unwrap()
    }

    fn header(&self, name: &str) -> Option<&str> {
        let lines = self.text.lines().take_while(|line| !line.is_empty());
        let mut found =
            lines.filter_map(|line| line.split_once(": ")).filter(|line| line.0.eq_ignore_ascii_case(name));
        found.next().map(|line| line.1)
    }
}

/// A server in a folder, with the file `a2ad.toml` there.
async fn start(folder: &Path, config: &str) -> Server {
    fs::write(folder.join("a2ad.toml"), config).unwrap();
    Server::start_command(a2ad(folder, &[])).await.unwrap()
}

/// The addresses after a field of the startup line.
fn addresses(server: &Server, field: &str) -> Vec<SocketAddr> {
    let log = server.log();
    let (_, rest) = log.split_once(&format!("\"{field}\":\"")).unwrap_or_else(|| panic!("{field} in {log}"));
    let urls = rest.split('"').next().unwrap();
    urls.split(", ").map(|url| url.split_once("://").unwrap().1.parse().unwrap()).collect()
}

/// A folder with an authority, which has signed a certificate of the server.
fn certified() -> (TempDir, Authority) {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path(), "ca");
    authority.sign("server", |_| {});
    (folder, authority)
}

/// One address without TLS and one with it.
fn two_addresses(client_ca: &str) -> String {
    format!(
        "{ECHO}[server]\nlisten = [\"127.0.0.1:0\", {{ address = \"127.0.0.1:0\", tls = {{ cert = \"server.pem\", key = \
         \"server.key\", client_ca = \"{client_ca}\" }} }}]\n"
    )
}

/// A server at both addresses, the first of which is its own; also returns the second one.
async fn start_two(folder: &Path, client_ca: &str, more: &str) -> (Server, SocketAddr) {
    let server = start(folder, &format!("{}{more}", two_addresses(client_ca))).await;
    let secure = addresses(&server, "other_urls")[0];
    (server, secure)
}

#[tokio::test]
async fn each_address_is_served_with_its_own_scheme() {
    let (folder, authority) = certified();
    let (server, secure) = start_two(folder.path(), "", "").await;
    let plain =
        http1::request(server.address, "GET", "/.well-known/agent-card.json", &[], &[]).await.unwrap();
    assert!(plain.text().contains(&format!("\"url\":\"http://{}", server.address)), "{}", plain.text());
    let client = authority.client(None);
    let card = client.get(secure, "/.well-known/agent-card.json").await.unwrap();
    assert!(card.text.contains(&format!("\"url\":\"https://localhost:{}", secure.port())), "{}", card.text);
    assert!(client.get(secure, "/").await.unwrap().text.contains("https://localhost"));
    let answer = client.send(secure, "main", "hello").await.unwrap();
    assert!(answer.status() == "200" && answer.text.ends_with("hello"), "{}", answer.text);
    // Our own client, and an authority that it does not know.
    let url = format!("https://localhost:{}/a2a/main", secure.port());
    assert!(
        run(folder.path(), &["send", &url, "hello", "--ca", "ca.pem"]).await.succeeds("").contains("hello")
    );
    let untrusted = run(folder.path(), &["send", &url, "hello"]).await;
    assert_ne!(untrusted.code, 0);
    assert!(untrusted.err.contains("certificate") && untrusted.err.contains("--ca"), "{untrusted:?}");
    let lock = fs::read_to_string(folder.path().join("a2ad.db.lock")).unwrap();
    assert!(lock.contains(&format!("\"address\":\"{}, https://{secure}\"", server.address)), "{lock}");
    let check = run(folder.path(), &["check", "--json"]).await.succeeds("").to_owned();
    assert!(check.contains("\"listen\":\"127.0.0.1:0, https://127.0.0.1:0\""), "{check}");
    stop(server).await;
}

/// A port that is free for both versions of IP, below those that the system selects for others.
fn free_port() -> u16 {
    let first = 20_000 + u16::try_from(std::process::id() % 10_000).unwrap();
    let is_free = |port: &u16| std::net::TcpListener::bind((Ipv6Addr::UNSPECIFIED, *port)).is_ok();
    (first..30_000).find(is_free).unwrap()
}

#[tokio::test]
async fn addresses_of_both_versions_of_ip_can_have_the_same_port() {
    let agent = "[agents.main]\nauth = [\"anonymous\"]\n";
    let status = async |host: &str, port: u16| {
        let address = SocketAddr::new(host.parse().unwrap(), port);
        http1::request(address, "GET", "/healthz", &[], &[]).await.map(|answer| answer.status).ok()
    };
    for (listen, of_v4) in [
        (&["0.0.0.0:PORT", "[::]:PORT"][..], Some(200)),
        (&["[::]:PORT", "127.0.0.1:PORT"][..], Some(200)),
        // Alone it accepts both.
        (&["[::]:PORT"][..], Some(200)),
        (&["[::1]:PORT"][..], None),
    ] {
        let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
        let listen = format!("{listen:?}").replace("PORT", &port.to_string());
        let server = start(folder.path(), &format!("{ECHO}[server]\nlisten = {listen}\n{agent}")).await;
        assert_eq!(status("127.0.0.1", port).await, of_v4, "{listen}");
        assert_eq!(status("::1", port).await, Some(200), "{listen}");
        stop(server).await;
    }
}

#[tokio::test]
async fn a_client_with_the_wrong_scheme_is_told_so_or_closed() {
    let (folder, authority) = certified();
    let (server, secure) = start_two(folder.path(), "", "").await;
    let plain = http1::request(secure, "GET", "/", &[], &[]).await.unwrap();
    assert!(plain.status == 400 && plain.text().contains("use https://"), "{}", plain.text());
    let closed = authority.client(None).get(server.address, "/").await;
    let error = closed.err().unwrap();
    assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof, "{error}");
    stop(server).await;
}

#[tokio::test]
async fn a_client_certificate_identifies_the_caller() {
    let (folder, authority) = certified();
    authority.sign("alice", |_| {});
    let uri = |params: &mut CertificateParams| {
        params.subject_alt_names = vec![SanType::URI("spiffe://example/bob".try_into().unwrap())];
    };
    authority.sign("bob", uri);
    let stranger = Authority::new(folder.path(), "other");
    stranger.sign("mallory", |_| {});
    let agents = "default_agent = \"open\"\n[agents.closed]\nauth = [\"mtls\"]\n[agents.open]\nauth = [\"anonymous\"]\n";
    let (server, secure) = start_two(folder.path(), "ca.pem", agents).await;
    let (nobody, alice, bob) =
        (authority.client(None), authority.client(Some("alice")), authority.client(Some("bob")));

    let refused = nobody.send(secure, "closed", "hello").await.unwrap();
    assert_eq!(
        (refused.status(), refused.header("www-authenticate")),
        ("401", Some("Mutual")),
        "{}",
        refused.text
    );
    // Without TLS there is no certificate.
    let path = "/a2a/closed/tasks";
    assert_eq!(http1::request(server.address, "GET", path, &[], &[]).await.unwrap().status, 401);
    let task = alice.send(secure, "closed", "hello").await.unwrap();
    assert_eq!(task.status(), "200", "{}", task.text);
    let path = format!("/a2a/closed/tasks/{}", task.header("a2ad-task").unwrap());
    assert_eq!(alice.get(secure, &path).await.unwrap().status(), "200");
    assert_eq!(bob.get(secure, &path).await.unwrap().status(), "404");
    assert_eq!(nobody.get(secure, &path).await.unwrap().status(), "401");
    // An agent for everybody does not look at certificates: all of them are the same caller.
    let task = alice.send(secure, "open", "hello").await.unwrap();
    let path = format!("/a2a/open/tasks/{}", task.header("a2ad-task").unwrap());
    assert_eq!(nobody.get(secure, &path).await.unwrap().status(), "200");
    // A certificate of somebody else ends the handshake.
    let mallory = authority.client_of(&stranger, "mallory");
    assert!(mallory.send(secure, "closed", "hello").await.is_err());

    let card = nobody.get(secure, "/a2a/closed/.well-known/agent-card.json").await.unwrap();
    assert!(card.text.contains("mtlsSecurityScheme") && card.text.contains("mutualTLS"), "{}", card.text);
    let openapi = nobody.get(secure, "/a2a/closed/openapi.json").await.unwrap();
    assert!(openapi.text.contains("mutualTLS"), "{}", openapi.text);
    let url = format!("https://localhost:{}/a2a/closed", secure.port());
    let with = ["send", &url, "hello", "--ca", "ca.pem", "--cert", "bob.pem", "--key", "bob.key"];
    assert!(run(folder.path(), &with).await.succeeds("").contains("hello"));
    let without = run(folder.path(), &["send", &url, "hello", "--ca", "ca.pem"]).await;
    assert!(without.code != 0 && without.err.contains("--cert FILE --key FILE"), "{without:?}");
    stop(server).await;
}

/// A URI of one certificate that is the subject of another one, in a store that knew both by the same name.
#[tokio::test]
async fn names_of_certificates_cannot_collide_and_earlier_tasks_stay_readable() {
    let (folder, authority) = certified();
    authority.sign("alice", |_| {});
    for (name, uri) in [("bob", "spiffe://example/bob"), ("mimic", "CN=alice")] {
        let names = vec![SanType::URI(uri.try_into().unwrap())];
        authority.sign(name, |params| params.subject_alt_names = names);
    }
    let store = Connection::open(folder.path().join("a2ad.db")).unwrap();
    store.execute_batch("PRAGMA page_size = 8192; PRAGMA auto_vacuum = INCREMENTAL").unwrap();
    store.execute_batch(EARLIER_NAMES).unwrap();
    store.pragma_update(None, "user_version", 10).unwrap();
    drop(store);
    let more =
        "[agents.closed]\nauth = [\"mtls\"]\n[store.retention]\nmax_age = \"36500d\"\nkeys = \"36500d\"\n";
    let (server, secure) = start_two(folder.path(), "ca.pem", more).await;
    let [alice, bob, mimic] = ["alice", "bob", "mimic"].map(|name| authority.client(Some(name)));
    let (not_theirs, path) = ("404", |task: &str| format!("/a2a/closed/tasks/{task}"));
    for (client, of_alice, of_bob) in
        [(&alice, "200", not_theirs), (&bob, not_theirs, "200"), (&mimic, not_theirs, not_theirs)]
    {
        assert_eq!(client.get(secure, &path(OF_ALICE)).await.unwrap().status(), of_alice);
        assert_eq!(client.get(secure, &path(OF_BOB)).await.unwrap().status(), of_bob);
    }
    // A message from before is recognised if it is repeated, and is a new one of another caller.
    for (client, id, text, first) in [
        (&alice, BY_ALICE, "of alice", Some(OF_ALICE)),
        (&bob, BY_BOB, "of bob", Some(OF_BOB)),
        (&mimic, BY_ALICE, "of alice", None),
    ] {
        let answer = client.send_again(secure, id, text).await.unwrap();
        assert_eq!(answer.header("a2ad-replayed"), first.map(|_| "true"), "{}", answer.text);
        assert!(first.is_none_or(|task| answer.text.contains(task)), "{}", answer.text);
        assert!(first.is_some() || !answer.text.contains(OF_ALICE), "{}", answer.text);
    }
    stop(server).await;
}

#[tokio::test]
async fn operators_have_an_address_of_their_own() {
    let (folder, authority) = certified();
    for tls in ["", ", tls = { cert = \"server.pem\", key = \"server.key\" }"] {
        let admin = format!("admin_listen = {{ address = \"127.0.0.1:0\"{tls} }}\n");
        let config =
            format!("{ECHO}[server]\nlisten = \"127.0.0.1:0\"\n{admin}[agents.a]\nauth = [\"api-key\"]\n");
        let server = start(folder.path(), &config).await;
        let operators = addresses(&server, "operators")[0];
        let status =
            async |address, path: &str| http1::request(address, "GET", path, &[], &[]).await.unwrap().status;
        for (path, for_callers, for_operators) in [
            ("/console/api/keys", 404, 401),
            ("/healthz", 200, 200),
            ("/readyz", 200, 200),
            ("/", 200, 404),
            ("/a2a/a/tasks", 401, 404),
            ("/.well-known/agent-card.json", 200, 404),
        ] {
            assert_eq!(status(server.address, path).await, for_callers, "{path}");
            let found = match tls {
                "" => status(operators, path).await,
                _ => authority.client(None).get(operators, path).await.unwrap().status().parse().unwrap(),
            };
            assert_eq!(found, for_operators, "{path}");
        }
        let made = run(folder.path(), &["keys", "new", "a"]).await;
        let key = made.succeeds(&operators.to_string());
        let headers = [("x-api-key", key.trim())];
        let listed = http1::request(server.address, "GET", "/a2a/a/tasks", &headers, &[]).await.unwrap();
        assert_eq!(listed.status, 200, "{}", listed.text());
        stop(server).await;
    }
}

/// Registers a webhook with a message; returns why it is refused.
async fn refused_webhook(server: &Server, url: &str) -> Option<String> {
    let mut params = message(url, "hello", false);
    params["configuration"]["taskPushNotificationConfig"]["url"] = url.into();
    match Caller::new(server.address).call("main", "SendMessage", params).await {
        Ok(_) => None,
        Err(Failure::Error { message, .. }) => Some(message),
        Err(error) => panic!("{error}"),
    }
}

/// The ports are known only after the addresses are bound.
#[tokio::test]
async fn webhooks_to_addresses_of_the_server_are_refused() {
    const ALLOWED: &str = "[agents.main]\nauth = [\"anonymous\"]\n[outbound]\nallow = [\"127.0.0.0/8\", \"::1/128\"]\nallow_http = true\n";
    const OWN: &str = "its address is that of this server";
    let (folder, _) = certified();
    let config = format!("{}admin_listen = \"127.0.0.1:0\"\n{ALLOWED}", two_addresses(""));
    let server = start(folder.path(), &config).await;
    let (secure, operators) = (addresses(&server, "other_urls")[0], addresses(&server, "operators")[0]);
    for own in [server.address, secure, operators] {
        for url in [format!("http://{own}/"), format!("https://[::ffff:7f00:1]:{}/hook", own.port())] {
            let refused = refused_webhook(&server, &url).await;
            assert!(refused.as_ref().is_some_and(|text| text.contains(OWN)), "{url}: {refused:?}");
        }
    }
    let other = format!("http://127.0.0.2:{}/", server.address.port());
    assert_eq!(refused_webhook(&server, &other).await, None);
    // A reload leaves them as they are.
    fs::write(folder.path().join("a2ad.toml"), config.replace(", \"::1/128\"", "")).unwrap();
    server.wait_for_log("the configuration was reloaded").await.unwrap();
    let own = format!("http://{}/", server.address);
    assert!(refused_webhook(&server, &own).await.is_some_and(|text| text.contains(OWN)));
    stop(server).await;

    for listen in ["0.0.0.0:0", "[::]:0"] {
        let server = start(folder.path(), &format!("{ECHO}[server]\nlisten = \"{listen}\"\n{ALLOWED}")).await;
        let port = server.address.port();
        for host in ["127.0.0.1", "127.1.2.3", "[::1]"] {
            let refused = refused_webhook(&server, &format!("http://{host}:{port}/")).await;
            assert!(refused.as_ref().is_some_and(|text| text.contains(OWN)), "{listen} {host}: {refused:?}");
        }
        assert_eq!(refused_webhook(&server, "http://127.0.0.1:1/").await, None);
        server.kill().await.unwrap();
    }
}

#[tokio::test]
async fn changed_certificates_are_used_and_broken_ones_are_not() {
    let (folder, authority) = certified();
    let (server, secure) = start_two(folder.path(), "", "").await;
    let client = authority.client(None);
    let first = client.get(secure, "/healthz").await.unwrap().certificate;
    authority.sign("server", |_| {});
    server.wait_for_log("the TLS certificate was reloaded").await.unwrap();
    let second = client.get(secure, "/healthz").await.unwrap().certificate;
    assert_ne!(first, second);
    fs::write(folder.path().join("server.key"), "nothing").unwrap();
    server.wait_for_log("the TLS files were not reloaded").await.unwrap();
    assert_eq!(client.get(secure, "/healthz").await.unwrap().certificate, second);
    assert!(server.log().contains("server.key has no private key"), "{}", server.log());
    let logged = server.log().matches("the TLS files were not reloaded").count();
    server.signal(Signal::HUP).unwrap();
    eventually(async || server.log().matches("the TLS files were not reloaded").count() > logged).await;
    assert_eq!(client.get(secure, "/healthz").await.unwrap().certificate, second);
    stop(server).await;
}

#[tokio::test]
async fn certificates_that_cannot_be_used_are_refused_with_file_and_reason() {
    let (folder, authority) = certified();
    authority.sign("other", |_| {});
    authority.sign("expired", |params| params.not_after = date_time_ymd(2020, 1, 1));
    authority.sign("future", |params| params.not_before = date_time_ymd(2999, 1, 1));
    fs::write(folder.path().join("ca.key"), "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")
        .unwrap();
    for (cert, key, client_ca, expected) in [
        (
            "server",
            "other",
            "",
            "server.tls.key: the file other.key is not the key of the certificate in server.pem",
        ),
        (
            "expired",
            "expired",
            "",
            "server.tls.cert: the file expired.pem has a certificate that expired at 2020-01-01",
        ),
        (
            "future",
            "future",
            "",
            "server.tls.cert: the file future.pem has a certificate that is valid from 2999-01-01",
        ),
        ("server", "ca", "", "server.tls.key: the file ca.key has a key that cannot be used"),
        ("server", "server", "server.key", "server.tls.client_ca: the file server.key has no certificate"),
        ("server", "server", "absent", "server.tls.client_ca: the file absent cannot be read"),
    ] {
        let config = format!(
            "{ECHO}[server]\nlisten = \"127.0.0.1:0\"\ntls = {{ cert = \"{cert}.pem\", key = \"{key}.key\", client_ca = \
             \"{client_ca}\" }}\n"
        );
        fs::write(folder.path().join("a2ad.toml"), config).unwrap();
        for command in [&["check"][..], &[]] {
            run(folder.path(), command).await.ends(2, &[&format!("a2ad.toml:5: {expected}")]);
        }
    }
}

/// A connection that is used for several requests.
struct Open(tokio_rustls::client::TlsStream<TcpStream>);

impl Open {
    async fn new(client: &Client, address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        Self(TlsConnector::from(Arc::clone(&client.0)).connect(name, stream).await.unwrap())
    }

    async fn post(&mut self, accept: &str, text: &str) -> std::io::Result<()> {
        let head = format!(
            "POST /run/echo HTTP/1.1\r\nhost: localhost\r\naccept: {accept}\r\ncontent-type: text/plain\r\n\
             content-length: {}\r\n\r\n{text}",
            text.len()
        );
        self.0.write_all(head.as_bytes()).await
    }

    /// Reads until this text has arrived; an error with what did if the connection ends before.
    async fn until(&mut self, expected: &str) -> Result<String, String> {
        let mut text = String::new();
        let reading = async {
            let mut buffer = [0; 4 << 10];
            while !text.contains(expected) {
                match self.0.read(&mut buffer).await {
                    Ok(read @ 1..) => text.push_str(&String::from_utf8_lossy(&buffer[..read])),
                    _ => return false,
                }
            }
            true
        };
        let found = within(reading).await;
        if found { Ok(text) } else { Err(text) }
    }

    /// Whether a call on it is answered with a result.
    async fn is_served(&mut self) -> bool {
        self.post("text/plain", "hello").await.is_ok() && self.until("hello").await.is_ok()
    }
}

#[tokio::test]
async fn replaced_client_ca_ends_what_is_open_with_its_certificates() {
    let (folder, authority) = certified();
    let new = Authority::new(folder.path(), "new");
    authority.sign("alice", |_| {});
    new.sign("bob", |_| {});
    let both = [&authority, &new]
        .map(|one| fs::read_to_string(folder.path().join(format!("{}.pem", one.name))).unwrap())
        .concat();
    fs::write(folder.path().join("clients.pem"), both).unwrap();
    let agents = "default_agent = \"closed\"\n[agents.closed]\nauth = [\"mtls\"]\n[outbound]\nallow = [\"127.0.0.1/32\"]\n\
         allow_http = true\n[push]\nretry_after = [\"1s\", \"1s\", \"1s\", \"1s\", \"1s\", \"1s\", \"1s\", \"1s\", \"1s\"]\n";
    let (server, secure) = start_two(folder.path(), "clients.pem", agents).await;
    let alice = authority.client(Some("alice"));
    let bob = authority.client_of(&new, "bob");
    let mut stream = Open::new(&alice, secure).await;
    stream.post("text/event-stream", "hold").await.unwrap();
    stream.until("event: task").await.unwrap();
    let (mut idle, mut other) = (Open::new(&alice, secure).await, Open::new(&bob, secure).await);
    assert!(idle.is_served().await && other.is_served().await);
    let mut waiting = Open::new(&alice, secure).await;
    waiting.post("text/plain", "hold").await.unwrap();

    let hook = "{\"url\":\"http://127.0.0.1:1/\"}";
    let message = "{\"messageId\":\"m\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"hold\"}]}";
    let configuration = format!("{{\"returnImmediately\":true,\"taskPushNotificationConfig\":{hook}}}");
    let body = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"SendMessage\",\"params\":{{\"message\":{message},\
         \"configuration\":{configuration}}}}}"
    );
    let request = format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\na2a-version: 1.0\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    );
    let sent = alice.request(secure, &request).await.unwrap();
    assert!(sent.status() == "200" && !sent.text.contains("\"error\""), "{}", sent.text);

    let replaced = std::time::Instant::now();
    fs::copy(folder.path().join("new.pem"), folder.path().join("clients.pem")).unwrap();
    let last = stream.until("event: error").await.unwrap();
    assert!(last.contains("not from an authority"), "{last}");
    let answer = waiting.until("not from an authority").await.unwrap();
    assert!(answer.contains(" 401 "), "{answer}");
    // The files are looked at five times a second.
    assert!(replaced.elapsed() < Duration::from_millis(1_600), "{:?}", replaced.elapsed());
    assert!(!idle.is_served().await);
    assert!(alice.send(secure, "closed", "hello").await.is_err());
    // A connection whose certificate the new authorities verify goes on.
    assert!(other.is_served().await);
    // The webhook is held until the name is verified again.
    let deliveries = async |is_held: bool| {
        let list = ["deliveries", "ls", "--config", "a2ad.toml", "--json"];
        eventually(async || run(folder.path(), &list).await.succeeds("").contains("held: ") == is_held).await;
    };
    deliveries(true).await;
    new.sign("alice", |_| {});
    let renewed = authority.client_of(&new, "alice");
    assert_eq!(renewed.send(secure, "closed", "hello").await.unwrap().status(), "200");
    deliveries(false).await;
    stop(server).await;
}

#[tokio::test]
async fn connection_ends_with_the_certificate_of_its_client() {
    let (folder, authority) = certified();
    // Certificates have whole seconds.
    let seconds = Clock::system().now().as_millis() / 1_000 + 3;
    let end = date_time_ymd(1970, 1, 1) + Duration::from_secs(seconds.unsigned_abs());
    authority.sign("alice", |params| params.not_after = end);
    let agents = "default_agent = \"closed\"\n[agents.closed]\nauth = [\"mtls\"]\n";
    let (server, secure) = start_two(folder.path(), "ca.pem", agents).await;
    let alice = authority.client(Some("alice"));
    let mut stream = Open::new(&alice, secure).await;
    stream.post("text/event-stream", "hold").await.unwrap();
    stream.until("event: task").await.unwrap();
    let mut waiting = Open::new(&alice, secure).await;
    waiting.post("text/plain", "hold").await.unwrap();
    let mut idle = Open::new(&alice, secure).await;
    assert!(idle.is_served().await);
    // The stream can be resumed with a new certificate.
    stream.until("retry: 1000").await.unwrap();
    assert!(!idle.is_served().await);
    assert!(alice.send(secure, "closed", "hello").await.is_err());
    let list = ["ops", "tasks", "--config", "a2ad.toml", "--json"];
    let listed = run(folder.path(), &list).await.succeeds("").to_owned();
    for line in listed.split("\"id\":\"").skip(1) {
        let id = line.split('"').next().unwrap();
        run(folder.path(), &["ops", "cancel", id, "--config", "a2ad.toml"]).await;
    }
    // A call that waits gets its answer.
    let answer = waiting.until("anceled").await.unwrap();
    assert!(answer.contains("HTTP/1.1 "), "{answer}");
    stop(server).await;
}
