//! The only module that uses the MCP library: a connection to one server, and the calls on it.

mod connect;
mod convert;
mod handler;
mod http;
mod stdio;
mod tools;

use std::{fmt, sync::Arc, time::Duration};

use ::http::HeaderName;
use protocol::model::Secret;
use rmcp::{
    Peer, RoleClient, ServiceError,
    model::{
        CallToolRequest, CallToolRequestParams, CancelTaskParams, ClientRequest, GetTaskParams,
        RequestMetaObject, ServerJsonRpcMessage, UpdateTaskParams,
    },
    service::{PeerRequestOptions, RequestHandle},
    transport::Transport,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{Notify, mpsc, oneshot},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Tool,
    call::McpTool,
    messages::{Answer, Answers, CallError, Progress, Question, Response, TaskUpdate},
    reply,
};
use crate::{
    backend::{Call, Reply},
    dial::Dialer,
};
use handler::{Registration, Routes};
use stdio::Stdio;

/// Maximum time for a request that does no work of its own.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum time to send a cancellation to a server that does not read.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// What a connection needs besides its transport.
pub(crate) struct Options {
    pub(crate) elicitation: bool,
    pub(crate) tools_changed: Arc<Notify>,
    /// Owns the tasks of the connection.
    pub(crate) tasks: TaskTracker,
}

/// A connection to a server that is ready for calls.
pub(crate) struct Connection {
    peer: Peer<RoleClient>,
    routes: Arc<Routes>,
    cancellations: Cancellations,
    shutdown: CancellationToken,
    closed: CancellationToken,
    server_asks: bool,
}

/// Why a connection could not be made.
#[derive(Clone, Debug)]
pub(crate) enum ConnectError {
    Auth {
        challenge: String,
    },
    /// For the operator, not for clients.
    Failed(String),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auth { .. } => out.write_str("it requires credentials"),
            Self::Failed(reason) => out.write_str(reason),
        }
    }
}

/// A question of the server, and where its answer goes. Dropped without an answer, it is cancelled.
pub(crate) struct Asked {
    pub(crate) question: Question,
    pub(crate) answer: oneshot::Sender<Answer>,
}

/// A call that was sent. Dropped before its end, it is cancelled; what the server sends for it later is ignored.
pub(crate) struct OpenCall {
    /// `None` after the end.
    handle: Option<RequestHandle<RoleClient>>,
    registration: Registration,
    cancellations: Cancellations,
}

/// What happens to an open call.
pub(crate) enum Event {
    Progress(Progress),
    Asked(Asked),
    /// The last event.
    Ended(Result<Response, CallError>),
}

/// Calls that were dropped before their end.
type Cancellations = mpsc::UnboundedSender<RequestHandle<RoleClient>>;

/// The names of the trace context in `_meta` and in HTTP headers.
const TRACEPARENT: &str = "traceparent";
const TRACESTATE: &str = "tracestate";

impl Connection {
    /// Connects to a process.
    pub(crate) async fn stdio<R, W>(stdout: R, stdin: W, options: &Options) -> Result<Self, ConnectError>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        connect::connect(Stdio::new(stdout, stdin), options).await
    }

    /// Connects to an HTTP endpoint.
    pub(crate) async fn http(
        url: &str,
        headers: &[(HeaderName, Secret)],
        dialer: Dialer,
        options: &Options,
    ) -> Result<Self, ConnectError> {
        let session_lost = Arc::clone(&options.tools_changed);
        let transport = http::transport(url, headers, dialer, session_lost).map_err(ConnectError::Failed)?;
        connect::connect(transport, options).await
    }

    /// Whether the server may send questions of its own, as older revisions allow. Then it must have one call at a time:
    /// most questions do not say to which call they belong.
    pub(crate) fn server_asks(&self) -> bool {
        self.server_asks
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.is_cancelled() || self.peer.is_transport_closed()
    }

    /// Resolves when the connection has ended.
    pub(crate) async fn closed(&self) {
        self.closed.cancelled().await;
    }

    /// Ends the connection.
    pub(crate) fn close(&self) {
        self.shutdown.cancel();
    }

    /// Lists all tools, never from a cache.
    pub(crate) async fn tools(&self) -> Result<Vec<Tool>, CallError> {
        bounded(tools::list(&self.peer)).await
    }

    /// Sends a call of a tool. An error means that nothing was sent. Cancel safe in that sense too. The trace context is
    /// sent in `_meta`, and over HTTP as headers.
    pub(crate) async fn call(
        &self,
        tool: &McpTool,
        call: &Call<'_>,
        answers: Answers,
    ) -> Result<OpenCall, CallError> {
        let mut params = CallToolRequestParams::new(tool.tool.clone());
        let mut arguments = convert::arguments(call.arguments)?;
        if let (Some(name), Some(_)) = (&tool.message_argument, call.message) {
            convert::add_message(&mut arguments, name, call.input())?;
        }
        params.arguments = Some(arguments);
        if !answers.answers.is_empty() {
            params.input_responses = Some(convert::input_responses(answers.answers)?);
        }
        params.request_state = answers.state;
        let trace = call.trace_context();
        let mut meta = RequestMetaObject::new();
        meta.insert("a2ad/idempotencyKey".to_owned(), call.idempotency_key().into());
        meta.insert("a2ad/attempt".to_owned(), call.attempt().into());
        meta.insert(TRACEPARENT.to_owned(), trace.to_string().into());
        if let Some(state) = trace.state() {
            meta.insert(TRACESTATE.to_owned(), state.into());
        }
        let options = PeerRequestOptions::no_options().with_meta(meta);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let sent = self.peer.send_cancellable_request(request, options).await;
        let handle = sent.map_err(|_| CallError::NotSent)?;
        let registration = self.routes.register(handle.id.clone(), handle.progress_token.clone());
        Ok(OpenCall::new(handle, registration, self.cancellations.clone()))
    }

    pub(crate) async fn task(&self, id: &str) -> Result<TaskUpdate, CallError> {
        let get = async { self.peer.get_task(GetTaskParams::new(id)).await.map_err(convert::call_error) };
        let result = bounded(get).await?;
        convert::task_update(result.task.task, result.task.payload)
    }

    pub(crate) async fn answer_task(
        &self,
        id: &str,
        answers: Vec<(String, Answer)>,
    ) -> Result<(), CallError> {
        let params = UpdateTaskParams::new(id, convert::input_responses(answers)?);
        bounded(async { self.peer.update_task(params).await.map_err(convert::call_error) }).await
    }

    pub(crate) async fn cancel_task(&self, id: &str) {
        let cancel = self.peer.cancel_task(CancelTaskParams::new(id));
        let _ = tokio::time::timeout(CANCEL_TIMEOUT, cancel).await;
    }
}

