//! A document as the list of its values and where they stand, and as text for people.

use protocol::json::Raw;
use protocol::json::read::{Node, Path};

/// One scalar, or an object or array that holds nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Leaf {
    /// As in `message.parts[0].text`.
    pub(super) path: String,
    /// Its JSON text.
    pub(super) value: String,
}

impl Leaf {
    /// The name it stands under, without what encloses it.
    pub(super) fn name(&self) -> &str {
        let path = self.path.trim_end_matches(|character: char| "[]0123456789".contains(character));
        path.rsplit('.').next().unwrap_or(path)
    }

    /// Whether it is somebody's own data rather than the protocol's.
    pub(super) fn is_inside(&self) -> bool {
        ["metadata.", "data.", "params."]
            .iter()
            .any(|outer| self.path.starts_with(outer) || self.path.contains(&format!(".{outer}")))
    }

    /// Whether something stands at the same place in another document, however the place is spelled.
    pub(super) fn stands_in(&self, leaves: &[Self]) -> bool {
        leaves.iter().any(|other| other.path == self.path || camel(&other.path) == camel(&self.path))
    }

    /// Whether nothing is held here.
    pub(super) fn is_nothing(&self) -> bool {
        matches!(self.value.as_str(), "\"\"" | "[]" | "{}" | "null")
    }

    /// Whether leaving it out says the same.
    pub(super) fn says_little(&self) -> bool {
        self.is_nothing() || matches!(self.value.as_str(), "false" | "0")
    }

    /// Place and value, for people.
    pub(super) fn said(&self) -> String {
        format!("{} = {}", self.path, short(&self.value))
    }
}

/// A value that fits on a line.
pub(super) fn short(value: &str) -> String {
    let mut characters = value.chars();
    let start: String = characters.by_ref().take(60).collect();
    if characters.next().is_some() { format!("{start}…") } else { start }
}

/// A path with its names in camel case.
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

/// Every value of a document in order.
pub(super) fn of(raw: Raw<'_>) -> Vec<Leaf> {
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
    // A document that is an empty object has no values.
    if found.len() == before && !path.is_empty() {
        found.push(Leaf { path, value: raw.get().to_owned() });
    }
}

/// A document of our own as the form readers take.
pub(super) fn document(text: &str) -> Raw<'_> {
    Raw::parse_text(text).expect("the writer writes JSON")
}

/// A compact document on lines of its own.
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
                    line(&mut out, depth);
                }
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(character);
            }
            ',' => {
                out.push(',');
                line(&mut out, depth);
            }
            ':' => out.push_str(": "),
            other => out.push(other),
        }
    }
    out
}

fn line(out: &mut String, depth: usize) {
    out.push('\n');
    out.extend(std::iter::repeat_n("  ", depth));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_listed_with_their_places() {
        let found = of(document(r#"{"a":{"b":[1,{"c":"x"}],"d":{}},"e":[],"metadata":{"f":null}}"#));
        let shown: Vec<String> = found.iter().map(|leaf| format!("{}={}", leaf.path, leaf.value)).collect();
        assert_eq!(shown, ["a.b[0]=1", "a.b[1].c=\"x\"", "a.d={}", "e=[]", "metadata.f=null"]);
        assert_eq!(found[0].name(), "b");
        assert!(found[4].is_inside() && !found[1].is_inside());
    }

    #[test]
    fn pretty_text_changes_nothing_but_white_space() {
        let compact = r#"{"a":[1,{"b":"x\",{y\\"}],"c":{},"d":[]}"#;
        let shown = pretty(compact);
        assert_eq!(
            shown,
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"x\\\",{y\\\\\"\n    }\n  ],\n  \"c\": {},\n  \"d\": []\n}"
        );
        assert_eq!(protocol::Json::parse(&shown).unwrap().as_str(), compact);
    }
}
