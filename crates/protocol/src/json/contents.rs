//! Iteration over the members of an object or the elements of an array in validated text.

use super::{Raw, lex};

/// A cursor over members or elements.
pub(super) struct Contents<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Contents<'a> {
    /// `None` if the value does not start with this bracket.
    pub(super) fn of(text: &'a str, bracket: u8) -> Option<Self> {
        (text.as_bytes().first() == Some(&bracket)).then_some(Self { text, at: 1 })
    }

    /// The start of the next member or element.
    pub(super) fn next(&mut self) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let at = lex::skip_space(bytes, self.at);
        self.at = if lex::byte(bytes, at) == b',' { lex::skip_space(bytes, at + 1) } else { at };
        (!matches!(lex::byte(bytes, self.at), b'}' | b']' | 0)).then_some(self.at)
    }

    /// Counts the remaining members up to `most` + 1, without consuming them.
    pub(super) fn count_names(&self, most: usize) -> usize {
        let mut rest = Self { ..*self };
        let mut count = 0;
        while count <= most
            && let Some(start) = rest.next()
        {
            rest.name(start);
            rest.value();
            count += 1;
        }
        count
    }

    /// The quoted name that starts here. Its value is next.
    pub(super) fn name(&mut self, start: usize) -> &'a str {
        let bytes = self.text.as_bytes();
        let end = lex::string_end(bytes, start);
        let colon = lex::skip_space(bytes, end);
        self.at = lex::skip_space(bytes, colon + 1);
        Raw::slice(self.text, start, end).get()
    }

    /// The next value.
    pub(super) fn value(&mut self) -> Raw<'a> {
        let start = self.at;
        self.at = lex::value_end(self.text.as_bytes(), start);
        Raw::slice(self.text, start, self.at)
    }
}
