//! The context of one request, made from its head before any of its body is read.
//!
//! Every request has an [`Exchange`], whatever its route: the row of the route table, the agent that it addresses and its
//! sender. Whether it goes on is decided by the checks at the top of `service.rs`. A binding decodes the body into a
//! [`DecodedRequest`](crate::request::decoded_request::DecodedRequest), runs it, and encodes the result. Beside that, only
//! [`Exchange::task_origin`] and [`Exchange::start_work`] ask the engine.

use std::{sync::Arc, time::Duration};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use engine::{CallResponse, Catalog, Origin, RegisteredAgent, Reservation};
use http::{HeaderMap, HeaderValue, request::Parts};
use protocol::{
    Dialect, Error, ErrorKind, OperationKind, TaskId, TaskState, Timestamp, TraceContext, dialect::v1,
};
use tracing::Span;

use crate::{
    access::{
        self, audit,
        auth::TaskToken,
        open_streams::{OpenStream, OpenStreams},
    },
    admit::{self, extensions},
    bindings::grpc,
    documents::card::CardBuilder,
    request::{
        access_log::CallEntry,
        body,
        connection::Connection,
        endpoint::Endpoint,
        negotiate::Negotiation,
        sender::Sender,
        trace::{self, ParentId, RequestId},
        version::Version,
    },
    response::{
        keep_alive,
        refusal::Refusal,
        reply_additions::ReplyAdditions,
        respond::{self, Envelope, ResponseFormat},
        sse,
    },
    routes::{self, Access, BodyLimit, Handler, Path, PathProfile, Problem, Row, Target},
    server_state::ServerState,
};

/// The context of one request.
pub(crate) struct Exchange {
    pub(crate) server: Arc<ServerState>,
    pub(crate) head: Parts,
    pub(crate) row: &'static Row,
    pub(crate) endpoint: Endpoint,
    pub(crate) sender: Sender,
    /// The operation that method and path name.
    pub(crate) operation: Option<OperationKind>,
    /// The dialect that the path belongs to, over HTTP+JSON and gRPC.
    pub(crate) dialect: Option<Dialect>,
    problem: Option<Problem>,
    /// The origin whose pages may read the response, by CORS.
    pub(crate) cors: Option<HeaderValue>,
    pub(crate) request_id: RequestId,
    /// The span of the request in its trace.
    pub(crate) trace: TraceContext,
    pub(crate) span: Span,
    /// Memory reserved for the request, its call and its response.
    pub(crate) memory: Arc<Reservation>,
    pub(crate) log_entry: CallEntry,
    /// Whether the call has been counted for its agent.
    agent_rate: AgentRate,
    /// The catalog with which the request began.
    pub(crate) catalog: Arc<Catalog>,
    /// What a reply that comes after its response has begun gets beside what the engine returns.
    pub(crate) reply_additions: Option<Box<ReplyAdditions>>,
    /// Where the path within the binding begins.
    rest_at: usize,
}

/// Whether a call has been counted by the rate limit of its agent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AgentRate {
    /// Not yet: only the body may name the agent.
    Due,
    Checked,
}

impl Exchange {
    /// Makes the context of a request from its head.
    pub(crate) fn begin(server: Arc<ServerState>, connection: Connection, head: Parts) -> Self {
        // Before anything is read that may change.
        let sender = Sender::of(&server, connection, &head);
        let catalog = server.engine.catalog().load();
        let path = head.uri.path();
        let target = routes::find_in(
            sender.connection.routes,
            server.operator_api(),
            &head.method,
            head.version,
            path,
            &head.headers,
        );
        let rest_at = path.len() - target.rest.len();
        let endpoint = endpoint(&catalog, &target, &head.headers);
        let Target { row, number, operation, dialect, problem, .. } = target;
        server.counters.count(number);
        let parent = trace::parent(&head.headers);
        let trace = match &parent {
            Some(parent) => parent.child(engine::random_span_id()),
            None => engine::begin_trace(),
        };
        let request_id = RequestId::of(&trace);
        let is_call = matches!(row.access, Access::Caller | Access::Signed) && problem.is_none();
        let log_entry = if is_call {
            CallEntry::begin(&server.metrics, request_id, row.handler, &endpoint)
        } else {
            CallEntry::off()
        };
        let span = span(&trace, parent.as_ref(), row.handler);
        Self {
            memory: server.engine.memory().begin(),
            server,
            head,
            row,
            endpoint,
            sender,
            operation,
            dialect,
            problem,
            cors: None,
            request_id,
            trace,
            span,
            log_entry,
            agent_rate: AgentRate::Due,
            catalog,
            reply_additions: None,
            rest_at,
        }
    }

    /// Checks that the path and the method are served.
    pub(crate) fn check_served(&mut self) -> Result<(), Refusal> {
        self.problem.take().map_or(Ok(()), |problem| Err(problem.into()))
    }

    /// The signed token of the request; its signature is verified when the body has named the task.
    pub(crate) fn task_token(&self) -> Result<TaskToken, Error> {
        self.server.task_tokens.read(&self.head.headers, self.now())
    }

