//! The route table: every path that the server serves, with what is decided from the head of a request alone.
//!
//! [`find`] is a pure function over the table, and there is no other router. Reserved names, the answers 404 and 405 with
//! `Allow`, and the list of paths on the page at `/` are derived from the table too. The resources of HTTP+JSON and the
//! methods of gRPC continue it: they are tables of `protocol`, because the client uses them as well. Health and
//! reflection are tonic's and have their methods there.

use std::borrow::Cow;

use http::{HeaderMap, Method, Version, header};
use protocol::{
    Dialect, OperationKind,
    grpc::Service,
    rest::{ResourcePath, percent_decode},
};

use crate::{
    bindings::{
        grpc,
        operators::{self, OperatorCall},
    },
    documents::card::CardName,
};

/// One row: a path, and what serves it.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) path: Path,
    pub(crate) methods: Methods,
    pub(crate) handler: Handler,
    pub(crate) access: Access,
    pub(crate) body: BodyLimit,
    pub(crate) served_to: ServedTo,
}

/// On which listeners a row is served where operators have one of their own (`server.admin_listen`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServedTo {
    Callers,
    Operators,
    Both,
}

/// The rows that a listener serves. The others do not exist there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RouteSet {
    /// All of them.
    #[default]
    All,
    /// Everything but the rows of operators, which another listener has.
    Callers,
    /// The rows of operators, and health.
    Operators,
}

impl RouteSet {
    fn contains(self, served_to: ServedTo) -> bool {
        match (self, served_to) {
            (Self::All, _) | (_, ServedTo::Both) => true,
            (Self::Callers, served_to) => served_to == ServedTo::Callers,
            (Self::Operators, served_to) => served_to == ServedTo::Operators,
        }
    }
}

/// The path of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// This path.
    Is(&'static str),
    /// `/a2a/{agent}`, followed by this.
    OfAgent(&'static str),
    /// This prefix, followed by the name of one of these.
    Below(&'static str, &'static str),
    /// This prefix, followed by the name of one of these and this suffix.
    Action(&'static str, &'static str, &'static str),
    /// `/a2a/{agent}`, followed by this prefix and a name.
    BelowAgent(&'static str),
    /// The resources of HTTP+JSON below this prefix.
    Resources(&'static str),
    /// The resources of HTTP+JSON below `/a2a/{agent}`.
    ResourcesOfAgent,
    /// The methods of this gRPC service.
    Methods(GrpcService),
    /// Every other path; not in the table.
    Unknown,
}

/// The HTTP methods of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Methods {
    /// GET and HEAD.
    Get,
    Post,
    Delete,
    /// Those of the HTTP transport of MCP: GET, POST and DELETE.
    Mcp,
    /// Those of the resource.
    OfResource,
    /// None: the name is reserved for later.
    None,
}

/// What serves a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handler {
    JsonRpc(PathProfile),
    Rest,
    /// Plain text, for requests with that content type. JSON-RPC at the same path hands over messages as JSON objects.
    Text,
    Grpc(GrpcService),
    Mcp,
    Card(CardName),
    /// One skill over plain HTTP.
    Run,
    /// Starts the work of one task.
    ProcessTask,
    /// The OpenAPI document of an agent's skills.
    OpenApi,
    /// The list of agents, with search.
    AgentList,
    /// The public keys of the server.
    PublishedKeys,
    /// The operators' API.
    Operators(OperatorCall),
    /// The extended card of 0.2, which has no method for it.
    ExtendedCard,
    HomePage,
    Liveness,
    Readiness,
    Metrics,
    Nothing,
}

/// The gRPC services of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GrpcService {
    A2a(Service),
    Health,
    Reflection,
    /// The older version of reflection, which many tools still use.
    ReflectionAlpha,
}

/// The compatibility profile of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PathProfile {
    /// That of the agent.
    OfAgent,
    Neutral,
    Fold,
    AgentNative,
    Agentos,
    DraftAlias,
}

