//! Losses that a comparison of models cannot show: input that the model does not represent, such as unknown members, and
//! message ids that a dialect requires and the input lacks.

use super::{
    forms,
    leaves::{self, Leaf, document},
    recognise::{ModelValue, Recognition},
};
use crate::{
    Dialect,
    json::read::{Node, Path},
};

/// Members that hold a timestamp, which the model stores in milliseconds.
const TIMESTAMP_MEMBERS: [&str; 3] = ["timestamp", "lastUpdatedAfter", "statusTimestampAfter"];

/// Members that the decoder of the input's dialect does not read, so that they are missing in every other dialect.
pub(super) fn unknown_members(recognised: &Recognition<'_>, input: &[Leaf], shown: &[Leaf]) -> Vec<String> {
    let Ok(own) = forms::comparable(recognised.dialect, &recognised.value) else { return Vec::new() };
    let own: Vec<Leaf> = own.iter().flat_map(|text| leaves::all(document(text))).collect();
    // A member that was read under an alias is written under its standard name.
    let renamed =
        |leaf: &Leaf| own.iter().any(|other| other.value == leaf.value && !other.has_path_in(input));
    // A card may serve several versions: a member unknown to one of them can belong to another.
    let elsewhere = |leaf: &Leaf| {
        matches!(recognised.value, ModelValue::Card(_)) && shown.iter().any(|other| other.value == leaf.value)
    };
    // Members that are read but not written in the same dialect, such as signatures, which are valid for one document
    // only, appear in the 1.0 form.
    let held = forms::comparable(Dialect::V1, &recognised.value).unwrap_or_default();
    let held: Vec<Leaf> = held.iter().flat_map(|text| leaves::all(document(text))).collect();
    let read = |leaf: &Leaf| {
        let mut same = held.iter().filter(|other| other.value == leaf.value);
        same.any(|other| leaf.has_path_in(std::slice::from_ref(other)) || !other.has_path_in(input))
    };
    let is_represented = |leaf: &Leaf| {
        leaf.has_path_in(&own) || leaf.has_path_in(shown) || renamed(leaf) || elsewhere(leaf) || read(leaf)
    };
    // Type tags carry no content, and the timestamp of an error is the time of its encoding.
    let is_irrelevant = |leaf: &Leaf| match leaf.name() {
        "kind" | "type" => true,
        "timestamp" => recognised.value.is_error(),
        _ => leaf.is_default(),
    };
    let lost = input.iter().filter(|leaf| !(is_irrelevant(leaf) || is_represented(leaf)));
    lost.map(|leaf| format!("{}: unknown member, not read", leaf.describe())).collect()
}

/// Timestamps with a higher precision than milliseconds.
pub(super) fn truncated_timestamps(input: &[Leaf]) -> Vec<String> {
    let fine = |leaf: &&Leaf| {
        let fraction = leaf.value.split_once('.').map_or("", |(_, fraction)| fraction);
        let digits = fraction.bytes().take_while(u8::is_ascii_digit);
        TIMESTAMP_MEMBERS.contains(&leaf.name())
            && !leaf.is_user_data()
            && digits.skip(3).any(|digit| digit != b'0')
    };
    input.iter().filter(fine).map(|leaf| format!("{}: digits beyond milliseconds", leaf.describe())).collect()
}

/// The paths of empty message ids, in dialects that require an id for every message.
pub(super) fn missing_message_ids(dialect: Dialect, shown: &[Leaf]) -> Vec<String> {
    let empty = |leaf: &&Leaf| is_empty_message_id(leaf) && dialect.rules().has_message_ids;
    shown.iter().filter(empty).map(|leaf| leaf.path.clone()).collect()
}

pub(super) fn is_empty_message_id(leaf: &Leaf) -> bool {
    leaf.name() == "messageId" && leaf.value == "\"\"" && !leaf.is_user_data()
}

/// Makes file bytes comparable across dialects: the protobuf JSON of 0.3 encodes them in base64 twice, the other
/// dialects once.
pub(super) fn normalise_bytes(dialect: Dialect, mut found: Vec<Leaf>) -> Vec<Leaf> {
    match dialect {
        Dialect::V03Proto => {}
        Dialect::Draft | Dialect::V03 | Dialect::V1 => return found,
    }
    for leaf in found.iter_mut().filter(|leaf| leaf.name() == "fileWithBytes") {
        let bytes = |text: &str| Node::new(document(text), &Path::Root).bytes().ok();
        let inner = bytes(&leaf.value).and_then(|inner| String::from_utf8(inner).ok());
        let inner = inner.filter(|inner| !inner.contains(['"', '\\'])).map(|inner| format!("\"{inner}\""));
        if let Some(inner) = inner.filter(|inner| crate::Json::parse(inner).is_ok() && bytes(inner).is_some())
        {
            leaf.value = inner;
        }
    }
    found
}
