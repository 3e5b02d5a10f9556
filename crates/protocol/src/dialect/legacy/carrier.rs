//! Carries model fields that a dialect lacks in metadata.
//!
//! The fields are stored under one key in the metadata of the smallest enclosing object and removed again on
//! decoding. If the caller already uses that key, its value is kept and the fields are dropped. All other
//! metadata is preserved byte for byte.

use crate::{
    Json,
    json::{
        Raw,
        read::{Node, Object, Path, Read},
        write::Writer,
    },
};

/// The metadata member that holds the carried fields.
const KEY: &str = "a2ad";

/// The metadata with the fields written by `carried` added under the key.
pub(crate) fn with_carried(metadata: Option<&Json>, carried: impl FnOnce(&mut Writer)) -> Option<Json> {
    let mut writer = Writer::new();
    writer.object(carried);
    let carried = String::from_utf8(writer.finish()).expect("the writer was given UTF-8 only");
    with_member(metadata, KEY, &carried)
}

/// The metadata with one more field under the key, whose value is JSON text, beside those that are there; unchanged if the
/// caller uses the key for something else, or if the result would exceed the size limit of a value.
pub fn with_field(metadata: Option<Json>, name: &str, value: &str) -> Option<Json> {
    let merged = |metadata: Option<&Json>| {
        let field = Json::parse(&format!(r#"{{"{name}":{value}}}"#)).ok()?;
        let Some(metadata) = metadata else { return under_key(&field) };
        let object = Node::new(metadata.as_raw(), &Path::Root).object().ok()?;
        let fields = match object.maybe(KEY, |node| node.any_object()).ok()? {
            Some(fields) => Json::merge_objects(&fields, &field)?,
            None => field,
        };
        Json::merge_objects(metadata, &under_key(&fields)?)
    };
    merged(metadata.as_ref()).or(metadata)
}

fn under_key(fields: &Json) -> Option<Json> {
    Json::parse(&format!(r#"{{"{KEY}":{}}}"#, fields.as_str())).ok()
}

/// Removes the carried fields from the metadata. They are recognised as an object with no members other than
/// these that `read` can decode; any other value belongs to the caller and is kept.
pub(crate) fn take_carried<T>(
    metadata: Option<Json>,
    members: &[&str],
    read: impl FnOnce(&Object<'_, '_>) -> Read<T>,
) -> (Option<Json>, Option<T>) {
    take_member(metadata, KEY, |node| {
        let object = node.object().ok()?;
        let known = object.entries(|name, _| Ok(members.contains(&name))).ok()?;
        known.iter().all(|known| *known).then(|| read(&object).ok())?
    })
}

/// The metadata with one more member, whose value is JSON text; unchanged if the name is taken or if the
/// result would exceed the size limit of a value.
pub(crate) fn with_member(metadata: Option<&Json>, name: &str, value: &str) -> Option<Json> {
    let Some(metadata) = metadata else { return Json::parse(&format!(r#"{{"{name}":{value}}}"#)).ok() };
    let longer = metadata.as_str().strip_suffix('}').filter(|_| !may_have(metadata, name)).and_then(|open| {
        let comma = if open == "{" { "" } else { "," };
        Json::parse(&format!(r#"{open}{comma}"{name}":{value}}}"#)).ok()
    });
    Some(longer.unwrap_or_else(|| metadata.clone()))
}

/// Removes one member from the metadata if `read` can decode it. Metadata without other members becomes
/// `None`.
pub(crate) fn take_member<T>(
    metadata: Option<Json>,
    name: &str,
    read: impl FnOnce(Node<'_, '_>) -> Option<T>,
) -> (Option<Json>, Option<T>) {
    let Some(json) = metadata else { return (None, None) };
    let taken = find(&json, name)
        .and_then(|(value, rest)| read(Node::new(value, &Path::Root).bounded()).zip(Some(rest)));
    match taken {
        Some((value, rest)) => (rest, Some(value)),
        None => (Some(json), None),
    }
}

/// The value of a member and the object without it.
fn find<'j>(json: &'j Json, name: &str) -> Option<(Raw<'j>, Option<Json>)> {
    let text = json.as_str();
    let quoted = format!("\"{name}\":");
    if !text.contains(&quoted) {
        return None;
    }
    let value = Node::new(json.as_raw(), &Path::Root).object().ok()?.present(name)?;
    // The value borrows from the text; the bytes before it show whether the name is written exactly as this
    // encoder writes it.
    let start = value.get().as_ptr().addr() - text.as_ptr().addr();
    let before = text[..start].strip_suffix(&quoted)?;
    let after = &text[start + value.get().len()..];
    let rest = match before.strip_suffix(',') {
        Some(before) => format!("{before}{after}"),
        None => format!("{before}{}", after.strip_prefix(',').unwrap_or(after)),
    };
    Some((value, Json::parse(&rest).ok().filter(|rest| rest.as_str() != "{}")))
}

/// Whether an object has a member of this name in any spelling. An unreadable object counts as having it.
fn may_have(object: &Json, name: &str) -> bool {
    let text = object.as_str();
    (text.contains(name) || text.contains('\\'))
        && Node::new(object.as_raw(), &Path::Root).object().map_or(true, |object| {
            let same = object.entries(|key, _| Ok(key == name));
            same.map_or(true, |same| same.contains(&true))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text).unwrap()
    }

    fn taken(text: &str) -> (Option<Json>, Option<Option<String>>) {
        take_carried(Some(json(text)), &["a", "b"], |carried| carried.text("a"))
    }

    #[test]
    fn note_is_appended_and_found_in_any_position() {
        let carried = |writer: &mut Writer| writer.text("a", "x");
        assert_eq!(with_carried(None, carried), Some(json(r#"{"a2ad":{"a":"x"}}"#)));
        assert_eq!(with_carried(Some(&json("{}")), carried), Some(json(r#"{"a2ad":{"a":"x"}}"#)));
        assert_eq!(
            with_carried(Some(&json(r#"{"k":1}"#)), carried),
            Some(json(r#"{"k":1,"a2ad":{"a":"x"}}"#))
        );
        let x = Some(Some("x".to_owned()));
        assert_eq!(taken(r#"{"a2ad":{"a":"x"}}"#), (None, x.clone()));
        assert_eq!(taken(r#"{"a2ad":{"a":"x"},"k":1}"#), (Some(json(r#"{"k":1}"#)), x.clone()));
        assert_eq!(taken(r#"{"\u006b":1,"a2ad":{"a":"x"},"l":2}"#), (Some(json(r#"{"\u006b":1,"l":2}"#)), x));
    }

    #[test]
    fn member_of_the_caller_is_kept() {
        let own = [
            r#"{"a2ad":5}"#,
            r#"{"a2ad":{"mine":1}}"#,
            r#"{"a2ad":{"a":5}}"#,
            r#"{"k":{"a2ad":{"a":"x"}}}"#,
            r#"{"\u00612ad":{"a":"x"}}"#,
            r#"{"\ud800":1,"a2ad":{"a":"x"}}"#,
        ];
        for text in own {
            assert_eq!(taken(text), (Some(json(text)), None), "{text}");
            if !text.starts_with(r#"{"k""#) {
                assert_eq!(with_carried(Some(&json(text)), |_| {}), Some(json(text)), "{text}");
            }
        }
    }

    #[test]
    fn metadata_at_the_size_limit_carries_nothing() {
        let full = json(&format!(r#"{{"n":[0{}]}}"#, ",0".repeat(crate::json::MAX_NODES - 3)));
        assert_eq!(with_carried(Some(&full), |writer| writer.text("a", "x")), Some(full));
    }
}