/// Who may use a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everybody, whatever host the request names: load balancers know no name.
    Probe,
    /// Everybody, and web pages of every origin may read it.
    Public,
    /// Everybody who names a host of this server, and web pages that may call.
    Open,
    /// The same, with the credential that the agent requires, which is decided before the body is read.
    Caller,
    /// The same, with a token that is signed for the task in the body.
    Signed,
    /// Who has the admin token, which is decided before the body is read. Without one, nothing is served there.
    Operator,
    /// The same, and everybody on a listener that only this machine can reach.
    Monitor,
}

/// How much of a request's body is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyLimit {
    /// Nothing.
    Empty,
    /// Up to the configured limit (`limits.max_body`).
    Configured,
    /// Up to this number of bytes for each message.
    Bytes(usize),
}

/// Bytes of a request that holds only a task id.
const MAX_TASK_REQUEST: usize = 4 << 10;

/// Bytes of one message to gRPC health and reflection, which holds only a name.
pub(crate) const MAX_NAME_REQUEST: usize = 4 << 10;

const fn jsonrpc(path: &'static str, profile: PathProfile) -> Row {
    call(Path::Is(path), Methods::Post, Handler::JsonRpc(profile), BodyLimit::Configured)
}

const fn call(path: Path, methods: Methods, handler: Handler, body: BodyLimit) -> Row {
    Row { path, methods, handler, access: Access::Caller, body, served_to: ServedTo::Callers }
}

const fn get(path: Path, handler: Handler, access: Access) -> Row {
    Row { path, methods: Methods::Get, handler, access, body: BodyLimit::Empty, served_to: ServedTo::Callers }
}

const fn grpc(service: GrpcService) -> Row {
    let (access, body, served_to) = match service {
        GrpcService::A2a(_) => (Access::Caller, BodyLimit::Configured, ServedTo::Callers),
        GrpcService::Health => (Access::Open, BodyLimit::Bytes(MAX_NAME_REQUEST), ServedTo::Both),
        GrpcService::Reflection | GrpcService::ReflectionAlpha => {
            (Access::Open, BodyLimit::Bytes(MAX_NAME_REQUEST), ServedTo::Callers)
        }
    };
    Row {
        path: Path::Methods(service),
        methods: Methods::Post,
        handler: Handler::Grpc(service),
        access,
        body,
        served_to,
    }
}

/// A path of MCP; nothing is there without that feature.
const fn mcp(path: Path) -> Row {
    if cfg!(feature = "mcp") {
        return call(path, Methods::Mcp, Handler::Mcp, BodyLimit::Configured);
    }
    unserved(path)
}

/// A request that a signature permits.
const fn signed(path: Path, handler: Handler, body: BodyLimit) -> Row {
    Row { access: Access::Signed, ..call(path, Methods::Post, handler, body) }
}

const fn operator(path: Path, methods: Methods, call: OperatorCall) -> Row {
    let body = match methods {
        Methods::Post => BodyLimit::Bytes(operators::MAX_BODY),
        Methods::Get | Methods::Delete | Methods::Mcp | Methods::OfResource | Methods::None => {
            BodyLimit::Empty
        }
    };
    let (handler, access, served_to) = (Handler::Operators(call), Access::Operator, ServedTo::Operators);
    Row { path, methods, handler, access, body, served_to }
}

const fn reserved(path: &'static str) -> Row {
    unserved(Path::Is(path))
}

const fn unserved(path: Path) -> Row {
    Row { methods: Methods::None, ..get(path, Handler::Nothing, Access::Open) }
}

impl Row {
    /// Served to operators only.
    const fn for_operators(self) -> Self {
        Self { served_to: ServedTo::Operators, ..self }
    }

    /// Served to callers and to operators.
    const fn for_both(self) -> Self {
        Self { served_to: ServedTo::Both, ..self }
    }
}

pub(crate) const CARD: &str = "/.well-known/agent-card.json";
/// The name of a card before 0.3.
const OLD_CARD: &str = "/.well-known/agent.json";
const AGENT_LIST: &str = "/.well-known/agents.json";
const PUBLISHED_KEYS: &str = "/.well-known/jwks.json";
/// Where clients of 0.2.1 to 0.2.6 look for the extended card: beside the endpoint, or below it. Only the latter is
/// served for `/a2a/{agent}`: the path beside it would be the same for all agents.
const OLD_EXTENDED_CARD: &str = "/agent/authenticatedExtendedCard";