    pub(crate) fn names_agent_in_body(&self) -> bool {
        matches!(self.row.handler, Handler::Grpc(_)) && !self.endpoint.is_named
    }

    /// Counts a call by the rate limits of its caller and tenant, and of its agent if the head of the request names it.
    /// Requests without a caller, such as those for cards, are bounded by the connections, and operators are not limited.
    pub(crate) fn check_rate(&mut self) -> Result<(), Error> {
        if self.row.access != Access::Caller {
            return Ok(());
        }
        self.server.rates.load().check_caller(self.endpoint.tenant.id(), self.sender.rate_key())?;
        // MCP has requests that call no agent.
        if self.names_agent_in_body() || self.row.handler == Handler::Mcp {
            return Ok(());
        }
        self.check_agent_rate()
    }

    /// Counts a request whose sender is refused; returns the error for it. Wrong credentials are counted by address, those of
    /// known callers like a call.
    pub(crate) fn count_refusal(&self, error: Error) -> Error {
        let (rates, tenant) = (self.server.rates.load(), self.endpoint.tenant.id());
        let counted = match (error.kind, self.sender.refused_key()) {
            (ErrorKind::Unauthenticated, Some(key)) => rates.check_refused(tenant, key),
            (ErrorKind::PermissionDenied, _) => rates.check_caller(tenant, self.sender.rate_key()),
            _ => Ok(()),
        };
        counted.err().unwrap_or(error)
    }

    /// How long the response to a refused request is held back: not at all, unless a rate limit has refused it and the same
    /// caller has had many such responses.
    pub(crate) fn refusal_delay(&self, refused: &Error) -> Option<Duration> {
        if refused.kind != ErrorKind::RateLimited {
            return None;
        }
        self.server.rates.load().refusal_delay(self.endpoint.tenant.id(), self.sender.rate_key()?)
    }

    /// Counts a call by the rate limit of its agent, unless it has been counted.
    pub(crate) fn check_agent_rate(&mut self) -> Result<(), Error> {
        match (self.agent_rate, self.endpoint.registered()) {
            (AgentRate::Due, Some(agent)) => {
                self.agent_rate = AgentRate::Checked;
                self.server.rates.load().check_agent(self.endpoint.tenant.id(), &agent.info().id)
            }
            (AgentRate::Checked, _) | (AgentRate::Due, None) => Ok(()),
        }
    }

    /// Counts a stream of the caller.
    pub(crate) fn open_stream(&self) -> Result<OpenStream, Error> {
        OpenStreams::open(
            &self.server.streams,
            &self.sender.scope(&self.endpoint),
            self.sender.caps(&self.server).streams,
        )
    }

    /// Sets the agent, if only the body or the metadata names it.
    pub(crate) fn address(&mut self, agent: &str) {
        self.agent_rate = AgentRate::Due;
        self.endpoint = Endpoint::of(&self.catalog, &self.endpoint.tenant, Some(agent), PathProfile::OfAgent);
        self.log_entry.set_agent(&self.endpoint);
    }

    /// Continues another trace than the headers name, if the body names one.
    #[cfg(feature = "mcp")]
    pub(crate) fn continue_trace(&mut self, parent: &TraceContext) {
        self.trace = parent.child(self.trace.span_id());
        self.request_id = RequestId::of(&self.trace);
        self.log_entry.set_request_id(self.request_id);
        self.span.record("traceparent", tracing::field::display(&self.trace));
        self.span.record("parent", tracing::field::display(ParentId(parent.span_id())));
    }

    /// The agent; an error if it is unknown.
    pub(crate) fn registered(&self) -> Result<&Arc<RegisteredAgent>, Error> {
        self.endpoint.registered().ok_or_else(|| self.endpoint.unknown_agent(&self.catalog))
    }

    /// The dialect in which a task was created; `None` if the caller may not have the operation, or has no such task.
    pub(crate) async fn task_origin(&self, kind: OperationKind, task: &TaskId) -> Option<Dialect> {
        access::check_agent(self).and_then(|()| admit::check_operation(&self.endpoint, kind)).ok()?;
        let origin =
            self.server.engine.origin(&self.sender.scope(&self.endpoint), task).await.unwrap_or_default();
        origin.map(Origin::dialect)
    }

    /// Starts the work of a task, if the token was signed for it and the work is queued. Returns the state of the task.
    pub(crate) async fn start_work(&mut self, token: &TaskToken, task: &TaskId) -> Result<TaskState, Error> {
        let verified = self.server.task_tokens.verify(token, task);
        verified.inspect_err(|error| audit::refused_call(self, error.kind))?;
        self.log_entry.set_task(task);
        let woken = self.server.engine.wake(task).await;
        let state = woken.map_err(|error| respond::to_caller_error(error, self.request_id))?;
        state.ok_or_else(|| Error::task_not_found(task))
    }

