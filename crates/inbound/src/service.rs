//! The HTTP service with every route of the server: route, context, checks, handler.
//!
//! All checks of a request stand in one list, in their order, each with the reason for its place: [`check_head`], then
//! [`check_sender`], then [`check_call`]. The first two precede the body. They are separate functions because of what lies
//! between them: the verification of credentials, which may have to wait, and the binding, which reads and decodes the body
//! and refuses what has not its form.
//!
//! Route and context are found by plain functions. A handler's future is boxed, so that the connection moves only a
//! pointer, and boxed again only for HEAD, CORS or an enabled span.

use std::{
    collections::BTreeMap,
    convert::Infallible,
    net::IpAddr,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use axum::{Router, body::Body, extract::Request, response::Response};
use engine::Engine;
use futures_util::{
    FutureExt as _,
    future::{self, BoxFuture},
};
use http::{HeaderValue, Method, header};
use hyper::body::Body as _;
use pin_project_lite::pin_project;
use protocol::{Dialect, Error, Operation, OperationKind, model::Secret};
use tracing::Instrument as _;

#[cfg(feature = "mcp")]
use crate::bindings::mcp::{self, McpError};
use crate::{
    access::{
        self,
        auth::{Verification, VerifiedSender},
        caller::Peer,
        rate_limit::RateLimits,
    },
    addresses::{cross_origin, host::Listener, host_and_origin},
    admit,
    bindings::{extended_card, grpc, jsonrpc, operators, process_task, rest, run, text},
    documents::{
        agent_list, card, home_page, openapi, published_keys,
        ready::{self, Ready},
    },
    metrics::{self, ServerMetrics},
    request::{
        connection::{Connection, Scheme},
        endpoint::check_tenant,
        exchange::Exchange,
    },
    response::refusal::{self, Refusal},
    routes::{Handler, RouteSet},
    server_state::{ServerOptions, ServerState},
    tls::{ClientCertificate, ServerTls},
};

/// The checks of a request that need no credential.
fn check_head(exchange: &mut Exchange) -> Result<(), Refusal> {
    // First, so that pages of other sites and names that somebody else points here learn nothing of what is served.
    exchange.cors = host_and_origin::check(exchange)?;
    // Before credentials: no credential makes a wrong path right, and none is verified in vain.
    exchange.check_served()
}

/// The checks of its sender, before the body. [`access::verify`] has verified the credentials just before, unless that is
/// costly and too many of this sender were wrong. What is refused is counted by [`Exchange::count_refusal`].
fn check_sender(exchange: &mut Exchange, verified: Result<VerifiedSender, Error>) -> Result<(), Error> {
    // A wrong credential is refused also where anonymous callers are permitted: its sender expects to be known.
    access::identify(exchange, verified)?;
    // Whatever else the request has: a new connection with this certificate would be refused too.
    access::check_certificate(exchange)?;
    // What the route requires: a signed token, the admin token, or a credential and an end user that the agent accepts. An
    // agent that only the body names waits for `check_call`.
    access::check(exchange)?;
    // After the credential, so that nobody uses up the rate of somebody else; before the body, which costs memory.
    exchange.check_rate()
}

/// The checks that wait for the body: [`DecodedRequest::run`] makes them before it calls the engine. A signed request has
/// no operation; its signature is verified in [`Exchange::start_work`], as soon as the body has named the task.
///
/// [`DecodedRequest::run`]: crate::request::decoded_request::DecodedRequest::run
pub(crate) fn check_call(
    exchange: &mut Exchange,
    kind: OperationKind,
    dialect: Dialect,
    operation: Result<Operation, Error>,
) -> Result<Operation, Error> {
    // Now for the agent that the body has named, and for a disabled agent in the dialect that the body has chosen.
    access::check_agent(exchange)?;
    // Of that agent; if the head has named it, the call is counted already.
    exchange.check_agent_rate()?;
    // Before errors about parameters: correcting them would not help.
    admit::check_operation(&exchange.endpoint, kind)?;
    let operation = operation?;
    // Before the agent's settings, which are none of another tenant's. Over gRPC it names the agent, and has been read.
    if !matches!(exchange.row.handler, Handler::Grpc(_)) {
        check_tenant(&exchange.endpoint.tenant, operation.tenant())?;
    }
    // Extensions, media types, push notifications, extended card: these need the parameters.
    let scope = exchange.sender.scope(&exchange.endpoint);
    admit::check_request(&exchange.endpoint, &scope, dialect, &exchange.head.headers, operation)
    // What is left is counted for the call itself: open streams and memory, in `decoded_request.rs`.
}

/// The HTTP service of a server. Cheap to clone.
#[derive(Clone)]
pub struct HttpService {
    served: ServiceTarget,
    connection: Connection,
}

#[derive(Clone)]
enum ServiceTarget {
    /// The agents of an engine.
    Agents(Arc<ServerState>),
    /// An application that has the agents mounted in it.
    Application(Router),
}

impl HttpService {
    /// Serves the agents of an engine.
    pub fn new(engine: Engine, options: ServerOptions, ready: Ready) -> Self {
        let served = ServiceTarget::Agents(Arc::new(ServerState::new(engine, options, ready)));
        Self { served, connection: Connection::APPLICATION }
    }

    /// Serves all agents over MCP on a pair of byte streams, as tools named `agent__skill`, until the peer closes its side
    /// or `stop` is cancelled. Whoever holds the other end is one known caller. `host` is used in the URLs of cards.
    #[cfg(feature = "mcp")]
    pub async fn serve_mcp(
        &self,
        host: HeaderValue,
        input: impl tokio::io::AsyncRead + Send + Unpin + 'static,
        output: impl tokio::io::AsyncWrite + Send + Unpin + 'static,
        stop: tokio_util::sync::CancellationToken,
    ) -> Result<(), McpError> {
        match &self.served {
            ServiceTarget::Agents(server) => mcp::serve(Arc::clone(server), host, input, output, stop).await,
            ServiceTarget::Application(_) => Ok(()),
        }
    }

    /// The service as a router, to be mounted into another application.
    pub fn router(&self) -> Router {
        Router::new().fallback_service(Self { connection: Connection::APPLICATION, ..self.clone() })
    }

    /// What `/metrics` shows, for an application that serves it itself; empty for an application.
    pub async fn metrics(&self) -> String {
        match &self.served {
            ServiceTarget::Agents(server) => metrics::text(server).await,
            ServiceTarget::Application(_) => String::new(),
        }
    }

    /// Replaces the rate limits. What callers have used counts on; an application is not changed.
    pub fn set_rate_limits(&self, limits: RateLimits) {
        if let ServiceTarget::Agents(server) = &self.served {
            let new = server.rates.load().with_limits(limits, server.engine.clock());
            server.rates.store(Arc::new(new));
        }
    }

    /// Replaces the secrets that verify the tokens of organisations, each with its domain. What is open with a token of one
    /// that is gone ends; an application is not changed.
    pub fn set_org_secrets(&self, secrets: &BTreeMap<String, Secret>) {
        if let ServiceTarget::Agents(server) = &self.served {
            server.auth.set_org_secrets(secrets);
            server.access.changes.announce();
        }
    }

    /// Takes over which names of client certificates its listeners verify.
    pub(crate) fn set_listener_tls(&self, all: &[Arc<ServerTls>]) {
        if let ServiceTarget::Agents(server) = &self.served {
            all.iter().for_each(|tls| tls.announce_names_to(&server.access.changes));
            let _ = server.tls.set(all.to_vec());
        }
    }

    /// Where the connections of a listener are counted.
    pub(crate) fn server_metrics(&self) -> Arc<ServerMetrics> {
        match &self.served {
            ServiceTarget::Agents(server) => Arc::clone(&server.metrics),
            ServiceTarget::Application(_) => Arc::default(),
        }
    }

    /// The service for a listener of ours, which is bound to this address.
    pub(crate) fn bound_to(self, address: IpAddr, scheme: Scheme, routes: RouteSet) -> Self {
        let listener = Listener::Bound(address);
        Self { connection: Connection { listener, scheme, routes, ..Connection::APPLICATION }, ..self }
    }

    /// The service for one connection of that listener, with the verified certificate of its client.
    pub(crate) fn of_peer(self, peer: IpAddr, certificate: Option<Arc<ClientCertificate>>) -> Self {
        Self { connection: Connection { peer: Some(peer), certificate, ..self.connection }, ..self }
    }

    /// Handles one request: of a connection of ours, or in memory.
    pub fn handle<B>(self, req: http::Request<B>) -> BoxFuture<'static, Response>
    where
        B: hyper::body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<axum::BoxError>,
    {
        self.handle_request(req.map(Body::new))
    }

    fn handle_request(self, mut req: Request) -> BoxFuture<'static, Response> {
        let server = match self.served {
            ServiceTarget::Agents(server) => server,
            ServiceTarget::Application(mut router) => {
                if let Some(peer) = self.connection.peer {
                    req.extensions_mut().insert(Peer(peer));
                }
                return Box::pin(async move {
                    let Ok(response) = tower::Service::call(&mut router, req).await;
                    response
                });
            }
        };
        let (head, body) = req.into_parts();
        let is_head = head.method == Method::HEAD;
        let mut exchange = Exchange::begin(server, self.connection, head);
        let span = exchange.span.clone();
        let checked = check_head(&mut exchange);
        let cors = exchange.cors.take();
        let response = span.in_scope(|| match checked {
            Ok(()) => verify(exchange, body),
            Err(refusal) => answered(refusal::respond(exchange, &refusal)),
        });
        if !is_head && cors.is_none() {
            return response;
        }
        Box::pin(response.map(move |response| {
            let response = if is_head { without_body(response) } else { response };
            match cors {
                Some(origin) => cross_origin::set_cors_headers(response, origin),
                None => response,
            }
        }))
    }
}

