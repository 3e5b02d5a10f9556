//! A JSON tree with assertions on the values at a path such as `result.artifacts.0.name`.
//!
//! The server's own JSON code is not used here: a bug in it would be present on both sides and stay undetected.

use std::fmt::{self, Write as _};

use super::{CheckError, CheckResult, mismatch};

/// The maximum nesting depth that is parsed.
const MAX_DEPTH: usize = 200;

#[derive(Clone, Debug)]
pub(super) enum Json {
    Null,
    Bool(bool),
    /// The digits as they were written.
    Number(String),
    Text(String),
    List(Vec<Json>),
    /// Members in the order in which they were written.
    Object(Vec<(String, Json)>),
}

impl Json {
    pub(super) fn parse(text: &str) -> Result<Self, CheckError> {
        let mut parser = Parser { rest: text };
        let value = parser.value(0);
        match value {
            Some(value) if parser.trimmed().is_empty() => Ok(value),
            _ => Err(mismatch("JSON", text)),
        }
    }

    /// The value at a path; the empty path is the value itself.
    pub(super) fn find(&self, path: &str) -> Option<&Self> {
        path.split('.').filter(|step| !step.is_empty()).try_fold(self, |value, step| match value {
            Self::Object(members) => members.iter().find(|member| member.0 == step).map(|member| &member.1),
            Self::List(items) => items.get(step.parse::<usize>().ok()?),
            _ => None,
        })
    }

    /// The value at a path, which must exist.
    pub(super) fn at(&self, path: &str) -> Result<&Self, CheckError> {
        self.find(path).ok_or_else(|| mismatch(format!("a member {path}"), self))
    }

    /// The string at a path.
    pub(super) fn text(&self, path: &str) -> Result<&str, CheckError> {
        match self.at(path)? {
            Self::Text(text) => Ok(text),
            _ => Err(mismatch(format!("a string at {path}"), self)),
        }
    }

    /// The string at a path, which must not be empty.
    pub(super) fn non_empty(&self, path: &str) -> Result<&str, CheckError> {
        match self.text(path)? {
            "" => Err(mismatch(format!("a non-empty string at {path}"), self)),
            text => Ok(text),
        }
    }

    pub(super) fn list(&self, path: &str) -> Result<&[Self], CheckError> {
        match self.at(path)? {
            Self::List(items) => Ok(items),
            _ => Err(mismatch(format!("a list at {path}"), self)),
        }
    }

    /// The length of the list at a path; 0 where there is no list.
    pub(super) fn count(&self, path: &str) -> usize {
        match self.find(path) {
            Some(Self::List(items)) => items.len(),
            _ => 0,
        }
    }

    /// The strings of the list at a path.
    pub(super) fn texts(&self, path: &str) -> Result<Vec<&str>, CheckError> {
        self.list(path)?.iter().map(|item| item.text("")).collect()
    }

    /// The member names of an object; empty for any other value.
    pub(super) fn names(&self) -> Vec<&str> {
        match self {
            Self::Object(members) => members.iter().map(|member| member.0.as_str()).collect(),
            _ => Vec::new(),
        }
    }

    /// Checks that the value at a path equals `expected`.
    pub(super) fn is(&self, path: &str, expected: impl Into<Self>) -> CheckResult {
        let expected = expected.into();
        match self.find(path) {
            Some(found) if *found == expected => Ok(()),
            _ => Err(mismatch(format!("{path} = {expected}"), self)),
        }
    }

    /// Like [`Self::is`], with the expected value given as JSON text.
    pub(super) fn is_json(&self, path: &str, expected: &str) -> CheckResult {
        self.is(path, Self::parse(expected)?)
    }

    /// Checks that the value at a path is absent, null or an empty list.
    pub(super) fn lacks(&self, path: &str) -> CheckResult {
        match self.find(path) {
            None | Some(Self::Null) => Ok(()),
            Some(Self::List(items)) if items.is_empty() => Ok(()),
            Some(_) => Err(mismatch(format!("nothing at {path}"), self)),
        }
    }

    /// Checks a condition; `expected` describes it in the error.
    pub(super) fn ensure(&self, holds: bool, expected: &str) -> CheckResult {
        if holds { Ok(()) } else { Err(mismatch(expected, self)) }
    }
}

/// Objects are equal regardless of the order of their members.
impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Bool(one), Self::Bool(two)) => one == two,
            (Self::Number(one), Self::Number(two)) | (Self::Text(one), Self::Text(two)) => one == two,
            (Self::List(one), Self::List(two)) => one == two,
            (Self::Object(one), Self::Object(two)) => {
                let same = |member: &(String, Self)| two.iter().any(|other| other == member);
                one.len() == two.len() && one.iter().all(same)
            }
            _ => false,
        }
    }
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<&String> for Json {
    fn from(text: &String) -> Self {
        Self::Text(text.clone())
    }
}

impl From<i64> for Json {
    fn from(number: i64) -> Self {
        Self::Number(number.to_string())
    }
}

impl From<bool> for Json {
    fn from(value: bool) -> Self {
        Self::Bool(value)
    }
}

impl From<&Json> for Json {
    fn from(value: &Json) -> Self {
        value.clone()
    }
}

