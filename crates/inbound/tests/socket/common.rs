//! A test server, and helpers for requests and responses.

pub(crate) mod agents;
pub(crate) mod channel;
pub(crate) mod generation;
mod mask;
mod wire;

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    ops::{Deref, DerefMut},
    sync::Arc,
    time::Duration,
};

use a2ad_inbound::{
    AgentSettings, AllowedHost, Caller, HttpService, Ready, ServerOptions,
    listen::{self, Caps, Socket},
    tls::ServerTls,
};
use axum::{
    extract::Request,
    middleware::{Next, from_fn},
    response::Response,
};
use engine::{Catalog, Clock, Engine, Feed, Limits, RegisteredAgent};
use protocol::Timestamp;
use store::Sqlite;
use tempfile::TempDir;
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub(crate) use mask::mask;
pub(crate) use wire::{Answer, Head, Wire};

/// How long a test waits for anything before it fails.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The fixed time of every clock in these tests.
pub(crate) const NOW: &str = "2026-01-02T03:04:05.678Z";

/// The configuration of a test server.
pub(crate) struct Setup {
    pub(crate) caps: Caps,
    pub(crate) options: Options,
    pub(crate) limits: Limits,
    /// Agents beside the built-in ones.
    pub(crate) agents: Vec<RegisteredAgent>,
    pub(crate) tls: Option<Arc<ServerTls>>,
}

/// The options of a test server, and the settings of its agents.
pub(crate) struct Options {
    /// The agent at `/`.
    pub(crate) default_agent: String,
    /// By agent id; others have the default settings.
    pub(crate) agents: BTreeMap<String, AgentSettings>,
    /// The skills that only the extended card shows, each with its agent.
    pub(crate) extended_skills: Vec<(&'static str, &'static str)>,
    server: ServerOptions,
}

impl Deref for Options {
    type Target = ServerOptions;

    fn deref(&self) -> &ServerOptions {
        &self.server
    }
}

impl DerefMut for Options {
    fn deref_mut(&mut self) -> &mut ServerOptions {
        &mut self.server
    }
}

impl Default for Setup {
    /// The built-in agents, with `echo` at `/`, for the hosts that the tests name.
    fn default() -> Self {
        Self {
            caps: Caps::default(),
            options: Options {
                default_agent: "echo".into(),
                agents: BTreeMap::new(),
                extended_skills: Vec::new(),
                server: ServerOptions {
                    allowed_hosts: hosts(&["example.test", "x"]),
                    ..ServerOptions::default()
                },
            },
            limits: Limits::default(),
            agents: Vec::new(),
            tls: None,
        }
    }
}

impl Setup {
    /// The default setup with changed options.
    pub(crate) fn with(change: impl FnOnce(&mut Options)) -> Self {
        let mut setup = Self::default();
        change(&mut setup.options);
        setup
    }

    /// Serves on a free port.
    pub(crate) async fn open(self) -> Server {
        self.open_within(|service| service).await
    }

    /// Serves within an application that identifies callers: the header `test-caller` has their name.
    pub(crate) async fn open_with_callers(self) -> Server {
        async fn identify(mut req: Request, next: Next) -> Response {
            let name = req.headers().get("test-caller").map(|name| name.to_str().unwrap().to_owned());
            if let Some(name) = name {
                req.extensions_mut().insert(Caller::new(name));
            }
            next.run(req).await
        }
        self.open_within(|service| service.router().layer(from_fn(identify)).into()).await
    }

    async fn open_within(self, application: impl FnOnce(HttpService) -> HttpService) -> Server {
        let folder = tempfile::tempdir().unwrap();
        let (feed, clock) = (Feed::default(), Clock::manual(Timestamp::parse(NOW).unwrap()));
        let options =
            store::SqliteOptions { sync: false, ..store::SqliteOptions::at(folder.path().join("a2ad.db")) };
        let store = Arc::new(Sqlite::open(&options, feed.clone(), &clock).unwrap());
        let Options { default_agent, agents: mut settings, extended_skills, server } = self.options;
        let agents = outbound::agents::demo().into_iter().chain(self.agents);
        let agents = agents.map(|agent| match settings.remove(&agent.info().id) {
            Some(settings) => agent.with_settings(settings),
            None => agent,
        });
        let agents = agents.map(|agent| {
            let of_agent = extended_skills.iter().filter(|(id, _)| *id == agent.info().id);
            let skills: Vec<&str> = of_agent.map(|(_, skill)| *skill).collect();
            skills.into_iter().fold(agent, agents::with_extended_skill)
        });
        let catalog = Catalog::new(default_agent, agents);
        let engine = Engine::start(store.clone(), feed, catalog, clock, self.limits);
        let ready = Ready::default();
        let own = HttpService::new(engine.clone(), server, ready.clone());
        let service = application(own.clone());
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (tasks, drain) = (TaskTracker::new(), CancellationToken::new());
        let socket = Socket { tls: self.tls, ..Socket::plain(listener) };
        let serving = tasks.spawn(listen::serve_all(vec![socket], service, self.caps, drain.clone()));
        Server { address, engine, service: own, store, ready, drain, serving, _tasks: tasks, _folder: folder }
    }
}

