//! The context of one request, made before any of its body is read, and the one way from a request to the engine.
//!
//! Every request has an [`Exchange`], whatever its route: it has the route, the verdict about host and origin, the agent
//! and the caller. `service.rs` hands it to the route's handler if host, origin and credential permit it. A binding
//! decodes the body, passes the operation to [`Exchange::run`], and encodes the result. Beside it, only
//! [`Exchange::task_origin`] and [`Exchange::start_work`] ask the engine.

use std::{net::IpAddr, pin::pin, sync::Arc, time::Duration};

use axum::{body::Body, response::Response};
use bytes::Bytes;
use engine::{
    AgentSettings, Call, CallResponse, Catalog, EndUser, Origin, PrincipalCaps, RegisteredAgent, Reservation,
    Resume, Scope, StreamEnd, TaskPolicy,
};
use http::{HeaderMap, header, request::Parts};
use protocol::{
    Dialect, Error, ErrorKind, Operation, OperationKind, Reply, TaskId, TaskState, Timestamp, TraceContext,
    Violation, dialect::v1,
};
use tracing::Span;

use crate::{
    access_log::CallEntry,
    access_watch::AccessWatch,
    admit::{self, extensions},
    audit,
    auth::{self, Subject, TaskToken, Verification, Verified, Wanted, schemes},
    authority::Authority,
    bindings::grpc,
    body,
    caller::{self, Identity, Peer},
    card::CardBuilder,
    connection::Connection,
    endpoint::{Endpoint, check_tenant, unknown_agent},
    forwarded,
    host::Listener,
    host_and_origin::{self, Verdict},
    negotiate::Negotiation,
    open_streams::{OpenStream, OpenStreams},
    rate_limit::RateKey,
    respond::{self, Envelope, ResponseFormat},
    routes::{self, Access, BodyLimit, Handler, Path, PathProfile, Problem, Row, Target},
    server_state::ServerState,
    trace::{self, ParentId, RequestId},
    version::Version,
};

/// Estimated memory of a call besides its body and its response.
const CALL_BYTES: u64 = 4 << 10;

/// The context of one request.
pub(crate) struct Exchange {
    pub(crate) server: Arc<ServerState>,
    pub(crate) head: Parts,
    pub(crate) row: &'static Row,
    /// Whether host and origin permit the request.
    pub(crate) verdict: Verdict,
    pub(crate) endpoint: Endpoint,
    /// The operation that method and path name.
    pub(crate) operation: Option<OperationKind>,
    /// The dialect that the path belongs to, over HTTP+JSON and gRPC.
    pub(crate) dialect: Option<Dialect>,
    /// Why nothing serves the request.
    pub(crate) problem: Option<Problem>,
    pub(crate) request_id: RequestId,
    /// The span of the request in its trace.
    trace: TraceContext,
    pub(crate) span: Span,
    /// Memory reserved for the request, its call and its response.
    pub(crate) memory: Arc<Reservation>,
    pub(crate) log_entry: CallEntry,
    /// How long a send waits for the outcome at most, if the binding lets its callers choose that.
    pub(crate) wait: Option<Duration>,
    /// How messages are assigned to tasks, if the binding decides that instead of the profile.
    pub(crate) task_policy: Option<TaskPolicy>,
    connection: Connection,
    /// Whether the call has been counted for its agent.
    agent_rate: AgentRate,
    /// Who has sent the request, as far as its credentials prove it.
    identity: Identity,
    /// On whose behalf the caller acts, where a token proves that.
    end_user: Option<Subject>,
    /// How many changes of what decides about callers there were when the request arrived.
    access_changes: u64,
    catalog: Arc<Catalog>,
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

/// A request whose body has been decoded.
pub(crate) struct DecodedRequest {
    pub(crate) kind: OperationKind,
    pub(crate) dialect: Dialect,
    /// An error is reported after those about the caller and the agent's capabilities.
    pub(crate) operation: Result<Operation, Error>,
}

impl Exchange {
    /// Makes the context of a request from its head.
    pub(crate) fn begin(server: Arc<ServerState>, connection: Connection, head: Parts) -> Self {
        // Before anything is read that may change.
        let access_changes = server.access.changes.count();
        let catalog = server.engine.catalog().load();
        let path = head.uri.path();
        let target = routes::find_in(
            connection.routes,
            server.operator_api(),
            &head.method,
            head.version,
            path,
            &head.headers,
        );
        let rest_at = path.len() - target.rest.len();
        let verdict = host_and_origin::check(&server, connection.listener, target.row.access, &head);
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
        let span = tracing::debug_span!(
            target: "a2ad::request",
            "request",
            traceparent = %trace,
            parent = parent.as_ref().map(|parent| tracing::field::display(ParentId(parent.span_id()))),
            handler = row.handler.label(),
        );
        let peer = connection.peer.or_else(|| Peer::of(&head.extensions));
        Self {
            identity: Identity::of(&head.extensions),
            end_user: None,
            access_changes,
            memory: server.engine.memory().begin(),
            server,
            head,
            row,
            verdict,
            endpoint,
            operation,
            dialect,
            problem,
            request_id,
            trace,
            span,
            log_entry,
            wait: None,
            task_policy: None,
            connection: Connection { peer, ..connection },
            agent_rate: AgentRate::Due,
            catalog,
            rest_at,
        }
    }

