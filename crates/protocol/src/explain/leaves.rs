//! A JSON document as a flat list of its leaf values with their paths, and as indented text.

use crate::json::{
    Raw,
    read::{Node, Path},
};

/// One scalar, or an empty object or array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leaf {
    /// Such as `message.parts[0].text`.
    pub(super) path: String,
    /// Its JSON text.
    pub(super) value: String,
}

impl Leaf {
    /// The last member name of the path, without array indexes.
    pub(super) fn name(&self) -> &str {
        let path = self.path.trim_end_matches(|character: char| "[]0123456789".contains(character));
        path.rsplit('.').next().unwrap_or(path)
    }

    /// Whether it lies inside `metadata`, `data` or `params`, whose content the protocol does not define.
    pub(super) fn is_user_data(&self) -> bool {
        ["metadata.", "data.", "params."]
            .iter()
            .any(|outer| self.path.starts_with(outer) || self.path.contains(&format!(".{outer}")))
    }

    /// Whether another document has a value at the same path, in camel case or snake case.
    pub(super) fn has_path_in(&self, leaves: &[Self]) -> bool {
        leaves.iter().any(|other| other.path == self.path || camel(&other.path) == camel(&self.path))
    }

    /// Whether the value is null or an empty string, array or object.
    pub(super) fn is_empty_value(&self) -> bool {
        matches!(self.value.as_str(), "\"\"" | "[]" | "{}" | "null")
    }

    /// Whether the value equals the default of an absent member.
    pub(super) fn is_default(&self) -> bool {
        self.is_empty_value() || matches!(self.value.as_str(), "false" | "0")
    }

    /// Path and shortened value.
    pub(super) fn describe(&self) -> String {
        format!("{} = {}", self.path, truncate(&self.value))
    }
}

/// At most the first 60 characters.
pub(super) fn truncate(value: &str) -> String {
    let mut characters = value.chars();
    let start: String = characters.by_ref().take(60).collect();
    if characters.next().is_some() { format!("{start}…") } else { start }
}

/// A path with its member names in camel case.
fn camel(path: &str) -> String {
    let mut out = String::with_capacity(path.len());
    let mut upper = false;
    for character in path.chars() {
        match character {
            '_' => upper = true,
            character if std::mem::take(&mut upper) => out.push(character.to_ascii_uppercase()),
            character => out.push(character),
        }
    }
    out
}

/// All leaf values of a document, in document order.
pub(super) fn all(raw: Raw<'_>) -> Vec<Leaf> {
    let mut found = Vec::new();
    collect(raw, String::new(), &mut found);
    found
}

fn collect(raw: Raw<'_>, path: String, found: &mut Vec<Leaf>) {
    let node = Node::new(raw, &Path::Root);
    let before = found.len();
    if raw.get().starts_with('{')
        && let Ok(object) = node.object()
    {
        let _ = object.entries(|name, member| {
            let path = if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            collect(member.raw(), path, found);
            Ok(())
        });
    } else if raw.get().starts_with('[') {
        let mut index = 0;
        let _ = node.list(|item| {
            collect(item.raw(), format!("{path}[{index}]"), found);
            index += 1;
            Ok(())
        });
    }
    // A document that is itself an empty object has no leaves.
    if found.len() == before && !path.is_empty() {
        found.push(Leaf { path, value: raw.get().to_owned() });
    }
}

/// Parses a document that was written by our own encoder.
pub(super) fn document(text: &str) -> Raw<'_> {
    Raw::parse_text(text).expect("the writer writes JSON")
}

/// Indents a compact document.
pub(super) fn pretty(compact: &str) -> String {
    let mut out = String::new();
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    let mut characters = compact.chars().peekable();
    while let Some(character) = characters.next() {
        if quoted {
            out.push(character);
            quoted = escaped || character != '"';
            escaped = !escaped && character == '\\';
            continue;
        }
        match character {
            '"' => {
                quoted = true;
                out.push('"');
            }
            '{' | '[' => {
                out.push(character);
                if matches!(characters.peek(), Some('}' | ']')) {
                    out.extend(characters.next());
                } else {
                    depth += 1;
                    new_line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                new_line(&mut out, depth);
                out.push(character);
            }
            ',' => {
                out.push(',');
                new_line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            other => out.push(other),
        }
    }
    out
}

fn new_line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_are_listed_with_their_paths() {
        let found = all(document(r#"{"a":{"b":[1,{"c":"x"}],"d":{}},"e":[],"metadata":{"f":null}}"#));
        let shown: Vec<String> = found.iter().map(|leaf| format!("{}={}", leaf.path, leaf.value)).collect();
        assert_eq!(shown, ["a.b[0]=1", "a.b[1].c=\"x\"", "a.d={}", "e=[]", "metadata.f=null"]);
        assert_eq!(found[0].name(), "b");
        assert!(found[4].is_user_data() && !found[1].is_user_data());
    }

    #[test]
    fn indentation_changes_only_white_space() {
        let compact = r#"{"a":[1,{"b":"x\",{y\\"}],"c":{},"d":[]}"#;
        let shown = pretty(compact);
        assert_eq!(
            shown,
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"x\\\",{y\\\\\"\n    }\n  ],\n  \"c\": {},\n  \"d\": []\n}"
        );
        assert_eq!(crate::Json::parse(&shown).unwrap().as_str(), compact);
    }
}
