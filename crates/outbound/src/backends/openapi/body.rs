//! The request body of an operation: JSON, a form, a text or a file.

mod multipart;

use std::{collections::BTreeMap, sync::LazyLock};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::HeaderValue;
use protocol::Part;
use serde_json::{json, value::RawValue};

use self::multipart::Files;
use super::{
    Tree,
    document::{Document, shorten},
    parameter::is_json,
    serialize::{Style, pairs},
};

const FORM: &str = "application/x-www-form-urlencoded";
const MULTIPART: &str = "multipart/form-data";

/// The argument of a body that is a text without a schema.
static TEXT_SCHEMA: LazyLock<Tree> = LazyLock::new(|| json!({"type": "string"}));
/// The argument of a body that is a file.
static FILE_SCHEMA: LazyLock<Tree> = LazyLock::new(|| json!({"type": "string", "contentEncoding": "base64"}));

/// How the body is written.
pub(super) enum BodyFormat {
    /// The argument as the client sent it.
    Json(HeaderValue),
    /// The properties of the argument, with the styles of those that have one.
    Form(BTreeMap<String, (Style, bool)>),
    /// Each property of the argument is a part.
    Multipart(Files),
    /// The argument is a string.
    Text(HeaderValue),
    /// The argument is a string in Base64.
    File(HeaderValue),
}

/// The body as the document describes it.
pub(super) struct Body<'d> {
    pub(super) format: BodyFormat,
    pub(super) required: bool,
    pub(super) schema: Option<&'d Tree>,
    pub(super) description: Option<&'d str>,
}

/// A body that can be sent.
pub(super) struct WrittenBody {
    pub(super) media_type: HeaderValue,
    pub(super) bytes: Bytes,
}

/// The body of an operation, if it has one. The error is the reason why the operation is skipped.
pub(super) fn body<'d>(document: &'d Document, operation: &'d Tree) -> Result<Option<Body<'d>>, String> {
    let Some(described) = operation.get("requestBody") else { return Ok(None) };
    let described = document.resolve(described)?;
    let Some(content) = described["content"].as_object().filter(|content| !content.is_empty()) else {
        return Ok(None);
    };
    let mut choices: Vec<(u8, BodyFormat, &Tree)> = Vec::new();
    for (name, content) in content {
        if let Some((rank, format)) = format(document, name, content)? {
            choices.push((rank, format, content));
        }
    }
    let Some((_, format, content)) = choices.into_iter().min_by_key(|(rank, ..)| *rank) else {
        let names: Vec<_> = content.keys().map(String::as_str).collect();
        return Err(format!("its request body is {}", shorten(&names.join(" or "), 200)));
    };
    let schema = match format {
        BodyFormat::Text(_) => content.get("schema").or(Some(&TEXT_SCHEMA)),
        BodyFormat::File(_) => Some(&*FILE_SCHEMA),
        _ => content.get("schema"),
    };
    let description = described["description"].as_str();
    Ok(Some(Body { format, required: described["required"] == true, schema, description }))
}

/// How a body of this media type is written, and its rank among the choices; `None` if it cannot be written.
fn format(document: &Document, name: &str, content: &Tree) -> Result<Option<(u8, BodyFormat)>, String> {
    let essence = name.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let Ok(media_type) = HeaderValue::try_from(&essence) else { return Ok(None) };
    Ok(Some(match essence.as_str() {
        "application/json" => (0, BodyFormat::Json(media_type)),
        "*/*" => (2, BodyFormat::Json(HeaderValue::from_static("application/json"))),
        FORM => (3, BodyFormat::Form(styles(content)?)),
        MULTIPART => (4, BodyFormat::Multipart(Files::of(document, content)?)),
        json if is_json(json) => (1, BodyFormat::Json(media_type)),
        text if text.starts_with("text/") && !text.contains('*') => (5, BodyFormat::Text(media_type)),
        file if is_file(file) => (6, BodyFormat::File(media_type)),
        _ => return Ok(None),
    }))
}

fn is_file(essence: &str) -> bool {
    let kinds = ["image/", "audio/", "video/"];
    let is_one = matches!(essence, "application/octet-stream" | "application/pdf" | "application/zip");
    is_one || (kinds.iter().any(|kind| essence.starts_with(kind)) && !essence.contains('*'))
}

/// The styles of a form's properties.
fn styles(content: &Tree) -> Result<BTreeMap<String, (Style, bool)>, String> {
    let described = content["encoding"].as_object().into_iter().flatten();
    let read = |(name, encoding): (&String, &Tree)| {
        let style = match encoding["style"].as_str() {
            None | Some("form") => Style::Form,
            Some("spaceDelimited") => Style::SpaceDelimited,
            Some("pipeDelimited") => Style::PipeDelimited,
            Some("deepObject") => Style::DeepObject,
            Some(style) => {
                let style = shorten(style, 32);
                return Err(format!("its form has the style {style:?}, which is not supported"));
            }
        };
        let explode = encoding["explode"].as_bool().unwrap_or(style == Style::Form);
        Ok((name.clone(), (style, explode)))
    };
    described.map(read).collect()
}

