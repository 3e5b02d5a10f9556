//! The HTTP service with every route of the server.
//!
//! Each request is checked first: its host, and the origin of the page that sends it ([`host_and_origin`]).
//!
//! Most requests are calls, and calls use few paths. Those paths are compared by hand and go directly to their binding:
//! a router would copy the call's future several times and allocate as much memory as the rest of the call. All other
//! paths are in the routing table ([`routes::table`]).

use std::{
    convert::Infallible,
    net::IpAddr,
    sync::Arc,
    task::{Context, Poll},
};

use axum::{Router, body::Body, extract::Request, response::Response};
use engine::Engine;
use futures_util::future::BoxFuture;
use http::Method;

use crate::{
    bindings::{grpc, jsonrpc, rest},
    cross_origin,
    host::Listener,
    host_and_origin::{self, Decision},
    origin::Peer,
    ready::Ready,
    routes,
    server_state::{ServerOptions, ServerState},
};

/// The HTTP service of a server. Cheap to clone.
#[derive(Clone)]
pub struct Front {
    inner: Arc<Inner>,
    listener: Listener,
}

struct Inner {
    direct: Option<Direct>,
    table: Router,
}

/// What requests on the direct paths need.
struct Direct {
    server_state: Arc<ServerState>,
    grpc: grpc::GrpcServer,
}

impl Front {
    /// Serves the agents of an engine.
    pub fn new(engine: Engine, options: ServerOptions, ready: Ready) -> Self {
        let server_state = Arc::new(ServerState::new(engine, options, ready));
        let table = routes::table(Arc::clone(&server_state));
        let grpc = grpc::GrpcServer::new(Arc::clone(&server_state));
        let inner = Arc::new(Inner { direct: Some(Direct { server_state, grpc }), table });
        Self { inner, listener: Listener::Application }
    }

    /// The service as a router, to be mounted into another application.
    pub fn router(&self) -> Router {
        Router::new().fallback_service(Self { listener: Listener::Application, ..self.clone() })
    }

    /// The service for a listener of ours, which is bound to this address.
    pub(crate) fn bound_to(self, address: IpAddr) -> Self {
        Self { listener: Listener::Bound(address), ..self }
    }

    /// Handles one request of a connection's peer.
    pub(crate) async fn handle_from<B>(
        self,
        peer: IpAddr,
        req: http::Request<B>,
    ) -> Result<Response, Infallible>
    where
        B: hyper::body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<axum::BoxError>,
    {
        let mut req = req.map(Body::new);
        if self.inner.direct.as_ref().is_none_or(|direct| direct.server_state.needs_peer_address()) {
            req.extensions_mut().insert(Peer(peer));
        }
        Ok(self.answer(req).await)
    }

    async fn answer(&self, req: Request) -> Response {
        let Inner { direct, table } = &*self.inner;
        let Some(direct) = direct else { return Box::pin(routed(table, req)).await };
        let (response, cors) = match host_and_origin::check(&direct.server_state, self.listener, &req) {
            Decision::Handle(cors) => (direct.dispatch(table, req), cors),
            Decision::Respond(response) => return response,
            Decision::Refuse(status, error) if grpc::is_grpc(&req) => {
                return direct.grpc.refuse(status, error);
            }
            Decision::Refuse(status, error) => {
                return routes::refuse(&direct.server_state, &req, status, &error);
            }
        };
        let response = response.await;
        match cors {
            Some(origin) => cross_origin::set_cors_headers(response, origin),
            None => response,
        }
    }
}

impl Direct {
    /// Each binding's future is boxed: the connection moves the future of a request, and so moves only a pointer.
    fn dispatch<'a>(&'a self, table: &'a Router, req: Request) -> BoxFuture<'a, Response> {
        let Self { server_state, grpc } = self;
        if grpc::is_grpc(&req) {
            return Box::pin(grpc.handle(req));
        }
        if req.method() == Method::POST {
            if let Some(endpoint) = server_state.jsonrpc_endpoint(req.uri().path(), req.headers()) {
                return Box::pin(jsonrpc::handle(server_state, endpoint, req));
            }
            if rest::is_send(req.uri().path()) {
                return Box::pin(routes::rest_or_not_found(server_state, req));
            }
        }
        Box::pin(routed(table, req))
    }
}

async fn routed(table: &Router, req: Request) -> Response {
    let Ok(response) = tower::Service::call(&mut table.clone(), req).await;
    response
}

/// An application that has the agents mounted in it. It serves any host itself; the mounted router has its own checks.
impl From<Router> for Front {
    fn from(table: Router) -> Self {
        Self { inner: Arc::new(Inner { direct: None, table }), listener: Listener::Application }
    }
}

impl tower::Service<Request> for Front {
    type Response = Response;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, req: Request) -> Self::Future {
        let front = self.clone();
        Box::pin(async move { Ok(front.answer(req).await) })
    }
}
