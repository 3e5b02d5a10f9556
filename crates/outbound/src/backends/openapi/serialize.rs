//! Arguments as text in a path, a query, a header or a form: the styles of OpenAPI parameters.
//!
//! Numbers keep the digits that the client sent. Names and values are percent-encoded, including those that
//! `allowReserved` would leave as they are: servers decode both.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use super::path::encode;

/// How values of several elements are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Simple,
    Form,
    SpaceDelimited,
    PipeDelimited,
    DeepObject,
}

/// Maximum nesting depth of a `deepObject`.
const MAX_DEPTH: usize = 8;

/// An argument, as far as its parts are written separately.
enum Value<'a> {
    Null,
    /// A string without quotes and escapes; a number or boolean as it was sent.
    Scalar(String),
    List(Vec<&'a RawValue>),
    /// Of members with the same name, the last: the schema check reads the same.
    Object(BTreeMap<String, &'a RawValue>),
}

/// An encoded name and an encoded value.
pub(super) type Pair = (String, String);

const UNREADABLE: &str = "is not valid Unicode";

impl<'a> Value<'a> {
    fn read(raw: &'a RawValue) -> Result<Self, String> {
        let text = raw.get();
        Ok(match text.as_bytes().first() {
            Some(b'n') | None => Self::Null,
            Some(b'"') => Self::Scalar(serde_json::from_str(text).map_err(|_| UNREADABLE)?),
            Some(b'[') => Self::List(serde_json::from_str(text).map_err(|_| UNREADABLE)?),
            Some(b'{') => Self::Object(serde_json::from_str(text).map_err(|_| UNREADABLE)?),
            Some(_) => Self::Scalar(text.to_owned()),
        })
    }
}

/// One value or several, joined by commas: the style `simple` of paths and headers. `encoded` is applied to each.
pub(super) fn simple(raw: &RawValue, explode: bool, encoded: fn(&str) -> String) -> Result<String, String> {
    let (equals, comma) = if explode { ("=", ",") } else { (",", ",") };
    let item = |raw: &RawValue| scalar(raw).map(|text| encoded(&text));
    Ok(match Value::read(raw)? {
        Value::Null => return Err("must not be null".into()),
        Value::Scalar(text) => encoded(&text),
        Value::List(list) => {
            let items: Vec<_> = list.into_iter().map(item).collect::<Result<_, _>>()?;
            if items.len() > 1 && items.iter().any(String::is_empty) {
                return Err("must not have empty elements".into());
            }
            items.join(comma)
        }
        Value::Object(members) => {
            let pair = |(name, raw): (String, _)| Ok(format!("{}{equals}{}", encoded(&name), item(raw)?));
            members.into_iter().map(pair).collect::<Result<Vec<_>, String>>()?.join(comma)
        }
    })
}

/// A value as pairs of a query or of a form. Null and empty lists have none.
pub(super) fn pairs(name: &str, style: Style, explode: bool, raw: &RawValue) -> Result<Vec<Pair>, String> {
    if style == Style::DeepObject {
        let mut pairs = Vec::new();
        deep(encode(name), raw, 0, &mut pairs)?;
        return Ok(pairs);
    }
    let delimiter = match style {
        Style::SpaceDelimited => "%20",
        Style::PipeDelimited => "%7C",
        Style::Simple | Style::Form | Style::DeepObject => ",",
    };
    let one = |value: String| (encode(name), value);
    let item = |raw: &RawValue| scalar(raw).map(|text| encode(&text));
    Ok(match Value::read(raw)? {
        Value::Null => Vec::new(),
        Value::Scalar(text) => vec![one(encode(&text))],
        Value::List(list) => {
            let items: Vec<_> = list.into_iter().map(item).collect::<Result<_, _>>()?;
            match items.is_empty() || explode {
                true => items.into_iter().map(one).collect(),
                false => vec![one(items.join(delimiter))],
            }
        }
        Value::Object(members) => {
            let members: Vec<Pair> = members
                .into_iter()
                .map(|(name, raw)| Ok((encode(&name), item(raw)?)))
                .collect::<Result<_, String>>()?;
            if members.is_empty() || explode {
                return Ok(members);
            }
            let texts: Vec<_> = members.into_iter().flat_map(|(name, value)| [name, value]).collect();
            vec![one(texts.join(delimiter))]
        }
    })
}

/// `name[member]=value`, and `name[0]=value` for lists, at each level.
fn deep(name: String, raw: &RawValue, depth: usize, pairs: &mut Vec<Pair>) -> Result<(), String> {
    if depth > MAX_DEPTH {
        return Err(format!("must be nested at most {MAX_DEPTH} deep"));
    }
    let below = |key: &str| format!("{name}%5B{}%5D", encode(key));
    match Value::read(raw)? {
        Value::Null => {}
        Value::Scalar(text) => pairs.push((name, encode(&text))),
        Value::List(list) => {
            for (at, raw) in list.into_iter().enumerate() {
                deep(below(&at.to_string()), raw, depth + 1, pairs)?;
            }
        }
        Value::Object(members) => {
            for (key, raw) in members {
                deep(below(&key), raw, depth + 1, pairs)?;
            }
        }
    }
    Ok(())
}

fn scalar(raw: &RawValue) -> Result<String, String> {
    match Value::read(raw)? {
        Value::Scalar(text) => Ok(text),
        Value::Null => Ok(String::new()),
        Value::List(_) | Value::Object(_) => Err("must not have nested objects or lists".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(style: Style, explode: bool, json: &str) -> String {
        let raw: Box<RawValue> = serde_json::from_str(json).unwrap();
        let pairs = pairs("n m", style, explode, &raw).unwrap();
        pairs.into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("&")
    }

    #[test]
    fn query_styles() {
        let (list, object) = (r#"["a b","c,d",9007199254740993]"#, r#"{"x":1.50,"y":"&"}"#);
        for (style, explode, json, expected) in [
            (Style::Form, true, list, "n%20m=a%20b&n%20m=c%2Cd&n%20m=9007199254740993"),
            (Style::Form, false, list, "n%20m=a%20b,c%2Cd,9007199254740993"),
            (Style::SpaceDelimited, false, list, "n%20m=a%20b%20c%2Cd%209007199254740993"),
            (Style::PipeDelimited, false, list, "n%20m=a%20b%7Cc%2Cd%7C9007199254740993"),
            (Style::Form, true, object, "x=1.50&y=%26"),
            (Style::Form, false, object, "n%20m=x,1.50,y,%26"),
            (Style::DeepObject, true, object, "n%20m%5Bx%5D=1.50&n%20m%5By%5D=%26"),
            (Style::DeepObject, true, r#"{"a":{"b":[true]}}"#, "n%20m%5Ba%5D%5Bb%5D%5B0%5D=true"),
            (Style::Form, false, "[]", ""),
            (Style::Form, true, "null", ""),
            (Style::Form, true, r#""""#, "n%20m="),
        ] {
            assert_eq!(query(style, explode, json), expected);
        }
    }

    #[test]
    fn simple_style() {
        let written = |explode: bool, json: &str| {
            simple(&serde_json::from_str::<Box<RawValue>>(json).unwrap(), explode, encode)
        };
        assert_eq!(written(false, r#"["a,b","c"]"#).as_deref(), Ok("a%2Cb,c"));
        assert_eq!(written(false, r#"{"x":1,"y":2}"#).as_deref(), Ok("x,1,y,2"));
        assert_eq!(written(true, r#"{"x":1,"y":2}"#).as_deref(), Ok("x=1,y=2"));
        assert!(written(true, "null").is_err());
        assert!(written(true, r#"[["a"]]"#).is_err());
    }
}
