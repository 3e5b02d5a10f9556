//! Example of scheduling: reports at once when the work is due, and does it then.

use std::time::Duration;

use engine::{Agent, AgentResult, ExecutionPolicy, Outcome, Turn};
use protocol::{Content, Part, model::AgentSkill};

/// Sends a reminder after a delay: `in=Nms` in the text, by default one second. The other parts of the
/// message are returned with the reminder.
pub struct Reminder;

const MAX_MILLIS: u64 = 300_000;

pub(super) const ABOUT: &str = "Schedules a reminder: reports when it is due, and sends it then";

pub(super) fn skills() -> Vec<AgentSkill> {
    let examples = ["stretch", "stretch in=5000ms"];
    vec![super::skill("reminder", "Reminder", ABOUT, &["remind", "later"], &examples)]
}

impl Agent for Reminder {
    async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
        let (what, wait) = read(&turn.text());
        turn.progress(format!("Scheduled, to be done in {} ms: {what}", wait.as_millis())).await?;
        tokio::time::sleep(wait).await;
        let files = turn.message.parts.iter().filter(|part| !matches!(part.content, Content::Text(_)));
        let reminder = [Part::text(format!("Remember: {what}"))].into_iter().chain(files.cloned());
        Ok(Outcome::artifact("reminder", reminder.collect::<Vec<_>>()))
    }

    fn policy(&self) -> ExecutionPolicy {
        ExecutionPolicy::default().with_overlap(true)
    }
}

/// Parses the subject and the delay.
fn read(text: &str) -> (String, Duration) {
    let millis = |word: &str| word.strip_prefix("in=")?.trim_end_matches("ms").parse::<u64>().ok();
    let wait = text.split_whitespace().find_map(millis).unwrap_or(1_000).min(MAX_MILLIS);
    let what: Vec<&str> = text.split_whitespace().filter(|word| !word.starts_with("in=")).collect();
    (what.join(" "), Duration::from_millis(wait))
}
