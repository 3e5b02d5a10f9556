//! The way of a decoded request to the engine, the same for every binding.

use std::{sync::Arc, time::Duration};

use engine::{Call, CallResponse, Origin, Resume, StreamEnd, TaskPolicy};
use protocol::{Dialect, Error, Operation, OperationKind, Reply, Violation};

use crate::{
    access::{audit, open_streams::OpenStream},
    request::exchange::Exchange,
    response::{reply_additions::ReplyAdditions, respond},
    routes::Handler,
    service::check_call,
};

/// Estimated memory of a call besides its body and its response.
const CALL_BYTES: u64 = 4 << 10;

/// A request whose body has been decoded.
pub(crate) struct DecodedRequest {
    pub(crate) kind: OperationKind,
    pub(crate) dialect: Dialect,
    /// An error is reported after those about the caller and the agent's capabilities.
    pub(crate) operation: Result<Operation, Error>,
    /// How long a send waits for the outcome at most, if the binding lets its callers choose that.
    pub(crate) wait: Option<Duration>,
    /// After how long a send is answered as pending, if the binding can keep its caller waiting.
    pub(crate) pending_after: Option<Duration>,
    /// How messages are assigned to tasks, if the binding decides that instead of the profile.
    pub(crate) task_policy: Option<TaskPolicy>,
    /// The idempotency key in the body, where the profile has one there.
    pub(crate) idempotency_key: Option<String>,
}

impl DecodedRequest {
    pub(crate) fn new(kind: OperationKind, dialect: Dialect, operation: Result<Operation, Error>) -> Self {
        Self {
            kind,
            dialect,
            operation,
            wait: None,
            pending_after: None,
            task_policy: None,
            idempotency_key: None,
        }
    }

    /// The same for a binding whose responses can begin with spaces, if those of the agent do.
    pub(crate) fn with_keep_alive(mut self, exchange: &Exchange) -> Self {
        self.pending_after = exchange.endpoint.settings().keep_alive.then_some(exchange.server.keep_alive);
        self
    }

    /// Executes a request, unless it could not be decoded: makes the checks that need the body, and calls the engine. Returns
    /// the result, or the error for the caller, and records it in the access log.
    pub(crate) async fn run(
        request: Result<Self, Error>,
        exchange: &mut Exchange,
    ) -> Result<CallResponse, Error> {
        let Self { kind, dialect, operation, wait, pending_after, task_policy, idempotency_key } =
            request.inspect_err(|error| exchange.log_entry.set_error(error))?;
        let origin = origin(exchange.row.handler, dialect);
        if let Ok(operation) = &operation {
            exchange.log_entry.set_operation(operation, origin);
        }
        let result = match check_call(exchange, kind, dialect, operation) {
            Err(error) => Err(error),
            // Depends on the address of the request, not on a task.
            Ok(Operation::GetExtendedCard(_)) => {
                exchange.card().map(|card| CallResponse::Reply(Reply::Card(Box::new(card.extended()))))
            }
            Ok(operation) => {
                let additions = ReplyAdditions::of(exchange.endpoint.profile(), dialect, &operation);
                let options = CallOptions { origin, wait, pending_after, task_policy, idempotency_key };
                let mut answer = call_engine(exchange, options, operation).await;
                if let (Ok(answer), Some(additions)) = (&mut answer, &additions) {
                    additions.add_to(answer);
                }
                // For a reply that is still to come.
                exchange.reply_additions = additions.map(Box::new);
                answer
            }
        };
        exchange.log_entry.set_result(&result);
        if let Err(error) = &result {
            audit::refused_call(exchange, error.kind);
        }
        result
    }
}

/// What a call of the engine needs beside the operation, as far as the body or the binding decides it.
struct CallOptions {
    origin: Origin,
    wait: Option<Duration>,
    pending_after: Option<Duration>,
    task_policy: Option<TaskPolicy>,
    idempotency_key: Option<String>,
}

