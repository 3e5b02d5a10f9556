//! Options that a proof has in addition to the common ones, and the meaning of `--relaxed`.
//!
//! A proof removes its own options first and passes the rest on. Deliberately not here: the common options, which
//! are in `trial.rs`.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

/// Factor by which a hang guard exceeds the goal it replaces.
const RELAXED_FACTOR: u32 = 10;

/// The arguments that have not been consumed yet.
pub(crate) struct ExtraOptions(Vec<String>);

/// Whether the time goals of a proof are enforced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TimeLimits {
    /// Exceeding a time goal fails the proof.
    Strict,
    /// Only exceeding ten times the goal does, for machines that run other work too.
    Relaxed,
}

impl ExtraOptions {
    pub(crate) fn of(args: &[String]) -> Self {
        Self(args.to_vec())
    }

    /// Removes `name N` and returns N, or `default` if it is absent.
    pub(crate) fn number(&mut self, name: &str, default: u64) -> Result<u64> {
        let Some(at) = self.0.iter().position(|arg| arg == name) else { return Ok(default) };
        let value = self.0.get(at + 1).and_then(|value| value.parse().ok());
        let value = value.with_context(|| format!("{name} takes a number"))?;
        ensure!(value > 0, "{name} must be at least 1");
        self.0.drain(at..=at + 1);
        Ok(value)
    }

    /// Removes `name` and returns whether it was present.
    pub(crate) fn flag(&mut self, name: &str) -> bool {
        let before = self.0.len();
        self.0.retain(|arg| arg != name);
        self.0.len() < before
    }

    /// Removes `--relaxed`.
    pub(crate) fn time_limits(&mut self) -> TimeLimits {
        if self.flag("--relaxed") { TimeLimits::Relaxed } else { TimeLimits::Strict }
    }

    /// The remaining arguments.
    pub(crate) fn rest(self) -> Vec<String> {
        self.0
    }
}

impl TimeLimits {
    /// The limit at which a proof fails, for a time goal.
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
