//! The instance lock: the process that has the store open holds a lock on `<store>.lock` and describes itself there
//! (JSON, one line).
//!
//! The lock lies beside the database file itself, also where the store is named through a symbolic link, so that every
//! name of the file leads to the same lock.
//!
//! The file stays when the process ends; its content is valid only while the lock is held. Writing the description is
//! best effort: a failure does not prevent the store from being served.

use std::{
    fmt,
    fs::{File, TryLockError},
    io::{Read as _, Seek as _, SeekFrom, Write as _},
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use engine::Clock;
use protocol::{
    Json, Timestamp,
    json::{
        read::{Node, Path as Field},
        write::Writer,
    },
};

use crate::{
    OpenError,
    process::{self, Process, up},
};

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
}

const STATES: [(&str, InstanceState); 4] = [
    ("starting", InstanceState::Starting),
    ("serving", InstanceState::Serving),
    ("draining", InstanceState::Draining),
    ("checking", InstanceState::Checking),
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
    /// Listening address; `None` until the server listens.
    pub address: Option<String>,
    /// What it was doing when this was read.
    pub state: InstanceState,
    /// When it opened the store.
    pub started_at: Timestamp,
    /// How long it had the store open when this was read.
    pub up: Duration,
}

impl fmt::Display for LockHolder {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "PID {}, {}", self.pid, self.state)?;
        if let Some(address) = &self.address {
            write!(out, " at {address}")?;
        }
        write!(out, ", up {}", up(self.up))
    }
}

/// The process that has the store at this path open, as described in its lock file; `None` where there is none or the
/// description cannot be read.
pub fn lock_holder(path: &Path) -> Option<LockHolder> {
    let holder = read(&File::open(lock_path(path)).ok()?)?;
    let lives = !Path::new("/proc/self").exists() || Path::new(&format!("/proc/{}", holder.pid)).exists();
    lives.then_some(holder)
}

/// The held lock. Dropping it clears the description and releases the lock.
pub(super) struct InstanceLock {
    described: Mutex<Described>,
    started_at: Timestamp,
}

struct Described {
    file: File,
    address: Option<String>,
}

/// Updates the description in the lock file while the store is open; does nothing afterwards.
#[derive(Clone)]
pub struct Instance(Weak<InstanceLock>);

impl Instance {
    pub(super) fn of(lock: &Arc<InstanceLock>) -> Self {
        Self(Arc::downgrade(lock))
    }

    /// Records what this process is doing, and where it listens; `None` keeps the previous address.
    pub fn record(&self, state: InstanceState, address: Option<&str>) {
        if let Some(lock) = self.0.upgrade() {
            lock.record(state, address);
        }
    }
}

impl InstanceLock {
    /// Acquires the lock, unless another process holds it.
    pub(super) fn acquire(path: &Path, state: InstanceState) -> Result<Self, OpenError> {
        let unusable =
            |error: std::io::Error| OpenError::Unusable { path: path.to_owned(), reason: error.to_string() };
        let mut options = File::options();
        let lock_file = lock_path(path);
        let file = options.create(true).truncate(false).read(true).write(true).open(&lock_file);
        let file = file.map_err(unusable)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use(path, &file, lock_file)),
            Err(TryLockError::Error(error)) => return Err(unusable(error)),
        }
        let lock = Self {
            described: Mutex::new(Described { file, address: None }),
            started_at: Clock::system().now(),
        };
        lock.record(state, None);
        Ok(lock)
    }

    fn record(&self, state: InstanceState, address: Option<&str>) {
        let mut described = self.described.lock().unwrap_or_else(PoisonError::into_inner);
        let Described { file, address: known } = &mut *described;
        if let Some(address) = address {
            *known = Some(address.to_owned());
        }
        let mut writer = Writer::new();
        writer.object(|out| {
            out.key("pid").int(std::process::id().into());
            out.text("state", &state.to_string());
            out.maybe_text("address", known.as_deref());
            out.text("startedAt", &self.started_at.to_string());
        });
        let mut line = writer.finish();
        line.push(b'\n');
        let _ = file
            .seek(SeekFrom::Start(0))
            .and_then(|_| file.write_all(&line))
            .and_then(|()| file.set_len(line.len() as u64));
    }
}

impl Drop for InstanceLock {
    fn drop(&mut self) {
        let _ = self.described.get_mut().unwrap_or_else(PoisonError::into_inner).file.set_len(0);
    }
}

/// The error for a lock that another process holds: an a2ad that described itself, or any other program.
fn in_use(path: &Path, file: &File, lock_file: PathBuf) -> OpenError {
    // The description may be that of an earlier process that was killed.
    let holds = |holder: &LockHolder| process::has_file_open(holder.pid, &lock_file).unwrap_or(true);
    match read(file).filter(holds) {
        Some(holder) => OpenError::InUse { path: path.to_owned(), holder: Box::new(holder) },
        None => OpenError::Locked {
            path: path.to_owned(),
            process: Process::with_open_file(&[lock_file]).map(Box::new),
        },
    }
}

fn lock_path(path: &Path) -> PathBuf {
    let mut name = real_path(path).into_os_string();
    name.push(".lock");
    name.into()
}

/// The path of a file that may not exist yet, without symbolic links.
pub(super) fn real_path(path: &Path) -> PathBuf {
    /// As many links as the kernel follows.
    const MAX_LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        if let Ok(real) = path.canonicalize() {
            return real;
        }
        // A link to a file that does not exist yet: the database creates that file.
        let Ok(target) = path.read_link() else { break };
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (folder.canonicalize(), path.file_name()) {
        (Ok(folder), Some(name)) => folder.join(name),
        _ => path,
    }
}

fn read(file: &File) -> Option<LockHolder> {
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    // When a shorter description has just overwritten a longer one, the end of the longer one may still follow it.
    let document = Json::parse(text.lines().next()?).ok()?;
    let object = Node::new(document.as_raw(), &Field::Root).object().ok()?;
    let state = object.need_text("state").ok()?;
    let started_at = Timestamp::parse(&object.need_text("startedAt").ok()?)?;
    let up = Clock::system().now().as_millis().saturating_sub(started_at.as_millis());
    Some(LockHolder {
        pid: object.count("pid").ok()??,
        address: object.text("address").ok()?,
        state: STATES.iter().find(|known| known.0 == state)?.1,
        started_at,
        up: Duration::from_millis(u64::try_from(up).unwrap_or_default()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_describes_its_process_while_held() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        assert_eq!(lock_holder(&path), None);
        let lock = Arc::new(InstanceLock::acquire(&path, InstanceState::Starting).unwrap());
        let instance = Instance::of(&lock);
        instance.record(InstanceState::Serving, Some("127.0.0.1:4242"));
        let Err(OpenError::InUse { holder: found, .. }) =
            InstanceLock::acquire(&path, InstanceState::Starting)
        else {
            panic!("the lock is held")
        };
        assert_eq!(
            found.to_string(),
            format!("PID {}, serving at 127.0.0.1:4242, up 0 s", std::process::id())
        );
        instance.record(InstanceState::Draining, None);
        assert_eq!(lock_holder(&path).unwrap().state, InstanceState::Draining);
        drop(lock);
        instance.record(InstanceState::Serving, None);
        assert_eq!(lock_holder(&path), None);
        InstanceLock::acquire(&path, InstanceState::Starting).unwrap();
    }
}