impl BodyFormat {
    /// The body with an argument, which may have files of the message that was sent. The error is what is wrong with the argument.
    pub(super) fn write(&self, argument: &RawValue, sent: &[Part]) -> Result<WrittenBody, String> {
        let (media_type, bytes) = match self {
            Self::Json(media_type) => (media_type.clone(), argument.get().to_owned().into()),
            Self::Form(styles) => (HeaderValue::from_static(FORM), form(styles, argument)?.into()),
            Self::Multipart(files) => files.write(argument, sent)?,
            Self::Text(media_type) => (media_type.clone(), string(argument)?.into()),
            Self::File(media_type) => (media_type.clone(), decoded(&string(argument)?)?.into()),
        };
        Ok(WrittenBody { media_type, bytes })
    }
}

fn form(styles: &BTreeMap<String, (Style, bool)>, argument: &RawValue) -> Result<String, String> {
    let mut fields = Vec::new();
    for (name, value) in properties(argument)? {
        let (style, explode) = styles.get(&name).copied().unwrap_or_else(|| default_style(value));
        let written = pairs(&name, style, explode, value).map_err(|problem| format!("{name}: {problem}"))?;
        fields.extend(written.into_iter().map(|(name, value)| format!("{name}={value}")));
    }
    Ok(fields.join("&"))
}

/// Without `encoding`: a repeated name for each element of a list, and brackets for the members of an object.
fn default_style(value: &RawValue) -> (Style, bool) {
    if value.get().starts_with('{') { (Style::DeepObject, true) } else { (Style::Form, true) }
}

fn properties(argument: &RawValue) -> Result<BTreeMap<String, &RawValue>, String> {
    serde_json::from_str(argument.get()).map_err(|_| "must be an object, because it is sent as a form".into())
}

fn string(argument: &RawValue) -> Result<String, String> {
    serde_json::from_str(argument.get()).map_err(|_| "must be a string".into())
}

fn decoded(base64: &str) -> Result<Vec<u8>, String> {
    STANDARD.decode(base64).map_err(|_| "must be a file in Base64".into())
}

#[cfg(test)]
mod tests {
    use super::{super::parse, *};

    const OBJECT: &str = r#"{"a":[1,2],"b":"x y&z=","n":10000000000000000001,"o":{"k":true}}"#;

    fn written(content_json: &str, argument: &str) -> Result<(String, String), String> {
        let text = format!(r#"{{"openapi":"3.0.0","requestBody":{{"content":{content_json}}}}}"#);
        let document = parse(&text).unwrap();
        let body = body(&document, &document.root)?.ok_or("no body")?;
        let argument: Box<RawValue> = serde_json::from_str(argument).unwrap();
        let WrittenBody { media_type, bytes } = body.format.write(&argument, &[])?;
        Ok((media_type.to_str().unwrap().to_owned(), String::from_utf8(bytes.to_vec()).unwrap()))
    }

    #[test]
    fn json_goes_before_forms_and_is_sent_as_it_is() {
        let both = r#"{"application/x-www-form-urlencoded":{},"application/json; charset=utf-8":{}}"#;
        assert_eq!(written(both, OBJECT).unwrap(), ("application/json".into(), OBJECT.into()));
        let (media_type, _) = written(r#"{"text/plain":{},"application/merge-patch+json":{}}"#, "1").unwrap();
        assert_eq!(media_type, "application/merge-patch+json");
        assert_eq!(written(r#"{"*/*":{}}"#, "1").unwrap().0, "application/json");
    }

    #[test]
    fn forms_are_encoded() {
        let (media_type, text) = written(r#"{"application/x-www-form-urlencoded":{}}"#, OBJECT).unwrap();
        assert_eq!(media_type, FORM);
        assert_eq!(text, "a=1&a=2&b=x%20y%26z%3D&n=10000000000000000001&o%5Bk%5D=true");
        let encoding = r#"{"encoding":{"a":{"explode":false},"o":{"style":"form"}}}"#;
        let (_, text) =
            written(&format!(r#"{{"application/x-www-form-urlencoded":{encoding}}}"#), OBJECT).unwrap();
        assert_eq!(text, "a=1,2&b=x%20y%26z%3D&n=10000000000000000001&k=true");
        assert!(written(r#"{"application/x-www-form-urlencoded":{}}"#, "[1]").is_err());
    }

    #[test]
    fn texts_and_files_are_strings() {
        let text = written(r#"{"application/octet-stream":{},"text/x-markdown":{}}"#, r##""# T\n""##);
        assert_eq!(text.unwrap(), ("text/x-markdown".into(), "# T\n".into()));
        let file = written(r#"{"application/octet-stream":{}}"#, r#""YSBi""#);
        assert_eq!(file.unwrap(), ("application/octet-stream".into(), "a b".into()));
        for argument in ["1", r#""?""#] {
            assert!(written(r#"{"application/octet-stream":{}}"#, argument).is_err());
        }
    }

    #[test]
    fn other_media_types_are_named() {
        assert!(written(r#"{"application/xml":{}}"#, "1").unwrap_err().contains("application/xml"));
        assert_eq!(written("{}", "1").unwrap_err(), "no body");
    }
}
