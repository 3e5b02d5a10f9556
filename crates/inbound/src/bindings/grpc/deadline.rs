//! The deadline of a call, from the header `grpc-timeout`.

use std::{pin::Pin, time::Duration};

use http::{HeaderMap, HeaderName};
use protocol::{Error, ErrorKind, Violation};
use tokio::time::Instant;

const NAME: HeaderName = HeaderName::from_static("grpc-timeout");

/// When the caller stops waiting; `None` without the header.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deadline(Option<Instant>);

impl Deadline {
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, Error> {
        let Some(value) = headers.get(&NAME) else { return Ok(Self(None)) };
        let text = value.to_str().unwrap_or_default();
        let timeout = parse(text).ok_or_else(|| {
            let problem = "expected one to eight digits and one of H, M, S, m, u, n";
            Error::invalid_request(Violation::new("grpc-timeout", problem))
        })?;
        // A time that the clock cannot represent is no deadline.
        Ok(Self(Instant::now().checked_add(timeout)))
    }

    /// Runs `work` until the deadline. Then the caller drops it unfinished, so it must be cancellation safe. Taken by
    /// reference, because moving the future of a whole call copies several kilobytes.
    pub(super) async fn within<T, E: From<Error>>(
        self,
        work: Pin<&mut impl Future<Output = Result<T, E>>>,
    ) -> Result<T, E> {
        match self.0 {
            None => work.await,
            Some(deadline) => match tokio::time::timeout_at(deadline, work).await {
                Ok(done) => done,
                Err(_) => Err(deadline_exceeded().into()),
            },
        }
    }
}

fn deadline_exceeded() -> Error {
    let text =
        "the call's deadline has passed; work that was started continues, get the task or subscribe to it";
    Error::new(ErrorKind::DeadlineExceeded, text)
}

fn parse(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if !(1..=8).contains(&digits.len()) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let count: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(count * 3_600),
        "M" => Duration::from_secs(count * 60),
        "S" => Duration::from_secs(count),
        "m" => Duration::from_millis(count),
        "u" => Duration::from_micros(count),
        "n" => Duration::from_nanos(count),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_unit_is_parsed_and_other_text_is_rejected() {
        for (text, expected) in [
            ("2H", Duration::from_secs(7_200)),
            ("3M", Duration::from_secs(180)),
            ("1S", Duration::from_secs(1)),
            ("99999999m", Duration::from_millis(99_999_999)),
            ("7u", Duration::from_micros(7)),
            ("0n", Duration::ZERO),
        ] {
            assert_eq!(parse(text), Some(expected), "{text}");
        }
        for text in ["", "S", "1", "1s", "-1S", "1.5S", "123456789S", "1 S", "é", "1é"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
