//! Arguments as text in a path, a query, a header, a cookie or a form: the styles of OpenAPI parameters.
//!
//! Numbers keep the digits that the client sent. Names and values are percent-encoded, including those that
//! `allowReserved` would leave as they are: servers decode both.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::backends::http::encode::encode;

/// How values of several elements are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Simple,
    Label,
    Matrix,
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

/// A value of a header: the style `simple`, not encoded.
pub(super) fn in_header(raw: &RawValue, explode: bool) -> Result<String, String> {
    simple(raw, explode, str::to_owned)
}

/// A value of a path, with what its style writes before it.
pub(super) fn in_path(name: &str, style: Style, explode: bool, raw: &RawValue) -> Result<String, String> {
    match style {
        Style::Label => label(raw, explode),
        Style::Matrix => matrix(&encode(name), raw, explode),
        _ => simple(raw, explode, encode),
    }
}

/// One value or several, joined by commas.
fn simple(raw: &RawValue, explode: bool, encoded: fn(&str) -> String) -> Result<String, String> {
    let items = match Value::read(raw)? {
        Value::Null => return Err(NULL.into()),
        Value::Scalar(text) => return Ok(encoded(&text)),
        Value::List(list) => items(list, encoded)?,
        Value::Object(members) => joined(members, if explode { "=" } else { "," }, encoded)?,
    };
    if items.len() > 1 && items.iter().any(String::is_empty) {
        return Err("must not have empty elements".into());
    }
    Ok(items.join(","))
}

/// A dot before each value, or before all of them.
fn label(raw: &RawValue, explode: bool) -> Result<String, String> {
    let items = match Value::read(raw)? {
        Value::Null => return Err(NULL.into()),
        Value::Scalar(text) => vec![encode(&text)],
        Value::List(list) => items(list, encode)?,
        Value::Object(members) => joined(members, if explode { "=" } else { "," }, encode)?,
    };
    if items.iter().any(String::is_empty) {
        return Err("must not be empty or have empty elements".into());
    }
    let between = if explode { "." } else { "," };
    Ok(if items.is_empty() { String::new() } else { format!(".{}", items.join(between)) })
}

/// `;name=value` for each value or for all of them.
fn matrix(name: &str, raw: &RawValue, explode: bool) -> Result<String, String> {
    let with_name = |value: &str| match value {
        "" => format!(";{name}"),
        value => format!(";{name}={value}"),
    };
    Ok(match Value::read(raw)? {
        Value::Null => return Err(NULL.into()),
        Value::Scalar(text) => with_name(&encode(&text)),
        Value::List(list) if explode => items(list, encode)?.iter().map(|item| with_name(item)).collect(),
        Value::List(list) => with_name(&items(list, encode)?.join(",")),
        Value::Object(members) if explode => {
            joined(members, "=", encode)?.into_iter().map(|item| format!(";{item}")).collect()
        }
        Value::Object(members) => with_name(&joined(members, ",", encode)?.join(",")),
    })
}

