//! One call of a method of the protocol's services.

use std::sync::Arc;

use axum::{extract::Request, response::Response};
use engine::{Answer, Reservation};
use http::{HeaderMap, HeaderName, HeaderValue, request::Parts};
use protocol::{
    Error, ErrorKind, Operation, OperationKind,
    error::{Grpc, in_short},
    grpc::Service,
};

use super::{
    address,
    deadline::Deadline,
    message, reply,
    status::{Refusal, StatusWriter},
    stream::{self, Follow},
};
use crate::{
    admit::{self, extensions},
    choose::Asked,
    perform::perform,
    project, respond,
    server_state::{Endpoint, ServerState},
    trace::Line,
    version::{AcceptedVersions, Version},
};

/// How a message is packed.
const ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
/// Which ways of that are taken.
const ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");

/// A method of a service, by its name and what it does.
pub(super) type Method = (&'static str, OperationKind);

/// The method of this name.
pub(super) fn find(service: Service, name: &str) -> Result<Method, Error> {
    service.methods().iter().copied().find(|method| method.0 == name).ok_or_else(|| {
        let known: Vec<&str> = service.methods().iter().map(|method| method.0).collect();
        let name: String = name.chars().take(128).collect();
        let text = format!("{} has no method {name:?}; it has {}", service.name(), known.join(", "));
        Error::new(ErrorKind::MethodNotFound, text)
    })
}

/// Answers one call.
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
    let root = server_state.root();
    // The name of a service says its generation, and generated clients say nothing beside it.
    let accepted_versions = AcceptedVersions { lenient_version: true, ..server_state.accepted_versions };
    let accepted_versions = Asked { version: &version, profile: root.profile, accepted_versions };
    let mut status_writer = StatusWriter { service, errors: server_state.errors };
    let mut line = Line::begin(server_state.engine.agents(), root.agent, request_id);
    let asked = async {
        let deadline = Deadline::of(&head.headers)?;
        let (name, kind) = method?;
        line.called(name);
        accepted_versions.allows(service.dialect()).map_err(|refused| {
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
            let agent = address::agent(&head.headers, tenant)?;
            Ok::<_, Refusal>(Wanted { kind, operation, agent, deadline })
        };
        deadline.within(reading).await
    };
    match asked.await {
        Ok(wanted) => answer(server_state, status_writer, &head, wanted, line, request_id, memory).await,
        Err(refusal) => {
            line.refused(&refusal.error);
            line.end(status_writer.service.dialect());
            label(
                status_writer.refuse(&refusal, server_state.engine.clock().now()),
                status_writer.service,
                &root,
            )
        }
    }
}

/// What was asked for, and of whom.
struct Wanted {
    kind: OperationKind,
    /// What is wrong with it is told to those who may ask.
    operation: Result<Operation, Error>,
    agent: Option<String>,
    deadline: Deadline,
}

async fn answer(
    server_state: &ServerState,
    status_writer: StatusWriter,
    head: &Parts,
    wanted: Wanted,
    mut line: Line,
    request_id: u64,
    memory: Arc<Reservation>,
) -> Response {
    let Wanted { kind, operation, agent, deadline } = wanted;
    let endpoint = agent.as_deref().map_or_else(|| server_state.root(), |agent| server_state.own(agent));
    let dialect = status_writer.service.dialect();
    line.to(server_state.engine.agents(), endpoint.agent);
    if let Ok(operation) = &operation {
        line.about(operation, dialect);
    }
    let work = async {
        endpoint.check()?;
        admit::operation(server_state, &endpoint, kind)?;
        let operation = admit::request(server_state, &endpoint, dialect, &head.headers, operation?)?;
        perform(server_state, &endpoint, dialect, head, operation, request_id, &memory).await
    };
    let answered = deadline.within(work).await;
    line.answered(&answered);
    let response = match answered {
        Ok(answer) => {
            let answering =
                Answering { server_state, endpoint: &endpoint, status_writer, deadline, request_id, memory };
            let response = answering.answer(answer, line);
            extensions::tell(response, &endpoint.settings.extensions, dialect, &head.headers)
        }
        Err(error) => {
            line.end(dialect);
            status_writer.refuse(&error.into(), server_state.engine.clock().now())
        }
    };
    label(response, status_writer.service, &endpoint)
}

/// What an answer depends on beside what was found.
struct Answering<'a> {
    server_state: &'a ServerState,
    endpoint: &'a Endpoint<'a>,
    status_writer: StatusWriter,
    deadline: Deadline,
    request_id: u64,
    memory: Arc<Reservation>,
}

impl Answering<'_> {
    fn answer(self, answer: Answer, mut line: Line) -> Response {
        let (status_writer, clock) = (self.status_writer, self.server_state.engine.clock());
        let (max_bytes, dialect) = (self.server_state.max_body_bytes, status_writer.service.dialect());
        match answer {
            Answer::Reply(reply) => {
                let written = project::reply(self.endpoint.profile, dialect, reply)
                    .and_then(|reply| reply::respond(status_writer.service, &reply, max_bytes, self.memory));
                let response = written.unwrap_or_else(|error| {
                    line.refused(&error);
                    status_writer.refuse(&error.into(), clock.now())
                });
                line.end(dialect);
                response
            }
            Answer::Stream(stream) => {
                let (deadline, request_id) = (self.deadline, self.request_id);
                let (line, clock) = (line.watch(dialect), clock.clone());
                let memory = self.server_state.engine.memory().clone();
                let first = Some(self.memory);
                let follow =
                    Follow { status_writer, deadline, max_bytes, request_id, clock, line, memory, first };
                stream::respond(stream, follow)
            }
            Answer::Replayed(answer) => respond::replayed(self.answer(*answer, line)),
        }
    }
}

/// Messages are taken as they are: nothing is unpacked here.
fn check_encoding(headers: &HeaderMap) -> Result<(), Refusal> {
    let Some(value) = headers.get(&ENCODING) else { return Ok(()) };
    if value.as_bytes().eq_ignore_ascii_case(b"identity") {
        return Ok(());
    }
    let coding = in_short(&String::from_utf8_lossy(value.as_bytes()));
    let text = format!("grpc-encoding {coding:?} is not served here; send messages as they are");
    let error = Error::new(ErrorKind::UnsupportedMediaType, text);
    // gRPC wants exactly this status, and to be told what is taken.
    Err(Refusal { error, code: Some(Grpc::Unimplemented) })
}

/// Says on an answer which dialect and style it is in, and that it may be answered by messages as they are only.
fn label(mut response: Response, service: Service, endpoint: &Endpoint<'_>) -> Response {
    let headers = response.headers_mut();
    let label = format!("{};profile={}", service.dialect().name(), endpoint.profile.name);
    if let Ok(label) = HeaderValue::try_from(label) {
        headers.insert("a2ad-dialect", label);
    }
    headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
    response
}
