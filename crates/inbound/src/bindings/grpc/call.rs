//! Handles one call of a method of the A2A services.

use std::{pin::pin, sync::Arc};

use axum::{body::Body, response::Response};
use engine::CallResponse;
use http::{HeaderMap, HeaderName, HeaderValue};
use protocol::{
    Error, ErrorKind,
    error::{GrpcStatus, excerpt},
    grpc::Service,
};

use super::{
    address,
    deadline::Deadline,
    message, reply,
    status::{Refusal, StatusWriter},
    stream::{self, StreamContext},
};
use crate::{
    admit::extensions,
    request::{
        access_log::CallEntry, decoded_request::DecodedRequest, exchange::Exchange, negotiate::Negotiation,
        version::AcceptedVersions,
    },
    response::{reply_form, respond},
};

/// Compression of the request's message.
const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
/// Compressions that this server accepts: none but `identity`.
const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// Handles one request.
pub(super) async fn handle(service: Service, mut exchange: Exchange, body: Body) -> Response {
    let writer = StatusWriter { service, errors: exchange.server.errors };
    let (deadline, request) = match decode(&mut exchange, service, body).await {
        Ok(decoded) => decoded,
        Err(UndecodableRequest { service, refusal }) => {
            exchange.log_entry.set_error(&refusal.error);
            let response = StatusWriter { service, ..writer }.error_response(&refusal, exchange.now());
            let response = set_refusal_headers(response, service, &exchange);
            exchange.log_entry.finish(service.dialect());
            return response;
        }
    };
    let result = {
        let call = pin!(DecodedRequest::run(Ok(request), &mut exchange));
        deadline.within(call).await
    };
    match result {
        Ok(answer) => respond(exchange, writer, deadline, answer),
        Err(error) => {
            // The deadline may have passed before the call had a result.
            exchange.log_entry.set_error(&error);
            let mut response = writer.error_response(&error.into(), exchange.now());
            respond::set_dialect_header(&mut response, service.dialect(), exchange.endpoint.profile());
            exchange.log_entry.finish(service.dialect());
            response
        }
    }
}

/// A request that cannot be decoded, and the service in whose form to report it.
struct UndecodableRequest {
    service: Service,
    refusal: Refusal,
}

/// Reads and decodes a request, and addresses the exchange to the agent that it names.
async fn decode(
    exchange: &mut Exchange,
    service: Service,
    body: Body,
) -> Result<(Deadline, DecodedRequest), UndecodableRequest> {
    let undecodable = |refusal: Refusal| UndecodableRequest { service, refusal };
    let deadline = Deadline::of(&exchange.head.headers).map_err(|error| undecodable(error.into()))?;
    let kind = exchange.operation.ok_or_else(|| undecodable(unknown_method(service, exchange.rest())))?;
    if let Some(method) = service.method(kind) {
        exchange.log_entry.set_method(method);
    }
    let version = exchange.version();
    // The service name identifies the protocol version, and generated clients send no version header.
    let accepted_versions = AcceptedVersions { lenient_version: true, ..exchange.server.accepted_versions };
    let negotiation = Negotiation { accepted_versions, ..exchange.negotiation(&version) };
    negotiation.check_path(service.dialect()).map_err(|refused| UndecodableRequest {
        service: Service::of(refused.dialect).unwrap_or(service),
        refusal: refused.error.into(),
    })?;
    check_encoding(&exchange.head.headers).map_err(undecodable)?;
    let reading = message::read(body, exchange.max_body_bytes(), &exchange.memory);
    let bytes = deadline.within(pin!(reading)).await.map_err(undecodable)?;
    let operation = service.decode_operation(kind, &bytes);
    let tenant = match &operation {
        Ok(operation) => operation.tenant(),
        Err(_) => service.tenant(kind, &bytes),
    };
    let agent = address::agent(&exchange.endpoint.tenant, &exchange.head.headers, tenant)
        .map_err(|error| undecodable(error.into()))?;
    if let Some(agent) = agent {
        exchange.address(&agent);
    }
    Ok((deadline, DecodedRequest::new(kind, service.dialect(), operation)))
}

