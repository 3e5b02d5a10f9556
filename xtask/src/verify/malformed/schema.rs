//! What a method's parameters are, as data, and the text of a request with one thing changed.
//!
//! A request is written front to back from its description with every usual member in it, so that whatever is changed
//! is the only thing wrong. Deliberately not here: which values are wrong (`values.rs`), and what the methods are
//! (`methods.rs`).

use std::fmt::Write as _;

/// A member of an object.
#[derive(Clone, Copy)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    pub(crate) need: Need,
    /// A good value as JSON text, where the kind does not make one.
    sample: &'static str,
    /// Whether it stands in a request that is about something else.
    pub(crate) usual: bool,
}

/// What becomes of an object without the member.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// The member is what is wrong.
    Required,
    /// The object around it is: it is one of several that could stand there.
    Content,
    Optional,
}

/// What a member holds.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// A task by name; one that names none is refused with this code.
    Task {
        absent: i64,
        digits: bool,
    },
    /// A task that its client names.
    OwnTask,
    /// A tenant, of which there is one.
    Tenant,
    /// What the path of the request says already: this, or nothing.
    Same,
    /// A text of at least one character.
    Filled,
    Text,
    /// A skill the agent has.
    Skill,
    /// A place in a list, as the server handed it out.
    Token,
    Texts,
    /// A list of texts that are not empty.
    Names,
    /// One scheme, or a list of them.
    Schemes,
    Count,
    PageSize,
    Flag,
    /// A point in time; the older generations do without a zone.
    Time {
        zone: bool,
    },
    /// One of a closed set.
    Word(&'static Words),
    /// Any object.
    Metadata,
    /// Any object, in which a skill may be named.
    RequestMetadata,
    /// Any value; any object in the older generations.
    Data {
        any: bool,
    },
    Base64,
    Url,
    Object(&'static [Field]),
    /// A list of at least one part, each of one of these forms.
    Parts(&'static [&'static [Field]]),
}

/// A closed set of words, by what is not in it.
pub(crate) struct Words {
    /// Values of other types, or words, that are read nevertheless.
    pub(crate) taken: &'static [&'static str],
    pub(crate) wrong: &'static [&'static str],
}

/// One step from the parameters towards a value.
#[derive(Clone, Copy)]
pub(crate) enum Step {
    Member(&'static str),
    /// The first element of a list of parts, of this form.
    Element(&'static [Field]),
}

/// What is changed at a place.
#[derive(Clone)]
pub(crate) enum Edit {
    /// The value is this text instead.
    Put(String),
    Remove,
    /// The member has another name.
    Rename(String),
    /// The member stands twice, with this value first.
    Twice(String),
    /// The member stands twice, with this value last.
    Again(String),
    /// The object at the place has this further member.
    Add(String),
}

pub(crate) const fn need(name: &'static str, kind: Kind, sample: &'static str) -> Field {
    Field { name, kind, need: Need::Required, sample, usual: true }
}

/// A member that is one of several contents.
pub(crate) const fn content(name: &'static str, kind: Kind, sample: &'static str) -> Field {
    Field { name, kind, need: Need::Content, sample, usual: true }
}

pub(crate) const fn may(name: &'static str, kind: Kind, sample: &'static str) -> Field {
    Field { name, kind, need: Need::Optional, sample, usual: true }
}

/// A member that stands only in requests that are about it.
pub(crate) const fn rare(name: &'static str, kind: Kind, sample: &'static str) -> Field {
    Field { name, kind, need: Need::Optional, sample, usual: false }
}

impl Field {
    /// A good value as JSON text.
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

/// A place as the server names it.
pub(crate) fn path(place: &[Step]) -> String {
    let mut out = String::new();
    for step in place {
        match step {
            Step::Member(name) if out.is_empty() => out.push_str(name),
            Step::Member(name) => write!(out, ".{name}").expect("a string takes everything"),
            Step::Element(_) => out.push_str("[0]"),
        }
    }
    out
}

/// The other spelling of a name.
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
            _ if field.usual => members.push(member(field.name, &value(field, None))),
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
        need("id", Kind::Filled, r#""i""#),
        rare("push", Kind::Object(&[need("url", Kind::Url, r#""u""#)]), ""),
        need("parts", Kind::Parts(&[PART]), ""),
    ];

    fn changed(place: &[Step], edit: &Edit) -> String {
        params(FIELDS, Some((place, edit)))
    }

    #[test]
    fn one_change_leaves_the_rest_as_it_is() {
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
