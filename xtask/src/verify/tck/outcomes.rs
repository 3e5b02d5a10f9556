//! What became of the tests: in one mode, and in all of them together.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

/// What became of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    Passed,
    /// It failed, as its authors expect of most servers.
    ExpectedFailure,
    Skipped,
    Failed,
}

/// The tests of one mode, by name with the part of the kit before it, and why where they did not pass.
#[derive(Default)]
pub(super) struct Outcomes(BTreeMap<String, (Outcome, String)>);

impl Outcomes {
    /// Adds what the plugin wrote about one part. A test that tells twice has the worse of both.
    pub(super) fn add(&mut self, part: &str, file: &Path) -> Result<()> {
        let text = fs::read_to_string(file).context("the kit ran no test")?;
        for line in text.lines() {
            let line: Value = serde_json::from_str(line).context("the plugin wrote no JSON")?;
            let text = |name: &str| line[name].as_str().unwrap_or_default().to_owned();
            let expected = line["expected"].as_bool().unwrap_or_default();
            let outcome = match (text("outcome").as_str(), expected) {
                ("passed", _) => Outcome::Passed,
                ("skipped", true) => Outcome::ExpectedFailure,
                ("skipped", false) => Outcome::Skipped,
                _ => Outcome::Failed,
            };
            let name = format!("[{part}] {}", text("test"));
            let before = self.0.get(&name).map(|known| known.0);
            if before.is_none_or(|before| before < outcome) {
                self.0.insert(name, (outcome, text("reason")));
            }
        }
        Ok(())
    }

    /// How many passed, failed, failed as expected, and were skipped, of those whose part is `part`, or of all.
    pub(super) fn counts(&self, part: Option<&str>) -> [usize; 4] {
        let start = part.map(|part| format!("[{part}] "));
        let of = |name: &str| start.as_ref().is_none_or(|start| name.starts_with(start));
        let count = |outcome| self.0.iter().filter(|(name, kept)| of(name) && kept.0 == outcome).count();
        [Outcome::Passed, Outcome::Failed, Outcome::ExpectedFailure, Outcome::Skipped].map(count)
    }

    /// Those that failed, with their reasons.
    pub(super) fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        let failed = self.0.iter().filter(|(_, kept)| kept.0 == Outcome::Failed);
        failed.map(|(name, kept)| (name.as_str(), kept.1.as_str()))
    }
}

/// Every test of all modes that passed in none of them, with the worst that became of it and its reason.
pub(super) fn never_passed(modes: &[Outcomes]) -> (usize, Vec<(String, Outcome, String)>) {
    let names: BTreeSet<&String> = modes.iter().flat_map(|mode| mode.0.keys()).collect();
    let mut never = Vec::new();
    for name in &names {
        let kept = || modes.iter().filter_map(|mode| mode.0.get(*name));
        if kept().any(|kept| kept.0 == Outcome::Passed) {
            continue;
        }
        if let Some((outcome, reason)) = kept().max_by_key(|kept| kept.0) {
            never.push(((*name).clone(), *outcome, reason.clone()));
        }
    }
    (names.len() - never.len(), never)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[(&str, &str, bool)]) -> Outcomes {
        let file = std::env::temp_dir().join(format!("outcomes-{}", uuid::Uuid::new_v4()));
        let line = |(test, outcome, expected): &(&str, &str, bool)| {
            serde_json::json!({"test": test, "outcome": outcome, "expected": expected, "reason": "so"})
                .to_string()
        };
        fs::write(&file, lines.iter().map(line).collect::<Vec<_>>().join("\n")).unwrap();
        let mut outcomes = Outcomes::default();
        outcomes.add("all", &file).unwrap();
        fs::remove_file(&file).unwrap();
        outcomes
    }

    #[test]
    fn a_test_passes_that_passes_in_one_mode() {
        let first = read(&[
            ("a", "passed", false),
            ("b", "failed", false),
            ("c", "skipped", false),
            ("d", "skipped", true),
        ]);
        let second = read(&[
            ("a", "skipped", false),
            ("b", "passed", false),
            ("c", "skipped", false),
            ("d", "skipped", true),
        ]);
        assert_eq!(first.counts(None), [1, 1, 1, 1]);
        assert_eq!(first.failures().collect::<Vec<_>>(), [("[all] b", "so")]);
        let (passed, never) = never_passed(&[first, second]);
        assert_eq!(passed, 2);
        assert_eq!(
            never.iter().map(|row| (row.0.as_str(), row.1)).collect::<Vec<_>>(),
            [("[all] c", Outcome::Skipped), ("[all] d", Outcome::ExpectedFailure)]
        );
    }

    #[test]
    fn a_test_that_passes_and_cannot_be_cleared_away_has_failed() {
        let outcomes = read(&[("a", "passed", false), ("a", "failed", false)]);
        assert_eq!(outcomes.counts(Some("all")), [0, 1, 0, 0]);
    }
}