/// Verifies the credentials of a request, and goes on at once unless something has to be loaded for that.
fn verify(exchange: Exchange, body: Body) -> BoxFuture<'static, Response> {
    match access::verify(&exchange) {
        Verification::Ready(verified) => dispatch(exchange, verified, body),
        Verification::Pending(pending) => {
            let span = exchange.span.clone();
            let response = async move { dispatch(exchange, pending.await, body).await };
            handled(response.instrument(span))
        }
    }
}

/// Hands a request to its handler, if its sender is permitted.
fn dispatch(
    mut exchange: Exchange,
    verified: Result<VerifiedSender, Error>,
    body: Body,
) -> BoxFuture<'static, Response> {
    if let Err(error) = check_sender(&mut exchange, verified) {
        let error = exchange.count_refusal(error);
        let delay = exchange.refusal_delay(&error);
        let refused = refusal::respond(exchange, &Refusal::Caller(error));
        return match delay {
            None => answered(refused),
            Some(delay) => Box::pin(tokio::time::sleep(delay).map(|()| refused)),
        };
    }
    let span = exchange.span.clone();
    let response: BoxFuture<'static, Response> = match exchange.row.handler {
        Handler::JsonRpc(_) => handled(jsonrpc::handle(exchange, body)),
        Handler::Rest => handled(rest::handle(exchange, body)),
        Handler::Grpc(service) => grpc::handle(service, exchange, body),
        Handler::Text => handled(text::handle(exchange, body)),
        Handler::Run => handled(run::handle(exchange, body)),
        Handler::ProcessTask => handled(process_task::handle(exchange, body)),
        #[cfg(feature = "mcp")]
        Handler::Mcp => handled(mcp::handle(exchange, body)),
        #[cfg(not(feature = "mcp"))]
        Handler::Mcp => answered(refusal::respond(exchange, &Refusal::NotFound)),
        Handler::ExtendedCard => Box::pin(extended_card::handle(exchange)),
        Handler::Card(name) => answered(card::handle(&exchange, name)),
        Handler::OpenApi => answered(openapi::handle(&exchange)),
        Handler::AgentList => answered(agent_list::handle(&exchange)),
        Handler::PublishedKeys => Box::pin(published_keys::handle(exchange)),
        Handler::Operators(call) => handled(operators::handle(call, exchange, body)),
        Handler::HomePage => answered(home_page::handle(&exchange)),
        Handler::Liveness => answered(ready::liveness()),
        Handler::Metrics => Box::pin(metrics::handle(exchange)),
        Handler::Readiness => answered(ready::readiness(&exchange.server.ready, &exchange.server.engine)),
        Handler::Nothing => answered(refusal::respond(exchange, &Refusal::NotFound)),
    };
    if span.is_disabled() { response } else { Box::pin(response.instrument(span)) }
}

