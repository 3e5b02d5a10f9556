//! What happens to something on its way into a dialect, as lines beside the form.
//!
//! `missing` is what a strict reader asks for beyond what was given. `lost` and `changed` compare the model before with the model that is read back, both as 1.0 writes them, because 1.0
//! says nearly everything the model holds. The others compare what was given with what is written: a value that stands
//! once in each tells which member became which.

use std::collections::BTreeSet;

use protocol::Dialect;
use protocol::json::Raw;

use super::{
    forms, gone,
    leaves::{self, Leaf, document, short},
    recognise::{Recognised, Thing},
};

/// How many notes of one sort are shown.
const MOST: usize = 12;

/// The notes of what was written in a dialect.
pub(super) fn of(
    recognised: &Recognised<'_>,
    given: Raw<'_>,
    dialect: Dialect,
    written: &[String],
) -> Vec<String> {
    let given = gone::comparable(recognised.dialect, leaves::of(given));
    let shown = written.iter().flat_map(|text| leaves::of(document(text))).collect();
    let shown: Vec<Leaf> = gone::comparable(dialect, shown);
    let mut notes = Vec::new();
    if dialect == recognised.dialect {
        notes.extend(kept(&given, &shown));
    } else {
        notes.extend(frames(written));
        notes.extend(limited("translated", &translated(&given, &shown)));
        notes.extend(limited("carried", &carried(&recognised.thing, &shown)));
        notes.extend(limited("defaulted", &defaulted(&given, &shown)));
    }
    notes.extend(forms::missing(dialect, &recognised.thing, written).map(|field| note("missing", &field)));
    notes.extend(lost(&recognised.thing, dialect, written));
    for path in gone::nameless(dialect, &shown) {
        if !notes.iter().any(|other| other.starts_with(&note("missing", &format!("{path}:")))) {
            notes.push(note("missing", &format!("{path}: expected a non-empty string")));
        }
    }
    if dialect != recognised.dialect {
        notes.extend(limited("lost", &gone::unknown(recognised, &given, &shown)));
    }
    notes.extend(limited("lost", &gone::finer(&given)));
    if notes.is_empty() && dialect == recognised.dialect {
        notes.push("as given".into());
    } else if !notes
        .iter()
        .any(|note| ["lost", "changed", "missing"].iter().any(|sort| note.starts_with(sort)))
    {
        notes.push("nothing lost".into());
    }
    notes
}

fn note(sort: &str, text: &str) -> String {
    format!("{sort:<10}  {text}")
}

fn limited(sort: &str, texts: &[String]) -> Vec<String> {
    let more = texts.len().saturating_sub(MOST);
    let mut notes: Vec<String> = texts.iter().take(MOST).map(|text| note(sort, text)).collect();
    if more > 0 {
        notes.push(note(sort, &format!("and {more} more")));
    }
    notes
}

/// What the dialect of the input itself adds and leaves out.
fn kept(given: &[Leaf], shown: &[Leaf]) -> Vec<String> {
    let added: Vec<String> = shown.iter().filter(|leaf| !leaf.stands_in(given)).map(Leaf::said).collect();
    let spelled = |leaf: &Leaf| {
        let now =
            shown.iter().find(|other| other.path == leaf.path).filter(|other| other.value != leaf.value)?;
        Some(format!("{}: {} is written {}", leaf.path, short(&leaf.value), short(&now.value)))
    };
    let ignored = given.iter().filter(|leaf| leaf.value != "null" && !leaf.stands_in(shown));
    let ignored: Vec<String> = ignored.map(|leaf| format!("{} says nothing here", leaf.path)).collect();
    let mut notes = limited("defaulted", &added);
    notes.extend(limited("translated", &given.iter().filter_map(spelled).collect::<Vec<_>>()));
    notes.extend(limited("ignored", &ignored));
    notes
}

fn frames(written: &[String]) -> Option<String> {
    (written.len() > 1).then(|| note("translated", &format!("one event becomes {} frames", written.len())))
}

