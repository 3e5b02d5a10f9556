//! What was given and did not get into the model, and what a dialect wants that was not given.
//!
//! The model is compared with itself elsewhere; this looks for what it never held.

use protocol::{Dialect, json::read::Node, json::read::Path};

use super::{
    forms,
    leaves::{self, Leaf, document},
    recognise::{Recognised, Thing},
};

/// Names under which the model keeps a moment, to the millisecond.
const MOMENTS: [&str; 3] = ["timestamp", "lastUpdatedAfter", "statusTimestampAfter"];

/// Members that nothing is read from: the dialect of the input does not know them, and so no other is told of them.
pub(super) fn unknown(recognised: &Recognised<'_>, given: &[Leaf], shown: &[Leaf]) -> Vec<String> {
    let Ok(own) = forms::write(recognised.dialect, &recognised.thing) else { return Vec::new() };
    let own: Vec<Leaf> = own.iter().flat_map(|text| leaves::of(document(text))).collect();
    // A member that is known by another name stands there under that name.
    let renamed = |leaf: &Leaf| own.iter().any(|other| other.value == leaf.value && !other.stands_in(given));
    // A card may be one for several generations: what one of them does not know is another's.
    let elsewhere = |leaf: &Leaf| {
        matches!(recognised.thing, Thing::Card(_)) && shown.iter().any(|other| other.value == leaf.value)
    };
    // What was read and is not written again, such as signatures, which are good for one document, 1.0 has.
    let held = forms::write(Dialect::V1, &recognised.thing).unwrap_or_default();
    let held: Vec<Leaf> = held.iter().flat_map(|text| leaves::of(document(text))).collect();
    let read = |leaf: &Leaf| {
        let mut same = held.iter().filter(|other| other.value == leaf.value);
        same.any(|other| leaf.stands_in(std::slice::from_ref(other)) || !other.stands_in(given))
    };
    let told = |leaf: &Leaf| {
        leaf.stands_in(&own) || leaf.stands_in(shown) || renamed(leaf) || elsewhere(leaf) || read(leaf)
    };
    // Tags say what the rest is, and the moment at which an error is told is no part of it.
    let beside = |leaf: &Leaf| match leaf.name() {
        "kind" | "type" => true,
        "timestamp" => recognised.thing.is_error(),
        _ => leaf.says_little(),
    };
    let gone = given.iter().filter(|leaf| !(beside(leaf) || told(leaf)));
    gone.map(|leaf| format!("{}: nothing is read from it", leaf.said())).collect()
}

/// Moments that are given more finely than they are kept.
pub(super) fn finer(given: &[Leaf]) -> Vec<String> {
    let fine = |leaf: &&Leaf| {
        let fraction = leaf.value.split_once('.').map_or("", |(_, fraction)| fraction);
        let digits = fraction.bytes().take_while(u8::is_ascii_digit);
        MOMENTS.contains(&leaf.name()) && !leaf.is_inside() && digits.skip(3).any(|digit| digit != b'0')
    };
    given
        .iter()
        .filter(fine)
        .map(|leaf| format!("{}: what is finer than a millisecond", leaf.said()))
        .collect()
}

/// Ids that a dialect wants of every message, and that were not given.
pub(super) fn nameless(dialect: Dialect, shown: &[Leaf]) -> Vec<String> {
    let empty = |leaf: &&Leaf| is_empty_id(leaf) && dialect != Dialect::Draft;
    shown.iter().filter(empty).map(|leaf| leaf.path.clone()).collect()
}

/// Whether this is the place of a message's id, and nothing stands there.
pub(super) fn is_empty_id(leaf: &Leaf) -> bool {
    leaf.name() == "messageId" && leaf.value == "\"\"" && !leaf.is_inside()
}

/// The values of a document of this dialect. The older protobuf file has the base64 of base64 for bytes; they are
/// compared as the other dialects have them.
pub(super) fn comparable(dialect: Dialect, mut found: Vec<Leaf>) -> Vec<Leaf> {
    for leaf in found.iter_mut().filter(|leaf| dialect == Dialect::V03Proto && leaf.name() == "fileWithBytes")
    {
        let bytes = |text: &str| Node::new(document(text), &Path::Root).bytes().ok();
        let inner = bytes(&leaf.value).and_then(|inner| String::from_utf8(inner).ok());
        let inner = inner.filter(|inner| !inner.contains(['"', '\\'])).map(|inner| format!("\"{inner}\""));
        if let Some(inner) =
            inner.filter(|inner| protocol::Json::parse(inner).is_ok() && bytes(inner).is_some())
        {
            leaf.value = inner;
        }
    }
    found
}
