//! Headers with facts about a call, and the headers that a configuration cannot set (pure).

use http::{HeaderMap, HeaderName, HeaderValue};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use protocol::TraceContext;

use crate::backend::Call;

/// What a header value cannot contain, and the percent sign, so that every text can be read back.
const ENCODED: &AsciiSet = &CONTROLS.add(b'%');

/// Headers that the connection, the dialler or [`CallFacts`] sets.
const OWN_HEADERS: [&str; 18] = [
    "a2ad-attempt",
    "a2ad-context",
    "a2ad-skill",
    "a2ad-task",
    "connection",
    "content-length",
    "expect",
    "host",
    "idempotency-key",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "traceparent",
    "tracestate",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Whether a header is set by the server, so that neither a configuration nor a document nor an argument sets it.
pub(crate) fn is_own(name: &HeaderName) -> bool {
    OWN_HEADERS.contains(&name.as_str())
}

/// A header name that a configuration may use.
pub(crate) fn header_name(name: &str) -> Result<HeaderName, String> {
    let name = HeaderName::try_from(name).map_err(|_| "not a valid header name")?;
    if is_own(&name) {
        return Err("this header is set by the server and cannot be configured".into());
    }
    Ok(name)
}

/// What each request has in its headers about its call.
#[derive(Clone, Copy, Debug)]
pub struct CallFacts<'a> {
    /// `Idempotency-Key`.
    pub idempotency_key: &'a str,
    /// `A2AD-Attempt`.
    pub attempt: u32,
    /// `A2AD-Task`.
    pub task: &'a str,
    /// `A2AD-Context`.
    pub context: &'a str,
    /// `A2AD-Skill`.
    pub skill: &'a str,
    /// `traceparent` and `tracestate`.
    pub trace: &'a TraceContext,
}

impl<'a> CallFacts<'a> {
    pub(crate) fn of(call: &'a Call<'_>) -> Self {
        Self {
            idempotency_key: call.idempotency_key(),
            attempt: call.attempt(),
            task: call.turn.task_id.as_str(),
            context: call.turn.context_id.as_str(),
            skill: call.skill,
            trace: call.trace_context(),
        }
    }

    /// Sets the headers. Ids may be any text: what a header cannot contain is percent-encoded.
    pub(crate) fn insert_into(&self, headers: &mut HeaderMap) {
        let texts = [
            ("idempotency-key", self.idempotency_key),
            ("a2ad-task", self.task),
            ("a2ad-context", self.context),
            ("a2ad-skill", self.skill),
        ];
        for (name, text) in texts {
            let encoded = utf8_percent_encode(text, ENCODED).to_string();
            let value = HeaderValue::try_from(encoded).expect("printable ASCII is a header value");
            headers.insert(HeaderName::from_static(name), value);
        }
        headers.insert(HeaderName::from_static("a2ad-attempt"), self.attempt.into());
        let trace = [
            ("traceparent", Some(self.trace.to_string())),
            ("tracestate", self.trace.state().map(str::to_owned)),
        ];
        for (name, value) in trace {
            // A valid state is printable ASCII, which a header can contain.
            if let Some(value) = value.and_then(|value| HeaderValue::try_from(value).ok()) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
    }
}
