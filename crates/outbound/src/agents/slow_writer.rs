//! Example of resuming: writes a text section by section with a checkpoint after each, so that a crash
//! neither loses nor repeats a section.

use std::{
    hash::{BuildHasher as _, Hasher as _, RandomState},
    time::Duration,
};

use engine::{Agent, AgentResult, ExecutionPolicy, OnCrash, Outcome, Turn};
use protocol::model::AgentSkill;

/// Writes a text slowly. `sections=N` and `delay=Nms` in the text set the number of sections and the delay
/// for each. With `steps=on` each section is drafted in a step of its own, and the number of its draft is published when
/// the step has finished: no later attempt publishes another one, because no finished step is run again.
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
            let draft = if plan.steps { Some(self.draft(&turn, &plan, section).await?) } else { None };
            tokio::time::sleep(plan.delay).await;
            let text = plan.section(section, draft);
            let record = if section < plan.sections {
                turn.record().chunk("text", text).save(&section)
            } else {
                // The next turn, if any, writes a new text.
                turn.record().last_chunk("text", text).clear_saved()
            };
            if plan.steps {
                record.commit().await?;
            } else {
                record.await?;
            }
        }
        Ok(Outcome::done_with(format!("{} sections written", plan.sections)))
    }

    fn policy(&self) -> ExecutionPolicy {
        ExecutionPolicy::default().with_on_crash(OnCrash::Resume)
    }
}

impl SlowWriter {
    /// Drafts a section in a step; returns the number of the draft, which is another one whenever the step is run.
    async fn draft(&self, turn: &Turn, plan: &Plan, section: u64) -> AgentResult<u32> {
        let work = async {
            tokio::time::sleep(plan.delay).await;
            Ok(RandomState::new().build_hasher().finish() as u32)
        };
        let draft = turn.step(format!("section {section}"), work).await?;
        turn.progress(format!("section {section} is draft {draft}")).await?;
        Ok(draft)
    }
}

/// The parsed request.
struct Plan {
    topic: String,
    sections: u64,
    delay: Duration,
    steps: bool,
}

impl Plan {
    fn read(text: &str) -> Self {
        let number = |word: &str, key: &str, unit: &str| -> Option<u64> {
            word.strip_prefix(key)?.trim_end_matches(unit).parse().ok()
        };
        let words = || text.split_whitespace();
        let sections = words().find_map(|word| number(word, "sections=", "")).unwrap_or(5);
        let delay = words().find_map(|word| number(word, "delay=", "ms")).unwrap_or(300);
        let is_setting =
            |word: &&str| ["sections=", "delay=", "steps="].iter().any(|key| word.starts_with(key));
        let topic = words().filter(|word| !is_setting(word));
        Self {
            topic: topic.collect::<Vec<_>>().join(" "),
            sections: sections.clamp(1, MAX_SECTIONS),
            delay: Duration::from_millis(delay.min(MAX_DELAY_MILLIS)),
            steps: words().any(|word| word == "steps=on"),
        }
    }

    fn section(&self, number: u64, draft: Option<u32>) -> String {
        let draft = draft.map(|draft| format!(", draft {draft}")).unwrap_or_default();
        format!("Section {number} of {}{draft}: more about {}.\n", self.sections, self.topic)
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
        assert_eq!((plan.sections, plan.delay, plan.steps), (1, Duration::from_millis(300), false));
        let plan = Plan::read("the sea steps=on");
        assert_eq!((plan.topic.as_str(), plan.steps), ("the sea", true));
    }
}
