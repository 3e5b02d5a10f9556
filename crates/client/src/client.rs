//! The client: an agent's address, and the two ways to call it.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, Ordering};

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use protocol::{
    Dialect, ErrorKind, Operation, OperationKind, Reply, SendMessage, TaskId,
    dialect::v1,
    json::read::{Node, Read},
};
use reqwest::{Response, Url};

use crate::{
    Error, EventStream, FoundCard, Options,
    discover::find_card,
    envelope, history,
    transport::{Transport, parse_url, read_body},
};

/// Calls one agent over JSON-RPC.
pub struct Client {
    transport: Transport,
    endpoint: Url,
    /// The number of the dialect that is spoken.
    dialect: AtomicU8,
    /// What may be spoken instead, until the agent has shown that it knows the methods of one.
    other: Option<Dialect>,
    sure: AtomicBool,
    /// The tenant the agent's card asks for; goes into every request that names none.
    tenant: Option<String>,
    options: Options,
    next_id: AtomicU32,
}

impl Client {
    /// A client of the endpoint at this URL, in A2A 1.0. It is dialled when it is first called.
    pub fn connect(url: &str) -> Result<Self, Error> {
        Self::connect_with(url, Options::default())
    }

    /// A client of the endpoint at this URL, in the dialect of the options or else in A2A 1.0.
    pub fn connect_with(url: &str, options: Options) -> Result<Self, Error> {
        let endpoint = parse_url(url)?;
        let dialect = options.dialect.unwrap_or_default();
        Ok(Self::new(Transport::to(&endpoint)?, endpoint, dialect, options))
    }

    /// A client of the agent whose card stands below this base URL, or at this URL.
    pub async fn discover(url: &str) -> Result<Self, Error> {
        find_card(url, &Options::default()).await?.client(Options::default())
    }

