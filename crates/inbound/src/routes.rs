//! Paths become doors: one table.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    Router,
    extract::{Path, Request, State, rejection::PathRejection},
    response::Response,
    routing::{MethodRouter, any, get, post},
};
use engine::{Call, Engine, Resume, Scope};
use http::{Extensions, HeaderMap, Method, StatusCode, Uri, header, request::Parts};
use protocol::{
    Dialect, Error, ErrorKind, ErrorTable, Timestamp,
    error::in_short,
    jsonrpc::Id,
    model::{AgentExtension, SecurityScheme},
};

use crate::{
    admit::ExtendedCard,
    auth,
    bindings::{grpc::reach::Reach, jsonrpc, rest, text},
    card::{self, CardName, CardOptions, Shown},
    choose::Asked,
    origin::{Network, Origins},
    page,
    profile::Profile,
    ready::Ready,
    respond::{self, Envelope, Reader},
    trace::Line,
    version::{Spoken, Version},
};

/// How the doors are set up.
#[derive(Clone, Debug)]
pub struct Options {
    /// The agent at `/`.
    pub default_agent: String,
    /// The largest body that is read.
    pub max_body_bytes: usize,
    /// How each agent is served; one that is not here is open and neutral.
    pub agents: BTreeMap<String, Door>,
    /// Which generations are spoken.
    pub spoken: Spoken,
    /// Which edition of the table of statuses REST and gRPC answer by.
    pub errors: ErrorTable,
    /// How cards are served.
    pub card: CardOptions,
    /// Scheme and host as clients see them, where the server is not asked by that name.
    pub public_url: Option<String>,
    /// Proxies whose word about that counts.
    pub trusted_proxies: Vec<Network>,
}

impl Options {
    /// This agent at `/`, bodies up to 16 MiB, every generation.
    pub fn new(default_agent: impl Into<String>) -> Self {
        Self {
            default_agent: default_agent.into(),
            max_body_bytes: 16 << 20,
            agents: BTreeMap::new(),
            spoken: Spoken::default(),
            errors: ErrorTable::default(),
            card: CardOptions::default(),
            public_url: None,
            trusted_proxies: Vec::new(),
        }
    }
}

/// How one agent is served.
#[derive(Clone, Debug)]
pub struct Door {
    /// The house style at the agent's own path, and of its card.
    pub profile: Profile,
    /// Whether it is served at all.
    pub enabled: bool,
    /// Whether it streams.
    pub streaming: bool,
    /// Whether it posts to webhooks.
    pub push: bool,
    /// Who is shown its extended card.
    pub extended_card: ExtendedCard,
    /// The ids of the skills that only the extended card shows.
    pub extended_skills: Vec<String>,
    /// Extensions of the protocol it speaks, and those it insists on.
    pub extensions: Vec<AgentExtension>,
    /// Whether a part of a media type that its card does not name is refused.
    pub check_media_types: bool,
    /// Whether callers without a credential are let in.
    pub anonymous: bool,
    /// The ways to be known to it, as its card shows them.
    pub security: Vec<(String, SecurityScheme)>,
}

impl Door {
    /// How a caller without a credential is told what to bring (RFC 9110 11.6.1).
    pub(crate) fn challenge(&self) -> String {
        let one = |scheme: &SecurityScheme| match scheme {
            SecurityScheme::HttpAuth { scheme, .. } => scheme.clone(),
            SecurityScheme::ApiKey { name, .. } => format!("ApiKey name=\"{name}\""),
            SecurityScheme::OAuth2 { .. } | SecurityScheme::OpenIdConnect { .. } => "Bearer".into(),
            SecurityScheme::MutualTls { .. } => "Mutual".into(),
        };
        let mut challenges: Vec<String> = self.security.iter().map(|(_, scheme)| one(scheme)).collect();
        challenges.dedup();
        challenges.join(", ")
    }
}

impl Default for Door {
    fn default() -> Self {
        Self {
            profile: Profile::neutral(),
            enabled: true,
            streaming: true,
            push: false,
            extended_card: ExtendedCard::default(),
            extended_skills: Vec::new(),
            extensions: Vec::new(),
            check_media_types: true,
            anonymous: true,
            security: Vec::new(),
        }
    }
}

/// What every door needs.
pub(crate) struct Doors {
    pub(crate) engine: Engine,
    pub(crate) max_body_bytes: usize,
    pub(crate) spoken: Spoken,
    pub(crate) errors: ErrorTable,
    default_agent: String,
    agents: BTreeMap<String, Door>,
    unnamed: Door,
    houses: Houses,
    card: CardOptions,
    origins: Origins,
    pub(crate) ready: Ready,
    /// Since when the cards are what they are.
    since: Timestamp,
}

/// The house styles of paths that have one of their own.
struct Houses {
    neutral: Profile,
    fold: Profile,
    agent_native: Profile,
    agentos: Profile,
    draft_alias: Profile,
}

/// Where a request came in: for whom, and in which style.
pub(crate) struct Mount<'a> {
    pub(crate) agent: &'a str,
    pub(crate) profile: &'a Profile,
    pub(crate) door: &'a Door,
}

