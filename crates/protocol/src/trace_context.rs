//! W3C Trace Context: which trace a request belongs to, and which span of it has caused the request.
//!
//! Pure: random ids are parameters. A `traceparent` that is not valid is as good as none, as the standard requires; so is a
//! `tracestate` that is not, while its `traceparent` counts.

use std::{
    fmt::{self, Display, Formatter},
    sync::Arc,
};

/// The most bytes of a `tracestate` that are passed on; the standard requires at least 512.
const MAX_STATE: usize = 512;
/// The length of a `traceparent` of version 00.
const LENGTH: usize = 55;
/// The flag of traces that are recorded.
const SAMPLED: u8 = 1;
/// The flags that are passed on: sampled, and random trace id.
const KNOWN_FLAGS: u8 = 3;

/// A span of a trace. Cheap to clone. Its `Display` is a `traceparent`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    trace_id: u128,
    span_id: u64,
    flags: u8,
    state: Option<Arc<str>>,
}

impl TraceContext {
    /// The first span of a new trace, which is sampled: without a caller nobody has decided otherwise. The ids are random
    /// and not zero.
    pub fn begin(trace_id: u128, span_id: u64) -> Self {
        Self { trace_id, span_id, flags: SAMPLED, state: None }
    }

    /// The span that a `traceparent` names, with a `tracestate`; `None` if the former is not valid.
    pub fn parse(traceparent: &str, tracestate: Option<&str>) -> Option<Self> {
        let bytes = traceparent.as_bytes();
        let (head, rest) = (bytes.get(..LENGTH)?, &bytes[LENGTH..]);
        let separated = [2, 35, 52].iter().all(|at| head[*at] == b'-');
        let version = hex(&head[..2])?;
        // Later versions may have more fields.
        let is_known = match version {
            0 => rest.is_empty(),
            0xff => false,
            _ => rest.is_empty() || rest[0] == b'-',
        };
        let (trace_id, span_id) = (hex(&head[3..35])?, hex(&head[36..52])?);
        let flags = hex(&head[53..])?;
        if !separated || !is_known || trace_id == 0 || span_id == 0 {
            return None;
        }
        Some(Self {
            trace_id,
            span_id: span_id as u64,
            flags: flags as u8 & KNOWN_FLAGS,
            state: tracestate.filter(|state| is_state(state)).map(Into::into),
        })
    }

    /// A span that this one causes, in the same trace.
    #[must_use]
    pub fn child(&self, span_id: u64) -> Self {
        Self { span_id, ..self.clone() }
    }

    /// The id of the trace; 32 hexadecimal digits.
    pub fn trace_id(&self) -> u128 {
        self.trace_id
    }

    /// The id of the span; 16 hexadecimal digits.
    pub fn span_id(&self) -> u64 {
        self.span_id
    }

    /// Whether the caller records the trace, so that it should be recorded here too.
    pub fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// The `tracestate`: what systems on the way have added for themselves.
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }
}

impl Display for TraceContext {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        write!(out, "00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, self.flags)
    }
}

/// The value of lower-case hexadecimal digits, at most 32.
fn hex(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |value: u128, digit| {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(value << 4 | u128::from(digit))
    })
}

/// Whether a text is passed on as `tracestate`: members of printable ASCII, each with a key and a value.
fn is_state(text: &str) -> bool {
    let is_member = |member: &str| {
        let member = member.trim_matches([' ', '\t']);
        member.is_empty()
            || member.split_once('=').is_some_and(|(key, value)| !key.is_empty() && !value.is_empty())
    };
    !text.is_empty()
        && text.len() <= MAX_STATE
        && text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'))
        && text.split(',').all(is_member)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn valid_values_are_read_and_written() {
        let context = TraceContext::parse(PARENT, Some("a=1,b@c=2")).unwrap();
        assert_eq!(context.to_string(), PARENT);
        assert_eq!((context.state(), context.is_sampled()), (Some("a=1,b@c=2"), true));
        let child = context.child(1);
        assert_eq!(child.to_string(), "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000001-01");
        assert_eq!(child.state(), context.state());
        let not_sampled = TraceContext::parse(&PARENT.replace("-01", "-00"), None).unwrap();
        assert!(!not_sampled.is_sampled());
    }

    #[test]
    fn later_versions_may_have_more_fields_and_unknown_flags_are_dropped() {
        let read = |text: &str| TraceContext::parse(text, None).map(|context| context.to_string());
        assert_eq!(read(&format!("cc{}-what", &PARENT[2..])).as_deref(), Some(PARENT));
        assert_eq!(read(&format!("cc{}", &PARENT[2..])).as_deref(), Some(PARENT));
        assert_eq!(read(&format!("cc{}.what", &PARENT[2..])), None);
        assert!(read(&PARENT.replace("-01", "-ff")).unwrap().ends_with("-03"));
    }

    #[test]
    fn invalid_values_are_no_context() {
        let zeros = |from: usize, to: usize| {
            let mut text = PARENT.to_owned();
            text.replace_range(from..to, &"0".repeat(to - from));
            text
        };
        for text in [
            "",
            "00",
            &PARENT[..54],
            &format!("{PARENT}-x"),
            &format!("{PARENT} "),
            &PARENT.to_uppercase(),
            &format!("ff{}", &PARENT[2..]),
            &PARENT.replace('-', "_"),
            &zeros(3, 35),
            &zeros(36, 52),
            &PARENT.replace("4bf", "4bg"),
            &PARENT.replace("4bf", "ä"),
        ] {
            assert_eq!(TraceContext::parse(text, None), None, "{text}");
        }
        for state in ["", "a", "a=", "=1", "a=\u{7f}", "a=ä", &format!("a={}", "x".repeat(512))] {
            let context = TraceContext::parse(PARENT, Some(state)).unwrap();
            assert_eq!(context.state(), None, "{state}");
        }
    }
}
