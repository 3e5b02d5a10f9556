//! How long a caller waits for the result.

use std::time::Duration;

use http::{HeaderMap, request::Parts};
use protocol::{Error, Violation};

/// How long a call waits if the request does not set it.
const DEFAULT: Duration = Duration::from_secs(30);
/// The longest time that can be asked for, in seconds. `limits.wait` can make it shorter.
const MAX_SECONDS: f64 = 3_600.0;

/// The time that a request asks for: `?wait=SECONDS`, else the preferences `wait` and `respond-async` (RFC 7240). A
/// preference that cannot be understood is ignored, as the RFC requires; a query that cannot be is an error.
pub(super) fn requested(head: &Parts) -> Result<Duration, Error> {
    let query = head.uri.query().unwrap_or_default();
    match query.split('&').find_map(|pair| pair.strip_prefix("wait=")) {
        Some(text) => seconds(text).ok_or_else(|| {
            let problem = format!("expected a number of seconds from 0 to {MAX_SECONDS}");
            Error::invalid_params(Violation::new("wait", problem))
        }),
        None => Ok(preferred(&head.headers).unwrap_or(DEFAULT)),
    }
}

/// The time that `Prefer` asks for. `respond-async` alone is a request not to wait.
fn preferred(headers: &HeaderMap) -> Option<Duration> {
    let values = headers.get_all("prefer").into_iter().filter_map(|value| value.to_str().ok());
    let mut asynchronous = None;
    for preference in values.flat_map(|value| value.split([',', ';'])) {
        let (name, value) = preference.split_once('=').unwrap_or((preference, ""));
        match name.trim().to_ascii_lowercase().as_str() {
            "wait" => {
                if let Some(wait) = seconds(value.trim().trim_matches('"')) {
                    return Some(wait);
                }
            }
            "respond-async" => asynchronous = Some(Duration::ZERO),
            _ => {}
        }
    }
    asynchronous
}

fn seconds(text: &str) -> Option<Duration> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let seconds: f64 = text.parse().ok().filter(|_| is_number)?;
    (0.0..=MAX_SECONDS).contains(&seconds).then(|| Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    #[test]
    fn query_precedes_preferences_and_defaults() {
        let wait = |query: &str, prefer: &str| {
            let request = Request::builder().uri(format!("/run/x{query}")).header("prefer", prefer);
            let (head, ()) = request.body(()).unwrap().into_parts();
            requested(&head).map(|wait| wait.as_millis()).ok()
        };
        for (query, prefer, expected) in [
            ("", "", Some(30_000)),
            ("?a=b&wait=1.5", "wait=9", Some(1_500)),
            ("?wait=0", "", Some(0)),
            ("", "handling=lenient, wait=9", Some(9_000)),
            ("", "respond-async", Some(0)),
            ("", "respond-async, Wait=\"7\"", Some(7_000)),
            ("", "wait=soon", Some(30_000)),
            ("", "wait=3601", Some(30_000)),
            ("?wait=3600", "", Some(3_600_000)),
        ] {
            assert_eq!(wait(query, prefer), expected, "{query} {prefer}");
        }
        for query in
            ["?wait=", "?wait=-1", "?wait=soon", "?wait=1e3", "?wait=inf", "?wait=3600.1", "?wait=1%30"]
        {
            assert_eq!(wait(query, "wait=1"), None, "{query}");
        }
    }
}
