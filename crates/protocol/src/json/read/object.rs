//! A JSON object whose members are accessed by name.

use std::borrow::Cow;

use super::{Bounds, MAX_TEXT_BYTES, Node, Path, Read};
use crate::{
    error::Violation,
    json::{Json, Raw, contents::Contents, text},
};

/// Maximum number of members of an object that is read member by member.
const MAX_MEMBERS: usize = 10_000;
/// Above this number the remaining members are counted before more of them are stored.
const MANY_MEMBERS: usize = 256;

/// An object, one level deep: each name with the raw text of its value.
pub struct Object<'a, 'p> {
    fields: Vec<(Cow<'a, str>, Raw<'a>)>,
    path: &'p Path<'p>,
    bounds: Bounds,
}

impl<'a, 'p> Object<'a, 'p> {
    /// The members of a value that is an object.
    pub(super) fn of(node: &Node<'a, 'p>) -> Read<Self> {
        let Some(mut members) = Contents::of(node.text(), b'{') else {
            return Err(node.expected("an object"));
        };
        let mut fields = Vec::with_capacity(8);
        while let Some(start) = members.next() {
            if fields.len() == MANY_MEMBERS {
                let more = members.count_names(MAX_MEMBERS);
                if fields.len() + more > MAX_MEMBERS {
                    return Err(node.expected(format_args!("an object of at most {MAX_MEMBERS} members")));
                }
                fields.reserve_exact(more);
            }
            let name = members.name(start);
            if name.len() > node.bounds.text() {
                return Err(node.expected(format_args!("member names of at most {MAX_TEXT_BYTES} bytes")));
            }
            let name = text::unescape(name).ok_or_else(|| node.expected("an object"))?;
            fields.push((name, members.value()));
        }
        Ok(Self { fields, path: node.path, bounds: node.bounds })
    }
}

