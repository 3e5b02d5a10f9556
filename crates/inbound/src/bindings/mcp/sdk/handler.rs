//! The handler of one MCP session or request: tools and resources from the catalog, calls through the exchange.

use std::{
    future,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use http::{HeaderValue, Method, header, request::Parts};
use protocol::{
    Error, ErrorKind, Json, SendMessage, TraceContext,
    error::excerpt,
    json::{
        Raw,
        read::{Node, Path, Read},
    },
};
use rmcp::{
    ErrorData, RoleServer, ServerHandler,
    model::{
        CallToolRequestParams, CallToolResponse, Implementation, ListResourceTemplatesResult,
        ListResourcesResult, ListToolsResult, PaginatedRequestParams, ReadResourceRequestParams,
        ReadResourceResponse, ReadResourceResult, ResourceTemplate, ServerCapabilities, ServerConfig,
        SubscriptionFilter,
    },
    service::{NotificationContext, RequestContext, SubscriptionContext},
};
use tokio::{sync::watch, task::JoinSet};
use tokio_util::task::TaskTracker;

use super::{
    HttpRequest,
    convert::{self, invalid_params},
    lines::RequestText,
    question::{self, Answer},
    tool_call,
};
use crate::{
    access::caller::Caller,
    bindings::{
        mcp::{
            NAME, cards,
            tools::{self, Offer},
        },
        skill_call::{self, Input},
    },
    request::{connection::Connection, exchange::Exchange},
    server_state::ServerState,
};

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
    /// Notifies the client of changes; ends with this.
    notifier: Mutex<JoinSet<()>>,
    /// The calls that have not ended.
    calls: TaskTracker,
}

impl SkillServer {
    pub(super) fn new(source: Source, changes: watch::Receiver<()>) -> Self {
        Self { source, changes, notifier: Mutex::default(), calls: TaskTracker::new() }
    }

    /// The calls that have not ended.
    pub(super) fn calls(&self) -> TaskTracker {
        self.calls.clone()
    }

    fn offer(&self) -> Offer {
        match self.source {
            Source::Http => Offer::Agent,
            Source::Local { .. } => Offer::AllAgents,
        }
    }

    /// The exchange of a request, and the text of its message. The arguments of a call are read from that: the tree of
    /// the library loses digits of numbers.
    fn exchange(&self, context: &RequestContext<RoleServer>) -> Result<(Exchange, Bytes), ErrorData> {
        match &self.source {
            Source::Http => {
                let request = context.extensions.get::<Parts>().and_then(|head| head.extensions.get());
                let request: &HttpRequest = request.ok_or_else(without_exchange)?;
                request.take().ok_or_else(without_exchange)
            }
            Source::Local { server, host } => {
                let mut request = http::Request::new(());
                *request.method_mut() = Method::POST;
                *request.uri_mut() = http::Uri::from_static("/mcp");
                request.headers_mut().insert(header::HOST, host.clone());
                request.extensions_mut().insert(Caller::new(LOCAL_CALLER));
                let (head, ()) = request.into_parts();
                let exchange = Exchange::begin(Arc::clone(server), Connection::STDIO, head);
                let text: Option<&RequestText> = context.extensions.get();
                let text = text.and_then(RequestText::take).ok_or_else(without_exchange)?;
                let reserved = exchange.memory.reserve_body(text.len() as u64);
                reserved.map_err(|error| ErrorData::internal_error(error.message, None))?;
                Ok((exchange, text))
            }
        }
    }

    /// Calls a tool, or continues a call with the answer to a question.
    async fn call_or_answer(
        &self,
        exchange: &mut Exchange,
        request: CallToolRequestParams,
        text: Bytes,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let meta = |name: &str| context.meta.get(name).and_then(|value| value.as_str());
        let parent = meta("traceparent").and_then(|parent| TraceContext::parse(parent, meta("tracestate")));
        if let Some(parent) = parent {
            exchange.continue_trace(&parent);
        }
        // The arguments in it are not kept while the agent works, and neither is the text.
        let CallToolRequestParams { name, request_state, input_responses, .. } = request;
        let Some(target) = tools::find(exchange, self.offer(), &name) else {
            let text = format!("unknown tool {:?}", excerpt(&name));
            exchange.log_entry.set_error(&Error::new(ErrorKind::InvalidParams, text.clone()));
            return Err(invalid_params(text));
        };
        if self.offer() == Offer::AllAgents {
            exchange.address(&target.agent);
        }
        if let Some(state) = &request_state {
            drop(text);
            return match question::repeated(state, input_responses)? {
                (_, Answer::Accepted(message)) => tool_call::call(exchange, *message, &target, context).await,
                (task, Answer::Rejected) => Ok(tool_call::reject(exchange, &task).await.into()),
            };
        }
        let arguments = arguments_in(&text);
        drop(text);
        match arguments {
            Ok(arguments) => {
                let message = message(target.skill.as_deref(), target.input(arguments));
                tool_call::call(exchange, message, &target, context).await
            }
            Err(error) => {
                exchange.log_entry.set_error(&error);
                Ok(convert::refused(&error).into())
            }
        }
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
        let reserved = reserve_result(&exchange, tools.iter().map(tools::Tool::size).sum());
        finish(exchange, "tools/list");
        reserved?;
        let mut result = ListToolsResult::with_all_items(tools.into_iter().map(convert::tool).collect());
        result.next_cursor = next.map(|next| next.to_string());
        Ok(result)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let (mut exchange, text) = self.exchange(&context)?;
        let call = self.call_or_answer(&mut exchange, request, text, &context);
        let result = self.calls.track_future(call).await;
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
        let reserved = reserve_result(&exchange, card.as_ref().map_or(0, String::len));
        finish(exchange, "resources/read");
        reserved?;
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

fn empty() -> Json {
    Json::parse("{}").expect("this is JSON")
}

fn finish(mut exchange: Exchange, method: &'static str) {
    exchange.log_entry.set_method(method);
    exchange.log_entry.finish_without_dialect(NAME);
}

/// Reserves memory for a result with texts of this size until the response is sent: as they are, and as the library
/// encodes them.
fn reserve_result(exchange: &Exchange, bytes: usize) -> Result<(), ErrorData> {
    exchange.memory.cover(2 * bytes as u64).map_err(|error| ErrorData::internal_error(error.message, None))
}

fn without_exchange() -> ErrorData {
    ErrorData::internal_error("the request is over", None)
}

fn closed(error: &dyn std::error::Error) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
