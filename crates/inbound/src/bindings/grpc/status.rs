//! The status of a call: `grpc-status`, its message and its details, sent in trailers or, if nothing was sent before,
//! in the response headers (trailers-only).

use std::borrow::Cow;

use axum::{body::Body, response::Response};
use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use protocol::{
    Error, ErrorTable, Timestamp, Violation,
    error::GrpcStatus,
    grpc::{Service, encode_status},
};

use super::reply;

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/grpc");

/// Clients accept at most 8 KiB of headers, so longer texts are truncated, the details first. Bytes.
const MAX_MESSAGE: usize = 768;
const MAX_DETAILS: usize = 3_072;
/// Limits on truncated details: bytes of a text, and number of violations and of facts.
const MAX_TEXT: usize = 120;
const MAX_FACTS: usize = 5;

/// Why a call failed, and the status where the gRPC specification prescribes one.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) error: Error,
    pub(super) code: Option<GrpcStatus>,
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self { error, code: None }
    }
}

/// Encodes statuses for one service (which decides the texts) by one edition of the error table.
#[derive(Clone, Copy, Debug)]
pub(super) struct StatusWriter {
    pub(super) service: Service,
    pub(super) errors: ErrorTable,
}

impl StatusWriter {
    /// Trailers of a call that succeeded.
    pub(super) fn ok() -> HeaderMap {
        let mut trailers = HeaderMap::with_capacity(2);
        trailers.insert(STATUS, HeaderValue::from_static("0"));
        trailers
    }

    /// Trailers of a call that failed.
    pub(super) fn error_trailers(self, refusal: &Refusal, now: Timestamp) -> HeaderMap {
        let table = self.service.errors(self.errors);
        let code = refusal.code.unwrap_or_else(|| refusal.error.kind.row().grpc_of(table));
        let mut error = self.with_service_message(&refusal.error);
        let mut details = encode_status(&error, code as i32, now);
        if details.len() > MAX_DETAILS {
            error = Cow::Owned(shortened(&error));
            details = encode_status(&error, code as i32, now);
        }
        let mut trailers = HeaderMap::with_capacity(4);
        trailers.insert(STATUS, HeaderValue::from(code as i32));
        for (name, value) in [(MESSAGE, escape(&error.message)), (DETAILS, STANDARD_NO_PAD.encode(details))] {
            if let Ok(value) = HeaderValue::try_from(value) {
                trailers.insert(name, value);
            }
        }
        trailers
    }

    /// A response that holds only an error status.
    pub(super) fn error_response(self, refusal: &Refusal, now: Timestamp) -> Response {
        let mut response = response_with(reply::empty_body());
        response.headers_mut().extend(self.error_trailers(refusal, now));
        response
    }

    /// The error with the message of this service: before 1.0 it begins with the version's fixed text. The details
    /// repeat the message exactly as sent, because clients compare the two.
    fn with_service_message(self, error: &Error) -> Cow<'_, Error> {
        let message = match self.service {
            Service::V1 => Cow::Borrowed(error.message.as_str()),
            Service::V03 => legacy_message(error),
        };
        match shorten(&message, MAX_MESSAGE) {
            Cow::Borrowed(same) if same == error.message => Cow::Borrowed(error),
            message => Cow::Owned(Error { message: message.into_owned(), ..error.clone() }),
        }
    }
}

/// A gRPC response with this body and no status yet.
pub(super) fn response_with(body: Body) -> Response {
    let mut response = Response::new(body);
    response.headers_mut().insert(header::CONTENT_TYPE, CONTENT_TYPE);
    response
}

fn legacy_message(error: &Error) -> Cow<'_, str> {
    let fixed = error.kind.row().legacy_message;
    let own = error.message.as_str();
    let repeated = own.get(..fixed.len()).is_some_and(|start| start.eq_ignore_ascii_case(fixed));
    let rest = if repeated { own[fixed.len()..].trim_start_matches([':', ' ']) } else { own };
    if rest.is_empty() { Cow::Borrowed(fixed) } else { Cow::Owned(format!("{fixed}: {rest}")) }
}

/// The error with fewer and shorter details.
fn shortened(error: &Error) -> Error {
    let short = |text: &str| shorten(text, MAX_TEXT).into_owned();
    let violation = |one: &Violation| Violation::new(short(&one.field), short(&one.problem));
    Error {
        violations: error.violations.iter().take(MAX_FACTS).map(violation).collect(),
        facts: error.facts.iter().take(MAX_FACTS).map(|(name, value)| (*name, short(value))).collect(),
        ..error.clone()
    }
}

/// Truncates a text to `most` bytes.
fn shorten(text: &str, most: usize) -> Cow<'_, str> {
    const MORE: &str = "…";
    if text.len() <= most {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(most - MORE.len());
    Cow::Owned(format!("{}{MORE}", &text[..end]))
}

/// Percent-encodes a text as gRPC requires for `grpc-message`.
fn escape(text: &str) -> String {
    const ESCAPED: &AsciiSet = &CONTROLS.add(b'%');
    utf8_percent_encode(text, ESCAPED).to_string()
}

#[cfg(test)]
mod tests {
    use protocol::ErrorKind;

    use super::*;

    fn trailers(service: Service, error: Error) -> HeaderMap {
        let status_writer = StatusWriter { service, errors: ErrorTable::V1_0_1 };
        status_writer.error_trailers(&error.into(), Timestamp::from_millis(0))
    }

    #[test]
    fn messages_are_percent_encoded() {
        assert_eq!(escape("100 % of \"ä\"\n"), "100 %25 of \"%C3%A4\"%0A");
    }

    #[test]
    fn v03_service_uses_its_own_messages_and_statuses() {
        let unsupported = || Error::new(ErrorKind::UnsupportedOperation, "not here");
        let (new, old) = (trailers(Service::V1, unsupported()), trailers(Service::V03, unsupported()));
        assert_eq!((&new[STATUS], &new[MESSAGE]), (&"9".parse().unwrap(), &"not here".parse().unwrap()));
        assert_eq!(old[STATUS], "12");
        assert_eq!(old[MESSAGE], "This operation is not supported: not here");
        let error = Error::task_not_found(&"t-1".into());
        assert_eq!(trailers(Service::V03, error)[MESSAGE], "Task not found: t-1");
        assert_eq!(legacy_message(&Error::new(ErrorKind::TaskNotFound, "task not found")), "Task not found");
    }

    #[test]
    fn long_texts_are_truncated() {
        let long = "é".repeat(10_000);
        let mut error = Error::new(ErrorKind::InvalidParams, long.clone()).with("taskId", &long);
        error.violations = vec![Violation::new(&long, &long); 100];
        let trailers = trailers(Service::V1, error);
        let size: usize = trailers.values().map(HeaderValue::len).sum();
        assert!(size < 7_000, "{size}");
        assert!(trailers[MESSAGE].to_str().unwrap().ends_with("%E2%80%A6"));
    }
}
