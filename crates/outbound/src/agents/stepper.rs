//! One journaled step and one checkpoint in each turn: for testing what a retry and a follow-up turn find of them.
//!
//! The start of a message's text decides how its turn ends: `end` completes the task, `retry` fails the first attempt
//! so that a second one is made, `large` exceeds the size limit of a task, and anything else asks for another message.

use engine::{Agent, AgentResult, Outcome, Turn};
use protocol::model::AgentSkill;

pub(super) struct Stepper;

pub(super) const ABOUT: &str = "Takes one journaled step in each turn and saves it for the next turn";

/// Larger than the size limit of a task in the proof that uses this agent.
const LARGE: usize = 1 << 20;

pub(super) fn skills() -> Vec<AgentSkill> {
    vec![super::skill("stepper", "Stepper", ABOUT, &["step"], &["first step", "end"])]
}

impl Agent for Stepper {
    async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
        let text = turn.text();
        // The steps of the earlier turns.
        let mut steps: Vec<String> = turn.saved()?.unwrap_or_default();
        turn.progress(format!("turn {}", steps.len() + 1)).await?;
        let work = async || Ok(format!("{text} in attempt {}", turn.attempt));
        turn.step("work", work()).await?;
        if text.starts_with("retry") && turn.attempt == 1 {
            return Ok(Outcome::retry("the first attempt fails"));
        }
        // The step has its output already, from this attempt or an earlier one of this turn.
        steps.push(turn.step("work", async { Ok("run twice".to_owned()) }).await?);
        let result = steps.join(", ");
        let (ends, is_large) = (text.starts_with("end"), text.starts_with("large"));
        if !ends && !is_large {
            return turn.record().save(&steps).then(Outcome::ask(result));
        }
        turn.checkpoint(&steps).await?;
        Ok(Outcome::artifact("steps", if is_large { "x".repeat(LARGE) } else { result }))
    }
}
