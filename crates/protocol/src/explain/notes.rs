//! The notes below each encoded document: what happens to the members when a value is encoded in a dialect.
//!
//! `missing` names members that a strict decoder requires and the input lacks. `lost` and `changed` compare the model
//! before encoding with the model that is decoded again, both in the 1.0 form, because 1.0 can express nearly the whole
//! model. The other kinds compare the input with the encoded document: a value that occurs exactly once in both shows
//! which member was translated into which.

use std::collections::BTreeSet;

use super::{
    forms,
    leaves::{self, Leaf, document, truncate},
    recognise::{ModelValue, Recognition},
    unmodelled,
};
use crate::{Dialect, json::Raw};

/// The maximum number of notes of one kind.
const MAX_NOTES_PER_KIND: usize = 12;

/// The notes for a document that was encoded in a dialect.
pub(super) fn of(
    recognised: &Recognition<'_>,
    input: Raw<'_>,
    dialect: Dialect,
    written: &[String],
) -> Vec<String> {
    let input = unmodelled::normalise_bytes(recognised.dialect, leaves::all(input));
    let shown = written.iter().flat_map(|text| leaves::all(document(text))).collect();
    let shown: Vec<Leaf> = unmodelled::normalise_bytes(dialect, shown);
    let mut notes = Vec::new();
    if dialect == recognised.dialect {
        notes.extend(same_dialect_notes(&input, &shown));
    } else {
        notes.extend(frames(written));
        notes.extend(limited("translated", &translated(&input, &shown)));
        notes.extend(limited("carried", &carried(&recognised.value, &shown)));
        notes.extend(limited("defaulted", &defaulted(&input, &shown)));
    }
    notes.extend(forms::missing(dialect, &recognised.value, written).map(|field| note("missing", &field)));
    notes.extend(lost(&recognised.value, dialect, written));
    for path in unmodelled::missing_message_ids(dialect, &shown) {
        if !notes.iter().any(|other| other.starts_with(&note("missing", &format!("{path}:")))) {
            notes.push(note("missing", &format!("{path}: expected a non-empty string")));
        }
    }
    if dialect != recognised.dialect {
        notes.extend(limited("lost", &unmodelled::unknown_members(recognised, &input, &shown)));
    }
    notes.extend(limited("lost", &unmodelled::truncated_timestamps(&input)));
    if notes.is_empty() && dialect == recognised.dialect {
        notes.push("as given".into());
    } else if !notes
        .iter()
        .any(|note| ["lost", "changed", "missing"].iter().any(|kind| note.starts_with(kind)))
    {
        notes.push("nothing lost".into());
    }
    notes
}

fn note(kind: &str, text: &str) -> String {
    format!("{kind:<10}  {text}")
}

fn limited(kind: &str, texts: &[String]) -> Vec<String> {
    let more = texts.len().saturating_sub(MAX_NOTES_PER_KIND);
    let mut notes: Vec<String> = texts.iter().take(MAX_NOTES_PER_KIND).map(|text| note(kind, text)).collect();
    if more > 0 {
        notes.push(note(kind, &format!("and {more} more")));
    }
    notes
}

/// The members that encoding in the input's own dialect adds, respells and omits.
fn same_dialect_notes(input: &[Leaf], shown: &[Leaf]) -> Vec<String> {
    let added: Vec<String> =
        shown.iter().filter(|leaf| !leaf.has_path_in(input)).map(Leaf::describe).collect();
    let spelled = |leaf: &Leaf| {
        let now =
            shown.iter().find(|other| other.path == leaf.path).filter(|other| other.value != leaf.value)?;
        Some(format!("{}: {} is written {}", leaf.path, truncate(&leaf.value), truncate(&now.value)))
    };
    let ignored = input.iter().filter(|leaf| leaf.value != "null" && !leaf.has_path_in(shown));
    let ignored: Vec<String> = ignored.map(|leaf| format!("{} has no effect", leaf.path)).collect();
    let mut notes = limited("defaulted", &added);
    notes.extend(limited("translated", &input.iter().filter_map(spelled).collect::<Vec<_>>()));
    notes.extend(limited("ignored", &ignored));
    notes
}

fn frames(written: &[String]) -> Option<String> {
    (written.len() > 1).then(|| note("translated", &format!("one event becomes {} frames", written.len())))
}

/// Members that have another name or path, and states and roles that have another spelling.
fn translated(input: &[Leaf], shown: &[Leaf]) -> Vec<String> {
    let mut found = Vec::new();
    let mut add = |text: String| {
        if !found.contains(&text) {
            found.push(text);
        }
    };
    for member in ["state", "role"] {
        let values = |leaves: &[Leaf]| -> Vec<String> {
            let own = leaves.iter().filter(|leaf| leaf.name() == member && !leaf.is_user_data());
            own.map(|leaf| leaf.value.trim_matches('"').to_owned()).collect()
        };
        for (from, to) in values(input).iter().zip(values(shown)).filter(|(from, to)| *from != to) {
            add(format!("{member} {from} → {to}"));
        }
    }
    let once = |leaves: &[Leaf], value: &str| leaves.iter().filter(|leaf| leaf.value == value).count() == 1;
    for leaf in input.iter().filter(|leaf| once(input, &leaf.value) && once(shown, &leaf.value)) {
        let Some(there) = shown.iter().find(|other| other.value == leaf.value) else { continue };
        if !is_carried(there)
            && let Some((from, to)) = path_difference(&leaf.path, &there.path)
        {
            add(match (from.as_str(), to.as_str()) {
                ("", to) => format!("inside {to}"),
                (from, "") => format!("without the {from} around it"),
                (from, to) => format!("{from} → {to}"),
            });
        }
    }
    found
}

