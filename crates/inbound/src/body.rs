//! Reading a request's body, bounded in size, memory and time.
//!
//! What is refused is not read to its end here: the connection discards the rest, see `listen/connection_io.rs`.

use std::time::Duration;

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use engine::Reservation;
use http::{HeaderMap, header};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Frame};
use protocol::{Dialect, Error, ErrorKind, ErrorTable, error::in_short};
use tokio::time::Instant;

/// How long the next bytes of a body may take.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes a second that a body has to arrive at beyond that: a trickle would hold memory for ever.
const MIN_RATE: u64 = 16 << 10;

/// JSON, or nothing said about it.
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
    let shown = in_short(essence);
    let text = format!("Content-Type {shown:?} is not served here; send application/json");
    let kind = match (dialect, errors) {
        // As the kit for 1.0.0 reads it: there is one error for bodies and for parts of a type that nobody takes.
        (Dialect::V1, ErrorTable::V1_0_0) => ErrorKind::ContentTypeNotSupported,
        _ => ErrorKind::UnsupportedMediaType,
    };
    Err(Error::new(kind, text))
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
pub(crate) async fn read(mut body: Body, limit: usize, memory: &Reservation) -> Result<Bytes, Error> {
    let declared = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if declared > limit {
        return Err(too_large(limit));
    }
    memory.reserve_body(declared as u64)?;
    let mut whole = BytesMut::new();
    let mut first = Bytes::new();
    let pace = Pace::begin();
    while let Some(frame) = pace.next(&mut body, first.len() + whole.len()).await? {
        let Ok(data) = frame.into_data() else { continue };
        let length = first.len() + whole.len() + data.len();
        if length > limit {
            return Err(too_large(limit));
        }
        if length > declared {
            memory.reserve_body(data.len() as u64)?;
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

/// How fast a body comes.
pub(crate) struct Pace(Instant);

impl Pace {
    /// From now on.
    pub(crate) fn begin() -> Self {
        Self(Instant::now())
    }

    /// The next piece of a body of which so many bytes have come, if it comes in time.
    pub(crate) async fn next(&self, body: &mut Body, come: usize) -> Result<Option<Frame<Bytes>>, Error> {
        let due = due(self.0, come as u64);
        let frame = tokio::time::timeout_at(due, body.frame()).await.map_err(|_| too_slow())?;
        frame.transpose().map_err(|_| cut_off())
    }
}

/// When the next bytes of a body have to arrive of which so many have arrived since a time.
pub(crate) fn due(since: Instant, received: u64) -> Instant {
    let at_rate = since + TIMEOUT + Duration::from_millis(received * 1_000 / MIN_RATE);
    at_rate.min(Instant::now() + TIMEOUT)
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

fn too_large(limit: usize) -> Error {
    let text = format!("the body is larger than {limit} bytes; send files by url instead");
    Error::new(ErrorKind::BodyTooLarge, text).with("maxBodyBytes", limit)
}

fn too_slow() -> Error {
    let text = "the request body timed out: too few bytes arrived; send it again";
    Error::new(ErrorKind::DeadlineExceeded, text)
}

pub(crate) fn cut_off() -> Error {
    Error::new(ErrorKind::Parse, "the body ended before it was complete; send it again")
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use engine::MemoryBudget;
    use futures_util::{StreamExt as _, stream};

    use super::*;

    /// A body of so many pieces, one every five seconds.
    fn slow(piece: &'static [u8], pieces: usize) -> Body {
        Body::from_stream(stream::repeat(piece).take(pieces).then(|piece| async {
            tokio::time::sleep(Duration::from_secs(5)).await;
            Ok::<_, Infallible>(Bytes::from_static(piece))
        }))
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_dribbles_is_given_up_and_one_that_is_slow_is_not() {
        let started = Instant::now();
        let memory = MemoryBudget::new(1 << 30).begin();
        let dribbled = read(slow(b"x", 1_000), 1 << 20, &memory).await;
        assert_eq!(dribbled.unwrap_err().kind, ErrorKind::DeadlineExceeded);
        assert_eq!(started.elapsed(), TIMEOUT);
        let whole = read(slow(&[b'x'; 100 << 10], 100), 16 << 20, &memory).await.unwrap();
        assert_eq!(whole.len(), 100 * (100 << 10));
    }
}
