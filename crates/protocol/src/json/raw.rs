//! A slice of text that is known to be one JSON value.

use std::fmt;

use super::lex;

/// One validated JSON value within its document, without surrounding white space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw<'a>(&'a str);

/// Position of the first invalid byte of a document.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Counted from 1.
    pub line: usize,
    /// In characters, counted from 1; the last character if the document is truncated.
    pub column: usize,
}

impl<'a> Raw<'a> {
    /// The value of absent parameters.
    pub const EMPTY_OBJECT: Self = Self("{}");

    /// Validates a document; white space around its value is allowed.
    pub fn parse(document: &'a [u8]) -> Result<Self, Fault> {
        match std::str::from_utf8(document) {
            Ok(text) => Self::parse_text(text),
            Err(error) => Err(fault(document, error.valid_up_to())),
        }
    }

    /// Validates a document that is known to be UTF-8.
    pub fn parse_text(document: &'a str) -> Result<Self, Fault> {
        lex::check(document).map_err(|at| fault(document.as_bytes(), at))?;
        let is_space = |character| u8::try_from(character).is_ok_and(lex::is_space);
        Ok(Self(document.trim_matches(is_space)))
    }

    /// The JSON text.
    pub fn get(self) -> &'a str {
        self.0
    }

    /// Whether it is JSON `null`.
    pub fn is_null(self) -> bool {
        self.0 == "null"
    }

    /// A slice of validated text: the value between two offsets.
    pub(super) fn slice(checked: &'a str, start: usize, end: usize) -> Self {
        Self(&checked[start..end])
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {}, column {}", self.line, self.column)
    }
}

fn fault(document: &[u8], at: usize) -> Fault {
    let read = &document[..document.len().min(at + 1)];
    let line_start =
        read[..read.len().min(at)].iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    Fault {
        line: 1 + read[..line_start].iter().filter(|byte| **byte == b'\n').count(),
        // Count only the first byte of each character.
        column: read[line_start..].iter().filter(|byte| **byte & 0xc0 != 0x80).count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fault_has_line_and_column() {
        fn place(document: &[u8]) -> Result<Raw<'_>, (usize, usize)> {
            Raw::parse(document).map_err(|fault| (fault.line, fault.column))
        }
        assert_eq!(place(b"{"), Err((1, 1)));
        assert_eq!(place(b""), Err((1, 0)));
        assert_eq!(place(b"\x01"), Err((1, 1)));
        assert_eq!(place(b"{\n \"a\": x}"), Err((2, 7)));
        assert_eq!(place("{\"é\": x}".as_bytes()), Err((1, 7)));
        assert_eq!(place(b"[1]\n\n]"), Err((3, 1)));
        assert_eq!(place(b"[\"a\xff\"]"), Err((1, 4)));
        assert_eq!(place(b" \n[1] "), Ok(Raw("[1]")));
    }
}
