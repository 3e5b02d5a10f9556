//! The response to a POST: one message, a stream of them, or an error.

use std::{borrow::Cow, error::Error};

use bytes::Bytes;
use http::{
    Response, StatusCode,
    header::{CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER},
};
use http_body::Body;
use http_body_util::{BodyExt, Limited};
use rmcp::{
    model::{ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcError, RequestId, ServerJsonRpcMessage},
    transport::{
        common::http_header::{EVENT_STREAM_MIME_TYPE, HEADER_SESSION_ID, JSON_MIME_TYPE},
        streamable_http_client::{HttpStatusError, StreamableHttpError, StreamableHttpPostResponse},
    },
};

use super::{
    HttpError, MAX_MESSAGE,
    events::{self, Owner, Stream},
};

/// Maximum size of the body of an error that is read for its text, in bytes.
const MAX_ERROR_BODY: usize = 64 << 10;
/// What servers on the TypeScript SDK answer, with status 400, to a session that they do not know.
const SESSION_ERRORS: [i32; 2] = [-32000, -32001];

/// What a response to `message` means.
pub(super) async fn of_post<B>(
    message: &ClientJsonRpcMessage,
    has_session: bool,
    response: Response<B>,
) -> Result<StreamableHttpPostResponse, HttpError>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let owner = Owner::of(message);
    match response.status() {
        StatusCode::ACCEPTED | StatusCode::NO_CONTENT => Ok(StreamableHttpPostResponse::Accepted),
        StatusCode::NOT_FOUND if has_session => Err(StreamableHttpError::SessionExpired),
        status if status.is_success() => accepted(owner, response).await,
        _ => rejected(message, has_session, response).await,
    }
}

async fn accepted<B>(
    owner: Option<Owner>,
    response: Response<B>,
) -> Result<StreamableHttpPostResponse, HttpError>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let session =
        response.headers().get(HEADER_SESSION_ID).and_then(|id| id.to_str().ok()).map(str::to_owned);
    let Some(owner) = owner else {
        // Notifications and answers have no response; a body is read only to keep the connection.
        if response.headers().get(CONTENT_LENGTH).is_none_or(|length| length != "0") {
            let _ = read(response, MAX_ERROR_BODY).await;
        }
        return Ok(StreamableHttpPostResponse::Accepted);
    };
    match media_type(&response) {
        EVENT_STREAM_MIME_TYPE => {
            let events = events::of_body(response.into_body(), Stream::Of(owner));
            Ok(StreamableHttpPostResponse::Sse(events, session))
        }
        JSON_MIME_TYPE => {
            let body = read(response, MAX_MESSAGE).await?;
            Ok(StreamableHttpPostResponse::Json(message_for(&owner, &body)?, session))
        }
        other => Err(StreamableHttpError::UnexpectedContentType(Some(other.to_owned()))),
    }
}

/// The message in a body, which answers this request and no other.
fn message_for(owner: &Owner, body: &[u8]) -> Result<ServerJsonRpcMessage, HttpError> {
    let mut message = serde_json::from_slice(body)
        .map_err(|error| unexpected(format!("the response is not a message: {error}")))?;
    let id = match &mut message {
        ServerJsonRpcMessage::Response(response) => Some(&response.id),
        ServerJsonRpcMessage::Error(error) => Some(&*error.id.get_or_insert_with(|| owner.id.clone())),
        ServerJsonRpcMessage::Request(_) | ServerJsonRpcMessage::Notification(_) => None,
    };
    if id.is_some_and(|id| !owner.has_id(id)) {
        return Err(unexpected("the response is for another request".into()));
    }
    Ok(message)
}

/// The result of a POST with an error status: the JSON-RPC error in it, else the status. A discovery that an older
/// server rejects with 4xx is reported as an answer to it, so that the older handshake follows.
async fn rejected<B>(
    message: &ClientJsonRpcMessage,
    has_session: bool,
    response: Response<B>,
) -> Result<StreamableHttpPostResponse, HttpError>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let status = response.status();
    let retry_after =
        response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let failed = HttpStatusError::new(status.as_u16(), retry_after);
    let discovery = discovery(message).filter(|_| status.is_client_error() && !has_session);
    let is_json = media_type(&response) == JSON_MIME_TYPE && status != StatusCode::TOO_MANY_REQUESTS;
    let error = if is_json { error_in(response).await } else { None };
    let lost = |error: &JsonRpcError| SESSION_ERRORS.contains(&error.error.code.0);
    match (discovery, error) {
        (None, Some(error)) if has_session && status == StatusCode::BAD_REQUEST && lost(&error) => {
            Err(StreamableHttpError::SessionExpired)
        }
        (None, Some(error)) => {
            let id = Owner::of(message).map(|owner| owner.id).or(error.id);
            Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::error(error.error, id), None))
        }
        (Some(id), error) => {
            let unknown = || ErrorData::invalid_request(format!("HTTP status {status}"), None);
            let error = error.map_or_else(unknown, |error| error.error);
            Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::error(error, Some(id)), None))
        }
        (None, None) => Err(failed.into()),
    }
}

/// The id of a request for discovery.
fn discovery(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    match message {
        ClientJsonRpcMessage::Request(request)
            if matches!(request.request, ClientRequest::DiscoverRequest(_)) =>
        {
            Some(request.id.clone())
        }
        _ => None,
    }
}

async fn error_in<B>(response: Response<B>) -> Option<JsonRpcError>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let body = read(response, MAX_ERROR_BODY).await.ok()?;
    match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
        Ok(ServerJsonRpcMessage::Error(error)) => Some(error),
        _ => None,
    }
}

/// Without parameters.
pub(super) fn media_type<B>(response: &Response<B>) -> &str {
    let value =
        response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim()
}

async fn read<B>(response: Response<B>, max: usize) -> Result<Bytes, HttpError>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    match Limited::new(response.into_body(), max).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) => Err(unexpected(format!("the response was not read to its end: {error}"))),
    }
}

fn unexpected(text: String) -> HttpError {
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(text))
}
