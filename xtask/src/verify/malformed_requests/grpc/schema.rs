//! The request messages as data, and a valid message of each.
//!
//! Every usual field is present in a valid message, so that the change is the only fault. Deliberately not here:
//! invalid values (`values.rs`), and the methods (`methods.rs`).

use super::case::Reason;
use super::wire::{bytes, double, int};

/// Placeholder for an unused name; replaced when a request is sent, by one of the same length.
pub(crate) const NEW: &str = "new-0000000000";

#[derive(Clone, Copy)]
pub(crate) struct Field {
    pub(crate) number: u32,
    /// Its name in the server's errors, which is the JSON name.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) need: Need,
    /// Whether it is present in requests that test other fields.
    pub(crate) in_valid_requests: bool,
    /// Why every request with this field is refused.
    pub(crate) always_refused: Option<Reason>,
}

/// The effect of omitting the field.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// The field is reported as faulty.
    Required,
    /// The enclosing message is reported: the field is one of several alternatives.
    Content,
    Optional,
}

/// The type and constraints of a field. Strings are samples, in which `$TASK` is a task that has ended and `$NEW`
/// an unused name.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Any string of any length.
    Content(&'static str),
    /// Any string of limited length.
    Text(&'static str),
    /// Any non-empty string.
    NonEmpty(&'static str),
    /// A name chosen by the client: non-empty and of limited length.
    Name(&'static str),
    /// A task id; an unknown one is refused for this reason.
    Task(Reason),
    /// A task name of 0.3: `tasks/{task}`.
    TaskName(Reason),
    /// A webhook name of 0.3: `tasks/{task}/pushNotificationConfigs/{config}`.
    ConfigName(Reason),
    /// The webhook's own name, which is optional.
    OwnConfigName,
    /// A page token issued by the server.
    Token,
    Tenant,
    Url,
    /// Any number, with a sample.
    Number(i64),
    /// A count, with a sample.
    Count(i64),
    PageSize,
    Flag,
    /// An enum with values up to `last`; `zero` if the unspecified value is accepted.
    Enum {
        last: i64,
        zero: bool,
    },
    Message(&'static [Field]),
    /// A non-empty list of parts, each of one of these forms.
    Parts(&'static [&'static [Field]]),
    /// A list of strings.
    Texts(&'static str),
    /// A list of non-empty strings.
    Names(&'static str),
    /// Any object.
    Object,
    /// Any object; it may name a skill.
    RequestObject,
    /// Any value.
    Value,
    Bytes,
    Time,
}

/// The fields of a timestamp.
pub(crate) const TIME: &[Field] =
    &[may(1, "seconds", Kind::Number(1_767_322_800)), may(2, "nanos", Kind::Number(5))];

pub(crate) const fn may(number: u32, name: &'static str, kind: Kind) -> Field {
    Field { number, name, kind, need: Need::Optional, in_valid_requests: true, always_refused: None }
}

pub(crate) const fn need(number: u32, name: &'static str, kind: Kind) -> Field {
    Field { need: Need::Required, ..may(number, name, kind) }
}

/// A field that is one of several alternatives.
pub(crate) const fn content(number: u32, name: &'static str, kind: Kind) -> Field {
    Field { need: Need::Content, ..may(number, name, kind) }
}

/// A field that is present only in requests that test it.
pub(crate) const fn rare(number: u32, name: &'static str, kind: Kind) -> Field {
    Field { in_valid_requests: false, ..may(number, name, kind) }
}

impl Field {
    /// Whether it may occur several times.
    pub(crate) fn repeated(&self) -> bool {
        matches!(self.kind, Kind::Parts(_) | Kind::Texts(_) | Kind::Names(_))
    }

    /// Whether its payload is a number.
    pub(crate) fn is_number(&self) -> bool {
        matches!(
            self.kind,
            Kind::Number(_) | Kind::Count(_) | Kind::PageSize | Kind::Flag | Kind::Enum { .. }
        )
    }

    /// Whether its payload is a string.
    pub(crate) fn is_text(&self) -> bool {
        !self.is_number()
            && !matches!(
                self.kind,
                Kind::Message(_)
                    | Kind::Parts(_)
                    | Kind::Object
                    | Kind::RequestObject
                    | Kind::Value
                    | Kind::Bytes
                    | Kind::Time
            )
    }
}

/// A valid message with all usual fields except one.
pub(crate) fn message_but(fields: &[Field], without: Option<u32>, task: &str) -> Vec<u8> {
    let in_valid_requests =
        fields.iter().filter(|field| field.in_valid_requests && Some(field.number) != without);
    in_valid_requests.flat_map(|field| value(field, task)).collect()
}

pub(crate) fn message(fields: &[Field], task: &str) -> Vec<u8> {
    message_but(fields, None, task)
}

/// A field with a valid value.
pub(crate) fn value(field: &Field, task: &str) -> Vec<u8> {
    let number = field.number;
    match field.kind {
        Kind::Number(sample) | Kind::Count(sample) => int(number, sample),
        Kind::PageSize => int(number, 10),
        Kind::Flag | Kind::Enum { .. } => int(number, 1),
        Kind::Message(fields) => bytes(number, message(fields, task)),
        Kind::Parts(forms) => bytes(number, message(forms.first().copied().unwrap_or_default(), task)),
        Kind::Time => bytes(number, message(TIME, task)),
        Kind::Object | Kind::RequestObject => bytes(number, entry("k", double(2, 1.0))),
        Kind::Value => bytes(number, double(2, 1.0)),
        Kind::Bytes => bytes(number, "aGk="),
        _ => bytes(number, filled(sample(field.kind), task)),
    }
}

/// One member of an object.
pub(crate) fn entry(name: impl AsRef<[u8]>, value: Vec<u8>) -> Vec<u8> {
    bytes(1, [bytes(1, name), bytes(2, value)].concat())
}

/// Replaces the placeholders of a string.
pub(crate) fn filled(text: &str, task: &str) -> String {
    text.replace("$TASK", task).replace("$NEW", NEW)
}

/// The sample string of a kind.
pub(crate) fn sample(kind: Kind) -> &'static str {
    match kind {
        Kind::Content(sample)
        | Kind::Text(sample)
        | Kind::NonEmpty(sample)
        | Kind::Name(sample)
        | Kind::Texts(sample)
        | Kind::Names(sample) => sample,
        Kind::Task(_) => "$TASK",
        Kind::TaskName(_) => "tasks/$TASK",
        Kind::ConfigName(_) | Kind::OwnConfigName => "tasks/$TASK/pushNotificationConfigs/c-1",
        Kind::Tenant => "default/echo",
        Kind::Url => "https://hooks.example/a",
        _ => "",
    }
}
