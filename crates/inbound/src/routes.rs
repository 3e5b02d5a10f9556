//! The routing table: which path leads to which endpoint, card or page.
//!
//! Not in the table are the paths of HTTP+JSON, which are parsed by hand in `bindings/rest/path.rs`, and gRPC, which
//! `front.rs` dispatches first.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Path, Request, State, rejection::PathRejection},
    response::Response,
    routing::{MethodRouter, any, get, post},
};
use engine::DEFAULT_TENANT;
use http::{Extensions, HeaderMap, Method, StatusCode, Uri, header, request::Parts};
use protocol::{
    Dialect, Error, ErrorKind, GetExtendedCard, Operation, OperationKind, Violation, dialect::v1,
    error::excerpt, jsonrpc::Id,
};

use crate::{
    access_log::CallEntry,
    admit,
    bindings::{grpc::interface::GrpcInterface, jsonrpc, rest, text},
    card::{self, CardBuilder, CardName},
    home_page,
    negotiate::Negotiation,
    perform::perform,
    respond::{self, Envelope, ResponseFormat},
    server_state::{Endpoint, ProfileOf, ServerState},
    version::Version,
};

/// The JSON-RPC paths of the default agent, each with its compatibility profile. The last eight are used by the package
/// `python-a2a`, which posts each method of the draft to its own path.
const JSONRPC_PATHS: [(&str, ProfileOf); 17] = [
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

/// Paths of HTTP+JSON below `/a2a` that would otherwise match `/a2a/{agent}`.
const REST_PATHS_BESIDE_AGENTS: [&str; 5] =
    ["message:send", "message:stream", "tasks", "extendedAgentCard", "v1"];

/// The file names of cards.
const CARD_PATHS: [(&str, CardName); 2] =
    [(".well-known/agent-card.json", CardName::AgentCard), (".well-known/agent.json", CardName::Agent)];

/// The path of the liveness check.
pub(crate) const HEALTH_PATH: &str = "/healthz";

/// Where clients of 0.2.1 to 0.2.6 look for the extended card: beside the endpoint, or below it. Only the latter is
/// served for `/a2a/{agent}`: the path beside it would be the same for all agents.
const EXTENDED_CARD_PATH: &str = "agent/authenticatedExtendedCard";

/// Whether `/a2a/{name}` is used for something other than an agent, so that no agent may have this id.
pub fn is_reserved_agent_id(name: &str) -> bool {
    JSONRPC_PATHS.iter().any(|(path, _)| path.strip_prefix("/a2a/") == Some(name))
        || rest::resolve_path(&format!("/a2a/{name}")).is_some()
        || rest::is_reserved(name)
        // Clients normalise these path segments away.
        || matches!(name, "." | "..")
}

/// Whether this is the path of a public card.
pub(crate) fn is_public_card(path: &str) -> bool {
    let own = path.strip_prefix("/a2a/").and_then(|below| below.split_once('/'));
    let file = match own {
        Some((agent, file)) if !agent.is_empty() => file,
        _ => path.strip_prefix('/').unwrap_or_default(),
    };
    CARD_PATHS.iter().any(|(name, _)| *name == file)
}

pub(crate) fn table(server_state: Arc<ServerState>) -> Router {
    let mut router = Router::new();
    for (path, profile) in JSONRPC_PATHS {
        let call = move |State(server_state): State<Arc<ServerState>>, req: Request| async move {
            let endpoint = server_state.default_endpoint(&server_state.catalog(), profile);
            jsonrpc::handle(&server_state, endpoint, req).await
        };
        // POST is JSON-RPC even at a path that HTTP+JSON uses too; other methods are HTTP+JSON.
        let others =
            if rest::resolve_path(path).is_some() { any(fallback_handler) } else { MethodRouter::new() };
        router = router.route(path, others.post(call));
    }
    for (file, name) in CARD_PATHS {
        let default = move |State(server_state): State<Arc<ServerState>>, req: Request| async move {
            get_card(&server_state, &server_state.root_endpoint(&server_state.catalog()), name, &req)
        };
        let own = move |State(server_state): State<Arc<ServerState>>, agent: AgentPath, req: Request| async move {
            let endpoint = server_state.agent_endpoint(&server_state.catalog(), agent_name(agent));
            get_card(&server_state, &endpoint, name, &req)
        };
        router = router.route(&format!("/{file}"), get(default));
        router = router.route(&format!("/a2a/{{agent}}/{file}"), get(own));
    }
    let default = async |State(server_state): State<Arc<ServerState>>, req: Request| {
        let endpoint = server_state.root_endpoint(&server_state.catalog());
        get_extended_card(&server_state, endpoint, req).await
    };
    let own = async |State(server_state): State<Arc<ServerState>>, agent: AgentPath, req: Request| {
        let endpoint = server_state.agent_endpoint(&server_state.catalog(), agent_name(agent));
        get_extended_card(&server_state, endpoint, req).await
    };
    router = router
        .route(&format!("/{EXTENDED_CARD_PATH}"), get(default))
        .route(&format!("/a2a/{{agent}}/{EXTENDED_CARD_PATH}"), get(own));
    for name in REST_PATHS_BESIDE_AGENTS {
        router = router.route(&format!("/a2a/{name}"), any(fallback_handler));
        router = router.route(&format!("/a2a/{name}/"), any(fallback_handler));
    }
    router
        .route("/", get(get_home_page))
        .route("/a2a/{agent}", post(call_agent))
        .route("/a2a/{agent}/", post(call_agent))
        .route(HEALTH_PATH, get(healthz))
        .route("/readyz", get(readyz))
        .method_not_allowed_fallback(method_not_allowed)
        .fallback(fallback_handler)
        .with_state(server_state)
}

async fn call_agent(
    State(server_state): State<Arc<ServerState>>,
    agent: AgentPath,
    req: Request,
) -> Response {
    let endpoint = server_state.agent_endpoint(&server_state.catalog(), agent_name(agent));
    if text::is_text_request(req.headers()) {
        return Box::pin(text::handle(&server_state, endpoint, req)).await;
    }
    jsonrpc::handle(&server_state, endpoint, req).await
}

/// The agent a path names; invalid UTF-8 names none.
type AgentPath = Result<Path<String>, PathRejection>;

fn agent_name(path: AgentPath) -> String {
    path.map(|Path(agent)| agent).unwrap_or_default()
}

fn get_card(server_state: &ServerState, endpoint: &Endpoint<'_>, name: CardName, req: &Request) -> Response {
    find_card(server_state, endpoint, name, req).unwrap_or_else(|error| {
        // This is not a call, so the HTTP status reports the error.
        let status = StatusCode::from_u16(error.kind.row().http).unwrap_or(StatusCode::NOT_FOUND);
        let mut response =
            error_response(server_state, req.headers(), req.uri(), Dialect::Draft, status, &error);
        response.headers_mut().insert(header::VARY, card::VARY);
        response
    })
}

/// The extended card for 0.2, which has no method for it: the HTTP status reports the result.
async fn get_extended_card(server_state: &ServerState, endpoint: Endpoint<'_>, req: Request) -> Response {
    const KIND: OperationKind = OperationKind::GetExtendedCard;
    const DIALECT: Dialect = Dialect::V03;
    let (head, _) = req.into_parts();
    let (request_id, clock) = (fastrand::u64(..), server_state.engine.clock());
    let mut log_entry = CallEntry::begin(&endpoint, request_id);
    log_entry.set_method(v1::operation::method(KIND));
    let envelope = Envelope::Http { media_type: respond::JSON, errors: server_state.errors };
    let format = ResponseFormat { envelope, dialect: DIALECT, profile: endpoint.profile() };
    let version = Version::of(&head.headers, &head.uri);
    let negotiation = Negotiation {
        version: &version,
        profile: endpoint.profile(),
        accepted_versions: server_state.accepted_versions,
    };
    let memory = server_state.engine.memory().begin();
    let answered = async {
        negotiation.check_path(DIALECT).map_err(|refused| refused.error)?;
        endpoint.check_access()?;
        admit::check_operation(&endpoint, KIND)?;
        let operation = Operation::GetExtendedCard(GetExtendedCard::default());
        let operation = admit::check_request(&endpoint, DIALECT, &head.headers, operation)?;
        perform(server_state, &endpoint, DIALECT, &head, operation, request_id, &memory).await
    };
    let answered = answered.await;
    log_entry.set_result(&answered);
    match answered {
        Ok(answer) => respond::respond(&format, answer, log_entry, request_id, server_state, memory),
        Err(error) => {
            log_entry.finish(DIALECT);
            let status = match error.kind {
                ErrorKind::Unauthenticated => StatusCode::UNAUTHORIZED,
                ErrorKind::PermissionDenied => StatusCode::FORBIDDEN,
                _ => StatusCode::NOT_FOUND,
            };
            respond::error_response_with_status(&format, &error, status.as_u16(), clock.now())
        }
    }
}

fn find_card(
    server_state: &ServerState,
    endpoint: &Endpoint<'_>,
    name: CardName,
    req: &Request,
) -> Result<Response, Error> {
    let card = card_builder(server_state, endpoint, req.uri(), req.headers(), req.extensions())?;
    card.respond(name, &Version::of(req.headers(), req.uri()), req.headers())
}

/// A builder for the agent's card, with URLs that match the address of the request.
pub(crate) fn card_builder<'a>(
    server_state: &ServerState,
    endpoint: &'a Endpoint<'_>,
    uri: &Uri,
    headers: &HeaderMap,
    extensions: &Extensions,
) -> Result<CardBuilder<'a>, Error> {
    let (agent, settings) = (endpoint.agent(), endpoint.settings());
    let registered = endpoint.registered().filter(|_| settings.enabled);
    let none = || {
        let shown = excerpt(agent);
        Error::new(ErrorKind::AgentDisabled, format!("unknown agent {shown:?}"))
    };
    let registered = registered.ok_or_else(none)?;
    let origin = server_state.origins.of(uri, headers, extensions);
    let is_default = endpoint.is_default;
    let asked_at_root = !uri.path().starts_with("/a2a/");
    let form = &settings.profile.card;
    let grpc =
        GrpcInterface::of(&origin, Some(agent).filter(|_| !(is_default && (form.origin || form.root))));
    let url = match (is_default, asked_at_root) {
        (true, _) if form.origin => origin,
        (true, true) if form.root => format!("{origin}/"),
        _ => format!("{origin}/a2a/{agent}"),
    };
    Ok(CardBuilder {
        registered,
        endpoint: url,
        grpc,
        accepted_versions: server_state.accepted_versions,
        options: server_state.card,
        cache_scope: server_state.origins.cache_scope(),
        since: endpoint.since,
    })
}

