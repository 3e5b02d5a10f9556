//! A file of lines that is renamed at a size: the current one, and older ones with `.1`, `.2` and so on at the end of their
//! names.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _},
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use super::line;

/// How much of the end of a file is read to find its last line. Lines are shorter.
const TAIL: u64 = 64 << 10;

/// How large files become, and how many of them are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLimits {
    /// Size at which a file is renamed, in bytes.
    pub max_size: u64,
    /// How many renamed files are kept.
    pub max_files: usize,
}

impl Default for FileLimits {
    fn default() -> Self {
        Self { max_size: 16 << 20, max_files: 4 }
    }
}

/// A file with its older ones.
#[derive(Clone, Debug)]
pub(super) struct RotatedFiles {
    path: PathBuf,
    limits: FileLimits,
}

/// The current file.
pub(super) struct OpenFile {
    file: File,
    size: u64,
}

impl RotatedFiles {
    /// The files, which need not exist.
    pub(super) fn new(path: PathBuf, limits: FileLimits) -> Self {
        Self { path, limits }
    }

    /// The current file.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Opens the current file to append to it; only its owner can read it.
    pub(super) fn open(&self) -> io::Result<OpenFile> {
        let mut file =
            OpenOptions::new().create(true).append(true).read(true).mode(0o600).open(self.path())?;
        let metadata = file.metadata()?;
        if metadata.permissions().mode() & 0o077 != 0 {
            file.set_permissions(fs::Permissions::from_mode(0o600))?;
        }
        let mut size = metadata.len();
        if size > 0 {
            // A line that a crash has cut off does not continue in the next one.
            let mut last = [0];
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
            if last != *b"\n" {
                file.write_all(b"\n")?;
                size += 1;
            }
        }
        Ok(OpenFile { file, size })
    }

    /// The number of the last line; 0 if there is none.
    pub(super) fn last_number(&self) -> io::Result<u64> {
        for path in self.newest_first() {
            if let Some(number) = last_number_in(&path)? {
                return Ok(number);
            }
        }
        Ok(0)
    }

    /// The lines after a number with their numbers, oldest first: at most `max` of them.
    pub(super) fn read(&self, after: u64, max: usize) -> io::Result<Vec<(u64, String)>> {
        let mut files = Vec::new();
        for path in self.newest_first() {
            let Some(file) = existing(File::open(&path))? else { continue };
            let mut reader = BufReader::new(file);
            let mut first = Vec::new();
            reader.read_until(b'\n', &mut first)?;
            let number = line::number(String::from_utf8_lossy(&first).trim_end());
            let begins_before = number.is_some_and(|number| number <= after.saturating_add(1));
            files.push((first, reader));
            if begins_before {
                break;
            }
        }
        let (mut lines, mut last) = (Vec::new(), after);
        for (first, reader) in files.into_iter().rev() {
            for line in std::iter::once(Ok(first)).chain(reader.split(b'\n')) {
                let line = line?;
                // A line that was cut off may not be UTF-8.
                let line = String::from_utf8_lossy(&line);
                let line = line.trim_end();
                // A file that was renamed meanwhile is read twice.
                let Some(number) = line::number(line).filter(|number| *number > last) else { continue };
                if lines.len() == max {
                    return Ok(lines);
                }
                last = number;
                lines.push((number, line.to_owned()));
            }
        }
        Ok(lines)
    }

    fn newest_first(&self) -> impl Iterator<Item = PathBuf> {
        (0..=self.limits.max_files).map(|number| self.numbered(number))
    }

    /// The current file is number 0.
    fn numbered(&self, number: usize) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        if number > 0 {
            name.push(format!(".{number}"));
        }
        name.into()
    }

    /// Renames all files to the next number; the oldest one is removed.
    fn rotate(&self) -> io::Result<()> {
        existing(fs::remove_file(self.numbered(self.limits.max_files)))?;
        for number in (0..self.limits.max_files).rev() {
            existing(fs::rename(self.numbered(number), self.numbered(number + 1)))?;
        }
        Ok(())
    }
}

impl OpenFile {
    pub(super) fn append(&mut self, files: &RotatedFiles, line: &[u8]) -> io::Result<()> {
        let is_full = self.size > 0 && self.size + line.len() as u64 > files.limits.max_size;
        if is_full {
            files.rotate()?;
            *self = files.open()?;
        }
        self.file.write_all(line)?;
        self.size += line.len() as u64;
        Ok(())
    }

    pub(super) fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }
}

fn last_number_in(path: &Path) -> io::Result<Option<u64>> {
    let Some(mut file) = existing(File::open(path))? else { return Ok(None) };
    let start = file.metadata()?.len().saturating_sub(TAIL);
    file.seek(SeekFrom::Start(start))?;
    let mut tail = Vec::new();
    file.read_to_end(&mut tail)?;
    Ok(String::from_utf8_lossy(&tail).lines().rev().find_map(line::number))
}

/// `None` where a file does not exist.
fn existing<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}
