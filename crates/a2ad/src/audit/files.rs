//! The files of an audit log: one series for changes by operators and one for refusals, with numbers in common. Each has
//! limits of its own, so that refusals never remove a change.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::rotated_files::{FileLimits, RotatedFiles};

/// Where an audit log is and how large it becomes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditOptions {
    /// The current file with changes. That with refusals has the same name with `.refused`.
    pub file: PathBuf,
    /// Of the files with changes.
    pub changes: FileLimits,
    /// Of the files with refusals.
    pub refusals: FileLimits,
}

impl AuditOptions {
    /// With files of 16 MiB, four of them beside the current one, for changes and for refusals.
    pub fn at(file: PathBuf) -> Self {
        Self { file, changes: FileLimits::default(), refusals: FileLimits::default() }
    }
}

/// The files of a log.
#[derive(Clone, Debug)]
pub struct AuditFiles {
    /// Earlier versions wrote refusals here too.
    pub(super) changes: RotatedFiles,
    pub(super) refusals: RotatedFiles,
}

impl AuditFiles {
    /// The files of a log, which need not exist.
    pub fn new(options: AuditOptions) -> Self {
        let mut refused = options.file.clone().into_os_string();
        refused.push(".refused");
        Self {
            changes: RotatedFiles::new(options.file, options.changes),
            refusals: RotatedFiles::new(refused.into(), options.refusals),
        }
    }

    /// The current file with changes.
    pub fn path(&self) -> &Path {
        self.changes.path()
    }

    /// The number of the last line; 0 if there is none.
    pub(super) fn last_number(&self) -> io::Result<u64> {
        Ok(self.changes.last_number()?.max(self.refusals.last_number()?))
    }

    /// The lines after a number, oldest first: at most `max` of them.
    pub fn read(&self, after: u64, max: usize) -> io::Result<Vec<String>> {
        // What is written from now on is for the next read, also a refusal: a change before it, in the file that has been read
        // already, would be skipped.
        let newest = self.last_number()?;
        if newest <= after {
            return Ok(Vec::new());
        }
        let mut all = self.changes.read(after, max)?;
        all.extend(self.refusals.read(after, max)?);
        all.sort_unstable_by_key(|(number, _)| *number);
        let lines = all.into_iter().take_while(|(number, _)| *number <= newest).take(max);
        Ok(lines.map(|(_, line)| line).collect())
    }
}
