//! Turns a response into the reply of a call.
//!
//! The media type decides: JSON is a data part; events, JSON lines and text are streamed as they arrive; anything else
//! is a file. A status of 400 or 422 rejects the arguments, every other one that is not a success fails the call, and
//! both carry the response as far as it is readable. The credentials are the operator's, so 401 and 403 fail as well:
//! the client could not provide others.

use std::time::Duration;

use bytes::Bytes;
use engine::AgentResult;
use http::{HeaderMap, Response, StatusCode, header, response::Parts};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use protocol::{Content, Part};
use tokio::time::timeout;

use super::{
    decode::{self, Decoder},
    retry::retry_after,
    send::Describe,
};
use crate::backend::{Call, Failure, Reply, json_part};

/// Maximum size of an error's body that is read.
const MAX_ERROR: usize = 64 << 10;
/// Maximum length of an error's text that is shown.
const MAX_ERROR_TEXT: usize = 4 << 10;

/// Limits of a response's body.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    /// Maximum time between two pieces.
    pub(crate) wait: Duration,
    /// Maximum size.
    pub(crate) max_bytes: usize,
}

/// Reads the response of a call.
pub(crate) async fn reply(
    call: &Call<'_>,
    response: Response<Incoming>,
    limits: Limits,
    describe: Describe<'_>,
) -> AgentResult<Reply> {
    let (head, body) = response.into_parts();
    let mut body = BodyReader { body, limits, read: 0 };
    let media_type = MediaType::of(&head.headers);
    if !head.status.is_success() {
        if matches!(head.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
            tracing::warn!(skill = call.skill, status = %head.status, "the backend does not accept the credentials");
        }
        let headline = headline(&head, describe);
        return Ok(error(head.status, headline, &media_type, &mut body).await);
    }
    if body.is_at_end() {
        return Ok(Reply::Done(Vec::new()));
    }
    if let Some(coding) = head.headers.get(header::CONTENT_ENCODING).filter(|coding| *coding != "identity") {
        let coding = coding.to_str().unwrap_or_default();
        return Ok(Reply::fail(format!(
            "the response has the content encoding {coding:?}, which was not asked for"
        )));
    }
    match media_type.kind() {
        Kind::Json => Ok(body.all().await.map_or_else(Reply::fail, |bytes| json(&bytes))),
        Kind::Unknown => Ok(body.all().await.map_or_else(Reply::fail, |bytes| Reply::Done(guess(bytes)))),
        Kind::File => {
            let filename = filename(&head.headers);
            Ok(body.all().await.map_or_else(Reply::fail, |bytes| file(bytes, media_type.essence, filename)))
        }
        Kind::Events => stream(call, body, Decoder::events()).await,
        Kind::Lines => stream(call, body, Decoder::Lines(decode::Lines::default())).await,
        Kind::Text => stream(call, body, Decoder::Text(decode::Text::new(&media_type.essence))).await,
    }
}

/// Passes on each part as soon as it is there.
async fn stream(call: &Call<'_>, mut body: BodyReader, mut decoder: Decoder) -> AgentResult<Reply> {
    let mut sent = false;
    loop {
        let bytes = match body.next().await {
            Ok(Some(bytes)) => bytes,
            Ok(None) => break,
            Err(problem) => return Ok(Reply::fail(problem)),
        };
        let parts = decoder.feed(&bytes);
        if !sent && body.is_at_end() {
            return Ok(Reply::Done(parts.into_iter().chain(decoder.finish()).collect()));
        }
        for part in parts {
            sent = true;
            call.chunk(vec![part]).await?;
        }
    }
    let rest = decoder.finish();
    if !sent {
        return Ok(Reply::Done(rest));
    }
    for part in rest {
        call.chunk(vec![part]).await?;
    }
    Ok(Reply::Streamed)
}

fn json(bytes: &[u8]) -> Reply {
    match std::str::from_utf8(bytes) {
        Ok(text) if text.trim().is_empty() => Reply::Done(Vec::new()),
        Ok(text) => match json_part(text) {
            Some(part) => Reply::Done(vec![part]),
            None => Reply::fail("the backend responded with content that is not the JSON it is declared as"),
        },
        Err(_) => Reply::fail("the backend responded with JSON that is not UTF-8"),
    }
}

fn file(bytes: Vec<u8>, media_type: String, filename: Option<String>) -> Reply {
    if bytes.is_empty() {
        return Reply::Done(Vec::new());
    }
    let part = Part { media_type: Some(media_type), filename, ..Part::new(Content::Raw(bytes)) };
    Reply::Done(vec![part])
}

/// The content of a response without a media type: JSON, else text, else a file.
fn guess(bytes: Vec<u8>) -> Vec<Part> {
    match String::from_utf8(bytes) {
        Ok(text) if text.is_empty() => Vec::new(),
        Ok(text) => vec![json_part(&text).unwrap_or_else(|| Part::text(text))],
        Err(error) => vec![Part::new(Content::Raw(error.into_bytes()))],
    }
}