const PROCESS_TASK: &str = "/_agent-native/a2a/_process-task";

/// Prefix of the paths of skills over plain HTTP.
pub(crate) const RUN: &str = "/run/";
const OPENAPI: &str = "/openapi.json";

/// API keys in the operators' API.
const KEYS: &str = "/console/api/keys";
const BELOW_KEYS: &str = "/console/api/keys/";
/// Agents.
const OPERATED_AGENTS: &str = "/console/api/agents";
const BELOW_OPERATED_AGENTS: &str = "/console/api/agents/";
/// Tasks of all owners.
const ALL_TASKS: &str = "/console/api/tasks";
const BELOW_ALL_TASKS: &str = "/console/api/tasks/";
const COUNTS: &str = "/console/api/counts";
const BACKENDS: &str = "/console/api/backends";
const CONFIG: &str = "/console/api/config";
const DELIVERIES: &str = "/console/api/deliveries";
const BELOW_DELIVERIES: &str = "/console/api/deliveries/";
const AUDIT: &str = "/console/api/audit";

pub(crate) const ROWS: usize = 77;

/// The table. The first row with the path and the method of a request serves it.
pub(crate) static TABLE: [Row; ROWS] = [
    // The default agent over JSON-RPC.
    jsonrpc("/", PathProfile::OfAgent),
    jsonrpc("/a2a", PathProfile::OfAgent),
    jsonrpc("/a2a/", PathProfile::OfAgent),
    jsonrpc("/_a2a", PathProfile::Fold),
    jsonrpc("/_a2a/", PathProfile::Fold),
    // Before JSON-RPC below the same prefix.
    signed(Path::Is(PROCESS_TASK), Handler::ProcessTask, BodyLimit::Bytes(MAX_TASK_REQUEST)),
    jsonrpc("/_agent-native/a2a", PathProfile::AgentNative),
    jsonrpc("/_agent-native/a2a/", PathProfile::AgentNative),
    jsonrpc("/a2a/rpc", PathProfile::Agentos),
    jsonrpc("/a2a/rpc/", PathProfile::Agentos),
    // The package `python-a2a` posts each method of the draft to its own path. POST is JSON-RPC there although HTTP+JSON
    // has these paths too; other methods are HTTP+JSON.
    jsonrpc("/tasks/send", PathProfile::DraftAlias),
    jsonrpc("/tasks/sendSubscribe", PathProfile::DraftAlias),
    jsonrpc("/tasks/get", PathProfile::DraftAlias),
    jsonrpc("/tasks/cancel", PathProfile::DraftAlias),
    jsonrpc("/a2a/tasks/send", PathProfile::DraftAlias),
    jsonrpc("/a2a/tasks/sendSubscribe", PathProfile::DraftAlias),
    jsonrpc("/a2a/tasks/get", PathProfile::DraftAlias),
    jsonrpc("/a2a/tasks/cancel", PathProfile::DraftAlias),
    // Names that later versions use. Before the agents' own paths: no agent has one of these names.
    reserved("/run"),
    reserved("/api"),
    reserved("/apps"),
    reserved("/console"),
    reserved("/rpc"),
    reserved("/_process-task"),
    reserved("/approvals"),
    reserved("/a2a/mcp"),
    reserved("/a2a/run"),
    reserved("/a2a/_process-task"),
    reserved("/a2a/approvals"),
    reserved("/a2a/.well-known"),
    // Skills over plain HTTP.
    call(Path::Below(RUN, "skill"), Methods::Post, Handler::Run, BodyLimit::Configured),
    call(Path::BelowAgent(RUN), Methods::Post, Handler::Run, BodyLimit::Configured),
    get(Path::Is(OPENAPI), Handler::OpenApi, Access::Open),
    get(Path::OfAgent(OPENAPI), Handler::OpenApi, Access::Open),
    // HTTP+JSON. Before the agents' own paths: no agent has the name of a resource.
    call(Path::Resources(""), Methods::OfResource, Handler::Rest, BodyLimit::Configured),
    call(Path::Resources("/a2a"), Methods::OfResource, Handler::Rest, BodyLimit::Configured),
    call(Path::ResourcesOfAgent, Methods::OfResource, Handler::Rest, BodyLimit::Configured),
    // One agent as plain text or over JSON-RPC.
    call(Path::OfAgent(""), Methods::Post, Handler::Text, BodyLimit::Configured),
    call(Path::OfAgent("/"), Methods::Post, Handler::Text, BodyLimit::Configured),
    call(Path::OfAgent(""), Methods::Post, Handler::JsonRpc(PathProfile::OfAgent), BodyLimit::Configured),
    call(Path::OfAgent("/"), Methods::Post, Handler::JsonRpc(PathProfile::OfAgent), BodyLimit::Configured),
    // Where clients of agent-native look for an agent, below the URL on its card.
    call(
        Path::OfAgent("/_agent-native/a2a"),
        Methods::Post,
        Handler::JsonRpc(PathProfile::AgentNative),
        BodyLimit::Configured,
    ),
    call(Path::OfAgent("/a2a"), Methods::Post, Handler::JsonRpc(PathProfile::OfAgent), BodyLimit::Configured),
    // MCP.
    mcp(Path::Is("/mcp")),
    mcp(Path::OfAgent("/mcp")),
    // gRPC.
    grpc(GrpcService::A2a(Service::V1)),
    grpc(GrpcService::A2a(Service::V03)),
    grpc(GrpcService::Health),
    grpc(GrpcService::Reflection),
    grpc(GrpcService::ReflectionAlpha),
    // Cards.
    get(Path::Is(CARD), Handler::Card(CardName::AgentCard), Access::Public),
    get(Path::Is(OLD_CARD), Handler::Card(CardName::Agent), Access::Public),
    get(Path::OfAgent(CARD), Handler::Card(CardName::AgentCard), Access::Public),
    get(Path::OfAgent(OLD_CARD), Handler::Card(CardName::Agent), Access::Public),
    get(Path::Is(AGENT_LIST), Handler::AgentList, Access::Public),
    get(Path::Is(PUBLISHED_KEYS), Handler::PublishedKeys, Access::Public),
    call(Path::Is(OLD_EXTENDED_CARD), Methods::Get, Handler::ExtendedCard, BodyLimit::Empty),
    call(Path::OfAgent(OLD_EXTENDED_CARD), Methods::Get, Handler::ExtendedCard, BodyLimit::Empty),
    // The operators' API.
    operator(Path::Is(KEYS), Methods::Get, OperatorCall::ListKeys),
    operator(Path::Is(KEYS), Methods::Post, OperatorCall::CreateKey),
    operator(Path::Below(BELOW_KEYS, "id"), Methods::Delete, OperatorCall::RevokeKey),
    operator(Path::Is(OPERATED_AGENTS), Methods::Get, OperatorCall::ListAgents),
    operator(
        Path::Action(BELOW_OPERATED_AGENTS, "agent", "/enable"),
        Methods::Post,
        OperatorCall::EnableAgent,
    ),
    operator(
        Path::Action(BELOW_OPERATED_AGENTS, "agent", "/disable"),
        Methods::Post,
        OperatorCall::DisableAgent,
    ),
    operator(Path::Is(ALL_TASKS), Methods::Get, OperatorCall::ListTasks),
    operator(Path::Action(BELOW_ALL_TASKS, "id", "/cancel"), Methods::Post, OperatorCall::CancelTask),
    operator(Path::Below(BELOW_ALL_TASKS, "id"), Methods::Get, OperatorCall::GetTask),
    operator(Path::Is(COUNTS), Methods::Get, OperatorCall::Counts),
    operator(Path::Is(DELIVERIES), Methods::Get, OperatorCall::ListDeliveries),
    operator(Path::Action(BELOW_DELIVERIES, "id", "/resend"), Methods::Post, OperatorCall::Resend),
    operator(Path::Is(BACKENDS), Methods::Get, OperatorCall::ListBackends),
    operator(Path::Is(CONFIG), Methods::Get, OperatorCall::ShowConfig),
    operator(Path::Is(AUDIT), Methods::Get, OperatorCall::ReadAudit),
    // Pages for people and load balancers.
    get(Path::Is("/"), Handler::HomePage, Access::Open),
    get(Path::Is("/healthz"), Handler::Liveness, Access::Probe).for_both(),
    get(Path::Is("/readyz"), Handler::Readiness, Access::Open).for_both(),
    get(Path::Is("/metrics"), Handler::Metrics, Access::Monitor).for_operators(),
];

