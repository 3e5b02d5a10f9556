//! The client of one endpoint: how it connects, and the exchange that every operation uses.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering},
};

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use protocol::{
    Dialect, ErrorKind, MessageId, Operation, OperationKind, Reply, SendMessage, TaskId,
    dialect::v1,
    json::read::{Node, Read},
};
use url::Url;

use crate::{
    ClientOptions, Error, EventStream, FoundCard, TransportError,
    discover::find_card,
    envelope,
    exchange::{self, parse_url, read_body},
    history,
    transport::{Response, Transport},
};

/// Calls one agent over JSON-RPC.
///
/// Each operation of A2A is a method. A request is given as its struct or as something that converts into it,
/// such as a text to send or the id of a task. A client is used for any number of calls, also concurrent
/// ones, which share its connections. Dropping the future of a call cancels the request; what the agent has
/// already accepted continues there.
pub struct Client {
    transport: Arc<dyn Transport>,
    endpoint: Url,
    /// Number of the dialect in use.
    dialect: AtomicU8,
    /// The dialect to fall back to, until the agent has accepted a method that only one of them has.
    fallback: Option<Dialect>,
    /// The dialect in use is confirmed.
    confirmed: AtomicBool,
    /// The tenant from the agent's card; sent with every request that names none.
    tenant: Option<String>,
    options: ClientOptions,
    next_id: AtomicU32,
}

impl Client {
    /// A client for the endpoint at this URL, using A2A 1.0. Connects on the first call.
    pub fn connect(url: &str) -> Result<Self, Error> {
        Self::connect_with(url, ClientOptions::default())
    }

    /// A client for the endpoint at this URL, using the dialect of the options, by default A2A 1.0.
    pub fn connect_with(url: &str, options: ClientOptions) -> Result<Self, Error> {
        let endpoint = parse_url(url)?;
        let dialect = options.dialect.unwrap_or_default();
        Ok(Self::new(options.transport_to(&endpoint)?, endpoint, dialect, options))
    }

    /// A client for the agent whose card is below this base URL, or at this URL.
    pub async fn discover(url: &str) -> Result<Self, Error> {
        Self::discover_with(url, ClientOptions::default()).await
    }

    /// Like [`discover`](Self::discover), with options such as credentials.
    pub async fn discover_with(url: &str, options: ClientOptions) -> Result<Self, Error> {
        find_card(url, &options).await?.client(options)
    }