    /// Verifies the credentials of the request that matter to the agent; where only the body names the agent, to any.
    /// Callers that the application has identified present none.
    pub(crate) fn verify(&self) -> Verification {
        let wanted = match (self.row.access, self.row.handler) {
            (Access::Caller, _) | (Access::Open, Handler::OpenApi) => self.wanted(),
            (
                Access::Probe
                | Access::Public
                | Access::Open
                | Access::Signed
                | Access::Operator
                | Access::Monitor,
                _,
            ) => Wanted { caller: false, end_user: false },
        };
        if wanted == (Wanted { caller: false, end_user: false }) {
            let verified = Verified { caller: self.identity.clone(), end_user: None };
            return Verification::Ready(Ok(verified));
        }
        let refused = self.refused_sender().and_then(|sender| {
            let rates = self.server.rates.load();
            rates.is_refused(self.endpoint.tenant.id(), sender).err()
        });
        let certificate = self.connection.certificate.as_ref().map(|certificate| certificate.principal());
        self.server.auth.verify(&self.head.headers, certificate, wanted, refused)
    }

    fn wanted(&self) -> Wanted {
        let of = |settings: &AgentSettings| Wanted {
            caller: settings.auth.verify_credentials(),
            end_user: settings.end_user == EndUser::Required,
        };
        let any = |one: Wanted, other: Wanted| Wanted {
            caller: one.caller || other.caller,
            end_user: one.end_user || other.end_user,
        };
        let mut wanted = of(self.endpoint.settings());
        if self.names_agent_in_body() || self.row.handler == Handler::Mcp {
            let agents = self.catalog.agents(self.endpoint.tenant.id()).map(|agent| of(agent.settings()));
            wanted = agents.fold(wanted, any);
        }
        Wanted { caller: wanted.caller && self.identity.is_anonymous(), ..wanted }
    }

    /// Takes over what verification has found, and decides whether it permits calls of the agent, before the body is
    /// read. An agent that only the body can name is decided in [`run`](Self::run), and so is a disabled one where the
    /// body decides the dialect of the error.
    pub(crate) fn authenticate(&mut self, verified: Result<Verified, Error>) -> Result<(), Error> {
        let Verified { caller, end_user } = verified.map_err(|error| {
            let presented = auth::presented(&self.head.headers);
            schemes::with_challenge(self.endpoint.settings(), presented, error)
        })?;
        if self.identity.is_anonymous() {
            self.identity = caller;
        }
        self.end_user = end_user;
        if self.row.access == Access::Caller
            && let Some(certificate) = &self.connection.certificate
        {
            // A new connection with it would be refused too, whatever else its requests have.
            certificate.check(self.now())?;
        }
        match self.row.access {
            Access::Probe | Access::Public | Access::Open => Ok(()),
            Access::Signed => self.task_token().map(drop),
            Access::Operator => self.check_operator(),
            Access::Monitor if self.is_from_this_machine() => Ok(()),
            Access::Monitor => self.check_operator(),
            Access::Caller if self.names_agent_in_body() && self.permits_some_calls() => Ok(()),
            Access::Caller if self.names_agent_in_body() => self.check_credential().map_err(without_agent),
            Access::Caller if matches!(self.row.handler, Handler::Text | Handler::Run | Handler::Mcp) => {
                self.authorize()
            }
            Access::Caller if !self.endpoint.settings().enabled => Ok(()),
            Access::Caller => self.check_credential(),
        }
    }

