//! The results of a selftest run, as text and as JSON.

use std::fmt::Write as _;

use super::{CheckError, GROUPS, json::quote};

/// The results of all items, in the order of the catalogue.
#[derive(Debug)]
pub struct Report {
    items: Vec<ItemResult>,
    /// Ids of tasks that the checks started and that could not be cancelled.
    left_open: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct ItemResult {
    pub(crate) group: &'static str,
    pub(crate) number: u16,
    pub(crate) what: &'static str,
    pub(crate) verdict: Verdict,
}

#[derive(Debug)]
pub(crate) enum Verdict {
    /// The note names a part that could not be checked on this machine.
    Passed {
        note: Option<String>,
    },
    Failed {
        expected: String,
        got: String,
    },
    /// The server lacks an agent, a skill or a capability that the check needs.
    NotApplicable(String),
    /// Checked by this ordinary test, not by the selftest.
    Test(&'static str),
    /// Depends on this feature, which is not built yet.
    NotYet(String),
    /// Not selected by the arguments.
    LeftOut,
}

impl Verdict {
    /// Something that the server does not offer is a failure only if the selftest started the server.
    pub(crate) fn of(checked: Result<(), CheckError>, self_started: bool) -> Self {
        match checked {
            Ok(()) => Self::Passed { note: None },
            Err(CheckError::PartlyChecked(note)) => Self::Passed { note: Some(note) },
            Err(CheckError::Mismatch { expected, got }) => Self::Failed { expected, got },
            Err(CheckError::NotOffered(what)) if self_started => {
                Self::Failed { expected: what, got: "not offered".into() }
            }
            Err(CheckError::NotOffered(reason)) => Self::NotApplicable(reason),
        }
    }

    fn label(&self) -> &'static str {
        match self {
            Self::Passed { .. } => "passed",
            Self::Failed { .. } => "FAILED",
            Self::NotApplicable(_) => "n/a",
            Self::Test(_) => "by test",
            Self::NotYet(_) => "not yet",
            Self::LeftOut => "left out",
        }
    }

    fn detail(&self) -> Option<&str> {
        match self {
            Self::NotApplicable(detail) | Self::NotYet(detail) | Self::Passed { note: Some(detail) } => {
                Some(detail)
            }
            Self::Test(name) => Some(name),
            Self::Passed { note: None } | Self::Failed { .. } | Self::LeftOut => None,
        }
    }
}

impl ItemResult {
    fn id(&self) -> String {
        format!("{}-{}", self.group, self.number)
    }
}

impl Report {
    pub(crate) fn new(items: Vec<ItemResult>) -> Self {
        Self { items, left_open: Vec::new() }
    }

    pub(crate) fn with_left_open(self, left_open: Vec<String>) -> Self {
        Self { left_open, ..self }
    }

    /// Whether no item failed; items that were not checked do not count as failures.
    pub fn is_success(&self) -> bool {
        self.failed().is_empty()
    }

    /// The ids of the items that failed.
    pub fn failed(&self) -> Vec<String> {
        self.having(|verdict| matches!(verdict, Verdict::Failed { .. }))
    }

    /// The ids of the items that passed.
    pub fn passed(&self) -> Vec<String> {
        self.having(|verdict| matches!(verdict, Verdict::Passed { .. }))
    }

    /// The ids of the items that ordinary tests check, each with the test's name.
    pub fn tests(&self) -> Vec<(String, &'static str)> {
        let test = |result: &ItemResult| match result.verdict {
            Verdict::Test(name) => Some((result.id(), name)),
            _ => None,
        };
        self.items.iter().filter_map(test).collect()
    }

    fn having(&self, matches: fn(&Verdict) -> bool) -> Vec<String> {
        self.items.iter().filter(|result| matches(&result.verdict)).map(ItemResult::id).collect()
    }

    /// One line for each group: passed and total items, such as `S1 66/89 (23 not yet)`.
    pub fn summary(&self) -> String {
        GROUPS.iter().fold(String::new(), |text, group| text + &self.group_line(group.name) + "\n")
    }

    fn group_line(&self, group: &str) -> String {
        let of_group = || self.items.iter().filter(|result| result.group == group);
        let count = |label: &str| of_group().filter(|result| result.verdict.label() == label).count();
        let rest: Vec<String> = ["FAILED", "n/a", "by test", "left out", "not yet"]
            .into_iter()
            .map(|label| (count(label), label))
            .filter(|(count, _)| *count > 0)
            .map(|(count, label)| format!("{count} {label}"))
            .collect();
        let rest = if rest.is_empty() { String::new() } else { format!(" ({})", rest.join(", ")) };
        format!("{group} {}/{}{rest}", count("passed"), of_group().count())
    }

