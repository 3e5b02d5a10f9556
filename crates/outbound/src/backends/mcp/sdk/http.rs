//! Streamable HTTP through the [`Dialer`]: what the library wants from an HTTP client.

mod events;
mod response;

use std::{collections::HashMap, error::Error, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{
    HeaderName, HeaderValue, Method, Request, Response, StatusCode,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE},
    request::Builder,
};
use http_body::Body;
use http_body_util::Full;
use protocol::model::Secret;
use rmcp::{
    model::{ClientJsonRpcMessage, GetMeta as _},
    transport::{
        StreamableHttpClientTransport,
        common::{
            client_side_sse::{BoxedSseResponse, ExponentialBackoff},
            http_header::{EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, HEADER_SESSION_ID, JSON_MIME_TYPE},
        },
        streamable_http_client::{
            AuthRequiredError, HttpStatusError, StreamableHttpClient, StreamableHttpClientTransportConfig,
            StreamableHttpError, StreamableHttpPostResponse,
        },
    },
};
use tokio::sync::Notify;

use self::{events::Stream, response::media_type};
use super::{TRACEPARENT, TRACESTATE};
use crate::{
    backend::with_causes,
    dial::{DialError, Dialer, UrlSource},
};

pub(super) use self::events::read_events;

/// Maximum size of a response or of one event in it, in bytes; the same as of a line on standard output.
const MAX_MESSAGE: usize = 16 << 20;
/// How often, and how long after the loss of a stream, it is requested again: for 15 s in all.
const RECONNECTS: usize = 8;
const RECONNECT_DELAYS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// The usual reason of an unexpected answer.
const NO_SERVER: &str = "there may be no MCP server at this URL";

type HttpError = StreamableHttpError<DialError>;

/// A transport to this endpoint. `session_lost` is notified when the server has lost our session, as after its
/// restart. The error names the header that is not valid.
pub(super) fn transport(
    url: &str,
    headers: &[(HeaderName, Secret)],
    dialer: Dialer,
    session_lost: Arc<Notify>,
) -> Result<StreamableHttpClientTransport<Client>, String> {
    let mut custom = HashMap::new();
    for (name, secret) in headers {
        let mut value = HeaderValue::from_str(secret.expose())
            .map_err(|_| format!("header {name}: its value has characters that a header cannot have"))?;
        value.set_sensitive(true);
        custom.insert(name.clone(), value);
    }
    let mut reconnects = ExponentialBackoff::default();
    reconnects.max_times = Some(RECONNECTS);
    (reconnects.base_duration, reconnects.max_delay) = (RECONNECT_DELAYS.0, Some(RECONNECT_DELAYS.1));
    let mut config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(custom)
        .max_sse_event_size(MAX_MESSAGE)
        .max_concurrent_requests(usize::MAX >> 8);
    config.retry_config = Arc::new(reconnects);
    Ok(StreamableHttpClientTransport::with_client(Client { dialer, session_lost }, config))
}

/// The HTTP client of one transport.
#[derive(Clone)]
pub(super) struct Client {
    dialer: Dialer,
    session_lost: Arc<Notify>,
}

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
        let mut request = request(Method::POST, &uri, session_id.as_deref(), auth_header, custom_headers)
            .header(CONTENT_TYPE, JSON_MIME_TYPE);
        for (name, value) in trace_headers(&message) {
            request = request.header(name, value);
        }
        let response = self.send(request, body.into()).await?;
        let result = response::of_post(&message, session_id.is_some(), response).await;
        if matches!(result, Err(StreamableHttpError::SessionExpired)) {
            self.session_lost.notify_one();
        }
        result
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
        let stream = if last_event_id.is_some() { Stream::Resumed } else { Stream::Unsolicited };
        if let Some(id) = last_event_id {
            request = request.header(HEADER_LAST_EVENT_ID, id);
        }
        let response = self.send(request, Bytes::new()).await?;
        match response.status() {
            StatusCode::TOO_MANY_REQUESTS => Err(HttpStatusError::new(429, None).into()),
            // With this error the library does not repeat the request, which would fail again.
            status if status.is_client_error() => Err(StreamableHttpError::ServerDoesNotSupportSse),
            status if !status.is_success() => Err(HttpStatusError::new(status.as_u16(), None).into()),
            _ if media_type(&response) != EVENT_STREAM_MIME_TYPE => {
                Err(StreamableHttpError::ServerDoesNotSupportSse)
            }
            _ => Ok(events::of_body(response.into_body(), stream)),
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
            self.dialer.send(request, UrlSource::Operator).await.map_err(StreamableHttpError::Client)?;
        if !matches!(response.status(), StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            return Ok(response);
        }
        let challenge = response.headers().get(WWW_AUTHENTICATE).map(HeaderValue::as_bytes);
        let challenge = String::from_utf8_lossy(challenge.unwrap_or_default()).into_owned();
        Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge)))
    }
}

/// What a server answered that could not be connected to, or why it could not.
pub(super) fn error_in_words(error: &(dyn Error + 'static)) -> String {
    match error.downcast_ref::<HttpError>() {
        Some(StreamableHttpError::HttpStatus(status)) => format!("it answered with {status}: {NO_SERVER}"),
        Some(StreamableHttpError::SessionExpired) => format!("it answered with HTTP 404: {NO_SERVER}"),
        Some(StreamableHttpError::UnexpectedContentType(found)) => {
            let found = found.as_deref().filter(|found| !found.is_empty());
            let found = found.map_or_else(|| "content without a type".to_owned(), str::to_owned);
            format!("it answered with {found} instead of JSON or events: {NO_SERVER}")
        }
        Some(StreamableHttpError::Deserialize(_)) => {
            format!("it answered with JSON that is no message of MCP: {NO_SERVER}")
        }
        Some(StreamableHttpError::UnexpectedEndOfStream) => "it ended its answer too early".into(),
        Some(StreamableHttpError::UnexpectedServerResponse(problem)) => format!("its answer: {problem}"),
        Some(StreamableHttpError::Client(error)) => with_causes(error),
        Some(_) | None => with_causes(error),
    }
}

/// The trace context in the `_meta` of a request, for proxies that read headers only.
fn trace_headers(message: &ClientJsonRpcMessage) -> Vec<(&'static str, String)> {
    let ClientJsonRpcMessage::Request(request) = message else { return Vec::new() };
    let meta = request.request.get_meta();
    let text = |name| meta.get(name).and_then(|value| value.as_str()).map(|value| (name, value.to_owned()));
    [TRACEPARENT, TRACESTATE].into_iter().filter_map(text).collect()
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
