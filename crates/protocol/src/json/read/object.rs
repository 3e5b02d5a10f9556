//! An object of a document: its members by name.

use std::borrow::Cow;

use super::{Bounds, MAX_TEXT_BYTES, Node, Path, Read};
use crate::{
    error::Violation,
    json::{Json, Raw, inside::Inside, text},
};

/// How many members an object may have that is read member by member.
const MAX_MEMBERS: usize = 10_000;
/// Above this many the members of an object are counted before more of them are kept.
const MANY_MEMBERS: usize = 256;

/// An object one level deep: each name with the raw text of its value.
pub struct Object<'a, 'p> {
    fields: Vec<(Cow<'a, str>, Raw<'a>)>,
    path: &'p Path<'p>,
    bounds: Bounds,
}

impl<'a, 'p> Object<'a, 'p> {
    /// The members of a value that is an object.
    pub(super) fn of(node: &Node<'a, 'p>) -> Read<Self> {
        let Some(mut members) = Inside::of(node.text(), b'{') else { return Err(node.expected("an object")) };
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
                return Err(node.expected(format_args!("names that take at most {MAX_TEXT_BYTES} bytes")));
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

    /// Reads a field that must be there; `what` says what was expected.
    pub fn need<T>(&self, name: &str, what: &str, read: impl FnOnce(Node<'a, '_>) -> Read<T>) -> Read<T> {
        self.maybe(name, read)?.ok_or_else(|| self.lacks(name, what))
    }

    /// Reads an optional list. Absent and `null` are the empty list.
    pub fn list<T>(&self, name: &str, each: impl FnMut(Node<'a, '_>) -> Read<T>) -> Read<Vec<T>> {
        Ok(self.maybe(name, |node| node.list(each))?.unwrap_or_default())
    }

    /// The same, where there may be so many `things` and no more.
    pub fn list_up_to<T>(
        &self,
        name: &str,
        max: usize,
        things: &str,
        each: impl FnMut(Node<'a, '_>) -> Read<T>,
    ) -> Read<Vec<T>> {
        Ok(self.maybe(name, |node| node.list_up_to(max, things, each))?.unwrap_or_default())
    }

    /// Reads a list that a request must have, read by `read`; `what` is what was expected. Other servers leave it out
    /// where it is empty.
    pub(crate) fn list_of_request<T>(
        &self,
        name: &str,
        what: &str,
        read: impl FnOnce(Node<'a, '_>) -> Read<Vec<T>>,
    ) -> Read<Vec<T>> {
        match self.maybe(name, read)? {
            Some(list) => Ok(list),
            None => self.nothing_of_request(name, what),
        }
    }

    /// The empty list, unless this is a request, which lacks the field then.
    pub(crate) fn nothing_of_request<T>(&self, name: &str, what: &str) -> Read<Vec<T>> {
        if matches!(self.bounds, Bounds::Request) { Err(self.lacks(name, what)) } else { Ok(Vec::new()) }
    }

    /// An optional string; the empty string counts as absent, as in ProtoJSON.
    pub fn text(&self, name: &str) -> Read<Option<String>> {
        Ok(self.maybe(name, |node| node.short_string())?.filter(|text| !text.is_empty()).map(Cow::into_owned))
    }

    /// A string that must be there and not be empty.
    pub fn need_text(&self, name: &str) -> Read<String> {
        self.need(name, "a non-empty string", |node| node.filled_string())
    }

    /// A string that is required but whose absence older peers get away with: then it is empty.
    pub fn text_or_empty(&self, name: &str) -> Read<String> {
        Ok(self.text(name)?.unwrap_or_default())
    }

    /// A list of strings.
    pub fn texts(&self, name: &str) -> Read<Vec<String>> {
        let each = |node: Node<'a, '_>| node.short_string().map(Cow::into_owned);
        Ok(self.maybe(name, |node| node.texts("strings", each))?.unwrap_or_default())
    }

    /// A list of ids, none of them empty.
    pub fn ids<T: From<String>>(&self, name: &str) -> Read<Vec<T>> {
        let each = |node: Node<'a, '_>| node.filled_string().map(T::from);
        Ok(self.maybe(name, |node| node.texts("ids", each))?.unwrap_or_default())
    }

    /// An optional boolean.
    pub fn flag(&self, name: &str) -> Read<Option<bool>> {
        self.maybe(name, |node| node.boolean())
    }

    /// An optional integer that may not be negative.
    pub fn count(&self, name: &str) -> Read<Option<u32>> {
        self.maybe(name, |node| {
            let number = node.int32()?;
            u32::try_from(number).map_err(|_| node.expected("an integer of 0 or more"))
        })
    }

    /// An optional integer of up to 64 bits that may not be negative.
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

    /// The value under a name even when it is `null`; the last one where the name is repeated.
    pub fn present(&self, name: &str) -> Option<Raw<'a>> {
        self.raw(name)
    }

    /// Every field as it stands in the text, for maps with free keys.
    pub fn entries<T>(&self, mut each: impl FnMut(&str, Node<'a, '_>) -> Read<T>) -> Read<Vec<T>> {
        self.fields
            .iter()
            .map(|(name, raw)| {
                each(name, Node { raw: *raw, path: &Path::Field(self.path, name), bounds: self.bounds })
            })
            .collect()
    }

    /// A violation that says what the missing field should have been.
    pub fn lacks(&self, name: &str, what: &str) -> Violation {
        Violation::new(Path::Field(self.path, name), format_args!("required, expected {what}"))
    }

    /// A violation of the object as a whole.
    pub fn expected(&self, what: &str) -> Violation {
        Violation::new(self.path, format_args!("expected {what}"))
    }

    /// A name that stands twice, if there is one.
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
