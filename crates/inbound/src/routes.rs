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
    doors::{Doors, House, Mount},
    page,
    perform::perform,
    respond::{self, Envelope, Reader},
    trace::Line,
    version::Version,
};

/// The paths at which the default agent takes JSON-RPC, each with its house style. The last ones are those of the
/// package `python-a2a`, which posts each method of the draft to a path of its own.
const RPC: [(&str, House); 17] = [
    ("/", |houses| &houses.neutral),
    ("/a2a", |houses| &houses.neutral),
    ("/a2a/", |houses| &houses.neutral),
    ("/_a2a", |houses| &houses.fold),
    ("/_a2a/", |houses| &houses.fold),
    ("/_agent-native/a2a", |houses| &houses.agent_native),
    ("/_agent-native/a2a/", |houses| &houses.agent_native),
    ("/a2a/rpc", |houses| &houses.agentos),
    ("/a2a/rpc/", |houses| &houses.agentos),
    ("/tasks/send", |houses| &houses.draft_alias),
    ("/tasks/sendSubscribe", |houses| &houses.draft_alias),
    ("/tasks/get", |houses| &houses.draft_alias),
    ("/tasks/cancel", |houses| &houses.draft_alias),
    ("/a2a/tasks/send", |houses| &houses.draft_alias),
    ("/a2a/tasks/sendSubscribe", |houses| &houses.draft_alias),
    ("/a2a/tasks/get", |houses| &houses.draft_alias),
    ("/a2a/tasks/cancel", |houses| &houses.draft_alias),
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
pub(crate) fn table(doors: Arc<Doors>) -> Router {
    let mut router = Router::new();
    for (path, profile) in RPC {
        let call = move |State(doors): State<Arc<Doors>>, req: Request| async move {
            jsonrpc::handle(&doors, doors.default(profile), req).await
        };
        // A path that HTTP+JSON has too is JSON-RPC's for the verb that JSON-RPC uses.
        let others = if rest::find(path).is_some() { any(all_the_rest) } else { MethodRouter::new() };
        router = router.route(path, others.post(call));
    }
    for (file, name) in CARDS {
        let default = move |State(doors): State<Arc<Doors>>, req: Request| async move {
            show_card(&doors, &doors.default_agent, name, &req)
        };
        let own = move |State(doors): State<Arc<Doors>>, agent: AgentPath, req: Request| async move {
            show_card(&doors, &agent_name(agent), name, &req)
        };
        router = router.route(&format!("/{file}"), get(default));
        router = router.route(&format!("/a2a/{{agent}}/{file}"), get(own));
    }
    let default = async |State(doors): State<Arc<Doors>>, req: Request| {
        show_extended_card(&doors, doors.root(), req).await
    };
    let own = async |State(doors): State<Arc<Doors>>, agent: AgentPath, req: Request| {
        show_extended_card(&doors, doors.own(&agent_name(agent)), req).await
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
        .with_state(doors)
}

async fn call_agent(State(doors): State<Arc<Doors>>, agent: AgentPath, req: Request) -> Response {
    let agent = agent_name(agent);
    let mount = doors.own(&agent);
    if text::is_meant(req.headers()) {
        return Box::pin(text::handle(&doors, mount, req)).await;
    }
    jsonrpc::handle(&doors, mount, req).await
}

/// The agent a path names; what is no text names none.
type AgentPath = Result<Path<String>, PathRejection>;

fn agent_name(path: AgentPath) -> String {
    path.map(|Path(agent)| agent).unwrap_or_default()
}

fn show_card(doors: &Doors, agent: &str, name: CardName, req: &Request) -> Response {
    find_card(doors, agent, name, req).unwrap_or_else(|error| {
        // No call: the status says what is wrong.
        let status = StatusCode::from_u16(error.kind.row().http).unwrap_or(StatusCode::NOT_FOUND);
        let mut response = refuse(doors, req.headers(), req.uri(), Dialect::Draft, status, &error);
        response.headers_mut().insert(header::VARY, card::VARY);
        response
    })
}

/// The extended card in the form of 0.2, which has no call for it: the status says how it went.
async fn show_extended_card(doors: &Doors, mount: Mount<'_>, req: Request) -> Response {
    const KIND: OperationKind = OperationKind::GetExtendedCard;
    const DIALECT: Dialect = Dialect::V03;
    let (head, _) = req.into_parts();
    let (request_id, clock) = (fastrand::u64(..), doors.engine.clock());
    let mut line = Line::begin(doors.engine.agents(), mount.agent, request_id);
    line.called(v1::operation::method(KIND));
    let envelope = Envelope::Http { media_type: respond::JSON, errors: doors.errors };
    let reader = Reader { envelope, dialect: DIALECT, profile: mount.profile };
    let version = Version::of(&head.headers, &head.uri);
    let asked = Asked { version: &version, profile: mount.profile, spoken: doors.spoken };
    let memory = doors.engine.memory().begin();
    let answered = async {
        asked.allows(DIALECT).map_err(|refused| refused.error)?;
        mount.check()?;
        admit::operation(doors, &mount, KIND)?;
        let operation = Operation::GetExtendedCard(GetExtendedCard::default());
        let operation = admit::request(doors, &mount, DIALECT, &head.headers, operation)?;
        perform(doors, &mount, DIALECT, &head, operation, request_id, &memory).await
    };
    let answered = answered.await;
    line.answered(&answered);
    match answered {
        Ok(answer) => respond::answer(&reader, answer, line, request_id, doors, memory),
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

fn find_card(doors: &Doors, agent: &str, name: CardName, req: &Request) -> Result<Response, Error> {
    let shown = shown(doors, agent, req.uri(), req.headers(), req.extensions())?;
    shown.respond(name, &Version::of(req.headers(), req.uri()), req.headers())
}

/// The card of an agent as it is seen from where it is asked for.
pub(crate) fn shown<'a>(
    doors: &'a Doors,
    agent: &str,
    uri: &Uri,
    headers: &HeaderMap,
    extensions: &Extensions,
) -> Result<Shown<'a>, Error> {
    let door = doors.door(agent);
    let hosted = doors.engine.agents().get(agent).filter(|_| door.enabled);
    let none = || {
        let shown = in_short(agent);
        Error::new(ErrorKind::AgentDisabled, format!("there is no agent {shown:?} here"))
    };
    let hosted = hosted.ok_or_else(none)?;
    let origin = doors.origins.of(uri, headers, extensions);
    let is_default = agent == doors.default_agent;
    let asked_at_root = !uri.path().starts_with("/a2a/");
    let form = &door.profile.card;
    let reach = Reach::of(&origin, Some(agent).filter(|_| !(is_default && (form.origin || form.root))));
    let endpoint = match (is_default, asked_at_root) {
        (true, _) if form.origin => origin,
        (true, true) if form.root => format!("{origin}/"),
        _ => format!("{origin}/a2a/{agent}"),
    };
    Ok(Shown {
        hosted: hosted.profile(),
        door,
        endpoint,
        reach,
        spoken: doors.spoken,
        options: doors.card,
        since: doors.since,
    })
}

async fn show_page(State(doors): State<Arc<Doors>>, req: Request) -> Response {
    let agents = doors.engine.agents().iter().map(|hosted| hosted.profile());
    let agents = agents.map(|profile| (profile, doors.door(&profile.id))).filter(|(_, door)| door.enabled);
    let facts = page::Facts {
        origin: doors.origins.of(req.uri(), req.headers(), req.extensions()),
        spoken: doors.spoken,
        default_agent: &doors.default_agent,
        agents: agents.collect(),
    };
    page::respond(&facts, req.headers())
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
async fn wrong_method(State(doors): State<Arc<Doors>>, method: Method, req: Request) -> Response {
    let text = format!("{method} is not served at this path; calls are POST, everything else is GET");
    let error = Error::new(ErrorKind::MethodNotFound, text);
    refuse(&doors, req.headers(), req.uri(), Dialect::V1, StatusCode::METHOD_NOT_ALLOWED, &error)
}

/// What has no line in the table: the paths of HTTP+JSON, which are taken apart by hand, and everything else.
async fn all_the_rest(State(doors): State<Arc<Doors>>, req: Request) -> Response {
    rest_or_nothing(&doors, req).await
}

pub(crate) async fn rest_or_nothing(doors: &Doors, req: Request) -> Response {
    let (head, incoming) = req.into_parts();
    let Some(rest::Found { agent, place }) = rest::find(head.uri.path()) else {
        return nothing_here(doors, &head);
    };
    let mount = agent.as_deref().map_or_else(|| doors.root(), |agent| doors.own(agent));
    rest::handle(doors, mount, &place, &head, incoming).await
}

/// Where cards are, for those who look for one elsewhere.
const NO_CARD: &str = "no card is served at this path; that of the default agent is at /.well-known/agent-card.json, \
                       each agent's own at /a2a/{agent}/.well-known/agent-card.json";

fn nothing_here(doors: &Doors, head: &Parts) -> Response {
    let refuse =
        |error: &Error| refuse(doors, &head.headers, &head.uri, Dialect::V1, StatusCode::NOT_FOUND, error);
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
    doors: &Doors,
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
    let envelope = rest::envelope_of(dialect, doors.errors, headers).unwrap_or(Envelope::Rpc(Id::null()));
    let reader = Reader { envelope, dialect, profile: doors.root().profile };
    respond::refuse_with(&reader, error, status.as_u16(), doors.engine.clock().now())
}
