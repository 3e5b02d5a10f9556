//! The instance lock: the process that has the store open holds a lock on the database file ([`FileLock`]), and one on
//! `<store>.lock`, where it describes itself (JSON, one line).
//!
//! A file with several hard links is refused: SQLite names the write-ahead log after the name it was given, so that two
//! names would have two logs. `<store>.lock` lies beside the database file itself, also where the store is named through
//! a symbolic link.
//!
//! `<store>.lock` is removed when the lock is released, and stays when the process is killed; its content is valid only
//! while the lock is held. Writing the description is best effort: a failure does not prevent the store from being
//! served.

use std::{
    fmt,
    fs::{self, File, TryLockError},
    io::{self, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    thread,
    time::{Duration, Instant},
};

use engine::Clock;
use protocol::{
    Json, Timestamp,
    json::{
        read::{Node, Path as Field},
        write::Writer,
    },
};

use super::file_lock::{Access, FILE_MODE, FileLock, LockError};

use super::store_files::{Identity, StorePath};
use crate::{
    OpenError,
    process::{self, Process, up},
};

/// How long a lock may be held by nobody who describes itself. A child process has its parent's files until it executes
/// its own program, so the files of a server that has just ended may still be locked by what it was starting.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(1);
const RETRY_INTERVAL: Duration = Duration::from_millis(10);
/// The end of the lock file's name.
const LOCK: &str = ".lock";
/// How every description begins, of whatever version it is.
const DESCRIPTION_START: &[u8] = b"{\"pid\":";
/// Upper bound of the description in bytes.
const MAX_BYTES: u64 = 4_096;

/// What the process that has a store open is doing. The lock file holds these as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceState {
    /// Opening the store.
    Starting,
    /// Accepting calls.
    Serving,
    /// Shutting down: runs may finish, no new calls are accepted.
    Draining,
    /// Checking the store's integrity.
    Checking,
    /// Creating the store from a backup.
    Restoring,
}

const STATES: [(&str, InstanceState); 5] = [
    ("starting", InstanceState::Starting),
    ("serving", InstanceState::Serving),
    ("draining", InstanceState::Draining),
    ("checking", InstanceState::Checking),
    ("restoring", InstanceState::Restoring),
];

impl fmt::Display for InstanceState {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(STATES.iter().find(|state| state.1 == *self).map_or("", |state| state.0))
    }
}

/// The process that has a store open, as described in its lock file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockHolder {
    /// Process id.
    pub pid: u32,
    /// Listening addresses, to be shown; `None` until the server listens.
    pub address: Option<String>,
    /// The base URL for callers.
    pub callers: Option<String>,
    /// The base URL of the operators' API.
    pub operators: Option<String>,
    /// The file with the certificate of that URL, if it is one with TLS.
    pub certificate: Option<String>,
    /// What it was doing when this was read.
    pub state: InstanceState,
    /// When it opened the store.
    pub started_at: Timestamp,
    /// How long it had the store open when this was read.
    pub up: Duration,
    /// Of a process that is shutting down: since when, and until when at most.
    pub draining: Option<Draining>,
}

/// Where a server can be reached, for its lock file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServedAt {
    /// All listening addresses, to be shown.
    pub address: String,
    /// The base URL for callers on this machine.
    pub callers: Option<String>,
    /// The base URL of the operators' API.
    pub operators: Option<String>,
    /// The file with the certificate of that URL, if it is one with TLS.
    pub certificate: Option<String>,
}

/// How long a process has been shutting down, and the longest time that it still needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draining {
    /// Since the shutdown began.
    pub elapsed: Duration,
    /// Until the process ends at the latest.
    pub left: Duration,
}

impl fmt::Display for LockHolder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "PID {}, {}", self.pid, self.state)?;
        if let Some(address) = &self.address {
            write!(out, " at {address}")?;
        }
        if let Some(Draining { elapsed, left }) = self.draining {
            write!(out, " for {} and at most {} more", up(elapsed), up(left))?;
        }
        write!(out, ", up {}", up(self.up))
    }
}