/// The row of paths that the table does not have.
static UNKNOWN: Row = get(Path::Unknown, Handler::Nothing, Access::Open);
/// The same for a request that is gRPC by its content type.
static UNKNOWN_SERVICE: Row = Row {
    handler: Handler::Grpc(GrpcService::A2a(Service::V1)),
    ..get(Path::Unknown, Handler::Nothing, Access::Open)
};

/// Paths, or beginnings of paths if they end in a slash, that a later version serves: what is missing, and what there is.
const NOT_BUILT: [(&str, &str); 4] = [
    ("/api/a2a/", "calls of other agents over HTTP are not built yet; `a2ad send URL TEXT` calls one"),
    ("/apps/", "the apps of a workspace are not built yet; agents are at /a2a/{agent}"),
    ("/console", CONSOLE_NOT_BUILT),
    ("/console/", CONSOLE_NOT_BUILT),
];
const CONSOLE_NOT_BUILT: &str =
    "the console is not built yet; `a2ad ops` shows tasks and agents, and the page at / lists what is served";

/// Why nothing serves a path.
fn unserved_problem(path: &str) -> Problem {
    let is_of_operators = path.starts_with("/console/api/");
    let begins = |prefix: &str| path == prefix || prefix.ends_with('/') && path.starts_with(prefix);
    let found = NOT_BUILT.iter().find(|(prefix, _)| begins(prefix) && !is_of_operators);
    found.map_or(Problem::NotFound, |(_, text)| Problem::NotBuilt(text))
}

