//! What the messages of the requests are, as data, and a good message of each.
//!
//! Every usual field stands in a good message, so that whatever is changed is the only thing wrong. Deliberately not
//! here: which values are wrong (`values.rs`), and what the methods are (`methods.rs`).

use super::case::Reason;
use super::wire::{bytes, double, int};

/// Stands for a name nobody has used. It is replaced when a request is sent, by one of the same length.
pub(crate) const NEW: &str = "new-0000000000";

/// A field of a message.
#[derive(Clone, Copy)]
pub(crate) struct Field {
    pub(crate) number: u32,
    /// As the server calls it: its name in JSON.
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) need: Need,
    /// Whether it stands in a request that is about something else.
    pub(crate) usual: bool,
    /// Why every request is refused that has it.
    pub(crate) unwanted: Option<Reason>,
}

/// What becomes of a message without the field.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// The field is what is wrong.
    Required,
    /// The message around it is: the field is one of several that could stand there.
    Content,
    Optional,
}

/// What a field holds. Texts are samples, in which `$TASK` is a task that is over and `$NEW` a name nobody has used.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Any text, however long.
    Content(&'static str),
    /// Any text that is not very long.
    Text(&'static str),
    /// Any text that is not empty.
    Filled(&'static str),
    /// A name of one's own: any text that is neither empty nor long.
    Name(&'static str),
    /// A task; one that is not there is refused for this reason.
    Task(Reason),
    /// A task as 0.3 calls it: `tasks/{task}`.
    TaskName(Reason),
    /// A webhook as 0.3 calls it: `tasks/{task}/pushNotificationConfigs/{config}`.
    ConfigName(Reason),
    /// The webhook's name in itself, which may be left out.
    OwnConfigName,
    /// A place in a list, as the server handed it out.
    Token,
    Tenant,
    Url,
    /// Any number, with a sample.
    Number(i64),
    /// A number of things, with a sample.
    Count(i64),
    PageSize,
    Flag,
    /// One of a closed set of numbers, up to this one; whether none of them may be said.
    Word {
        last: i64,
        zero: bool,
    },
    Message(&'static [Field]),
    /// At least one part, each of one of these forms.
    Parts(&'static [&'static [Field]]),
    /// A list of texts.
    Texts(&'static str),
    /// A list of texts that are not empty.
    Names(&'static str),
    /// Any object.
    Object,
    /// Any object, in which a skill may be named.
    RequestObject,
    /// Any value.
    Value,
    Bytes,
    Time,
}

/// The fields of a point in time.
pub(crate) const TIME: &[Field] =
    &[may(1, "seconds", Kind::Number(1_767_322_800)), may(2, "nanos", Kind::Number(5))];

pub(crate) const fn may(number: u32, name: &'static str, kind: Kind) -> Field {
    Field { number, name, kind, need: Need::Optional, usual: true, unwanted: None }
}

pub(crate) const fn need(number: u32, name: &'static str, kind: Kind) -> Field {
    Field { need: Need::Required, ..may(number, name, kind) }
}

/// A field that is one of several contents.
pub(crate) const fn content(number: u32, name: &'static str, kind: Kind) -> Field {
    Field { need: Need::Content, ..may(number, name, kind) }
}

/// A field that stands only in requests that are about it.
pub(crate) const fn rare(number: u32, name: &'static str, kind: Kind) -> Field {
    Field { usual: false, ..may(number, name, kind) }
}

impl Field {
    /// Whether it may stand several times.
    pub(crate) fn repeated(&self) -> bool {
        matches!(self.kind, Kind::Parts(_) | Kind::Texts(_) | Kind::Names(_))
    }

    /// Whether its payload is a number.
    pub(crate) fn is_number(&self) -> bool {
        matches!(
            self.kind,
            Kind::Number(_) | Kind::Count(_) | Kind::PageSize | Kind::Flag | Kind::Word { .. }
        )
    }

    /// Whether its payload is a text.
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

/// A good message with all usual fields but one.
pub(crate) fn message_but(fields: &[Field], without: Option<u32>, task: &str) -> Vec<u8> {
    let usual = fields.iter().filter(|field| field.usual && Some(field.number) != without);
    usual.flat_map(|field| value(field, task)).collect()
}

/// A good message.
pub(crate) fn message(fields: &[Field], task: &str) -> Vec<u8> {
    message_but(fields, None, task)
}

/// A field with a good value.
pub(crate) fn value(field: &Field, task: &str) -> Vec<u8> {
    let number = field.number;
    match field.kind {
        Kind::Number(sample) | Kind::Count(sample) => int(number, sample),
        Kind::PageSize => int(number, 10),
        Kind::Flag | Kind::Word { .. } => int(number, 1),
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

/// A text with the names that stand for others.
pub(crate) fn filled(text: &str, task: &str) -> String {
    text.replace("$TASK", task).replace("$NEW", NEW)
}

/// A good text of a kind that is one.
pub(crate) fn sample(kind: Kind) -> &'static str {
    match kind {
        Kind::Content(sample)
        | Kind::Text(sample)
        | Kind::Filled(sample)
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
