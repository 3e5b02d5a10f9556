//! The execution settings of a skill: `on_crash`, `run_time`, `attempts`, `deadline`, `interrupted_ttl`.

use std::time::Duration;

use engine::{OnCrash, RunSettings};

use super::{
    read::{Parsed, Section},
    tree::Item,
    values,
};

pub(crate) const ON_CRASH_NAMES: [(&str, OnCrash); 3] =
    [("retry", OnCrash::Retry), ("resume", OnCrash::Resume), ("fail", OnCrash::Fail)];

const MAX_ATTEMPTS: u32 = 1_000;

pub(super) fn run_settings(section: &Section<'_>) -> RunSettings {
    RunSettings {
        on_crash: section.get("on_crash", |item| item.one_of(&ON_CRASH_NAMES)),
        run_time: section.get("run_time", values::positive_duration),
        attempts: section.get("attempts", attempts),
        deadline: section.value("deadline", deadline),
        interrupted_ttl: section.get("interrupted_ttl", values::positive_duration),
    }
}

fn attempts(item: &Item) -> Parsed<u32> {
    let count = item.count()?;
    let valid = u32::try_from(count).ok().filter(|count| (1..=MAX_ATTEMPTS).contains(count));
    valid.ok_or_else(|| format!("expected 1 to {MAX_ATTEMPTS} attempts, not {count}"))
}

/// An empty string is no deadline.
fn deadline(item: &Item) -> Parsed<Option<Duration>> {
    if item.text()?.is_empty() { Ok(None) } else { values::positive_duration(item).map(Some) }
}