/// The response of a handler that takes the body of the request.
///
/// A handler that refuses a request drops its body unread. The connection has to notice that before it writes the head
/// of the response: over HTTP/1.1 it cannot go on after a body that has not arrived, and has to announce that it closes.
fn handled(response: impl Future<Output = Response> + Send + 'static) -> BoxFuture<'static, Response> {
    Box::pin(Handled { response, refusal: None })
}

pin_project! {
    /// The future of [`handled`]. An async block would have the other future twice, and move it between the two places.
    struct Handled<F> {
        #[pin]
        response: F,
        // It is returned at the next poll.
        refusal: Option<Response>,
    }
}

impl<F: Future<Output = Response>> Future for Handled<F> {
    type Output = Response;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Response> {
        let handled = self.project();
        if let Some(refusal) = handled.refusal.take() {
            return Poll::Ready(refusal);
        }
        let response = ready!(handled.response.poll(cx));
        if response.status().is_success() {
            return Poll::Ready(response);
        }
        *handled.refusal = Some(response);
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

fn answered(response: Response) -> BoxFuture<'static, Response> {
    Box::pin(future::ready(response))
}

/// The response to HEAD: that to GET with its length, without the content.
fn without_body(mut response: Response) -> Response {
    if let Some(length) = response.body().size_hint().exact() {
        response.headers_mut().entry(header::CONTENT_LENGTH).or_insert(HeaderValue::from(length));
    }
    response.map(|_| Body::empty())
}

/// An application that has the agents mounted in it. It serves any host itself; the mounted router has its own checks.
impl From<Router> for HttpService {
    fn from(application: Router) -> Self {
        Self { served: ServiceTarget::Application(application), connection: Connection::APPLICATION }
    }
}

impl tower::Service<Request> for HttpService {
    type Response = Response;
    type Error = Infallible;
    type Future = future::Map<BoxFuture<'static, Response>, fn(Response) -> Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, req: Request) -> Self::Future {
        self.clone().handle_request(req).map(Ok)
    }
}

#[cfg(test)]
mod access_matrix;
#[cfg(test)]
mod tests;
