//! The files of a store: their paths, and the check that they are still the ones that were opened.
//!
//! The database goes on writing into a file that has lost its name, and what is written there is gone when the process
//! ends. So after each commit, before it is acknowledged, and once a second while nothing is written, the names have to
//! lead to the files that were opened. That costs two `stat` calls for each commit.

use std::{
    fs, io,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use engine::metrics::DiskUsage;
use rusqlite::Connection;

/// How often the index of the log is checked; its loss endangers nobody but programs that open the store meanwhile.
const INDEX_INTERVAL: Duration = Duration::from_secs(1);

/// The path of a store.
#[derive(Clone, Debug)]
pub(crate) struct StorePath {
    /// As it was given; for errors.
    pub(crate) named: PathBuf,
    /// Without symbolic links, so that every name leads to the same files beside it.
    pub(crate) real: PathBuf,
}

impl StorePath {
    pub(crate) fn of(path: &Path) -> Self {
        Self { named: path.to_owned(), real: real_path(path) }
    }

    /// A file or directory beside the database, such as `<store>-wal`.
    pub(crate) fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.real.clone().into_os_string();
        name.push(suffix);
        name.into()
    }

    /// The write-ahead log.
    pub(crate) fn log(&self) -> PathBuf {
        self.beside("-wal")
    }

    /// The length of the log; 0 where there is none.
    pub(crate) fn log_length(&self) -> u64 {
        length(&self.log())
    }

    /// The space of the database and its log.
    pub(crate) fn disk_usage(&self) -> DiskUsage {
        let folder = self.real.parent().unwrap_or(Path::new("/"));
        // Without the blocks that are reserved for root.
        let free = rustix::fs::statvfs(folder).ok().map(|system| system.f_bavail * system.f_frsize);
        DiskUsage { used: self.database_length() + self.log_length(), free }
    }

    /// The length of the database file; 0 where there is none.
    pub(crate) fn database_length(&self) -> u64 {
        length(&self.real)
    }
}

/// The length of a file; 0 where there is none.
pub(crate) fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |file| file.len())
}

/// The path of a file that may not exist yet, without symbolic links.
fn real_path(path: &Path) -> PathBuf {
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

/// Device and inode: what a file is, whatever its names are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity(u64, u64);

impl Identity {
    pub(crate) fn of(file: &fs::Metadata) -> Self {
        Self(file.dev(), file.ino())
    }

    /// That of the file that a path leads to.
    pub(crate) fn at(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(|file| Self::of(&file))
    }
}

/// The files of an open store.
pub(crate) struct StoreFiles {
    database: NamedFile,
    log: NamedFile,
    index: NamedFile,
    index_checked: Instant,
}

impl StoreFiles {
    /// The files of a store that is open and has been written to. `database` is the file that this process has locked.
    pub(crate) fn of(path: &StorePath, database: Identity) -> io::Result<Self> {
        Ok(Self {
            database: NamedFile { path: path.real.clone(), identity: database, never_empty: true },
            log: NamedFile::at(path.log())?,
            index: NamedFile::at(path.beside("-shm"))?,
            index_checked: Instant::now(),
        })
    }

    /// Checks that the names lead to the same files as before. `connection` is the writer's.
    pub(crate) fn check(&mut self, connection: &Connection) -> Result<(), LostFile> {
        let lost = |file: &NamedFile, change, known| Err(LostFile { path: file.path.clone(), change, known });
        if let Some(change) = self.database.change() {
            let known = match change {
                Change::Replaced => self.set_log_aside(),
                Change::Truncated => KnownState::Truncated,
                Change::Removed | Change::Unreachable(_) => KnownState::InThatFile(self.log.path.clone()),
            };
            return lost(&self.database, change, known);
        }
        if let Some(change) = self.log.change() {
            // Where another log has the name, the next process would apply it to whatever the database contains.
            let moved = change == Change::Removed && copy_log(connection).unwrap_or(false);
            let known =
                if moved { KnownState::Moved(self.database.path.clone()) } else { KnownState::Unknown };
            return lost(&self.log, change, known);
        }
        if self.index_checked.elapsed() >= INDEX_INTERVAL {
            self.index_checked = Instant::now();
            if let Some(change) = self.index.change() {
                return lost(&self.index, change, KnownState::Safe);
            }
        }
        Ok(())
    }

    /// Renames the log of a database whose name leads to another file now: the next process would apply it to that
    /// file.
    fn set_log_aside(&self) -> KnownState {
        if self.index.change().is_none() {
            let _ = fs::remove_file(&self.index.path);
        }
        if self.log.change().is_some() {
            return KnownState::Unknown;
        }
        let mut aside = self.log.path.clone().into_os_string();
        aside.push(format!(".replaced-{}", std::process::id()));
        let aside = PathBuf::from(aside);
        match fs::rename(&self.log.path, &aside) {
            Ok(()) => KnownState::LogSetAside(aside),
            Err(_) => KnownState::LogInTheWay(self.log.path.clone()),
        }
    }
}

/// Copies the log, which has no name any more, into the database. Returns whether all of it was copied.
fn copy_log(connection: &Connection) -> rusqlite::Result<bool> {
    connection.query_row("PRAGMA wal_checkpoint(FULL)", [], |row| {
        let (busy, pages, copied): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(busy == 0 && pages == copied)
    })
}

struct NamedFile {
    path: PathBuf,
    identity: Identity,
    /// Whether an empty file is a change. The log is empty after a checkpoint.
    never_empty: bool,
}

impl NamedFile {
    fn at(path: PathBuf) -> io::Result<Self> {
        Ok(Self { identity: Identity::at(&path)?, path, never_empty: false })
    }

    /// What happened to the file or its name since it was opened.
    fn change(&self) -> Option<Change> {
        match fs::metadata(&self.path) {
            Ok(found) if Identity::of(&found) != self.identity => Some(Change::Replaced),
            Ok(found) if self.never_empty && found.len() == 0 => Some(Change::Truncated),
            Ok(_) => None,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Some(Change::Removed),
            Err(error) => Some(Change::Unreachable(error.kind())),
        }
    }
}

/// A file of the store was removed, replaced or truncated. The message is for the operator and includes what to do.
#[derive(Debug, thiserror::Error)]
#[error("{} {change} while the store was open; {known}", path.display())]
pub(crate) struct LostFile {
    path: PathBuf,
    change: Change,
    known: KnownState,
}

#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum Change {
    #[error("was removed or moved")]
    Removed,
    #[error("was replaced by another file")]
    Replaced,
    #[error("was truncated")]
    Truncated,
    #[error("became inaccessible ({0})")]
    Unreachable(io::ErrorKind),
}

/// What is known about the acknowledged tasks.
#[derive(Debug, thiserror::Error)]
enum KnownState {
    /// With the path of the log.
    #[error("what was acknowledged is in that file and in {}: put the file back beside it", .0.display())]
    InThatFile(PathBuf),
    #[error(
        "what was acknowledged is in the earlier file, and the newest of it in its log, which is {} now: to go on \
         with the earlier file, put both back under their names",
        .0.display()
    )]
    LogSetAside(PathBuf),
    #[error("what was acknowledged is in the earlier file and in {}: move that log away before the next start", .0.display())]
    LogInTheWay(PathBuf),
    #[error("what was in the file is lost: restore a backup")]
    Truncated,
    #[error("what was acknowledged has been moved into {}; start again", .0.display())]
    Moved(PathBuf),
    #[error("the newest acknowledged tasks may be lost: put the file back, or restore a backup")]
    Unknown,
    #[error("every acknowledged task is safe; start again")]
    Safe,
}
