//! The properties of a JSON Schema that a text or a file of a message can fill. Pure.
//!
//! A property takes text if it is a string. It takes files if it says how: `contentEncoding: base64` and `format: byte` or
//! `binary` are the bytes of a file in Base64, `format: uri` is its URL; a list of such strings takes several. Files are also
//! taken by the properties of a property: the body of an OpenAPI operation is one.

use std::borrow::Cow;

use protocol::{
    Json,
    json::{
        Raw,
        read::{Node, Object, Path},
    },
};

/// How many references are followed from one property.
const MAX_REFERENCES: usize = 8;
/// How many choices of one schema are followed from one property: one can refer to itself.
const MAX_CHOICES: usize = 8;

/// A property that a text or a file can fill.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct InputProperty {
    /// Its name, after that of the object around it if that is a property itself.
    pub(super) path: Vec<String>,
    /// So is the object around it.
    pub(super) is_required: bool,
    pub(super) takes: Takes,
}

/// What fills a property.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Takes {
    /// Any text.
    Text,
    /// One of several texts.
    Choice,
    /// The bytes of a file.
    Bytes {
        /// Of this media type; `None`: of any.
        media_type: Option<String>,
        is_list: bool,
    },
    /// The URL of a file, or a text.
    Url { is_list: bool },
}

impl InputProperty {
    /// How messages name it.
    pub(super) fn name(&self) -> String {
        self.path.join(".")
    }

    pub(super) fn takes_text(&self) -> bool {
        self.path.len() == 1
            && matches!(self.takes, Takes::Text | Takes::Choice | Takes::Url { is_list: false })
    }

    pub(super) fn takes_files(&self) -> bool {
        matches!(self.takes, Takes::Bytes { .. } | Takes::Url { .. })
    }

    pub(super) fn is_list(&self) -> bool {
        matches!(self.takes, Takes::Bytes { is_list: true, .. } | Takes::Url { is_list: true })
    }
}

/// The properties of a schema, in its order. None if it is not an object with properties.
pub(super) fn input_properties(schema: &Json) -> Vec<InputProperty> {
    let Ok(root) = Node::new(schema.as_raw(), &Path::Root).object() else { return Vec::new() };
    let schema = Schema { root: &root };
    let mut found = Vec::new();
    schema.add(schema.root, &[], true, &mut found);
    found
}

/// A schema whose references are those of a document.
#[derive(Clone, Copy)]
struct Schema<'a, 'd> {
    root: &'d Object<'a, 'd>,
}

impl<'a> Schema<'a, '_> {
    /// Adds the properties of an object.
    fn add(
        self,
        object: &Object<'a, '_>,
        outer: &[String],
        is_required: bool,
        found: &mut Vec<InputProperty>,
    ) {
        let required: Vec<String> = object.texts("required").unwrap_or_default();
        let Some(Ok(properties)) = object.present("properties").map(as_object) else { return };
        let members = properties.entries(|name, node| Ok((name.to_owned(), node.raw())));
        for (name, raw) in members.unwrap_or_default() {
            let Some(property) = self.resolved(raw) else { continue };
            let is_required = is_required && required.contains(&name);
            let path = outer.iter().cloned().chain([name]).collect();
            match self.takes(&property) {
                Some(takes) => found.push(InputProperty { path, is_required, takes }),
                None if outer.is_empty() => {
                    let inner = found.len();
                    self.add(&property, &path, is_required, found);
                    let mut at = 0;
                    // Text is not put into other objects.
                    found.retain(|one| {
                        at += 1;
                        at <= inner || one.takes_files()
                    });
                }
                None => {}
            }
        }
    }

    /// What fills a property with this schema.
    fn takes(self, property: &Object<'a, '_>) -> Option<Takes> {
        if let Some(takes) = self.takes_itself(property) {
            return Some(takes);
        }
        let mut only = self.only_choice(property)?;
        for _ in 0..MAX_CHOICES {
            if let Some(takes) = self.takes_itself(&only) {
                return Some(takes);
            }
            only = self.only_choice(&only)?;
        }
        None
    }

    /// What fills a property that has no choices.
    fn takes_itself(self, property: &Object<'a, '_>) -> Option<Takes> {
        if let Some(takes) = string(property) {
            return Some(takes);
        }
        let items = property.present("items").filter(|_| is_type(property, "array"))?;
        match self.resolved(items).as_ref().and_then(string)? {
            Takes::Bytes { media_type, .. } => Some(Takes::Bytes { media_type, is_list: true }),
            Takes::Url { .. } => Some(Takes::Url { is_list: true }),
            Takes::Text | Takes::Choice => None,
        }
    }

    /// The only choice that is not null, such as that of `anyOf: [{type: string}, {type: null}]`.
    fn only_choice(self, property: &Object<'a, '_>) -> Option<Object<'a, 'static>> {
        let choices = property.present("anyOf").or_else(|| property.present("oneOf"))?;
        let choices = Node::new(choices, &Path::Root).list(|node| Ok(node.raw())).ok()?;
        let mut others = choices.into_iter().filter_map(|raw| self.resolved(raw)).filter(|one| !is_null(one));
        let only = others.next()?;
        if others.next().is_some() { None } else { Some(only) }
    }

    /// The object that a schema is, or refers to.
    fn resolved(self, raw: Raw<'a>) -> Option<Object<'a, 'static>> {
        let mut object = as_object(raw).ok()?;
        for _ in 0..MAX_REFERENCES {
            let Some(reference) = text(&object, "$ref") else { return Some(object) };
            object = as_object(self.lookup(&reference)?).ok()?;
        }
        None
    }

    fn lookup(self, reference: &str) -> Option<Raw<'a>> {
        let mut names = reference.strip_prefix("#/")?.split('/');
        let mut found = self.root.present(names.next()?)?;
        for name in names {
            let name = name.replace("~1", "/").replace("~0", "~");
            let members =
                as_object(found).ok()?.entries(|name, node| Ok((name.to_owned(), node.raw()))).ok()?;
            found = members.into_iter().find(|(known, _)| *known == name)?.1;
        }
        Some(found)
    }
}