    /// A client for the agent at this URL, using its card. Without a card the dialect must be set in the
    /// options.
    pub async fn discover_or_connect(
        url: &str,
        options: ClientOptions,
    ) -> Result<(Self, Option<FoundCard>), Error> {
        match find_card(url, &options).await {
            Ok(found) => Ok((found.client(options)?, Some(found))),
            Err(error) if error.means_no_card() && options.dialect.is_some() => {
                Ok((Self::connect_with(url, options)?, None))
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn new(
        transport: Arc<dyn Transport>,
        endpoint: Url,
        dialect: Dialect,
        options: ClientOptions,
    ) -> Self {
        Self {
            transport,
            endpoint,
            dialect: AtomicU8::new(dialect.number()),
            fallback: None,
            confirmed: AtomicBool::new(false),
            tenant: None,
            options,
            next_id: AtomicU32::new(1),
        }
    }

    pub(crate) fn with_tenant(self, tenant: Option<String>) -> Self {
        Self { tenant, ..self }
    }

    pub(crate) fn with_fallback(self, fallback: Option<Dialect>) -> Self {
        Self { fallback, ..self }
    }

    /// The dialect in use.
    pub fn dialect(&self) -> Dialect {
        Dialect::from_number(self.dialect.load(Ordering::Relaxed)).unwrap_or_default()
    }

    /// The URL that is called.
    pub fn endpoint(&self) -> &str {
        self.endpoint.as_str()
    }

    /// The error of a connection that the agent has ended.
    pub(crate) fn lost(&self, problem: &'static str) -> Error {
        let origin = self.endpoint.origin().ascii_serialization();
        TransportError::Lost { origin, source: problem.into() }.into()
    }

    /// Calls an operation with a single response.
    pub(crate) async fn call(&self, operation: Operation) -> Result<Reply, Error> {
        let kind = operation.kind();
        let first = self.dialect();
        let result = self.call_in(first, &operation).await;
        let Some(fallback) = self.retry_dialect(&result, first, kind) else { return result };
        let retried = self.call_in(fallback, &operation).await;
        if self.accepts_retry(&retried, fallback, kind) { retried } else { result }
    }

    /// Assigns a message id, and a task id in dialects in which the client chooses it, so that the message
    /// can be sent again.
    pub(crate) fn assign_ids(&self, req: &mut SendMessage) {
        assign_message_id(req);
        assign_task_id(self.dialect(), req);
    }

    /// Calls a streaming operation; `after` requests the events after this sequence number (`Last-Event-ID`).
    pub(crate) async fn open_stream(
        &self,
        operation: Operation,
        after: Option<u64>,
    ) -> Result<EventStream, Error> {
        let kind = operation.kind();
        let first = self.dialect();
        let result = self.open_stream_in(first, &operation, after).await;
        let Some(fallback) = self.retry_dialect(&result, first, kind) else { return result };
        let retried = self.open_stream_in(fallback, &operation, after).await;
        if self.accepts_retry(&retried, fallback, kind) { retried } else { result }
    }

    async fn call_in(&self, dialect: Dialect, operation: &Operation) -> Result<Reply, Error> {
        let kind = operation.kind();
        let response = self.post(dialect, operation, None).await?;
        let reply = self.read_response(dialect, response, |node| dialect.decode_reply(kind, node)).await?;
        Ok(history::of_reply(reply, history::requested(operation)))
    }

    async fn open_stream_in(
        &self,
        dialect: Dialect,
        operation: &Operation,
        after: Option<u64>,
    ) -> Result<EventStream, Error> {
        let response = self.post(dialect, operation, after).await?;
        if response.status().is_success() && is_event_stream(&response) {
            let requested = history::requested(operation);
            return Ok(EventStream::new(response, dialect, self.options.max_event_bytes, requested));
        }
        self.read_response(dialect, response, |node| Err(node.expected("a stream, not a single response")))
            .await
    }

    /// The dialect in which to repeat a call: if the agent does not know the method, and its dialect is
    /// either not confirmed or was changed by another call meanwhile. Repeating is safe because an unknown
    /// method has no effect.
    fn retry_dialect<T>(
        &self,
        result: &Result<T, Error>,
        used: Dialect,
        kind: OperationKind,
    ) -> Option<Dialect> {
        if !is_unknown(result) {
            self.confirm_dialect(result, used, kind);
            return None;
        }
        let now = self.dialect();
        let untried = self.fallback.filter(|_| !self.confirmed.load(Ordering::Relaxed));
        Some(now).filter(|now| *now != used).or(untried).filter(|fallback| *fallback != used)
    }

    /// Whether the result in the other dialect is used. A method that is unknown there too gives no
    /// information about the dialect: not every agent streams.
    fn accepts_retry<T>(&self, retried: &Result<T, Error>, used: Dialect, kind: OperationKind) -> bool {
        self.confirm_dialect(retried, used, kind);
        !is_unknown(retried) && !matches!(retried, Err(Error::NoMethod { .. }))
    }

    /// Confirms the dialect after the agent has accepted a method, if the two dialects have different names
    /// for it.
    fn confirm_dialect<T>(&self, result: &Result<T, Error>, used: Dialect, kind: OperationKind) {
        let Some(fallback) = self.fallback.filter(|_| is_known(result)) else { return };
        let alternative = if used == fallback { self.dialect() } else { fallback };
        if used == alternative || used.method(kind) != alternative.method(kind) {
            self.dialect.store(used.number(), Ordering::Relaxed);
            self.confirmed.store(true, Ordering::Relaxed);
        }
    }

    async fn post(
        &self,
        dialect: Dialect,
        operation: &Operation,
        after: Option<u64>,
    ) -> Result<Response, Error> {
        let kind = operation.kind();
        let method = dialect.method(kind).ok_or_else(|| Error::NoMethod {
            version: dialect.version(),
            method: v1::operation::method(kind),
        })?;
        let operation = self.with_defaults(dialect, operation.clone());
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let body = envelope::encode(id, dialect, method, &operation);
        let headers = self.headers(dialect, kind, after);
        exchange::send(&*self.transport, Method::POST, &self.endpoint, headers, body).await
    }

    /// The operation with the client's tenant and a task id filled in.
    fn with_defaults(&self, dialect: Dialect, mut operation: Operation) -> Operation {
        let tenant = tenant_of(&mut operation);
        if tenant.is_none() {
            tenant.clone_from(&self.tenant);
        }
        if let Operation::SendMessage(req) | Operation::SendStreamingMessage(req) = &mut operation {
            assign_task_id(dialect, req);
        }
        operation
    }

    fn headers(&self, dialect: Dialect, kind: OperationKind, after: Option<u64>) -> HeaderMap {
        let accept = if streams(kind) { "text/event-stream" } else { "application/json" };
        let mut headers = self.options.headers.clone();
        headers.insert("a2a-version", HeaderValue::from_static(dialect.version()));
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
        if let Some(after) = after {
            headers.insert("last-event-id", HeaderValue::from(after));
        }
        headers
    }

    /// Reads a single response. A proxy in front of an agent may respond with a status and a body that is not
    /// JSON-RPC.
    async fn read_response<T>(
        &self,
        dialect: Dialect,
        response: Response,
        read: impl FnOnce(Node<'_, '_>) -> Read<T>,
    ) -> Result<T, Error> {
        let status = response.status();
        let body = read_body(response, self.options.max_response_bytes).await?;
        match envelope::decode(&body, dialect, read) {
            Err(Error::Malformed(_)) if !status.is_success() => Err(Error::Status(status)),
            Err(Error::Protocol(error)) => Err(Error::Protocol(by_status(status, error))),
            result => result,
        }
    }
}

/// Whether the agent does not know the method.
fn is_unknown<T>(result: &Result<T, Error>) -> bool {
    matches!(result, Err(Error::Protocol(error)) if error.kind == ErrorKind::MethodNotFound)
}

/// Whether the agent knows the method, even if the call failed. Errors that a proxy may raise do not count.
fn is_known<T>(result: &Result<T, Error>) -> bool {
    match result {
        Ok(_) => true,
        Err(Error::Protocol(error)) => !matches!(
            error.kind,
            ErrorKind::MethodNotFound
                | ErrorKind::Unauthenticated
                | ErrorKind::PermissionDenied
                | ErrorKind::RateLimited
                | ErrorKind::Unavailable
        ),
        Err(_) => false,
    }
}

/// Assigns an id to a message without one.
pub(crate) fn assign_message_id(req: &mut SendMessage) {
    if req.message.id.as_str().is_empty() {
        req.message.id = MessageId::from(uuid::Uuid::new_v4().to_string());
    }
}

fn assign_task_id(dialect: Dialect, req: &mut SendMessage) {
    if dialect.rules().clients_choose_task_ids && req.message.task_id.is_none() {
        req.message.task_id = Some(TaskId::from(uuid::Uuid::new_v4().to_string()));
    }
}

/// Implementations use different codes for missing or wrong credentials; the HTTP status is reliable.
fn by_status(status: StatusCode, error: protocol::Error) -> protocol::Error {
    let kind = match status {
        StatusCode::UNAUTHORIZED => ErrorKind::Unauthenticated,
        StatusCode::FORBIDDEN => ErrorKind::PermissionDenied,
        _ => error.kind,
    };
    protocol::Error { kind, ..error }
}

fn streams(kind: OperationKind) -> bool {
    matches!(kind, OperationKind::SendStreamingMessage | OperationKind::SubscribeToTask)
}

fn is_event_stream(response: &Response) -> bool {
    let value = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let essence = value.and_then(|value| value.split(';').next()).unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("text/event-stream")
}

fn tenant_of(operation: &mut Operation) -> &mut Option<String> {
    match operation {
        Operation::SendMessage(req) | Operation::SendStreamingMessage(req) => &mut req.tenant,
        Operation::GetTask(req) => &mut req.tenant,
        Operation::ListTasks(req) => &mut req.tenant,
        Operation::CancelTask(req) => &mut req.tenant,
        Operation::SubscribeToTask(req) => &mut req.tenant,
        Operation::CreatePushConfig(config) => &mut config.tenant,
        Operation::GetPushConfig(req) | Operation::DeletePushConfig(req) => &mut req.tenant,
        Operation::ListPushConfigs(req) => &mut req.tenant,
        Operation::GetExtendedCard(req) => &mut req.tenant,
    }
}
