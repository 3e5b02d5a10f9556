//! Reads a document: JSON or YAML text, bounded in size, nesting and YAML aliases.

use serde_saphyr::options::{AliasLimits, DuplicateKeyPolicy};

use super::{OpenApiError, Tree};

/// Maximum size of a document, in bytes.
pub(super) const MAX_DOCUMENT: usize = 32 * 1024 * 1024;
/// Maximum number of values in a YAML document, those of repeated aliases included.
const MAX_YAML_NODES: usize = 4_000_000;
/// Maximum number of parser events that aliases of a YAML document repeat.
const MAX_YAML_REPEATED: usize = 200_000;
/// Maximum nesting depth of a document. The JSON parser has the same.
const MAX_NESTING: usize = 127;

/// A document of OpenAPI 3.0 or 3.1.
pub struct Document {
    pub(super) root: Tree,
    pub(super) version: Version,
}

/// The versions whose schemas differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    /// Schemas are a dialect of their own, with `nullable`.
    V30,
    /// Schemas are JSON Schema 2020-12.
    V31,
}

/// Reads a document. A text that begins with `{` is JSON, any other is YAML.
///
/// # Errors
///
/// The text is too large, malformed, or not a document of OpenAPI 3.0 or 3.1.
pub fn parse(text: &str) -> Result<Document, OpenApiError> {
    if text.len() > MAX_DOCUMENT {
        return Err(OpenApiError::TooLarge { size: text.len(), max: MAX_DOCUMENT });
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let root = if text.trim_start().starts_with('{') { json(text)? } else { yaml(text)? };
    let version = version(&root)?;
    Ok(Document { root, version })
}

fn json(text: &str) -> Result<Tree, OpenApiError> {
    serde_json::from_str(text)
        .map_err(|error| OpenApiError::Syntax { format: "JSON", problem: error.to_string() })
}

fn yaml(text: &str) -> Result<Tree, OpenApiError> {
    let mut aliases = AliasLimits::default();
    aliases.max_total_replayed_events = MAX_YAML_REPEATED;
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_events: 3 * MAX_YAML_NODES,
            max_nodes: MAX_YAML_NODES,
            max_depth: MAX_NESTING,
            flow_nesting_limit: MAX_NESTING,
            max_documents: 1,
            max_total_scalar_bytes: MAX_DOCUMENT,
        },
        alias_limits: aliases,
        duplicate_keys: DuplicateKeyPolicy::Error,
        // `NO` is a country, not a boolean.
        strict_booleans: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(text, options).map_err(|error| {
        let place =
            error.location().map(|place| format!(" at line {} column {}", place.line(), place.column()));
        let mut problem = error.without_snippet().to_string();
        if let Some(place) = place.filter(|_| !problem.contains("line")) {
            problem.push_str(&place);
        }
        OpenApiError::Syntax { format: "YAML", problem }
    })
}

fn version(root: &Tree) -> Result<Version, OpenApiError> {
    let found = match &root["openapi"] {
        Tree::String(version) => version.clone(),
        // YAML reads `openapi: 3.1` as a number.
        Tree::Number(version) => version.to_string(),
        _ if root["swagger"].is_string() || root["swagger"].is_number() => {
            return Err(OpenApiError::Version("Swagger 2.0: convert the document first".into()));
        }
        _ => return Err(OpenApiError::Version("no member `openapi` with a version".into())),
    };
    match found.split('.').take(2).collect::<Vec<_>>()[..] {
        ["3", "0"] => Ok(Version::V30),
        ["3", "1"] => Ok(Version::V31),
        _ => Err(OpenApiError::Version(format!("version {:?}", shorten(&found, 20)))),
    }
}

/// The beginning of a text of the document, for messages and descriptions.
pub(super) fn shorten(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_line() {
        let error = |text: &str| parse(text).err().unwrap().to_string();
        assert!(error("{\n  \"openapi\": }").contains("line 2"), "{}", error("{\n  \"openapi\": }"));
        let yaml = error("openapi: 3.0.0\npaths: [1, 2\nx: }");
        assert!(yaml.contains("YAML") && yaml.contains("line"), "{yaml}");
    }

    #[test]
    fn versions_other_than_3_0_and_3_1_are_rejected() {
        for (text, expected) in [
            ("openapi: 3.1", None),
            ("openapi: 3.0.3", None),
            ("swagger: '2.0'", Some("Swagger 2.0")),
            ("openapi: 3.2.0", Some("3.2.0")),
            ("{\"openapi\": [3]}", Some("no member")),
            ("just a text", Some("no member")),
        ] {
            let error = parse(text).err().map(|error| error.to_string());
            match expected {
                None => assert_eq!(error, None),
                Some(part) => {
                    assert!(error.as_deref().unwrap_or_default().contains(part), "{text}: {error:?}")
                }
            }
        }
    }

    #[test]
    fn aliases_that_multiply_are_rejected() {
        let mut text = String::from("openapi: 3.0.0\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..12 {
            let before = format!("*a{}, ", level - 1).repeat(10);
            text.push_str(&format!("a{level}: &a{level} [{before}]\n"));
        }
        assert!(parse(&text).is_err());
    }

    #[test]
    fn deep_documents_are_rejected() {
        let nested = format!("openapi: 3.0.0\nx: {}{}", "[".repeat(5_000), "]".repeat(5_000));
        assert!(parse(&nested).is_err());
        let json = format!("{{\"openapi\":\"3.0.0\",\"x\":{}{}}}", "[".repeat(5_000), "]".repeat(5_000));
        assert!(parse(&json).is_err());
    }

    #[test]
    fn unquoted_status_codes_and_country_codes_are_texts() {
        let document = parse("openapi: 3.0.0\nx: { 200: a, enum: [NO, yes] }").unwrap();
        assert_eq!(document.root["x"]["200"], "a");
        assert_eq!(document.root["x"]["enum"][0], "NO");
    }
}
