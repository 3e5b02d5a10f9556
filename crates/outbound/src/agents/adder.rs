//! Example of rejecting: adds whole numbers and rejects every other request.

use engine::{Agent, AgentResult, ExecutionPolicy, Outcome, Turn};
use protocol::model::AgentSkill;

/// Adds whole numbers.
pub struct Adder;

pub(super) const ABOUT: &str = "Adds whole numbers and rejects everything else";

pub(super) fn skills() -> Vec<AgentSkill> {
    vec![super::skill("adder", "Adder", ABOUT, &["add", "sum"], &["1 + 2 + 39"])]
}

impl Agent for Adder {
    async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
        Ok(match sum(&turn.text()) {
            Some(sum) => Outcome::artifact("sum", sum.to_string()),
            None => Outcome::reject("I add whole numbers, such as 1 + 2 + 39, and do nothing else."),
        })
    }

    fn policy(&self) -> ExecutionPolicy {
        ExecutionPolicy::default().with_overlap(true)
    }
}

fn sum(text: &str) -> Option<i64> {
    text.split('+').try_fold(0_i64, |sum, number| sum.checked_add(number.trim().parse().ok()?))
}
