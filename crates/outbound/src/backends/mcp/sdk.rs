//! The only module that uses the MCP library: a connection to one server, and the calls on it.

mod convert;
mod handler;
mod http;
mod sse;

use std::{sync::Arc, time::Duration};

use ::http::HeaderName;
use protocol::{Json, model::Secret};
use rmcp::{
    Peer, RoleClient, ServiceError,
    model::{
        CallToolRequest, CallToolRequestParams, CancelTaskParams, ClientRequest, GetTaskParams,
        ListToolsRequest, PaginatedRequestParams, ProtocolVersion, RequestMetaObject, ServerResult,
        SubscriptionFilter, UpdateTaskParams,
    },
    service::{
        ClientInitializeError, ClientLifecycleMode, PeerRequestOptions, RequestHandle, RunningService,
        serve_client_with_lifecycle_and_ct,
    },
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    sync::{Notify, mpsc, oneshot},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Tool,
    messages::{Answer, CallError, Progress, Question, Response, TaskUpdate},
};
use crate::dial::Dialer;
use handler::{Handler, Registration, Routes};

/// Maximum time for the messages that open a connection; `npx` may download the server first.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum time for a request that does no work of its own.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum time to send a cancellation to a server that does not read.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of pages of a tool list.
const MAX_PAGES: usize = 100;

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
    cancellations: mpsc::UnboundedSender<RequestHandle<RoleClient>>,
    shutdown: CancellationToken,
    closed: CancellationToken,
    /// The server may send requests of its own, which only newer revisions exclude.
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

/// A question of the server, and where its answer goes. Dropped without an answer, it is cancelled.
pub(crate) struct Asked {
    pub(crate) question: Question,
    pub(crate) answer: oneshot::Sender<Answer>,
}

/// A call to make.
pub(crate) struct Request<'a> {
    pub(crate) tool: &'a str,
    pub(crate) arguments: &'a Json,
    /// The entries of `_meta`.
    pub(crate) meta: Vec<(&'static str, String)>,
    /// Answers to what the server asked in its last response, and the state that came with it.
    pub(crate) answers: Vec<(String, Answer)>,
    pub(crate) state: Option<String>,
}

/// A call that was sent. Dropped before its end, it is cancelled.
pub(crate) struct OpenCall {
    /// `None` after the end.
    handle: Option<RequestHandle<RoleClient>>,
    registration: Registration,
    cancellations: mpsc::UnboundedSender<RequestHandle<RoleClient>>,
}

/// What happens to an open call.
pub(crate) enum Event {
    Progress(Progress),
    Asked(Asked),
    /// The last event.
    Ended(Result<Response, CallError>),
}

impl Connection {
    /// Connects to a process.
    pub(crate) async fn stdio<R, W>(stdout: R, stdin: W, options: &Options) -> Result<Self, ConnectError>
    where
        R: AsyncRead + Send + Unpin + 'static,
        W: AsyncWrite + Send + Unpin + 'static,
    {
        connect(options, |handler, shutdown| {
            serve_client_with_lifecycle_and_ct(handler, (stdout, stdin), lifecycle(), shutdown)
        })
        .await
    }

    /// Connects to an HTTP endpoint.
    pub(crate) async fn http(
        url: &str,
        headers: &[(HeaderName, Secret)],
        dialer: Dialer,
        options: &Options,
    ) -> Result<Self, ConnectError> {
        let transport = http::transport(url, headers, dialer).map_err(ConnectError::Failed)?;
        connect(options, |handler, shutdown| {
            serve_client_with_lifecycle_and_ct(handler, transport, lifecycle(), shutdown)
        })
        .await
    }

    /// Whether a question of the server cannot be assigned to one of several open calls.
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
        let mut tools = Vec::new();
        let mut cursor = None;
        for _ in 0..MAX_PAGES {
            let params = PaginatedRequestParams::default().with_cursor(cursor);
            let request = ClientRequest::ListToolsRequest(ListToolsRequest::with_param(params));
            let ServerResult::ListToolsResult(page) = self.request(request).await? else {
                return Err(CallError::Invalid("it is not a list of tools".into()));
            };
            for tool in &page.tools {
                tools.push(convert::tool(tool)?);
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(tools);
            }
        }
        Err(CallError::Invalid(format!("its list of tools has more than {MAX_PAGES} pages")))
    }

    /// Sends a call. An error means that nothing was sent. Cancel safe in that sense too.
    pub(crate) async fn call(&self, request: Request<'_>) -> Result<OpenCall, CallError> {
        let Request { tool, arguments, meta, answers, state } = request;
        let mut params = CallToolRequestParams::new(tool.to_owned());
        let arguments = convert::arguments(arguments);
        params.arguments =
            Some(arguments.ok_or_else(|| CallError::Invalid("the arguments are not a JSON object".into()))?);
        if !answers.is_empty() {
            params.input_responses = Some(convert::input_responses(answers)?);
        }
        params.request_state = state;
        let mut options = PeerRequestOptions::no_options();
        let mut sent = RequestMetaObject::new();
        for (key, value) in meta {
            sent.insert(key.to_owned(), value.into());
        }
        options.meta = Some(sent);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let handle =
            self.peer.send_cancellable_request(request, options).await.map_err(convert::call_error)?;
        let registration = self.routes.register(handle.id.clone(), handle.progress_token.clone());
        Ok(OpenCall { handle: Some(handle), registration, cancellations: self.cancellations.clone() })
    }

    pub(crate) async fn task(&self, id: &str) -> Result<TaskUpdate, CallError> {
        let result = bounded(self.peer.get_task(GetTaskParams::new(id))).await?;
        convert::task_update(result.task.task, result.task.payload)
    }

    pub(crate) async fn answer_task(
        &self,
        id: &str,
        answers: Vec<(String, Answer)>,
    ) -> Result<(), CallError> {
        let params = UpdateTaskParams::new(id, convert::input_responses(answers)?);
        bounded(self.peer.update_task(params)).await
    }

    pub(crate) async fn cancel_task(&self, id: &str) {
        let cancel = self.peer.cancel_task(CancelTaskParams::new(id));
        let _ = tokio::time::timeout(CANCEL_TIMEOUT, cancel).await;
    }

    async fn request(&self, request: ClientRequest) -> Result<ServerResult, CallError> {
        bounded(self.peer.send_request(request)).await
    }
}

