//! Options that a row has beside the common ones, and what `--relaxed` means.
//!
//! A row takes its own options out first and hands the rest on. Deliberately not here: the common options, which
//! are `trial.rs`.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// By how much a hang guard is wider than the goal it guards.
const RELAXED_FACTOR: u32 = 10;

/// The options as typed, less those that were taken.
pub(crate) struct Extras(Vec<String>);

/// How strictly the times in a row's goals are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pace {
    /// A time in a goal fails the row.
    Strict,
    /// Only ten times that time does: the machine has other work to do.
    Relaxed,
}

impl Extras {
    pub(crate) fn of(args: &[String]) -> Self {
        Self(args.to_vec())
    }

    /// Takes `name N`, if it is there.
    pub(crate) fn number(&mut self, name: &str, usual: u64) -> Result<u64> {
        let Some(at) = self.0.iter().position(|arg| arg == name) else { return Ok(usual) };
        let value = self.0.get(at + 1).and_then(|value| value.parse().ok());
        let value = value.with_context(|| format!("{name} wants a number"))?;
        ensure!(value > 0, "{name} wants at least 1");
        self.0.drain(at..=at + 1);
        Ok(value)
    }

    /// Takes `name`, and says whether it was there.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|arg| arg != name);
        self.0.len() < before
    }

    /// Takes `--relaxed`.
    pub(crate) fn pace(&mut self) -> Pace {
        if self.flag("--relaxed") { Pace::Relaxed } else { Pace::Strict }
    }

    /// Whether an option is there; it stays.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|arg| arg == name)
    }

    /// Adds an option as if it had been typed.
    pub(crate) fn add(&mut self, name: &str, value: &str) {
        self.0.extend([name.to_owned(), value.to_owned()]);
    }

    /// What nobody has taken.
    pub(crate) fn rest(self) -> Vec<String> {
        self.0
    }
}

impl Pace {
    /// The time at which a row fails, for a time in its goal.
    pub(crate) fn limit(self, goal: Duration) -> Duration {
        match self {
            Self::Strict => goal,
            Self::Relaxed => goal * RELAXED_FACTOR,
        }
    }

    pub(crate) fn is_strict(self) -> bool {
        self == Self::Strict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extras(line: &str) -> Extras {
        Extras(line.split_whitespace().map(str::to_owned).collect())
    }

    #[test]
    fn what_is_taken_is_gone_and_the_rest_stays() {
        let mut extras = extras("--seed 4 --open 9 --relaxed");
        assert_eq!(extras.number("--open", 1).unwrap(), 9);
        assert_eq!(extras.number("--cycles", 3).unwrap(), 3);
        assert_eq!(extras.pace().limit(Duration::from_secs(2)), Duration::from_secs(20));
        assert_eq!(extras.pace(), Pace::Strict);
        assert_eq!(extras.rest(), ["--seed", "4"]);
    }

    #[test]
    fn a_number_that_is_none_is_refused_by_name() {
        for line in ["--open", "--open x", "--open 0"] {
            let refused = extras(line).number("--open", 1).err().map(|error| error.to_string());
            assert!(refused.unwrap_or_default().contains("--open"), "{line}");
        }
    }
}