/// The differing middle of two paths, without their common prefix and suffix.
fn path_difference(from: &str, to: &str) -> Option<(String, String)> {
    let pieces = |path: &str| -> Vec<String> {
        path.split('.').map(|piece| piece.split('[').next().unwrap_or(piece).to_owned()).collect()
    };
    let (from, to) = (pieces(from), pieces(to));
    let end = from.iter().rev().zip(to.iter().rev()).take_while(|(one, other)| one == other).count();
    let (from, to) = (&from[..from.len() - end], &to[..to.len() - end]);
    let start = from.iter().zip(to).take_while(|(one, other)| one == other).count();
    let (from, to) = (from[start..].join("."), to[start..].join("."));
    (from != to).then_some((from, to))
}

/// Values without a member in this dialect, which are carried in metadata.
fn carried(value: &ModelValue, shown: &[Leaf]) -> Vec<String> {
    let own: BTreeSet<(String, String)> = model_leaves(value).iter().filter_map(metadata_entry).collect();
    let carried_leaves = shown.iter().filter(|leaf| is_carried(leaf));
    let carried_leaves =
        carried_leaves.filter(|leaf| metadata_entry(leaf).is_some_and(|path| !own.contains(&path)));
    carried_leaves.map(Leaf::describe).collect()
}

fn is_carried(leaf: &Leaf) -> bool {
    metadata_entry(leaf).is_some_and(|(path, _)| {
        path.starts_with("a2ad.") || matches!(path.as_str(), "data_part_compat" | "skillId")
    })
}

/// The path inside the innermost metadata, and the value.
fn metadata_entry(leaf: &Leaf) -> Option<(String, String)> {
    let (_, path) = leaf.path.rsplit_once("metadata.")?;
    Some((path.to_owned(), leaf.value.clone()))
}

/// Members of the encoded document that the input lacks.
fn defaulted(input: &[Leaf], shown: &[Leaf]) -> Vec<String> {
    let names: BTreeSet<&str> = input.iter().map(Leaf::name).collect();
    let tags = ["kind", "type", "state", "role"];
    let new = shown.iter().filter(|leaf| {
        let name = leaf.name();
        !leaf.is_user_data()
            && !names.contains(name)
            && !unmodelled::is_empty_message_id(leaf)
            && !tags.contains(&name)
            && !input.iter().any(|other| other.value == leaf.value)
    });
    new.map(Leaf::describe).collect()
}

/// Values of the model that are lost or changed after encoding and decoding in the dialect.
fn lost(value: &ModelValue, dialect: Dialect, written: &[String]) -> Vec<String> {
    let read_back = match forms::decode(dialect, value, written) {
        Ok(read_back) => read_back,
        Err(error) => return vec![note("missing", &error.message)],
    };
    if read_back == *value {
        return Vec::new();
    }
    let (before, after) = (model_leaves(value), model_leaves(&read_back));
    let find = |leaves: &[Leaf], path: &str| leaves.iter().find(|leaf| leaf.path == path).cloned();
    let (mut lost, mut changed) = (Vec::new(), Vec::new());
    for leaf in &before {
        match find(&after, &leaf.path) {
            Some(now) if now.value == leaf.value => {}
            Some(now) if now.is_empty_value() => lost.push(leaf.describe()),
            Some(now) => {
                changed.push(format!("{}: {} → {}", leaf.path, truncate(&leaf.value), truncate(&now.value)))
            }
            None => lost.push(leaf.describe()),
        }
    }
    for leaf in after.iter().filter(|leaf| find(&before, &leaf.path).is_none() && !leaf.is_empty_value()) {
        changed.push(format!("{} is added when read back", leaf.describe()));
    }
    if lost.is_empty() && changed.is_empty() {
        lost.push("authentication schemes beyond the first".into());
    }
    let mut notes = limited("lost", &lost);
    notes.extend(limited("changed", &changed));
    notes
}

/// The leaves of a value in the 1.0 form.
fn model_leaves(value: &ModelValue) -> Vec<Leaf> {
    let written = forms::comparable(Dialect::V1, value).unwrap_or_default();
    let leaves = written.iter().flat_map(|text| leaves::all(document(text)));
    // The timestamp of an error is the time of its encoding, not a part of the error.
    leaves.filter(|leaf| !value.is_error() || leaf.name() != "timestamp").collect()
}
