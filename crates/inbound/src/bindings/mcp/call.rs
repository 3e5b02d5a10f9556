//! One call of a tool: the task it starts or continues, followed to the end of its turn.
//!
//! The message is sent as a stream, because its first frame names the task: a call that is cancelled cancels that. The
//! capabilities on an agent's card are about A2A clients and do not limit calls here.

use engine::{CallResponse, Frame, StreamItem, TaskStream, log::Kind};
use protocol::{
    CancelTask, Dialect, Error, ErrorKind, Event, GetTask, Operation, OperationKind, Part, Reply,
    SendMessage, Task, TaskId, TaskState,
};
use tokio_util::sync::CancellationToken;

use crate::{
    bindings::skill_call,
    request::{decoded_request::DecodedRequest, exchange::Exchange},
    response::respond,
};

/// The end of a turn.
pub(super) struct Ended {
    /// `None` if the agent has answered with a message only.
    pub(super) task: Option<TaskId>,
    pub(super) outcome: Outcome,
}

/// How a turn has ended.
pub(super) enum Outcome {
    Done(Vec<Part>),
    /// Failed, rejected or canceled; the parts have the reason.
    Failed(Vec<Part>),
    /// The agent asks for input.
    Asks(Vec<Part>),
    /// The agent asks for credentials, which no form may ask for.
    AsksForCredentials(Vec<Part>),
}

/// Receives the progress messages of an agent.
pub(super) trait Progress: Send {
    /// The text of a working status; it may be empty.
    fn working(&mut self, text: String) -> impl Future<Output = ()> + Send;
}

/// Sends a message and waits for the end of the turn. Cancellation cancels the task.
pub(super) async fn send(
    exchange: &mut Exchange,
    request: SendMessage,
    cancellation: &CancellationToken,
    progress: &mut impl Progress,
) -> Result<Ended, Error> {
    let request = SendMessage { history_length: Some(0), ..request };
    let response = run(exchange, Operation::SendStreamingMessage(request)).await;
    // It identifies this message only; the answer to a question is another one.
    exchange.head.headers.remove("idempotency-key");
    let mut response = response?;
    while let CallResponse::Noted(_, replayed) = response {
        response = *replayed;
    }
    match response {
        CallResponse::Stream(stream) => follow(exchange, stream, cancellation, progress).await,
        CallResponse::Reply(Reply::SentTask(task)) => Ok(ended(&task)),
        CallResponse::Reply(_) | CallResponse::Pending(_) | CallResponse::Noted(..) => {
            Err(Error::new(ErrorKind::Internal, "a send was answered with something else"))
        }
    }
}

/// Cancels a task; one that has ended meanwhile stays as it is.
pub(super) async fn cancel(exchange: &mut Exchange, task: TaskId) {
    if let Err(error) = run(exchange, Operation::CancelTask(CancelTask::from(task))).await {
        tracing::debug!(reason = error.message, "the task of a cancelled call was not canceled");
    }
}

async fn run(exchange: &mut Exchange, operation: Operation) -> Result<CallResponse, Error> {
    let request = DecodedRequest::new(OperationKind::SendMessage, Dialect::V1, Ok(operation));
    DecodedRequest::run(Ok(request), exchange).await
}

async fn follow(
    exchange: &mut Exchange,
    mut stream: TaskStream,
    cancellation: &CancellationToken,
    progress: &mut impl Progress,
) -> Result<Ended, Error> {
    let request_id = exchange.request_id;
    let to_caller_error = |error: engine::Error| respond::to_caller_error(error, request_id);
    let mut task: Option<TaskId> = None;
    loop {
        // A task that is not known yet is cancelled when its first frame arrives.
        let item = tokio::select! {
            biased;
            () = cancellation.cancelled(), if task.is_some() => None,
            item = stream.next() => Some(item.map_err(to_caller_error)?),
        };
        let frames = match (item, &task) {
            // The connection ends with the server; the task goes on after the restart.
            (None, Some(_)) if !exchange.server.ready.is_ready() => return Err(draining(task.as_ref())),
            (None, Some(id)) => {
                cancel(exchange, id.clone()).await;
                let outcome = Outcome::Failed(vec![Part::text("the call was cancelled")]);
                return Ok(Ended { task, outcome });
            }
            (Some(StreamItem::Frames(frames)), _) => frames,
            (Some(StreamItem::Draining), _) => return Err(draining(task.as_ref())),
            // Streams of calls do not expire.
            (Some(StreamItem::End | StreamItem::Expired) | None, _) => break,
        };
        for frame in frames {
            match frame {
                Frame::Snapshot { task: snapshot, .. } => task = Some(snapshot.id.clone()),
                Frame::Entry { entry, .. } => match entry.kind() {
                    Kind::Status(TaskState::Working) | Kind::Message => {
                        let event = entry.event().map_err(|error| to_caller_error(error.into()))?;
                        match event {
                            Event::Message(message) => {
                                let outcome = Outcome::Done(message.parts.clone());
                                return Ok(Ended { task: None, outcome });
                            }
                            Event::Status(update) => {
                                let message = update.status.message.as_ref();
                                progress
                                    .working(message.map(|message| message.text()).unwrap_or_default())
                                    .await;
                            }
                            Event::Task(_) | Event::Artifact(_) => {}
                        }
                    }
                    Kind::Status(_) | Kind::Artifact => {}
                },
            }
        }
    }
    match task {
        Some(id) => read(exchange, &id).await,
        None => Err(Error::new(ErrorKind::Internal, "a stream ended before its first frame")),
    }
}

/// How the last turn of a task has ended.
pub(super) async fn read(exchange: &mut Exchange, task: &TaskId) -> Result<Ended, Error> {
    let get = GetTask { history_length: Some(0), ..GetTask::from(task.clone()) };
    match run(exchange, Operation::GetTask(get)).await? {
        CallResponse::Reply(Reply::Task(task)) => Ok(ended(&task)),
        _ => Err(Error::new(ErrorKind::Internal, "the task of a call cannot be read")),
    }
}

/// The server shuts down during a call.
pub(super) fn draining(task: Option<&TaskId>) -> Error {
    let text = match task {
        Some(task) => format!("the server is shutting down; task {task} continues, get it later"),
        None => "the server is shutting down; try again in a moment".to_owned(),
    };
    Error::new(ErrorKind::Unavailable, text)
}

fn ended(task: &Task) -> Ended {
    let parts: Vec<Part> = skill_call::result(task).into_iter().cloned().collect();
    let or_text = |text: &str| if parts.is_empty() { vec![Part::text(text)] } else { parts.clone() };
    let outcome = match task.status.state {
        TaskState::Completed => Outcome::Done(parts),
        TaskState::InputRequired => Outcome::Asks(or_text("the agent asks for input")),
        TaskState::AuthRequired => Outcome::AsksForCredentials(or_text("the agent asks for credentials")),
        TaskState::Failed => Outcome::Failed(or_text("the task failed")),
        TaskState::Rejected => Outcome::Failed(or_text("the task was rejected")),
        TaskState::Canceled => Outcome::Failed(or_text("the task was canceled")),
        TaskState::Unspecified | TaskState::Submitted | TaskState::Working => {
            Outcome::Failed(vec![Part::text(format!("task {} has not ended", task.id))])
        }
    };
    Ended { task: Some(task.id.clone()), outcome }
}