    /// A client of the agent at this URL: by its card, or without one where the options say what to speak.
    pub async fn reach(url: &str, options: Options) -> Result<(Self, Option<FoundCard>), Error> {
        match find_card(url, &options).await {
            Ok(found) => Ok((found.client(options)?, Some(found))),
            Err(error) if error.is_without_card() && options.dialect.is_some() => {
                Ok((Self::connect_with(url, options)?, None))
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn new(transport: Transport, endpoint: Url, dialect: Dialect, options: Options) -> Self {
        Self {
            transport,
            endpoint,
            dialect: AtomicU8::new(dialect.number()),
            other: None,
            sure: AtomicBool::new(false),
            tenant: None,
            options,
            next_id: AtomicU32::new(1),
        }
    }

    pub(crate) fn with_tenant(self, tenant: Option<String>) -> Self {
        Self { tenant, ..self }
    }

    pub(crate) fn or_else_in(self, other: Option<Dialect>) -> Self {
        Self { other, ..self }
    }

    /// Takes answers and single events of at most so many bytes.
    #[must_use]
    pub fn with_max_answer_bytes(mut self, max_answer_bytes: usize) -> Self {
        self.options.max_answer_bytes = max_answer_bytes;
        self.options.max_event_bytes = max_answer_bytes;
        self
    }

    /// What is spoken.
    pub fn dialect(&self) -> Dialect {
        Dialect::from_number(self.dialect.load(Ordering::Relaxed)).unwrap_or_default()
    }

    /// Where calls go.
    pub fn endpoint(&self) -> &str {
        self.endpoint.as_str()
    }

    /// Calls an operation that is answered once.
    pub async fn call(&self, operation: Operation) -> Result<Reply, Error> {
        let kind = operation.kind();
        if streams(kind) {
            return Err(misuse(kind, "it is answered by a stream"));
        }
        let first = self.dialect();
        let answered = self.call_in(first, &operation).await;
        let Some(other) = self.other_after(&answered, first, kind) else { return answered };
        let again = self.call_in(other, &operation).await;
        if self.goes_on_after(&again, other, kind) { again } else { answered }
    }

    /// Calls an operation that is answered by a stream.
    pub async fn stream(&self, operation: Operation) -> Result<EventStream, Error> {
        self.open_stream(operation, None).await
    }

    /// Calls an operation that is answered by a stream, and asks for what came after the event of this number.
    pub async fn resume(&self, operation: Operation, after: u64) -> Result<EventStream, Error> {
        self.open_stream(operation, Some(after)).await
    }

    /// Gives the message's task a name where that is the client's part.
    pub(crate) fn name_task(&self, req: &mut SendMessage) {
        name_task(self.dialect(), req);
    }

    async fn open_stream(&self, operation: Operation, after: Option<u64>) -> Result<EventStream, Error> {
        let kind = operation.kind();
        if !streams(kind) {
            return Err(misuse(kind, "it is answered once, not by a stream"));
        }
        let first = self.dialect();
        let answered = self.open_stream_in(first, &operation, after).await;
        let Some(other) = self.other_after(&answered, first, kind) else { return answered };
        let again = self.open_stream_in(other, &operation, after).await;
        if self.goes_on_after(&again, other, kind) { again } else { answered }
    }

    async fn call_in(&self, dialect: Dialect, operation: &Operation) -> Result<Reply, Error> {
        let kind = operation.kind();
        let response = self.post(dialect, operation, None).await?;
        let reply = self.read_answer(dialect, response, |node| dialect.decode_reply(kind, node)).await?;
        Ok(history::of_reply(reply, history::asked(operation)))
    }

    async fn open_stream_in(
        &self,
        dialect: Dialect,
        operation: &Operation,
        after: Option<u64>,
    ) -> Result<EventStream, Error> {
        let response = self.post(dialect, operation, after).await?;
        if response.status().is_success() && is_event_stream(&response) {
            let asked = history::asked(operation);
            return Ok(EventStream::new(response, dialect, self.options.max_event_bytes, asked));
        }
        self.read_answer(dialect, response, |node| Err(node.expected("a stream, not one answer"))).await
    }

    /// The dialect to make a call in once more: where the agent does not know the method, and has not shown yet which
    /// dialect it knows or has shown it to another call meanwhile. Nothing has been done by a method that does not exist.
    fn other_after<T>(
        &self,
        answered: &Result<T, Error>,
        accepted_versions: Dialect,
        kind: OperationKind,
    ) -> Option<Dialect> {
        if !is_unknown(answered) {
            self.learn(answered, accepted_versions, kind);
            return None;
        }
        let now = self.dialect();
        let untried = self.other.filter(|_| !self.sure.load(Ordering::Relaxed));
        Some(now)
            .filter(|now| *now != accepted_versions)
            .or(untried)
            .filter(|other| *other != accepted_versions)
    }

    /// Whether the answer in the other dialect counts. A method that is unknown there too says nothing about the dialect:
    /// not every agent streams.
    fn goes_on_after<T>(
        &self,
        again: &Result<T, Error>,
        accepted_versions: Dialect,
        kind: OperationKind,
    ) -> bool {
        self.learn(again, accepted_versions, kind);
        !is_unknown(again) && !matches!(again, Err(Error::NoMethod { .. }))
    }

    /// Remembers the dialect of a method that the agent knows, if only that dialect has it under this name.
    fn learn<T>(&self, answered: &Result<T, Error>, accepted_versions: Dialect, kind: OperationKind) {
        let Some(other) = self.other.filter(|_| is_known(answered)) else { return };
        let rival = if accepted_versions == other { self.dialect() } else { other };
        if accepted_versions == rival || accepted_versions.method(kind) != rival.method(kind) {
            self.dialect.store(accepted_versions.number(), Ordering::Relaxed);
            self.sure.store(true, Ordering::Relaxed);
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
        let operation = self.completed(dialect, operation.clone());
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let body = envelope::encode(id, dialect, method, &operation);
        let headers = self.headers(dialect, kind, after);
        self.transport.send(Method::POST, self.endpoint.clone(), headers, body).await
    }

    /// The operation with what every call of this client says.
    fn completed(&self, dialect: Dialect, mut operation: Operation) -> Operation {
        let tenant = tenant_of(&mut operation);
        if tenant.is_none() {
            tenant.clone_from(&self.tenant);
        }
        if let Operation::SendMessage(req) | Operation::SendStreamingMessage(req) = &mut operation {
            name_task(dialect, req);
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

    /// Reads one answer. Layers in front of an agent refuse with a status and may know nothing of JSON-RPC.
    async fn read_answer<T>(
        &self,
        dialect: Dialect,
        response: Response,
        read: impl FnOnce(Node<'_, '_>) -> Read<T>,
    ) -> Result<T, Error> {
        let status = response.status();
        let body = read_body(response, self.options.max_answer_bytes).await?;
        match envelope::decode(&body, dialect, read) {
            Err(Error::Malformed(_)) if !status.is_success() => Err(Error::Status(status)),
            Err(Error::Protocol(error)) => Err(Error::Protocol(by_status(status, error))),
            answered => answered,
        }
    }
}

/// Whether the agent does not know the method.
fn is_unknown<T>(answered: &Result<T, Error>) -> bool {
    matches!(answered, Err(Error::Protocol(error)) if error.kind == ErrorKind::MethodNotFound)
}

/// Whether the agent knows the method, whatever became of the call. What is refused in front of it says nothing.
fn is_known<T>(answered: &Result<T, Error>) -> bool {
    match answered {
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

fn name_task(dialect: Dialect, req: &mut SendMessage) {
    if dialect.clients_name_tasks() && req.message.task_id.is_none() {
        req.message.task_id = Some(TaskId::from(uuid::Uuid::new_v4().to_string()));
    }
}

/// Codes for a missing or wrong credential differ between houses; the status says it plainly.
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

fn misuse(kind: OperationKind, problem: &'static str) -> Error {
    Error::Misuse { method: v1::operation::method(kind), problem }
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
