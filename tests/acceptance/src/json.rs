//! Assertions on JSON values at a path such as `result.artifacts.0.name`.
//!
//! A [`Value`] holds numbers as integers or floats and objects without the order of their members. Where a check is
//! about the exact text, [`is_exactly`] compares the tokens as well.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::{Value, json, value::RawValue};

use super::{CheckError, CheckResult, mismatch};

pub(crate) fn parse(text: &str) -> Result<Value, CheckError> {
    serde_json::from_str(text).map_err(|_| mismatch("JSON", text))
}

/// A string as a JSON string literal.
pub(crate) fn quote(text: &str) -> String {
    Value::from(text).to_string()
}

/// Assertions on the value at a path; the empty path is the value itself.
pub(crate) trait ValueChecks {
    fn value(&self) -> &Value;

    fn find(&self, path: &str) -> Option<&Value> {
        path.split('.').filter(|step| !step.is_empty()).try_fold(self.value(), |value, step| match value {
            Value::Object(members) => members.get(step),
            Value::Array(items) => items.get(step.parse::<usize>().ok()?),
            _ => None,
        })
    }

    /// The value at a path, which must exist.
    fn at(&self, path: &str) -> Result<&Value, CheckError> {
        self.find(path).ok_or_else(|| mismatch(format!("a member {path}"), self.value()))
    }

    /// The string at a path.
    fn text(&self, path: &str) -> Result<&str, CheckError> {
        self.at(path)?.as_str().ok_or_else(|| mismatch(format!("a string at {path}"), self.value()))
    }

    /// The string at a path, which must not be empty.
    fn non_empty(&self, path: &str) -> Result<&str, CheckError> {
        match self.text(path)? {
            "" => Err(mismatch(format!("a non-empty string at {path}"), self.value())),
            text => Ok(text),
        }
    }

    fn list(&self, path: &str) -> Result<&[Value], CheckError> {
        let items = self.at(path)?.as_array();
        items.map(Vec::as_slice).ok_or_else(|| mismatch(format!("a list at {path}"), self.value()))
    }

    /// The length of the list at a path; 0 where there is no list.
    fn count(&self, path: &str) -> usize {
        self.find(path).and_then(Value::as_array).map_or(0, Vec::len)
    }

    /// The strings of the list at a path.
    fn texts(&self, path: &str) -> Result<Vec<&str>, CheckError> {
        self.list(path)?.iter().map(|item| item.text("")).collect()
    }

    /// The member names of an object; empty for any other value.
    fn names(&self) -> Vec<&str> {
        let members = self.value().as_object();
        members.map(|members| members.keys().map(String::as_str).collect()).unwrap_or_default()
    }

    /// Checks that the value at a path equals `expected`.
    fn is(&self, path: &str, expected: impl Serialize) -> CheckResult {
        let expected = json!(expected);
        self.ensure(self.find(path) == Some(&expected), &format!("{path} = {expected}"))
    }

    /// Like [`Self::is`], with the expected value given as JSON text.
    fn is_json(&self, path: &str, expected: &str) -> CheckResult {
        self.is(path, parse(expected)?)
    }

    /// Checks that the value at a path is absent, null or an empty list.
    fn lacks(&self, path: &str) -> CheckResult {
        let absent = match self.find(path) {
            None | Some(Value::Null) => true,
            Some(Value::Array(items)) => items.is_empty(),
            Some(_) => false,
        };
        self.ensure(absent, &format!("nothing at {path}"))
    }

    /// Checks a condition; `expected` describes it in the error.
    fn ensure(&self, holds: bool, expected: &str) -> CheckResult {
        if holds { Ok(()) } else { Err(mismatch(expected, self.value())) }
    }
}

impl ValueChecks for Value {
    fn value(&self) -> &Value {
        self
    }
}

/// Whether the order of the members of objects counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemberOrder {
    Any,
    Same,
}

/// Checks that a JSON text has the value of another one, with every number spelled the same.
pub(crate) fn is_exactly(got: &str, expected: &str, order: MemberOrder) -> CheckResult {
    let (mut got_tokens, mut expected_tokens) = (tokens(got), tokens(expected));
    if order == MemberOrder::Any {
        got_tokens.sort_unstable();
        expected_tokens.sort_unstable();
    }
    let same = parse(got)? == parse(expected)? && got_tokens == expected_tokens;
    if same { Ok(()) } else { Err(mismatch(expected, got)) }
}

