//! The results of the checks, as text and as JSON.

use serde_json::{Value, json};

/// The results of all checks.
#[derive(Debug, Default)]
pub struct Report {
    /// The results, in the order in which the checks were made.
    pub checks: Vec<CheckResult>,
    /// Ids of tasks that the checks started and could not cancel.
    pub left_open: Vec<String>,
}

/// The result of one check.
#[derive(Debug)]
pub struct CheckResult {
    /// The version of the protocol: `draft`, `0.3` or `1.0`.
    pub version: &'static str,
    /// What was checked: `card`, `send`, `stream`, `cancel` or `resume`.
    pub check: &'static str,
    /// What came of it.
    pub verdict: Verdict,
}

/// What came of a check.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The server did this.
    Passed(String),
    /// The server did something else than was expected.
    Failed {
        /// What was expected.
        expected: String,
        /// What came.
        got: String,
    },
    /// Not checked, because of this.
    NotChecked(String),
}

impl Verdict {
    fn label(&self) -> &'static str {
        match self {
            Self::Passed(_) => "passed",
            Self::Failed { .. } => "FAILED",
            Self::NotChecked(_) => "not checked",
        }
    }
}

impl Report {
    /// Whether no check failed and at least one passed.
    pub fn is_success(&self) -> bool {
        self.count("FAILED") == 0 && self.count("passed") > 0
    }

    fn count(&self, label: &str) -> usize {
        self.checks.iter().filter(|result| result.verdict.label() == label).count()
    }

    /// One line for each check, and one with the totals.
    pub fn lines(&self) -> String {
        let line = |CheckResult { version, check, verdict }: &CheckResult| {
            let text = match verdict {
                Verdict::Passed(text) | Verdict::NotChecked(text) => text.clone(),
                Verdict::Failed { expected, got } => format!("expected {expected}\n{:29}got {got}", ""),
            };
            format!("{version:7} {check:8} {:12} {text}\n", verdict.label())
        };
        self.checks.iter().map(line).collect::<String>() + &self.summary() + "\n"
    }

    /// The totals in one line.
    pub fn summary(&self) -> String {
        let outcome = if self.is_success() { "passed" } else { "FAILED" };
        let [passed, failed, not_checked] =
            ["passed", "FAILED", "not checked"].map(|label| self.count(label));
        let mut text =
            format!("selftest {outcome}: {passed} passed, {failed} failed, {not_checked} not checked");
        if !self.left_open.is_empty() {
            text += &format!("; tasks left open that could not be cancelled: {}", self.left_open.join(", "));
        }
        text
    }

    /// The report as one JSON object.
    pub fn to_json(&self) -> String {
        let check = |CheckResult { version, check, verdict }: &CheckResult| {
            let label = verdict.label().to_lowercase();
            let mut entry = json!({"version": version, "check": check, "verdict": label});
            match verdict {
                Verdict::Passed(text) | Verdict::NotChecked(text) => entry["detail"] = text.as_str().into(),
                Verdict::Failed { expected, got } => {
                    entry["expected"] = expected.as_str().into();
                    entry["got"] = got.as_str().into();
                }
            }
            entry
        };
        let checks: Vec<Value> = self.checks.iter().map(check).collect();
        let (good, summary) = (self.is_success(), self.summary());
        json!({"good": good, "summary": summary, "leftOpen": self.left_open, "checks": checks}).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_checked_has_not_passed() {
        let result = |check, verdict| CheckResult { version: "0.3", check, verdict };
        let not_checked = || result("send", Verdict::NotChecked("calls need a credential".into()));
        let mut report = Report { checks: vec![not_checked()], ..Report::default() };
        assert!(!report.is_success());
        report.checks.push(result("card", Verdict::Passed("names the agent Echo".into())));
        assert!(report.is_success());
        let failed = Verdict::Failed { expected: "a task".into(), got: "an error".into() };
        report.checks.push(result("stream", failed));
        let expected = "0.3     send     not checked  calls need a credential
0.3     card     passed       names the agent Echo
0.3     stream   FAILED       expected a task
                             got an error
selftest FAILED: 1 passed, 1 failed, 1 not checked
";
        assert_eq!(report.lines(), expected);
        assert!(report.to_json().contains(r#""verdict":"failed""#));
    }
}