/// Which member became which, and which word which.
fn translated(given: &[Leaf], shown: &[Leaf]) -> Vec<String> {
    let mut found = Vec::new();
    let mut add = |text: String| {
        if !found.contains(&text) {
            found.push(text);
        }
    };
    for word in ["state", "role"] {
        let said = |leaves: &[Leaf]| -> Vec<String> {
            let own = leaves.iter().filter(|leaf| leaf.name() == word && !leaf.is_inside());
            own.map(|leaf| leaf.value.trim_matches('"').to_owned()).collect()
        };
        for (from, to) in said(given).iter().zip(said(shown)).filter(|(from, to)| *from != to) {
            add(format!("{word} {from} → {to}"));
        }
    }
    let once = |leaves: &[Leaf], value: &str| leaves.iter().filter(|leaf| leaf.value == value).count() == 1;
    for leaf in given.iter().filter(|leaf| once(given, &leaf.value) && once(shown, &leaf.value)) {
        let Some(there) = shown.iter().find(|other| other.value == leaf.value) else { continue };
        if !is_note(there)
            && let Some((from, to)) = difference(&leaf.path, &there.path)
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

/// What differs between two paths when what they share at both ends is left out.
fn difference(from: &str, to: &str) -> Option<(String, String)> {
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

/// What has no member of its own and rides in metadata.
fn carried(thing: &Thing, shown: &[Leaf]) -> Vec<String> {
    let own: BTreeSet<(String, String)> = model(thing).iter().filter_map(in_metadata).collect();
    let ours = shown.iter().filter(|leaf| is_note(leaf));
    let ours = ours.filter(|leaf| in_metadata(leaf).is_some_and(|place| !own.contains(&place)));
    ours.map(Leaf::said).collect()
}

fn is_note(leaf: &Leaf) -> bool {
    in_metadata(leaf).is_some_and(|(place, _)| {
        place.starts_with("a2ad.") || matches!(place.as_str(), "data_part_compat" | "skillId")
    })
}

/// The place inside the innermost metadata, and the value.
fn in_metadata(leaf: &Leaf) -> Option<(String, String)> {
    let (_, place) = leaf.path.rsplit_once("metadata.")?;
    Some((place.to_owned(), leaf.value.clone()))
}

/// What is said without having been given.
fn defaulted(given: &[Leaf], shown: &[Leaf]) -> Vec<String> {
    let names: BTreeSet<&str> = given.iter().map(Leaf::name).collect();
    let tags = ["kind", "type", "state", "role"];
    let new = shown.iter().filter(|leaf| {
        let name = leaf.name();
        !leaf.is_inside()
            && !names.contains(name)
            && !gone::is_empty_id(leaf)
            && !tags.contains(&name)
            && !given.iter().any(|other| other.value == leaf.value)
    });
    new.map(Leaf::said).collect()
}

/// What a reader of the dialect does not get to know.
fn lost(thing: &Thing, dialect: Dialect, written: &[String]) -> Vec<String> {
    let again = match forms::read(dialect, thing, written) {
        Ok(again) => again,
        Err(error) => return vec![note("missing", &error.message)],
    };
    if again == *thing {
        return Vec::new();
    }
    let (before, after) = (model(thing), model(&again));
    let find = |leaves: &[Leaf], path: &str| leaves.iter().find(|leaf| leaf.path == path).cloned();
    let (mut gone, mut changed) = (Vec::new(), Vec::new());
    for leaf in &before {
        match find(&after, &leaf.path) {
            Some(now) if now.value == leaf.value => {}
            Some(now) if now.is_nothing() => gone.push(leaf.said()),
            Some(now) => {
                changed.push(format!("{}: {} → {}", leaf.path, short(&leaf.value), short(&now.value)))
            }
            None => gone.push(leaf.said()),
        }
    }
    for leaf in after.iter().filter(|leaf| find(&before, &leaf.path).is_none() && !leaf.is_nothing()) {
        changed.push(format!("{} comes back", leaf.said()));
    }
    if gone.is_empty() && changed.is_empty() {
        gone.push("authentication schemes beyond the first".into());
    }
    let mut notes = limited("lost", &gone);
    notes.extend(limited("changed", &changed));
    notes
}

/// The model's values as 1.0 writes them.
fn model(thing: &Thing) -> Vec<Leaf> {
    let written = forms::write(Dialect::V1, thing).unwrap_or_default();
    let leaves = written.iter().flat_map(|text| leaves::of(document(text)));
    // The moment at which an error is told is no part of it.
    leaves.filter(|leaf| !thing.is_error() || leaf.name() != "timestamp").collect()
}
