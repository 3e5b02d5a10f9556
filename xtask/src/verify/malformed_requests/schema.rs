//! The parameters of a method as data, and the text of a request with one change.
//!
//! A request is generated from its description with every usual member, so that the change is the only fault.
//! Deliberately not here: invalid values (`values.rs`), and the methods (`methods.rs`).

use std::fmt::Write as _;

#[derive(Clone, Copy)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) need: Need,
    /// A valid value as JSON text, if the kind does not provide one.
    sample: &'static str,
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
    /// A task id; an unknown one is refused with this code.
    Task {
        absent: i64,
        digits: bool,
    },
    /// A task id chosen by the client.
    OwnTask,
    /// A tenant; there is only one.
    Tenant,
    /// A value that the path also has: the same value, or absent.
    FromPath,
    /// A non-empty string.
    NonEmpty,
    Text,
    /// A skill of the agent.
    Skill,
    /// A page token issued by the server.
    Token,
    Texts,
    /// A list of non-empty strings.
    Names,
    /// One scheme, or a list of schemes.
    Schemes,
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
    /// Any value; only objects in the older generations.
    Data {
        any: bool,
    },
    Base64,
    Url,
    Object(&'static [Field]),
    /// A non-empty list of parts, each of one of these forms.
    Parts(&'static [&'static [Field]]),
}

/// A fixed set of values.
pub(crate) struct EnumValues {
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
    /// Renames the member.
    Rename(String),
    /// Repeats the member, with this value first.
    Twice(String),
    /// Repeats the member, with this value last.
    Again(String),
    /// Adds a member to the object at the location.
    Add(String),
}

pub(crate) const fn need(name: &'static str, kind: Kind, sample: &'static str) -> Field {
    Field { name, kind, need: Need::Required, sample, in_valid_requests: true }
}

/// A member that is one of several alternatives.
pub(crate) const fn content(name: &'static str, kind: Kind, sample: &'static str) -> Field {
    Field { name, kind, need: Need::Content, sample, in_valid_requests: true }
}

pub(crate) const fn may(name: &'static str, kind: Kind, sample: &'static str) -> Field {
    Field { name, kind, need: Need::Optional, sample, in_valid_requests: true }
}

/// A member that is present only in requests that test it.
pub(crate) const fn rare(name: &'static str, kind: Kind, sample: &'static str) -> Field {
    Field { name, kind, need: Need::Optional, sample, in_valid_requests: false }
}

impl Field {
    /// A valid value as JSON text.
    pub(crate) fn good(&self) -> String {
        value(self, None)
    }
}

/// The parameters with one change, or none.
pub(crate) fn params(fields: &[Field], change: Option<(&[Step], &Edit)>) -> String {
    let mut out = String::new();
    write_object(&mut out, fields, change);
    out
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

fn write_object(out: &mut String, fields: &[Field], change: Option<(&[Step], &Edit)>) {
    out.push('{');
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
    out.push_str(&members.join(","));
    out.push('}');
}

fn changed_member(field: &Field, rest: &[Step], edit: &Edit) -> Option<String> {
    match (rest, edit) {
        ([], Edit::Put(text)) => Some(member(field.name, text)),
        ([], Edit::Remove) => None,
        ([], Edit::Rename(name)) => Some(member(name, &value(field, None))),
        ([], Edit::Twice(first)) => {
            Some(format!("{},{}", member(field.name, first), member(field.name, &value(field, None))))
        }
        ([], Edit::Again(last)) => {
            Some(format!("{},{}", member(field.name, &value(field, None)), member(field.name, last)))
        }
        _ => Some(member(field.name, &value(field, Some((rest, edit))))),
    }
}

fn member(name: &str, value: &str) -> String {
    format!("\"{name}\":{value}")
}

fn value(field: &Field, change: Option<(&[Step], &Edit)>) -> String {
    let mut out = String::new();
    match (field.kind, change) {
        (Kind::Object(fields), _) => write_object(&mut out, fields, change),
        (Kind::Parts(_), Some(([Step::Element(form), rest @ ..], edit))) => {
            out.push('[');
            write_object(&mut out, form, Some((rest, edit)));
            out.push(']');
        }
        (Kind::Parts(forms), _) => {
            out.push('[');
            write_object(&mut out, forms[0], None);
            out.push(']');
        }
        _ => out.push_str(field.sample),
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const PART: &[Field] = &[content("raw", Kind::Base64, r#""aGk=""#)];
    const FIELDS: &[Field] = &[
        need("id", Kind::NonEmpty, r#""i""#),
        rare("push", Kind::Object(&[need("url", Kind::Url, r#""u""#)]), ""),
        need("parts", Kind::Parts(&[PART]), ""),
    ];

    fn changed(location: &[Step], edit: &Edit) -> String {
        params(FIELDS, Some((location, edit)))
    }

    #[test]
    fn change_affects_one_member_only() {
        let put = || Edit::Put("5".to_owned());
        assert_eq!(params(FIELDS, None), r#"{"id":"i","parts":[{"raw":"aGk="}]}"#);
        assert_eq!(changed(&[Step::Member("id")], &Edit::Remove), r#"{"parts":[{"raw":"aGk="}]}"#);
        assert_eq!(
            changed(&[Step::Member("push"), Step::Member("url")], &put()),
            r#"{"id":"i","push":{"url":5},"parts":[{"raw":"aGk="}]}"#
        );
        let raw = [Step::Member("parts"), Step::Element(PART), Step::Member("raw")];
        assert_eq!(changed(&raw, &put()), r#"{"id":"i","parts":[{"raw":5}]}"#);
        assert_eq!(path(&raw), "parts[0].raw");
        assert_eq!(
            changed(&raw[..2], &Edit::Add("\"x\":1".into())),
            r#"{"id":"i","parts":[{"raw":"aGk=","x":1}]}"#
        );
    }

    #[test]
    fn names_have_two_spellings() {
        assert_eq!(snake("pushNotificationConfigId"), "push_notification_config_id");
    }
}
