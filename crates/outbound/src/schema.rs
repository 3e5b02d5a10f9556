//! JSON Schemas of arguments and results, compiled once.
//!
//! The only module that uses the validator. A reference to another document is not followed: such a schema is rejected.

use std::{
    fmt,
    sync::{Arc, OnceLock},
};

use jsonschema::Validator;
use protocol::Json;

use crate::agents::InputSchema;

/// The tree that the validator reads. Arguments are passed on as the client sent them, never from this tree.
#[expect(clippy::disallowed_types, reason = "the validator reads this type")]
type Tree = serde_json::Value;

/// A compiled schema. Cheap to clone.
#[derive(Clone)]
pub struct Schema(Arc<Compiled>);

struct Compiled {
    text: Json,
    validator: OnceLock<Validator>,
    required: Vec<String>,
    /// The only required property, if there is exactly one and it is a string.
    single_text: Option<String>,
}

/// Why a document is not a schema.
#[derive(Debug, thiserror::Error)]
#[error("not a valid JSON Schema: {0}")]
pub struct InvalidSchema(String);

impl Schema {
    /// Compiles a schema.
    pub fn new(text: Json) -> Result<Self, InvalidSchema> {
        let tree = parse(&text).map_err(InvalidSchema)?;
        let validator = compile(&tree)?;
        Ok(Self::with(text, &tree, validator.into()))
    }

    /// Like [`new`](Self::new), but keeps only the text until the first check: the compiled form of a large schema has
    /// a hundred times its size.
    pub fn compiled_on_use(text: Json) -> Result<Self, InvalidSchema> {
        let tree = parse(&text).map_err(InvalidSchema)?;
        compile(&tree)?;
        Ok(Self::with(text, &tree, OnceLock::new()))
    }

    fn with(text: Json, tree: &Tree, validator: OnceLock<Validator>) -> Self {
        let required: Vec<String> = tree["required"]
            .as_array()
            .map(|names| names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect())
            .unwrap_or_default();
        let single_text = match required.as_slice() {
            [only] if tree["properties"][only]["type"] == "string" => Some(only.clone()),
            _ => None,
        };
        Self(Arc::new(Compiled { text, validator, required, single_text }))
    }

    fn validator(&self) -> &Validator {
        let again = || parse(&self.0.text).ok().and_then(|tree| compile(&tree).ok());
        self.0.validator.get_or_init(|| again().expect("it was parsed and compiled before"))
    }

    /// The schema as it is shown on the card.
    pub fn text(&self) -> &Json {
        &self.0.text
    }

    /// The names of the required properties.
    pub fn required(&self) -> &[String] {
        &self.0.required
    }

    /// The property that a plain text stands for: the only required one, if it is a string.
    pub fn single_text(&self) -> Option<&str> {
        self.0.single_text.as_deref()
    }

    /// Checks a value. The error names the first field that is wrong and what was expected, such as
    /// `arguments.amount: "ten" is not of type "number"`; `root` is how the value itself is called.
    pub fn check(&self, root: &str, value: &Json) -> Result<(), String> {
        let tree = parse(value).map_err(|problem| format!("{root}: {problem}"))?;
        self.check_tree(root, &tree)
    }

    /// Like [`check`](Self::check), for JSON that may be larger than [`Json`] allows.
    pub fn check_text(&self, root: &str, text: &str) -> Result<(), String> {
        let tree: Tree = serde_json::from_str(text).map_err(|error| format!("{root}: {error}"))?;
        self.check_tree(root, &tree)
    }

    fn check_tree(&self, root: &str, tree: &Tree) -> Result<(), String> {
        self.validator().validate(tree).map_err(|error| {
            let path = error.instance_path().to_string().replace('/', ".");
            shorten(format!("{root}{path}: {error}"))
        })
    }

    /// Whether a value is allowed.
    pub fn allows(&self, value: &Json) -> bool {
        parse(value).is_ok_and(|tree| self.validator().is_valid(&tree))
    }
}

impl InputSchema for Schema {
    fn text(&self) -> &Json {
        self.text()
    }

    fn required(&self) -> &[String] {
        self.required()
    }

    fn allows(&self, arguments: &Json) -> bool {
        self.allows(arguments)
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.text.fmt(out)
    }
}

fn compile(tree: &Tree) -> Result<Validator, InvalidSchema> {
    jsonschema::options().build(tree).map_err(|error| InvalidSchema(error.to_string()))
}

/// The error is a number or text that JSON has and the validator cannot represent, such as `1e400` or `"\ud800"`.
fn parse(json: &Json) -> Result<Tree, String> {
    serde_json::from_str(json.as_str()).map_err(|error| format!("it cannot be checked: {error}"))
}

/// An error of the validator contains the value, which may be large.
fn shorten(mut text: String) -> String {
    const MAX: usize = 500;
    if text.len() > MAX {
        let end = (0..=MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
        text.truncate(end);
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(text: &str) -> Schema {
        Schema::new(Json::parse(text).unwrap()).unwrap()
    }

    #[test]
    fn error_names_the_field() {
        let schema =
            schema(r#"{"type":"object","properties":{"a":{"type":"array","items":{"type":"number"}}}}"#);
        let error = schema.check("arguments", &Json::parse(r#"{"a":[1,"x"]}"#).unwrap()).unwrap_err();
        assert_eq!(error, r#"arguments.a.1: "x" is not of type "number""#);
    }

    #[test]
    fn value_that_cannot_be_represented_is_an_error() {
        let any = schema("{}");
        for text in ["1e400", r#"{"a":"\ud800"}"#] {
            let value = Json::parse(text).unwrap();
            assert!(
                any.check("arguments", &value).unwrap_err().starts_with("arguments: it cannot be checked")
            );
            assert!(!any.allows(&value));
            assert!(Schema::new(Json::parse(&format!(r#"{{"const":{text}}}"#)).unwrap()).is_err());
        }
    }

    #[test]
    fn reference_to_another_document_is_rejected() {
        let text = Json::parse(r#"{"$ref":"http://127.0.0.1:9/schema.json"}"#).unwrap();
        assert!(Schema::new(text).is_err());
        let file = Json::parse(r#"{"$ref":"file:///etc/passwd"}"#).unwrap();
        assert!(Schema::new(file).is_err());
    }

    #[test]
    fn single_required_string_takes_a_plain_text() {
        let one = schema(r#"{"required":["q"],"properties":{"q":{"type":"string"},"n":{"type":"integer"}}}"#);
        assert_eq!(one.single_text(), Some("q"));
        let two =
            schema(r#"{"required":["q","r"],"properties":{"q":{"type":"string"},"r":{"type":"string"}}}"#);
        assert_eq!(two.single_text(), None);
    }
}
