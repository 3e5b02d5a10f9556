//! The messages on a stream of server-sent events, as far as they belong there.
//!
//! The library completes whatever request an answer names. Here an answer is admitted only on the stream of its own
//! request, so that a server that confuses requests cannot answer that of another caller. The stream never ends with an
//! error, after which the library would reconnect without any delay.

use std::error::Error;

use bytes::Bytes;
use futures_util::{StreamExt, TryStream, stream};
use http_body::Body;
use http_body_util::BodyExt;
use rmcp::{
    model::{ClientJsonRpcMessage, ErrorData, GetMeta, ProgressToken, RequestId, ServerJsonRpcMessage},
    transport::common::client_side_sse::BoxedSseResponse,
};
use serde::Deserialize;

use super::{
    MAX_MESSAGE,
    sse::{Event, Parser, TooLarge},
};

/// Limits of the time that a server wants us to wait before we reconnect, in milliseconds.
const RETRY_MILLIS: (u64, u64) = (500, 60_000);

/// The library does not export its name.
type Sse = <BoxedSseResponse as TryStream>::Ok;

/// What may come on a stream.
pub(super) enum Stream {
    /// The answer to this request, and its progress.
    Of(Owner),
    /// What is left of the stream of a request.
    Resumed,
    /// No answers.
    Unsolicited,
}

/// A request that waits for its answer.
#[derive(Clone)]
pub(super) struct Owner {
    pub(super) id: RequestId,
    token: Option<ProgressToken>,
}

impl Owner {
    /// `None`: the message is not a request.
    pub(super) fn of(message: &ClientJsonRpcMessage) -> Option<Self> {
        match message {
            ClientJsonRpcMessage::Request(request) => {
                Some(Self { id: request.id.clone(), token: request.request.get_meta().get_progress_token() })
            }
            _ => None,
        }
    }

    /// Some servers send a number back as a text.
    pub(super) fn has_id(&self, id: &RequestId) -> bool {
        self.id.to_string() == id.to_string()
    }
}

/// The part of a message that assigns it to a call.
#[derive(Deserialize)]
struct Head {
    id: Option<RequestId>,
    method: Option<String>,
    params: Option<Params>,
    error: Option<ErrorData>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    progress_token: Option<ProgressToken>,
}

impl Stream {
    /// The event as it is passed on; `None`: it does not belong here.
    fn admit(&self, event: Event) -> Option<Event> {
        let Some(data) = &event.data else { return Some(event) };
        let head: Head = serde_json::from_str(data).ok()?;
        let token = head.params.and_then(|params| params.progress_token);
        match (self, head.method) {
            (Self::Of(owner), Some(_)) => {
                token.is_none_or(|token| owner.token == Some(token)).then_some(event)
            }
            (Self::Of(owner), None) => match (head.id, head.error) {
                (Some(id), _) => owner.has_id(&id).then_some(event),
                (None, error) => Some(Event { data: Some(owner.error(error?)), ..event }),
            },
            (Self::Unsolicited, None) => None,
            (Self::Unsolicited, Some(_)) | (Self::Resumed, _) => Some(event),
        }
    }

    /// What the request gets instead of an answer that is too large.
    fn answer(&self, problem: &TooLarge) -> Option<Event> {
        let Self::Of(owner) = self else { return None };
        let error = ErrorData::internal_error(format!("the answer is not accepted: {problem}"), None);
        Some(Event { data: Some(owner.error(error)), ..Event::default() })
    }
}

impl Owner {
    fn error(&self, error: ErrorData) -> String {
        let message = ServerJsonRpcMessage::error(error, Some(self.id.clone()));
        serde_json::to_string(&message).expect("an error has no map with other keys than strings")
    }
}

/// The events of a body.
pub(super) fn of_body<B>(body: B, stream: Stream) -> BoxedSseResponse
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let reader = Reader { body: Some(Box::pin(body)), parser: Parser::new(MAX_MESSAGE), stream };
    stream::unfold(reader, |mut reader| async move { Some((Ok(sse(reader.next().await?)), reader)) }).boxed()
}

struct Reader<B> {
    /// `None` after its end.
    body: Option<B>,
    parser: Parser,
    stream: Stream,
}

impl<B> Reader<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    async fn next(&mut self) -> Option<Event> {
        loop {
            while let Some(event) = self.parser.next() {
                if let Some(event) = self.stream.admit(event) {
                    return Some(event);
                }
                tracing::debug!("an MCP server sent a message on the stream of another request");
            }
            let bytes = self.read().await?;
            if let Err(too_large) = self.parser.add(&bytes) {
                tracing::warn!(%too_large, "a stream of an MCP server is not read further");
                self.body = None;
                return match self.stream.answer(&too_large) {
                    Some(answer) => Some(answer),
                    // The library would request the same event again.
                    None => std::future::pending().await,
                };
            }
        }
    }

    /// The next bytes; none after the end or an error.
    async fn read(&mut self) -> Option<Bytes> {
        match self.body.as_mut()?.frame().await {
            Some(Ok(frame)) => Some(frame.into_data().unwrap_or_default()),
            Some(Err(error)) => {
                let error: Box<dyn Error + Send + Sync> = error.into();
                tracing::debug!(%error, "a stream of an MCP server has ended");
                self.body = None;
                None
            }
            None => {
                self.body = None;
                None
            }
        }
    }
}

fn sse(event: Event) -> Sse {
    let (min, max) = RETRY_MILLIS;
    let mut sse = Sse::default();
    Event { event: sse.event, data: sse.data, id: sse.id, retry: sse.retry } = event;
    sse.retry = sse.retry.map(|millis| millis.clamp(min, max));
    sse
}

/// The messages in a stream that answers request 1, for tests with damaged bytes.
pub(in super::super) fn read_events(chunks: &[&[u8]]) -> Vec<String> {
    let stream = Stream::Of(Owner { id: RequestId::Number(1), token: None });
    let mut parser = Parser::new(MAX_MESSAGE);
    let mut messages = Vec::new();
    for chunk in chunks {
        if let Err(too_large) = parser.add(chunk) {
            messages.extend(stream.answer(&too_large).and_then(|event| event.data));
            break;
        }
        let admitted = std::iter::from_fn(|| parser.next()).filter_map(|event| stream.admit(event));
        messages.extend(admitted.filter_map(|event| event.data));
    }
    messages
}
