//! A disk that is full: a file system in memory that is made small at the moment, or, without the right to mount
//! one, a limit on the size of files.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use super::disk::{Disk, Means, Moment};
use super::mount::{self, Mount};
use crate::server::{Launch, Server};
use crate::verify::random::Random;

const ROOMY: &str = "size=1g";
/// What is left when the disk is made small, in KiB: enough for a few writes or for many.
const LEFT_KIB: std::ops::RangeInclusive<u64> = 1..=1024;

pub(crate) fn disk(place: &Path, means: Means) -> Result<Box<dyn Disk>> {
    let at = place.join("disk");
    let mounted = match means {
        Means::All => Mount::make(&["-t", "tmpfs", "-o", ROOMY, "a2ad-verify"], &at),
        Means::WithoutMounts => Err(anyhow::anyhow!("no mounts are wanted")),
    };
    match mounted {
        Ok(mount) => Ok(Box::new(Small { store: at.join("store.db"), log: place.join("store.log"), mount })),
        Err(error) => {
            eprintln!("T-R7: {error:#}; a limit on the size of files stands in for a full disk");
            Ok(Box::new(Limited { store: place.join("store.db") }))
        }
    }
}

/// A file system with little room.
struct Small {
    store: PathBuf,
    log: PathBuf,
    mount: Mount,
}

impl Disk for Small {
    fn means(&self) -> &'static str {
        "ENOSPC on a small tmpfs"
    }

    fn store(&self) -> &Path {
        &self.store
    }

    fn log(&self) -> Option<&Path> {
        Some(&self.log)
    }

    fn launch(&mut self, _: &mut Random) -> Launch {
        Launch::default()
    }

    fn strike(&mut self, _: &Server, random: &mut Random) -> Result<()> {
        let left = random.within(LEFT_KIB);
        // The server goes on writing between the look and the change, which then finds too little to take.
        for attempt in 1.. {
            let used: u64 = self.mount.ask("df", &["-k", "--output=used"])?.parse()?;
            match self.mount.remount(&format!("size={}k", used + left * attempt)) {
                Ok(()) => break,
                Err(error) if attempt == 8 => return Err(error),
                Err(_) => {}
            }
        }
        Ok(())
    }

    /// The last write that fitted is not known.
    fn dead_since(&self) -> Option<Moment> {
        None
    }

    fn mend(&mut self) -> Result<()> {
        self.mount.remount(ROOMY)
    }
}

/// A server whose files may not grow.
struct Limited {
    store: PathBuf,
}

impl Disk for Limited {
    fn means(&self) -> &'static str {
        "EFBIG by RLIMIT_FSIZE, for want of a small file system"
    }

    fn store(&self) -> &Path {
        &self.store
    }

    /// The signal that goes with the limit is ignored, so that the write fails as on a full disk.
    fn launch(&mut self, _: &mut Random) -> Launch {
        let wrapper = ["sh", "-c", "trap '' XFSZ; exec \"$0\" \"$@\""].map(Into::into).to_vec();
        Launch { wrapper, ..Launch::default() }
    }

    fn strike(&mut self, server: &Server, random: &mut Random) -> Result<()> {
        let id = server.id().context("the server has already ended")?;
        let size = |file: &Path| fs::metadata(file).map_or(0, |metadata| metadata.len());
        let mut log = self.store.clone().into_os_string();
        log.push("-wal");
        let largest = size(&self.store).max(size(Path::new(&log)));
        let limit = largest + 1024 * random.within(LEFT_KIB);
        mount::run("prlimit", &["--pid", &id.to_string(), &format!("--fsize={limit}")]).map(drop)
    }

    fn dead_since(&self) -> Option<Moment> {
        None
    }

    fn mend(&mut self) -> Result<()> {
        Ok(())
    }
}
