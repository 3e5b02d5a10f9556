//! Paths become doors: one table.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Path, Request, State, rejection::PathRejection},
    response::Response,
    routing::{MethodRouter, any, get, post},
};
use http::{Extensions, HeaderMap, Method, StatusCode, Uri, header, request::Parts};
use protocol::{
    Dialect, Error, ErrorKind, GetExtendedCard, Operation, OperationKind, Violation, dialect::v1,
    error::in_short, jsonrpc::Id,
};

use crate::{
    admit,
    bindings::{grpc::reach::Reach, jsonrpc, rest, text},
    card::{self, CardName, Shown},
    choose::Asked,
    page,
    perform::perform,
    respond::{self, Envelope, Reader},
    server_state::{Endpoint, ProfileOf, ServerState},
    trace::Line,
    version::Version,
};

/// The paths at which the default agent takes JSON-RPC, each with its house style. The last ones are those of the
/// package `python-a2a`, which posts each method of the draft to a path of its own.
const RPC: [(&str, ProfileOf); 17] = [
    ("/", |profiles| &profiles.neutral),
    ("/a2a", |profiles| &profiles.neutral),
    ("/a2a/", |profiles| &profiles.neutral),
    ("/_a2a", |profiles| &profiles.fold),
    ("/_a2a/", |profiles| &profiles.fold),
    ("/_agent-native/a2a", |profiles| &profiles.agent_native),
    ("/_agent-native/a2a/", |profiles| &profiles.agent_native),
    ("/a2a/rpc", |profiles| &profiles.agentos),
    ("/a2a/rpc/", |profiles| &profiles.agentos),
    ("/tasks/send", |profiles| &profiles.draft_alias),
    ("/tasks/sendSubscribe", |profiles| &profiles.draft_alias),
    ("/tasks/get", |profiles| &profiles.draft_alias),
    ("/tasks/cancel", |profiles| &profiles.draft_alias),
    ("/a2a/tasks/send", |profiles| &profiles.draft_alias),
    ("/a2a/tasks/sendSubscribe", |profiles| &profiles.draft_alias),
    ("/a2a/tasks/get", |profiles| &profiles.draft_alias),
    ("/a2a/tasks/cancel", |profiles| &profiles.draft_alias),
];

/// The paths of HTTP+JSON that would be taken for an agent's.
const REST_BESIDE_AGENTS: [&str; 5] = ["message:send", "message:stream", "tasks", "extendedAgentCard", "v1"];

/// The names of cards.
const CARDS: [(&str, CardName); 2] =
    [(".well-known/agent-card.json", CardName::AgentCard), (".well-known/agent.json", CardName::Agent)];

/// Where clients of 0.2.1 to 0.2.6 look for the extended card: beside the endpoint, or below it. Beside `/a2a/{agent}` is a
/// path that all agents share, and none of them is told there.
const EXTENDED_CARD: &str = "agent/authenticatedExtendedCard";

/// Whether `/a2a/{name}` means something else than an agent of that name.
pub fn is_own_path(name: &str) -> bool {
    RPC.iter().any(|(path, _)| path.strip_prefix("/a2a/") == Some(name))
        || rest::find(&format!("/a2a/{name}")).is_some()
        || rest::is_taken(name)
        // Clients take these for steps in a path.
        || matches!(name, "." | "..")
}

/// All paths there are.
pub(crate) fn table(server_state: Arc<ServerState>) -> Router {
    let mut router = Router::new();
    for (path, profile) in RPC {
        let call = move |State(server_state): State<Arc<ServerState>>, req: Request| async move {
            jsonrpc::handle(&server_state, server_state.default(profile), req).await
        };
        // A path that HTTP+JSON has too is JSON-RPC's for the verb that JSON-RPC uses.
        let others = if rest::find(path).is_some() { any(all_the_rest) } else { MethodRouter::new() };
        router = router.route(path, others.post(call));
    }
    for (file, name) in CARDS {
        let default = move |State(server_state): State<Arc<ServerState>>, req: Request| async move {
            show_card(&server_state, &server_state.default_agent, name, &req)
        };
        let own = move |State(server_state): State<Arc<ServerState>>, agent: AgentPath, req: Request| async move {
            show_card(&server_state, &agent_name(agent), name, &req)
        };
        router = router.route(&format!("/{file}"), get(default));
        router = router.route(&format!("/a2a/{{agent}}/{file}"), get(own));
    }
    let default = async |State(server_state): State<Arc<ServerState>>, req: Request| {
        show_extended_card(&server_state, server_state.root(), req).await
    };
    let own = async |State(server_state): State<Arc<ServerState>>, agent: AgentPath, req: Request| {
        show_extended_card(&server_state, server_state.own(&agent_name(agent)), req).await
    };
    router = router
        .route(&format!("/{EXTENDED_CARD}"), get(default))
        .route(&format!("/a2a/{{agent}}/{EXTENDED_CARD}"), get(own));
    for name in REST_BESIDE_AGENTS {
        router = router.route(&format!("/a2a/{name}"), any(all_the_rest));
        router = router.route(&format!("/a2a/{name}/"), any(all_the_rest));
    }
    router
        .route("/", get(show_page))
        .route("/a2a/{agent}", post(call_agent))
        .route("/a2a/{agent}/", post(call_agent))
        .route("/healthz", get(healthy))
        .route("/readyz", get(ready_now))
        .method_not_allowed_fallback(wrong_method)
        .fallback(all_the_rest)
        .with_state(server_state)
}

