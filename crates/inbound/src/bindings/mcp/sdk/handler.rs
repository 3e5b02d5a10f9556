//! The handler of one MCP session or request: tools and resources from the catalog, calls through the exchange.

use std::{
    future,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use http::{HeaderValue, Method, header, request::Parts};
use protocol::{
    Error, ErrorKind, Json, Part, SendMessage, TaskId, Violation,
    error::excerpt,
    json::{
        Raw,
        read::{Node, Path, Read},
    },
};
use rmcp::{
    ErrorData, Peer, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ClientResult, ErrorCode, Implementation,
        JsonObject, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
        PaginatedRequestParams, ProgressNotificationParam, ProgressToken, ProtocolVersion,
        ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ResourceTemplate,
        ServerCapabilities, ServerConfig, ServerRequest, SubscriptionFilter,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use tokio::{sync::watch, task::JoinSet};
use tokio_util::sync::CancellationToken;

use super::{
    HttpRequest,
    convert::{self, invalid_params},
    question::{self, Answer, Question},
};
use crate::{
    bindings::{
        mcp::{
            NAME,
            call::{self, Ended, Outcome, Progress},
            cards,
            tools::{self, Offer, Output},
        },
        skill_call::{self, Input},
    },
    caller::Caller,
    exchange::Exchange,
    host::Listener,
    server_state::ServerState,
};

/// The most questions that one call asks of a client that answers while it is open.
const MAX_QUESTIONS: usize = 32;

/// The caller of a connection over byte streams: whoever started the process.
const LOCAL_CALLER: &str = "local";

/// Where the exchange of a request comes from.
pub(super) enum Source {
    /// With the request.
    Http,
    /// It is made for each request; all agents are offered.
    Local {
        server: Arc<ServerState>,
        /// The host in the URLs of cards.
        host: HeaderValue,
    },
}

/// Serves one session, or one request of a client without sessions.
pub(super) struct SkillServer {
    source: Source,
    changes: watch::Receiver<()>,
    /// Tells the client about changes; ends with this.
    notifier: Mutex<JoinSet<()>>,
}

impl SkillServer {
    pub(super) fn new(source: Source, changes: watch::Receiver<()>) -> Self {
        Self { source, changes, notifier: Mutex::default() }
    }

    fn offer(&self) -> Offer {
        match self.source {
            Source::Http => Offer::Agent,
            Source::Local { .. } => Offer::AllAgents,
        }
    }

    /// The exchange of a request, and its body if there is one.
    fn exchange(&self, context: &RequestContext<RoleServer>) -> Result<(Exchange, Option<Bytes>), ErrorData> {
        match &self.source {
            Source::Http => {
                let request = context.extensions.get::<Parts>().and_then(|head| head.extensions.get());
                let request: &HttpRequest = request.ok_or_else(without_exchange)?;
                let (exchange, body) = request.take().ok_or_else(without_exchange)?;
                Ok((exchange, Some(body)))
            }
            Source::Local { server, host } => {
                let mut request = http::Request::new(());
                *request.method_mut() = Method::POST;
                *request.uri_mut() = http::Uri::from_static("/mcp");
                request.headers_mut().insert(header::HOST, host.clone());
                request.extensions_mut().insert(Caller::new(LOCAL_CALLER));
                let (head, ()) = request.into_parts();
                Ok((Exchange::begin(Arc::clone(server), Listener::Application, None, head), None))
            }
        }
    }

    /// Calls a tool, or continues a call with the answer to a question.
    async fn call_or_answer(
        &self,
        exchange: &mut Exchange,
        request: CallToolRequestParams,
        body: Option<Bytes>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(target) = tools::find(exchange, self.offer(), &request.name) else {
            let text = format!("unknown tool {:?}", excerpt(&request.name));
            exchange.log_entry.set_error(&Error::new(ErrorKind::InvalidParams, text.clone()));
            return Err(invalid_params(text));
        };
        if self.offer() == Offer::AllAgents {
            exchange.address(&target.agent);
        }
        if let Some(state) = &request.request_state {
            return match question::repeated(state, request.input_responses)? {
                (_, Answer::Accepted(message)) => self.call(exchange, *message, target.output, context).await,
                (task, Answer::Rejected) => Ok(reject(exchange, &task).await.into()),
            };
        }
        // The body is not kept while the agent works.
        let arguments = match body {
            Some(body) => arguments_in(&body),
            None => written(request.arguments.as_ref()),
        };
        match arguments {
            Ok(arguments) => {
                let message = message(target.skill.as_deref(), target.input(arguments));
                self.call(exchange, message, target.output, context).await
            }
            Err(error) => {
                exchange.log_entry.set_error(&error);
                Ok(convert::refused(&error).into())
            }
        }
    }

    /// Sends a message to the agent. Questions are asked as the client can be asked.
    async fn call(
        &self,
        exchange: &mut Exchange,
        request: SendMessage,
        output: Output,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let mut progress = ProgressSender::new(context);
        let (mut request, mut asked) = (request, None);
        for _ in 0..MAX_QUESTIONS {
            let ended = call::send(exchange, request, &context.ct, &mut progress).await;
            let Ended { task, outcome } = match ended {
                Ok(ended) => ended,
                Err(error) => return Ok(convert::refused(&error).into()),
            };
            let parts = match outcome {
                Outcome::Done(parts) => return Ok(convert::done(task.as_ref(), &parts, output).into()),
                Outcome::Failed(parts) => return Ok(convert::failed(task.as_ref(), &parts).into()),
                Outcome::AsksForCredentials(parts) => {
                    let shown = question::for_credentials(task.as_ref(), &parts);
                    return Ok(convert::failed(task.as_ref(), &shown).into());
                }
                Outcome::Asks(parts) => parts,
            };
            let capabilities = context.client_capabilities();
            let task = match task {
                Some(task) if question::can_answer(capabilities.as_ref()) => task,
                task => {
                    let shown = question::without_form(task.as_ref(), &parts);
                    return Ok(convert::failed(task.as_ref(), &shown).into());
                }
            };
            let question = Question::new(task, &parts);
            if sends_again(context) {
                return Ok(question.input_required().into());
            }
            asked = Some(question.task().clone());
            let answer = match ask(context, &question).await {
                Err(problem) => {
                    let text = format!("the answer cannot be used: {}", problem.message);
                    let shown = question::without_form(asked.as_ref(), &[Part::text(text)]);
                    return Ok(convert::failed(asked.as_ref(), &shown).into());
                }
                Ok(answer) => answer,
            };
            request = match answer {
                Some(Answer::Accepted(request)) => *request,
                Some(Answer::Rejected) => return Ok(reject(exchange, question.task()).await.into()),
                None => {
                    call::cancel(exchange, question.task().clone()).await;
                    return Err(ErrorData::new(ErrorCode::INTERNAL_ERROR, "the call was cancelled", None));
                }
            };
        }
        let shown = question::without_form(asked.as_ref(), &[Part::text("It asks again and again.")]);
        Ok(convert::failed(asked.as_ref(), &shown).into())
    }
}

impl ServerHandler for SkillServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_resources_list_changed()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new("a2ad", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let (mut exchange, _) = self.exchange(&context)?;
        let cursor = request.and_then(|request| request.cursor);
        let from: Result<usize, _> = cursor.map_or(Ok(0), |cursor| cursor.parse());
        let Ok(from) = from else {
            let text = "cursor: it is not from this server";
            exchange.log_entry.set_error(&Error::new(ErrorKind::InvalidParams, text));
            finish(exchange, "tools/list");
            return Err(invalid_params(text));
        };
        let (tools, next) = tools::page(&exchange, self.offer(), from);
        finish(exchange, "tools/list");
        let mut result = ListToolsResult::with_all_items(tools.into_iter().map(convert::tool).collect());
        result.next_cursor = next.map(|next| next.to_string());
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (mut exchange, body) = self.exchange(&context)?;
        let result = self.call_or_answer(&mut exchange, request, body, &context).await;
        finish(exchange, "tools/call");
        result
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let (exchange, _) = self.exchange(&context)?;
        let cards = cards::list(&exchange);
        finish(exchange, "resources/list");
        Ok(ListResourcesResult::with_all_items(cards.into_iter().map(convert::resource).collect()))
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let template = ResourceTemplate::new(cards::TEMPLATE, "card")
            .with_description("The A2A card of an agent; with ?v=0.3 in the form of that version")
            .with_mime_type("application/json");
        Ok(ListResourceTemplatesResult::with_all_items(vec![template]))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let (exchange, _) = self.exchange(&context)?;
        let card = cards::read(&exchange, &request.uri);
        finish(exchange, "resources/read");
        let card = card.ok_or_else(|| {
            let text = format!("there is no such resource; cards are at {}", cards::TEMPLATE);
            ErrorData::resource_not_found(text, None)
        })?;
        Ok(ReadResourceResult::new(vec![convert::contents(request.uri, card)]).into())
    }

    /// From now on a client with a session is notified of changes.
    fn on_initialized(
        &self,
        context: NotificationContext<RoleServer>,
    ) -> impl Future<Output = ()> + Send + '_ {
        let mut changes = self.changes.clone();
        let mut notifier = self.notifier.lock().unwrap_or_else(PoisonError::into_inner);
        // Those of an earlier notification end with the set.
        *notifier = JoinSet::new();
        notifier.spawn(async move {
            while changes.changed().await.is_ok() {
                let tools = context.peer.notify_tool_list_changed().await;
                if tools.and(context.peer.notify_resource_list_changed().await).is_err() {
                    return;
                }
            }
        });
        future::ready(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        let offered = SubscriptionFilter::builder().tools_list_changed().resources_list_changed().build();
        Some(requested.intersection(&offered))
    }

    /// The same for a client without a session.
    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let mut changes = self.changes.clone();
        loop {
            tokio::select! {
                () = context.cancelled() => return Ok(()),
                changed = changes.changed() => if changed.is_err() {
                    return Ok(());
                },
            }
            let accepted = context.accepted();
            if accepted.tools_list_changed == Some(true) {
                context.sink().notify_tool_list_changed().await.map_err(|error| closed(&error))?;
            }
            if accepted.resources_list_changed == Some(true) {
                context.sink().notify_resource_list_changed().await.map_err(|error| closed(&error))?;
            }
        }
    }
}

