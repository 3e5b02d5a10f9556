//! A server to knock at, and words for the bytes that go to and fro.

pub(crate) mod agents;
pub(crate) mod channel;
mod mask;
pub(crate) mod tongue;
mod wire;

use std::{net::SocketAddr, sync::Arc, time::Duration};

use a2ad_inbound::{
    Front, Options, Ready,
    listen::{self, Caps},
};
use engine::{Agents, Clock, Engine, Feed, Limits, RegisteredAgent};
use protocol::Timestamp;
use store::Sqlite;
use tempfile::TempDir;
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub(crate) use mask::mask;
pub(crate) use wire::{Answer, Wire};

/// How long anything may take before a test gives it up.
const PATIENCE: Duration = Duration::from_secs(20);

/// What every clock of these tests shows, for ever.
pub(crate) const NOW: &str = "2026-01-02T03:04:05.678Z";

/// What to open a server with.
pub(crate) struct Setup {
    pub(crate) caps: Caps,
    pub(crate) doors: Options,
    pub(crate) limits: Limits,
    /// Agents beside the built-in ones.
    pub(crate) agents: Vec<RegisteredAgent>,
}

impl Default for Setup {
    /// The built-in agents, with `echo` at `/`.
    fn default() -> Self {
        Self {
            caps: Caps::default(),
            doors: Options::new("echo"),
            limits: Limits::default(),
            agents: Vec::new(),
        }
    }
}

impl Setup {
    /// The usual doors, but for what is changed about them.
    pub(crate) fn with(change: impl FnOnce(&mut Options)) -> Self {
        let mut setup = Self::default();
        change(&mut setup.doors);
        setup
    }

    /// Serves on a free port.
    pub(crate) async fn open(self) -> Server {
        let folder = tempfile::tempdir().unwrap();
        let (feed, clock) = (Feed::default(), Clock::manual(Timestamp::parse(NOW).unwrap()));
        let options = store::Options { sync: false, ..store::Options::at(folder.path().join("a2ad.db")) };
        let store = Arc::new(Sqlite::open(&options, feed.clone(), &clock).unwrap());
        let agents = Agents::new(outbound::agents::demo().into_iter().chain(self.agents));
        let engine = Engine::start(store.clone(), feed, agents, clock, self.limits);
        let ready = Ready::default();
        let front = Front::new(engine.clone(), self.doors, ready.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tasks, drain) = (TaskTracker::new(), CancellationToken::new());
        let serving = tasks.spawn(listen::serve(listener, front, self.caps, drain.clone()));
        Server { address, engine, store, ready, drain, serving, _tasks: tasks, _folder: folder }
    }
}

/// A server that listens.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) engine: Engine,
    pub(crate) store: Arc<Sqlite>,
    pub(crate) ready: Ready,
    /// Cancelled when the process is told to stop.
    pub(crate) drain: CancellationToken,
    /// Ends when the last connection has.
    pub(crate) serving: JoinHandle<()>,
    _tasks: TaskTracker,
    _folder: TempDir,
}

impl Server {
    /// A server with the usual bounds.
    pub(crate) async fn open() -> Self {
        Setup::default().open().await
    }

    /// A connection.
    pub(crate) async fn connect(&self) -> Wire {
        Wire::connect(self.address).await
    }

    /// Sends the head and body of a request on a connection of its own and reads the answer.
    pub(crate) async fn exchange(&self, head: &str, body: &str) -> Answer {
        let mut wire = self.connect().await;
        wire.send(head, body).await;
        wire.answer().await
    }

    /// Posts a JSON-RPC body to a path.
    pub(crate) async fn post(&self, path: &str, body: &str) -> Answer {
        self.exchange(&format!("POST {path} HTTP/1.1\r\ncontent-type: application/json"), body).await
    }

    /// Posts a JSON-RPC body to a path, naming 1.0.
    pub(crate) async fn post_v1(&self, path: &str, body: &str) -> Answer {
        self.exchange(&format!("POST {path} HTTP/1.1\r\na2a-version: 1.0"), body).await
    }

    /// Gets a path.
    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.exchange(&format!("GET {path} HTTP/1.1"), "").await
    }

    /// Calls a method of 1.0 of an agent.
    pub(crate) async fn call(&self, agent: &str, method: &str, params: &str) -> Answer {
        let answer = self.post_v1(&format!("/a2a/{agent}"), &request(method, params)).await;
        assert_eq!(answer.header("a2ad-dialect"), Some("v1;profile=neutral"), "{method}");
        answer
    }

    /// Calls a method of 1.0 of an agent that answers with a stream, up to the head of the answer.
    pub(crate) async fn stream(&self, agent: &str, method: &str, params: &str) -> Wire {
        let mut wire = self.connect().await;
        let head = format!("POST /a2a/{agent} HTTP/1.1\r\na2a-version: 1.0");
        wire.send(&head, &request(method, params)).await;
        let head = wire.head().await;
        assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
        wire
    }
}

/// A JSON-RPC body.
pub(crate) fn request(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
}

/// The parameters of a send of this text; `more` follows the parts of the message.
pub(crate) fn said(text: &str, more: &str) -> String {
    format!(r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{{"text":"{text}"}}]{more}}}}}"#)
}

/// The value of the first member of this name.
pub(crate) fn member(body: &str, name: &str) -> String {
    let start = body.find(&format!("\"{name}\":\"")).unwrap_or_else(|| panic!("no {name} in {body}"));
    let value = &body[start + name.len() + 4..];
    value[..value.find('"').unwrap()].to_owned()
}

/// Waits, but not for ever.
pub(crate) async fn within<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future).await.expect("it takes far too long")
}

/// Keeps the paused time of a test where it is while threads outside the runtime work, until this is dropped.
///
/// Paused time runs ahead whenever every task waits, and a task that waits for the store would set it off. A
/// blocking job holds it; one that is given up lets time run, so that every timeout of the test strikes.
pub(crate) struct StandStill {
    _until: std::sync::mpsc::Sender<()>,
}

pub(crate) fn stand_still() -> StandStill {
    let (until, dropped) = std::sync::mpsc::channel();
    tokio::task::spawn_blocking(move || {
        let _ = dropped.recv_timeout(PATIENCE);
    });
    StandStill { _until: until }
}