fn unknown_method(service: Service, name: &str) -> Refusal {
    let known: Vec<&str> = service.methods().iter().map(|method| method.0).collect();
    let name: String = name.chars().take(128).collect();
    let text = format!("{} has no method {name:?}; it has {}", service.name(), known.join(", "));
    Error::new(ErrorKind::MethodNotFound, text).into()
}

/// The response to a call that is refused before its message is read.
pub(super) fn refuse(exchange: &Exchange, service: Service, error: Error) -> Response {
    let writer = StatusWriter { service, errors: exchange.server.errors };
    set_refusal_headers(writer.error_response(&error.into(), exchange.now()), service, exchange)
}

fn respond(
    mut exchange: Exchange,
    writer: StatusWriter,
    deadline: Deadline,
    answer: CallResponse,
) -> Response {
    let dialect = writer.service.dialect();
    let response = encode(&mut exchange, writer, deadline, answer);
    let extensions = &exchange.endpoint.settings().extensions;
    let mut response =
        extensions::set_activated_header(response, extensions, dialect, &exchange.head.headers);
    respond::set_dialect_header(&mut response, dialect, exchange.endpoint.profile());
    exchange.log_entry.finish(dialect);
    response
}

fn encode(
    exchange: &mut Exchange,
    writer: StatusWriter,
    deadline: Deadline,
    answer: CallResponse,
) -> Response {
    let (service, max_bytes) = (writer.service, exchange.max_body_bytes());
    match answer {
        CallResponse::Reply(reply) => {
            let memory = Arc::clone(&exchange.memory);
            let written = reply_form::apply(exchange.endpoint.profile(), service.dialect(), reply)
                .and_then(|reply| reply::respond(service, &reply, max_bytes, memory));
            written.unwrap_or_else(|error| {
                exchange.log_entry.set_error(&error);
                writer.error_response(&error.into(), exchange.now())
            })
        }
        CallResponse::Stream(stream) => {
            let log_entry = std::mem::replace(&mut exchange.log_entry, CallEntry::off());
            let context = StreamContext {
                status_writer: writer,
                deadline,
                max_bytes,
                request_id: exchange.request_id,
                clock: exchange.server.engine.clock().clone(),
                log_entry: log_entry.into_stream(service.dialect().into()),
                memory: exchange.server.engine.memory().clone(),
                snapshot_memory: Some(Arc::clone(&exchange.memory)),
            };
            stream::respond(stream, context)
        }
        // Only where the response can begin with spaces.
        CallResponse::Pending(_) => {
            let error = Error::new(ErrorKind::Internal, "internal error: the call has no result");
            exchange.log_entry.set_error(&error);
            writer.error_response(&error.into(), exchange.now())
        }
        CallResponse::Noted(note, answer) => {
            respond::with_note(&note, encode(exchange, writer, deadline, *answer))
        }
    }
}

/// Rejects compressed messages: decompression is not supported.
fn check_encoding(headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(value) = headers.get(&ENCODING) else { return Ok(()) };
    if value.as_bytes().eq_ignore_ascii_case(b"identity") {
        return Ok(());
    }
    let coding = excerpt(&String::from_utf8_lossy(value.as_bytes()));
    let text = format!("grpc-encoding {coding:?} is not supported; send messages uncompressed");
    let error = Error::new(ErrorKind::UnsupportedMediaType, text);
    // The gRPC specification requires this status and the header `grpc-accept-encoding`.
    Err(Refusal { error, code: Some(GrpcStatus::Unimplemented) })
}

/// Adds to a call that is refused unread the headers that name the dialect and profile and the accepted compression.
fn set_refusal_headers(mut response: Response, service: Service, exchange: &Exchange) -> Response {
    respond::set_dialect_header(&mut response, service.dialect(), exchange.endpoint.profile());
    response.headers_mut().insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    response
}
