//! The members of a request as data, for all bindings, and the JSON text of a request with one change.
//!
//! A request is generated from its description with every usual member, so that the change is the only fault.
//! Deliberately not here: invalid values (`values.rs`), the requests (`methods.rs`), and their encoding in protobuf
//! (`grpc/schema.rs`).

use std::fmt::Write as _;

use super::errors::ErrorRow;

#[derive(Clone, Copy)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    /// Its number in a protobuf message; 0 if it has none.
    pub(crate) number: u32,
    pub(crate) kind: Kind,
    pub(crate) need: Need,
    /// A valid value; empty if the kind provides one or none can be made up.
    pub(crate) sample: &'static str,
    /// Whether it is present in requests that test other members.
    pub(crate) in_valid_requests: bool,
}

/// The effect of omitting the member.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// The member is reported as faulty.
    Required,
    /// The enclosing object is reported: the member is one of several alternatives.
    Content,
    Optional,
}

/// The type and constraints of a member.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// A task id; an unknown one is refused with this error.
    Task {
        absent: &'static ErrorRow,
        digits: bool,
    },
    /// A task name in gRPC of 0.3: `tasks/{task}`.
    TaskName(&'static ErrorRow),
    /// A webhook name in gRPC of 0.3: `tasks/{task}/pushNotificationConfigs/{config}`.
    ConfigName(&'static ErrorRow),
    /// The webhook's own name, which is optional.
    OwnConfigName,
    /// A task id chosen by the client.
    OwnTask,
    /// A tenant; there is only one.
    Tenant,
    /// A value that the path also has: the same value, or absent.
    FromPath,
    /// A non-empty string.
    NonEmpty,
    /// A name chosen by the client, of limited length; non-empty if it is required.
    Name,
    /// Any string of limited length.
    Text,
    /// Any string of any length.
    Content,
    /// A skill of the agent.
    Skill,
    /// A page token issued by the server.
    Token,
    Texts,
    /// A list of non-empty strings.
    Names,
    /// A list of schemes; in JSON also one scheme.
    Schemes,
    /// Any number.
    Number,
    Count,
    PageSize,
    Flag,
    /// A timestamp; the older generations allow it without a time zone.
    Time {
        zone: bool,
    },
    /// One of a fixed set of values.
    Enum(&'static EnumValues),
    /// Any object.
    Metadata,
    /// Any object; it may name a skill.
    RequestMetadata,
    /// Any value.
    Value,
    /// Any value; an object in protobuf.
    Struct,
    /// An object; other values are treated as wrapped in one.
    Data,
    Base64,
    Url,
    Object(&'static [Field]),
    /// A non-empty list of parts, each of one of these forms.
    Parts(&'static [&'static [Field]]),
}

/// A fixed set of values.
pub(crate) struct EnumValues {
    /// The last number of a protobuf enum.
    pub(crate) last: i64,
    /// Other spellings and types that are accepted too.
    pub(crate) accepted: &'static [&'static str],
    pub(crate) wrong: &'static [&'static str],
}

/// One step from the parameters to a value.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    Member(&'static str),
    /// The first element of a list of parts, of this form.
    Element(&'static [Field]),
}

/// A change at a location.
#[derive(Clone)]
pub(crate) enum Edit {
    /// Replaces the value.
    Put(String),
    Remove,
    /// Repeats the member, with this value last.
    Again(String),
    /// Adds a member to the object at the location.
    Add(String),
}

pub(crate) const fn may(name: &'static str, kind: Kind, sample: &'static str) -> Field {
    Field { name, number: 0, kind, need: Need::Optional, sample, in_valid_requests: true }
}

pub(crate) const fn need(name: &'static str, kind: Kind, sample: &'static str) -> Field {
    Field { need: Need::Required, ..may(name, kind, sample) }
}

/// A member that is one of several alternatives.
pub(crate) const fn content(name: &'static str, kind: Kind, sample: &'static str) -> Field {
    Field { need: Need::Content, ..may(name, kind, sample) }
}

/// A member that is present only in requests that test it.
pub(crate) const fn rare(name: &'static str, kind: Kind, sample: &'static str) -> Field {
    Field { in_valid_requests: false, ..may(name, kind, sample) }
}

impl Field {
    /// The same member with this number.
    pub(crate) const fn at(self, number: u32) -> Self {
        Self { number, ..self }
    }

    /// A valid value as JSON text.
    pub(crate) fn good(&self) -> String {
        value(self, None)
    }
}

/// The parameters with one change, or none.
pub(crate) fn params(fields: &[Field], change: Option<(&[Step], &Edit)>) -> String {
    let mut members = Vec::new();
    for field in fields {
        match change {
            Some(([Step::Member(name), rest @ ..], edit)) if *name == field.name => {
                members.extend(changed_member(field, rest, edit));
            }
            _ if field.in_valid_requests => members.push(member(field.name, &value(field, None))),
            _ => {}
        }
    }
    if let Some(([], Edit::Add(further))) = change {
        members.push(further.clone());
    }
    format!("{{{}}}", members.join(","))
}

/// A location in the notation of the server's errors.
pub(crate) fn path(location: &[Step]) -> String {
    let mut out = String::new();
    for step in location {
        match step {
            Step::Member(name) if out.is_empty() => out.push_str(name),
            Step::Member(name) => write!(out, ".{name}").expect("writing to a string cannot fail"),
            Step::Element(_) => out.push_str("[0]"),
        }
    }
    out
}

/// The name in snake case.
pub(crate) fn snake(name: &str) -> String {
    let mut out = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}

fn changed_member(field: &Field, rest: &[Step], edit: &Edit) -> Option<String> {
    let good = || member(field.name, &field.good());
    let changed = match (rest, edit) {
        ([], Edit::Remove) => return None,
        ([], Edit::Put(text)) => member(field.name, text),
        ([], Edit::Again(last)) => format!("{},{}", good(), member(field.name, last)),
        _ => member(field.name, &value(field, Some((rest, edit)))),
    };
    Some(changed)
}

fn member(name: &str, value: &str) -> String {
    format!("\"{name}\":{value}")
}

fn value(field: &Field, change: Option<(&[Step], &Edit)>) -> String {
    match (field.kind, change) {
        (Kind::Object(fields), _) => params(fields, change),
        (Kind::Parts(_), Some(([Step::Element(form), rest @ ..], edit))) => {
            format!("[{}]", params(form, Some((rest, edit))))
        }
        (Kind::Parts(forms), _) => format!("[{}]", params(forms[0], None)),
        (Kind::Metadata | Kind::RequestMetadata | Kind::Value | Kind::Struct | Kind::Data, _) => {
            r#"{"k":1}"#.to_owned()
        }
        _ if field.sample.is_empty() => String::new(),
        (Kind::Texts | Kind::Names | Kind::Schemes, _) => format!("[\"{}\"]", field.sample),
        (Kind::Number | Kind::Count | Kind::PageSize | Kind::Flag, _) => field.sample.to_owned(),
        _ => format!("\"{}\"", field.sample),
    }
}