/// The process that has the store at this path open, as described in its lock file; `None` where there is none or the
/// description cannot be read.
pub fn lock_holder(path: &Path) -> Option<LockHolder> {
    let holder = read(&File::open(StorePath::of(path).beside(LOCK)).ok()?)?;
    let lives = !Path::new("/proc/self").exists() || Path::new(&format!("/proc/{}", holder.pid)).exists();
    lives.then_some(holder)
}

/// The held lock. Must be dropped after every connection to the store.
pub(crate) struct InstanceLock {
    /// Dropped first, so that whoever locks `<store>.lock` next finds the database unlocked.
    database: FileLock,
    lock_file: LockFile,
}

impl InstanceLock {
    /// Acquires the lock, unless another process holds it. A database that is absent is created, empty, for
    /// [`Access::Write`].
    pub(crate) fn acquire(path: &StorePath, access: Access, state: InstanceState) -> Result<Self, OpenError> {
        let end = Instant::now() + RELEASE_TIMEOUT;
        loop {
            match Self::try_acquire(path, access, state) {
                Err(OpenError::Locked { .. }) if Instant::now() < end => thread::park_timeout(RETRY_INTERVAL),
                result => return result,
            }
        }
    }

    fn try_acquire(path: &StorePath, access: Access, state: InstanceState) -> Result<Self, OpenError> {
        let lock_file = LockFile::acquire(path, access, state)?;
        let database = FileLock::acquire(&path.real, access).map_err(|error| lock_error(path, error))?;
        Ok(Self { database, lock_file })
    }

    /// The database file that is locked.
    pub(crate) fn database(&self) -> Identity {
        self.database.identity()
    }
}

/// Updates the description in the lock file while the store is open; does nothing afterwards.
#[derive(Clone)]
pub struct Instance(Weak<InstanceLock>);

impl Instance {
    pub(crate) fn of(lock: &Arc<InstanceLock>) -> Self {
        Self(Arc::downgrade(lock))
    }

    /// Records what this process is doing, and where it listens; `None` keeps the previous addresses.
    pub fn record(&self, state: InstanceState, served_at: Option<&ServedAt>) {
        if let Some(lock) = self.0.upgrade() {
            lock.lock_file.record(state, served_at);
        }
    }

    /// Records that this process shuts down and ends within this time. The first call counts.
    pub fn record_draining(&self, limit: Duration) {
        if let Some(lock) = self.0.upgrade() {
            lock.lock_file.record_draining(limit);
        }
    }
}

/// `<store>.lock`, locked. Dropping it removes the file.
pub(crate) struct LockFile {
    path: PathBuf,
    described: Mutex<Described>,
    started_at: Timestamp,
}

struct Described {
    /// `None` where the store is only read and the file cannot be created, such as on a read-only file system.
    file: Option<File>,
    served_at: Option<ServedAt>,
    /// When the shutdown began, and when it ends at the latest.
    draining: Option<(Timestamp, Timestamp)>,
}

impl LockFile {
    pub(crate) fn acquire(path: &StorePath, access: Access, state: InstanceState) -> Result<Self, OpenError> {
        let lock_path = path.beside(LOCK);
        let file = match lock(path, &lock_path) {
            Ok(file) => Some(file),
            Err(Refusal::Io(error)) if access == Access::Read && is_read_only(&error) => None,
            Err(Refusal::Io(error)) => {
                return Err(OpenError::Unusable {
                    path: path.named.clone(),
                    reason: format!("{}: {}", lock_path.display(), io_reason(&error)),
                });
            }
            Err(Refusal::Open(error)) => return Err(error),
        };
        let lock = Self {
            path: lock_path,
            described: Mutex::new(Described { file, served_at: None, draining: None }),
            started_at: Clock::system().now(),
        };
        lock.record(state, None);
        Ok(lock)
    }

    fn record_draining(&self, limit: Duration) {
        let now = Clock::system().now();
        let millis = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
        let end = Timestamp::from_millis(now.as_millis().saturating_add_unsigned(millis));
        self.described().draining.get_or_insert((now, end));
        self.record(InstanceState::Draining, None);
    }

