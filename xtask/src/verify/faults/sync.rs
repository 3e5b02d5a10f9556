//! A disk on which a sync fails: the log of writes or the database itself, once or from then on.
//!
//! A sync that failed once and then succeeds is the treacherous case: what it was to save is lost, and a server
//! that asks again is told that all is well.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::disk::{Disk, Moment};
use super::traced::{self, Tampering};
use crate::server::{Launch, Server};
use crate::verify::random::Random;

const CALLS: &str = "fsync,fdatasync";

pub(crate) fn disk(place: &Path) -> Result<Box<dyn Disk>> {
    traced::find_strace()?;
    let target = Target::Log;
    Ok(Box::new(Failing { store: place.join("store.db"), trace: place.join("trace"), target }))
}

struct Failing {
    store: PathBuf,
    trace: PathBuf,
    target: Target,
}

/// The file whose sync fails next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// The log of writes, synced by every commit.
    Log,
    /// The database itself, synced now and then, when the log of writes is carried over into it.
    Database,
}

impl Disk for Failing {
    fn means(&self) -> &'static str {
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
        eprintln!("T-R7: sync {first} of {:?} fails{}", self.target, if lasting { " for good" } else { "" });
        let tampering = Tampering { calls: CALLS, error: "EIO", first, lasting, files: &[file] };
        traced::launch(&tampering, &self.trace)
    }

    fn strike(&mut self, _: &Server, _: &mut Random) -> Result<()> {
        Ok(())
    }

    /// What is in the log of writes is safe, whatever becomes of the database.
    fn dead_since(&self) -> Option<Moment> {
        if self.target == Target::Database {
            return None;
        }
        traced::first_failure(&self.trace).ok().flatten()
    }

    fn mend(&mut self) -> Result<()> {
        Ok(())
    }
}
