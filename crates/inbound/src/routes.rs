//! Paths become doors: one table.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use axum::{
    Router,
    extract::{Path, Request, State, rejection::PathRejection},
    response::Response,
    routing::{get, post},
};
use engine::Engine;
use http::{HeaderMap, Method, StatusCode, Uri};
use protocol::{Error, ErrorKind, Timestamp, jsonrpc::Id};

use crate::{auth, bindings::jsonrpc, card, respond};

/// How the doors are set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// The agent at `/`.
    pub default_agent: String,
    /// The largest body that is read.
    pub max_body_bytes: usize,
}

impl Options {
    /// This agent at `/`, bodies up to 16 MiB.
    pub fn new(default_agent: impl Into<String>) -> Self {
        Self { default_agent: default_agent.into(), max_body_bytes: 16 << 20 }
    }
}

/// Whether this process wants new work: false while it drains or cannot write. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Ready(Arc<AtomicBool>);

impl Default for Ready {
    fn default() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }
}

impl Ready {
    /// Says no from now on.
    pub fn withdraw(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    fn is_ready(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What every door needs.
pub(crate) struct Doors {
    pub(crate) engine: Engine,
    pub(crate) max_body_bytes: usize,
    default_agent: String,
    ready: Ready,
    /// Since when the cards are what they are.
    since: Timestamp,
}

/// Everything a server answers.
pub fn router(engine: Engine, options: Options, ready: Ready) -> Router {
    let Options { default_agent, max_body_bytes } = options;
    let since = engine.clock().now();
    let doors = Arc::new(Doors { engine, max_body_bytes, default_agent, ready, since });
    Router::new()
        .route("/", post(call_default))
        .route("/a2a/{agent}", post(call_agent))
        .route("/.well-known/agent-card.json", get(default_card))
        .route("/a2a/{agent}/.well-known/agent-card.json", get(agent_card))
        .route("/healthz", get(healthy))
        .route("/readyz", get(ready_now))
        .method_not_allowed_fallback(wrong_method)
        .fallback(nothing_here)
        .with_state(doors)
}

async fn call_default(State(doors): State<Arc<Doors>>, req: Request) -> Response {
    jsonrpc::handle(&doors, auth::anonymous(&doors.default_agent), req).await
}

async fn call_agent(State(doors): State<Arc<Doors>>, agent: AgentPath, req: Request) -> Response {
    jsonrpc::handle(&doors, auth::anonymous(&agent_name(agent)), req).await
}

/// The agent a path names; what is no text names none.
type AgentPath = Result<Path<String>, PathRejection>;

fn agent_name(path: AgentPath) -> String {
    path.map(|Path(agent)| agent).unwrap_or_default()
}

async fn default_card(State(doors): State<Arc<Doors>>, uri: Uri, headers: HeaderMap) -> Response {
    show_card(&doors, &doors.default_agent, "/", &uri, &headers)
}

async fn agent_card(
    State(doors): State<Arc<Doors>>,
    agent: AgentPath,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let agent = agent_name(agent);
    show_card(&doors, &agent, &format!("/a2a/{agent}"), &uri, &headers)
}

fn show_card(doors: &Doors, agent: &str, path: &str, uri: &Uri, headers: &HeaderMap) -> Response {
    match doors.engine.agents().get(agent) {
        Some(hosted) => {
            let url = format!("{}{path}", card::origin(uri, headers));
            card::respond(hosted.profile(), &url, headers, doors.since)
        }
        None => {
            let text = format!("there is no agent {agent:?} here");
            refuse(doors, &Error::new(ErrorKind::AgentDisabled, text))
        }
    }
}

async fn healthy() -> Response {
    respond::json(br#"{"status":"ok"}"#.to_vec())
}

async fn ready_now(State(doors): State<Arc<Doors>>) -> Response {
    if doors.ready.is_ready() {
        return respond::json(br#"{"status":"ready"}"#.to_vec());
    }
    let mut response = respond::json(br#"{"status":"not ready"}"#.to_vec());
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
}

/// The router adds which methods there are.
async fn wrong_method(State(doors): State<Arc<Doors>>, method: Method) -> Response {
    let text = format!("{method} is not served at this path; calls are POST, everything else is GET");
    let mut response = refuse(&doors, &Error::new(ErrorKind::MethodNotFound, text));
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response
}

async fn nothing_here(State(doors): State<Arc<Doors>>) -> Response {
    let text = "nothing is served at this path; calls go to / or /a2a/{agent}, \
                cards are at /.well-known/agent-card.json and /a2a/{agent}/.well-known/agent-card.json";
    let mut response = refuse(&doors, &Error::new(ErrorKind::MethodNotFound, text));
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

fn refuse(doors: &Doors, error: &Error) -> Response {
    respond::refuse(&Id::null(), error, doors.engine.clock().now())
}
