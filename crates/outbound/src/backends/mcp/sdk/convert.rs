//! Between the types of the library and ours. Pure.

use std::{error::Error, io, time::Duration};

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use protocol::{Content, Json, Part};
use rmcp::{
    ServiceError,
    model::{
        CallToolResult, ContentBlock, ElicitRequestParams, ElicitResult, ElicitationAction, ErrorData,
        InputRequest, InputRequests, InputResponses, JsonObject, ProgressNotificationParam, ResourceContents,
        ServerResult, Task, TaskPayload,
    },
    transport::streamable_http_client::{AuthRequiredError, HttpStatusError, StreamableHttpError},
};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::{
    backend::{Failure, Reply, json_part},
    backends::mcp::{
        Annotations, Tool,
        messages::{
            Answer, CallError, InputRequired, Progress, Question, RemoteTask, Requests, Response, TaskUpdate,
        },
    },
    dial::DialError,
};

/// Maximum length of the text in a notice of progress, in characters.
const MAX_PROGRESS: usize = 4_000;

/// Some servers leave out the padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The tree of the library. Numbers beyond 64 bits lose digits in it.
#[expect(clippy::disallowed_types, reason = "the MCP library uses this type")]
type Tree = serde_json::Value;

const DEFAULT_POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum and minimum of what a server suggests.
const POLL_INTERVALS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(10));

pub(super) fn tool(tool: &rmcp::model::Tool) -> Result<Tool, CallError> {
    let hints = tool.annotations.clone().unwrap_or_default();
    Ok(Tool {
        name: tool.name.clone().into_owned(),
        title: tool.title.clone().or(hints.title),
        description: tool.description.clone().unwrap_or_default().into_owned(),
        input_schema: json(&tool.input_schema)?,
        output_schema: tool.output_schema.as_ref().map(json).transpose()?,
        annotations: Annotations {
            read_only: hints.read_only_hint,
            destructive: hints.destructive_hint,
            idempotent: hints.idempotent_hint,
            open_world: hints.open_world_hint,
        },
    })
}

pub(super) fn response(result: ServerResult) -> Result<Response, CallError> {
    match result {
        ServerResult::CallToolResult(result) => Ok(Response::Complete(tool_result(result)?)),
        ServerResult::InputRequiredResult(result) => {
            let requests = requests(result.input_requests.unwrap_or_default())?;
            if requests.is_empty() && result.request_state.is_none() {
                return Err(CallError::Invalid("it requires input, but does not say which".into()));
            }
            Ok(Response::InputRequired(InputRequired { requests, state: result.request_state }))
        }
        ServerResult::CreateTaskResult(created) => Ok(Response::Task(remote_task(created.task))),
        _ => Err(CallError::Invalid("it is not the result of a tool".into())),
    }
}

fn tool_result(result: CallToolResult) -> Result<Reply, CallError> {
    let mut parts = Vec::new();
    if let Some(structured) = &result.structured_content {
        parts.extend(json_part(&structured.to_string()));
    }
    for block in result.content {
        match &block {
            // Servers repeat the structured result as text for older clients.
            ContentBlock::Text(text) if is_same_json(&text.text, result.structured_content.as_ref()) => {}
            _ => parts.push(part(block)?),
        }
    }
    Ok(if result.is_error.unwrap_or_default() {
        Reply::Failed(Failure { parts, reason: None, retryable: false, cause: None })
    } else {
        Reply::Done(parts)
    })
}

fn is_same_json(text: &str, structured: Option<&Tree>) -> bool {
    structured.is_some_and(|structured| serde_json::from_str::<Tree>(text).is_ok_and(|it| it == *structured))
}

fn part(block: ContentBlock) -> Result<Part, CallError> {
    match block {
        ContentBlock::Text(text) => Ok(Part::text(text.text)),
        ContentBlock::Image(image) => file("image", &image.data, Some(image.mime_type), None),
        ContentBlock::Audio(audio) => file("audio", &audio.data, Some(audio.mime_type), None),
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
                Ok(Part { media_type: mime_type, filename: filename(&uri), ..Part::text(text) })
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                file("resource", &blob, mime_type, filename(&uri))
            }
            _ => Err(CallError::Invalid("it has a resource of an unknown kind".into())),
        },
        ContentBlock::ResourceLink(link) => Ok(Part {
            media_type: link.mime_type,
            filename: Some(link.name),
            ..Part::new(Content::Url(link.uri))
        }),
        _ => Err(CallError::Invalid("it has content of an unknown kind".into())),
    }
}

fn file(
    kind: &str,
    base64: &str,
    media_type: Option<String>,
    filename: Option<String>,
) -> Result<Part, CallError> {
    let bytes =
        BASE64.decode(base64).map_err(|_| CallError::Invalid(format!("its {kind} is not valid base64")))?;
    Ok(Part { media_type, filename, ..Part::new(Content::Raw(bytes)) })
}

/// The last segment of a URI.
fn filename(uri: &str) -> Option<String> {
    let path = uri.split(['?', '#']).next()?;
    let (_, name) = path.rsplit_once('/')?;
    (!name.is_empty()).then(|| name.to_owned())
}

pub(super) fn requests(requests: InputRequests) -> Result<Requests, CallError> {
    requests
        .into_iter()
        .map(|(key, request)| match request {
            InputRequest::Elicitation(request) => Ok((key, question(request.params)?)),
            _ => Ok((key, Question::Unsupported)),
        })
        .collect()
}

pub(super) fn question(params: ElicitRequestParams) -> Result<Question, CallError> {
    match params {
        ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } => {
            let schema = RawValue::from_string(json(&requested_schema)?.as_str().to_owned());
            Ok(Question::Form { message, schema: schema.map_err(|error| invalid(&error))? })
        }
        ElicitRequestParams::UrlElicitationParams { message, url, .. } => Ok(Question::Url { message, url }),
        _ => Ok(Question::Unsupported),
    }
}

