//! T-R7: the disk fails under load. Each time the server must say so in its log, stop with exit code 70 and have
//! acknowledged nothing that is not there after the next start.
//!
//! Three kinds of failure, each with a store and a campaign of its own (`campaign.rs`), as real as the machine
//! allows (`disk.rs`): a sync that fails, a disk that is full, a disk that has become read-only. The load, the
//! ledger and the judge are those of T-R1; a witness (`witness.rs`) watches for what is acknowledged after the
//! failure.
//!
//! Deliberately not here: power loss, where synced and unsynced writes part ways, clock jumps, memory limits.

mod campaign;
mod disk;
mod full;
mod integrity;
mod mount;
mod read_only;
mod sync;
mod traced;
mod witness;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use self::campaign::{Campaign, Tally};
use self::disk::{Disk, Means};
use super::extras::{Extras, Pace};
use super::random::Random;
use super::trial::{Seen, Stand, Trial};

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

    fn disk(self, place: &std::path::Path, means: Means) -> Result<Box<dyn Disk>> {
        match self {
            Self::Sync => sync::disk(place),
            Self::Full => full::disk(place, means),
            Self::ReadOnly => read_only::disk(place, means),
        }
    }
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut extras = Extras::of(args);
    let means = if extras.flag("--unprivileged") { Means::WithoutMounts } else { Means::All };
    let pace = extras.pace();
    let trial = Trial::parse("T-R7", "--faults", 12, &extras.rest())?;
    trial.run(async |stand| inject(&trial, means, pace, stand).await)
}

async fn inject(trial: &Trial, means: Means, pace: Pace, stand: &Stand) -> Result<Seen> {
    let mut random = Random::new(trial.seed);
    let mut total = Tally::default();
    let mut used = Map::new();
    for (turn, kind) in (0..).zip(KINDS) {
        let faults = (trial.size + turn) / KINDS.len() as u64;
        if faults == 0 {
            continue;
        }
        let place = stand.store.with_file_name(kind.name());
        std::fs::create_dir_all(&place).context("cannot make a place for a disk")?;
        let disk = kind.disk(&place, means).with_context(|| format!("a disk for {}", kind.name()))?;
        used.insert(kind.name().to_owned(), disk.means().into());
        eprintln!("T-R7: {faults} faults of kind {} by {}", kind.name(), disk.means());
        let campaign = Campaign::begin(&stand.program, disk, random.branch(), pace);
        let tally = campaign.run(faults).await.with_context(|| format!("faults of kind {}", kind.name()))?;
        total.add(kind.name(), tally);
    }
    Ok(Seen { figures: figures(&total, &used), findings: total.findings })
}

fn figures(total: &Tally, means: &Map<String, Value>) -> Value {
    json!({
        "faults": total.faults,
        "at_start": total.at_start,
        "refused_starts": total.refused_starts,
        "means": means,
        "reasons": total.reasons,
        "slowest_exit_ms": u64::try_from(total.slowest_exit.as_millis()).unwrap_or(u64::MAX),
        "tasks": total.tasks,
        "acknowledged": total.acknowledged,
        "acknowledged_by_witness": total.witnessed,
        "cuts": total.cuts,
        "postponed": total.postponed,
        "failed_tasks": total.failed_tasks,
        "integrity": total.integrity,
    })
}