    /// The signed token of the request; its signature is verified when the body has named the task.
    pub(crate) fn task_token(&self) -> Result<TaskToken, Error> {
        self.server.task_tokens.read(&self.head.headers, self.now())
    }

    fn check_operator(&self) -> Result<(), Error> {
        let unserved = || Error::new(ErrorKind::NotFound, "nothing is served at this path");
        self.server.operators.as_ref().ok_or_else(unserved)?.check(&self.head.headers)
    }

    /// Whether only this machine can have sent the request: on a listener on loopback, and not by a proxy, as far as its
    /// headers show that.
    fn is_from_this_machine(&self) -> bool {
        let Listener::Bound(address) = self.connection.listener else { return false };
        let names_loopback =
            |host: &str| Authority::parse(host).is_some_and(|named| named.host.is_loopback());
        let target = self.head.uri.authority().map(|authority| authority.as_str());
        let host = self.head.headers.get(header::HOST).and_then(|value| value.to_str().ok());
        address.to_canonical().is_loopback()
            && target.into_iter().chain(host).all(names_loopback)
            && !forwarded::is_present(&self.head.headers)
    }

    fn names_agent_in_body(&self) -> bool {
        matches!(self.row.handler, Handler::Grpc(_)) && !self.endpoint.is_named
    }

    /// Whether the caller may call some agent.
    fn permits_some_calls(&self) -> bool {
        let accepts =
            |settings: &AgentSettings, agent: &str| self.identity.with_agent(settings, agent).is_ok();
        accepts(self.endpoint.settings(), self.endpoint.agent())
            || self
                .catalog
                .agents(self.endpoint.tenant.id())
                .any(|agent| accepts(agent.settings(), &agent.info().id))
    }

    fn check_credential(&self) -> Result<(), Error> {
        let settings = self.endpoint.settings();
        let identity = self.identity.with_agent(settings, self.endpoint.agent())?;
        caller::check_end_user(identity, settings, self.end_user_name())
    }

    fn end_user_name(&self) -> Option<&Arc<str>> {
        self.end_user.as_ref().map(|subject| &subject.name)
    }

    /// Counts a call by the rate limits of its caller and tenant, and of its agent if the head of the request names it.
    /// Requests without a caller, such as those for cards, are bounded by the connections, and operators are not limited.
    pub(crate) fn check_rate(&mut self) -> Result<(), Error> {
        if self.row.access != Access::Caller {
            return Ok(());
        }
        self.server.rates.load().check_caller(self.endpoint.tenant.id(), self.rate_key())?;
        // MCP has requests that call no agent.
        if self.names_agent_in_body() || self.row.handler == Handler::Mcp {
            return Ok(());
        }
        self.check_agent_rate()
    }

    /// Counts a request that [`authenticate`](Self::authenticate) has refused; returns the error for its sender. Wrong
    /// credentials are counted by address, those of known callers like a call.
    pub(crate) fn count_refusal(&self, error: Error) -> Error {
        let rates = self.server.rates.load();
        let counted = match (error.kind, self.refused_sender()) {
            (ErrorKind::Unauthenticated, Some(sender)) => {
                rates.check_refused(self.endpoint.tenant.id(), sender)
            }
            (ErrorKind::PermissionDenied, _) => {
                rates.check_caller(self.endpoint.tenant.id(), self.rate_key())
            }
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
        self.server.rates.load().refusal_delay(self.endpoint.tenant.id(), self.rate_key()?)
    }

    /// By what refused credentials are counted; `None` where callers without one are not limited either.
    fn refused_sender(&self) -> Option<RateKey<'static>> {
        self.remote_address().map(RateKey::of_refused)
    }

