//! Carrying what a dialect cannot say.
//!
//! It goes under one key of the metadata of the smallest enclosing object and is taken out again on the way
//! in. The key may be the caller's own: then it stays as it is, and what it should have carried is left out.
//! Nothing else in the metadata changes by a byte.

use crate::{
    Json,
    json::{
        Raw,
        read::{Node, Object, Path, Read},
        write::Writer,
    },
};

/// The member of metadata that holds our notes.
const KEY: &str = "a2ad";

/// The metadata with a note whose members are written by `note`.
pub(crate) fn with_note(metadata: Option<&Json>, note: impl FnOnce(&mut Writer)) -> Option<Json> {
    let mut writer = Writer::new();
    writer.object(note);
    let note = String::from_utf8(writer.finish()).expect("the writer was given UTF-8 only");
    with_member(metadata, KEY, &note)
}

/// Takes our note out of the metadata. It is ours when it is an object that has none but these members and
/// `read` understands it; anything else is the caller's and stays.
pub(crate) fn take_note<T>(
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

/// The metadata with one more member, whose value is JSON text; unchanged where there is one of that name, or
/// where it would become more than one value may hold.
pub(crate) fn with_member(metadata: Option<&Json>, name: &str, value: &str) -> Option<Json> {
    let Some(metadata) = metadata else { return Json::parse(&format!(r#"{{"{name}":{value}}}"#)).ok() };
    let longer = metadata.as_str().strip_suffix('}').filter(|_| !may_have(metadata, name)).and_then(|open| {
        let comma = if open == "{" { "" } else { "," };
        Json::parse(&format!(r#"{open}{comma}"{name}":{value}}}"#)).ok()
    });
    Some(longer.unwrap_or_else(|| metadata.clone()))
}

/// Takes one member out of the metadata, provided that `read` makes something of it. Metadata that has no
/// other member is gone then.
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

/// The value of a member and what the object is without it.
fn find<'j>(json: &'j Json, name: &str) -> Option<(Raw<'j>, Option<Json>)> {
    let text = json.as_str();
    let quoted = format!("\"{name}\":");
    if !text.contains(&quoted) {
        return None;
    }
    let value = Node::new(json.as_raw(), &Path::Root).object().ok()?.present(name)?;
    // The value is a piece of the text; what stands before it tells whether it is spelled as we spell it.
    let start = value.get().as_ptr().addr() - text.as_ptr().addr();
    let before = text[..start].strip_suffix(&quoted)?;
    let after = &text[start + value.get().len()..];
    let rest = match before.strip_suffix(',') {
        Some(before) => format!("{before}{after}"),
        None => format!("{before}{}", after.strip_prefix(',').unwrap_or(after)),
    };
    Some((value, Json::parse(&rest).ok().filter(|rest| rest.as_str() != "{}")))
}

/// Whether an object has a member of this name, however it is spelled. What cannot be read may have it.
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
        take_note(Some(json(text)), &["a", "b"], |note| note.text("a"))
    }

    #[test]
    fn a_note_is_put_behind_the_rest_and_taken_from_anywhere() {
        let note = |writer: &mut Writer| writer.text("a", "x");
        assert_eq!(with_note(None, note), Some(json(r#"{"a2ad":{"a":"x"}}"#)));
        assert_eq!(with_note(Some(&json("{}")), note), Some(json(r#"{"a2ad":{"a":"x"}}"#)));
        assert_eq!(with_note(Some(&json(r#"{"k":1}"#)), note), Some(json(r#"{"k":1,"a2ad":{"a":"x"}}"#)));
        let x = Some(Some("x".to_owned()));
        assert_eq!(taken(r#"{"a2ad":{"a":"x"}}"#), (None, x.clone()));
        assert_eq!(taken(r#"{"a2ad":{"a":"x"},"k":1}"#), (Some(json(r#"{"k":1}"#)), x.clone()));
        assert_eq!(taken(r#"{"\u006b":1,"a2ad":{"a":"x"},"l":2}"#), (Some(json(r#"{"\u006b":1,"l":2}"#)), x));
    }

    #[test]
    fn what_is_the_callers_own_stays() {
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
                assert_eq!(with_note(Some(&json(text)), |_| {}), Some(json(text)), "{text}");
            }
        }
    }

    #[test]
    fn metadata_that_is_full_carries_nothing() {
        let full = json(&format!(r#"{{"n":[0{}]}}"#, ",0".repeat(crate::json::MAX_NODES - 3)));
        assert_eq!(with_note(Some(&full), |writer| writer.text("a", "x")), Some(full));
    }
}
