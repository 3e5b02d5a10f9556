//! Connections with TLS keep what connections without it guarantee.

use std::{fs, sync::Arc, time::Duration};

use a2ad_inbound::{
    listen::Caps,
    tls::{ServerTls, TlsFiles},
};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use engine::Clock;
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};
use tokio_rustls::{
    TlsConnector,
    client::TlsStream,
    rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs, pki_types::ServerName},
};

use crate::common::{Server, Setup, request, send_params};

/// Hang guard.
const LIMIT: Duration = Duration::from_secs(30);

/// A server with TLS, and a client that trusts it.
struct Secured {
    server: Server,
    client: Arc<ClientConfig>,
    _files: TempDir,
}

impl Secured {
    async fn open(caps: Caps) -> Self {
        let files = tempfile::tempdir().unwrap();
        let rcgen::CertifiedKey { cert, signing_key } =
            rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let write = |name: &str, label: &str, der: &[u8]| {
            let text =
                format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", BASE64_STANDARD.encode(der));
            let path = files.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let names = TlsFiles::new(
            write("cert.pem", "CERTIFICATE", cert.der()),
            write("key.pem", "PRIVATE KEY", &signing_key.serialize_der()),
        );
        let tls = ServerTls::load(names, Clock::system().now()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(cert.der().clone()).unwrap();
        let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
        let builder = builder.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
        let server = Setup { caps, tls: Some(tls), ..Setup::default() }.open().await;
        Self { server, client: Arc::new(builder.with_no_client_auth()), _files: files }
    }

    async fn connect(&self) -> TlsStream<TcpStream> {
        let stream = TcpStream::connect(self.server.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::clone(&self.client)).connect(name, stream).await.unwrap()
    }
}

fn post(body: &str, length: usize) -> String {
    format!(
        "POST / HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}"
    )
}

#[tokio::test]
async fn client_that_reads_below_the_minimum_rate_is_disconnected() {
    let caps = Caps { write_window: Duration::from_millis(500), min_write_rate: 1 << 30, ..Caps::default() };
    let secured = Secured::open(caps).await;
    let mut stream = secured.connect().await;
    let body = request("SendMessage", &send_params(&"x".repeat(12 << 20), ""));
    stream.write_all(post(&body, body.len()).as_bytes()).await.unwrap();
    let (mut read, mut buffer) = (0, vec![0; 64 << 10]);
    // The text is in the response twice.
    while let Ok(bytes @ 1..) = timeout(LIMIT, stream.read(&mut buffer)).await.unwrap() {
        read += bytes;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert!(read < 24 << 20, "the whole response was sent");
}

#[tokio::test]
async fn client_that_reads_above_the_minimum_rate_is_served() {
    let caps = Caps { write_window: Duration::from_millis(500), min_write_rate: 4 << 10, ..Caps::default() };
    let secured = Secured::open(caps).await;
    let mut stream = secured.connect().await;
    let body = request("SendMessage", &send_params(&"x".repeat(2 << 20), ""));
    stream.write_all(post(&body, body.len()).as_bytes()).await.unwrap();
    let (mut read, mut buffer) = (0, vec![0; 32 << 10]);
    while read < 4 << 20 {
        tokio::time::sleep(Duration::from_millis(10)).await;
        let bytes = timeout(LIMIT, stream.read(&mut buffer)).await.unwrap().unwrap();
        assert!(bytes > 0, "ended after {read} bytes");
        read += bytes;
    }
}

#[tokio::test]
async fn handshake_that_is_not_finished_is_closed() {
    let caps = Caps { handshake: Duration::from_millis(200), ..Caps::default() };
    let secured = Secured::open(caps).await;
    for beginning in [&b""[..], b"\x16\x03\x01\x02\x00\x01"] {
        let mut stream = TcpStream::connect(secured.server.address).await.unwrap();
        stream.write_all(beginning).await.unwrap();
        // An end or a reset.
        let ended = timeout(LIMIT, stream.read(&mut [0])).await.unwrap();
        assert!(!matches!(ended, Ok(1..)), "{ended:?}");
    }
}

#[tokio::test]
async fn response_to_a_refused_body_arrives_before_the_end() {
    let secured = Secured::open(Caps::default()).await;
    let mut stream = secured.connect().await;
    stream.write_all(post("", 1 << 30).as_bytes()).await.unwrap();
    stream.write_all(&vec![b' '; 1 << 20]).await.unwrap();
    let mut answer = Vec::new();
    timeout(LIMIT, stream.read_to_end(&mut answer)).await.unwrap().unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 413"), "{}", String::from_utf8_lossy(&answer));
}

#[tokio::test]
async fn idle_connection_ends_with_the_server() {
    let secured = Secured::open(Caps::default()).await;
    let mut stream = secured.connect().await;
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut buffer = vec![0; 4 << 10];
    assert!(timeout(LIMIT, stream.read(&mut buffer)).await.unwrap().unwrap() > 0);
    secured.server.drain.cancel();
    // Closed as TLS requires it: otherwise this would be an error.
    assert_eq!(timeout(LIMIT, stream.read(&mut buffer)).await.unwrap().unwrap(), 0);
    drop(stream);
    timeout(LIMIT, secured.server.serving).await.unwrap().unwrap();
}
