//! Reads files that the configuration names.

use std::{fmt::Display, fs, io::Read as _, path::Path};

use super::{read::Parsed, values::show_size};

/// The text of a regular file of at most so many bytes. Others are rejected: a device or a pipe could be read forever.
pub(super) fn read(path: &Path, max_bytes: u64) -> Parsed<String> {
    let problem = |reason: &dyn Display| format!("the file {} cannot be read: {reason}", path.display());
    let is_file = fs::metadata(path).map_err(|error| problem(&error))?.is_file();
    if !is_file {
        return Err(problem(&"it is not a regular file"));
    }
    let file = fs::File::open(path).map_err(|error| problem(&error))?;
    read_at_most(file, max_bytes).map_err(|error| problem(&error))
}

/// Everything that can be read, which must be at most so many bytes of UTF-8.
pub(super) fn read_at_most(file: fs::File, max_bytes: u64) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        return Err(std::io::Error::other(format!("it is larger than {}", show_size(max_bytes))));
    }
    String::from_utf8(bytes).map_err(|_| std::io::Error::other("it is not UTF-8"))
}