pub(super) fn elicit_result(answer: Answer) -> ElicitResult {
    match answer {
        Answer::Accept(None) => ElicitResult::new(ElicitationAction::Accept),
        Answer::Accept(Some(content)) => match serde_json::from_str(content.as_str()) {
            Ok(content) => ElicitResult::new(ElicitationAction::Accept).with_content(content),
            // A number that a tree cannot hold.
            Err(_) => ElicitResult::new(ElicitationAction::Cancel),
        },
        Answer::Decline => ElicitResult::new(ElicitationAction::Decline),
        Answer::Cancel => ElicitResult::new(ElicitationAction::Cancel),
    }
}

pub(super) fn input_responses(answers: Vec<(String, Answer)>) -> Result<InputResponses, CallError> {
    let value = |answer| serde_json::to_value(elicit_result(answer)).map_err(|error| invalid(&error));
    answers.into_iter().map(|(key, answer)| Ok((key, value(answer)?))).collect()
}

pub(super) fn arguments(arguments: &Json) -> Result<JsonObject, CallError> {
    serde_json::from_str(arguments.as_str()).map_err(|_| CallError::NotAnObject)
}

/// Adds the message of a call to its arguments, which do not have that one: a client that sends it is refused.
pub(super) fn add_message(arguments: &mut JsonObject, name: &str, message: &[u8]) -> Result<(), CallError> {
    let message: Tree = serde_json::from_slice(message).map_err(|_| CallError::NotAnObject)?;
    match arguments.insert(name.to_owned(), message) {
        None => Ok(()),
        Some(_) => Err(CallError::MessageArgument(name.to_owned())),
    }
}

fn remote_task(task: Task) -> RemoteTask {
    RemoteTask { poll_interval: poll_interval(&task), id: task.task_id }
}

fn poll_interval(task: &Task) -> Duration {
    let (min, max) = POLL_INTERVALS;
    task.poll_interval_ms.map_or(DEFAULT_POLL_INTERVAL, Duration::from_millis).clamp(min, max)
}

pub(super) fn task_update(task: Task, payload: TaskPayload) -> Result<TaskUpdate, CallError> {
    Ok(match payload {
        TaskPayload::Working => {
            TaskUpdate::Working { poll_interval: poll_interval(&task), message: task.status_message }
        }
        TaskPayload::InputRequired { input_requests } => TaskUpdate::Asks(requests(input_requests)?),
        TaskPayload::Completed { result } => {
            let result: CallToolResult =
                serde_json::from_value(result.into()).map_err(|error| invalid(&error))?;
            TaskUpdate::Ended(tool_result(result))
        }
        TaskPayload::Failed { error } => {
            let error: ErrorData = serde_json::from_value(error.into()).map_err(|error| invalid(&error))?;
            TaskUpdate::Ended(Err(server_error(error)))
        }
        TaskPayload::Cancelled => TaskUpdate::Cancelled,
        _ => return Err(CallError::Invalid("its task has an unknown state".into())),
    })
}

pub(super) fn progress(params: ProgressNotificationParam) -> Progress {
    let ProgressNotificationParam { progress, total, message, .. } = params;
    Progress { progress, total, message: message.map(|text| text.chars().take(MAX_PROGRESS).collect()) }
}

pub(super) fn call_error(error: ServiceError) -> CallError {
    match error {
        ServiceError::McpError(error) => server_error(error),
        ServiceError::TransportSend(error) => transport_error(error.error.as_ref()),
        ServiceError::UnexpectedResponse => CallError::Invalid("it is not the result of a tool".into()),
        _ => CallError::Closed,
    }
}

fn server_error(error: ErrorData) -> CallError {
    let data = error.data.and_then(|data| json(&data).ok());
    CallError::Server { code: error.code.0, message: error.message.into_owned(), data }
}

/// The cause is what the transport has found: credentials are missing, or what came is no answer, or nothing was sent.
fn transport_error(error: &(dyn Error + 'static)) -> CallError {
    let mut cause = Some(error);
    while let Some(current) = cause {
        if let Some(AuthRequiredError { www_authenticate_header, .. }) = current.downcast_ref() {
            return CallError::Auth { challenge: www_authenticate_header.clone() };
        }
        if let Some(HttpStatusError { status, .. }) = current.downcast_ref() {
            return CallError::Http { status: *status };
        }
        if let Some(DialError::Unreachable(_)) = current.downcast_ref() {
            return CallError::NotSent;
        }
        // A pipe that nobody can read takes no part of a message.
        if current.downcast_ref().is_some_and(|error: &io::Error| error.kind() == io::ErrorKind::BrokenPipe) {
            return CallError::NotSent;
        }
        match current.downcast_ref() {
            Some(StreamableHttpError::<DialError>::UnexpectedServerResponse(problem)) => {
                return CallError::Invalid(problem.clone().into_owned());
            }
            Some(StreamableHttpError::<DialError>::UnexpectedContentType(_)) => {
                return CallError::Invalid("it has an unexpected content type".into());
            }
            _ => cause = current.source(),
        }
    }
    CallError::Closed
}

fn json<T: Serialize + ?Sized>(value: &T) -> Result<Json, CallError> {
    let text = serde_json::to_string(value).map_err(|error| invalid(&error))?;
    Json::parse(&text).map_err(|problem| CallError::Invalid(format!("expected {problem}")))
}

fn invalid(error: &serde_json::Error) -> CallError {
    CallError::Invalid(error.to_string())
}
