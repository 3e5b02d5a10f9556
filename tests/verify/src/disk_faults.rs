//! disk_faults: the disk fails under load. Each time the server must log the failure, exit with code 70, and must
//! not have acknowledged anything that is missing after the next start.
//!
//! Three kinds of failure, each with its own store and campaign (`campaign.rs`), as real as the machine allows
//! (`disk.rs`): a sync that fails, a disk that is full, a disk that has become read-only. Load, history and checker
//! are those of kill_under_load; a probe (`probe.rs`) looks for acknowledgements after the failure.
//!
//! Before that: with little space left, the server refuses messages and goes on (`watermark.rs`).
//!
//! Deliberately not here: power loss, which loses unsynced writes; clock jumps; memory limits.

mod campaign;
mod disk;
mod full;
mod integrity;
mod mount;
mod probe;
mod read_only;
mod strace;
mod sync;
mod watermark;

use anyhow::{Context, Result};
use serde_json::{Map, json};

use self::campaign::{Campaign, Tally};
use self::disk::{Disk, Privileges};
use super::extra_options::{ExtraOptions, TimeLimits};
use super::random::Random;
use super::trial::{ProofResult, Setup, Trial};

pub(crate) const OPTIONS: &str = "[--faults N] [--unprivileged] [--seed S] [--binary PATH] [--relaxed]";

const KINDS: [Kind; 3] = [Kind::Sync, Kind::Full, Kind::ReadOnly];

#[derive(Clone, Copy)]
enum Kind {
    Sync,
    Full,
    ReadOnly,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::Full => "full",
            Self::ReadOnly => "read_only",
        }
    }

    fn disk(self, dir: &std::path::Path, privileges: Privileges) -> Result<Box<dyn Disk>> {
        match self {
            Self::Sync => sync::disk(dir),
            Self::Full => full::disk(dir, privileges),
            Self::ReadOnly => read_only::disk(dir, privileges),
        }
    }
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut extras = ExtraOptions::of(args);
    let privileges = if extras.flag("--unprivileged") { Privileges::WithoutMounts } else { Privileges::All };
    let time_limits = extras.time_limits();
    let trial = Trial::parse("disk_faults", "--faults", 12, &extras.rest())?;
    trial.run(async |setup| run_campaigns(&trial, privileges, time_limits, setup).await)
}

async fn run_campaigns(
    trial: &Trial,
    privileges: Privileges,
    time_limits: TimeLimits,
    setup: &Setup,
) -> Result<ProofResult> {
    let mut random = Random::new(trial.seed);
    let mut total = Tally::default();
    let mut used = Map::new();
    for (index, kind) in (0..).zip(KINDS) {
        let faults = (trial.size + index) / KINDS.len() as u64;
        if faults == 0 {
            continue;
        }
        let dir = setup.store.with_file_name(kind.name());
        std::fs::create_dir_all(&dir).context("cannot create the directory of a disk")?;
        let disk = kind.disk(&dir, privileges).with_context(|| format!("a disk for {}", kind.name()))?;
        used.insert(kind.name().to_owned(), disk.fault_method().into());
        eprintln!("disk_faults: {faults} faults of kind {} by {}", kind.name(), disk.fault_method());
        let campaign = Campaign::begin(&setup.program, disk, random.branch(), time_limits);
        let tally = campaign.run(faults).await.with_context(|| format!("faults of kind {}", kind.name()))?;
        total.add(kind.name(), tally);
    }
    let dir = setup.store.parent().context("the directory of the store")?;
    let watermark =
        watermark::run(&setup.program, dir, privileges, &mut random.branch(), &mut total.findings).await;
    let watermark = watermark.context("the free-space limit")?;
    let figures = json!({
        "faults": total.faults, "acknowledged": total.acknowledged, "means": used, "reasons": total.reasons,
        "slowest_exit_ms": total.slowest_exit.as_millis() as u64,
        "watermark": watermark.unwrap_or_else(|| "not tested: no tmpfs could be mounted".into()),
    });
    Ok(ProofResult { figures, findings: total.findings })
}