async fn call_agent(
    State(server_state): State<Arc<ServerState>>,
    agent: AgentPath,
    req: Request,
) -> Response {
    let agent = agent_name(agent);
    let endpoint = server_state.own(&agent);
    if text::is_meant(req.headers()) {
        return Box::pin(text::handle(&server_state, endpoint, req)).await;
    }
    jsonrpc::handle(&server_state, endpoint, req).await
}

/// The agent a path names; what is no text names none.
type AgentPath = Result<Path<String>, PathRejection>;

fn agent_name(path: AgentPath) -> String {
    path.map(|Path(agent)| agent).unwrap_or_default()
}

fn show_card(server_state: &ServerState, agent: &str, name: CardName, req: &Request) -> Response {
    find_card(server_state, agent, name, req).unwrap_or_else(|error| {
        // No call: the status says what is wrong.
        let status = StatusCode::from_u16(error.kind.row().http).unwrap_or(StatusCode::NOT_FOUND);
        let mut response = refuse(server_state, req.headers(), req.uri(), Dialect::Draft, status, &error);
        response.headers_mut().insert(header::VARY, card::VARY);
        response
    })
}

/// The extended card in the form of 0.2, which has no call for it: the status says how it went.
async fn show_extended_card(server_state: &ServerState, endpoint: Endpoint<'_>, req: Request) -> Response {
    const KIND: OperationKind = OperationKind::GetExtendedCard;
    const DIALECT: Dialect = Dialect::V03;
    let (head, _) = req.into_parts();
    let (request_id, clock) = (fastrand::u64(..), server_state.engine.clock());
    let mut line = Line::begin(server_state.engine.agents(), endpoint.agent, request_id);
    line.called(v1::operation::method(KIND));
    let envelope = Envelope::Http { media_type: respond::JSON, errors: server_state.errors };
    let reader = Reader { envelope, dialect: DIALECT, profile: endpoint.profile };
    let version = Version::of(&head.headers, &head.uri);
    let asked = Asked {
        version: &version,
        profile: endpoint.profile,
        accepted_versions: server_state.accepted_versions,
    };
    let memory = server_state.engine.memory().begin();
    let answered = async {
        asked.allows(DIALECT).map_err(|refused| refused.error)?;
        endpoint.check()?;
        admit::operation(server_state, &endpoint, KIND)?;
        let operation = Operation::GetExtendedCard(GetExtendedCard::default());
        let operation = admit::request(server_state, &endpoint, DIALECT, &head.headers, operation)?;
        perform(server_state, &endpoint, DIALECT, &head, operation, request_id, &memory).await
    };
    let answered = answered.await;
    line.answered(&answered);
    match answered {
        Ok(answer) => respond::answer(&reader, answer, line, request_id, server_state, memory),
        Err(error) => {
            line.end(DIALECT);
            let status = match error.kind {
                ErrorKind::Unauthenticated => StatusCode::UNAUTHORIZED,
                ErrorKind::PermissionDenied => StatusCode::FORBIDDEN,
                _ => StatusCode::NOT_FOUND,
            };
            respond::refuse_with(&reader, &error, status.as_u16(), clock.now())
        }
    }
}

fn find_card(
    server_state: &ServerState,
    agent: &str,
    name: CardName,
    req: &Request,
) -> Result<Response, Error> {
    let shown = shown(server_state, agent, req.uri(), req.headers(), req.extensions())?;
    shown.respond(name, &Version::of(req.headers(), req.uri()), req.headers())
}

/// The card of an agent as it is seen from where it is asked for.
pub(crate) fn shown<'a>(
    server_state: &'a ServerState,
    agent: &str,
    uri: &Uri,
    headers: &HeaderMap,
    extensions: &Extensions,
) -> Result<Shown<'a>, Error> {
    let settings = server_state.settings(agent);
    let registered = server_state.engine.agents().get(agent).filter(|_| settings.enabled);
    let none = || {
        let shown = in_short(agent);
        Error::new(ErrorKind::AgentDisabled, format!("there is no agent {shown:?} here"))
    };
    let registered = registered.ok_or_else(none)?;
    let origin = server_state.origins.of(uri, headers, extensions);
    let is_default = agent == server_state.default_agent;
    let asked_at_root = !uri.path().starts_with("/a2a/");
    let form = &settings.profile.card;
    let reach = Reach::of(&origin, Some(agent).filter(|_| !(is_default && (form.origin || form.root))));
    let endpoint = match (is_default, asked_at_root) {
        (true, _) if form.origin => origin,
        (true, true) if form.root => format!("{origin}/"),
        _ => format!("{origin}/a2a/{agent}"),
    };
    Ok(Shown {
        info: registered.info(),
        settings,
        endpoint,
        reach,
        accepted_versions: server_state.accepted_versions,
        options: server_state.card,
        since: server_state.since,
    })
}