    fn described(&self) -> MutexGuard<'_, Described> {
        self.described.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self, state: InstanceState, served_at: Option<&ServedAt>) {
        let mut described = self.described();
        let Described { file, served_at: known, draining } = &mut *described;
        let Some(file) = file else { return };
        if let Some(served_at) = served_at {
            *known = Some(served_at.clone());
        }
        let mut writer = Writer::new();
        writer.object(|out| {
            out.key("pid").int(std::process::id().into());
            out.text("state", &state.to_string());
            if let Some(ServedAt { address, callers, operators, certificate }) = known {
                out.text("address", address);
                out.maybe_text("callers", callers.as_deref());
                out.maybe_text("operators", operators.as_deref());
                out.maybe_text("certificate", certificate.as_deref());
            }
            out.text("startedAt", &self.started_at.to_string());
            if let Some((since, end)) = draining {
                out.text("drainingSince", &since.to_string());
                out.text("drainingUntil", &end.to_string());
            }
        });
        let mut line = writer.finish();
        line.push(b'\n');
        let _ = file
            .seek(SeekFrom::Start(0))
            .and_then(|_| file.write_all(&line))
            .and_then(|()| file.set_len(line.len() as u64));
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        let described = self.described.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(file) = &described.file else { return };
        let _ = file.set_len(0);
        // While it is still locked, so that a process that opened it just now notices that it has no name any more.
        if is_named(file, &self.path) {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Why the lock file is not locked.
enum Refusal {
    /// Another process has locked it, or it is not a lock file.
    Open(OpenError),
    Io(io::Error),
}

/// Opens and locks the lock file. The one that was opened may be removed by its holder before it is locked; then there
/// is another one to lock.
fn lock(path: &StorePath, lock_path: &Path) -> Result<File, Refusal> {
    /// Only as many processes that start and stop in this moment can be the cause.
    const MAX_TRIES: usize = 100;
    for _ in 0..MAX_TRIES {
        let mut options = File::options();
        options.create(true).truncate(false).read(true).write(true).mode(FILE_MODE);
        let file = options.open(lock_path).map_err(Refusal::Io)?;
        match file.try_lock() {
            Ok(()) if is_named(&file, lock_path) => {
                check_ours(path, lock_path, &file)?;
                return Ok(file);
            }
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(Refusal::Open(in_use(path, &file))),
            Err(TryLockError::Error(error)) => return Err(Refusal::Io(error)),
        }
    }
    Err(Refusal::Io(io::Error::other("it is created and removed again and again")))
}

/// Refuses a file with the name of the lock file that another program has written, such as `Cargo.lock`.
fn check_ours(path: &StorePath, lock_path: &Path, file: &File) -> Result<(), Refusal> {
    let mut start = Vec::new();
    file.take(DESCRIPTION_START.len() as u64).read_to_end(&mut start).map_err(Refusal::Io)?;
    if start.is_empty() || start == DESCRIPTION_START {
        return Ok(());
    }
    let reason = format!("{} is not a lock file of a2ad; move it away", lock_path.display());
    Err(Refusal::Open(OpenError::Unusable { path: path.named.clone(), reason }))
}

/// The error of the operating system, with what to do where the user of this process lacks permissions.
fn io_reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            format!("{error}; run as the user that owns the store, who can write to its directory")
        }
        _ => error.to_string(),
    }
}

/// Whether the name leads to this file.
fn is_named(file: &File, path: &Path) -> bool {
    let opened = file.metadata().map(|file| Identity::of(&file));
    opened.is_ok_and(|opened| Identity::at(path).is_ok_and(|named| named == opened))
}

fn is_read_only(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem)
}

/// The error for a lock file that another process holds: an a2ad that described itself, or any other program.
fn in_use(path: &StorePath, file: &File) -> OpenError {
    // The description may be that of an earlier process that was killed.
    let lock_path = path.beside(LOCK);
    let holds = |holder: &LockHolder| process::has_file_open(holder.pid, &lock_path).unwrap_or(true);
    match read(file).filter(holds) {
        Some(holder) => OpenError::InUse { path: path.named.clone(), holder: Box::new(holder) },
        None => locked(path),
    }
}