/// Calls the engine. What it needs beside the operation is counted and reserved here, after all checks.
async fn call_engine(
    exchange: &Exchange,
    options: CallOptions,
    operation: Operation,
) -> Result<CallResponse, Error> {
    let Exchange { server, sender, endpoint, .. } = exchange;
    let is_stream = matches!(operation, Operation::SendStreamingMessage(_) | Operation::SubscribeToTask(_));
    let stream = if is_stream { Some(exchange.open_stream()?) } else { None };
    let answered = {
        // Boxed here: otherwise each of the futures around it has room for it, and moving one of them copies all.
        let mut call = Box::pin(server.engine.call(call(exchange, options)?, operation));
        tokio::select! {
            // Most calls end without a look at the other branch.
            biased;
            answered = &mut call => answered,
            error = sender.revoked(server, endpoint) => return Err(error),
        }
    };
    let answer = answered.map_err(|error| respond::to_caller_error(error, exchange.request_id))?;
    Ok(match stream {
        Some(stream) => answer.ending_with(stream_end(exchange, stream)),
        None => answer,
    })
}

/// The call of the engine, with the idempotency key and the last event id from the headers.
fn call(exchange: &Exchange, options: CallOptions) -> Result<Call, Error> {
    let CallOptions { origin, wait, pending_after, task_policy, idempotency_key: key_in_body } = options;
    let Exchange { server, sender, endpoint, memory, .. } = exchange;
    memory.reserve(CALL_BYTES)?;
    // Not looked up again by the engine: another catalog may be in use by now.
    let agent = exchange.registered()?;
    let text =
        |name: &str| exchange.head.headers.get(name).map(|value| std::str::from_utf8(value.as_bytes()));
    let resume = text("last-event-id").map(|seen| {
        let seen = seen.ok().and_then(engine::cursor::last_event_id);
        seen.map_or(Resume::Unknown, Resume::After)
    });
    // A lossy conversion could turn two different keys into the same one.
    let idempotency_key = text("idempotency-key").transpose().map_err(|_| {
        Error::invalid_params(Violation::new("Idempotency-Key", "expected text in UTF-8, 1 to 255 bytes"))
    })?;
    if let (Some(in_header), Some(in_body)) = (idempotency_key, &key_in_body)
        && in_header != in_body
    {
        let problem = "expected the value of the header Idempotency-Key, or only one of the two";
        return Err(Error::invalid_params(Violation::new("idempotencyKey", problem)));
    }
    Ok(Call {
        idempotency_key: key_in_body.or_else(|| idempotency_key.map(str::to_owned)),
        resume,
        origin,
        wait,
        pending_after,
        task_policy: task_policy.unwrap_or(endpoint.profile().task_policy),
        memory: Some(Arc::clone(memory)),
        caps: sender.caps(server),
        agent: Some(Arc::clone(agent)),
        style: endpoint.profile().style,
        trace: exchange.trace.clone(),
        scope: sender.scope(endpoint),
    })
}

/// Ends a stream, and its count, when its caller may not have it any more.
fn stream_end(exchange: &Exchange, counted: OpenStream) -> impl Future<Output = StreamEnd> + Send + use<> {
    let watch = exchange.sender.watch(&exchange.server, &exchange.endpoint);
    // A call of a tool is a call that waits, although it follows a stream.
    let is_call = exchange.row.handler == Handler::Mcp;
    async move {
        let _counted = counted;
        if is_call { StreamEnd::Revoked(watch.revoked().await) } else { watch.ended().await }
    }
}

/// The origin of a call, which depends on the route.
fn origin(handler: Handler, dialect: Dialect) -> Origin {
    match handler {
        Handler::Run => Origin::Run,
        Handler::Mcp => Origin::Mcp,
        Handler::JsonRpc(_)
        | Handler::Rest
        | Handler::Text
        | Handler::Grpc(_)
        | Handler::Card(_)
        | Handler::AgentList
        | Handler::PublishedKeys
        | Handler::Operators(_)
        | Handler::ExtendedCard
        | Handler::HomePage
        | Handler::Liveness
        | Handler::Readiness
        | Handler::Metrics
        | Handler::OpenApi
        | Handler::ProcessTask
        | Handler::Nothing => Origin::A2a(dialect),
    }
}