/// A listening server.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) engine: Engine,
    /// Without the application around it.
    pub(crate) service: HttpService,
    pub(crate) store: Arc<Sqlite>,
    pub(crate) ready: Ready,
    /// Cancel to shut the server down.
    pub(crate) drain: CancellationToken,
    /// Ends when the last connection has ended.
    pub(crate) serving: JoinHandle<()>,
    _tasks: TaskTracker,
    _folder: TempDir,
}

impl Server {
    /// A server with the default setup.
    pub(crate) async fn open() -> Self {
        Setup::default().open().await
    }

    pub(crate) async fn connect(&self) -> Wire {
        Wire::connect(self.address).await
    }

    /// Sends the head and body of a request on a new connection and reads the response.
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

    /// Calls a method of 1.0 at an agent's own path.
    pub(crate) async fn call(&self, agent: &str, method: &str, params: &str) -> Answer {
        let answer = self.post_v1(&format!("/a2a/{agent}"), &request(method, params)).await;
        assert_eq!(answer.header("a2ad-dialect"), Some("1.0;profile=neutral"), "{method}");
        answer
    }

    /// Calls a method of 1.0 that responds with a stream, up to the head of the response.
    pub(crate) async fn stream(&self, agent: &str, method: &str, params: &str) -> Wire {
        let head = format!("POST /a2a/{agent} HTTP/1.1\r\na2a-version: 1.0");
        self.open_stream(&head, &request(method, params)).await.0
    }

    /// Sends a request whose response is a stream, and reads the head of the response.
    pub(crate) async fn open_stream(&self, head: &str, body: &str) -> (Wire, Head) {
        let mut wire = self.connect().await;
        wire.send(head, body).await;
        let head = wire.head().await;
        assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
        (wire, head)
    }

    /// Starts a task of `echo` that works until it is cancelled; returns its id.
    pub(crate) async fn hold(&self) -> String {
        let params =
            send_params("hold", "").replace("]}}", r#"]},"configuration":{"returnImmediately":true}}"#);
        member(&self.call("echo", "SendMessage", &params).await.body, "id")
    }

    /// Waits until all memory is released.
    pub(crate) async fn released(&self) {
        with_timeout(async {
            while self.engine.memory().used() > 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }
}

/// A list for the option `allowed_hosts`.
pub(crate) fn hosts(names: &[&str]) -> Vec<AllowedHost> {
    names.iter().map(|name| name.parse().unwrap()).collect()
}

/// A JSON-RPC body.
pub(crate) fn request(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{params}}}"#)
}

/// The parameters of SendMessage in 1.0; `more` follows the parts of the message.
pub(crate) fn send_params(text: &str, more: &str) -> String {
    format!(r#"{{"message":{{"messageId":"m","role":"ROLE_USER","parts":[{{"text":"{text}"}}]{more}}}}}"#)
}

/// The value of the first member of this name.
pub(crate) fn member(body: &str, name: &str) -> String {
    let start = body.find(&format!("\"{name}\":\"")).unwrap_or_else(|| panic!("no {name} in {body}"));
    let value = &body[start + name.len() + 4..];
    value[..value.find('"').unwrap()].to_owned()
}

/// Fails the test if the future takes longer than [`TIMEOUT`].
pub(crate) async fn with_timeout<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(TIMEOUT, future).await.expect("the test timed out")
}

/// Stops the paused time of a test from advancing while threads outside the runtime work, until this is dropped.
///
/// Paused time advances whenever every task waits, and a task that waits for the store would cause that. A blocking job
/// prevents it; when the job times out, time advances and the test's timeouts fire.
pub(crate) struct TimeHold {
    _until: std::sync::mpsc::Sender<()>,
}

pub(crate) fn hold_time() -> TimeHold {
    let (until, dropped) = std::sync::mpsc::channel();
    tokio::task::spawn_blocking(move || {
        let _ = dropped.recv_timeout(TIMEOUT);
    });
    TimeHold { _until: until }
}
