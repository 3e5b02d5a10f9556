//! A server with webhooks, its client, and what its operator sees.

use std::{fs, net::SocketAddr, time::Duration};

use a2ad::{
    Builder, Card, Server,
    agents::Echo,
    server::{PushOptions, PushPolicy},
};
use futures_util::future::join_all;
use outbound::dial::{DialPolicy, Dialer};
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::http1::Connection;
use tokio::{net::TcpStream, task::JoinSet, time::sleep};

/// How often a notification is attempted, unless it is given up before.
pub(crate) const ATTEMPTS: u64 = 3;
/// Between two looks at what is awaited.
const INTERVAL: Duration = Duration::from_millis(20);
/// Much longer than everything that is awaited takes.
const PATIENCE: Duration = Duration::from_secs(60);
/// Connections on which calls are made at the same time.
const CONNECTIONS: usize = 16;

/// The policy of a server that allows `http`, and these networks beside public addresses.
pub(crate) fn allowing(networks: &[&str]) -> DialPolicy {
    let allow = networks.iter().map(|network| network.parse().unwrap()).collect();
    DialPolicy { allow, allow_http: true, own_addresses: Vec::new() }
}

/// A server whose agent offers webhooks.
pub(crate) fn builder(dial_policy: DialPolicy) -> Builder {
    let waits = vec![Duration::from_millis(50); usize::try_from(ATTEMPTS).unwrap() - 1];
    let policy = PushPolicy { waits, challenge: true, ..PushPolicy::default() };
    let dialer = Dialer::builder().policy(dial_policy).build();
    Server::builder()
        .agent(Card::new("echo").push_notifications(true), Echo)
        .push(PushOptions { policy, dialer })
}

/// A server with an API for its operator, until it is dropped.
pub(crate) struct PushServer {
    pub(crate) address: SocketAddr,
    admin_token: String,
    _serving: JoinSet<()>,
    _folder: TempDir,
}

/// A notification that was given up.
#[derive(Debug)]
pub(crate) struct DeadLetter {
    pub(crate) id: String,
    /// The id of the webhook.
    pub(crate) config: String,
    pub(crate) attempts: u64,
    pub(crate) error: String,
}

impl PushServer {
    /// Starts a server on this port of loopback, which must be free.
    pub(crate) async fn start(port: u16, policy: DialPolicy) -> Self {
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let folder = TempDir::new().unwrap();
        let store = folder.path().join("tasks.db");
        let builder = builder(policy).store(&store);
        let mut serving = JoinSet::new();
        serving.spawn(async move { builder.serve(address).await.unwrap() });
        eventually(async || TcpStream::connect(address).await.ok()).await;
        let admin_token = fs::read_to_string(folder.path().join("tasks.db.keys/admin")).unwrap();
        let admin_token = admin_token.trim().to_owned();
        Self { address, admin_token, _serving: serving, _folder: folder }
    }

    /// Waits until no notification is pending, and returns those that were given up.
    pub(crate) async fn dead_letters(&self) -> Vec<DeadLetter> {
        eventually(async || {
            let pending = self.operate("GET", "?state=pending&pageSize=1").await;
            pending["deliveries"].as_array().unwrap().is_empty().then_some(())
        })
        .await;
        let mut letters = Vec::new();
        let mut query = "?state=dead&pageSize=100".to_owned();
        loop {
            let page = self.operate("GET", &query).await;
            letters.extend(page["deliveries"].as_array().unwrap().iter().map(DeadLetter::read));
            let Some(next) = page["nextPageToken"].as_str() else { return letters };
            query = format!("?state=dead&pageSize=100&pageToken={next}");
        }
    }

    /// Lets the operator send a notification once more, and returns what came of it.
    pub(crate) async fn resend(&self, letter: &DeadLetter) -> Value {
        self.operate("POST", &format!("/{}/resend", letter.id)).await
    }

    async fn operate(&self, method: &str, rest: &str) -> Value {
        let authorization = format!("Bearer {}", self.admin_token);
        let headers = [("Authorization", &*authorization), ("Content-Type", "application/json")];
        let mut connection = Connection::open(self.address).await.unwrap();
        let path = format!("/console/api/deliveries{rest}");
        let response = connection.exchange(method, &path, &headers, b"").await.unwrap();
        assert_eq!(response.status, 200, "{path}: {}", response.text());
        serde_json::from_slice(&response.body).unwrap()
    }

    /// Checks that there are this many tasks, and that all of them have ended as if they had no webhook.
    pub(crate) async fn check_tasks(&self, expected: usize) {
        let mut caller = testkit::rpc::Caller::new(self.address);
        let check = |task: Value| {
            assert_eq!(testkit::json::state(&task), "TASK_STATE_COMPLETED", "{task}");
            assert_eq!(testkit::json::artifact_text(&task), "hello", "{task}");
        };
        let total = caller.list("echo", json!({"includeArtifacts": true}), check).await.unwrap();
        assert_eq!(usize::try_from(total).unwrap(), expected);
    }
}

impl DeadLetter {
    fn read(delivery: &Value) -> Self {
        let text = |name: &str| delivery[name].as_str().unwrap().to_owned();
        Self {
            id: text("id"),
            config: text("config"),
            attempts: delivery["attempts"].as_u64().unwrap(),
            error: text("error"),
        }
    }
}

/// Calls the agent with each method and its parameters, many at a time, and returns the responses in the same order.
pub(crate) async fn call_all(address: SocketAddr, calls: &[(&str, Value)]) -> Vec<Value> {
    let size = calls.len().div_ceil(CONNECTIONS).max(1);
    join_all(calls.chunks(size).map(|calls| call_each(address, calls))).await.concat()
}

async fn call_each(address: SocketAddr, calls: &[(&str, Value)]) -> Vec<Value> {
    let mut connection = Connection::open(address).await.unwrap();
    let mut responses = Vec::new();
    for (method, params) in calls {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).to_string();
        // The draft, whose methods are written in lower case, has no such header.
        let version = [("A2A-Version", "1.0")];
        let headers = if method.starts_with("tasks/") { &[][..] } else { &version };
        let response = connection.post_json("/a2a/echo", headers, body.as_bytes()).await.unwrap();
        responses.push(serde_json::from_slice(&response.body).unwrap());
    }
    responses
}

async fn eventually<T>(mut attempt: impl AsyncFnMut() -> Option<T>) -> T {
    let found = async {
        loop {
            match attempt().await {
                Some(found) => return found,
                None => sleep(INTERVAL).await,
            }
        }
    };
    tokio::time::timeout(PATIENCE, found).await.expect("it did not happen in time")
}
