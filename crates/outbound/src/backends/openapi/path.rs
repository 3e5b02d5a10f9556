//! Paths with parameters, such as `/pets/{id}`.
//!
//! A value never leaves its segment: it is percent-encoded, and what a server could read as a dot segment is rejected.

use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};

use super::request::InvalidArgument;
use crate::backends::http::encode::{ambiguity, has_stray_percent};

/// What a path of a document cannot contain literally. Percent signs begin an escape sequence.
const LITERAL: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'[')
    .add(b'\\')
    .add(b']')
    .add(b'^')
    .add(b'`')
    .add(b'|');

/// The path of an operation, divided at slashes.
pub(super) struct Template(Vec<Vec<Piece>>);

enum Piece {
    /// Encoded.
    Literal(String),
    /// Name of a parameter.
    Parameter(String),
}

impl Template {
    /// Reads a path. The error is the reason why the operation is skipped.
    pub(super) fn parse(path: &str) -> Result<Self, String> {
        let rest = path.strip_prefix('/').ok_or("the path does not begin with a slash")?;
        if path.contains(['?', '#']) {
            return Err("the path has a query or fragment".into());
        }
        let segments: Vec<_> = rest.split('/').map(segment).collect::<Result<_, _>>()?;
        let last = segments.len() - 1;
        if segments.iter().enumerate().any(|(at, pieces)| pieces.is_empty() && at != last) {
            return Err("the path has an empty segment".into());
        }
        let template = Self(segments);
        let example = template.render(|_| Ok("x".into())).map_err(|error| error.to_string())?;
        match ambiguity(&example) {
            Some(problem) => Err(problem.into()),
            None => Ok(template),
        }
    }

    /// The names of the parameters, in order.
    pub(super) fn parameters(&self) -> impl Iterator<Item = &str> {
        self.0.iter().flatten().filter_map(|piece| match piece {
            Piece::Parameter(name) => Some(name.as_str()),
            Piece::Literal(_) => None,
        })
    }

    /// The path with values: `value` returns the encoded one of a parameter.
    pub(super) fn render(
        &self,
        mut value: impl FnMut(&str) -> Result<String, InvalidArgument>,
    ) -> Result<String, InvalidArgument> {
        let mut path = String::new();
        for pieces in &self.0 {
            path.push('/');
            let start = path.len();
            let mut parameter = None;
            for piece in pieces {
                match piece {
                    Piece::Literal(literal) => path.push_str(literal),
                    Piece::Parameter(name) => {
                        let value = value(name)?;
                        if value.is_empty() {
                            return Err(InvalidArgument::new(name, "must not be empty in a path"));
                        }
                        path.push_str(&value);
                        parameter = Some(name);
                    }
                }
            }
            if let Some((name, problem)) = parameter.zip(ambiguity(&path[start..])) {
                return Err(InvalidArgument::new(name, problem));
            }
        }
        Ok(path)
    }
}

fn segment(text: &str) -> Result<Vec<Piece>, String> {
    const MALFORMED: &str = "the braces in the path do not match";
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(open) = rest.find(['{', '}']) {
        let after = rest[open..].strip_prefix('{').ok_or(MALFORMED)?;
        let (name, tail) = after.split_once('}').ok_or(MALFORMED)?;
        if name.is_empty() || name.contains('{') {
            return Err(MALFORMED.into());
        }
        pieces.extend(literal(&rest[..open])?);
        pieces.push(Piece::Parameter(name.to_owned()));
        rest = tail;
    }
    pieces.extend(literal(rest)?);
    Ok(pieces)
}

fn literal(text: &str) -> Result<Option<Piece>, String> {
    if has_stray_percent(text) {
        return Err("the path has a percent sign that begins no escape sequence".into());
    }
    let encoded = utf8_percent_encode(text, LITERAL).to_string();
    Ok((!encoded.is_empty()).then_some(Piece::Literal(encoded)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backends::http::encode::encode;

    fn render(template: &str, value: &str) -> Result<String, String> {
        let template = Template::parse(template)?;
        template.render(|_| Ok(encode(value))).map_err(|error| error.to_string())
    }

    #[test]
    fn values_stay_in_their_segment() {
        for (template, value, expected) in [
            ("/pets/{id}", "7", "/pets/7"),
            ("/pets/{id}/", "a/b?c#d", "/pets/a%2Fb%3Fc%23d/"),
            ("/pets/{id}.json", "é %", "/pets/%C3%A9%20%25.json"),
            ("/x/{id}...{id}", "..", "/x/......."),
            ("/a b/{id}:run", "X: y", "/a%20b/X%3A%20y:run"),
            ("/", "", "/"),
        ] {
            assert_eq!(render(template, value).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn values_that_a_server_could_read_as_another_path_are_rejected() {
        for value in [".", "..", "", "a/../b", "..\\..", "/..", "./a", "..;x", "a\r\nb", "\0"] {
            assert!(render("/pets/{id}/x", value).is_err(), "{value}");
        }
        assert!(render("/pets/.{id}", ".").is_err());
        assert!(render("/pets/%2e{id}", ".").is_err());
    }

    #[test]
    fn malformed_paths_are_skipped() {
        for path in [
            "pets",
            "/a//b",
            "//a",
            "/a/../b",
            "/%2e%2E/b",
            "/%2e%2E;x/b",
            "/a%0d%0ab",
            "/a?b",
            "/a#b",
            "/{a",
            "/a}",
            "/{}",
            "/{a{b}}",
            "/%zz",
        ] {
            assert!(Template::parse(path).is_err(), "{path}");
        }
    }
}
