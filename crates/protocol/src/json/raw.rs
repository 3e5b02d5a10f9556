//! A piece of text that is known to be one JSON value.

use std::fmt;

use super::lex;

/// One JSON value as it stands in its document, with nothing around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw<'a>(&'a str);

/// Where a document stops being JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Lines are counted from 1.
    pub line: usize,
    /// So are the characters of a line; where the document ends too soon, its last one.
    pub column: usize,
}

impl<'a> Raw<'a> {
    /// What absent parameters equal.
    pub const EMPTY_OBJECT: Self = Self("{}");

    /// Checks a document, which may have white space around its value.
    pub fn parse(document: &'a [u8]) -> Result<Self, Fault> {
        match std::str::from_utf8(document) {
            Ok(text) => Self::parse_text(text),
            Err(error) => Err(fault(document, error.valid_up_to())),
        }
    }

    /// Checks a document that is known to be text.
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

    /// A piece of a text that has been checked: the value between two places.
    pub(super) fn piece(checked: &'a str, start: usize, end: usize) -> Self {
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
        // Of the bytes of a character the first one counts.
        column: read[line_start..].iter().filter(|byte| **byte & 0xc0 != 0x80).count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_says_line_and_column() {
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
