//! The result of a kill_under_load campaign.

use std::time::Duration;

use serde_json::{Map, Value, json};

use super::checker::{Checker, Finding, Kind};
use super::history::Operation;
use crate::step_reports::StepReports;
use crate::trial::{FINDINGS_SHOWN, ProofResult};

const KINDS: [(Kind, &str); 6] = [
    (Kind::Lost, "lost"),
    (Kind::Duplicate, "duplicate"),
    (Kind::Gap, "gap"),
    (Kind::Wrong, "wrong"),
    (Kind::Stuck, "stuck"),
    (Kind::Refused, "refused"),
];

pub(crate) struct Report {
    pub(crate) checker: Checker,
    pub(crate) kills: u64,
    pub(crate) slowest_ready: Duration,
    /// How long accepted tasks took to end after the last restart.
    pub(crate) settled: Duration,
    pub(crate) control: bool,
    /// The operations of the clients.
    pub(crate) operations: Vec<Operation>,
    pub(crate) steps: StepReports,
}

impl Report {
    /// The figures and the findings. In a control run only a loss that was not found is a finding.
    pub(crate) fn result(&self) -> ProofResult {
        let found = |finding: &Finding| format!("{:?}: {}", finding.kind, finding.what);
        let found: Vec<String> = self.checker.findings.iter().map(found).collect();
        let tasks = self.checker.tasks();
        eprintln!("kill_under_load: {tasks} tasks over {} kills: {}", self.kills, self.counts());
        let findings = match (self.control, self.checker.count(Kind::Lost)) {
            (true, 0) => vec![format!(
                "the control run found no loss in {} kills although the server replies before it commits",
                self.kills
            )],
            (true, _) => {
                let shown = found[..found.len().min(FINDINGS_SHOWN)].join("\n");
                eprintln!("the control run found the loss, as it must; the first findings:\n{shown}");
                Vec::new()
            }
            (false, _) => [found, self.nothing_proved()].concat(),
        };
        ProofResult { figures: self.figures(), findings }
    }

    /// What must have happened for a run without findings to prove something, and did not.
    fn nothing_proved(&self) -> Vec<String> {
        let tally = &self.checker.tally;
        let missing = self.operations.iter().filter(|operation| !tally.acknowledged.contains_key(operation));
        let mut missing: Vec<String> =
            missing.map(|operation| format!("no {} was ever acknowledged", operation.name())).collect();
        if tally.cuts == 0 {
            missing.push("no kill interrupted a call".to_owned());
        }
        missing.into_iter().map(|what| format!("kill_under_load proves nothing: {what}")).collect()
    }

    fn counts(&self) -> String {
        let counts: Vec<String> =
            KINDS.iter().map(|(kind, name)| format!("{} {name}", self.checker.count(*kind))).collect();
        counts.join(", ")
    }

    fn figures(&self) -> Value {
        let tally = &self.checker.tally;
        let acknowledged: Map<String, Value> = self
            .operations
            .iter()
            .map(|operation| {
                let count = tally.acknowledged.get(operation).copied().unwrap_or_default();
                (operation.name().to_owned(), count.into())
            })
            .collect();
        let mut line = json!({
            "control": self.control,
            "kills": self.kills,
            "tasks": self.checker.tasks(),
            "acknowledged": acknowledged,
            "failed_tasks": self.checker.failed(),
            "steps_begun": self.steps.begun,
            "steps_begun_again": self.steps.begun_again,
            "steps_replayed": self.steps.replayed,
            "streams": tally.streams,
            "frames": tally.frames,
            "cuts": tally.cuts,
            "postponed": tally.postponed,
            "reads": tally.reads,
            "listed": tally.listed,
            "slowest_ready_ms": milliseconds(self.slowest_ready),
            "settled_ms": milliseconds(self.settled),
        });
        for (kind, name) in KINDS {
            line[name] = self.checker.count(kind).into();
        }
        line
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
