//! gRPC, on the same port as everything else.
//!
//! What is gRPC, by its type or by its path, is taken out of the way of all other routes, so whatever becomes of it, it
//! is answered as gRPC. The protocol's services are dispatched by hand: a request is one message that a codec of
//! `protocol` reads, so nothing between the socket and the codec is generated or copied. Health and reflection are
//! tonic's.

mod address;
mod call;
mod deadline;
mod health;
mod message;
pub(crate) mod reach;
mod reflection;
mod reply;
mod status;
mod stream;

use std::{convert::Infallible, sync::Arc};

use axum::{body::Body, extract::Request, response::Response};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header};
use protocol::{
    Error, ErrorKind,
    error::{Grpc, in_short},
    grpc::Service,
};
use tower::{Service as _, ServiceExt as _, util::BoxCloneSyncService};

use self::status::{Refusal, StatusWriter};
use crate::server_state::ServerState;

/// Every content type of gRPC begins with this.
const CONTENT_TYPE: &[u8] = b"application/grpc";

/// Whether a request says that it is gRPC: by its type or, over HTTP/2, by the path of one of our services.
pub(crate) fn is_grpc(req: &Request) -> bool {
    form(req.headers()).is_some() || req.version() == Version::HTTP_2 && is_of_service(req.uri().path())
}

/// What stands behind the content type of gRPC, if it is that.
fn form(headers: &HeaderMap) -> Option<&[u8]> {
    let (kind, form) = headers.get(header::CONTENT_TYPE)?.as_bytes().split_at_checked(CONTENT_TYPE.len())?;
    kind.eq_ignore_ascii_case(CONTENT_TYPE).then_some(form)
}

/// Whether the messages are protobuf.
fn is_proto(headers: &HeaderMap) -> bool {
    let form = form(headers).and_then(|form| form.split(|byte| *byte == b';').next()).map(<[u8]>::trim_ascii);
    form.is_some_and(|form| form.is_empty() || form.eq_ignore_ascii_case(b"+proto"))
}

fn is_of_service(path: &str) -> bool {
    let name = path.strip_prefix('/').and_then(|path| path.split_once('/')).map(|(name, _)| name);
    name.is_some_and(|name| Service::ALL.into_iter().any(|service| service.name() == name))
}

/// A service that is not ours.
type Other = BoxCloneSyncService<Request, Response, Infallible>;

/// Everything that is called by gRPC.
pub(crate) struct Calls {
    server_state: Arc<ServerState>,
    health: Other,
    reflection: Other,
    alpha_reflection: Other,
}

impl Calls {
    pub(crate) fn new(server_state: Arc<ServerState>) -> Self {
        let reflection = reflection::server().expect("the descriptors are those of committed files");
        let alpha = reflection::alpha_server().expect("the descriptors are those of committed files");
        Self {
            health: boxed(health::server(server_state.ready.clone())),
            reflection: boxed(reflection),
            alpha_reflection: boxed(alpha),
            server_state,
        }
    }

    pub(crate) async fn handle(&self, req: Request) -> Response {
        if let Err((status, refusal)) = check(&req) {
            return self.no_call(status, &refusal);
        }
        let path = req.uri().path();
        let path = path.strip_prefix('/').unwrap_or(path);
        let (name, method) = path.split_once('/').unwrap_or((path, ""));
        if let Some(service) = Service::ALL.into_iter().find(|service| service.name() == name) {
            let method = call::find(service, method);
            return call::handle(&self.server_state, service, method, req).await;
        }
        let ready = self.server_state.ready.clone();
        let other = match name {
            health::NAME => self.health.clone().call(req),
            reflection::V1 => self.reflection.clone().call(reflection::until_left(req, ready)),
            reflection::V1_ALPHA => self.alpha_reflection.clone().call(reflection::until_left(req, ready)),
            _ => return self.no_call(StatusCode::OK, &unknown(name)),
        };
        let Ok(response) = other.await;
        response
    }

    /// Refuses what is not a call of a service there is.
    fn no_call(&self, status: StatusCode, refusal: &Refusal) -> Response {
        let status_writer = StatusWriter { service: Service::V1, errors: self.server_state.errors };
        let mut response = status_writer.refuse(refusal, self.server_state.engine.clock().now());
        *response.status_mut() = status;
        if status == StatusCode::METHOD_NOT_ALLOWED {
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
        }
        response
    }
}

/// Whether this is gRPC as it is spoken here, told by the status of HTTP too for those who look no further.
fn check(req: &Request) -> Result<(), (StatusCode, Refusal)> {
    let refuse = |status, kind, text: String| {
        Err((status, Refusal { error: Error::new(kind, text), code: Some(Grpc::Unimplemented) }))
    };
    if req.version() < Version::HTTP_2 {
        let text = "gRPC needs HTTP/2 from the first byte; over HTTP/1.1 there are JSON-RPC and HTTP+JSON";
        return refuse(StatusCode::HTTP_VERSION_NOT_SUPPORTED, ErrorKind::InvalidRequest, text.into());
    }
    if req.method() != Method::POST {
        let text = format!("{} is no call; calls of gRPC are POST", req.method());
        return refuse(StatusCode::METHOD_NOT_ALLOWED, ErrorKind::MethodNotFound, text);
    }
    if !is_proto(req.headers()) {
        let kind = req.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        let shown = in_short(&String::from_utf8_lossy(kind));
        let text = format!("Content-Type {shown:?} is not served here; send application/grpc");
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, ErrorKind::UnsupportedMediaType, text);
    }
    Ok(())
}

fn unknown(name: &str) -> Refusal {
    let served = Service::ALL.map(Service::name).join(", ");
    let name: String = name.chars().take(128).collect();
    let text = format!("there is no service {name:?} here; there are {served}, health and reflection");
    Error::new(ErrorKind::MethodNotFound, text).into()
}

/// One of tonic's services, its body made ours.
fn boxed<S, B>(service: S) -> Other
where
    S: tower::Service<Request, Response = http::Response<B>, Error = Infallible>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send,
    B: hyper::body::Body<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<axum::BoxError>,
{
    BoxCloneSyncService::new(service.map_response(|response| response.map(Body::new)))
}