/// The error for a database file that cannot be locked.
fn lock_error(path: &StorePath, error: LockError) -> OpenError {
    match error {
        LockError::Held => locked(path),
        LockError::HeldHere => {
            OpenError::Locked { path: path.named.clone(), process: Some(Box::new(Process::current())) }
        }
        LockError::Linked(links) => OpenError::Linked { path: path.named.clone(), links },
        LockError::Io(error) => OpenError::Unusable { path: path.named.clone(), reason: io_reason(&error) },
    }
}

/// The error for files that a process has locked without a description.
pub(crate) fn locked(path: &StorePath) -> OpenError {
    let files = [path.beside(LOCK), path.real.clone()];
    OpenError::Locked { path: path.named.clone(), process: Process::with_open_file(&files).map(Box::new) }
}

fn read(file: &File) -> Option<LockHolder> {
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    // When a shorter description has just overwritten a longer one, the end of the longer one may still follow it.
    let document = Json::parse(text.lines().next()?).ok()?;
    let object = Node::new(document.as_raw(), &Field::Root).object().ok()?;
    let state = object.need_text("state").ok()?;
    let started_at = Timestamp::parse(&object.need_text("startedAt").ok()?)?;
    let now = Clock::system().now();
    let at = |field: &str| Timestamp::parse(&object.text(field).ok()??);
    let draining = at("drainingSince").zip(at("drainingUntil"));
    Some(LockHolder {
        pid: object.count("pid").ok()??,
        address: object.text("address").ok()?,
        callers: object.text("callers").ok()?,
        operators: object.text("operators").ok()?,
        certificate: object.text("certificate").ok()?,
        state: STATES.iter().find(|known| known.0 == state)?.1,
        started_at,
        up: span(started_at, now),
        draining: draining.map(|(since, end)| Draining { elapsed: span(since, now), left: span(now, end) }),
    })
}

/// The time between two timestamps; zero if they are in the other order.
fn span(from: Timestamp, to: Timestamp) -> Duration {
    let millis = to.as_millis().saturating_sub(from.as_millis());
    Duration::from_millis(u64::try_from(millis).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_describes_its_process_while_held() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let acquire = || InstanceLock::acquire(&StorePath::of(&path), Access::Write, InstanceState::Starting);
        assert_eq!(lock_holder(&path), None);
        let lock = Arc::new(acquire().unwrap());
        let instance = Instance::of(&lock);
        let served_at = ServedAt { address: "127.0.0.1:4242".into(), ..ServedAt::default() };
        instance.record(InstanceState::Serving, Some(&served_at));
        let Err(OpenError::InUse { holder: found, .. }) = acquire() else { panic!("the lock is held") };
        assert_eq!(
            found.to_string(),
            format!("PID {}, serving at 127.0.0.1:4242, up 0 s", std::process::id())
        );
        instance.record_draining(Duration::from_secs(60));
        let draining = lock_holder(&path).unwrap();
        assert_eq!(draining.state, InstanceState::Draining);
        let Draining { elapsed, left } = draining.draining.unwrap();
        assert!(
            elapsed + left == Duration::from_secs(60) && elapsed < Duration::from_secs(30),
            "{elapsed:?}"
        );
        let shown = LockHolder {
            draining: Some(Draining { elapsed: Duration::from_secs(3), left: Duration::from_secs(25) }),
            ..draining
        };
        let expected = "draining at 127.0.0.1:4242 for 3 s and at most 25 s more, up 0 s";
        assert_eq!(shown.to_string(), format!("PID {}, {expected}", std::process::id()));
        // The first call counts.
        instance.record_draining(Duration::ZERO);
        assert!(lock_holder(&path).unwrap().draining.unwrap().left > Duration::from_secs(30));
        drop(lock);
        instance.record(InstanceState::Serving, None);
        assert_eq!(lock_holder(&path), None);
        acquire().unwrap();
    }
}
