//! Wrong configurations, and the items that fail with each: shows that the checks see what they are about.

use std::path::Path;

use anyhow::Result;

use crate::check_items;

/// A change in a configuration, the items that are checked with it, and those that must fail.
pub(crate) struct Control {
    change: (&'static str, &'static str),
    items: &'static [&'static str],
    failing: &'static [&'static str],
}

const fn control(
    from: &'static str,
    to: &'static str,
    items: &'static [&'static str],
    failing: &'static [&'static str],
) -> Control {
    Control { change: (from, to), items, failing }
}

pub(crate) const CONTROLS: &[Control] = &[
    // Agents and versions.
    control(
        "[agents.pinkfish]\nprofile = \"pinkfish\"",
        "[agents.pinkfish]",
        &["S0-18", "S2-20", "S2-22", "S2-44"],
        &["S2-20", "S2-22", "S2-44"],
    ),
    control(
        "[server]",
        "[protocol]\ndialects = [\"0.3\", \"1.0\"]\n[server]",
        &["S0-19", "S1-81", "S2-22", "S3-13", "S4-19"],
        &["S0-19", "S1-81", "S4-19"],
    ),
    control(
        "[agents.main]",
        "[agents.main]\nstreaming = false",
        &["S0-22", "S0-31", "S1-12", "S1-47", "S1-52", "S3-17"],
        &["S0-31", "S1-12", "S1-47", "S1-52", "S3-17"],
    ),
    // Retention.
    control("retention = { max_age = \"1s\", keys = \"1s\" }", "", &["S0-29", "S1-37"], &["S0-29", "S1-37"]),
    control(
        "[server]",
        "[store]\nretention = { max_age = \"7d\" }\n[server]",
        &["S0-29", "S1-37"],
        &["S0-29"],
    ),
    // Tools and skills.
    control("\"weather-lookup\", ", "", &["S0-1", "S0-6", "S0-11", "S0-12"], &["S0-1", "S0-6", "S0-11"]),
    control("mcp__user_5f2c9a_notes", "mcp__user__notes", &["S3-9", "S3-10"], &["S3-9"]),
    control("\"protected\"", "\"open\"", &["S3-9", "S3-10"], &["S3-9"]),
    control("skills_allow = [\"search\"]", "", &["S2-8"], &["S2-8"]),
    // This function ends before its second piece.
    control("1:1/events", "1:1/broken", &["S0-46"], &["S0-46"]),
    // Webhooks.
    control("challenge = true", "", &["S1-43", "S1-44"], &["S1-44"]),
    control("push = false", "", &["S1-45", "S1-12"], &["S1-12"]),
    control("[agents.main]", "[agents.main]\npush = false", &["S1-1", "S1-42", "S2-22"], &["S1-1", "S1-42"]),
];

/// Checks the items of each control. Returns a description of each whose failing items are others than expected.
pub(crate) async fn run(program: &Path) -> Result<Vec<String>> {
    let mut wrong = Vec::new();
    for Control { change, items, failing } in CONTROLS {
        let report = check_items(program, &[*change], items).await?;
        if report.failed() != *failing {
            let failures = report.failures();
            wrong.push(format!("{change:?}: expected {failing:?} to fail\n{failures}"));
        }
    }
    Ok(wrong)
}
