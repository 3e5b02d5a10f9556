//! The result of a T-R1 campaign: talk for a person, one line of JSON for a machine, and the verdict.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Map, Value, json};

use super::judge::{Judge, Kind};
use super::ledger::Operation;
use super::options::Options;
use crate::server;

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
    pub(crate) judge: Judge,
    pub(crate) kills: u64,
    pub(crate) slowest_ready: Duration,
    /// How long accepted work took to end after the last restart.
    pub(crate) settled: Duration,
    pub(crate) elapsed: Duration,
}

impl Report {
    /// Prints the result, keeps it beside the build products, and returns the verdict.
    pub(crate) fn publish(&self, options: &Options) -> Result<()> {
        for finding in self.judge.findings.iter().take(FINDINGS_SHOWN) {
            eprintln!("{:?}: {}", finding.kind, finding.what);
        }
        let hidden = self.judge.findings.len().saturating_sub(FINDINGS_SHOWN);
        if hidden > 0 {
            eprintln!("and {hidden} more");
        }
        let verdict = self.verdict(options.control);
        let mut line = self.figures();
        line["seed"] = options.seed.into();
        line["control"] = options.control.into();
        line["passed"] = verdict.is_ok().into();
        println!("{line}");
        let name = if options.control { "T-R1-control.json" } else { "T-R1.json" };
        std::fs::write(server::target()?.join("verify").join(name), format!("{line}\n"))
            .context("cannot keep the result")?;
        if verdict.is_ok() {
            eprintln!("T-R1: {}", self.conclusion(options.control));
        }
        verdict
    }

    fn verdict(&self, control: bool) -> Result<()> {
        if control {
            ensure!(
                self.judge.count(Kind::Lost) > 0,
                "the control stayed green: replies before the commit were not found out in {} kills",
                self.kills
            );
            return Ok(());
        }
        ensure!(self.judge.findings.is_empty(), "T-R1 failed: {}", self.counts());
        for operation in Operation::ALL {
            let done = self.judge.tally.acknowledged.contains_key(&operation);
            ensure!(done, "T-R1 proves nothing: no {} was ever acknowledged", operation.name());
        }
        ensure!(self.judge.tally.cuts > 0, "T-R1 proves nothing: no kill met a call in flight");
        Ok(())
    }

    fn conclusion(&self, control: bool) -> String {
        let counts = self.counts();
        if control {
            return format!("the control is red, as it must be, after {} kills: {counts}", self.kills);
        }
        format!("{} tasks over {} kills: {counts}", self.judge.tasks(), self.kills)
    }

    fn counts(&self) -> String {
        let counts: Vec<String> =
            KINDS.iter().map(|(kind, name)| format!("{} {name}", self.judge.count(*kind))).collect();
        counts.join(", ")
    }

    fn figures(&self) -> Value {
        let tally = &self.judge.tally;
        let acknowledged: Map<String, Value> = Operation::ALL
            .iter()
            .map(|operation| {
                let count = tally.acknowledged.get(operation).copied().unwrap_or_default();
                (operation.name().to_owned(), count.into())
            })
            .collect();
        let mut line = json!({
            "id": "T-R1",
            "kills": self.kills,
            "tasks": self.judge.tasks(),
            "acknowledged": acknowledged,
            "failed_tasks": self.judge.failed(),
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
            line[name] = self.judge.count(kind).into();
        }
        line
    }
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
