//! A disk that becomes full: a tmpfs whose size is reduced, or, without permission to mount one, a limit on file
//! size.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::disk::{Disk, Moment, Privileges};
use super::mount::{self, Mount};
use crate::random::Random;
use crate::server::{Launch, Server};

const FULL_SIZE: &str = "size=1g";
/// Space left after the reduction, in KiB: enough for a few writes or for many.
const LEFT_KIB: std::ops::RangeInclusive<u64> = 1..=1024;

pub(crate) fn disk(dir: &Path, privileges: Privileges) -> Result<Box<dyn Disk>> {
    let at = dir.join("disk");
    let mounted = match privileges {
        Privileges::All => Mount::make(&["-t", "tmpfs", "-o", FULL_SIZE, "a2ad-verify"], &at),
        Privileges::WithoutMounts => Err(anyhow::anyhow!("mounts are disabled")),
    };
    match mounted {
        Ok(mount) => {
            Ok(Box::new(SmallTmpfs { store: at.join("store.db"), log: dir.join("store.log"), mount }))
        }
        Err(error) => {
            eprintln!("disk_faults: {error:#}; using a file size limit instead of a full disk");
            Ok(Box::new(FileSizeLimit { store: dir.join("store.db") }))
        }
    }
}

/// A small tmpfs.
struct SmallTmpfs {
    store: PathBuf,
    log: PathBuf,
    mount: Mount,
}

impl Disk for SmallTmpfs {
    fn fault_method(&self) -> &'static str {
        "ENOSPC on a small tmpfs"
    }

    fn store(&self) -> &Path {
        &self.store
    }

    fn log(&self) -> Option<&Path> {
        Some(&self.log)
    }

    /// Without the free-space limit, which would keep the disk from becoming full.
    fn launch(&mut self, _: &mut Random) -> Launch {
        let variable = ("A2AD_LIMITS__MIN_FREE_DISK".into(), "0B".into());
        Launch { variables: vec![variable], ..Launch::default() }
    }

    fn break_disk(&mut self, _: &Server, random: &mut Random) -> Result<()> {
        let left = random.within(LEFT_KIB);
        // The server keeps writing between the two steps, so the new size may already be exceeded and is then
        // refused.
        for attempt in 1.. {
            let used: u64 = self.mount.query("df", &["-k", "--output=used"])?.parse()?;
            match self.mount.remount(&format!("size={}k", used + left * attempt)) {
                Ok(()) => break,
                Err(error) if attempt == 8 => return Err(error),
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// The time of the last successful write is not known.
    fn failed_since(&self) -> Option<Moment> {
        None
    }

    fn repair(&mut self) -> Result<()> {
        self.mount.remount(FULL_SIZE)
    }
}

/// A server with a limit on file size.
struct FileSizeLimit {
    store: PathBuf,
}

impl Disk for FileSizeLimit {
    fn fault_method(&self) -> &'static str {
        "EFBIG by RLIMIT_FSIZE, because no tmpfs could be mounted"
    }

    fn store(&self) -> &Path {
        &self.store
    }

    /// SIGXFSZ is ignored, so that the write fails with an error as on a full disk.
    fn launch(&mut self, _: &mut Random) -> Launch {
        let wrapper = ["sh", "-c", "trap '' XFSZ; exec \"$0\" \"$@\""].map(Into::into).to_vec();
        Launch { wrapper, ..Launch::default() }
    }

    fn break_disk(&mut self, server: &Server, random: &mut Random) -> Result<()> {
        let id = server.id().context("the server has already ended")?;
        let size = |file: &Path| fs::metadata(file).map_or(0, |metadata| metadata.len());
        let mut log = self.store.clone().into_os_string();
        log.push("-wal");
        let largest = size(&self.store).max(size(Path::new(&log)));
        let limit = largest + 1024 * random.within(LEFT_KIB);
        mount::run("prlimit", &["--pid", &id.to_string(), &format!("--fsize={limit}")]).map(drop)
    }

    fn failed_since(&self) -> Option<Moment> {
        None
    }

    fn repair(&mut self) -> Result<()> {
        Ok(())
    }
}
