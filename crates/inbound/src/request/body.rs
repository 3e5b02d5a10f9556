//! Reads a request's body with limits on size, memory and time.
//!
//! The rest of a rejected body is not read here: the connection discards it, see `listen/connection_io.rs`.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use engine::Reservation;
use http::{HeaderMap, header};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Frame};
use protocol::{Dialect, Error, ErrorKind, ErrorTable, error::excerpt};
use tokio::time::Instant;

/// How long to wait for the next bytes of a body.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Minimum rate in bytes per second after that time: a slower body would hold its memory indefinitely.
const MIN_RATE: u64 = 16 << 10;

/// Accepts JSON, and requests without a content type.
pub(crate) fn check_media_type(
    headers: &HeaderMap,
    dialect: Dialect,
    errors: ErrorTable,
) -> Result<(), Error> {
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let essence = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if essence.eq_ignore_ascii_case("application/json")
        || essence.eq_ignore_ascii_case("application/a2a+json")
    {
        return Ok(());
    }
    let shown = excerpt(essence);
    let text = format!("Content-Type {shown:?} is not supported; send application/json");
    let kind = match (dialect, errors) {
        // The conformance kit for 1.0.0 expects one error for unsupported types of bodies and of parts.
        (Dialect::V1, ErrorTable::V1_0_0) => ErrorKind::ContentTypeNotSupported,
        (Dialect::V1, ErrorTable::V1_0_1)
        | (Dialect::Draft | Dialect::V03 | Dialect::V03Proto, ErrorTable::V1_0_0 | ErrorTable::V1_0_1) => {
            ErrorKind::UnsupportedMediaType
        }
    };
    Err(Error::new(kind, text))
}

/// Rejects compressed bodies: decompression is not supported.
pub(crate) fn check_encoding(headers: &HeaderMap) -> Result<(), Error> {
    let Some(value) = headers.get(header::CONTENT_ENCODING) else { return Ok(()) };
    if value.as_bytes().eq_ignore_ascii_case(b"identity") {
        return Ok(());
    }
    let coding = excerpt(&String::from_utf8_lossy(value.as_bytes()));
    let text = format!("Content-Encoding {coding:?} is not supported; send the body uncompressed");
    Err(Error::new(ErrorKind::UnsupportedMediaType, text))
}

/// Reads the whole body; an error if it exceeds the limit or arrives too slowly.
pub(crate) async fn read(mut body: Body, limit: usize, memory: &Reservation) -> Result<Bytes, Error> {
    let declared = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if declared > limit {
        return Err(too_large(limit));
    }
    memory.reserve_body(declared as u64)?;
    let mut whole = BytesMut::new();
    let mut first = Bytes::new();
    let timer = BodyTimer::begin();
    while let Some(frame) = timer.next(&mut body, first.len() + whole.len()).await? {
        let Ok(data) = frame.into_data() else { continue };
        let length = first.len() + whole.len() + data.len();
        if length > limit {
            return Err(too_large(limit));
        }
        if length > declared {
            memory.reserve_body(data.len() as u64)?;
        }
        // Most bodies are one frame, which is then not copied.
        if first.is_empty() && whole.is_empty() {
            first = data;
        } else {
            let needed = first.len() + whole.len() + data.len();
            if needed > whole.capacity() {
                let more = buffer_capacity(needed, declared, limit) - whole.len();
                whole.reserve(more);
            }
            whole.extend_from_slice(&std::mem::take(&mut first));
            whole.extend_from_slice(&data);
        }
    }
    Ok(if whole.is_empty() { first } else { whole.freeze() })
}

/// Enforces the minimum rate of a body. Holds the time at which reading began.
pub(crate) struct BodyTimer(Instant);

impl BodyTimer {
    pub(crate) fn begin() -> Self {
        Self(Instant::now())
    }

    /// The next frame of a body of which `received` bytes have arrived; an error if it does not arrive in time.
    pub(crate) async fn next(&self, body: &mut Body, received: usize) -> Result<Option<Frame<Bytes>>, Error> {
        let due = due(self.0, received as u64);
        let frame = tokio::time::timeout_at(due, body.frame()).await.map_err(|_| too_slow())?;
        frame.transpose().map_err(|_| incomplete_body())
    }
}

/// The deadline for the next bytes of a body of which `received` bytes have arrived since `since`.
pub(crate) fn due(since: Instant, received: u64) -> Instant {
    let at_rate = since + TIMEOUT + Duration::from_millis(received * 1_000 / MIN_RATE);
    at_rate.min(Instant::now() + TIMEOUT)
}

/// The new capacity of a buffer that is too small: the body's length where it is known. Otherwise it grows in few,
/// large steps, because each step leaves a buffer behind, and memory that is never written to costs nothing.
fn buffer_capacity(needed: usize, declared: usize, limit: usize) -> usize {
    const SMALL: usize = 256 << 10;
    match needed {
        _ if needed <= declared => declared,
        ..=SMALL => SMALL,
        _ => needed.saturating_mul(8).min(limit),
    }
}

fn too_large(limit: usize) -> Error {
    let text = format!("the body is larger than {limit} bytes; send files by url instead");
    Error::new(ErrorKind::BodyTooLarge, text).with("maxBodyBytes", limit)
}

fn too_slow() -> Error {
    let text = "the request body timed out: too few bytes arrived; send it again";
    Error::new(ErrorKind::DeadlineExceeded, text)
}

pub(crate) fn incomplete_body() -> Error {
    Error::new(ErrorKind::Parse, "the body ended before it was complete; send it again")
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use engine::MemoryBudget;
    use futures_util::{StreamExt as _, stream};

    use super::*;

    /// A body of `pieces` frames, one every five seconds.
    fn slow(piece: &'static [u8], pieces: usize) -> Body {
        Body::from_stream(stream::repeat(piece).take(pieces).then(|piece| async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            Ok::<_, Infallible>(Bytes::from_static(piece))
        }))
    }

    #[tokio::test(start_paused = true)]
    async fn body_below_minimum_rate_times_out() {
        let started = Instant::now();
        let memory = MemoryBudget::new(1 << 30).begin();
        let trickled = read(slow(b"x", 1_000), 1 << 20, &memory).await;
        assert_eq!(trickled.unwrap_err().kind, ErrorKind::DeadlineExceeded);
        assert_eq!(started.elapsed(), TIMEOUT);
        let whole = read(slow(&[b'x'; 100 << 10], 100), 16 << 20, &memory).await.unwrap();
        assert_eq!(whole.len(), 100 * (100 << 10));
    }
}
