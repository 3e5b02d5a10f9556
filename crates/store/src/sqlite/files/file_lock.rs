//! The lock on the database file itself: it belongs to the file, whatever names lead to it.
//!
//! On Linux it is a lock of the open file description on one byte that neither SQLite's locks nor its pages reach, so
//! that the two do not interact, on network file systems either. On other systems `<store>.lock` alone excludes a second
//! process.
//!
//! When a process closes any descriptor of a file, the kernel releases all POSIX locks of that process on the file,
//! which are SQLite's. So the descriptor is opened before the first connection and closed after the last one, and a file
//! that is locked here is never opened again by this process ([`LOCKED`]).

use std::{
    fs::{self, File},
    io,
    os::unix::fs::{MetadataExt as _, OpenOptionsExt as _},
    path::Path,
    sync::{Mutex, MutexGuard, PoisonError},
};

use super::store_files::Identity;

/// The files that this process has locked.
static LOCKED: Mutex<Vec<Identity>> = Mutex::new(Vec::new());

/// Permissions of the files of a store: tasks are private to the user that the server runs as.
pub(crate) const FILE_MODE: u32 = 0o600;

/// What the holder of the lock does with the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Writes; the file is created when absent. Excludes every other holder.
    Write,
    /// Only reads.
    Read,
}

/// Why the file cannot be locked.
#[derive(Debug)]
pub(crate) enum LockError {
    /// Another process has locked it.
    Held,
    /// This process has locked it.
    HeldHere,
    /// It has so many hard links.
    Linked(u64),
    Io(io::Error),
}

impl From<io::Error> for LockError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The held lock. Must be dropped after every connection to the file.
#[derive(Debug)]
pub(crate) struct FileLock {
    /// `None` only while it is dropped.
    file: Option<File>,
    identity: Identity,
}

impl FileLock {
    pub(crate) fn acquire(path: &Path, access: Access) -> Result<Self, LockError> {
        let mut locked = locked();
        // Before the file is opened: a pipe would block, and the descriptor of a file that is locked here must not be
        // closed.
        if let Ok(found) = fs::metadata(path) {
            if locked.contains(&Identity::of(&found)) {
                return Err(LockError::HeldHere);
            }
            if !found.is_file() {
                return Err(io::Error::other("it is not a regular file").into());
            }
        }
        let file = match access {
            Access::Write => File::options()
                .read(true)
                .write(true)
                .create(true)
                .truncate(false)
                .mode(FILE_MODE)
                .open(path)?,
            Access::Read => File::open(path)?,
        };
        let found = file.metadata()?;
        let identity = Identity::of(&found);
        if locked.contains(&identity) {
            // The name was changed in this moment to lead to a locked file. The descriptor stays open.
            std::mem::forget(file);
            return Err(LockError::HeldHere);
        }
        if found.nlink() > 1 {
            return Err(LockError::Linked(found.nlink()));
        }
        if !lock_byte(&file, access)? {
            return Err(LockError::Held);
        }
        locked.push(identity);
        Ok(Self { file: Some(file), identity })
    }

    /// Which file it is.
    pub(crate) fn identity(&self) -> Identity {
        self.identity
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        let mut locked = locked();
        // Closed first: from then on another thread may open the file.
        drop(self.file.take());
        locked.retain(|identity| *identity != self.identity);
    }
}

fn locked() -> MutexGuard<'static, Vec<Identity>> {
    LOCKED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Locks the byte; returns whether nobody else has locked it.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "neither the standard library nor rustix has locks of a byte range")]
fn lock_byte(file: &File, access: Access) -> io::Result<bool> {
    use std::os::fd::AsRawFd as _;

    /// Behind the largest database of SQLite. Where offsets have 32 bits it is the byte before SQLite's lock bytes.
    const BYTE: libc::off_t = libc::off_t::MAX / 2;

    let kind = match access {
        Access::Write => libc::F_WRLCK,
        Access::Read => libc::F_RDLCK,
    };
    // Some targets have padding fields. The PID must be 0.
    // SAFETY: the structure consists of integers, for which zero is a value.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind as libc::c_short;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = BYTE;
    lock.l_len = 1;
    // SAFETY: the descriptor is open, and the kernel only reads the structure, which outlives the call.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &raw const lock) };
    if result == 0 {
        return Ok(true);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EACCES) => Ok(false),
        // A kernel without these locks: `<store>.lock` alone decides, as on other systems.
        Some(libc::EINVAL) => Ok(true),
        _ => Err(error),
    }
}

#[cfg(not(target_os = "linux"))]
fn lock_byte(_: &File, _: Access) -> io::Result<bool> {
    Ok(true)
}