/// The status, its description in the document, and when to try again.
fn headline(head: &Parts, describe: Describe<'_>) -> String {
    let mut text = format!("the backend responded {}", head.status);
    if let Some(description) = describe(head.status) {
        text.push_str(": ");
        text.push_str(&description);
    }
    if head.status.is_redirection() {
        text.push_str(": redirects are not followed");
    }
    if let Some(wait) = retry_after(&head.headers) {
        text.push_str(&format!(", try again after {} s", wait.as_secs()));
    }
    text
}

/// The headline, and the body as far as it is readable.
async fn error(status: StatusCode, headline: String, media_type: &MediaType, body: &mut BodyReader) -> Reply {
    let text = body.start(MAX_ERROR).await;
    let data = (media_type.kind() == Kind::Json).then(|| json_part(&text)).flatten();
    let is_readable = !text.trim().is_empty() && !status.is_redirection() && media_type.kind() != Kind::File;
    let parts = match data {
        Some(data) => vec![Part::text(headline), data],
        None if is_readable => vec![Part::text(format!("{headline}: {}", shortened(text.trim())))],
        None => vec![Part::text(headline)],
    };
    match status {
        StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY => Reply::Rejected(parts),
        _ => Reply::Failed(Failure { parts, reason: None, retryable: false, cause: None }),
    }
}

fn shortened(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_ERROR_TEXT)]
}

/// What a media type means here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Json,
    Events,
    Lines,
    Text,
    File,
    Unknown,
}

/// A media type without its parameters, in lower case, and its charset.
struct MediaType {
    essence: String,
    charset: Option<String>,
}

impl MediaType {
    fn of(headers: &HeaderMap) -> Self {
        let value =
            headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let mut pieces = value.split(';').map(str::trim);
        let essence = pieces.next().unwrap_or_default().to_ascii_lowercase();
        let charset = pieces.find_map(|piece| {
            let (name, value) = piece.split_once('=')?;
            name.eq_ignore_ascii_case("charset").then(|| value.trim_matches('"').to_ascii_lowercase())
        });
        Self { essence, charset }
    }

    fn kind(&self) -> Kind {
        match self.essence.as_str() {
            "" => Kind::Unknown,
            "application/json" => Kind::Json,
            other if other.ends_with("+json") => Kind::Json,
            "text/event-stream" => Kind::Events,
            "application/x-ndjson" | "application/ndjson" | "application/jsonl" => Kind::Lines,
            other if other.starts_with("text/") && self.is_utf8() => Kind::Text,
            _ => Kind::File,
        }
    }

    fn is_utf8(&self) -> bool {
        matches!(self.charset.as_deref(), None | Some("utf-8" | "utf8" | "us-ascii"))
    }
}

/// The file name of an attachment, if it is a plain one.
fn filename(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_DISPOSITION)?.to_str().ok()?;
    let name = value.split(';').find_map(|piece| piece.trim().strip_prefix("filename="))?;
    let name = name.trim_matches('"');
    let plain = !name.is_empty()
        && name.len() <= 255
        && !name.starts_with('.')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || " ._-+()".contains(c));
    plain.then(|| name.to_owned())
}

/// Reads a body within its limits.
struct BodyReader {
    body: Incoming,
    limits: Limits,
    read: usize,
}

impl BodyReader {
    /// The next bytes; `None` at the end. The error is for the client.
    async fn next(&mut self) -> Result<Option<Bytes>, String> {
        let Limits { wait, max_bytes } = self.limits;
        loop {
            let next = timeout(wait, self.body.frame()).await;
            let next =
                next.map_err(|_| format!("the backend sent no further data for {} s", wait.as_secs_f64()))?;
            let Some(frame) = next else { return Ok(None) };
            let frame = frame.map_err(|error| {
                tracing::debug!(%error, "response of a backend ended early");
                "the connection to the backend was lost within the response".to_owned()
            })?;
            // Trailers are ignored.
            let Ok(bytes) = frame.into_data() else { continue };
            self.read += bytes.len();
            if self.read > max_bytes {
                return Err(format!(
                    "the response of the backend is larger than max_response, {max_bytes} bytes"
                ));
            }
            return Ok(Some(bytes));
        }
    }

    async fn all(&mut self) -> Result<Vec<u8>, String> {
        let mut all = Vec::new();
        while let Some(bytes) = self.next().await? {
            all.extend_from_slice(&bytes);
        }
        Ok(all)
    }

    /// The beginning of the body as text, as far as it can be read.
    async fn start(&mut self, max_bytes: usize) -> String {
        let mut start = Vec::new();
        while let Ok(Some(bytes)) = self.next().await {
            let free = max_bytes - start.len();
            start.extend_from_slice(&bytes[..bytes.len().min(free)]);
            if start.len() == max_bytes {
                break;
            }
        }
        String::from_utf8_lossy(&start).into_owned()
    }

    /// Whether it is known that nothing follows.
    fn is_at_end(&self) -> bool {
        self.body.is_end_stream()
    }
}