/// What serves a request.
#[derive(Debug)]
pub(crate) struct Target<'a> {
    pub(crate) row: &'static Row,
    /// The number of the row; paths that are not in the table share the number after the last one.
    pub(crate) number: usize,
    /// The agent that the path names; `None` is the default agent.
    pub(crate) agent: Option<Cow<'a, str>>,
    /// The path within the binding: the resource of HTTP+JSON, the method of gRPC, or the name of a skill.
    pub(crate) rest: &'a str,
    /// The operation that method and path name; JSON-RPC names it in the body.
    pub(crate) operation: Option<OperationKind>,
    /// The dialect that the path belongs to, over HTTP+JSON and gRPC.
    pub(crate) dialect: Option<Dialect>,
    /// Why nothing serves the request.
    pub(crate) problem: Option<Problem>,
}

/// Why nothing serves a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// The path is not in the table.
    NotFound,
    /// The path is, with these methods only.
    MethodNotAllowed(String),
    /// A later version serves it; the text says what there is until then.
    NotBuilt(&'static str),
}

/// The part of a path that a row leaves open.
struct Match<'a> {
    agent: Option<Cow<'a, str>>,
    rest: &'a str,
    resource: Option<ResourcePath<'a>>,
}

/// Finds what serves a request.
pub(crate) fn find<'a>(method: &Method, version: Version, path: &'a str, headers: &HeaderMap) -> Target<'a> {
    let is_grpc = grpc::is_content_type(headers) || version == Version::HTTP_2 && is_service_path(path);
    let mut other_method: Option<(usize, Match<'a>)> = None;
    let mut allowed: Vec<&'static str> = Vec::new();
    for (number, row) in TABLE.iter().enumerate() {
        if matches!(row.handler, Handler::Grpc(_)) != is_grpc {
            continue;
        }
        if row.handler == Handler::Text && !is_text(headers) {
            continue;
        }
        let Some(matched) = row.path.matches(path) else { continue };
        if row.handler == Handler::Nothing {
            return Target::unknown(&UNKNOWN, path);
        }
        if row.accepts(method, &matched) {
            return Target::new(number, matched, method, None);
        }
        for method in row.allowed(&matched) {
            if !allowed.contains(&method) {
                allowed.push(method);
            }
        }
        // Where two bindings have a path, the response to a method of neither is that of HTTP+JSON.
        if other_method.is_none() || row.handler == Handler::Rest {
            other_method = Some((number, matched));
        }
    }
    match other_method {
        None => Target::unknown(if is_grpc { &UNKNOWN_SERVICE } else { &UNKNOWN }, path),
        Some((number, matched)) if allowed.is_empty() => {
            Target::new(number, matched, method, Some(Problem::NotFound))
        }
        Some((number, matched)) => {
            Target::new(number, matched, method, Some(Problem::MethodNotAllowed(allowed.join(", "))))
        }
    }
}

