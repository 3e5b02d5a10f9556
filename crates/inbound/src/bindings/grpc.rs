//! The gRPC binding, on the same port as the other bindings.
//!
//! A gRPC request, recognised by content type or path, is dispatched before all other routes, so that every response to
//! it is a gRPC response. The protocol's services are dispatched by hand: a request is one message, decoded by a codec
//! of `protocol`, so nothing between the socket and the codec is generated or copied. Health and reflection are tonic's
//! services.

mod address;
mod call;
mod deadline;
mod health;
pub(crate) mod interface;
mod message;
mod reflection;
mod reply;
mod status;
mod stream;

use std::{convert::Infallible, sync::Arc};

use axum::{body::Body, extract::Request, response::Response};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header};
use protocol::{
    Error, ErrorKind,
    error::{GrpcStatus, excerpt},
    grpc::Service,
};
use tower::{Service as _, ServiceExt as _, util::BoxCloneSyncService};

use self::status::{Refusal, StatusWriter};
use crate::server_state::ServerState;

/// Prefix of every gRPC content type.
const CONTENT_TYPE: &[u8] = b"application/grpc";

/// Whether a request is gRPC: by content type or, over HTTP/2, by the path of one of our services.
pub(crate) fn is_grpc(req: &Request) -> bool {
    content_subtype(req.headers()).is_some()
        || req.version() == Version::HTTP_2 && is_service_path(req.uri().path())
}

/// What follows `application/grpc` in the content type, such as `+proto`; `None` if it is not gRPC.
fn content_subtype(headers: &HeaderMap) -> Option<&[u8]> {
    let (kind, form) = headers.get(header::CONTENT_TYPE)?.as_bytes().split_at_checked(CONTENT_TYPE.len())?;
    kind.eq_ignore_ascii_case(CONTENT_TYPE).then_some(form)
}

fn is_proto(headers: &HeaderMap) -> bool {
    let form = content_subtype(headers)
        .and_then(|form| form.split(|byte| *byte == b';').next())
        .map(<[u8]>::trim_ascii);
    form.is_some_and(|form| form.is_empty() || form.eq_ignore_ascii_case(b"+proto"))
}

fn is_service_path(path: &str) -> bool {
    let name = path.strip_prefix('/').and_then(|path| path.split_once('/')).map(|(name, _)| name);
    name.is_some_and(|name| Service::ALL.into_iter().any(|service| service.name() == name))
}

/// One of tonic's services.
type TonicService = BoxCloneSyncService<Request, Response, Infallible>;

/// All gRPC services of the server.
pub(crate) struct GrpcServer {
    server_state: Arc<ServerState>,
    health: TonicService,
    reflection: TonicService,
    alpha_reflection: TonicService,
}

impl GrpcServer {
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
        if let Err((status, refusal)) = check_protocol(&req) {
            return self.error_response(status, &refusal);
        }
        let path = req.uri().path();
        let path = path.strip_prefix('/').unwrap_or(path);
        let (name, method) = path.split_once('/').unwrap_or((path, ""));
        if let Some(service) = Service::ALL.into_iter().find(|service| service.name() == name) {
            let method = call::find(service, method);
            return call::handle(&self.server_state, service, method, req).await;
        }
        let ready = self.server_state.ready.clone();
        let response = match name {
            health::NAME => self.health.clone().call(req),
            reflection::V1 => self.reflection.clone().call(reflection::until_closing(req, ready)),
            reflection::V1_ALPHA => self.alpha_reflection.clone().call(reflection::until_closing(req, ready)),
            _ => return self.error_response(StatusCode::OK, &unknown_service(name)),
        };
        let Ok(response) = response.await;
        response
    }

    /// The response to a request that is refused before it reaches this binding.
    pub(crate) fn refuse(&self, status: StatusCode, error: Error) -> Response {
        self.error_response(status, &error.into())
    }

    /// The error response to a request that does not reach a service.
    fn error_response(&self, status: StatusCode, refusal: &Refusal) -> Response {
        let status_writer = StatusWriter { service: Service::V1, errors: self.server_state.errors };
        let mut response = status_writer.error_response(refusal, self.server_state.engine.clock().now());
        *response.status_mut() = status;
        if status == StatusCode::METHOD_NOT_ALLOWED {
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
        }
        response
    }
}

/// Checks HTTP version, method and content type. The error carries an HTTP status too, for clients that read only that.
fn check_protocol(req: &Request) -> Result<(), (StatusCode, Refusal)> {
    let refuse = |status, kind, text: String| {
        Err((status, Refusal { error: Error::new(kind, text), code: Some(GrpcStatus::Unimplemented) }))
    };
    if req.version() < Version::HTTP_2 {
        let text = "gRPC requires HTTP/2 with prior knowledge; over HTTP/1.1 use JSON-RPC or HTTP+JSON";
        return refuse(StatusCode::HTTP_VERSION_NOT_SUPPORTED, ErrorKind::InvalidRequest, text.into());
    }
    if req.method() != Method::POST {
        let text = format!("method {} is not allowed; gRPC calls use POST", req.method());
        return refuse(StatusCode::METHOD_NOT_ALLOWED, ErrorKind::MethodNotFound, text);
    }
    if !is_proto(req.headers()) {
        let kind = req.headers().get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        let shown = excerpt(&String::from_utf8_lossy(kind));
        let text = format!("Content-Type {shown:?} is not supported; send application/grpc");
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, ErrorKind::UnsupportedMediaType, text);
    }
    Ok(())
}

fn unknown_service(name: &str) -> Refusal {
    let served = Service::ALL.map(Service::name).join(", ");
    let name: String = name.chars().take(128).collect();
    let text = format!("unknown service {name:?}; this server has {served}, health and reflection");
    Error::new(ErrorKind::MethodNotFound, text).into()
}

/// Boxes a tonic service and converts its response body to ours.
fn boxed<S, B>(service: S) -> TonicService
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
