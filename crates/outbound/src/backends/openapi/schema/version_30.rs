//! What schemas of OpenAPI 3.0 express differently: null, and bounds that are not included.

use serde_json::{Map, json};

use crate::backends::openapi::Tree;

/// In 3.0, these are booleans that change the meaning of `minimum` and `maximum`.
pub(super) fn exclusive_bounds(members: &Map<String, Tree>, out: &mut Map<String, Tree>) {
    for (exclusive, bound) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        if members.get(exclusive) == Some(&Tree::Bool(true))
            && let Some(number) = out.remove(bound)
        {
            out.insert(exclusive.into(), number);
        }
    }
}

/// How `nullable: true` of OpenAPI 3.0 is expressed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Null {
    No,
    /// In `type`, and in `enum` if there is one.
    InType,
    /// As an alternative to the whole schema, because `allOf` and the like would reject null.
    Wrap,
}

impl Null {
    pub(super) fn of(members: &Map<String, Tree>) -> Self {
        let has = |keyword: &str| members.contains_key(keyword);
        if members.get("nullable") != Some(&Tree::Bool(true)) {
            Self::No
        } else if ["allOf", "anyOf", "oneOf", "not"].into_iter().any(has) {
            Self::Wrap
        } else {
            Self::InType
        }
    }

    pub(super) fn add(self, mut out: Map<String, Tree>) -> Tree {
        match self {
            Self::No => {}
            Self::Wrap => return json!({"anyOf": [out, {"type": "null"}]}),
            Self::InType => {
                if let Some(kind) = out.get_mut("type").filter(|kind| kind.is_string() && *kind != "null") {
                    *kind = json!([kind.take(), "null"]);
                }
                if let Some(Tree::Array(values)) = out.get_mut("enum")
                    && !values.contains(&Tree::Null)
                {
                    values.push(Tree::Null);
                }
            }
        }
        out.into()
    }
}
