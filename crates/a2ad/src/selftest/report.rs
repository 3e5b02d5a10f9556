//! What was found, and how it is told.

use std::fmt::Write as _;

use super::{SEEDS, Trouble, json::quote};

/// What was found, item by item, in the order of the catalogue.
#[derive(Debug)]
pub struct Report {
    items: Vec<Found>,
    /// Tasks that were started, are open, and could not be cancelled.
    left_open: Vec<String>,
}

/// What was found about one item.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) seed: &'static str,
    pub(super) number: u16,
    pub(super) what: &'static str,
    pub(super) verdict: Verdict,
}

/// What an item came to.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It holds; a note says what of it could not be checked here.
    Passed {
        note: Option<String>,
    },
    Failed {
        expected: String,
        got: String,
    },
    /// The server has not got what the check needs.
    NotApplicable(String),
    /// Checked by this ordinary test, not here.
    Test(&'static str),
    /// Owned by this step.
    NotYet(String),
    /// Nobody asked for it.
    LeftOut,
}

impl Verdict {
    /// Of a check; to a server of our own, nothing may be absent.
    pub(super) fn of(checked: Result<(), Trouble>, ours: bool) -> Self {
        match checked {
            Ok(()) => Self::Passed { note: None },
            Err(Trouble::ButFor(note)) => Self::Passed { note: Some(note) },
            Err(Trouble::Wrong { expected, got }) => Self::Failed { expected, got },
            Err(Trouble::Absent(what)) if ours => {
                Self::Failed { expected: what, got: "nothing of it".into() }
            }
            Err(Trouble::Absent(reason)) => Self::NotApplicable(reason),
        }
    }

    fn word(&self) -> &'static str {
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

impl Found {
    fn id(&self) -> String {
        format!("{}-{}", self.seed, self.number)
    }
}

impl Report {
    pub(super) fn new(items: Vec<Found>) -> Self {
        Self { items, left_open: Vec::new() }
    }

    pub(super) fn with_left_open(self, left_open: Vec<String>) -> Self {
        Self { left_open, ..self }
    }

    /// Whether nothing failed.
    pub fn is_good(&self) -> bool {
        self.failed().is_empty()
    }

    /// The items that failed.
    pub fn failed(&self) -> Vec<String> {
        self.having(|verdict| matches!(verdict, Verdict::Failed { .. }))
    }

    /// The items that passed.
    pub fn passed(&self) -> Vec<String> {
        self.having(|verdict| matches!(verdict, Verdict::Passed { .. }))
    }

    /// The items that ordinary tests check, with their names.
    pub fn tests(&self) -> Vec<(String, &'static str)> {
        let test = |found: &Found| match found.verdict {
            Verdict::Test(name) => Some((found.id(), name)),
            _ => None,
        };
        self.items.iter().filter_map(test).collect()
    }

    fn having(&self, fits: fn(&Verdict) -> bool) -> Vec<String> {
        self.items.iter().filter(|found| fits(&found.verdict)).map(Found::id).collect()
    }

    /// One line for each seed, such as `S1 66/89 (23 not yet)`.
    pub fn summary(&self) -> String {
        SEEDS.iter().fold(String::new(), |text, seed| text + &self.seed_line(seed.name) + "\n")
    }

    fn seed_line(&self, seed: &str) -> String {
        let of_seed = || self.items.iter().filter(|found| found.seed == seed);
        let count = |word: &str| of_seed().filter(|found| found.verdict.word() == word).count();
        let rest: Vec<String> = ["FAILED", "n/a", "by test", "left out", "not yet"]
            .into_iter()
            .map(|word| (count(word), word))
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
        let rest = if rest.is_empty() { String::new() } else { format!(" ({})", rest.join(", ")) };
        format!("{seed} {}/{}{rest}", count("passed"), of_seed().count())
    }

    /// All of it in one sentence, such as `selftest passed: 149 passed, 0 failed, 145 not built yet`.
    pub fn sentence(&self) -> String {
        let count = |word: &str| self.items.iter().filter(|found| found.verdict.word() == word).count();
        let mut text = format!(
            "selftest {}: {} passed, {} failed, {} not built yet",
            if self.is_good() { "passed" } else { "FAILED" },
            count("passed"),
            count("FAILED"),
            count("not yet")
        );
        for (word, what) in [
            ("by test", "checked by an ordinary test"),
            ("n/a", "not offered by this server"),
            ("left out", "left out"),
        ] {
            if count(word) > 0 {
                let _ = write!(text, ", {} {what}", count(word));
            }
        }
        if !self.left_open.is_empty() {
            let _ =
                write!(text, "; tasks left open that could not be cancelled: {}", self.left_open.join(", "));
        }
        text
    }

