//! How much work a check may be.

use std::time::{Duration, Instant};

/// How often the time is read, in steps.
const STEPS_PER_READ: u64 = 64;

/// The rest of what a check may cost. A step is one subschema on one value.
#[derive(Debug)]
pub(super) struct Budget {
    steps: u64,
    deadline: Option<Instant>,
}

/// A check needs more than its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooComplex;

impl Budget {
    /// A number of steps.
    pub(super) fn steps(steps: u64) -> Self {
        Self { steps, deadline: None }
    }

    /// A time from now.
    pub(super) fn time(limit: Duration) -> Self {
        Self { steps: u64::MAX, deadline: Instant::now().checked_add(limit) }
    }

    /// The steps that are left.
    pub(super) fn left(&self) -> u64 {
        self.steps
    }

    pub(super) fn step(&mut self) -> Result<(), TooComplex> {
        self.spend(1)
    }

    /// Several steps at once.
    pub(super) fn spend(&mut self, steps: u64) -> Result<(), TooComplex> {
        let before = self.steps;
        self.steps = before.checked_sub(steps).ok_or(TooComplex)?;
        let reads = before / STEPS_PER_READ != self.steps / STEPS_PER_READ;
        if reads && self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return Err(TooComplex);
        }
        Ok(())
    }
}
