//! A disk that becomes read-only: an ext4 file system in which an error is triggered, so that the kernel remounts
//! it read-only as it does with real disks. Without permission to mount one, writes fail with the same error by
//! strace.
//!
//! The file system is frozen while the error is triggered: otherwise Linux 6.18 reports success for some syncs in
//! progress and drops their data, which no server can detect.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::disk::{Disk, Moment, Privileges};
use super::mount::{self, Mount};
use super::strace::{self, FaultInjection};
use crate::random::Random;
use crate::server::{Launch, Server};

const IMAGE_BYTES: u64 = 512 * 1024 * 1024;
const WRITES: &str = "pwrite64,write,ftruncate,fallocate";

pub(crate) fn disk(dir: &Path, privileges: Privileges) -> Result<Box<dyn Disk>> {
    let real = match privileges {
        Privileges::All => Ext4Image::make(dir),
        Privileges::WithoutMounts => Err(anyhow::anyhow!("mounts are disabled")),
    };
    match real {
        Ok(real) => Ok(Box::new(real)),
        Err(error) => {
            eprintln!("disk_faults: {error:#}; using failing writes instead of a read-only disk");
            strace::ensure_strace()?;
            Ok(Box::new(InjectedReadOnly { store: dir.join("store.db"), trace: dir.join("trace") }))
        }
    }
}

/// An ext4 file system in an image file.
struct Ext4Image {
    image: PathBuf,
    store: PathBuf,
    log: PathBuf,
    /// `None` only while the file system is being repaired.
    mount: Option<Mount>,
    failed_since: Option<Moment>,
}

impl Ext4Image {
    fn make(dir: &Path) -> Result<Self> {
        let image = dir.join("image");
        fs::File::create(&image)?.set_len(IMAGE_BYTES)?;
        mount::run("mkfs.ext4", &["-q", "-F", &image.to_string_lossy()])?;
        let at = dir.join("disk");
        let (store, log) = (at.join("store.db"), dir.join("store.log"));
        let mut real = Self { image, store, log, mount: None, failed_since: None };
        real.attach()?;
        // Tried now, so that a system without this feature is detected early.
        real.trigger()?;
        real.while_frozen(|| Ok(()))?;
        Ok(real)
    }

    fn attach(&mut self) -> Result<()> {
        let at = self.store.parent().context("a store has a parent directory")?;
        let arguments = ["-o", "loop,errors=remount-ro", &self.image.to_string_lossy()];
        self.mount = Some(Mount::make(&arguments, at)?);
        Ok(())
    }

    /// Runs `act` while the file system is frozen: no writes happen, and all earlier writes are on disk.
    fn while_frozen<T>(&self, act: impl FnOnce() -> Result<T>) -> Result<T> {
        let mount = self.mount.as_ref().context("the disk is not mounted")?;
        let at = mount.at.to_string_lossy();
        mount::run("fsfreeze", &["-f", &at])?;
        let done = act();
        mount::run("fsfreeze", &["-u", &at])?;
        done
    }

    /// The sysfs file that triggers a file system error when written.
    fn trigger(&self) -> Result<PathBuf> {
        let mount = self.mount.as_ref().context("the disk is not mounted")?;
        let device = mount.query("findmnt", &["-n", "-o", "SOURCE"])?;
        let name = Path::new(&device).file_name().context("a device has a name")?;
        let trigger = Path::new("/sys/fs/ext4").join(name).join("trigger_fs_error");
        fs::metadata(&trigger).context("this kernel cannot trigger a file system error")?;
        Ok(trigger)
    }
}

impl Disk for Ext4Image {
    fn fault_method(&self) -> &'static str {
        "EROFS on an ext4 with a triggered error"
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

    fn break_disk(&mut self, _: &Server, _: &mut Random) -> Result<()> {
        let trigger = self.trigger()?;
        let failed_since = self.while_frozen(|| {
            fs::write(trigger, "1").context("cannot trigger a file system error")?;
            Ok(Moment::now())
        })?;
        self.failed_since = Some(failed_since);
        Ok(())
    }

    fn failed_since(&self) -> Option<Moment> {
        self.failed_since
    }

    fn refuses_starts(&self) -> bool {
        true
    }

    fn repair(&mut self) -> Result<()> {
        self.mount = None;
        self.failed_since = None;
        fsck(&self.image)?;
        self.attach()
    }
}

/// Clears the error flag of a file system.
fn fsck(image: &Path) -> Result<()> {
    let output =
        Command::new("e2fsck").args(["-f", "-y"]).arg(image).output().context("e2fsck is missing")?;
    // Exit codes 1 and 2 mean that errors were corrected, which is expected.
    let repaired = output.status.code().is_some_and(|code| code <= 2);
    ensure!(repaired, "e2fsck: {}", String::from_utf8_lossy(&output.stdout));
    Ok(())
}

/// A disk whose writes fail as on a read-only one.
struct InjectedReadOnly {
    store: PathBuf,
    trace: PathBuf,
}

impl Disk for InjectedReadOnly {
    fn fault_method(&self) -> &'static str {
        "EROFS on writes injected with strace, because no file system could be mounted"
    }

    fn store(&self) -> &Path {
        &self.store
    }

    fn launch(&mut self, random: &mut Random) -> Launch {
        let mut log = self.store.clone().into_os_string();
        log.push("-wal");
        let files = [self.store.clone(), log.into()];
        let first = random.within(400..=6_000);
        let injection = FaultInjection { calls: WRITES, error: "EROFS", first, lasting: true, files: &files };
        strace::launch(&injection, &self.trace)
    }

    fn break_disk(&mut self, _: &Server, _: &mut Random) -> Result<()> {
        Ok(())
    }

    fn failed_since(&self) -> Option<Moment> {
        strace::first_failure(&self.trace).ok().flatten()
    }

    fn repair(&mut self) -> Result<()> {
        Ok(())
    }
}