async fn show_page(State(server_state): State<Arc<ServerState>>, req: Request) -> Response {
    let agents = server_state.engine.agents().iter().map(|registered| registered.info());
    let agents = agents
        .map(|profile| (profile, server_state.settings(&profile.id)))
        .filter(|(_, settings)| settings.enabled);
    let facts = page::Facts {
        origin: server_state.origins.of(req.uri(), req.headers(), req.extensions()),
        accepted_versions: server_state.accepted_versions,
        default_agent: &server_state.default_agent,
        agents: agents.collect(),
    };
    page::respond(&facts, req.headers())
}

async fn healthy() -> Response {
    respond::json(br#"{"status":"ok"}"#.to_vec())
}

async fn ready_now(State(server_state): State<Arc<ServerState>>) -> Response {
    if server_state.ready.is_ready() {
        return respond::json(br#"{"status":"ready"}"#.to_vec());
    }
    let mut response = respond::json(br#"{"status":"not ready"}"#.to_vec());
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
}

/// The router adds which methods there are.
async fn wrong_method(
    State(server_state): State<Arc<ServerState>>,
    method: Method,
    req: Request,
) -> Response {
    let text = format!("{method} is not served at this path; calls are POST, everything else is GET");
    let error = Error::new(ErrorKind::MethodNotFound, text);
    refuse(&server_state, req.headers(), req.uri(), Dialect::V1, StatusCode::METHOD_NOT_ALLOWED, &error)
}

/// What has no line in the table: the paths of HTTP+JSON, which are taken apart by hand, and everything else.
async fn all_the_rest(State(server_state): State<Arc<ServerState>>, req: Request) -> Response {
    rest_or_nothing(&server_state, req).await
}

pub(crate) async fn rest_or_nothing(server_state: &ServerState, req: Request) -> Response {
    let (head, incoming) = req.into_parts();
    let Some(rest::Found { agent, place }) = rest::find(head.uri.path()) else {
        return nothing_here(server_state, &head);
    };
    let endpoint = agent.as_deref().map_or_else(|| server_state.root(), |agent| server_state.own(agent));
    rest::handle(server_state, endpoint, &place, &head, incoming).await
}

/// Where cards are, for those who look for one elsewhere.
const NO_CARD: &str = "no card is served at this path; that of the default agent is at /.well-known/agent-card.json, \
                       each agent's own at /a2a/{agent}/.well-known/agent-card.json";

fn nothing_here(server_state: &ServerState, head: &Parts) -> Response {
    let refuse = |error: &Error| {
        refuse(server_state, &head.headers, &head.uri, Dialect::V1, StatusCode::NOT_FOUND, error)
    };
    if head.uri.path().find("/.well-known/").is_some_and(|at| at > 0) {
        let mut error = Error::new(ErrorKind::MethodNotFound, NO_CARD);
        // Clients of 0.3 are shown a fixed message, and this beside it.
        error.violations.push(Violation::new("path", NO_CARD));
        return refuse(&error);
    }
    let text = "nothing is served at this path; calls of JSON-RPC go to / or /a2a/{agent}, those of HTTP+JSON \
                to /message:send, /tasks and so on there or below /a2a/{agent}, \
                cards are at /.well-known/agent-card.json and /a2a/{agent}/.well-known/agent-card.json";
    refuse(&Error::new(ErrorKind::MethodNotFound, text))
}

/// Refuses what is no call: in the form of HTTP+JSON where the request speaks of its media type, and in `untold` where
/// nothing says the generation. 1.0 has words for people; the others have fixed texts that programs compare.
fn refuse(
    server_state: &ServerState,
    headers: &HeaderMap,
    uri: &Uri,
    untold: Dialect,
    status: StatusCode,
    error: &Error,
) -> Response {
    let dialect = match Version::of(headers, uri) {
        Version::Named(dialect) => dialect,
        Version::Unknown(_) => Dialect::V1,
        Version::Absent => untold,
    };
    let envelope =
        rest::envelope_of(dialect, server_state.errors, headers).unwrap_or(Envelope::Rpc(Id::null()));
    let reader = Reader { envelope, dialect, profile: server_state.root().profile };
    respond::refuse_with(&reader, error, status.as_u16(), server_state.engine.clock().now())
}