impl fmt::Display for Json {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => out.write_str("null"),
            Self::Bool(value) => write!(out, "{value}"),
            Self::Number(text) => out.write_str(text),
            Self::Text(text) => out.write_str(&quote(text)),
            Self::List(items) => {
                out.write_char('[')?;
                for (index, item) in items.iter().enumerate() {
                    write!(out, "{}{item}", if index > 0 { "," } else { "" })?;
                }
                out.write_char(']')
            }
            Self::Object(members) => {
                out.write_char('{')?;
                for (index, (name, value)) in members.iter().enumerate() {
                    write!(out, "{}{}:{value}", if index > 0 { "," } else { "" }, quote(name))?;
                }
                out.write_char('}')
            }
        }
    }
}

/// A string as a JSON string literal.
pub(super) fn quote(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            control if control < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(control));
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

/// A recursive-descent parser; its methods return `None` for invalid JSON.
struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    fn value(&mut self, depth: usize) -> Option<Json> {
        if depth > MAX_DEPTH {
            return None;
        }
        match self.trimmed().chars().next()? {
            '{' => self.object(depth),
            '[' => self.items(depth),
            '"' => self.string().map(Json::Text),
            _ => self.keyword_or_number(),
        }
    }

    fn object(&mut self, depth: usize) -> Option<Json> {
        let mut members = Vec::new();
        self.take('{')?;
        if self.take('}').is_some() {
            return Some(Json::Object(members));
        }
        loop {
            self.trimmed();
            let name = self.string()?;
            self.take(':')?;
            members.push((name, self.value(depth + 1)?));
            if self.take(',').is_none() {
                self.take('}')?;
                return Some(Json::Object(members));
            }
        }
    }

    fn items(&mut self, depth: usize) -> Option<Json> {
        let mut items = Vec::new();
        self.take('[')?;
        if self.take(']').is_some() {
            return Some(Json::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if self.take(',').is_none() {
                self.take(']')?;
                return Some(Json::List(items));
            }
        }
    }

    fn string(&mut self) -> Option<String> {
        let mut text = String::new();
        let mut characters = self.rest.strip_prefix('"')?.chars();
        loop {
            match characters.next()? {
                '"' => break,
                '\\' => text.push(escaped(&mut characters)?),
                control if control < ' ' => return None,
                other => text.push(other),
            }
        }
        self.rest = characters.as_str();
        Some(text)
    }

    fn keyword_or_number(&mut self) -> Option<Json> {
        let end = self.rest.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c)));
        let (token, rest) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        self.rest = rest;
        match token {
            "null" => Some(Json::Null),
            "true" => Some(Json::Bool(true)),
            "false" => Some(Json::Bool(false)),
            number if number.starts_with(|c: char| c == '-' || c.is_ascii_digit()) => {
                number.parse::<f64>().is_ok().then(|| Json::Number(number.into()))
            }
            _ => None,
        }
    }

    fn take(&mut self, character: char) -> Option<()> {
        self.rest = self.trimmed().strip_prefix(character)?;
        Some(())
    }

    fn trimmed(&mut self) -> &'a str {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
        self.rest
    }
}

fn escaped(characters: &mut std::str::Chars<'_>) -> Option<char> {
    Some(match characters.next()? {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'u' => {
            let high = unit(characters)?;
            if !(0xd800..0xdc00).contains(&high) {
                return char::from_u32(high);
            }
            (characters.next()? == '\\' && characters.next()? == 'u').then_some(())?;
            let low = unit(characters)?.checked_sub(0xdc00)?;
            return char::from_u32(0x10000 + ((high - 0xd800) << 10) + low);
        }
        same @ ('"' | '\\' | '/') => same,
        _ => return None,
    })
}

fn unit(characters: &mut std::str::Chars<'_>) -> Option<u32> {
    let digits: String = characters.take(4).collect();
    u32::from_str_radix(&digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parsed_values_are_written_unchanged() {
        for text in [
            "null",
            "true",
            "-1.50e3",
            r#""a\"b\\c\nd""#,
            r#"[1,[],{"a":{"b":[null]}}]"#,
            r#"{"a":1,"b":"é"}"#,
        ] {
            assert_eq!(Json::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Json::parse(r#" "\u00e9\ud83d\ude00" "#).unwrap(), Json::from("é😀"));
    }

    #[test]
    fn invalid_json_is_rejected() {
        for text in ["", "{", "[1,]", "{\"a\"}", "nul", "1 2", "\"a", "\"\\x\"", "\"\\ud83d\"", "{1:2}"] {
            assert!(Json::parse(text).is_err(), "{text}");
        }
        assert!(Json::parse(&"[".repeat(100_000)).is_err());
    }

    #[test]
    fn paths_address_members_and_list_items() {
        let value = Json::parse(r#"{"a":[{"b":"c"}],"n":7}"#).unwrap();
        value.is("a.0.b", "c").unwrap();
        value.is("n", 7).unwrap();
        value.lacks("a.1").unwrap();
        value.is_json("a", r#"[{"b":"c"}]"#).unwrap();
        assert!(value.is("a.0.b", "d").is_err() && value.text("n").is_err() && value.at("x").is_err());
        assert_eq!(Json::parse(r#"{"x":1,"y":2}"#).unwrap(), Json::parse(r#"{"y":2,"x":1}"#).unwrap());
    }
}