impl Mount<'_> {
    /// Whether the agent takes calls, and from this caller.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if !self.door.enabled {
            let text = format!("the agent {:?} is not enabled here", self.agent);
            return Err(Error::new(ErrorKind::AgentDisabled, text));
        }
        if !self.door.anonymous {
            let text =
                format!("the agent {:?} wants a credential, and none can be checked here yet", self.agent);
            let error = Error::new(ErrorKind::Unauthenticated, text);
            return Err(error.with(respond::CHALLENGE, self.door.challenge()));
        }
        Ok(())
    }

    /// Who asks.
    pub(crate) fn scope(&self) -> Scope {
        auth::anonymous(self.agent)
    }

    /// A call by whoever asks, with what the headers say about it: its name for repetitions, and where its last stream
    /// broke off.
    pub(crate) fn call(&self, dialect: Dialect, headers: &HeaderMap) -> Call {
        let text = |name: &str| {
            headers.get(name).map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned())
        };
        let resume = text("last-event-id")
            .map(|seen| engine::cursor::last_event_id(&seen).map_or(Resume::Unknown, Resume::After));
        Call {
            idempotency_key: text("idempotency-key"),
            resume,
            dialect,
            manners: self.profile.manners,
            ..Call::new(self.scope())
        }
    }
}

impl Doors {
    pub(crate) fn new(engine: Engine, options: Options, ready: Ready) -> Self {
        let Options {
            default_agent,
            max_body_bytes,
            agents,
            spoken,
            errors,
            card,
            public_url,
            trusted_proxies,
        } = options;
        let since = engine.clock().now();
        let houses = Houses {
            neutral: Profile::neutral(),
            fold: Profile::fold(),
            agent_native: Profile::agent_native(),
            agentos: Profile::agentos(),
            draft_alias: Profile::draft_alias(),
        };
        Self {
            engine,
            max_body_bytes,
            spoken,
            errors,
            default_agent,
            agents,
            unnamed: Door::default(),
            houses,
            card,
            origins: Origins { public_url, trusted_proxies },
            ready,
            since,
        }
    }

    /// Where most calls of JSON-RPC go: the default agent at `/`, or an agent that is configured at its own path. The
    /// table has these too, and says what else is there.
    pub(crate) fn called_at(&self, path: &str, headers: &HeaderMap) -> Option<Mount<'_>> {
        if path == "/" {
            return Some(self.root());
        }
        let (agent, _) = self.agents.get_key_value(path.strip_prefix("/a2a/")?)?;
        (!is_text(headers)).then(|| self.own(agent))
    }

    /// Whether it matters who is at the other end of a connection.
    pub(crate) fn asks_for_peers(&self) -> bool {
        !self.origins.trusted_proxies.is_empty()
    }

    fn door(&self, agent: &str) -> &Door {
        self.agents.get(agent).unwrap_or(&self.unnamed)
    }

    /// The default agent in the style of a path.
    fn default(&self, profile: House) -> Mount<'_> {
        let agent = self.default_agent.as_str();
        Mount { agent, profile: profile(&self.houses), door: self.door(agent) }
    }

    /// The default agent as it is at `/`.
    pub(crate) fn root(&self) -> Mount<'_> {
        self.default(|houses| &houses.neutral)
    }

    /// An agent at its own path.
    pub(crate) fn own<'a>(&'a self, agent: &'a str) -> Mount<'a> {
        let door = self.door(agent);
        Mount { agent, profile: &door.profile, door }
    }
}

/// One of the house styles.
type House = fn(&Houses) -> &Profile;

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

/// Whether `/a2a/{name}` means something else than an agent of that name.
pub fn is_own_path(name: &str) -> bool {
    RPC.iter().any(|(path, _)| path.strip_prefix("/a2a/") == Some(name))
        || rest::find(&format!("/a2a/{name}")).is_some()
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
    if is_text(req.headers()) {
        let request_id = fastrand::u64(..);
        let line = Line::begin(doors.engine.agents(), mount.agent, request_id);
        return line.end_text(Box::pin(text::handle(&doors, mount, req, request_id)).await);
    }
    jsonrpc::handle(&doors, mount, req).await
}

fn is_text(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/plain")
}

/// The agent a path names; what is no text names none.
type AgentPath = Result<Path<String>, PathRejection>;

fn agent_name(path: AgentPath) -> String {
    path.map(|Path(agent)| agent).unwrap_or_default()
}

fn show_card(doors: &Doors, agent: &str, name: CardName, req: &Request) -> Response {
    find_card(doors, agent, name, req).unwrap_or_else(|error| {
        // No call: the status says what is wrong.
        let mut response = refuse(doors, req.headers(), req.uri(), &error);
        *response.status_mut() = StatusCode::from_u16(error.kind.row().http).unwrap_or(StatusCode::NOT_FOUND);
        response.headers_mut().insert(header::VARY, card::VARY);
        response
    })
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
    let mut response = refuse(&doors, req.headers(), req.uri(), &error);
    *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED;
    response
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

fn nothing_here(doors: &Doors, head: &Parts) -> Response {
    let text = "nothing is served at this path; calls go to / or /a2a/{agent}, \
                cards are at /.well-known/agent-card.json and /a2a/{agent}/.well-known/agent-card.json";
    let error = Error::new(ErrorKind::MethodNotFound, text);
    let mut response = refuse(doors, &head.headers, &head.uri, &error);
    *response.status_mut() = StatusCode::NOT_FOUND;
    response
}

/// Refuses what is no call.
fn refuse(doors: &Doors, headers: &HeaderMap, uri: &Uri, error: &Error) -> Response {
    let (version, profile) = (Version::of(headers, uri), &doors.houses.neutral);
    let dialect = Asked { version: &version, profile, spoken: doors.spoken }.fallback();
    respond::refuse(
        &Reader { envelope: Envelope::Rpc(Id::null()), dialect, profile },
        error,
        doors.engine.clock().now(),
    )
}