/// Whether a server has an API for operators: not without an admin token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OperatorApi {
    Served,
    Unserved,
}

/// The same on a listener that serves some of the routes only.
pub(crate) fn find_in<'a>(
    routes: RouteSet,
    operator_api: OperatorApi,
    method: &Method,
    version: Version,
    path: &'a str,
    headers: &HeaderMap,
) -> Target<'a> {
    let target = find(method, version, path, headers);
    let is_unserved = operator_api == OperatorApi::Unserved && target.row.access == Access::Operator;
    if routes.contains(target.row.served_to) && !is_unserved {
        return target;
    }
    let is_grpc = matches!(target.row.handler, Handler::Grpc(_));
    Target::unknown(if is_grpc { &UNKNOWN_SERVICE } else { &UNKNOWN }, path)
}

impl<'a> Target<'a> {
    fn new(number: usize, matched: Match<'a>, method: &Method, problem: Option<Problem>) -> Self {
        let row = &TABLE[number];
        let Match { agent, rest, resource } = matched;
        let dialect = match row.handler {
            Handler::Grpc(GrpcService::A2a(service)) => Some(service.dialect()),
            _ => resource.map(|resource| resource.dialect),
        };
        let operation = match row.handler {
            Handler::Rest => resource.and_then(|resource| resource.operation(method.as_str())),
            Handler::Grpc(GrpcService::A2a(service)) => {
                service.methods().iter().find(|(name, _)| *name == rest).map(|(_, kind)| *kind)
            }
            Handler::Text | Handler::Run => Some(OperationKind::SendMessage),
            Handler::ExtendedCard => Some(OperationKind::GetExtendedCard),
            Handler::JsonRpc(_)
            | Handler::Grpc(_)
            | Handler::Mcp
            | Handler::ProcessTask
            | Handler::Card(_)
            | Handler::OpenApi
            | Handler::AgentList
            | Handler::PublishedKeys
            | Handler::Operators(_)
            | Handler::HomePage
            | Handler::Liveness
            | Handler::Readiness
            | Handler::Metrics
            | Handler::Nothing => None,
        };
        Self { row, number, agent, rest, operation, dialect, problem }
    }

    fn unknown(row: &'static Row, path: &'a str) -> Self {
        let problem = Some(unserved_problem(path));
        Self { row, number: ROWS, agent: None, rest: path, operation: None, dialect: None, problem }
    }
}

impl Row {
    fn accepts(&self, method: &Method, matched: &Match<'_>) -> bool {
        match self.methods {
            // Another method gets a response of gRPC.
            _ if matches!(self.handler, Handler::Grpc(_)) => true,
            Methods::Get => matches!(*method, Method::GET | Method::HEAD),
            Methods::Post => *method == Method::POST,
            Methods::Delete => *method == Method::DELETE,
            Methods::Mcp => matches!(*method, Method::GET | Method::POST | Method::DELETE),
            Methods::OfResource => {
                matched.resource.is_some_and(|resource| resource.operation(method.as_str()).is_some())
            }
            Methods::None => false,
        }
    }

    /// Whether its requests address an agent.
    pub(crate) fn is_for_agents(&self) -> bool {
        matches!(self.access, Access::Caller | Access::Public)
    }

    /// Whether another row serves the same path as plain text.
    pub(crate) fn also_serves_text(&self) -> bool {
        TABLE.iter().any(|row| row.handler == Handler::Text && row.path == self.path)
    }

