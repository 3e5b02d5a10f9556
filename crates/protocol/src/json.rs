//! JSON as this project uses it: raw text that is validated once and parsed only where needed.
//!
//! [`Raw`] is a validated value within a document. [`Json`] is a value kept as text, so `3` stays `3` and
//! `9007199254740993` stays exact. [`read`] descends a document one level at a time and tracks its path, so
//! every violation names its field. [`mod@write`] builds a document front to back. No tree of values is
//! built.

mod contents;
mod lex;
mod raw;
pub mod read;
mod syntax_error;
mod text;
pub mod write;

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
    sync::Arc,
};

pub use raw::{Fault, Raw};
pub use syntax_error::syntax_error;

/// Maximum nesting depth of a metadata or data value in a request: protobuf decoders stop at 100 levels, and
/// an object takes three.
pub const MAX_DEPTH: usize = 30;
/// Maximum nesting depth of a value that comes from the store, from an agent or from another server.
pub const MAX_KEPT_DEPTH: usize = 64;
/// Maximum number of values (objects, arrays, scalars) within one metadata or data value.
pub const MAX_NODES: usize = 10_000;

/// One valid JSON value as compact text: no white space outside strings, hence always a single line.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(Arc<str>);

impl Json {
    /// Validates and keeps one JSON value. The error describes what was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        let raw = Raw::parse_text(text).map_err(|fault| format!("a JSON value: {fault}"))?;
        Self::from_raw(raw)
    }

    /// Keeps a value of a document after checking its depth and size.
    pub fn from_raw(raw: Raw<'_>) -> Result<Self, String> {
        Self::with_max_depth(MAX_KEPT_DEPTH, raw)
    }

    /// Like [`Json::from_raw`] with another depth limit, which is at most [`MAX_KEPT_DEPTH`].
    pub(crate) fn with_max_depth(max_depth: usize, raw: Raw<'_>) -> Result<Self, String> {
        let text = raw.get();
        let spaces = measure(text, max_depth)?;
        Ok(Self(if spaces == 0 { text.into() } else { compact(text, text.len() - spaces).into() }))
    }

    /// Keeps text that is known to be one compact value within the limits.
    pub(crate) fn from_checked(text: String) -> Self {
        Self(text.into())
    }

    /// The JSON text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The same text as input for the reader.
    pub fn as_raw(&self) -> Raw<'_> {
        Raw::slice(&self.0, 0, self.0.len())
    }

    /// Merges two objects; the second wins if both have a member. A value that is not an object has no
    /// members. `None` if the result exceeds the size limit of a value.
    pub fn merge_objects(first: &Self, second: &Self) -> Option<Self> {
        let mut merged: Vec<(String, &str)> = Vec::new();
        // Index of each name in `merged`.
        let mut places: HashMap<String, usize> = HashMap::new();
        for json in [first, second] {
            let Ok(object) = read::Node::new(json.as_raw(), &read::Path::Root).object() else { continue };
            let members = object.entries(|name, node| Ok((name.to_owned(), node.text())));
            for (name, value) in members.unwrap_or_default() {
                match places.entry(name) {
                    Entry::Occupied(place) => merged[*place.get()].1 = value,
                    Entry::Vacant(place) => {
                        merged.push((place.key().clone(), value));
                        place.insert(merged.len() - 1);
                    }
                }
            }
        }
        let mut writer = write::Writer::new();
        writer.object(|writer| {
            for (name, value) in &merged {
                writer.key(name).raw(value);
            }
        });
        let text = String::from_utf8(writer.finish()).expect("the writer was given UTF-8 only");
        Self::parse(&text).ok()
    }

    /// Whether the value is a JSON object.
    pub fn is_object(&self) -> bool {
        self.0.starts_with('{')
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// The end of the first value in a text that is known to be JSON.
pub(crate) fn value_end(text: &[u8]) -> usize {
    lex::value_end(text, 0)
}

/// Checks depth and number of values of a JSON text; returns the number of white space bytes between its
/// tokens.
fn measure(text: &str, max_depth: usize) -> Result<usize, String> {
    let bytes = text.as_bytes();
    let (mut depth, mut nodes, mut spaces) = (0usize, 0usize, 0usize);
    // One bit per open bracket, the innermost lowest: set for an object, where a name follows a comma.
    let mut objects = 0u128;
    let (mut at, mut previous) = (0, b'[');
    while at < bytes.len() {
        let byte = bytes[at];
        if lex::is_space(byte) {
            (at, spaces) = (at + 1, spaces + 1);
            continue;
        }
        let value_follows = match previous {
            b'[' | b':' => byte != b']',
            b',' => objects & 1 == 0,
            _ => false,
        };
        if value_follows {
            nodes += 1;
            if nodes > MAX_NODES {
                return Err(format!("a value of at most {MAX_NODES} nodes"));
            }
        }
        match byte {
            b'{' | b'[' => {
                depth += 1;
                objects = objects << 1 | u128::from(byte == b'{');
                if depth > max_depth {
                    return Err(format!("a value nested at most {max_depth} deep"));
                }
            }
            b'}' | b']' => {
                depth -= 1;
                objects >>= 1;
            }
            _ => {}
        }
        previous = byte;
        at = if byte == b'"' { lex::string_end(bytes, at) } else { at + 1 };
    }
    Ok(spaces)
}

/// A JSON text without the white space between its tokens.
fn compact(text: &str, length: usize) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(length);
    let mut at = lex::skip_space(bytes, 0);
    while at < bytes.len() {
        let start = at;
        while at < bytes.len() && !lex::is_space(bytes[at]) {
            at = if bytes[at] == b'"' { lex::string_end(bytes, at) } else { at + 1 };
        }
        out.push_str(&text[start..at]);
        at = lex::skip_space(bytes, at);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_strings_are_kept_verbatim() {
        let json =
            Json::parse(" { \"a\" : [ 9007199254740993 , 1.0, 1e400 ],\n \"b\\\" \": \" x \" } ").unwrap();
        assert_eq!(json.as_str(), r#"{"a":[9007199254740993,1.0,1e400],"b\" ":" x "}"#);
    }

    #[test]
    fn depth_and_size_are_bounded_while_scanning() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(Json::parse(&nested(64)).is_ok());
        assert!(Json::parse(&nested(65)).unwrap_err().contains("64"));
        let in_request = |text: &str| {
            let raw = Raw::parse_text(text).unwrap();
            read::Node::new(raw, &read::Path::Root).bounded().any()
        };
        assert!(in_request(&nested(30)).is_ok());
        assert!(in_request(&nested(31)).unwrap_err().problem.contains("30"));
        let wide = format!("[{}1]", "1,".repeat(MAX_NODES - 2));
        assert!(Json::parse(&wide).is_ok());
        let wider = format!("[{}1]", "1,".repeat(MAX_NODES));
        assert!(Json::parse(&wider).unwrap_err().contains("10000"));
    }

    #[test]
    fn merged_objects_have_each_name_once_and_the_second_value() {
        let json = |text: &str| Json::parse(text).unwrap();
        let merged = Json::merge_objects(&json(r#"{"a":1,"b":[2],"a":3}"#), &json(r#"{"c":"x","b":null}"#));
        assert_eq!(merged, Some(json(r#"{"a":3,"b":null,"c":"x"}"#)));
        assert_eq!(Json::merge_objects(&json("5"), &json("[]")), Some(json("{}")));
        let members = |from: usize| {
            let members: Vec<_> = (from..from + 5_000).map(|name| format!(r#""{name}":0"#)).collect();
            json(&format!("{{{}}}", members.join(",")))
        };
        // The maximum number of members. Merging must not be quadratic: a linear search per member would take
        // too long.
        for _ in 0..20 {
            assert!(Json::merge_objects(&members(0), &members(4_999)).is_some());
            assert_eq!(Json::merge_objects(&members(0), &members(5_000)), None);
        }
    }

    #[test]
    fn text_that_is_not_one_value_is_rejected() {
        for bad in ["", "{", "1 2", "{\"a\":}", "nul"] {
            assert!(Json::parse(bad).is_err(), "{bad}");
        }
    }
}
