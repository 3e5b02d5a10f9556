//! Listeners on all addresses, which record to which address each connection was opened and what it asked for.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use a2ad_outbound::dial::{DialError, Dialer, UrlSource};
use bytes::Bytes;
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::{Duration, timeout},
};

/// The usual ports, and some that a peer may not choose.
const PORTS: [u16; 6] = [80, 443, 8443, 22, 6379, 9000];
/// Marks the end of what was accepted before; no test connects to it otherwise.
const SENTINEL: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 127, 127, 127));
/// The header of redirects, to an address that is not public.
const REDIRECT: &str = "location: http://169.254.169.254/latest\r\n";
/// Longer than every timeout of the dialler.
const HANG: Duration = Duration::from_secs(30);

/// What the listeners have seen.
#[derive(Clone, Debug, Default)]
pub(crate) struct Seen {
    /// The address of each connection, in the order in which they were accepted.
    pub(crate) connections: Vec<SocketAddr>,
    /// The head of each request.
    pub(crate) requests: Vec<String>,
}

/// Listens until it is dropped.
pub(crate) struct Listeners {
    seen: watch::Sender<Seen>,
    tasks: JoinSet<()>,
}

impl Listeners {
    pub(crate) async fn start() -> Self {
        let mut listeners = Self { seen: watch::Sender::default(), tasks: JoinSet::new() };
        for port in PORTS {
            let listener = TcpListener::bind((Ipv6Addr::UNSPECIFIED, port)).await.unwrap();
            listeners.tasks.spawn(accept(listener, listeners.seen.clone()));
        }
        listeners
    }

    /// Everything until now.
    pub(crate) async fn seen(&self) -> Seen {
        for port in PORTS {
            let sentinel = SocketAddr::new(SENTINEL, port);
            // Each listener accepts in order: after this connection it has recorded all earlier ones.
            let _connection = TcpStream::connect(sentinel).await.unwrap();
            let recorded = |seen: &Seen| seen.connections.contains(&sentinel);
            self.seen.subscribe().wait_for(recorded).await.unwrap();
        }
        let mut seen = self.seen.borrow().clone();
        self.seen.send_modify(|seen| seen.connections.retain(|address| address.ip() != SENTINEL));
        seen.connections.retain(|address| address.ip() != SENTINEL);
        seen
    }

    pub(crate) async fn addresses(&self) -> Vec<IpAddr> {
        self.seen().await.connections.into_iter().map(|address| address.ip()).collect()
    }
}

async fn accept(listener: TcpListener, seen: watch::Sender<Seen>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let address = stream.local_addr().unwrap();
        let address = SocketAddr::new(address.ip().to_canonical(), address.port());
        seen.send_modify(|seen| seen.connections.push(address));
        connections.spawn(respond(stream, seen.clone()));
    }
}

/// Answers each request of a connection.
pub(crate) async fn respond(mut stream: impl AsyncRead + AsyncWrite + Unpin, seen: watch::Sender<Seen>) {
    let mut received = Vec::new();
    while stream.read_buf(&mut received).await.is_ok_and(|count| count > 0) {
        while let Some((head, length)) = first_request(&received) {
            received.drain(..length);
            let response = response(&head);
            let is_endless = head.starts_with("GET /endless ");
            seen.send_modify(|seen| seen.requests.push(head));
            let mut written = stream.write_all(response.as_bytes()).await;
            while is_endless && written.is_ok() {
                written = stream.write_all(&[b'x'; 1024]).await;
            }
            if written.is_err() {
                return;
            }
        }
    }
}

/// The head of the first request, and its length with head and body, once all of it has arrived.
fn first_request(received: &[u8]) -> Option<(String, usize)> {
    let end = received.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&received[..end]).to_string();
    let body = |line: &str| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse::<usize>().ok();
    let length = end + 4 + head.lines().find_map(body).unwrap_or_default();
    (received.len() >= length).then_some((head, length))
}

fn response(head: &str) -> String {
    let path = head.split(' ').nth(1).unwrap_or_default();
    let (status, header, length) = match path {
        "/redirect" => ("302 Found", REDIRECT, 2),
        "/redirect/301" => ("301 Moved Permanently", REDIRECT, 2),
        "/redirect/303" => ("303 See Other", REDIRECT, 2),
        "/redirect/307" => ("307 Temporary Redirect", REDIRECT, 2),
        "/redirect/308" => ("308 Permanent Redirect", REDIRECT, 2),
        "/unavailable" => ("503 Service Unavailable", "", 2),
        // More than is sent.
        "/incomplete" => ("200 OK", "", 3),
        "/endless" => return "HTTP/1.1 200 OK\r\n\r\n".to_owned(),
        _ => ("200 OK", "set-cookie: session=1\r\ncontent-encoding: gzip\r\n", 2),
    };
    format!("HTTP/1.1 {status}\r\n{header}content-length: {length}\r\n\r\nok")
}

/// Sends a GET request and reads the whole response.
pub(crate) async fn get(
    dialer: &Dialer,
    url: &str,
    source: UrlSource,
) -> Result<(StatusCode, Bytes), DialError> {
    let request = Request::get(url.parse::<Uri>().unwrap()).body(Full::default()).unwrap();
    let response = timeout(HANG, dialer.send(request, source)).await.expect("no response in time")?;
    let (head, body) = response.into_parts();
    let body = timeout(HANG, body.collect()).await.expect("no end of the response in time").unwrap();
    Ok((head.status, body.to_bytes()))
}

/// The kind of an error, which must have one of these texts without addresses.
pub(crate) fn kind(error: &DialError) -> &'static str {
    let text = error.to_string();
    let known = [
        ("forbidden", "this address is not allowed"),
        ("unreachable", "the server cannot be reached"),
        ("lost", "the server closed the connection without a response"),
        ("timed out", "the server did not respond in time"),
        ("too large", "the response is too large"),
    ];
    known.into_iter().find(|known| known.1 == text).unwrap_or_else(|| panic!("{text}")).0
}