    /// One line for each item.
    pub fn lines(&self) -> String {
        let mut text = String::new();
        for found in self.items.iter().filter(|found| !matches!(found.verdict, Verdict::LeftOut)) {
            let _ = write!(text, "{:<6} {:<8} {}", found.id(), found.verdict.word(), found.what);
            let _ = match found.verdict.detail() {
                Some(detail) => writeln!(text, " [{detail}]"),
                None => writeln!(text),
            };
        }
        text
    }

    /// What failed, each with what was expected and what came instead.
    pub fn failures(&self) -> String {
        let mut text = String::new();
        for found in &self.items {
            if let Verdict::Failed { expected, got } = &found.verdict {
                let _ = writeln!(text, "{} {}", found.id(), found.what);
                let _ = writeln!(text, "  expected {}\n  got      {}", shortened(expected), shortened(got));
            }
        }
        text
    }

    /// All of it as JSON.
    pub fn to_json(&self) -> String {
        let item = |found: &Found| {
            let more = match &found.verdict {
                Verdict::Failed { expected, got } => {
                    format!(r#","expected":{},"got":{}"#, quote(expected), quote(got))
                }
                verdict => {
                    verdict.detail().map_or(String::new(), |detail| format!(r#","detail":{}"#, quote(detail)))
                }
            };
            format!(
                r#"{{"id":{},"what":{},"verdict":{}{more}}}"#,
                quote(&found.id()),
                quote(found.what),
                quote(&found.verdict.word().to_lowercase())
            )
        };
        let items: Vec<String> = self.items.iter().map(item).collect();
        let left_open: Vec<String> = self.left_open.iter().map(|id| quote(id)).collect();
        format!(
            r#"{{"good":{},"summary":{},"leftOpen":[{}],"items":[{}]}}"#,
            self.is_good(),
            quote(&self.sentence()),
            left_open.join(","),
            items.join(",")
        )
    }
}

/// The beginning of a text that may be long.
fn shortened(text: &str) -> String {
    const MOST: usize = 1_200;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{} … ({} bytes)", &text[..end], text.len()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(number: u16, verdict: Verdict) -> Found {
        Found { seed: "S1", number, what: "it works", verdict }
    }

    #[test]
    fn what_is_not_there_yet_never_counts_as_passed() {
        let report = Report::new(vec![
            found(1, Verdict::Passed { note: None }),
            found(2, Verdict::NotYet("step 9".into())),
            found(3, Verdict::NotApplicable("no agent".into())),
            found(4, Verdict::Test("a::b")),
        ]);
        assert_eq!(report.seed_line("S1"), "S1 1/4 (1 n/a, 1 by test, 1 not yet)");
        assert_eq!(
            report.sentence(),
            "selftest passed: 1 passed, 0 failed, 1 not built yet, 1 checked by an ordinary test, 1 not offered by this \
             server"
        );
        assert!(report.is_good());
        assert_eq!(report.passed(), ["S1-1"]);
        assert!(report.lines().contains("S1-2   not yet  it works [step 9]\n"));
    }

    #[test]
    fn a_failure_says_what_was_expected_and_what_came() {
        let failed = Verdict::Failed { expected: "a".into(), got: "\"b\"".into() };
        let report = Report::new(vec![found(1, failed)]);
        assert!(!report.is_good());
        assert_eq!(report.sentence(), "selftest FAILED: 0 passed, 1 failed, 0 not built yet");
        assert_eq!(report.failures(), "S1-1 it works\n  expected a\n  got      \"b\"\n");
        assert!(report.to_json().contains(r#""verdict":"failed","expected":"a","got":"\"b\"""#));
    }

    #[test]
    fn absence_is_a_failure_of_our_own_server_only() {
        let absent = || Err(Trouble::Absent("the agent x".into()));
        assert!(matches!(Verdict::of(absent(), true), Verdict::Failed { .. }));
        assert!(matches!(Verdict::of(absent(), false), Verdict::NotApplicable(_)));
    }

    #[test]
    fn what_could_not_be_checked_stands_beside_what_passed() {
        let passed = Verdict::of(Err(Trouble::ButFor("the port is taken".into())), true);
        let report = Report::new(vec![found(80, passed)]);
        assert_eq!(report.passed(), ["S1-80"]);
        assert_eq!(report.lines(), "S1-80  passed   it works [the port is taken]\n");
        assert!(report.to_json().contains(r#""verdict":"passed","detail":"the port is taken""#));
    }
}
