//! What is between the brackets of an object or an array, one after another, in a text that has been checked.

use super::{Raw, lex};

/// A walk from one member or element to the next.
pub(super) struct Inside<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Inside<'a> {
    /// `None` where the value does not begin with this bracket.
    pub(super) fn of(text: &'a str, bracket: u8) -> Option<Self> {
        (text.as_bytes().first() == Some(&bracket)).then_some(Self { text, at: 1 })
    }

    /// Where the next member or element begins.
    pub(super) fn next(&mut self) -> Option<usize> {
        let bytes = self.text.as_bytes();
        let at = lex::skip_space(bytes, self.at);
        self.at = if lex::byte(bytes, at) == b',' { lex::skip_space(bytes, at + 1) } else { at };
        (!matches!(lex::byte(bytes, self.at), b'}' | b']' | 0)).then_some(self.at)
    }

    /// How many members are still to come, up to one more than `most`. Nothing is taken.
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

    /// The name that begins here, in quotes. Its value is next.
    pub(super) fn name(&mut self, start: usize) -> &'a str {
        let bytes = self.text.as_bytes();
        let end = lex::string_end(bytes, start);
        let colon = lex::skip_space(bytes, end);
        self.at = lex::skip_space(bytes, colon + 1);
        Raw::piece(self.text, start, end).get()
    }

    /// The value that is next.
    pub(super) fn value(&mut self) -> Raw<'a> {
        let start = self.at;
        self.at = lex::value_end(self.text.as_bytes(), start);
        Raw::piece(self.text, start, self.at)
    }
}