impl OpenCall {
    fn new(
        handle: RequestHandle<RoleClient>,
        registration: Registration,
        cancellations: Cancellations,
    ) -> Self {
        Self { handle: Some(handle), registration, cancellations }
    }

    /// The next event. Cancel safe. Not to be called after the last one.
    pub(crate) async fn next(&mut self) -> Event {
        let Some(handle) = &mut self.handle else { return Event::Ended(Err(CallError::Closed)) };
        let Registration { progress, questions, .. } = &mut self.registration;
        tokio::select! {
            // Progress comes last, so that a server which reports without a pause delays nothing else.
            biased;
            Some(asked) = questions.recv() => Event::Asked(asked),
            result = &mut handle.rx => {
                self.handle = None;
                let result = result.unwrap_or(Err(ServiceError::TransportClosed));
                Event::Ended(result.map_err(convert::call_error).and_then(convert::response))
            }
            Ok(()) = progress.changed() => match progress.borrow_and_update().clone() {
                Some(notice) => Event::Progress(notice),
                None => Event::Ended(Err(CallError::Closed)),
            },
        }
    }

    /// The last progress, if it was not returned by [`next`](Self::next).
    pub(crate) fn unread_progress(&mut self) -> Option<Progress> {
        let progress = &mut self.registration.progress;
        if progress.has_changed().unwrap_or_default() { progress.borrow_and_update().clone() } else { None }
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        if let Some(handle) = self.handle.take() {
            // Fails only when the connection has ended.
            let _ = self.cancellations.send(handle);
        }
    }
}

/// Sends a cancellation for each call that was dropped before its end.
async fn send_cancellations(
    mut cancelled: mpsc::UnboundedReceiver<RequestHandle<RoleClient>>,
    closed: CancellationToken,
) {
    loop {
        let handle = tokio::select! {
            handle = cancelled.recv() => handle,
            () = closed.cancelled() => return,
        };
        let Some(handle) = handle else { return };
        let cancel = handle.cancel(Some("the caller no longer waits".into()));
        let _ = tokio::time::timeout(CANCEL_TIMEOUT, cancel).await;
    }
}

async fn bounded<T>(request: impl Future<Output = Result<T, CallError>>) -> Result<T, CallError> {
    match tokio::time::timeout(REQUEST_TIMEOUT, request).await {
        Ok(result) => result,
        Err(_) => Err(CallError::Closed),
    }
}

/// Requests that are open in tests with damaged bytes.
const OPEN_IN_TESTS: i64 = 8;

/// What clients would get for the output of a process, for tests with damaged bytes.
pub(crate) async fn replies_to_lines(output: &[u8]) -> Vec<Reply> {
    let mut lines = Stdio::with_open_requests(output, tokio::io::sink(), 0..OPEN_IN_TESTS);
    let mut replies = Vec::new();
    while let Some(message) = lines.receive().await {
        replies.extend(reply_to(message));
    }
    replies
}

/// What a client would get for an HTTP response that consists of these chunks, for tests with damaged bytes.
pub(crate) fn replies_to_events(chunks: &[&[u8]]) -> Vec<Reply> {
    let messages = http::read_events(chunks).into_iter();
    messages.filter_map(|text| reply_to(serde_json::from_str(&text).ok()?)).collect()
}

/// `None` if the message does not answer a call.
fn reply_to(message: ServerJsonRpcMessage) -> Option<Reply> {
    let result = match message {
        ServerJsonRpcMessage::Response(response) => convert::response(response.result),
        ServerJsonRpcMessage::Error(error) => Err(convert::call_error(ServiceError::McpError(error.error))),
        ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_) => return None,
    };
    Some(reply::reply("server", result))
}