    fn allowed(&self, matched: &Match<'_>) -> Vec<&'static str> {
        match self.methods {
            Methods::Get => vec!["GET", "HEAD"],
            Methods::Post => vec!["POST"],
            Methods::Delete => vec!["DELETE"],
            Methods::Mcp => vec!["GET", "POST", "DELETE"],
            Methods::OfResource => matched.resource.map_or_else(Vec::new, |resource| resource.allowed()),
            Methods::None => Vec::new(),
        }
    }
}

/// Prefix of every agent's paths; the default agent is served directly below it too.
const AGENTS: &str = "/a2a";

impl Path {
    fn matches<'a>(&self, path: &'a str) -> Option<Match<'a>> {
        match self {
            Self::Is(this) => (*this == path).then_some(Match { agent: None, rest: "", resource: None }),
            Self::OfAgent(suffix) => {
                let below = path.strip_prefix(AGENTS)?;
                let name = below.strip_prefix('/')?.strip_suffix(suffix)?;
                let is_segment = !name.is_empty() && !name.contains('/');
                (is_segment && !is_resource(below)).then(|| Match {
                    agent: Some(agent_name(name)),
                    rest: "",
                    resource: None,
                })
            }
            Self::Below(prefix, _) => {
                let rest = path.strip_prefix(prefix).filter(|name| !name.is_empty())?;
                Some(Match { agent: None, rest, resource: None })
            }
            Self::Action(prefix, _, suffix) => {
                let rest = path.strip_prefix(prefix)?;
                let name = rest.strip_suffix(suffix)?;
                (!name.is_empty() && !name.contains('/')).then_some(Match {
                    agent: None,
                    rest,
                    resource: None,
                })
            }
            Self::BelowAgent(prefix) => {
                let below = path.strip_prefix(AGENTS)?;
                let name = below.strip_prefix('/')?.split_once('/')?.0;
                let rest = below[1 + name.len()..].strip_prefix(prefix).filter(|name| !name.is_empty())?;
                let agent = (!name.is_empty() && !is_resource(below)).then(|| agent_name(name))?;
                Some(Match { agent: Some(agent), rest, resource: None })
            }
            Self::Resources("") => {
                let resource = ResourcePath::parse(path).filter(has_valid_tenant)?;
                Some(Match { agent: None, rest: path, resource: Some(resource) })
            }
            Self::Resources(prefix) => {
                let rest = path.strip_prefix(prefix)?;
                // The first segment is an agent if it is not a resource.
                let resource = ResourcePath::parse(rest).filter(|resource| resource.tenant.is_none())?;
                Some(Match { agent: None, rest, resource: Some(resource) })
            }
            Self::ResourcesOfAgent => {
                let below = path.strip_prefix(AGENTS)?;
                let name = below.strip_prefix('/')?.split_once('/')?.0;
                let rest = &below[1 + name.len()..];
                let resource = ResourcePath::parse(rest).filter(has_valid_tenant)?;
                if is_resource(below) {
                    return None;
                }
                Some(Match { agent: Some(agent_name(name)), rest, resource: Some(resource) })
            }
            Self::Methods(service) => {
                let rest = path.strip_prefix('/')?.strip_prefix(service.name())?;
                let rest = if rest.is_empty() { rest } else { rest.strip_prefix('/')? };
                Some(Match { agent: None, rest, resource: None })
            }
            Self::Unknown => None,
        }
    }

    /// The path as people read it.
    pub(crate) fn pattern(&self) -> String {
        match self {
            Self::Is(path) => (*path).to_owned(),
            Self::OfAgent(suffix) => agent_path("{agent}") + suffix,
            Self::Below(prefix, name) => format!("{prefix}{{{name}}}"),
            Self::Action(prefix, name, suffix) => format!("{prefix}{{{name}}}{suffix}"),
            Self::BelowAgent(prefix) => format!("{}{prefix}{{skill}}", agent_path("{agent}")),
            Self::Resources(prefix) => format!("{prefix}/…"),
            Self::ResourcesOfAgent => agent_path("{agent}") + "/…",
            Self::Methods(service) => format!("/{}/{{method}}", service.name()),
            Self::Unknown => String::new(),
        }
    }

    /// The first segment below a prefix, if it is the same for every request.
    fn first_segment_below(&self, prefix: &str) -> Option<&'static str> {
        let path = match self {
            Self::Is(path) | Self::Below(path, _) | Self::Action(path, ..) | Self::Resources(path) => path,
            Self::OfAgent(_) | Self::BelowAgent(_) | Self::ResourcesOfAgent => AGENTS,
            Self::Methods(_) | Self::Unknown => return None,
        };
        let below = path.strip_prefix(prefix)?.strip_prefix('/')?;
        below.split('/').next().filter(|segment| !segment.is_empty())
    }
}

