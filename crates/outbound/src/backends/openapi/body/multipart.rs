//! Bodies of the media type `multipart/form-data`: one part for each property, or for each element of a list.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
};

use bytes::Bytes;
use http::HeaderValue;
use protocol::{Content, Part};
use serde_json::value::RawValue;

use super::{MULTIPART, decoded, properties, string};
use crate::backends::openapi::{Tree, document::Document};

/// The properties that are files, with their media types. Their arguments are strings in Base64.
pub(crate) struct Files(BTreeMap<String, HeaderValue>);

impl Files {
    pub(super) fn of(document: &Document, content: &Tree) -> Result<Self, String> {
        let mut files = BTreeMap::new();
        let Some(schema) = content.get("schema") else { return Ok(Self(files)) };
        let described = document.resolve(schema)?["properties"].as_object().into_iter().flatten();
        for (name, property) in described {
            let property = document.resolve(property)?;
            let element = property.get("items").map_or(Ok(property), |items| document.resolve(items))?;
            if is_file(element) {
                let given = content["encoding"][name]["contentType"].as_str().unwrap_or_default();
                let media_type = given.split(',').next().map(str::trim).filter(|name| !name.contains('*'));
                let media_type = media_type.and_then(|name| HeaderValue::from_str(name).ok());
                let media_type = media_type.filter(|name| !name.is_empty());
                let default = HeaderValue::from_static("application/octet-stream");
                files.insert(name.clone(), media_type.unwrap_or(default));
            }
        }
        Ok(Self(files))
    }

    pub(super) fn write(&self, argument: &RawValue, sent: &[Part]) -> Result<(HeaderValue, Bytes), String> {
        let mut parts = Vec::new();
        for (name, value) in properties(argument)? {
            let elements: Vec<&RawValue> = match value.get().as_bytes().first() {
                Some(b'[') => serde_json::from_str(value.get()).map_err(|_| "is not valid Unicode")?,
                Some(b'n') => Vec::new(),
                _ => vec![value],
            };
            for element in elements {
                let part = self.part(&name, element, sent).map_err(|problem| format!("{name}: {problem}"))?;
                parts.push(part);
            }
        }
        let boundary = boundary(&parts);
        let mut body = Vec::new();
        for part in &parts {
            body.extend_from_slice(format!("--{boundary}\r\n").as_bytes());
            body.extend_from_slice(part);
            body.extend_from_slice(b"\r\n");
        }
        body.extend_from_slice(format!("--{boundary}--\r\n").as_bytes());
        let media_type = HeaderValue::try_from(format!("{MULTIPART}; boundary={boundary}"));
        Ok((media_type.expect("a boundary is alphanumeric"), body.into()))
    }

    /// The head and the content of a part.
    fn part(&self, name: &str, value: &RawValue, sent: &[Part]) -> Result<Vec<u8>, String> {
        let disposition = format!("content-disposition: form-data; name=\"{}\"", quoted(name));
        let (head, content) = match (self.0.get(name), value.get().as_bytes().first()) {
            (Some(media_type), _) => {
                let bytes = decoded(&string(value)?)?;
                let file =
                    sent.iter().find(|part| matches!(&part.content, Content::Raw(raw) if *raw == bytes));
                let filename = file.and_then(|part| part.filename.as_deref()).unwrap_or(name);
                let given = file.and_then(|part| HeaderValue::from_str(part.media_type.as_deref()?).ok());
                let media_type = given.as_ref().unwrap_or(media_type).to_str().unwrap_or_default();
                let head =
                    format!("{disposition}; filename=\"{}\"\r\ncontent-type: {media_type}", quoted(filename));
                (head, bytes)
            }
            (None, Some(b'"')) => (disposition, string(value)?.into_bytes()),
            (None, Some(b'{')) => {
                (format!("{disposition}\r\ncontent-type: application/json"), value.get().into())
            }
            (None, _) => (disposition, value.get().into()),
        };
        Ok([format!("{head}\r\n\r\n").into_bytes(), content].concat())
    }
}

fn is_file(schema: &Tree) -> bool {
    schema["format"] == "binary"
        || schema["contentEncoding"] == "base64"
        || schema["contentMediaType"] == "application/octet-stream"
}

/// A name as the HTML standard writes it.
fn quoted(name: &str) -> String {
    let quote = |sign: char| match sign {
        '"' => "%22".into(),
        '\r' => "%0D".into(),
        '\n' => "%0A".into(),
        sign => sign.to_string(),
    };
    name.chars().map(quote).collect()
}

/// A boundary that occurs in no part.
fn boundary(parts: &[Vec<u8>]) -> String {
    let candidate = |number: u64| {
        let mut hasher = DefaultHasher::new();
        (number, parts).hash(&mut hasher);
        format!("a2ad{:016x}", hasher.finish())
    };
    let occurs = |boundary: &String| {
        let wanted = boundary.as_bytes();
        parts.iter().any(|part| part.windows(wanted.len()).any(|window| window == wanted))
    };
    (0..).map(candidate).find(|boundary| !occurs(boundary)).expect("parts are finite")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::backends::openapi::parse;

    #[test]
    fn each_property_is_a_part() {
        let document = parse("openapi: 3.1.0").unwrap();
        let content = json!({
            "schema": {"properties": {"logo": {"type": "string", "format": "binary"}, "tags": {"type": "array"}}},
            "encoding": {"logo": {"contentType": "image/png, image/jpeg"}},
        });
        let files = Files::of(&document, &content).unwrap();
        let argument: Box<RawValue> =
            serde_json::from_str(r#"{"logo":"AP8=","n\r\n\"x":"\r\n--","tags":["a",{"k":1}],"void":null}"#)
                .unwrap();
        let (media_type, bytes) = files.write(&argument, &[]).unwrap();
        let boundary = media_type.to_str().unwrap().strip_prefix("multipart/form-data; boundary=").unwrap();
        let parts: [&[u8]; 4] = [
            b"content-disposition: form-data; name=\"logo\"; filename=\"logo\"\r\ncontent-type: image/png\r\n\r\n\0\xff",
            b"content-disposition: form-data; name=\"n%0D%0A%22x\"\r\n\r\n\r\n--",
            b"content-disposition: form-data; name=\"tags\"\r\n\r\na",
            b"content-disposition: form-data; name=\"tags\"\r\ncontent-type: application/json\r\n\r\n{\"k\":1}",
        ];
        let mut expected = Vec::new();
        for part in parts {
            expected.extend([format!("--{boundary}\r\n").as_bytes(), part, b"\r\n"].concat());
        }
        expected.extend(format!("--{boundary}--\r\n").as_bytes());
        assert_eq!(bytes, expected);
        assert!(
            files.write(&serde_json::from_str::<Box<RawValue>>(r#"{"logo":"?"}"#).unwrap(), &[]).is_err()
        );
    }
}
