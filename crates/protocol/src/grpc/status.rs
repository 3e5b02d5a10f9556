//! `google.rpc.Status`: the content of the `grpc-status-details-bin` trailer of a failed call.

use std::collections::BTreeMap;

use prost::Message as _;
use prost_types::Any;

use crate::{
    Error, ErrorKind, Timestamp, Violation,
    dialect::v1::error::{BAD_REQUEST, DOMAIN, ERROR_INFO, by_reason},
};

#[derive(Clone, PartialEq, prost::Message)]
struct Status {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
    #[prost(message, repeated, tag = "3")]
    details: Vec<Any>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct ErrorInfo {
    #[prost(string, tag = "1")]
    reason: String,
    #[prost(string, tag = "2")]
    domain: String,
    #[prost(btree_map = "string, string", tag = "3")]
    metadata: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct BadRequest {
    #[prost(message, repeated, tag = "1")]
    field_violations: Vec<FieldViolation>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct FieldViolation {
    #[prost(string, tag = "1")]
    field: String,
    #[prost(string, tag = "2")]
    description: String,
}

#[derive(Clone, PartialEq, prost::Message)]
struct RetryInfo {
    #[prost(message, optional, tag = "1")]
    retry_delay: Option<prost_types::Duration>,
}

const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";

/// Writes the status: ErrorInfo first, then the invalid fields, then when to try again.
pub fn encode_status(error: &Error, code: i32, now: Timestamp) -> Vec<u8> {
    let facts = error.facts.iter().map(|(name, value)| ((*name).to_owned(), value.clone()));
    let info = ErrorInfo {
        reason: error.kind.row().reason.to_owned(),
        domain: DOMAIN.to_owned(),
        metadata: facts.chain([("timestamp".to_owned(), now.to_string())]).collect(),
    };
    let mut details = vec![any(ERROR_INFO, &info)];
    if !error.violations.is_empty() {
        let violations = error.violations.iter().map(|violation| FieldViolation {
            field: violation.field.clone(),
            description: violation.problem.clone(),
        });
        details.push(any(BAD_REQUEST, &BadRequest { field_violations: violations.collect() }));
    }
    if let Some(seconds) = error.retry_after() {
        let seconds = i64::try_from(seconds).unwrap_or(i64::MAX);
        let retry_delay = Some(prost_types::Duration { seconds, nanos: 0 });
        details.push(any(RETRY_INFO, &RetryInfo { retry_delay }));
    }
    Status { code, message: error.message.clone(), details }.encode_to_vec()
}

/// Reads the status of a failed call. The reason identifies the error, else the code. Other ErrorInfo
/// metadata is dropped. `None` if the bytes are not a status.
pub fn decode_status(bytes: &[u8]) -> Option<Error> {
    let status = Status::decode(bytes).ok()?;
    let mut kind = None;
    let mut violations = Vec::new();
    for detail in status.details {
        if detail.type_url == ERROR_INFO {
            let info = ErrorInfo::decode(&*detail.value).ok().filter(|info| info.domain == DOMAIN);
            kind = kind.or(info.and_then(|info| by_reason(&info.reason)));
        } else if detail.type_url == BAD_REQUEST {
            let request = BadRequest::decode(&*detail.value).unwrap_or_default();
            violations.extend(
                request
                    .field_violations
                    .into_iter()
                    .map(|violation| Violation { field: violation.field, problem: violation.description }),
            );
        }
    }
    let kind = kind.unwrap_or_else(|| kind_of_code(status.code));
    Some(Error { violations, ..Error::new(kind, status.message) })
}

/// The most likely error for a status code without details.
pub fn kind_of_code(code: i32) -> ErrorKind {
    match code {
        3 => ErrorKind::InvalidParams,
        4 => ErrorKind::DeadlineExceeded,
        5 => ErrorKind::TaskNotFound,
        6 => ErrorKind::MessageIdReused,
        7 => ErrorKind::PermissionDenied,
        8 => ErrorKind::RateLimited,
        9 => ErrorKind::UnsupportedOperation,
        12 => ErrorKind::MethodNotFound,
        14 => ErrorKind::Unavailable,
        16 => ErrorKind::Unauthenticated,
        _ => ErrorKind::Internal,
    }
}

fn any(type_url: &str, message: &impl prost::Message) -> Any {
    Any { type_url: type_url.to_owned(), value: message.encode_to_vec() }
}