/// A value as pairs of a query, of cookies or of a form. Null and empty lists have none.
pub(super) fn pairs(name: &str, style: Style, explode: bool, raw: &RawValue) -> Result<Vec<Pair>, String> {
    if style == Style::DeepObject {
        let mut pairs = Vec::new();
        deep(encode(name), raw, 0, &mut pairs)?;
        return Ok(pairs);
    }
    let delimiter = match style {
        Style::SpaceDelimited => "%20",
        Style::PipeDelimited => "%7C",
        _ => ",",
    };
    let one = |value: String| (encode(name), value);
    Ok(match Value::read(raw)? {
        Value::Null => Vec::new(),
        Value::Scalar(text) => vec![one(encode(&text))],
        Value::List(list) => {
            let items = items(list, encode)?;
            match items.is_empty() || explode {
                true => items.into_iter().map(one).collect(),
                false => vec![one(items.join(delimiter))],
            }
        }
        Value::Object(members) => {
            let members: Vec<Pair> = members
                .into_iter()
                .map(|(name, raw)| Ok((encode(&name), encode(&scalar(raw)?))))
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

const NULL: &str = "must not be null";

fn items(list: Vec<&RawValue>, encoded: fn(&str) -> String) -> Result<Vec<String>, String> {
    list.into_iter().map(|raw| scalar(raw).map(|text| encoded(&text))).collect()
}

/// Each member as its name and its value with `between` in between.
fn joined(
    members: BTreeMap<String, &RawValue>,
    between: &str,
    encoded: fn(&str) -> String,
) -> Result<Vec<String>, String> {
    let join = |(name, raw): (String, &RawValue)| {
        Ok(format!("{}{between}{}", encoded(&name), encoded(&scalar(raw)?)))
    };
    members.into_iter().map(join).collect()
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

    fn raw(json: &str) -> Box<RawValue> {
        serde_json::from_str(json).unwrap()
    }

    const LIST: &str = r#"["a b","c,d",9007199254740993]"#;
    const OBJECT: &str = r#"{"x":1.50,"y":"&"}"#;

    #[test]
    fn query_styles() {
        for (style, explode, json, expected) in [
            (Style::Form, true, LIST, "n%20m=a%20b&n%20m=c%2Cd&n%20m=9007199254740993"),
            (Style::Form, false, LIST, "n%20m=a%20b,c%2Cd,9007199254740993"),
            (Style::SpaceDelimited, false, LIST, "n%20m=a%20b%20c%2Cd%209007199254740993"),
            (Style::PipeDelimited, false, LIST, "n%20m=a%20b%7Cc%2Cd%7C9007199254740993"),
            (Style::PipeDelimited, true, LIST, "n%20m=a%20b&n%20m=c%2Cd&n%20m=9007199254740993"),
            (Style::Form, true, OBJECT, "x=1.50&y=%26"),
            (Style::Form, false, OBJECT, "n%20m=x,1.50,y,%26"),
            (Style::DeepObject, true, OBJECT, "n%20m%5Bx%5D=1.50&n%20m%5By%5D=%26"),
            (Style::DeepObject, true, r#"{"a":{"b":[true]}}"#, "n%20m%5Ba%5D%5Bb%5D%5B0%5D=true"),
            (Style::Form, false, "[]", ""),
            (Style::Form, true, "null", ""),
            (Style::Form, true, r#""""#, "n%20m="),
        ] {
            let pairs = pairs("n m", style, explode, &raw(json)).unwrap();
            let written: Vec<_> = pairs.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
            assert_eq!(written.join("&"), expected);
        }
    }

    /// The table of the OpenAPI specification, which follows RFC 6570.
    #[test]
    fn path_styles() {
        let (list, object) = (r#"["blue","black"]"#, r#"{"B":150,"R":100}"#);
        for (style, explode, json, expected) in [
            (Style::Simple, false, LIST, "a%20b,c%2Cd,9007199254740993"),
            (Style::Simple, false, object, "B,150,R,100"),
            (Style::Simple, true, object, "B=150,R=100"),
            (Style::Label, false, r#""blue""#, ".blue"),
            (Style::Label, false, list, ".blue,black"),
            (Style::Label, true, list, ".blue.black"),
            (Style::Label, false, object, ".B,150,R,100"),
            (Style::Label, true, object, ".B=150.R=100"),
            (Style::Matrix, false, r#""blue""#, ";c%3B=blue"),
            (Style::Matrix, false, r#""""#, ";c%3B"),
            (Style::Matrix, false, list, ";c%3B=blue,black"),
            (Style::Matrix, true, list, ";c%3B=blue;c%3B=black"),
            (Style::Matrix, false, object, ";c%3B=B,150,R,100"),
            (Style::Matrix, true, object, ";B=150;R=100"),
        ] {
            assert_eq!(in_path("c;", style, explode, &raw(json)).as_deref(), Ok(expected));
        }
        for style in [Style::Simple, Style::Label, Style::Matrix] {
            assert!(in_path("c", style, true, &raw("null")).is_err());
            assert!(in_path("c", style, true, &raw(r#"[["a"]]"#)).is_err());
        }
    }
}
