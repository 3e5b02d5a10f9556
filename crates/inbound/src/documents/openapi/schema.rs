//! The schema of a skill as a component of the document.
//!
//! A schema is written for a document of its own: `#/$defs/x` is a place in it. As a component it is at
//! `#/components/schemas/NAME`, so such references get that prefix, which every tool resolves. A schema whose references
//! depend on identifiers or anchors becomes a schema resource with an `$id` instead, because no prefix can express them.

use protocol::{
    Json,
    json::{
        read::{Node, Path},
        write::Writer,
    },
};

/// A schema of a skill.
pub(super) struct ComponentSchema<'a> {
    /// Its name among the components.
    pub(super) name: String,
    schema: &'a Json,
}

// The text of a `Json` is compact, and quotes within its strings are escaped: each of these is found where a member with
// such a value is, and nowhere else.
const REFERENCE: &str = r#""$ref":""#;
const LOCAL_REFERENCE: &str = r##""$ref":"#"##;
const IDENTIFIERS: [&str; 4] = [r#""$id":""#, r#""id":""#, r#""$anchor":""#, r#""$dynamicAnchor":""#];

impl<'a> ComponentSchema<'a> {
    /// The schema `kind` of the skill with this id and index.
    pub(super) fn new(skill: &str, index: usize, kind: &str, schema: &'a Json) -> Self {
        let is_allowed = |char: char| char.is_ascii_alphanumeric() || matches!(char, '.' | '-' | '_');
        let name = if skill.chars().all(is_allowed) {
            format!("{skill}.{kind}")
        } else {
            // Unique by its index, because several ids can become the same text. The other names do not end in a number.
            let allowed: String =
                skill.chars().map(|char| if is_allowed(char) { char } else { '_' }).collect();
            format!("{allowed}.{kind}.{index}")
        };
        Self { name, schema }
    }

    pub(super) fn encode(&self, out: &mut Writer) {
        let Some((identifiers, schema)) = self.split() else {
            // `true` and `false` are schemas.
            return out.raw(self.schema.as_str());
        };
        if !depends_on_identifiers(&schema) {
            let prefix = format!("{LOCAL_REFERENCE}/components/schemas/{}", self.name);
            return out.raw(&schema.replace(LOCAL_REFERENCE, &prefix));
        }
        out.object(|out| {
            if !identifiers.iter().any(|(name, _)| name == "$id") {
                out.text("$id", &format!("urn:a2ad:schema:{}", self.name));
            }
            for (name, value) in identifiers {
                out.key(&name).raw(value);
            }
            // Its keywords apply to the same value, and its references to this schema resource.
            for (name, value) in members(&schema).unwrap_or_default() {
                out.key(&name).raw(value);
            }
        });
    }

    /// The members that identify the schema as a document, and the schema without them.
    fn split(&self) -> Option<(Vec<(String, &'a str)>, String)> {
        let all = members(self.schema.as_str())?;
        let (identifiers, keywords): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|(name, _)| matches!(name.as_str(), "$id" | "$schema" | "id"));
        let mut writer = Writer::new();
        writer.object(|out| keywords.iter().for_each(|(name, value)| out.key(name).raw(value)));
        Some((identifiers, String::from_utf8(writer.finish()).ok()?))
    }
}

/// The members of an object; `None` for another value.
fn members(text: &str) -> Option<Vec<(String, &str)>> {
    let raw = protocol::json::Raw::parse_text(text).ok()?;
    let object = Node::new(raw, &Path::Root).object().ok()?;
    object.entries(|name, node| Ok((name.to_owned(), node.text()))).ok()
}

/// Whether the references of a schema depend on more than places in it.
fn depends_on_identifiers(schema: &str) -> bool {
    let mut targets = schema.split(REFERENCE).skip(1);
    let is_elsewhere = |target: &str| !(target.starts_with("#/") || target.starts_with("#\""));
    let has_references = schema.contains(REFERENCE);
    targets.any(is_elsewhere) || has_references && IDENTIFIERS.iter().any(|name| schema.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(skill: &str, schema: &str) -> String {
        let schema = Json::parse(schema).unwrap();
        let mut writer = Writer::new();
        ComponentSchema::new(skill, 7, "input", &schema).encode(&mut writer);
        String::from_utf8(writer.finish()).unwrap()
    }

    #[test]
    fn references_point_into_the_component() {
        for (schema, expected) in [
            ("true", "true"),
            (
                r##"{"$schema":"x","$id":"y","$ref":"#/$defs/a","$defs":{"a":{"items":{"$ref":"#"}}}}"##,
                concat!(
                    r##"{"$ref":"#/components/schemas/a.b.input/$defs/a","##,
                    r##""$defs":{"a":{"items":{"$ref":"#/components/schemas/a.b.input"}}}}"##
                ),
            ),
            // Not references: a property of that name, and a text.
            (
                r##"{"properties":{"$ref":{"type":"string"},"id":{}},"title":"\"$ref\":\"#/x\""}"##,
                r##"{"properties":{"$ref":{"type":"string"},"id":{}},"title":"\"$ref\":\"#/x\""}"##,
            ),
        ] {
            assert_eq!(encoded("a.b", schema), expected);
        }
    }

    #[test]
    fn schema_with_anchors_is_a_resource() {
        let anchored = r##"{"$schema":"s","items":{"$ref":"#x"},"$defs":{"a":{"$anchor":"x"}}}"##;
        let expected = r##"{"$id":"urn:a2ad:schema:a_b.input.7","$schema":"s","items":{"$ref":"#x"},"$defs":{"a":{"$anchor":"x"}}}"##;
        assert_eq!(encoded("a/b", anchored), expected);
        let named = r##"{"$id":"urn:own","items":{"$ref":"urn:own#/$defs/a"},"$defs":{"a":{}}}"##;
        assert_eq!(encoded("a", named), named);
    }
}
