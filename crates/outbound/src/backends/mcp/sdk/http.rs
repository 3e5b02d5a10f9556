//! Streamable HTTP through the [`Dialer`]: what the library wants from an HTTP client.

use std::{borrow::Cow, collections::HashMap, error::Error, sync::Arc};

use bytes::Bytes;
use futures_util::{StreamExt, TryStream, stream};
use http::{
    HeaderName, HeaderValue, Method, Request, Response, StatusCode,
    header::{ACCEPT, AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE},
    request::Builder,
};
use http_body::Body;
use http_body_util::{BodyExt, Full, Limited};
use protocol::model::Secret;
use rmcp::{
    model::{ClientJsonRpcMessage, ClientRequest, ErrorData, ServerJsonRpcMessage},
    transport::{
        StreamableHttpClientTransport,
        common::{
            client_side_sse::BoxedSseResponse,
            http_header::{EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, HEADER_SESSION_ID, JSON_MIME_TYPE},
        },
        streamable_http_client::{
            AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpClient,
            StreamableHttpClientTransportConfig, StreamableHttpError, StreamableHttpPostResponse,
        },
    },
};

use super::sse::{Event, Parser};
use crate::dial::{DialError, Dialer, UrlSource};

/// Maximum size of a response or of one event in it, in bytes; the same as of a line on standard output.
const MAX_MESSAGE: usize = 16 << 20;
/// Maximum size of the body of an error that is read for its text, in bytes.
const MAX_ERROR_BODY: usize = 64 << 10;

type HttpError = StreamableHttpError<DialError>;
/// The library does not export its name.
type Sse = <BoxedSseResponse as TryStream>::Ok;

/// A transport to this endpoint. The error names the header that is not valid.
pub(super) fn transport(
    url: &str,
    headers: &[(HeaderName, Secret)],
    dialer: Dialer,
) -> Result<StreamableHttpClientTransport<Client>, String> {
    let mut custom = HashMap::new();
    for (name, secret) in headers {
        let mut value = HeaderValue::from_str(secret.expose())
            .map_err(|_| format!("header {name}: its value has characters that a header cannot have"))?;
        value.set_sensitive(true);
        custom.insert(name.clone(), value);
    }
    let config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(custom)
        .max_sse_event_size(MAX_MESSAGE)
        .max_concurrent_requests(usize::MAX >> 8);
    Ok(StreamableHttpClientTransport::with_client(Client(dialer), config))
}

/// The HTTP client of one transport.
#[derive(Clone)]
pub(super) struct Client(Dialer);

impl StreamableHttpClient for Client {
    type Error = DialError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let body = serde_json::to_vec(&message)?;
        let request = request(Method::POST, &uri, session_id.as_deref(), auth_header, custom_headers)
            .header(CONTENT_TYPE, JSON_MIME_TYPE);
        let response = self.send(request, body.into()).await?;
        let status = response.status();
        if matches!(status, StatusCode::ACCEPTED | StatusCode::NO_CONTENT) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == StatusCode::NOT_FOUND && session_id.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        if !status.is_success() {
            return rejected(&message, session_id.is_some(), response).await;
        }
        accepted(&message, response).await
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), HttpError> {
        let request = request(Method::DELETE, &uri, Some(&session_id), auth_header, custom_headers);
        let status = self.send(request, Bytes::new()).await?.status();
        if status.is_success() || status == StatusCode::METHOD_NOT_ALLOWED {
            return Ok(());
        }
        Err(HttpStatusError::new(status.as_u16(), None).into())
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxedSseResponse, HttpError> {
        let mut request = request(Method::GET, &uri, session_id.as_deref(), auth_header, custom_headers);
        if let Some(id) = last_event_id {
            request = request.header(HEADER_LAST_EVENT_ID, id);
        }
        let response = self.send(request, Bytes::new()).await?;
        match response.status() {
            StatusCode::METHOD_NOT_ALLOWED => Err(StreamableHttpError::ServerDoesNotSupportSse),
            status if !status.is_success() => Err(HttpStatusError::new(status.as_u16(), None).into()),
            _ if media_type(&response) != EVENT_STREAM_MIME_TYPE => {
                Err(StreamableHttpError::UnexpectedContentType(Some(media_type(&response).to_owned())))
            }
            _ => Ok(events(response.into_body())),
        }
    }
}