    /// The totals in one line, such as `selftest passed: 149 passed, 0 failed, 145 not built yet`.
    pub fn verdict_line(&self) -> String {
        let count = |label: &str| self.items.iter().filter(|result| result.verdict.label() == label).count();
        let mut text = format!(
            "selftest {}: {} passed, {} failed, {} not built yet",
            if self.is_success() { "passed" } else { "FAILED" },
            count("passed"),
            count("FAILED"),
            count("not yet")
        );
        for (label, what) in [
            ("by test", "checked by an ordinary test"),
            ("n/a", "not offered by this server"),
            ("left out", "left out"),
        ] {
            if count(label) > 0 {
                let _ = write!(text, ", {} {what}", count(label));
            }
        }
        if !self.left_open.is_empty() {
            let _ =
                write!(text, "; tasks left open that could not be cancelled: {}", self.left_open.join(", "));
        }
        text
    }

    /// One line for each selected item.
    pub fn lines(&self) -> String {
        let mut text = String::new();
        for result in self.items.iter().filter(|result| !matches!(result.verdict, Verdict::LeftOut)) {
            let _ = write!(text, "{:<6} {:<8} {}", result.id(), result.verdict.label(), result.what);
            let _ = match result.verdict.detail() {
                Some(detail) => writeln!(text, " [{detail}]"),
                None => writeln!(text),
            };
        }
        text
    }

    /// The failed items, each with the expected and the actual behaviour.
    pub fn failures(&self) -> String {
        let mut text = String::new();
        for result in &self.items {
            if let Verdict::Failed { expected, got } = &result.verdict {
                let _ = writeln!(text, "{} {}", result.id(), result.what);
                let _ = writeln!(text, "  expected {}\n  got      {}", shortened(expected), shortened(got));
            }
        }
        text
    }

    /// The whole report as one JSON object.
    pub fn to_json(&self) -> String {
        let item = |result: &ItemResult| {
            let more = match &result.verdict {
                Verdict::Failed { expected, got } => {
                    format!(r#","expected":{},"got":{}"#, quote(expected), quote(got))
                }
                verdict => {
                    verdict.detail().map_or(String::new(), |detail| format!(r#","detail":{}"#, quote(detail)))
                }
            };
            format!(
                r#"{{"id":{},"what":{},"verdict":{}{more}}}"#,
                quote(&result.id()),
                quote(result.what),
                quote(&result.verdict.label().to_lowercase())
            )
        };
        let items: Vec<String> = self.items.iter().map(item).collect();
        let left_open: Vec<String> = self.left_open.iter().map(|id| quote(id)).collect();
        format!(
            r#"{{"good":{},"summary":{},"leftOpen":[{}],"items":[{}]}}"#,
            self.is_success(),
            quote(&self.verdict_line()),
            left_open.join(","),
            items.join(",")
        )
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

    fn result(number: u16, verdict: Verdict) -> ItemResult {
        ItemResult { group: "S1", number, what: "it works", verdict }
    }

    #[test]
    fn items_that_were_not_checked_do_not_count_as_passed() {
        let report = Report::new(vec![
            result(1, Verdict::Passed { note: None }),
            result(2, Verdict::NotYet("guardrails".into())),
            result(3, Verdict::NotApplicable("no agent".into())),
            result(4, Verdict::Test("a::b")),
        ]);
        assert_eq!(report.group_line("S1"), "S1 1/4 (1 n/a, 1 by test, 1 not yet)");
        assert_eq!(
            report.verdict_line(),
            "selftest passed: 1 passed, 0 failed, 1 not built yet, 1 checked by an ordinary test, 1 not offered by this \
             server"
        );
        assert!(report.is_success());
        assert_eq!(report.passed(), ["S1-1"]);
        assert!(report.lines().contains("S1-2   not yet  it works [guardrails]\n"));
    }

    #[test]
    fn a_failure_shows_expected_and_actual_behaviour() {
        let failed = Verdict::Failed { expected: "a".into(), got: "\"b\"".into() };
        let report = Report::new(vec![result(1, failed)]);
        assert!(!report.is_success());
        assert_eq!(report.verdict_line(), "selftest FAILED: 0 passed, 1 failed, 0 not built yet");
        assert_eq!(report.failures(), "S1-1 it works\n  expected a\n  got      \"b\"\n");
        assert!(report.to_json().contains(r#""verdict":"failed","expected":"a","got":"\"b\"""#));
    }

    #[test]
    fn a_missing_agent_fails_only_on_a_server_that_the_selftest_started() {
        let absent = || Err(CheckError::NotOffered("the agent x".into()));
        assert!(matches!(Verdict::of(absent(), true), Verdict::Failed { .. }));
        assert!(matches!(Verdict::of(absent(), false), Verdict::NotApplicable(_)));
    }

    #[test]
    fn a_part_that_could_not_be_checked_is_noted_on_the_passed_item() {
        let passed = Verdict::of(Err(CheckError::PartlyChecked("the port is taken".into())), true);
        let report = Report::new(vec![result(80, passed)]);
        assert_eq!(report.passed(), ["S1-80"]);
        assert_eq!(report.lines(), "S1-80  passed   it works [the port is taken]\n");
        assert!(report.to_json().contains(r#""verdict":"passed","detail":"the port is taken""#));
    }
}