    fn check_agent_rate(&mut self) -> Result<(), Error> {
        match (self.agent_rate, self.endpoint.registered()) {
            (AgentRate::Due, Some(agent)) => {
                self.agent_rate = AgentRate::Checked;
                self.server.rates.load().check_agent(self.endpoint.tenant.id(), &agent.info().id)
            }
            (AgentRate::Checked, _) | (AgentRate::Due, None) => Ok(()),
        }
    }

    /// What the caller may have at a time: no limit without a credential on loopback.
    fn caps(&self) -> PrincipalCaps {
        let client = self.server.origins.client_address(&self.head.headers, self.connection.peer);
        if self.identity.is_anonymous() && client.is_some_and(|client| self.is_local(client)) {
            return PrincipalCaps::default();
        }
        self.server.engine.limits().per_principal
    }

    /// Counts a stream of the caller, if the operation opens one.
    fn begin_stream(&self, operation: &Operation) -> Result<Option<OpenStream>, Error> {
        match operation {
            Operation::SendStreamingMessage(_) | Operation::SubscribeToTask(_) => {
                self.open_stream().map(Some)
            }
            Operation::SendMessage(_)
            | Operation::GetTask(_)
            | Operation::ListTasks(_)
            | Operation::CancelTask(_)
            | Operation::CreatePushConfig(_)
            | Operation::GetPushConfig(_)
            | Operation::ListPushConfigs(_)
            | Operation::DeletePushConfig(_)
            | Operation::GetExtendedCard(_) => Ok(None),
        }
    }

    /// Counts a stream of the caller.
    pub(crate) fn open_stream(&self) -> Result<OpenStream, Error> {
        OpenStreams::open(&self.server.streams, &self.scope(), self.caps().streams)
    }

    /// By what the calls of the caller are counted; `None` for those that are not limited. All callers without a
    /// credential have the same principal, so they are counted by address: one of them must not lock out the others. An
    /// application that does not tell the address has to limit them itself.
    fn rate_key(&self) -> Option<RateKey<'_>> {
        if let Identity::Known(caller) = &self.identity {
            return Some(RateKey::Principal(caller.principal()));
        }
        self.remote_address().map(RateKey::of_address)
    }

    /// The address of the client, unless it is on this machine and the server is for this machine only.
    fn remote_address(&self) -> Option<IpAddr> {
        let client = self.server.origins.client_address(&self.head.headers, self.connection.peer)?;
        Some(client).filter(|client| !self.is_local(*client))
    }

    fn is_local(&self, client: IpAddr) -> bool {
        self.connection.listener.is_loopback() && client.to_canonical().is_loopback()
    }

    /// Sets the agent, if only the body or the metadata names it.
    pub(crate) fn address(&mut self, agent: &str) {
        self.agent_rate = AgentRate::Due;
        self.endpoint = Endpoint::of(&self.catalog, &self.endpoint.tenant, Some(agent), PathProfile::OfAgent);
        self.log_entry.set_agent(&self.endpoint);
    }

    /// Executes an operation: checks the caller and the agent's capabilities, and calls the engine. Returns the result, or
    /// the error for the caller, and records it in the access log.
    pub(crate) async fn run(&mut self, request: DecodedRequest) -> Result<CallResponse, Error> {
        let dialect = request.dialect;
        let checked = self.check(request);
        let result = match checked {
            Err(error) => Err(error),
            // Depends on the address of the request, not on a task.
            Ok(Operation::GetExtendedCard(_)) => {
                self.card().map(|card| CallResponse::Reply(Reply::Card(Box::new(card.extended()))))
            }
            Ok(operation) => self.call_engine(self.call_origin(dialect), operation).await,
        };
        self.log_entry.set_result(&result);
        if let Err(error) = &result {
            audit::refused_call(self, error.kind);
        }
        result
    }

    async fn call_engine(&self, origin: Origin, operation: Operation) -> Result<CallResponse, Error> {
        let stream = self.begin_stream(&operation)?;
        let answered = {
            // In its place: moving the future of a call copies several kilobytes.
            let mut call = pin!(self.server.engine.call(self.call(origin)?, operation));
            tokio::select! {
                // Most calls end without a look at the other branch.
                biased;
                answered = &mut call => answered,
                error = self.revoked() => return Err(error),
            }
        };
        let answer = answered.map_err(|error| respond::to_caller_error(error, self.request_id))?;
        Ok(match stream {
            Some(stream) => answer.ending_with(self.stream_end(stream)),
            None => answer,
        })
    }