impl Client {
    /// Sends a request; a response that requires credentials is an error.
    async fn send(
        &self,
        request: Builder,
        body: Bytes,
    ) -> Result<
        Response<impl Body<Data = Bytes, Error = impl Error + Send + Sync + 'static> + Send + 'static>,
        HttpError,
    > {
        let request = request
            .body(Full::new(body))
            .map_err(|_| StreamableHttpError::UnexpectedServerResponse("the URL is not valid".into()))?;
        let response =
            self.0.send(request, UrlSource::Operator).await.map_err(StreamableHttpError::Client)?;
        let challenge = response
            .headers()
            .get(WWW_AUTHENTICATE)
            .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
        match (response.status(), challenge) {
            (StatusCode::UNAUTHORIZED, challenge) => {
                Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge.unwrap_or_default())))
            }
            (StatusCode::FORBIDDEN, Some(challenge)) => {
                Err(StreamableHttpError::InsufficientScope(InsufficientScopeError::new(challenge, None)))
            }
            _ => Ok(response),
        }
    }
}

fn request(
    method: Method,
    uri: &str,
    session_id: Option<&str>,
    auth_header: Option<String>,
    custom_headers: HashMap<HeaderName, HeaderValue>,
) -> Builder {
    let mut request = Request::builder()
        .method(method)
        .uri(uri)
        .header(ACCEPT, [JSON_MIME_TYPE, EVENT_STREAM_MIME_TYPE].join(", "));
    if let Some(id) = session_id {
        request = request.header(HEADER_SESSION_ID, id);
    }
    if let Some(token) = auth_header {
        request = request.header(AUTHORIZATION, format!("Bearer {token}"));
    }
    for (name, value) in custom_headers {
        request = request.header(name, value);
    }
    request
}

/// The result of a successful POST: one message, or a stream of them.
async fn accepted<B>(
    message: &ClientJsonRpcMessage,
    response: Response<B>,
) -> Result<StreamableHttpPostResponse, HttpError>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let expects_response = matches!(message, ClientJsonRpcMessage::Request(_));
    let session =
        response.headers().get(HEADER_SESSION_ID).and_then(|id| id.to_str().ok()).map(str::to_owned);
    if !expects_response && response.headers().get(CONTENT_LENGTH).is_some_and(|length| length == "0") {
        return Ok(StreamableHttpPostResponse::Accepted);
    }
    match media_type(&response) {
        EVENT_STREAM_MIME_TYPE => Ok(StreamableHttpPostResponse::Sse(events(response.into_body()), session)),
        JSON_MIME_TYPE => {
            let body = read(response, MAX_MESSAGE).await?;
            match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
                Ok(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
                Err(_) if !expects_response => Ok(StreamableHttpPostResponse::Accepted),
                Err(error) => Err(unexpected(format!("the response is not a message: {error}"))),
            }
        }
        _ if !expects_response => Ok(StreamableHttpPostResponse::Accepted),
        other => Err(StreamableHttpError::UnexpectedContentType(Some(other.to_owned()))),
    }
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
    let discovery = match message {
        ClientJsonRpcMessage::Request(request)
            if matches!(request.request, ClientRequest::DiscoverRequest(_)) && !has_session =>
        {
            Some(request.id.clone()).filter(|_| status.is_client_error())
        }
        _ => None,
    };
    if discovery.is_none()
        && (status == StatusCode::TOO_MANY_REQUESTS || media_type(&response) != JSON_MIME_TYPE)
    {
        return Err(failed.into());
    }
    let body = read(response, MAX_ERROR_BODY).await.unwrap_or_default();
    let error = match serde_json::from_slice::<ServerJsonRpcMessage>(&body) {
        Ok(ServerJsonRpcMessage::Error(error)) => Some(error),
        _ => None,
    };
    let answer = match (discovery, error) {
        (Some(id), error) => {
            let unknown = || ErrorData::invalid_request(format!("HTTP status {status}"), None);
            ServerJsonRpcMessage::error(error.map_or_else(unknown, |error| error.error), Some(id))
        }
        (None, Some(error)) => ServerJsonRpcMessage::Error(error),
        (None, None) => return Err(failed.into()),
    };
    Ok(StreamableHttpPostResponse::Json(answer, None))
}

/// Without parameters.
fn media_type<B>(response: &Response<B>) -> &str {
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

/// The events of a body. It ends after the first error.
fn events<B>(body: B) -> BoxedSseResponse
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let start = Some((Box::pin(body), Parser::new(MAX_MESSAGE)));
    stream::unfold(start, |state| async move {
        let (mut body, mut parser) = state?;
        loop {
            if let Some(event) = parser.next() {
                return Some((Ok(sse(event)), Some((body, parser))));
            }
            let error = match body.frame().await? {
                Ok(frame) => match frame.into_data() {
                    Ok(data) => match parser.add(&data) {
                        Ok(()) => continue,
                        Err(too_large) => too_large.into(),
                    },
                    Err(_) => continue,
                },
                Err(error) => error.into(),
            };
            return Some((Err(SseError::Body(error)), None));
        }
    })
    .boxed()
}

fn sse(event: Event) -> Sse {
    let mut sse = Sse::default();
    Event { event: sse.event, data: sse.data, id: sse.id, retry: sse.retry } = event;
    sse
}
