//! Example of resuming: writes a text section by section with a checkpoint after each, so that a crash
//! neither loses nor repeats a section.

use std::time::Duration;

use engine::{Agent, AgentResult, ExecutionPolicy, OnCrash, Outcome, Turn};
use protocol::model::AgentSkill;

/// Writes a text slowly. `sections=N` and `delay=Nms` in the text set the number of sections and the delay
/// for each.
pub struct SlowWriter;

const MAX_SECTIONS: u64 = 10_000;
const MAX_DELAY_MILLIS: u64 = 60_000;

pub(super) const ABOUT: &str = "Writes a text section by section and picks up where it was after a crash";

pub(super) fn skills() -> Vec<AgentSkill> {
    let tags = ["write", "writer", "text", "story", "essay", "sections"];
    vec![super::skill(
        "slow-writer",
        "Slow writer",
        ABOUT,
        &tags,
        &["the sea", "the sea sections=10 delay=100ms"],
    )]
}

impl Agent for SlowWriter {
    async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
        let plan = Plan::read(&turn.text());
        let written: u64 = turn.saved()?.unwrap_or(0);
        for section in written + 1..=plan.sections {
            turn.progress(format!("writing section {section} of {}", plan.sections)).await?;
            tokio::time::sleep(plan.delay).await;
            let text = plan.section(section);
            if section < plan.sections {
                turn.record().chunk("text", text).save(&section).await?;
            } else {
                // The next turn, if any, writes a new text.
                turn.record().last_chunk("text", text).clear_saved().await?;
            }
        }
        Ok(Outcome::done_with(format!("{} sections written", plan.sections)))
    }

    fn policy(&self) -> ExecutionPolicy {
        ExecutionPolicy::default().with_on_crash(OnCrash::Resume)
    }
}

/// The parsed request.
struct Plan {
    topic: String,
    sections: u64,
    delay: Duration,
}

impl Plan {
    fn read(text: &str) -> Self {
        let number = |word: &str, key: &str, unit: &str| -> Option<u64> {
            word.strip_prefix(key)?.trim_end_matches(unit).parse().ok()
        };
        let words = || text.split_whitespace();
        let sections = words().find_map(|word| number(word, "sections=", "")).unwrap_or(5);
        let delay = words().find_map(|word| number(word, "delay=", "ms")).unwrap_or(300);
        let topic = words().filter(|word| !word.starts_with("sections=") && !word.starts_with("delay="));
        Self {
            topic: topic.collect::<Vec<_>>().join(" "),
            sections: sections.clamp(1, MAX_SECTIONS),
            delay: Duration::from_millis(delay.min(MAX_DELAY_MILLIS)),
        }
    }

    fn section(&self, number: u64) -> String {
        format!("Section {number} of {}: more about {}.\n", self.sections, self.topic)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_sets_sections_and_delay() {
        let plan = Plan::read("the sea sections=3 delay=20ms");
        assert_eq!(
            (plan.topic.as_str(), plan.sections, plan.delay),
            ("the sea", 3, Duration::from_millis(20))
        );
        let plan = Plan::read("sections=x delay=99999999999999999999 sections=0");
        assert_eq!((plan.sections, plan.delay), (1, Duration::from_millis(300)));
    }
}
