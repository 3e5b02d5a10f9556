//! The request body of an operation: JSON, or a form.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::value::RawValue;

use super::{
    Tree,
    document::{Document, shorten},
    parameter::is_json,
    serialize::{Style, pairs},
};

const FORM: &str = "application/x-www-form-urlencoded";

/// How the body is written.
pub(super) enum BodyFormat {
    /// The argument as the client sent it, with this media type.
    Json(String),
    /// The properties of the argument, with the styles of those that have one.
    Form(BTreeMap<String, (Style, bool)>),
}

/// The body as the document describes it.
pub(super) struct Body<'d> {
    pub(super) format: BodyFormat,
    pub(super) required: bool,
    pub(super) schema: Option<&'d Tree>,
    pub(super) description: Option<&'d str>,
}

/// The body of an operation, if it has one. The error is the reason why the operation is skipped.
pub(super) fn body<'d>(document: &'d Document, operation: &'d Tree) -> Result<Option<Body<'d>>, String> {
    let Some(described) = operation.get("requestBody") else { return Ok(None) };
    let described = document.resolve(described)?;
    let Some(content) = described["content"].as_object().filter(|content| !content.is_empty()) else {
        return Ok(None);
    };
    let by = |wanted: &dyn Fn(&str) -> bool| content.iter().find(|(media_type, _)| wanted(media_type));
    let essence =
        |media_type: &str| media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let (format, content) = if let Some((_, content)) = by(&|name| essence(name) == "application/json") {
        (BodyFormat::Json("application/json".into()), content)
    } else if let Some((media_type, content)) = by(&is_json) {
        (BodyFormat::Json(essence(media_type)), content)
    } else if let Some((_, content)) = by(&|name| essence(name) == "*/*") {
        (BodyFormat::Json("application/json".into()), content)
    } else if let Some((_, content)) = by(&|name| essence(name) == FORM) {
        (BodyFormat::Form(encoding(content)?), content)
    } else {
        let names: Vec<_> = content.keys().map(String::as_str).collect();
        return Err(format!("its request body is {}, not JSON or a form", shorten(&names.join(" or "), 200)));
    };
    Ok(Some(Body {
        format,
        required: described["required"] == true,
        schema: content.get("schema"),
        description: described["description"].as_str(),
    }))
}

/// The styles of a form's properties.
fn encoding(content: &Tree) -> Result<BTreeMap<String, (Style, bool)>, String> {
    let described = content["encoding"].as_object().into_iter().flatten();
    let read = |(name, encoding): (&String, &Tree)| {
        let style = match encoding["style"].as_str() {
            None | Some("form") => Style::Form,
            Some("spaceDelimited") => Style::SpaceDelimited,
            Some("pipeDelimited") => Style::PipeDelimited,
            Some("deepObject") => Style::DeepObject,
            Some(style) => {
                return Err(format!(
                    "its form has the style {:?}, which is not supported",
                    shorten(style, 32)
                ));
            }
        };
        let explode = encoding["explode"].as_bool().unwrap_or(style == Style::Form);
        Ok((name.clone(), (style, explode)))
    };
    described.map(read).collect()
}

impl BodyFormat {
    pub(super) fn media_type(&self) -> &str {
        match self {
            Self::Json(media_type) => media_type,
            Self::Form(_) => FORM,
        }
    }

    /// The bytes of the body. The error is what is wrong with the argument.
    pub(super) fn write(&self, argument: &RawValue) -> Result<Bytes, String> {
        let Self::Form(styles) = self else { return Ok(Bytes::copy_from_slice(argument.get().as_bytes())) };
        let properties: BTreeMap<String, &RawValue> = serde_json::from_str(argument.get())
            .map_err(|_| "must be an object, because it is sent as a form")?;
        let mut fields = Vec::new();
        for (name, value) in properties {
            let (style, explode) = styles.get(&name).copied().unwrap_or_else(|| default_style(value));
            let written =
                pairs(&name, style, explode, value).map_err(|problem| format!("{name}: {problem}"))?;
            fields.extend(written.into_iter().map(|(name, value)| format!("{name}={value}")));
        }
        Ok(fields.join("&").into())
    }
}

/// Without `encoding`: a repeated name for each element of a list, and brackets for the members of an object.
fn default_style(value: &RawValue) -> (Style, bool) {
    if value.get().starts_with('{') { (Style::DeepObject, true) } else { (Style::Form, true) }
}

#[cfg(test)]
mod tests {
    use super::{super::parse, *};

    fn read(json: &str) -> Result<Option<(String, String)>, String> {
        let document =
            parse(&format!(r#"{{"openapi":"3.0.0","requestBody":{{"content":{json}}}}}"#)).unwrap();
        let body = body(&document, &document.root)?;
        let argument: Box<RawValue> =
            serde_json::from_str(r#"{"a":[1,2],"b":"x y&z=","n":10000000000000000001,"o":{"k":true}}"#)
                .unwrap();
        Ok(body.map(|body| {
            let bytes = body.format.write(&argument).unwrap();
            (body.format.media_type().to_owned(), String::from_utf8(bytes.to_vec()).unwrap())
        }))
    }

    #[test]
    fn json_goes_before_forms_and_is_sent_as_it_is() {
        let (media_type, text) =
            read(r#"{"application/x-www-form-urlencoded":{},"application/json; charset=utf-8":{}}"#)
                .unwrap()
                .unwrap();
        assert_eq!(media_type, "application/json");
        assert!(text.contains(r#""n":10000000000000000001"#));
        assert_eq!(
            read(r#"{"application/merge-patch+json":{}}"#).unwrap().unwrap().0,
            "application/merge-patch+json"
        );
    }

    #[test]
    fn forms_are_encoded() {
        let (_, text) = read(r#"{"application/x-www-form-urlencoded":{}}"#).unwrap().unwrap();
        assert_eq!(text, "a=1&a=2&b=x%20y%26z%3D&n=10000000000000000001&o%5Bk%5D=true");
        let (_, text) = read(
            r#"{"application/x-www-form-urlencoded":{"encoding":{"a":{"explode":false},"o":{"style":"form"}}}}"#,
        )
        .unwrap()
        .unwrap();
        assert_eq!(text, "a=1,2&b=x%20y%26z%3D&n=10000000000000000001&k=true");
    }

    #[test]
    fn other_media_types_are_named() {
        assert!(read(r#"{"multipart/form-data":{}}"#).unwrap_err().contains("multipart/form-data"));
        assert!(read("{}").unwrap().is_none());
    }
}
