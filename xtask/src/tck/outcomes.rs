//! The outcomes of the tests: in one mode, and over all modes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Outcome {
    Passed,
    /// Failed, as its authors expect of most servers (xfail).
    ExpectedFailure,
    Skipped,
    Failed,
}

/// The tests of one mode, by name after the name of the part, with the reason if they did not pass.
#[derive(Default)]
pub(super) struct Outcomes(BTreeMap<String, (Outcome, String)>);

impl Outcomes {
    /// Adds the plugin's file about one part. A test with two entries has the worse outcome.
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

    /// The numbers of passed, failed, expectedly failed and skipped tests of one part, or of all.
    pub(super) fn counts(&self, part: Option<&str>) -> [usize; 4] {
        let start = part.map(|part| format!("[{part}] "));
        let of = |name: &str| start.as_ref().is_none_or(|start| name.starts_with(start));
        let count = |outcome| self.0.iter().filter(|(name, kept)| of(name) && kept.0 == outcome).count();
        [Outcome::Passed, Outcome::Failed, Outcome::ExpectedFailure, Outcome::Skipped].map(count)
    }

    /// The failed tests with their reasons.
    pub(super) fn failures(&self) -> impl Iterator<Item = (&str, &str)> {
        let failed = self.0.iter().filter(|(_, kept)| kept.0 == Outcome::Failed);
        failed.map(|(name, kept)| (name.as_str(), kept.1.as_str()))
    }
}

/// The number of tests that passed in some mode, and those that passed in none, with their worst outcome and its
/// reason.
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
        let file = std::env::temp_dir().join(format!(
            "outcomes-{}-{:?}",
            std::process::id(),
            std::thread::current().id()
        ));
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
    fn test_passes_if_it_passes_in_one_mode() {
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
    fn test_with_failed_teardown_has_failed() {
        let outcomes = read(&[("a", "passed", false), ("a", "failed", false)]);
        assert_eq!(outcomes.counts(Some("all")), [0, 1, 0, 0]);
    }
}