    /// Ends a stream, and its count, when its caller may not have it any more.
    fn stream_end(&self, counted: OpenStream) -> impl Future<Output = StreamEnd> + Send + 'static {
        let watch = self.access_watch();
        // A call of a tool is a call that waits, although it follows a stream.
        let is_call = self.row.handler == Handler::Mcp;
        async move {
            let _counted = counted;
            if is_call { StreamEnd::Revoked(watch.revoked().await) } else { watch.ended().await }
        }
    }

    /// Resolves when the caller may not have the call any more, with the error for it. Cancel safe.
    pub(crate) async fn revoked(&self) -> Error {
        let mut changes = self.server.access.changes.subscribe();
        if self.server.access.changes.count() == self.access_changes && !self.identity.has_certificate() {
            // The sender lives as long as the server.
            let _ = changes.changed().await;
        }
        self.access_watch().revoked().await
    }

    /// Watches whether the caller may still have what is open for it.
    pub(crate) fn access_watch(&self) -> AccessWatch {
        AccessWatch {
            check: Arc::clone(&self.server.access),
            tenant: Arc::clone(&self.endpoint.tenant),
            agent: self.endpoint.agent().to_owned(),
            identity: self.identity.clone(),
            end_user: self.end_user.clone(),
            certificate: self.connection.certificate.clone().filter(|_| self.identity.has_certificate()),
            seen: self.access_changes,
        }
    }

    fn check(&mut self, request: DecodedRequest) -> Result<Operation, Error> {
        let DecodedRequest { kind, dialect, operation } = request;
        if let Ok(operation) = &operation {
            self.log_entry.set_operation(operation, self.call_origin(dialect));
        }
        self.authorize()?;
        self.check_agent_rate()?;
        admit::check_operation(&self.endpoint, kind)?;
        let operation = operation?;
        // Over gRPC the tenant names the agent too, and has been read.
        if !matches!(self.row.handler, Handler::Grpc(_)) {
            check_tenant(&self.endpoint.tenant, operation.tenant())?;
        }
        admit::check_request(&self.endpoint, &self.scope(), dialect, &self.head.headers, operation)
    }

    /// Checks that the agent is enabled and that the caller may call it.
    fn authorize(&self) -> Result<(), Error> {
        if !self.endpoint.settings().enabled {
            return Err(unknown_agent(self.endpoint.agent()));
        }
        self.check_credential()
    }

    /// The call of the engine, with the idempotency key and the last event id from the headers.
    fn call(&self, origin: Origin) -> Result<Call, Error> {
        self.memory.reserve(CALL_BYTES)?;
        // Not looked up again by the engine: another catalog may be in use by now.
        let agent = self.registered()?;
        let text =
            |name: &str| self.head.headers.get(name).map(|value| std::str::from_utf8(value.as_bytes()));
        let resume = text("last-event-id").map(|seen| {
            let seen = seen.ok().and_then(engine::cursor::last_event_id);
            seen.map_or(Resume::Unknown, Resume::After)
        });
        // A lossy conversion could turn two different keys into the same one.
        let idempotency_key = text("idempotency-key").transpose().map_err(|_| {
            Error::invalid_params(Violation::new("Idempotency-Key", "expected text in UTF-8, 1 to 255 bytes"))
        })?;
        Ok(Call {
            idempotency_key: idempotency_key.map(str::to_owned),
            resume,
            origin,
            wait: self.wait,
            task_policy: self.task_policy.unwrap_or(self.endpoint.profile().task_policy),
            memory: Some(Arc::clone(&self.memory)),
            caps: self.caps(),
            agent: Some(Arc::clone(agent)),
            style: self.endpoint.profile().style,
            trace: self.trace.clone(),
            scope: self.scope(),
        })
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

    /// The origin of a call, which depends on the route.
    fn call_origin(&self, dialect: Dialect) -> Origin {
        match self.row.handler {
            Handler::JsonRpc(_)
            | Handler::Rest
            | Handler::Text
            | Handler::Grpc(_)
            | Handler::Card(_)
            | Handler::AgentList
            | Handler::PublishedKeys
            | Handler::Operators(_)
            | Handler::ExtendedCard
            | Handler::HomePage
            | Handler::Liveness
            | Handler::Readiness
            | Handler::Metrics
            | Handler::OpenApi
            | Handler::ProcessTask
            | Handler::Nothing => Origin::A2a(dialect),
            Handler::Run => Origin::Run,
            Handler::Mcp => Origin::Mcp,
        }
    }

    /// The agent; an error if it is unknown.
    pub(crate) fn registered(&self) -> Result<&Arc<RegisteredAgent>, Error> {
        self.endpoint.registered().ok_or_else(|| unknown_agent(self.endpoint.agent()))
    }

    /// The caller with the agent: the owner of its tasks. A caller that the agent does not accept is anonymous; nothing
    /// but public data is read with that.
    pub(crate) fn scope(&self) -> Scope {
        match self.endpoint.registered() {
            Some(agent) => self.scope_with(agent),
            None => Scope::anonymous(self.endpoint.tenant.id(), self.endpoint.agent()),
        }
    }

    /// The caller with another agent.
    pub(crate) fn scope_with(&self, agent: &RegisteredAgent) -> Scope {
        let identity = self.identity.with_agent(agent.settings(), &agent.info().id);
        match identity {
            Ok(identity) => identity.scope(self.endpoint.tenant.id(), agent, self.end_user_name()),
            Err(_) => agent.anonymous_scope().clone(),
        }
    }

    /// Whether the caller may call an agent.
    #[cfg(feature = "mcp")]
    pub(crate) fn may_call(&self, agent: &RegisteredAgent) -> bool {
        let settings = agent.settings();
        let accepted = || {
            let identity = self.identity.with_agent(settings, &agent.info().id)?;
            caller::check_end_user(identity, settings, self.end_user_name())
        };
        settings.enabled && accepted().is_ok()
    }

    /// The dialect in which a task was created; `None` if the caller may not have the operation, or has no such task.
    pub(crate) async fn task_origin(&self, kind: OperationKind, task: &TaskId) -> Option<Dialect> {
        self.authorize().and_then(|()| admit::check_operation(&self.endpoint, kind)).ok()?;
        let origin = self.server.engine.origin(&self.scope(), task).await.unwrap_or_default();
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
        CardBuilder::of(&self.server, &self.endpoint, self.origin(), at_root)
    }

    /// Scheme and host of the server as the client sees them.
    pub(crate) fn origin(&self) -> String {
        self.server.origins.of(&self.head.uri, &self.head.headers, &self.connection)
    }

    /// The name of the sender, as far as its credentials prove it.
    pub(crate) fn principal(&self) -> String {
        match &self.identity {
            Identity::Anonymous => "anonymous".to_owned(),
            Identity::Known(caller) => caller.principal().to_string(),
        }
    }

    /// The address of the sender, or of the proxy before this server.
    pub(crate) fn peer(&self) -> Option<IpAddr> {
        self.connection.peer
    }

    /// The catalog with which the request began.
    pub(crate) fn catalog(&self) -> &Catalog {
        &self.catalog
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
        let Self { server, head, endpoint, request_id, memory, log_entry, .. } = self;
        let format = ResponseFormat { envelope, dialect, profile: endpoint.profile() };
        match result {
            Ok(answer) => {
                let response = respond::respond(&format, answer, log_entry, request_id, &server, memory);
                let declared = &endpoint.settings().extensions;
                extensions::set_activated_header(response, declared, dialect, &head.headers)
            }
            Err(error) => {
                log_entry.finish(dialect);
                respond::error_response(&format, &error, server.engine.clock().now())
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

/// The error for a caller that no agent accepts, without the name of one: only the body would tell which it calls.
fn without_agent(error: Error) -> Error {
    match error.kind {
        ErrorKind::Unauthenticated => {
            Error { message: "the call requires a credential that its agent accepts".to_owned(), ..error }
        }
        _ => error,
    }
}