/// The text of the value at a path of a JSON text.
pub(crate) fn text_at<'a>(json: &'a str, path: &str) -> Result<&'a str, CheckError> {
    let step = |value: &'a str, step: &str| -> Option<&'a str> {
        match step.parse::<usize>() {
            Ok(index) => serde_json::from_str::<Vec<&'a RawValue>>(value).ok()?.get(index).copied(),
            Err(_) => serde_json::from_str::<HashMap<String, &'a RawValue>>(value).ok()?.remove(step),
        }
        .map(RawValue::get)
    };
    let found = path.split('.').try_fold(json, step);
    found.ok_or_else(|| mismatch(format!("a member {path}"), json))
}

/// The tokens of a JSON text: strings in one spelling, everything else as it is written.
fn tokens(text: &str) -> Vec<String> {
    const PUNCTUATION: [char; 6] = ['{', '}', '[', ']', ',', ':'];
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '"' => string_end(rest),
            _ if PUNCTUATION.contains(&first) => Some(1),
            _ => rest.find(|c: char| c.is_whitespace() || PUNCTUATION.contains(&c)),
        };
        let (token, after) = rest.split_at(end.unwrap_or(rest.len()));
        tokens
            .push(serde_json::from_str(token).map_or_else(|_| token.to_owned(), |text: String| quote(&text)));
        rest = after.trim_start();
    }
    tokens
}

/// The length of the string literal at the start of a text.
fn string_end(text: &str) -> Option<usize> {
    let mut escaped = false;
    let closes = |(_, byte): &(usize, u8)| {
        let closes = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        closes
    };
    text.bytes().enumerate().skip(1).find(closes).map(|(index, _)| index + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_as_they_are_written() {
        for text in [
            "null",
            "true",
            "-1.50e3",
            r#""a\"b\\c\nd""#,
            r#""\\""#,
            r#"[1,[],{"a":{"b":[null]}}]"#,
            r#"{"a":1,"b":"é"}"#,
        ] {
            assert_eq!(tokens(text).concat(), text);
        }
        assert_eq!(tokens(" { \"\\u00e9\" : [ 1.50 ] }\n").concat(), r#"{"é":[1.50]}"#);
        assert_eq!(parse(r#" "\u00e9\ud83d\ude00" "#).unwrap(), json!("é😀"));
    }

    #[test]
    fn an_exact_comparison_sees_the_spelling_of_numbers_and_the_order_of_members() {
        let same = |got: &str, order| is_exactly(got, r#"{"n":1.50,"s":"A"}"#, order).is_ok();
        assert!(same(r#"{ "n": 1.50, "s": "\u0041" }"#, MemberOrder::Same));
        assert!(same(r#"{"s":"A","n":1.50}"#, MemberOrder::Any));
        assert!(!same(r#"{"s":"A","n":1.50}"#, MemberOrder::Same));
        for changed in [r#"{"n":1.5,"s":"A"}"#, r#"{"n":1.50,"s":"B"}"#, r#"{"n":"1.50","s":"A"}"#, "{"] {
            assert!(!same(changed, MemberOrder::Any), "{changed}");
        }
    }

    #[test]
    fn the_text_at_a_path_is_unchanged() {
        let json = r#"{"a":[0,{"b":1.50}],"é":{"x":"\u0041"}}"#;
        assert_eq!(text_at(json, "a.1.b").unwrap(), "1.50");
        assert_eq!(text_at(json, "é.x").unwrap(), r#""\u0041""#);
        assert!(text_at(json, "a.2").is_err() && text_at(json, "b").is_err());
    }

    #[test]
    fn invalid_json_is_rejected() {
        for text in ["", "{", "[1,]", "{\"a\"}", "nul", "1 2", "\"a", "\"\\x\"", "\"\\ud83d\"", "{1:2}"] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert!(parse(&"[".repeat(100_000)).is_err());
    }

    #[test]
    fn paths_address_members_and_list_items() {
        let value = parse(r#"{"a":[{"b":"c"}],"n":7}"#).unwrap();
        value.is("a.0.b", "c").unwrap();
        value.is("n", 7).unwrap();
        value.lacks("a.1").unwrap();
        value.is_json("a", r#"[{"b":"c"}]"#).unwrap();
        assert!(value.is("a.0.b", "d").is_err() && value.text("n").is_err() && value.at("x").is_err());
        assert_eq!(parse(r#"{"x":1,"y":2}"#).unwrap(), parse(r#"{"y":2,"x":1}"#).unwrap());
    }
}
