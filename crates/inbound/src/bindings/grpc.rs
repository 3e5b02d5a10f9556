//! The gRPC binding, on the same port as the other bindings.
//!
//! A gRPC request is recognised by content type or path, and only routes of gRPC are searched for it, so that every
//! response to it is a gRPC response. The protocol's services are dispatched by hand: a request is one message, decoded by a codec
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
use engine::Tenant;
use futures_util::{
    FutureExt as _,
    future::{self, BoxFuture},
};
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header, request::Parts};
use protocol::{
    Dialect, Error, ErrorKind,
    error::{GrpcStatus, excerpt},
    grpc::Service,
};
use tower::{Service as _, ServiceExt as _, util::BoxCloneSyncService};

use self::status::{Refusal, StatusWriter};
use crate::{documents::ready::Ready, request::exchange::Exchange, routes::GrpcService};

/// Prefix of every gRPC content type.
const CONTENT_TYPE: &[u8] = b"application/grpc";

/// Whether the content type is one of gRPC.
pub(crate) fn is_content_type(headers: &HeaderMap) -> bool {
    content_subtype(headers).is_some()
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

pub(crate) const HEALTH: &str = health::NAME;
pub(crate) const REFLECTION: &str = reflection::V1;
pub(crate) const REFLECTION_ALPHA: &str = reflection::V1_ALPHA;

/// The agent that the metadata of a call names; an error if it is not one of this tenant.
pub(crate) fn agent_in_metadata(tenant: &Tenant, headers: &HeaderMap) -> Result<Option<String>, Error> {
    address::agent(tenant, headers, None)
}

/// One of tonic's services.
type TonicService = BoxCloneSyncService<Request, Response, Infallible>;

/// The services that tonic implements.
pub(crate) struct TonicServices {
    health: TonicService,
    reflection: TonicService,
    alpha_reflection: TonicService,
}

impl TonicServices {
    pub(crate) fn new(ready: &Ready) -> Self {
        let reflection = reflection::server().expect("the descriptors are those of committed files");
        let alpha = reflection::alpha_server().expect("the descriptors are those of committed files");
        Self {
            health: boxed(health::server(ready.clone())),
            reflection: boxed(reflection),
            alpha_reflection: boxed(alpha),
        }
    }
}

/// Handles one request to a service.
pub(crate) fn handle(service: GrpcService, exchange: Exchange, body: Body) -> BoxFuture<'static, Response> {
    if let Err((status, refusal)) = check_protocol(&exchange.head) {
        return Box::pin(future::ready(refuse_protocol(exchange, status, &refusal)));
    }
    let (server, ready) = (Arc::clone(&exchange.server), exchange.server.ready.clone());
    let services = &server.tonic_services;
    let (mut service, until_closing) = match service {
        GrpcService::A2a(service) => return Box::pin(call::handle(service, exchange, body)),
        GrpcService::Health => (services.health.clone(), false),
        GrpcService::Reflection => (services.reflection.clone(), true),
        GrpcService::ReflectionAlpha => (services.alpha_reflection.clone(), true),
    };
    let req = Request::from_parts(exchange.head, body);
    let req = if until_closing { reflection::until_closing(req, ready) } else { req };
    Box::pin(service.call(req).map(|Ok(response)| response))
}

/// The response to a request that is refused before its body is read: with this HTTP status, or as a call that fails.
pub(crate) fn refuse(
    exchange: Exchange,
    service: GrpcService,
    status: Option<StatusCode>,
    error: Error,
) -> Response {
    let is_about_head = status.is_some_and(|status| status != StatusCode::NOT_FOUND);
    if !is_about_head && let Err((status, refusal)) = check_protocol(&exchange.head) {
        return refuse_protocol(exchange, status, &refusal);
    }
    let (response, dialect) = match (service, status) {
        (_, Some(StatusCode::NOT_FOUND)) => {
            let refusal = unknown_service(exchange.head.uri.path());
            (error_response(&exchange, StatusCode::OK, &refusal), Dialect::V1)
        }
        (GrpcService::A2a(service), None) => (call::refuse(&exchange, service, error), service.dialect()),
        (_, status) => {
            (error_response(&exchange, status.unwrap_or(StatusCode::OK), &error.into()), Dialect::V1)
        }
    };
    exchange.log_entry.finish(dialect);
    response
}

/// The response to a request that is not a call of gRPC.
fn refuse_protocol(mut exchange: Exchange, status: StatusCode, refusal: &Refusal) -> Response {
    exchange.log_entry.set_error(&refusal.error);
    let response = error_response(&exchange, status, refusal);
    exchange.log_entry.finish(exchange.dialect.unwrap_or(Dialect::V1));
    response
}

/// The error response to a request that does not reach a service.
fn error_response(exchange: &Exchange, status: StatusCode, refusal: &Refusal) -> Response {
    let status_writer = StatusWriter { service: Service::V1, errors: exchange.server.errors };
    let mut response = status_writer.error_response(refusal, exchange.now());
    *response.status_mut() = status;
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
    }
    response
}

/// Checks HTTP version, method and content type. The error carries an HTTP status too, for clients that read only that.
fn check_protocol(head: &Parts) -> Result<(), (StatusCode, Refusal)> {
    let refuse = |status, kind, text: String| {
        Err((status, Refusal { error: Error::new(kind, text), code: Some(GrpcStatus::Unimplemented) }))
    };
    if head.version < Version::HTTP_2 {
        let text = "gRPC requires HTTP/2 with prior knowledge; over HTTP/1.1 use JSON-RPC or HTTP+JSON";
        return refuse(StatusCode::HTTP_VERSION_NOT_SUPPORTED, ErrorKind::InvalidRequest, text.into());
    }
    if head.method != Method::POST {
        let text = format!("method {} is not allowed; gRPC calls use POST", head.method);
        return refuse(StatusCode::METHOD_NOT_ALLOWED, ErrorKind::MethodNotFound, text);
    }
    if !is_proto(&head.headers) {
        let kind = head.headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
        let shown = excerpt(&String::from_utf8_lossy(kind));
        let text = format!("Content-Type {shown:?} is not supported; send application/grpc");
        return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, ErrorKind::UnsupportedMediaType, text);
    }
    Ok(())
}

fn unknown_service(path: &str) -> Refusal {
    let path = path.strip_prefix('/').unwrap_or(path);
    let name = path.split('/').next().unwrap_or_default();
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
