//! A disk on which a sync fails: of the WAL or of the database file, once or from then on.
//!
//! A sync that fails once and then succeeds is the dangerous case: its data is lost, and a server that retries the
//! sync gets success.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::disk::{Disk, Moment};
use super::strace::{self, FaultInjection};
use crate::random::Random;
use crate::server::{Launch, Server};

const CALLS: &str = "fsync,fdatasync";

pub(crate) fn disk(dir: &Path) -> Result<Box<dyn Disk>> {
    strace::ensure_strace()?;
    let target = Target::Log;
    Ok(Box::new(FailingSync { store: dir.join("store.db"), trace: dir.join("trace"), target }))
}

struct FailingSync {
    store: PathBuf,
    trace: PathBuf,
    target: Target,
}

/// The file whose sync fails next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// The WAL, synced by every commit.
    Log,
    /// The database file, synced by checkpoints.
    Database,
}

impl Disk for FailingSync {
    fn fault_method(&self) -> &'static str {
        "EIO on fsync injected with strace"
    }

    fn store(&self) -> &Path {
        &self.store
    }

    fn launch(&mut self, random: &mut Random) -> Launch {
        let (file, first) = match random.within(0..=3) {
            0 => {
                self.target = Target::Database;
                (self.store.clone(), random.within(1..=2))
            }
            _ => {
                self.target = Target::Log;
                let mut log = self.store.clone().into_os_string();
                log.push("-wal");
                (log.into(), random.within(40..=600))
            }
        };
        let lasting = random.within(0..=1) == 0;
        eprintln!(
            "disk_faults: sync {first} of {:?} fails{}",
            self.target,
            if lasting { " permanently" } else { "" }
        );
        let injection = FaultInjection { calls: CALLS, error: "EIO", first, lasting, files: &[file] };
        strace::launch(&injection, &self.trace)
    }

    fn break_disk(&mut self, _: &Server, _: &mut Random) -> Result<()> {
        Ok(())
    }

    /// Unknown for the database file: its committed data is still in the WAL.
    fn failed_since(&self) -> Option<Moment> {
        if self.target == Target::Database {
            return None;
        }
        strace::first_failure(&self.trace).ok().flatten()
    }

    fn repair(&mut self) -> Result<()> {
        Ok(())
    }
}
