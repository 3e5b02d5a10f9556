//! Tools of a user, and servers that have them behind their agents.

use std::{
    fs,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::Path,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::Duration,
};

use serde_json::Value;
use tempfile::TempDir;
use testkit::{
    http1::{self, Connection, Response},
    process::{self, Server},
};

const TIMEOUT: Duration = Duration::from_secs(30);
/// The static token of agents that require one.
pub(crate) const TOKEN: &str = "a-token-of-sixteen-bytes-and-more";

/// An HTTP function; it lives as long as the test.
pub(crate) struct Function {
    pub(crate) url: String,
    calls: Arc<AtomicU32>,
}

/// What a function does with a request.
#[derive(Clone)]
enum Behaviour {
    Returns {
        media_type: String,
        body: String,
    },
    /// It does not respond.
    Hangs,
}

impl Function {
    pub(crate) fn returning(media_type: &str, body: &str) -> Self {
        Self::start(Behaviour::Returns { media_type: media_type.into(), body: body.into() })
    }

    pub(crate) fn hanging() -> Self {
        Self::start(Behaviour::Hangs)
    }

    /// How many requests it has had.
    pub(crate) fn calls(&self) -> u32 {
        self.calls.load(Ordering::SeqCst)
    }

    fn start(behaviour: Behaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap());
        let calls = Arc::new(AtomicU32::new(0));
        let counted = Arc::clone(&calls);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (behaviour, calls) = (behaviour.clone(), Arc::clone(&counted));
                thread::spawn(move || behaviour.respond(stream.unwrap(), &calls));
            }
        });
        Self { url, calls }
    }
}

impl Behaviour {
    fn respond(&self, mut stream: TcpStream, calls: &AtomicU32) {
        let mut request = Vec::new();
        let mut buffer = [0; 4096];
        while !is_complete(&request) {
            match stream.read(&mut buffer) {
                Ok(0) | Err(_) => return,
                Ok(count) => request.extend_from_slice(&buffer[..count]),
            }
        }
        calls.fetch_add(1, Ordering::SeqCst);
        let Self::Returns { media_type, body } = self else {
            // Until the caller closes the connection.
            let _ = stream.read(&mut buffer);
            return;
        };
        let length = body.len();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: {media_type}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
        );
        let _ = stream.write_all((head + body).as_bytes());
    }
}

fn is_complete(request: &[u8]) -> bool {
    let Some(end) = request.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&request[..end]).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    request.len() >= end + 4 + length.unwrap_or(0)
}

/// An address at which nothing listens.
pub(crate) fn closed_address() -> SocketAddr {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap()
}

/// A folder with a configuration file.
pub(crate) fn configured(config: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a2ad.toml"), config).unwrap();
    folder
}

fn a2ad(folder: &Path, arguments: &[&str]) -> tokio::process::Command {
    let mut command = process::command(env!("CARGO_BIN_EXE_a2ad"));
    command.current_dir(folder).args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.env_remove("A2A_SECRET").env("A2A_API_KEY", TOKEN);
    command
}

/// A new API key of an agent, before the server starts. All have the same owner.
pub(crate) async fn new_key(folder: &TempDir, agent: &str) -> String {
    let arguments = ["keys", "new", agent, "--owner", "alice"];
    let output = a2ad(folder.path(), &arguments).output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// A server that runs.
pub(crate) struct Served {
    pub(crate) server: Server,
    folder: TempDir,
}

impl Served {
    pub(crate) async fn start(config: &str) -> Self {
        Self::start_in(configured(config)).await
    }

    pub(crate) async fn start_in(folder: TempDir) -> Self {
        let command = a2ad(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
        Self { server: Server::start_command(command).await.unwrap(), folder }
    }

    /// What `a2ad check` prints.
    pub(crate) async fn check(&self) -> String {
        let output = a2ad(self.folder.path(), &["check", "--json"]).output().await.unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    pub(crate) async fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response {
        let sent = http1::request(self.server.address, method, path, headers, body.as_bytes());
        tokio::time::timeout(TIMEOUT, sent).await.unwrap().unwrap()
    }

    /// The response to a JSON-RPC call.
    pub(crate) async fn respond(&self, path: &str, headers: &[(&str, &str)], body: &Value) -> Response {
        let mut all = vec![("content-type", "application/json")];
        all.extend_from_slice(headers);
        self.request("POST", path, &all, &body.to_string()).await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Value {
        let response = self.respond(path, &[], body).await;
        response.json().unwrap_or_else(|_| panic!("{path}: {} {}", response.status, response.text()))
    }

    pub(crate) async fn get(&self, path: &str) -> Value {
        let response = self.request("GET", path, &[], "").await;
        response.json().unwrap_or_else(|_| panic!("{path}: {} {}", response.status, response.text()))
    }

    /// The events of a streaming call.
    pub(crate) async fn stream(&self, path: &str, body: &Value) -> Vec<Value> {
        let mut connection = Connection::open(self.server.address).await.unwrap();
        connection.send_json(path, &[], body.to_string().as_bytes()).await.unwrap();
        connection.head().await.unwrap();
        let mut events = Vec::new();
        while let Some(event) = tokio::time::timeout(TIMEOUT, connection.event()).await.unwrap().unwrap() {
            events.push(serde_json::from_str(&event.data).unwrap());
        }
        events
    }
}
