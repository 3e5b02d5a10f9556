//! Example of rejecting: adds whole numbers and rejects every other request.

use engine::{Agent, ExecutionPolicy, Outcome, Turn, Updates};
use futures_util::{FutureExt as _, future::BoxFuture};
use protocol::{Part, model::AgentSkill};

/// Adds whole numbers.
pub struct Adder;

pub(super) const ABOUT: &str = "Adds whole numbers and rejects everything else";

pub(super) fn skills() -> Vec<AgentSkill> {
    vec![super::skill("adder", "Adder", ABOUT, &["add", "sum"], &["1 + 2 + 39"])]
}

impl Agent for Adder {
    fn run(&self, turn: Turn, out: Updates) -> BoxFuture<'static, Outcome> {
        async move {
            let Some(sum) = sum(&turn.message.text()) else {
                let why = "I add whole numbers, such as 1 + 2 + 39, and do nothing else.";
                return Outcome::Rejected { message: Some(turn.reply_text(why)) };
            };
            out.artifact(super::result(&turn, "sum", vec![Part::text(sum.to_string())])).await;
            Outcome::done()
        }
        .boxed()
    }

    fn policy(&self) -> ExecutionPolicy {
        ExecutionPolicy { overlap: true, ..ExecutionPolicy::default() }
    }
}

fn sum(text: &str) -> Option<i64> {
    text.split('+').try_fold(0_i64, |sum, number| sum.checked_add(number.trim().parse().ok()?))
}
