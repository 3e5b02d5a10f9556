//! The key server of an issuer on loopback.

use std::{
    collections::HashMap,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use a2ad_inbound::{FetchKeys, KeyFetchError, KeyUrl};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use testkit::http1::Connection;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
};

use crate::common::with_timeout;

/// Serves documents until it is dropped.
pub(crate) struct KeyServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    _task: JoinSet<()>,
}

struct Shared {
    documents: Mutex<HashMap<String, String>>,
    /// The path of each request.
    requests: watch::Sender<Vec<String>>,
    /// What was asked for, in the order of the requests.
    asked: Mutex<Vec<KeyUrl>>,
    availability: watch::Sender<Availability>,
}

/// How requests are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Availability {
    Up,
    /// With an error.
    Down,
    /// Not before this changes.
    Held,
}

impl KeyServer {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new(Shared {
            documents: Mutex::default(),
            requests: watch::Sender::default(),
            asked: Mutex::default(),
            availability: watch::Sender::new(Availability::Up),
        });
        let mut task = JoinSet::new();
        task.spawn(accept(listener, Arc::clone(&shared)));
        Self { address, shared, _task: task }
    }

    /// The URL of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Serves a document, in the place of an earlier one.
    pub(crate) fn serve(&self, path: &str, document: &str) {
        self.shared.documents.lock().unwrap().insert(path.into(), document.into());
    }

    pub(crate) fn set(&self, availability: Availability) {
        self.shared.availability.send_replace(availability);
    }

    /// The paths of the requests until now.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.shared.requests.borrow().clone()
    }

    /// Waits for so many requests in all.
    pub(crate) async fn requested(&self, count: usize) {
        let mut requests = self.shared.requests.subscribe();
        with_timeout(requests.wait_for(|requests| requests.len() >= count)).await.unwrap();
    }

    /// The addresses that were asked for.
    pub(crate) fn asked(&self) -> Vec<KeyUrl> {
        self.shared.asked.lock().unwrap().clone()
    }

    /// Fetches from servers on loopback, whoever has named them.
    pub(crate) fn fetcher(&self) -> Arc<dyn FetchKeys> {
        Arc::new(Fetcher(Arc::clone(&self.shared)))
    }
}

struct Fetcher(Arc<Shared>);

impl FetchKeys for Fetcher {
    fn fetch(&self, url: KeyUrl) -> BoxFuture<'static, Result<Bytes, KeyFetchError>> {
        self.0.asked.lock().unwrap().push(url.clone());
        let (KeyUrl::Configured(url) | KeyUrl::Discovered(url)) = url;
        Box::pin(async move { get(&url).await.map_err(KeyFetchError) })
    }
}

async fn get(url: &str) -> Result<Bytes, String> {
    let url: http::Uri = url.parse().map_err(|_| "not a URL")?;
    let address = url.authority().and_then(|authority| authority.as_str().parse().ok());
    let address = address.ok_or("not an address")?;
    let mut connection = Connection::open(address).await.map_err(|error| error.to_string())?;
    let response = connection.get(url.path()).await.map_err(|error| error.to_string())?;
    if response.status == 200 { Ok(response.body.into()) } else { Err(format!("status {}", response.status)) }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        connections.spawn(respond(stream, Arc::clone(&shared)));
    }
}

async fn respond(mut stream: TcpStream, shared: Arc<Shared>) {
    let mut received = Vec::new();
    while !received.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut received).await.unwrap() == 0 {
            return;
        }
    }
    let head = String::from_utf8(received).unwrap();
    let path = head.split(' ').nth(1).unwrap().to_owned();
    shared.requests.send_modify(|requests| requests.push(path.clone()));
    let mut availability = shared.availability.subscribe();
    let availability = *availability.wait_for(|now| *now != Availability::Held).await.unwrap();
    let document = shared.documents.lock().unwrap().get(&path).cloned();
    let (status, body) = match (availability, document) {
        (Availability::Up, Some(document)) => ("200 OK", document),
        (Availability::Up, None) => ("404 Not Found", String::new()),
        (Availability::Down | Availability::Held, _) => ("503 Service Unavailable", String::new()),
    };
    let response = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    // The client may have given up.
    let _ = stream.write_all(response.as_bytes()).await;
}
