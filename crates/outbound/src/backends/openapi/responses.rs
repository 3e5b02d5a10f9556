//! The responses that a document describes for an operation.

use http::StatusCode;
use serde_json::{Map, json};

use super::{
    Tree,
    document::{Document, shorten},
    parameter::is_json,
    schema::{Direction, Translator},
};

/// Maximum length of the description of an error, in characters.
const MAX_DESCRIPTION: usize = 300;

/// The descriptions of the responses that are errors, by status: `404`, `4XX` or `default`.
pub(super) struct ErrorResponses(Vec<(String, String)>);

impl ErrorResponses {
    pub(super) fn of(document: &Document, operation: &Tree) -> Self {
        let errors = responses(document, operation).filter(|(status, _)| !status.starts_with('2'));
        let described = errors.filter_map(|(status, response)| {
            let text = response["description"].as_str()?.trim();
            (!text.is_empty()).then(|| (status.to_ascii_uppercase(), shorten(text, MAX_DESCRIPTION)))
        });
        Self(described.collect())
    }

    /// The description of the response with a status.
    pub(super) fn description(&self, status: StatusCode) -> Option<String> {
        let code = status.as_str();
        let names = [code.to_owned(), format!("{}XX", &code[..1]), "DEFAULT".to_owned()];
        names
            .iter()
            .find_map(|name| self.0.iter().find(|(known, _)| known == name))
            .map(|(_, text)| text.clone())
    }
}

/// The schema of the result: that of the successful responses, if all of them are JSON with a schema within the limits.
/// Otherwise a correct result could be rejected.
pub(super) fn output_schema(document: &Document, operation: &Tree) -> Option<Tree> {
    let mut translator = Translator::new(document, Direction::Response);
    let mut schemas: Vec<Tree> = Vec::new();
    for (_, response) in responses(document, operation).filter(|(status, _)| status.starts_with('2')) {
        let content = response["content"].as_object()?;
        let (_, json) = content.iter().find(|(media_type, _)| is_json(media_type))?;
        let schema = translator.translate(json.get("schema")?).ok()?;
        if !schemas.contains(&schema) {
            schemas.push(schema);
        }
    }
    let definitions = translator.definitions().ok()?;
    if !translator.complete {
        return None;
    }
    let schema = match schemas.len() {
        0 => return None,
        1 => schemas.pop()?,
        _ => json!({"anyOf": schemas}),
    };
    let mut schema = match schema {
        Tree::Object(schema) => schema,
        other => Map::from_iter([("allOf".to_owned(), json!([other]))]),
    };
    if schema.is_empty() {
        return None;
    }
    if !definitions.is_empty() {
        schema.insert("$defs".into(), definitions.into());
    }
    Some(schema.into())
}

fn responses<'d>(document: &'d Document, operation: &'d Tree) -> impl Iterator<Item = (&'d str, &'d Tree)> {
    let all = operation["responses"].as_object().into_iter().flatten();
    all.filter_map(|(status, response)| Some((status.as_str(), document.resolve(response).ok()?)))
}
