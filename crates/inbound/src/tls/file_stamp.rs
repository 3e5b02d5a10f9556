//! Whether a file has changed, without reading it.

use std::{fs, os::unix::fs::MetadataExt as _, path::Path};

/// What identifies the content of a file: another inode after a rename or when a link leads elsewhere, other times or
/// another size after a write, other times after a change of permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStamp {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileStamp {
    /// The stamp of the file that a path leads to; `None` if there is none.
    pub fn of(path: &Path) -> Option<Self> {
        fs::metadata(path).ok().as_ref().map(Self::from)
    }
}

impl From<&fs::Metadata> for FileStamp {
    fn from(metadata: &fs::Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}