impl OpenCall {
    /// The next event. Cancel safe. Not to be called after the last one.
    pub(crate) async fn next(&mut self) -> Event {
        let Some(handle) = &mut self.handle else { return Event::Ended(Err(CallError::Closed)) };
        let Registration { progress, questions, .. } = &mut self.registration;
        tokio::select! {
            biased;
            Some(asked) = questions.recv() => Event::Asked(asked),
            Ok(()) = progress.changed() => match progress.borrow_and_update().clone() {
                Some(notice) => Event::Progress(notice),
                None => Event::Ended(Err(CallError::Closed)),
            },
            result = &mut handle.rx => {
                self.handle = None;
                let result = result.unwrap_or(Err(ServiceError::TransportClosed));
                Event::Ended(result.map_err(convert::call_error).and_then(convert::response))
            }
        }
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

/// Newest revision first; servers that do not know `server/discover` get the handshake of older revisions.
fn lifecycle() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::LATEST],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
}

async fn connect<F>(
    options: &Options,
    serve: impl FnOnce(Handler, CancellationToken) -> F,
) -> Result<Connection, ConnectError>
where
    F: Future<Output = Result<RunningService<RoleClient, Handler>, ClientInitializeError>>,
{
    let (routes, shutdown) = (Arc::<Routes>::default(), CancellationToken::new());
    let handler = Handler {
        routes: Arc::clone(&routes),
        tools_changed: Arc::clone(&options.tools_changed),
        elicitation: options.elicitation,
        shutdown: shutdown.clone(),
    };
    let service = match tokio::time::timeout(CONNECT_TIMEOUT, serve(handler, shutdown.clone())).await {
        Ok(Ok(service)) => service,
        Ok(Err(error)) => return Err(connect_error(&error)),
        Err(_) => return Err(ConnectError::Failed("it did not answer the handshake in time".into())),
    };
    let peer = service.peer().clone();
    let server_asks =
        options.elicitation && peer.peer_info().is_none_or(|info| info.protocol_version.has_initialize());
    let closed = CancellationToken::new();
    let ended = closed.clone().drop_guard();
    options.tasks.spawn(async move {
        let _ = service.waiting().await;
        drop(ended);
    });
    let (cancellations, cancelled) = mpsc::unbounded_channel();
    options.tasks.spawn(send_cancellations(cancelled, closed.clone()));
    if !server_asks {
        options.tasks.spawn(watch_tools(peer.clone(), Arc::clone(&options.tools_changed), closed.clone()));
    }
    Ok(Connection { peer, routes, cancellations, shutdown, closed, server_asks })
}

fn connect_error(error: &ClientInitializeError) -> ConnectError {
    match error.auth_challenge() {
        Some(challenge) => ConnectError::Auth { challenge: challenge.to_owned() },
        None => ConnectError::Failed(error.to_string()),
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

/// Newer revisions report changes only to those that listen.
async fn watch_tools(peer: Peer<RoleClient>, changed: Arc<Notify>, closed: CancellationToken) {
    let reports = |info: &rmcp::model::ServerPeerInfo| {
        info.capabilities.tools.as_ref().and_then(|tools| tools.list_changed).unwrap_or_default()
    };
    if !peer.peer_info().is_some_and(|info| !info.protocol_version.has_initialize() && reports(&info)) {
        return;
    }
    let listen = async {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        let mut subscription = peer.listen(filter).await?;
        while subscription.next().await?.is_some() {
            changed.notify_one();
        }
        Ok::<_, ServiceError>(())
    };
    tokio::select! {
        ended = listen => tracing::debug!(?ended, "an MCP server no longer reports changes of its tools"),
        () = closed.cancelled() => {}
    }
}

async fn bounded<T>(request: impl Future<Output = Result<T, ServiceError>>) -> Result<T, CallError> {
    match tokio::time::timeout(REQUEST_TIMEOUT, request).await {
        Ok(result) => result.map_err(convert::call_error),
        Err(_) => Err(CallError::Closed),
    }
}

/// What a client gets for one line of a server's output, for tests with damaged lines; `None` if the line is no
/// response to a call.
#[doc(hidden)]
pub fn response_to_line(line: &[u8]) -> Option<crate::backend::Reply> {
    use rmcp::model::ServerJsonRpcMessage;
    let result = match serde_json::from_slice::<ServerJsonRpcMessage>(line).ok()? {
        ServerJsonRpcMessage::Response(response) => convert::response(response.result),
        ServerJsonRpcMessage::Error(error) => Err(convert::call_error(ServiceError::McpError(error.error))),
        _ => return None,
    };
    Some(super::reply::reply("server", result))
}