/// What a schema of strings takes.
fn string(schema: &Object<'_, '_>) -> Option<Takes> {
    if !is_type(schema, "string") {
        return None;
    }
    let media_type = text(schema, "contentMediaType").map(Cow::into_owned);
    let format = text(schema, "format");
    let is_bytes = text(schema, "contentEncoding")
        .is_some_and(|encoding| encoding.eq_ignore_ascii_case("base64"))
        || matches!(format.as_deref(), Some("byte" | "binary"))
        || media_type.as_deref() == Some("application/octet-stream");
    if is_bytes {
        let media_type = media_type.filter(|name| name != "application/octet-stream");
        return Some(Takes::Bytes { media_type, is_list: false });
    }
    let is_choice = schema.present("enum").is_some() || schema.present("const").is_some();
    Some(match format.as_deref() {
        _ if is_choice => Takes::Choice,
        Some("uri" | "url") => Takes::Url { is_list: false },
        _ => Takes::Text,
    })
}

fn is_null(schema: &Object<'_, '_>) -> bool {
    text(schema, "type").as_deref() == Some("null")
}

/// Whether values of this type are allowed, beside null.
fn is_type(schema: &Object<'_, '_>, name: &str) -> bool {
    let Some(types) = schema.present("type") else { return false };
    let types = Node::new(types, &Path::Root);
    match types.string() {
        Ok(only) => only == name,
        Err(_) => {
            let names = types.list(|node| Ok(node.string()?.into_owned())).unwrap_or_default();
            names.iter().any(|one| one == name) && names.iter().all(|one| one == name || one == "null")
        }
    }
}

fn text<'a>(object: &Object<'a, '_>, name: &str) -> Option<Cow<'a, str>> {
    Node::new(object.present(name)?, &Path::Root).string().ok()
}

fn as_object(raw: Raw<'_>) -> protocol::json::read::Read<Object<'_, 'static>> {
    Node::new(raw, &Path::Root).object()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(schema: &str) -> Vec<(String, bool, Takes)> {
        let properties = input_properties(&Json::parse(schema).unwrap());
        properties.into_iter().map(|one| (one.name(), one.is_required, one.takes)).collect()
    }

    #[test]
    fn strings_take_text_and_files_as_they_say() {
        let schema = r##"{"required": ["q", "raw"], "properties": {
            "q": {"type": "string"}, "n": {"type": "integer"}, "kind": {"enum": ["a"], "type": "string"},
            "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]}, "either": {"type": ["string", "integer"]},
            "raw": {"$ref": "#/$defs/raw"}, "link": {"type": ["string", "null"], "format": "uri"},
            "pages": {"type": "array", "items": {"type": "string", "format": "binary"}}, "tags": {"type": "array"}},
            "$defs": {"raw": {"type": "string", "contentEncoding": "base64", "contentMediaType": "image/png"}}}"##;
        let bytes = |media_type: Option<&str>, is_list| Takes::Bytes {
            media_type: media_type.map(Into::into),
            is_list,
        };
        let expected = [
            ("q", true, Takes::Text),
            ("kind", false, Takes::Choice),
            ("maybe", false, Takes::Text),
            ("raw", true, bytes(Some("image/png"), false)),
            ("link", false, Takes::Url { is_list: false }),
            ("pages", false, bytes(None, true)),
        ];
        assert_eq!(found(schema), expected.map(|(name, required, takes)| (name.to_owned(), required, takes)));
    }

    #[test]
    fn a_choice_that_refers_to_itself_takes_nothing() {
        let schema = r##"{"properties": {"p": {"$ref": "#/$defs/p"}},
            "$defs": {"p": {"anyOf": [{"$ref": "#/$defs/p"}, {"type": "null"}]}}}"##;
        assert_eq!(found(schema), []);
    }

    #[test]
    fn properties_of_a_property_take_files_only() {
        let schema = r##"{"properties": {"id": {"type": "string"}, "body": {"$ref": "#/$defs/b"}}, "required": ["body"],
            "$defs": {"b": {"required": ["logo"], "properties":
                {"note": {"type": "string"}, "logo": {"type": "string", "format": "binary"}, "self": {"$ref": "#/$defs/b"}}}}}"##;
        let logo = ("body.logo".to_owned(), true, Takes::Bytes { media_type: None, is_list: false });
        assert_eq!(found(schema), [("id".to_owned(), false, Takes::Text), logo]);
        assert_eq!(found(r##"{"properties": {"a": {"$ref": "#/properties/a"}}}"##), []);
        assert_eq!(found("true"), []);
    }
}
