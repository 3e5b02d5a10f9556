//! Reading a request's body, bounded in size and in patience.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use protocol::{Error, ErrorKind, ErrorTable, error::in_short};

/// How long the next piece of a body may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// JSON, or nothing said about it. A2A 1.0.0 has one error for a body and a part of a type that nobody takes.
pub(crate) fn check_media_type(headers: &HeaderMap, errors: ErrorTable) -> Result<(), Error> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let essence = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json")
        || essence.eq_ignore_ascii_case("application/a2a+json")
    {
        return Ok(());
    }
    let shown = in_short(essence);
    let text = format!("Content-Type {shown:?} is not served here; send application/json");
    Err(Error::new(errors.unsupported_media_type(), text))
}

/// Bodies are taken as they are: nothing is unpacked here.
pub(crate) fn check_encoding(headers: &HeaderMap) -> Result<(), Error> {
    let Some(value) = headers.get(header::CONTENT_ENCODING) else { return Ok(()) };
    if value.as_bytes().eq_ignore_ascii_case(b"identity") {
        return Ok(());
    }
    let coding = in_short(&String::from_utf8_lossy(value.as_bytes()));
    let text = format!("Content-Encoding {coding:?} is not served here; send the body as it is");
    Err(Error::new(ErrorKind::UnsupportedMediaType, text))
}

/// The whole body, if it is not larger than the limit and keeps coming.
pub(crate) async fn read(mut body: Body, limit: usize) -> Result<Bytes, Error> {
    let declared = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if declared > limit {
        discard(body).await;
        return Err(too_large(limit));
    }
    let mut whole = BytesMut::new();
    let mut first = Bytes::new();
    loop {
        let frame = tokio::time::timeout(PATIENCE, body.frame()).await.map_err(|_| too_slow())?;
        let Some(frame) = frame else { break };
        let Ok(data) = frame.map_err(|_| cut_off())?.into_data() else { continue };
        if first.len() + whole.len() + data.len() > limit {
            discard(body).await;
            return Err(too_large(limit));
        }
        // Most bodies are one frame, and then nothing is copied.
        if first.is_empty() && whole.is_empty() {
            first = data;
        } else {
            let needed = first.len() + whole.len() + data.len();
            if needed > whole.capacity() {
                let more = room(needed, declared, limit) - whole.len();
                whole.reserve(more);
            }
            whole.extend_from_slice(&std::mem::take(&mut first));
            whole.extend_from_slice(&data);
        }
    }
    Ok(if whole.is_empty() { first } else { whole.freeze() })
}

/// How large a buffer is to be that has become too small: as large as the body where its length is known. Otherwise it
/// grows in few, large steps, because each leaves a buffer behind, and memory that is never written to costs nothing.
fn room(needed: usize, declared: usize, limit: usize) -> usize {
    const SMALL: usize = 256 << 10;
    match needed {
        _ if needed <= declared => declared,
        ..=SMALL => SMALL,
        _ => needed.saturating_mul(8).min(limit),
    }
}

/// Reads on for a while without keeping anything, as long as something comes: a client that is still writing reads its
/// answer only afterwards.
async fn discard(mut body: Body) {
    const MOST: usize = 256 << 20;
    const PAUSE: Duration = Duration::from_millis(50);
    let reading = async {
        let mut read = 0;
        while let Ok(Some(Ok(frame))) = tokio::time::timeout(PAUSE, body.frame()).await {
            read += frame.data_ref().map_or(0, Bytes::len);
            if read > MOST {
                break;
            }
        }
    };
    let _ = tokio::time::timeout(PATIENCE, reading).await;
}

fn too_large(limit: usize) -> Error {
    let text = format!("the body is larger than {limit} bytes; send files by url instead");
    Error::new(ErrorKind::BodyTooLarge, text).with("maxBodyBytes", limit)
}

pub(crate) fn too_slow() -> Error {
    let text = format!("the body stopped coming for {} seconds; send it again", PATIENCE.as_secs());
    Error::new(ErrorKind::DeadlineExceeded, text)
}

pub(crate) fn cut_off() -> Error {
    Error::new(ErrorKind::Parse, "the body ended before it was complete; send it again")
}
