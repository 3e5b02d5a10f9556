//! Writes a document like `slow-writer`, with one journaled step for each section, and reports outside the server when
//! a step begins and when it is journaled: for testing that a finished step is never run again, also after SIGKILL.
//!
//! The reports are lines of the file that the message names: `TASK begins N;` and `TASK journaled N;`. Each is one
//! write to the end of the file, so that processes that follow each other share it. SIGKILL can tear a line: a line
//! without the semicolon is incomplete, and the next report begins a new line.

use std::fs::{File, OpenOptions};
use std::io::Write as _;

use engine::{Agent, AgentError, AgentResult, ExecutionPolicy, OnCrash, Outcome, Turn};
use protocol::model::AgentSkill;

use super::slow_writer::Plan;

pub(super) struct JournalWriter;

pub(super) const ABOUT: &str = "Writes a text section by section and reports each step to a file";

pub(super) fn skills() -> Vec<AgentSkill> {
    let example = "sections=10 delay=100ms report=/tmp/steps.txt";
    vec![super::skill("journal-writer", "Journal writer", ABOUT, &["journal"], &[example])]
}

impl Agent for JournalWriter {
    async fn run(&self, turn: Turn) -> AgentResult<Outcome> {
        let text = turn.text();
        let (plan, path) = text.split_once(" report=").ok_or_else(|| {
            AgentError::new("the message must end with `report=PATH`, the file for the reports")
        })?;
        let (plan, reports) = (Plan::read(plan), Reports::open(&turn, path)?);
        let written: u64 = turn.saved()?.unwrap_or(0);
        for section in written + 1..=plan.sections {
            let text = turn.step(format!("section {section}"), write(&plan, &reports, section)).await?;
            reports.add("journaled", section)?;
            // A crash during this time leaves a step that is journaled and a section that is not recorded.
            tokio::time::sleep(plan.delay / 2).await;
            turn.record().chunk("text", text).save(&section).commit().await?;
        }
        turn.record().clear_saved().await?;
        Ok(Outcome::done_with(format!("{} sections written", plan.sections)))
    }

    fn policy(&self) -> ExecutionPolicy {
        ExecutionPolicy::default().with_on_crash(OnCrash::Resume)
    }
}

/// The step of one section.
async fn write(plan: &Plan, reports: &Reports, section: u64) -> AgentResult<String> {
    reports.add("begins", section)?;
    tokio::time::sleep(plan.delay / 2).await;
    Ok(plan.section(section, None))
}

/// The file for the reports of one task.
struct Reports {
    file: File,
    task: String,
}

impl Reports {
    fn open(turn: &Turn, path: &str) -> AgentResult<Self> {
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        Ok(Self { file, task: turn.task_id.to_string() })
    }

    fn add(&self, what: &str, section: u64) -> AgentResult<()> {
        Ok((&self.file).write_all(format!("\n{} {what} {section};", self.task).as_bytes())?)
    }
}