    /// A builder for the agent's card, with URLs that match the address of the request.
    pub(crate) fn card(&self) -> Result<CardBuilder<'_>, Error> {
        let at_root =
            !matches!(self.row.path, Path::OfAgent(_) | Path::BelowAgent(_) | Path::ResourcesOfAgent);
        CardBuilder::of(&self.server, &self.catalog, &self.endpoint, self.origin(), at_root)
    }

    /// Scheme and host of the server as the client sees them.
    pub(crate) fn origin(&self) -> String {
        self.server.origins.of(&self.head.uri, &self.head.headers, &self.sender.connection)
    }

    /// The agents of the tenant.
    pub(crate) fn agents(&self) -> impl Iterator<Item = &Arc<RegisteredAgent>> {
        self.catalog.agents(self.endpoint.tenant.id())
    }

    /// The path within the binding: the resource of HTTP+JSON, or the method of gRPC.
    pub(crate) fn rest(&self) -> &str {
        self.head.uri.path().get(self.rest_at..).unwrap_or_default()
    }

    /// The version that the request names.
    pub(crate) fn version(&self) -> Version {
        Version::of(&self.head.headers, &self.head.uri)
    }

    pub(crate) fn negotiation<'a>(&'a self, version: &'a Version) -> Negotiation<'a> {
        Negotiation {
            version,
            profile: self.endpoint.profile(),
            accepted_versions: self.server.accepted_versions,
        }
    }

    /// Reads the body, up to the limit of the route.
    pub(crate) async fn read_body(&self, body: Body) -> Result<Bytes, Error> {
        body::check_encoding(&self.head.headers)?;
        body::read(body, self.max_body_bytes(), &self.memory).await
    }

    /// The most bytes of a request's body, and of a gRPC message.
    pub(crate) fn max_body_bytes(&self) -> usize {
        match self.row.body {
            BodyLimit::Empty => 0,
            BodyLimit::Configured => self.server.max_body_bytes,
            BodyLimit::Bytes(limit) => limit,
        }
    }

    /// The response to a call over JSON-RPC or HTTP+JSON.
    pub(crate) fn respond(
        self,
        envelope: Envelope,
        dialect: Dialect,
        result: Result<CallResponse, Error>,
    ) -> Response {
        let now = self.now();
        match result {
            Ok(CallResponse::Noted(note, answer)) => {
                respond::with_note(&note, self.respond(envelope, dialect, Ok(*answer)))
            }
            Ok(CallResponse::Pending(pending)) => keep_alive::respond(self, envelope, dialect, *pending),
            Ok(CallResponse::Stream(stream)) => {
                let Self { server, head, endpoint, request_id, memory, log_entry, .. } = self;
                let format = ResponseFormat { envelope, dialect, profile: endpoint.profile() };
                let log_entry = log_entry.into_stream(dialect.into());
                let response = sse::respond(stream, &format, log_entry, request_id, &server, memory);
                set_activated_header(response, &endpoint, dialect, &head.headers)
            }
            Ok(CallResponse::Reply(reply)) => {
                let Self { head, endpoint, memory, log_entry, .. } = self;
                let format = ResponseFormat { envelope, dialect, profile: endpoint.profile() };
                let response = respond::reply(&format, reply, log_entry, now, memory);
                set_activated_header(response, &endpoint, dialect, &head.headers)
            }
            Err(error) => {
                self.log_entry.finish(dialect);
                let format = ResponseFormat { envelope, dialect, profile: self.endpoint.profile() };
                respond::error_response(&format, &error, now)
            }
        }
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.server.engine.clock().now()
    }

    /// Records the name of an operation in the access log.
    pub(crate) fn set_method_of(&mut self, kind: OperationKind) {
        self.log_entry.set_method(v1::operation::method(kind));
    }
}

/// Adds the header with the extensions of the agent that the request activates.
pub(crate) fn set_activated_header(
    response: Response,
    endpoint: &Endpoint,
    dialect: Dialect,
    headers: &HeaderMap,
) -> Response {
    extensions::set_activated_header(response, &endpoint.settings().extensions, dialect, headers)
}

fn span(trace: &TraceContext, parent: Option<&TraceContext>, handler: Handler) -> Span {
    tracing::debug_span!(
        target: "a2ad::request",
        "request",
        traceparent = %trace,
        parent = parent.map(|parent| tracing::field::display(ParentId(parent.span_id()))),
        handler = handler.label(),
    )
}

/// The agent that the head of a request names, else the default agent.
fn endpoint(catalog: &Catalog, target: &Target<'_>, headers: &HeaderMap) -> Endpoint {
    // No route names another one.
    let tenant = catalog.default_tenant();
    let profile = match target.row.handler {
        Handler::JsonRpc(profile) => profile,
        Handler::Grpc(_) => {
            // Values that cannot be used are reported when the message, which may name an agent too, is read.
            let agent = grpc::agent_in_metadata(tenant, headers).ok().flatten();
            let profile = if agent.is_some() { PathProfile::OfAgent } else { PathProfile::Neutral };
            return Endpoint::of(catalog, tenant, agent.as_deref(), profile);
        }
        // Profiles are about A2A.
        Handler::Run | Handler::Mcp => PathProfile::Neutral,
        _ if target.agent.is_some() => PathProfile::OfAgent,
        _ => PathProfile::Neutral,
    };
    Endpoint::of(catalog, tenant, target.agent.as_deref(), profile)
}
