//! The keywords of JSON Schema that are kept, and what their values are.

use std::collections::HashSet;

use crate::backends::openapi::Tree;

/// What the value of a keyword is.
pub(super) enum Kind {
    Literal(fn(&Tree) -> bool),
    Schema,
    List,
    Map,
    /// The keyword is dropped: it describes no constraint (`example`, `xml`, `discriminator`), or is unknown.
    Dropped,
}

impl Kind {
    pub(super) fn of(keyword: &str) -> Self {
        match keyword {
            "title" | "description" | "format" | "pattern" | "contentEncoding" | "contentMediaType" => {
                Self::Literal(Tree::is_string)
            }
            "type" => Self::Literal(is_type),
            "enum" => Self::Literal(|value| value.as_array().is_some_and(|list| !list.is_empty())),
            "const" | "default" => Self::Literal(|_| true),
            "required" => Self::Literal(is_names),
            "maximum" | "minimum" | "exclusiveMaximum" | "exclusiveMinimum" => Self::Literal(Tree::is_number),
            "multipleOf" => Self::Literal(|value| value.as_f64().is_some_and(|number| number > 0.0)),
            "maxLength" | "minLength" | "maxItems" | "minItems" | "maxContains" | "minContains"
            | "maxProperties" | "minProperties" => Self::Literal(Tree::is_u64),
            "uniqueItems" | "deprecated" | "readOnly" | "writeOnly" => Self::Literal(Tree::is_boolean),
            "dependentRequired" => {
                Self::Literal(|value| value.as_object().is_some_and(|map| map.values().all(is_names)))
            }
            "items"
            | "contains"
            | "additionalProperties"
            | "unevaluatedProperties"
            | "unevaluatedItems"
            | "propertyNames"
            | "not"
            | "if"
            | "then"
            | "else" => Self::Schema,
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => Self::List,
            "properties" | "patternProperties" | "dependentSchemas" => Self::Map,
            _ => Self::Dropped,
        }
    }
}

fn is_type(value: &Tree) -> bool {
    const TYPES: [&str; 7] = ["null", "boolean", "object", "array", "number", "string", "integer"];
    let known = |name: &Tree| name.as_str().is_some_and(|name| TYPES.contains(&name));
    match value {
        Tree::Array(names) => {
            let distinct = names.iter().enumerate().all(|(at, name)| !names[..at].contains(name));
            !names.is_empty() && names.len() <= TYPES.len() && distinct && names.iter().all(known)
        }
        name => known(name),
    }
}

fn is_names(value: &Tree) -> bool {
    let Tree::Array(names) = value else { return false };
    let distinct: HashSet<_> = names.iter().filter_map(Tree::as_str).collect();
    distinct.len() == names.len()
}
