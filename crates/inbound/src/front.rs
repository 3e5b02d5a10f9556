//! Everything a server answers, as one service.
//!
//! Most requests are calls, and calls come in at a few paths. Those are told apart by hand and go straight to their
//! binding: a table of routes would copy the call's future more than once on its way and ask for memory as often as
//! everything that is said in the call. All other paths are in that table ([`routes::table`]).

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
    origin::Peer,
    ready::Ready,
    routes,
    server_state::{Options, ServerState},
};

/// Everything a server answers. Cheap to clone.
#[derive(Clone)]
pub struct Front(Arc<Inner>);

struct Inner {
    own: Option<Own>,
    table: Router,
}

/// What is answered without a look at the table.
struct Own {
    server_state: Arc<ServerState>,
    grpc: grpc::Calls,
}

impl Front {
    /// The agents of an engine behind their doors.
    pub fn new(engine: Engine, options: Options, ready: Ready) -> Self {
        let server_state = Arc::new(ServerState::new(engine, options, ready));
        let table = routes::table(Arc::clone(&server_state));
        let grpc = grpc::Calls::new(Arc::clone(&server_state));
        Self(Arc::new(Inner { own: Some(Own { server_state, grpc }), table }))
    }

    /// The same as something to mount into an app of one's own.
    pub fn router(&self) -> Router {
        Router::new().fallback_service(self.clone())
    }

    /// Answers one request from the other end of a connection.
    pub(crate) async fn answer_to<B>(
        self,
        peer: IpAddr,
        req: http::Request<B>,
    ) -> Result<Response, Infallible>
    where
        B: hyper::body::Body<Data = bytes::Bytes> + Send + 'static,
        B::Error: Into<axum::BoxError>,
    {
        let mut req = req.map(Body::new);
        if self.0.own.as_ref().is_none_or(|own| own.server_state.asks_for_peers()) {
            req.extensions_mut().insert(Peer(peer));
        }
        Ok(self.answer(req).await)
    }

    /// Each binding's future is boxed, because the connection moves the one it is given: a pointer then.
    async fn answer(&self, req: Request) -> Response {
        let Inner { own, table } = &*self.0;
        let Some(Own { server_state, grpc }) = own else { return Box::pin(routed(table, req)).await };
        if grpc::is_grpc(&req) {
            return Box::pin(grpc.handle(req)).await;
        }
        if req.method() == Method::POST {
            if let Some(endpoint) = server_state.called_at(req.uri().path(), req.headers()) {
                return Box::pin(jsonrpc::handle(server_state, endpoint, req)).await;
            }
            if rest::is_send(req.uri().path()) {
                return Box::pin(routes::rest_or_nothing(server_state, req)).await;
            }
        }
        Box::pin(routed(table, req)).await
    }
}

async fn routed(table: &Router, req: Request) -> Response {
    let Ok(response) = tower::Service::call(&mut table.clone(), req).await;
    response
}

/// An app that has the agents somewhere inside.
impl From<Router> for Front {
    fn from(table: Router) -> Self {
        Self(Arc::new(Inner { own: None, table }))
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
