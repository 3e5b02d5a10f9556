//! Whether a request is repeated, and when (pure).
//!
//! A request that may have been carried out is repeated only if its method is idempotent. POST and PATCH are repeated
//! if nothing was sent, or if the server itself asks for it with `Retry-After`.

use std::{
    hash::{DefaultHasher, Hash as _, Hasher as _},
    time::Duration,
};

use http::{HeaderMap, HeaderName, Method, StatusCode, header};
use protocol::Timestamp;

/// Maximum number of requests of one call.
const MAX_TRIES: u32 = 3;
/// The first wait without `Retry-After`; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_millis(200);
/// A server that asks for a longer wait gets no further request from this call.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(30);

/// What happened to a request.
pub(super) enum Problem {
    /// No connection.
    NotSent,
    /// No response.
    Lost,
    /// A response that is not a success.
    Status(StatusCode, Option<Duration>),
}

impl Problem {
    pub(super) fn of_response(status: StatusCode, headers: &HeaderMap) -> Self {
        Self::Status(status, retry_after(headers))
    }
}

/// How long to wait before the next request; `None`: there is none. `key` spreads the waits of different calls.
pub(super) fn wait(method: &Method, problem: &Problem, tries: u32, key: &str) -> Option<Duration> {
    let is_idempotent = method.is_idempotent();
    let (repeat, retry_after) = match problem {
        Problem::NotSent => (true, None),
        Problem::Lost => (is_idempotent, None),
        Problem::Status(status, retry_after) => {
            let passing = matches!(status.as_u16(), 408 | 425 | 429 | 502 | 503 | 504);
            let asked = matches!(status.as_u16(), 429 | 503) && retry_after.is_some();
            (passing && (is_idempotent || asked), *retry_after)
        }
    };
    let wait = retry_after.unwrap_or_else(|| backoff(tries, key));
    (repeat && tries < MAX_TRIES && wait <= MAX_RETRY_AFTER).then_some(wait)
}

/// Exponential, of which at least half.
fn backoff(tries: u32, key: &str) -> Duration {
    let full = FIRST_WAIT * 2u32.saturating_pow(tries.saturating_sub(1));
    let mut hasher = DefaultHasher::new();
    (key, tries).hash(&mut hasher);
    let share = u32::try_from(hasher.finish() % 1_000).unwrap_or_default();
    full / 2 + full / 2 * share / 1_000
}

/// Seconds, or a date, which is compared with the `Date` of the same response.
pub(super) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: HeaderName| headers.get(name)?.to_str().ok().map(str::trim);
    let after = text(header::RETRY_AFTER)?;
    if after.bytes().all(|byte| byte.is_ascii_digit()) {
        return after.parse().ok().map(Duration::from_secs);
    }
    let date = |text: &str| Timestamp::parse_http_date(text).map(Timestamp::as_millis);
    let millis = date(after)? - date(text(header::DATE)?)?;
    Some(Duration::from_millis(millis.try_into().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(rows: &[(&'static str, &'static str)]) -> HeaderMap {
        rows.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let date = ("date", "Fri, 02 Jan 2026 03:04:05 GMT");
        let cases = [
            (vec![], None),
            (vec![("retry-after", "7")], Some(7)),
            (vec![("retry-after", " 0 ")], Some(0)),
            (vec![("retry-after", "-1")], None),
            (vec![("retry-after", "99999999999999999999")], None),
            (vec![("retry-after", "soon")], None),
            (vec![date, ("retry-after", "Fri, 02 Jan 2026 03:04:25 GMT")], Some(20)),
            (vec![date, ("retry-after", "Fri, 02 Jan 2026 03:00:00 GMT")], Some(0)),
            (vec![("retry-after", "Fri, 02 Jan 2026 03:04:25 GMT")], None),
        ];
        for (rows, seconds) in cases {
            assert_eq!(retry_after(&headers(&rows)), seconds.map(Duration::from_secs), "{rows:?}");
        }
    }

    #[test]
    fn only_safe_requests_are_repeated() {
        let status = |code, after: Option<u64>| {
            Problem::Status(StatusCode::from_u16(code).unwrap(), after.map(Duration::from_secs))
        };
        let cases = [
            (Problem::NotSent, true, true),
            (Problem::Lost, false, true),
            (status(503, None), false, true),
            (status(503, Some(1)), true, true),
            (status(429, Some(1)), true, true),
            (status(429, Some(31)), false, false),
            (status(502, Some(1)), false, true),
            (status(504, None), false, true),
            (status(408, None), false, true),
            (status(425, None), false, true),
            (status(500, Some(1)), false, false),
            (status(404, None), false, false),
        ];
        for (index, (problem, post, get)) in cases.iter().enumerate() {
            for (methods, expected) in [
                (vec![Method::POST, Method::PATCH], *post),
                (vec![Method::GET, Method::HEAD, Method::PUT, Method::DELETE, Method::OPTIONS], *get),
            ] {
                for method in methods {
                    assert_eq!(wait(&method, problem, 1, "k").is_some(), expected, "case {index} {method}");
                    assert_eq!(wait(&method, problem, 3, "k"), None, "at most three requests");
                }
            }
        }
    }

    #[test]
    fn waits_grow_and_differ_between_calls() {
        for tries in [1, 2] {
            let full = FIRST_WAIT * tries;
            let waits: Vec<_> = (0..50).map(|key| backoff(tries, &key.to_string())).collect();
            assert!(waits.iter().all(|wait| (full / 2..=full).contains(wait)), "{waits:?}");
            assert!(waits.iter().any(|wait| *wait != waits[0]));
        }
    }
}