/// Whether a path below [`AGENTS`] begins with the name of a resource, which no agent has.
fn is_resource(below: &str) -> bool {
    ResourcePath::parse(below).is_some_and(|resource| resource.tenant.is_none())
}

fn is_service_path(path: &str) -> bool {
    TABLE.iter().any(|row| matches!(row.handler, Handler::Grpc(_)) && row.path.matches(path).is_some())
}

/// The path of an agent.
pub(crate) fn agent_path(agent: &str) -> String {
    format!("{AGENTS}/{agent}")
}

/// An agent name that is not UTF-8 becomes empty, which matches no agent.
fn agent_name(segment: &str) -> Cow<'_, str> {
    percent_decode(segment).unwrap_or_default()
}

fn has_valid_tenant(resource: &ResourcePath<'_>) -> bool {
    resource.tenant.is_none_or(|tenant| !is_reserved_tenant(tenant))
}

/// Whether the first segment of a path has another meaning than a tenant.
fn is_reserved_tenant(name: &str) -> bool {
    is_used_below("", name) || is_used_below(AGENTS, name)
}

/// Whether `/a2a/{name}` is used for something other than an agent, so that no agent may have this id.
pub fn is_reserved_agent_id(name: &str) -> bool {
    is_used_below(AGENTS, name)
        || ResourcePath::parse(&format!("/{name}")).is_some()
        // Clients normalise these path segments away.
        || matches!(name, "." | "..")
}

fn is_used_below(prefix: &str, name: &str) -> bool {
    TABLE.iter().any(|row| row.path.first_segment_below(prefix) == Some(name))
}

/// The paths that a handler serves, as people read them.
pub(crate) fn patterns(handles: impl Fn(Handler) -> bool) -> Vec<String> {
    TABLE.iter().filter(|row| handles(row.handler)).map(|row| row.path.pattern()).collect()
}

/// Methods, path and handler of every route for callers, for people. A path that may end in a slash is listed without it.
pub(crate) fn listing() -> impl Iterator<Item = (&'static str, String, &'static str)> {
    let rows = TABLE.iter().filter(|row| !matches!(row.access, Access::Operator | Access::Monitor));
    let rows = rows.filter_map(|row| Some((row.methods.label()?, row.path.pattern(), row.handler.label())));
    rows.filter(|(_, path, _)| path == "/" || !path.ends_with('/'))
}

impl Methods {
    fn label(self) -> Option<&'static str> {
        match self {
            Self::Get => Some("GET"),
            Self::Post => Some("POST"),
            Self::Delete => Some("DELETE"),
            Self::Mcp | Self::OfResource => Some("GET, POST, DELETE"),
            Self::None => None,
        }
    }
}

impl Handler {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::JsonRpc(_) => "JSON-RPC",
            Self::Rest => "HTTP+JSON",
            Self::Text => "plain text",
            Self::Grpc(_) => "gRPC",
            Self::Mcp => "MCP",
            Self::Card(_) => "agent card",
            Self::Run => "plain HTTP",
            Self::ProcessTask => "signed request to start a task",
            Self::OpenApi => "OpenAPI document of the skills",
            Self::AgentList => "list of agents; ?q= searches it",
            Self::PublishedKeys => "public keys of this server (JWKS)",
            Self::Operators(_) => "operators' API",
            Self::ExtendedCard => "extended agent card of 0.2",
            Self::HomePage => "this page",
            Self::Liveness => "liveness",
            Self::Readiness => "readiness",
            Self::Metrics => "metrics for Prometheus",
            Self::Nothing => "reserved",
        }
    }
}

/// Whether the content type is `text/plain`.
fn is_text(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("text/plain")
}

impl GrpcService {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::A2a(service) => service.name(),
            Self::Health => grpc::HEALTH,
            Self::Reflection => grpc::REFLECTION,
            Self::ReflectionAlpha => grpc::REFLECTION_ALPHA,
        }
    }
}
