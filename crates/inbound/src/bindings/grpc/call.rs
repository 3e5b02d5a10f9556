//! Handles one call of a method of the A2A services.

use std::{pin::pin, sync::Arc};

use axum::{extract::Request, response::Response};
use engine::{CallResponse, Reservation};
use http::{HeaderMap, HeaderName, HeaderValue, request::Parts};
use protocol::{
    Error, ErrorKind, Operation, OperationKind,
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
    access_log::CallEntry,
    admit::{self, extensions},
    negotiate::Negotiation,
    perform::perform,
    reply_form, respond,
    server_state::{Endpoint, ServerState},
    version::{AcceptedVersions, Version},
};

/// Compression of the request's message.
const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
/// Compressions that this server accepts: none but `identity`.
const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// A method's name and its operation.
pub(super) type Method = (&'static str, OperationKind);

pub(super) fn find(service: Service, name: &str) -> Result<Method, Error> {
    service.methods().iter().copied().find(|method| method.0 == name).ok_or_else(|| {
        let known: Vec<&str> = service.methods().iter().map(|method| method.0).collect();
        let name: String = name.chars().take(128).collect();
        let text = format!("{} has no method {name:?}; it has {}", service.name(), known.join(", "));
        Error::new(ErrorKind::MethodNotFound, text)
    })
}

pub(super) async fn handle(
    server_state: &ServerState,
    service: Service,
    method: Result<Method, Error>,
    req: Request,
) -> Response {
    let request_id = fastrand::u64(..);
    let (head, incoming) = req.into_parts();
    let memory = server_state.engine.memory().begin();
    let version = Version::of(&head.headers, &head.uri);
    let catalog = server_state.catalog();
    let root = server_state.root_endpoint(&catalog);
    // The service name identifies the protocol generation, and generated clients send no version header.
    let accepted_versions = AcceptedVersions { lenient_version: true, ..server_state.accepted_versions };
    let negotiation = Negotiation { version: &version, profile: root.profile(), accepted_versions };
    let mut status_writer = StatusWriter { service, errors: server_state.errors };
    let mut log_entry = CallEntry::begin(&root, request_id);
    let decoding = async {
        let deadline = Deadline::of(&head.headers)?;
        let (name, kind) = method?;
        log_entry.set_method(name);
        negotiation.check_path(service.dialect()).map_err(|refused| {
            status_writer.service = Service::of(refused.dialect).unwrap_or(service);
            refused.error
        })?;
        check_encoding(&head.headers)?;
        let reading = async {
            let bytes = message::read(incoming, server_state.max_body_bytes, &memory).await?;
            let operation = service.decode_operation(kind, &bytes);
            let tenant = match &operation {
                Ok(operation) => operation.tenant(),
                Err(_) => service.tenant(kind, &bytes),
            };
            let endpoint = match address::agent(&head.headers, tenant)? {
                Some(agent) => server_state.agent_endpoint(&catalog, agent),
                None => server_state.root_endpoint(&catalog),
            };
            Ok::<_, Refusal>(DecodedCall { kind, operation, endpoint, deadline })
        };
        deadline.within(pin!(reading)).await
    };
    match decoding.await {
        Ok(decoded) => {
            answer(server_state, status_writer, &head, decoded, log_entry, request_id, memory).await
        }
        Err(refusal) => {
            log_entry.set_error(&refusal.error);
            log_entry.finish(status_writer.service.dialect());
            set_headers(
                status_writer.error_response(&refusal, server_state.engine.clock().now()),
                status_writer.service,
                &root,
            )
        }
    }
}

/// A call whose message has been read.
struct DecodedCall<'a> {
    kind: OperationKind,
    /// A decoding error is reported only after the access check.
    operation: Result<Operation, Error>,
    endpoint: Endpoint<'a>,
    deadline: Deadline,
}

async fn answer(
    server_state: &ServerState,
    status_writer: StatusWriter,
    head: &Parts,
    decoded: DecodedCall<'_>,
    mut log_entry: CallEntry,
    request_id: u64,
    memory: Arc<Reservation>,
) -> Response {
    let DecodedCall { kind, operation, endpoint, deadline } = decoded;
    let dialect = status_writer.service.dialect();
    log_entry.set_agent(&endpoint);
    if let Ok(operation) = &operation {
        log_entry.set_operation(operation, dialect);
    }
    let execution = async {
        endpoint.check_access()?;
        admit::check_operation(&endpoint, kind)?;
        let operation = admit::check_request(&endpoint, dialect, &head.headers, operation?)?;
        perform(server_state, &endpoint, dialect, head, operation, request_id, &memory).await
    };
    let result = deadline.within(pin!(execution)).await;
    log_entry.set_result(&result);
    let response = match result {
        Ok(answer) => {
            let context = ReplyContext {
                server_state,
                endpoint: &endpoint,
                status_writer,
                deadline,
                request_id,
                memory,
            };
            let response = context.answer(answer, log_entry);
            extensions::set_activated_header(
                response,
                &endpoint.settings().extensions,
                dialect,
                &head.headers,
            )
        }
        Err(error) => {
            log_entry.finish(dialect);
            status_writer.error_response(&error.into(), server_state.engine.clock().now())
        }
    };
    set_headers(response, status_writer.service, &endpoint)
}

/// What encoding a reply needs besides the reply.
struct ReplyContext<'a> {
    server_state: &'a ServerState,
    endpoint: &'a Endpoint<'a>,
    status_writer: StatusWriter,
    deadline: Deadline,
    request_id: u64,
    memory: Arc<Reservation>,
}

impl ReplyContext<'_> {
    fn answer(self, answer: CallResponse, mut log_entry: CallEntry) -> Response {
        let (status_writer, clock) = (self.status_writer, self.server_state.engine.clock());
        let (max_bytes, dialect) = (self.server_state.max_body_bytes, status_writer.service.dialect());
        match answer {
            CallResponse::Reply(reply) => {
                let written = reply_form::apply(self.endpoint.profile(), dialect, reply)
                    .and_then(|reply| reply::respond(status_writer.service, &reply, max_bytes, self.memory));
                let response = written.unwrap_or_else(|error| {
                    log_entry.set_error(&error);
                    status_writer.error_response(&error.into(), clock.now())
                });
                log_entry.finish(dialect);
                response
            }
            CallResponse::Stream(stream) => {
                let (deadline, request_id) = (self.deadline, self.request_id);
                let (log_entry, clock) = (log_entry.into_stream(dialect), clock.clone());
                let memory = self.server_state.engine.memory().clone();
                let snapshot_memory = Some(self.memory);
                let context = StreamContext {
                    status_writer,
                    deadline,
                    max_bytes,
                    request_id,
                    clock,
                    log_entry,
                    memory,
                    snapshot_memory,
                };
                stream::respond(stream, context)
            }
            CallResponse::Replayed(answer) => respond::replayed(self.answer(*answer, log_entry)),
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

/// Adds the headers that name the response's dialect and profile and the accepted compression.
fn set_headers(mut response: Response, service: Service, endpoint: &Endpoint<'_>) -> Response {
    let headers = response.headers_mut();
    let value = format!("{};profile={}", service.dialect().label(), endpoint.profile().name);
    if let Ok(value) = HeaderValue::try_from(value) {
        headers.insert("a2ad-dialect", value);
    }
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    response
}
