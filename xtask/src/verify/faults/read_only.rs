//! A disk that becomes read-only: a file system of its own that is told to have found an error in itself, which
//! is how disks become read-only in earnest. Without the right to mount one, writes that fail with the same error.
//!
//! The file system is held still while it is told: Linux 6.18 otherwise answers some syncs that are under way with
//! success and drops what they were to save, which no server can know and any program would be blamed for.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::disk::{Disk, Means, Moment};
use super::mount::{self, Mount};
use super::traced::{self, Tampering};
use crate::server::{Launch, Server};
use crate::verify::random::Random;

const IMAGE_BYTES: u64 = 512 * 1024 * 1024;
const WRITES: &str = "pwrite64,write,ftruncate,fallocate";

pub(crate) fn disk(place: &Path, means: Means) -> Result<Box<dyn Disk>> {
    let real = match means {
        Means::All => Real::make(place),
        Means::WithoutMounts => Err(anyhow::anyhow!("no mounts are wanted")),
    };
    match real {
        Ok(real) => Ok(Box::new(real)),
        Err(error) => {
            eprintln!("T-R7: {error:#}; writes that fail stand in for a read-only disk");
            traced::find_strace()?;
            Ok(Box::new(Pretended { store: place.join("store.db"), trace: place.join("trace") }))
        }
    }
}

/// An ext4 file system in a file.
struct Real {
    image: PathBuf,
    store: PathBuf,
    log: PathBuf,
    /// Gone only while the file system is mended.
    mount: Option<Mount>,
    dead_since: Option<Moment>,
}

impl Real {
    fn make(place: &Path) -> Result<Self> {
        let image = place.join("image");
        fs::File::create(&image)?.set_len(IMAGE_BYTES)?;
        mount::run("mkfs.ext4", &["-q", "-F", &image.to_string_lossy()])?;
        let at = place.join("disk");
        let (store, log) = (at.join("store.db"), place.join("store.log"));
        let mut real = Self { image, store, log, mount: None, dead_since: None };
        real.attach()?;
        // Tried now, so that a system that cannot do it is found out before it matters.
        real.trigger()?;
        real.while_still(|| Ok(()))?;
        Ok(real)
    }

    fn attach(&mut self) -> Result<()> {
        let at = self.store.parent().context("a store lies in a directory")?;
        let words = ["-o", "loop,errors=remount-ro", &self.image.to_string_lossy()];
        self.mount = Some(Mount::make(&words, at)?);
        Ok(())
    }

    /// Does something while nothing is written, and everything written is safe.
    fn while_still<T>(&self, act: impl FnOnce() -> Result<T>) -> Result<T> {
        let mount = self.mount.as_ref().context("the disk is not mounted")?;
        let at = mount.at.to_string_lossy();
        mount::run("fsfreeze", &["-f", &at])?;
        let done = act();
        mount::run("fsfreeze", &["-u", &at])?;
        done
    }

    /// The file to write to for the file system to find an error.
    fn trigger(&self) -> Result<PathBuf> {
        let mount = self.mount.as_ref().context("the disk is not mounted")?;
        let device = mount.ask("findmnt", &["-n", "-o", "SOURCE"])?;
        let name = Path::new(&device).file_name().context("a device has a name")?;
        let trigger = Path::new("/sys/fs/ext4").join(name).join("trigger_fs_error");
        fs::metadata(&trigger).context("this kernel cannot be told of an error")?;
        Ok(trigger)
    }
}

impl Disk for Real {
    fn means(&self) -> &'static str {
        "EROFS on an ext4 that found an error"
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

    fn strike(&mut self, _: &Server, _: &mut Random) -> Result<()> {
        let trigger = self.trigger()?;
        let dead_since = self.while_still(|| {
            fs::write(trigger, "1").context("the file system cannot be told of an error")?;
            Ok(Moment::now())
        })?;
        self.dead_since = Some(dead_since);
        Ok(())
    }

    fn dead_since(&self) -> Option<Moment> {
        self.dead_since
    }

    fn refuses_starts(&self) -> bool {
        true
    }

    fn mend(&mut self) -> Result<()> {
        self.mount = None;
        self.dead_since = None;
        repair(&self.image)?;
        self.attach()
    }
}

/// Takes the mark of the error off a file system.
fn repair(image: &Path) -> Result<()> {
    let output =
        Command::new("e2fsck").args(["-f", "-y"]).arg(image).output().context("e2fsck is missing")?;
    // 1 and 2 say that there was something to repair, which is no news.
    let mended = output.status.code().is_some_and(|code| code <= 2);
    ensure!(mended, "e2fsck: {}", String::from_utf8_lossy(&output.stdout));
    Ok(())
}

/// A disk whose writes fail as on a read-only one.
struct Pretended {
    store: PathBuf,
    trace: PathBuf,
}

impl Disk for Pretended {
    fn means(&self) -> &'static str {
        "EROFS on writes injected with strace, for want of a file system to break"
    }

    fn store(&self) -> &Path {
        &self.store
    }

    fn launch(&mut self, random: &mut Random) -> Launch {
        let mut log = self.store.clone().into_os_string();
        log.push("-wal");
        let files = [self.store.clone(), log.into()];
        let first = random.within(400..=6_000);
        let tampering = Tampering { calls: WRITES, error: "EROFS", first, lasting: true, files: &files };
        traced::launch(&tampering, &self.trace)
    }

    fn strike(&mut self, _: &Server, _: &mut Random) -> Result<()> {
        Ok(())
    }

    fn dead_since(&self) -> Option<Moment> {
        traced::first_failure(&self.trace).ok().flatten()
    }

    fn mend(&mut self) -> Result<()> {
        Ok(())
    }
}
