//! The messages on a stream of server-sent events, as far as they belong there.
//!
//! The library completes whatever request an answer names. Here an answer is admitted only on the stream of its own
//! request, so that a server that confuses requests cannot answer that of another caller. The stream never ends with an
//! error, after which the library would reconnect without any delay.

use std::error::Error;

use bytes::Bytes;
use client::sse::{self, Frame, TooLarge};
use futures_util::{StreamExt, TryStream, stream};
use http_body::Body;
use http_body_util::BodyExt;
use rmcp::{
    model::{ClientJsonRpcMessage, ErrorData, GetMeta, ProgressToken, RequestId, ServerJsonRpcMessage},
    transport::common::client_side_sse::BoxedSseResponse,
};
use serde::Deserialize;

use super::MAX_MESSAGE;

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
    fn admit(&self, event: Frame) -> Option<Frame> {
        let Some(data) = &event.data else { return Some(event) };
        let head: Head = serde_json::from_slice(data).ok()?;
        let token = head.params.and_then(|params| params.progress_token);
        match (self, head.method) {
            (Self::Of(owner), Some(_)) => {
                token.is_none_or(|token| owner.token == Some(token)).then_some(event)
            }
            (Self::Of(owner), None) => match (head.id, head.error) {
                (Some(id), _) => owner.has_id(&id).then_some(event),
                (None, error) => Some(Frame { data: Some(owner.error(error?).into()), ..event }),
            },
            (Self::Unsolicited, None) => None,
            (Self::Unsolicited, Some(_)) | (Self::Resumed, _) => Some(event),
        }
    }

    /// What the request gets instead of an answer that is too large.
    fn answer(&self, problem: &TooLarge) -> Option<Frame> {
        let Self::Of(owner) = self else { return None };
        let error = ErrorData::internal_error(format!("the answer is not accepted: {problem}"), None);
        Some(Frame { data: Some(owner.error(error).into()), ..Frame::default() })
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
    let reader = Reader { body: Some(Box::pin(body)), frames: sse::Reader::new(MAX_MESSAGE), stream };
    stream::unfold(reader, |mut reader| async move { Some((Ok(passed_on(reader.next().await?)), reader)) })
        .boxed()
}

struct Reader<B> {
    /// `None` after its end.
    body: Option<B>,
    frames: sse::Reader,
    stream: Stream,
}

impl<B> Reader<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    async fn next(&mut self) -> Option<Frame> {
        loop {
            match self.frames.next_frame() {
                Ok(Some(event)) => match self.stream.admit(event) {
                    Some(event) => return Some(event),
                    None => tracing::debug!("an MCP server sent a message on the stream of another request"),
                },
                Ok(None) => {
                    let bytes = self.read().await?;
                    self.frames.feed(bytes);
                }
                Err(too_large) => {
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

fn passed_on(event: Frame) -> Sse {
    let (min, max) = RETRY_MILLIS;
    let Frame { event, id, data, retry } = event;
    let mut sse = Sse::default();
    (sse.event, sse.id, sse.data) = (event, id, data.map(text));
    sse.retry = retry.map(|millis| millis.clamp(min, max));
    sse
}

fn text(data: Vec<u8>) -> String {
    String::from_utf8(data).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// The messages in a stream that answers request 1, for tests with damaged bytes.
pub(in super::super) fn read_events(chunks: &[&[u8]]) -> Vec<String> {
    let stream = Stream::Of(Owner { id: RequestId::Number(1), token: None });
    let mut frames = sse::Reader::new(MAX_MESSAGE);
    let mut messages = Vec::new();
    for chunk in chunks {
        frames.feed(Bytes::copy_from_slice(chunk));
        loop {
            let event = match frames.next_frame() {
                Ok(None) => break,
                Ok(Some(event)) => stream.admit(event),
                Err(too_large) => {
                    messages.extend(stream.answer(&too_large).and_then(|event| event.data).map(text));
                    return messages;
                }
            };
            messages.extend(event.and_then(|event| event.data).map(text));
        }
    }
    messages
}