async fn get_home_page(State(server_state): State<Arc<ServerState>>, req: Request) -> Response {
    let catalog = server_state.catalog();
    let agents = catalog.agents(DEFAULT_TENANT).filter(|registered| registered.settings().enabled);
    let content = home_page::PageContent {
        origin: server_state.origins.of(req.uri(), req.headers(), req.extensions()),
        accepted_versions: server_state.accepted_versions,
        default_agent: catalog.default_agent(DEFAULT_TENANT).unwrap_or_default(),
        agents: agents.map(|registered| (registered.info(), registered.settings())).collect(),
    };
    home_page::respond(&content, req.headers())
}

async fn healthz() -> Response {
    respond::json(br#"{"status":"ok"}"#.to_vec())
}

async fn readyz(State(server_state): State<Arc<ServerState>>) -> Response {
    if server_state.ready.is_ready() {
        return respond::json(br#"{"status":"ready"}"#.to_vec());
    }
    let mut response = respond::json(br#"{"status":"not ready"}"#.to_vec());
    *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    response
}

/// The router adds the header `Allow`.
async fn method_not_allowed(
    State(server_state): State<Arc<ServerState>>,
    method: Method,
    req: Request,
) -> Response {
    let text = format!("method {method} is not allowed at this path; calls use POST, everything else GET");
    let error = Error::new(ErrorKind::MethodNotFound, text);
    error_response(
        &server_state,
        req.headers(),
        req.uri(),
        Dialect::V1,
        StatusCode::METHOD_NOT_ALLOWED,
        &error,
    )
}

/// Requests without a route: the paths of HTTP+JSON, and unknown paths.
async fn fallback_handler(State(server_state): State<Arc<ServerState>>, req: Request) -> Response {
    rest_or_not_found(&server_state, req).await
}

pub(crate) async fn rest_or_not_found(server_state: &ServerState, req: Request) -> Response {
    let (head, incoming) = req.into_parts();
    let Some(rest::ResolvedPath { agent, place }) = rest::resolve_path(head.uri.path()) else {
        return not_found(server_state, &head);
    };
    let catalog = server_state.catalog();
    let endpoint = match agent {
        Some(agent) => server_state.agent_endpoint(&catalog, agent),
        None => server_state.root_endpoint(&catalog),
    };
    drop(catalog);
    rest::handle(server_state, endpoint, &place, &head, incoming).await
}

/// The error text for a card requested at an unknown path.
const NO_CARD: &str = "no card is served at this path; the card of the default agent is at /.well-known/agent-card.json, \
                       each agent's own at /a2a/{agent}/.well-known/agent-card.json";

fn not_found(server_state: &ServerState, head: &Parts) -> Response {
    let error_response = |error: &Error| {
        error_response(server_state, &head.headers, &head.uri, Dialect::V1, StatusCode::NOT_FOUND, error)
    };
    if head.uri.path().find("/.well-known/").is_some_and(|at| at > 0) {
        let mut error = Error::new(ErrorKind::MethodNotFound, NO_CARD);
        // The message of an error in 0.3 is fixed; the text is sent as a detail.
        error.violations.push(Violation::new("path", NO_CARD));
        return error_response(&error);
    }
    let text = "nothing is served at this path; send JSON-RPC calls to / or /a2a/{agent}, HTTP+JSON calls \
                to /message:send, /tasks and so on, at the root or below /a2a/{agent}; \
                cards are at /.well-known/agent-card.json and /a2a/{agent}/.well-known/agent-card.json";
    error_response(&Error::new(ErrorKind::MethodNotFound, text))
}

/// The response to a request that is refused before it reaches its route, in the form of the route's binding and of
/// 1.0, because the messages of the other dialects are fixed and the reason has to be readable.
pub(crate) fn refuse(
    server_state: &ServerState,
    req: &Request,
    status: StatusCode,
    error: &Error,
) -> Response {
    const DIALECT: Dialect = Dialect::V1;
    let (path, headers, errors) = (req.uri().path(), req.headers(), server_state.errors);
    let is_jsonrpc = req.method() == Method::POST && JSONRPC_PATHS.iter().any(|(known, _)| *known == path);
    let envelope = if !is_jsonrpc && rest::resolve_path(path).is_some() {
        rest::envelope(DIALECT, errors, headers)
    } else {
        rest::requested_envelope(DIALECT, errors, headers).unwrap_or(Envelope::Rpc(Id::null()))
    };
    let format = ResponseFormat { envelope, dialect: DIALECT, profile: server_state.root_profile() };
    respond::error_response_with_status(&format, error, status.as_u16(), server_state.engine.clock().now())
}

/// The error response to a request that is not a call: in the form of HTTP+JSON if the request names its media type,
/// and in `default_dialect` if it names no version. 1.0 sends readable messages, the other dialects fixed texts that
/// clients compare.
fn error_response(
    server_state: &ServerState,
    headers: &HeaderMap,
    uri: &Uri,
    default_dialect: Dialect,
    status: StatusCode,
    error: &Error,
) -> Response {
    let dialect = match Version::of(headers, uri) {
        Version::Named(dialect) => dialect,
        Version::Unknown(_) => Dialect::V1,
        Version::Absent => default_dialect,
    };
    let envelope =
        rest::requested_envelope(dialect, server_state.errors, headers).unwrap_or(Envelope::Rpc(Id::null()));
    let format = ResponseFormat { envelope, dialect, profile: server_state.root_profile() };
    respond::error_response_with_status(&format, error, status.as_u16(), server_state.engine.clock().now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_card_paths_are_public_cards() {
        for path in [
            "/.well-known/agent-card.json",
            "/.well-known/agent.json",
            "/a2a/echo/.well-known/agent-card.json",
            "/a2a/%65cho/.well-known/agent.json",
        ] {
            assert!(is_public_card(path), "{path}");
        }
        for path in [
            "/",
            "/a2a/echo",
            ".well-known/agent-card.json",
            "//.well-known/agent-card.json",
            "/.well-known/agent-card.json/",
            "/.well-known/jwks.json",
            "/a2a//.well-known/agent-card.json",
            "/a2a/.well-known/agent-card.json",
            "/a2a/echo/x/.well-known/agent-card.json",
            "/x/.well-known/agent-card.json",
            "/agent/authenticatedExtendedCard",
            "/extendedAgentCard",
            "/tasks",
        ] {
            assert!(!is_public_card(path), "{path}");
        }
    }
}
