//! The results of a run, as text.

use std::fmt::Write as _;

use super::{Backend, CheckResult, Item, mismatch};

/// The results of the selected items, in the order of the list.
pub(crate) struct Report {
    items: Vec<ItemResult>,
}

pub(crate) struct ItemResult {
    pub(crate) item: &'static Item,
    pub(crate) verdict: Verdict,
}

#[derive(Debug)]
pub(crate) enum Verdict {
    Passed,
    Failed {
        expected: String,
        got: String,
    },
    /// Checked by this ordinary test, not by this program.
    Test(&'static str),
    /// Built by this step of the plan; for these kinds of backends, if it is built for others.
    NotYet(u8, Vec<Backend>),
}

impl Verdict {
    /// Adds the result of a check. One that is expected to fail and passes is a failure too: its item has to say so.
    pub(crate) fn add(&mut self, backend: Backend, checked: CheckResult) {
        let is_expected = matches!(self, Self::NotYet(_, kinds) if kinds.contains(&backend));
        let failed = match checked {
            Err(error) if !is_expected => error,
            Ok(()) if is_expected => mismatch("a failure, as the item says", "none"),
            _ => return,
        };
        let (expected, got) = (format!("{} ({backend:?})", failed.expected), failed.got);
        *self = Self::Failed { expected, got };
    }

    fn label(&self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed { .. } => "FAILED",
            Self::Test(_) => "by test",
            Self::NotYet(..) => "not yet",
        }
    }
}

impl Report {
    pub(crate) fn new(items: Vec<ItemResult>) -> Self {
        Self { items }
    }

    /// Whether no item failed; items that were not checked do not count as failures.
    pub(crate) fn is_success(&self) -> bool {
        self.failed().is_empty()
    }

    /// The ids of the items that failed.
    pub(crate) fn failed(&self) -> Vec<String> {
        let failed = |result: &&ItemResult| matches!(result.verdict, Verdict::Failed { .. });
        self.items.iter().filter(failed).map(|result| result.item.id()).collect()
    }

    /// One line for each group: items that passed and all items, such as `S1 66/89 (23 not yet)`. An item that an ordinary
    /// test checks has passed.
    pub(crate) fn summary(&self) -> String {
        ["S0", "S1", "S2", "S3", "S4"]
            .iter()
            .fold(String::new(), |text, group| text + &self.group_line(group) + "\n")
    }

    fn group_line(&self, group: &str) -> String {
        let of_group = || self.items.iter().filter(|result| result.item.group == group);
        let count = |label: &str| of_group().filter(|result| result.verdict.label() == label).count();
        let rest: Vec<String> = ["FAILED", "by test", "not yet"]
            .into_iter()
            .map(|label| (count(label), label))
            .filter(|(count, _)| *count > 0)
            .map(|(count, label)| format!("{count} {label}"))
            .collect();
        let rest = if rest.is_empty() { String::new() } else { format!(" ({})", rest.join(", ")) };
        format!("{group} {}/{}{rest}", count("passed") + count("by test"), of_group().count())
    }

    /// The totals in one line.
    pub(crate) fn verdict_line(&self) -> String {
        let count = |label: &str| self.items.iter().filter(|result| result.verdict.label() == label).count();
        format!(
            "acceptance {}: {} passed, {} failed, {} not built yet",
            if self.is_success() { "passed" } else { "FAILED" },
            count("passed") + count("by test"),
            count("FAILED"),
            count("not yet")
        )
    }

    /// One line for each item.
    pub(crate) fn lines(&self) -> String {
        self.items.iter().fold(String::new(), |mut text, result| {
            let _ =
                write!(text, "{:<6} {:<8} {}", result.item.id(), result.verdict.label(), result.item.what);
            let _ = match &result.verdict {
                Verdict::Test(name) => writeln!(text, " [{name}]"),
                Verdict::NotYet(step, kinds) if kinds.is_empty() => writeln!(text, " [step {step}]"),
                Verdict::NotYet(step, kinds) => writeln!(text, " [step {step}: {kinds:?}]"),
                Verdict::Passed | Verdict::Failed { .. } => writeln!(text),
            };
            text
        })
    }

    /// The failed items, each with the expected and the actual behaviour.
    pub(crate) fn failures(&self) -> String {
        let mut text = String::new();
        for result in &self.items {
            if let Verdict::Failed { expected, got } = &result.verdict {
                let _ = writeln!(text, "{} {}", result.item.id(), result.item.what);
                let _ = writeln!(text, "  expected {}\n  got      {}", shortened(expected), shortened(got));
            }
        }
        text
    }
}

/// At most the first 1,200 characters.
fn shortened(text: &str) -> String {
    const MAX_CHARS: usize = 1_200;
    match text.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{} … ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ITEMS;

    #[test]
    fn items_that_are_not_built_do_not_count_as_passed() {
        let failed = Verdict::Failed { expected: "a".into(), got: "b".into() };
        let verdicts = [Verdict::Passed, Verdict::NotYet(22, Vec::new()), Verdict::Test("a::b"), failed];
        let items = ITEMS.iter().filter(|item| item.group == "S1").zip(verdicts);
        let report = Report::new(items.map(|(item, verdict)| ItemResult { item, verdict }).collect());
        assert_eq!(report.group_line("S1"), "S1 2/4 (1 FAILED, 1 by test, 1 not yet)");
        assert_eq!(report.verdict_line(), "acceptance FAILED: 2 passed, 1 failed, 1 not built yet");
        assert!(report.failures().ends_with("\n  expected a\n  got      b\n"), "{}", report.failures());
        assert!(report.lines().contains(" [step 22]\n"), "{}", report.lines());
    }

    #[test]
    fn a_kind_that_passes_too_early_is_a_failure() {
        let failed = || Err(mismatch("a", "b"));
        let mut verdict = Verdict::NotYet(17, vec![Backend::Http]);
        verdict.add(Backend::Http, failed());
        verdict.add(Backend::Builtin, Ok(()));
        assert!(matches!(verdict, Verdict::NotYet(17, _)));
        verdict.add(Backend::Http, Ok(()));
        assert!(matches!(verdict, Verdict::Failed { .. }));
        let mut verdict = Verdict::Passed;
        verdict.add(Backend::Mcp, failed());
        assert!(matches!(verdict, Verdict::Failed { expected, .. } if expected == "a (Mcp)"));
    }
}
