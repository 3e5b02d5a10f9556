//! The result of a kill_under_load campaign: messages for the user, one line of JSON, and the verdict.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};

use super::checker::{Checker, Kind};
use super::history::Operation;
use super::options::Options;
use crate::trial;

const FINDINGS_SHOWN: usize = 20;
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
    pub(crate) elapsed: Duration,
}

impl Report {
    /// Prints the result, saves it in the target directory, and returns the verdict.
    pub(crate) fn publish(&self, options: &Options) -> Result<()> {
        for finding in self.checker.findings.iter().take(FINDINGS_SHOWN) {
            eprintln!("{:?}: {}", finding.kind, finding.what);
        }
        let hidden = self.checker.findings.len().saturating_sub(FINDINGS_SHOWN);
        if hidden > 0 {
            eprintln!("and {hidden} more");
        }
        let verdict = self.verdict(options.control);
        let mut line = self.figures();
        line["seed"] = options.seed.into();
        line["control"] = options.control.into();
        line["passed"] = verdict.is_ok().into();
        println!("{line}");
        let name = if options.control { "kill_under_load-control.json" } else { "kill_under_load.json" };
        std::fs::write(trial::verify_dir()?.join(name), format!("{line}\n"))
            .context("cannot save the result")?;
        if verdict.is_ok() {
            eprintln!("kill_under_load: {}", self.conclusion(options.control));
        }
        verdict
    }

    fn verdict(&self, control: bool) -> Result<()> {
        if control {
            ensure!(
                self.checker.count(Kind::Lost) > 0,
                "the control run found no loss in {} kills although the server replies before it commits",
                self.kills
            );
            return Ok(());
        }
        ensure!(self.checker.findings.is_empty(), "kill_under_load failed: {}", self.counts());
        for operation in Operation::ALL {
            let done = self.checker.tally.acknowledged.contains_key(&operation);
            ensure!(done, "kill_under_load proves nothing: no {} was ever acknowledged", operation.name());
        }
        ensure!(self.checker.tally.cuts > 0, "kill_under_load proves nothing: no kill interrupted a call");
        Ok(())
    }

    fn conclusion(&self, control: bool) -> String {
        let counts = self.counts();
        if control {
            return format!(
                "the control run found the loss, as it must, after {} kills: {counts}",
                self.kills
            );
        }
        format!("{} tasks over {} kills: {counts}", self.checker.tasks(), self.kills)
    }

    fn counts(&self) -> String {
        let counts: Vec<String> =
            KINDS.iter().map(|(kind, name)| format!("{} {name}", self.checker.count(*kind))).collect();
        counts.join(", ")
    }

    fn figures(&self) -> Value {
        let tally = &self.checker.tally;
        let acknowledged: Map<String, Value> = Operation::ALL
            .iter()
            .map(|operation| {
                let count = tally.acknowledged.get(operation).copied().unwrap_or_default();
                (operation.name().to_owned(), count.into())
            })
            .collect();
        let mut line = json!({
            "id": "kill_under_load",
            "kills": self.kills,
            "tasks": self.checker.tasks(),
            "acknowledged": acknowledged,
            "failed_tasks": self.checker.failed(),
            "streams": tally.streams,
            "frames": tally.frames,
            "cuts": tally.cuts,
            "postponed": tally.postponed,
            "reads": tally.reads,
            "listed": tally.listed,
            "slowest_ready_ms": milliseconds(self.slowest_ready),
            "settled_ms": milliseconds(self.settled),
            "elapsed_ms": milliseconds(self.elapsed),
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