const INSTRUCTIONS: &str = "The tools are skills of A2A agents; a call is a task of the agent. The resources are the \
                            agents' cards.";

const REJECTED: &str = "the question of the agent was not answered, so its task was canceled";

/// Sends the progress messages of an agent to a client that has asked for them.
struct ProgressSender {
    to: Option<(Peer<RoleServer>, ProgressToken)>,
    cancellation: CancellationToken,
    count: u32,
}

impl ProgressSender {
    fn new(context: &RequestContext<RoleServer>) -> Self {
        let token = context.meta.get_progress_token();
        let to = token.map(|token| (context.peer.clone(), token));
        Self { to, cancellation: context.ct.clone(), count: 0 }
    }
}

impl Progress for ProgressSender {
    async fn working(&mut self, text: String) {
        let Some((peer, token)) = &self.to else { return };
        self.count += 1;
        let mut notice = ProgressNotificationParam::new(token.clone(), f64::from(self.count));
        notice.message = Some(text).filter(|text| !text.is_empty());
        tokio::select! {
            sent = peer.notify_progress(notice) => if let Err(error) = sent {
                tracing::debug!(%error, "progress was not sent");
            },
            () = self.cancellation.cancelled() => {}
        }
    }
}

/// Whether the client answers questions by sending its call again.
fn sends_again(context: &RequestContext<RoleServer>) -> bool {
    context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

/// Asks while the call is open; `None` if the call is cancelled meanwhile.
async fn ask(context: &RequestContext<RoleServer>, question: &Question) -> Result<Option<Answer>, ErrorData> {
    let asking = context.peer.send_request(ServerRequest::ElicitRequest(question.request()));
    let response = tokio::select! {
        response = asking => response,
        () = context.ct.cancelled() => return Ok(None),
    };
    match response {
        Ok(ClientResult::ElicitResult(result)) => question.answer(result).map(Some),
        Ok(_) => Err(invalid_params("the answer to the elicitation is not one")),
        Err(error) => {
            tracing::debug!(%error, "a question was not answered");
            Ok(Some(Answer::Rejected))
        }
    }
}

/// The client does not answer, so the task is canceled.
async fn reject(exchange: &mut Exchange, task: &TaskId) -> CallToolResult {
    call::cancel(exchange, task.clone()).await;
    convert::failed(Some(task), &[Part::text(REJECTED)])
}

fn message(skill: Option<&str>, input: Input) -> SendMessage {
    match skill {
        Some(skill) => skill_call::send(skill, input),
        None => SendMessage { metadata: None, ..skill_call::send("", input) },
    }
}

/// The arguments in the body of a call.
fn arguments_in(body: &[u8]) -> Result<Json, Error> {
    let read = |body: Raw<'_>| -> Read<Option<Json>> {
        let root = Node::new(body, &Path::Root).bounded().object()?;
        let params =
            root.maybe("params", |params| params.object()?.maybe("arguments", |node| node.any_object()))?;
        Ok(params.flatten())
    };
    let root = Raw::parse(body).map_err(|_| Error::new(ErrorKind::Parse, "the body is not JSON"))?;
    let arguments = read(root).map_err(Error::invalid_params)?;
    Ok(arguments.unwrap_or_else(empty))
}

fn written(arguments: Option<&JsonObject>) -> Result<Json, Error> {
    let Some(arguments) = arguments else { return Ok(empty()) };
    let text = serde_json::to_string(arguments).unwrap_or_default();
    Json::parse(&text).map_err(|problem| {
        Error::invalid_params(Violation::new("params.arguments", format!("expected {problem}")))
    })
}

fn empty() -> Json {
    Json::parse("{}").expect("this is JSON")
}

fn finish(mut exchange: Exchange, method: &'static str) {
    exchange.log_entry.set_method(method);
    exchange.log_entry.finish_without_dialect(NAME);
}

fn without_exchange() -> ErrorData {
    ErrorData::internal_error("the request is over", None)
}

fn closed(error: &dyn std::error::Error) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