impl<'a> Object<'a, '_> {
    /// Reads an optional field. Absent and `null` are both `None`.
    pub fn maybe<T>(&self, name: &str, read: impl FnOnce(Node<'a, '_>) -> Read<T>) -> Read<Option<T>> {
        match self.raw(name) {
            Some(raw) if !raw.is_null() => {
                read(Node { raw, path: &Path::Field(self.path, name), bounds: self.bounds }).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Reads a required field; `what` describes what is expected.
    pub fn need<T>(&self, name: &str, what: &str, read: impl FnOnce(Node<'a, '_>) -> Read<T>) -> Read<T> {
        self.maybe(name, read)?.ok_or_else(|| self.lacks(name, what))
    }

    /// Reads an optional list. Absent and `null` mean the empty list.
    pub fn list<T>(&self, name: &str, each: impl FnMut(Node<'a, '_>) -> Read<T>) -> Read<Vec<T>> {
        Ok(self.maybe(name, |node| node.list(each))?.unwrap_or_default())
    }

    /// Like [`Object::list`] with at most `max` elements, called `things` in the violation.
    pub fn list_up_to<T>(
        &self,
        name: &str,
        max: usize,
        things: &str,
        each: impl FnMut(Node<'a, '_>) -> Read<T>,
    ) -> Read<Vec<T>> {
        Ok(self.maybe(name, |node| node.list_up_to(max, things, each))?.unwrap_or_default())
    }

    /// Reads a list that is required in a request; `what` describes what is expected. Other servers omit it
    /// when it is empty.
    pub(crate) fn list_required_in_request<T>(
        &self,
        name: &str,
        what: &str,
        read: impl FnOnce(Node<'a, '_>) -> Read<Vec<T>>,
    ) -> Read<Vec<T>> {
        match self.maybe(name, read)? {
            Some(list) => Ok(list),
            None => self.empty_unless_request(name, what),
        }
    }

    /// The empty list, or a violation if this is a request.
    pub(crate) fn empty_unless_request<T>(&self, name: &str, what: &str) -> Read<Vec<T>> {
        if matches!(self.bounds, Bounds::Request) { Err(self.lacks(name, what)) } else { Ok(Vec::new()) }
    }

    /// An optional string; the empty string means absent, as in ProtoJSON.
    pub fn text(&self, name: &str) -> Read<Option<String>> {
        Ok(self.maybe(name, |node| node.short_string())?.filter(|text| !text.is_empty()).map(Cow::into_owned))
    }

    /// A required, non-empty string.
    pub fn need_text(&self, name: &str) -> Read<String> {
        self.need(name, "a non-empty string", |node| node.non_empty_string())
    }

    /// A string that is required by the specification but omitted by older implementations: empty then.
    pub fn text_or_empty(&self, name: &str) -> Read<String> {
        Ok(self.text(name)?.unwrap_or_default())
    }

    /// A list of strings.
    pub fn texts(&self, name: &str) -> Read<Vec<String>> {
        let each = |node: Node<'a, '_>| node.short_string().map(Cow::into_owned);
        Ok(self.maybe(name, |node| node.texts("strings", each))?.unwrap_or_default())
    }

    /// A list of non-empty ids.
    pub fn ids<T: From<String>>(&self, name: &str) -> Read<Vec<T>> {
        let each = |node: Node<'a, '_>| node.non_empty_string().map(T::from);
        Ok(self.maybe(name, |node| node.texts("ids", each))?.unwrap_or_default())
    }

    /// An optional boolean.
    pub fn flag(&self, name: &str) -> Read<Option<bool>> {
        self.maybe(name, |node| node.boolean())
    }

    /// An optional non-negative integer.
    pub fn count(&self, name: &str) -> Read<Option<u32>> {
        self.maybe(name, |node| {
            let number = node.int32()?;
            u32::try_from(number).map_err(|_| node.expected("an integer of 0 or more"))
        })
    }

    /// An optional non-negative 64-bit integer.
    pub fn long_count(&self, name: &str) -> Read<Option<u64>> {
        self.maybe(name, |node| {
            if let Some(number) = node.number().and_then(|text| text.parse().ok()) {
                return Ok(number);
            }
            u64::try_from(node.int32()?).map_err(|_| node.expected("an integer of 0 or more"))
        })
    }

    /// An optional JSON object kept as raw text.
    pub fn json_object(&self, name: &str) -> Read<Option<Json>> {
        self.maybe(name, |node| node.any_object())
    }

    /// The value of a name even if it is `null`; the last one if the name is repeated.
    pub fn present(&self, name: &str) -> Option<Raw<'a>> {
        self.raw(name)
    }

    /// Every field in document order, for maps with arbitrary keys.
    pub fn entries<T>(&self, mut each: impl FnMut(&str, Node<'a, '_>) -> Read<T>) -> Read<Vec<T>> {
        self.fields
            .iter()
            .map(|(name, raw)| {
                each(name, Node { raw: *raw, path: &Path::Field(self.path, name), bounds: self.bounds })
            })
            .collect()
    }

    /// A violation for a missing field; `what` describes what is expected.
    pub fn lacks(&self, name: &str, what: &str) -> Violation {
        Violation::new(Path::Field(self.path, name), format_args!("required, expected {what}"))
    }

    /// A violation at the object itself.
    pub fn expected(&self, what: &str) -> Violation {
        Violation::new(self.path, format_args!("expected {what}"))
    }

    /// A name that is none of these, if there is one.
    pub fn unknown(&self, known: &[&str]) -> Option<&str> {
        let is_known = |name: &str| known.iter().any(|camel| same_name(name, camel));
        self.fields.iter().map(|(name, _)| name.as_ref()).find(|name| !is_known(name))
    }

    /// A repeated name, if there is one.
    pub fn repeated(&self) -> Option<&str> {
        let mut names: Vec<&str> = self.fields.iter().map(|(name, _)| name.as_ref()).collect();
        names.sort_unstable();
        names.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| pair[0])
    }

    fn raw(&self, name: &str) -> Option<Raw<'a>> {
        self.fields.iter().rev().find(|(key, _)| same_name(key, name)).map(|(_, raw)| *raw)
    }
}

/// Whether a key is the camelCase name or its snake_case form.
fn same_name(key: &str, camel: &str) -> bool {
    if key == camel {
        return true;
    }
    let mut key = key.bytes();
    for wanted in camel.bytes() {
        if wanted.is_ascii_uppercase() {
            if key.next() != Some(b'_') || key.next() != Some(wanted.to_ascii_lowercase()) {
                return false;
            }
        } else if key.next() != Some(wanted) {
            return false;
        }
    }
    key.next().is_none()
}
