//! The client: an agent's address, and the two ways to call it.

use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use http::{Request, Response, Uri, header};
use http_body_util::Full;
use hyper::body::Incoming;
use protocol::{
    Operation, OperationKind, Reply,
    dialect::v1,
    json::read::{Node, Read},
};

use crate::{
    Error, EventStream, discover, envelope,
    transport::{Transport, parse_url, read_body},
};

/// How large an answer, a card or one event may be unless the caller says otherwise.
const MAX_ANSWER_BYTES: usize = 16 * 1024 * 1024;

/// Calls one agent over JSON-RPC in A2A 1.0.
pub struct Client {
    transport: Transport,
    endpoint: Uri,
    /// The tenant the agent's card asks for; goes into every request that names none.
    tenant: Option<String>,
    max_answer_bytes: usize,
    next_id: AtomicU32,
}

impl Client {
    /// A client of the endpoint at this URL. It is dialled when it is first called.
    pub fn connect(url: &str) -> Result<Self, Error> {
        Ok(Self {
            transport: Transport::new(),
            endpoint: parse_url(url)?,
            tenant: None,
            max_answer_bytes: MAX_ANSWER_BYTES,
            next_id: AtomicU32::new(1),
        })
    }

    /// A client of the agent whose card stands below this base URL.
    pub async fn discover(base: &str) -> Result<Self, Error> {
        let mut client = Self::connect(base)?;
        let request = Request::get(discover::card_url(base)?)
            .header("a2a-version", v1::VERSION)
            .header(header::ACCEPT, "application/json")
            .body(Full::default())
            .expect("a parsed URL and fixed headers make a request");
        let response = client.transport.send(request).await?;
        if !response.status().is_success() {
            return Err(Error::Status(response.status()));
        }
        let body = read_body(response.into_body(), client.max_answer_bytes).await?;
        let interface = discover::choose(discover::decode(&body)?)?;
        client.endpoint = parse_url(&interface.url)?;
        client.tenant = interface.tenant;
        Ok(client)
    }

    /// Takes answers and single events of at most so many bytes.
    #[must_use]
    pub fn with_max_answer_bytes(self, max_answer_bytes: usize) -> Self {
        Self { max_answer_bytes, ..self }
    }

    /// Calls an operation that is answered once.
    pub async fn call(&self, operation: Operation) -> Result<Reply, Error> {
        let kind = operation.kind();
        if streams(kind) {
            return Err(misuse(kind, "it is answered by a stream"));
        }
        let response = self.post(operation, None).await?;
        self.read_answer(response, |node| v1::reply::decode(kind, node)).await
    }

    /// Calls an operation that is answered by a stream.
    pub async fn stream(&self, operation: Operation) -> Result<EventStream, Error> {
        self.open_stream(operation, None).await
    }

    /// Calls an operation that is answered by a stream, and asks for what came after the event of this number.
    pub async fn resume(&self, operation: Operation, after: u64) -> Result<EventStream, Error> {
        self.open_stream(operation, Some(after)).await
    }

    async fn open_stream(&self, operation: Operation, after: Option<u64>) -> Result<EventStream, Error> {
        let kind = operation.kind();
        if !streams(kind) {
            return Err(misuse(kind, "it is answered once, not by a stream"));
        }
        let response = self.post(operation, after).await?;
        if response.status().is_success() && is_event_stream(&response) {
            return Ok(EventStream::new(response.into_body(), self.max_answer_bytes));
        }
        self.read_answer(response, |node| Err(node.expected("a stream, not one answer"))).await
    }

    async fn post(&self, mut operation: Operation, after: Option<u64>) -> Result<Response<Incoming>, Error> {
        let tenant = tenant_of(&mut operation);
        if tenant.is_none() {
            tenant.clone_from(&self.tenant);
        }
        let accept = if streams(operation.kind()) { "text/event-stream" } else { "application/json" };
        let mut request = Request::post(self.endpoint.clone())
            .header("a2a-version", v1::VERSION)
            .header(header::CONTENT_TYPE, "application/json")
            .header(header::ACCEPT, accept);
        if let Some(after) = after {
            request = request.header("last-event-id", after);
        }
        let body = envelope::encode(self.next_id.fetch_add(1, Ordering::Relaxed), &operation);
        let request = request
            .body(Full::new(Bytes::from(body)))
            .expect("a parsed URL and headers of our own make a request");
        self.transport.send(request).await
    }

    /// Reads one answer. Layers in front of an agent refuse with a status and may know nothing of JSON-RPC.
    async fn read_answer<T>(
        &self,
        response: Response<Incoming>,
        read: impl FnOnce(Node<'_, '_>) -> Read<T>,
    ) -> Result<T, Error> {
        let status = response.status();
        let body = read_body(response.into_body(), self.max_answer_bytes).await?;
        match envelope::decode(&body, read) {
            Err(Error::Malformed(_)) if !status.is_success() => Err(Error::Status(status)),
            answered => answered,
        }
    }
}

fn streams(kind: OperationKind) -> bool {
    matches!(kind, OperationKind::SendStreamingMessage | OperationKind::SubscribeToTask)
}

fn misuse(kind: OperationKind, problem: &'static str) -> Error {
    Error::Misuse { method: v1::operation::method(kind), problem }
}

fn is_event_stream(response: &Response<Incoming>) -> bool {
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
