//! Which files of a folder are skills, and whether any has changed.

use std::{
    collections::BTreeMap,
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use super::super::FileStamp;

/// Ends of the names of backups and of files that are being written.
const IGNORED_ENDS: [&str; 10] =
    ["~", "#", ".swp", ".swo", ".swx", ".tmp", ".bak", ".orig", ".part", ".crdownload"];
/// The extensions of files that define skills whether they are executable or not.
const DOCUMENTS: [&str; 4] = ["toml", "json", "yaml", "yml"];
/// Any of the execute permissions.
const EXECUTABLE: u32 = 0o111;

/// The files of a folder that may define skills, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Listing {
    folder: PathBuf,
    files: BTreeMap<String, FileState>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct FileState {
    stamp: FileStamp,
    executable: bool,
}

/// A file that defines skills.
pub(super) struct FolderFile {
    /// Its name without the extension.
    pub(super) id: String,
    pub(super) path: PathBuf,
    pub(super) kind: FileKind,
}

/// What a file is, by its extension, else by its permissions.
pub(super) enum FileKind {
    Executable {
        name: String,
    },
    OpenApi {
        name: String,
    },
    /// With the executable of the same name beside it.
    Toml {
        executable: Option<String>,
    },
}

impl Listing {
    /// The files at this moment; none if the folder cannot be read. Names that are not UTF-8 are ignored.
    pub(crate) fn of(folder: &Path) -> Self {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let listed = entries.filter_map(|entry| {
            let name = entry.file_name().into_string().ok().filter(|name| !is_ignored(name))?;
            // Follows links: a mounted ConfigMap consists of them.
            let metadata = fs::metadata(entry.path()).ok().filter(fs::Metadata::is_file)?;
            let executable = metadata.permissions().mode() & EXECUTABLE != 0;
            let may_define_skills = executable || DOCUMENTS.contains(&split(&name).1);
            may_define_skills.then(|| (name, FileState { stamp: FileStamp::from(&metadata), executable }))
        });
        Self { folder: folder.to_owned(), files: listed.collect() }
    }

    /// The files that are as they were before. Others may be incomplete: somebody writes them.
    pub(crate) fn settled(mut self, before: &Self) -> Self {
        self.files.retain(|name, listed| before.files.get(name) == Some(listed));
        self
    }

    /// Whether it has every file of `loaded` that still exists.
    pub(crate) fn has_all_of(&self, loaded: &Self, existing: &Self) -> bool {
        let exists = |name: &&String| existing.files.contains_key(*name);
        loaded.files.keys().filter(exists).all(|name| self.files.contains_key(name))
    }

    /// The folder whose files it lists.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The files that define skills, ordered by name.
    pub(super) fn files(&self) -> Vec<FolderFile> {
        let file = |name: &String| {
            let (id, extension) = split(name);
            let kind = match extension {
                "toml" => FileKind::Toml { executable: self.executable_beside(name) },
                _ if self.files.contains_key(&format!("{id}.toml")) => return None,
                "json" | "yaml" | "yml" => FileKind::OpenApi { name: name.clone() },
                _ => FileKind::Executable { name: name.clone() },
            };
            Some(FolderFile { id: id.to_owned(), path: self.folder.join(name), kind })
        };
        self.files.keys().filter_map(file).collect()
    }

    fn executable_beside(&self, toml: &str) -> Option<String> {
        let is_beside = |(name, listed): &(&String, &FileState)| {
            let (id, extension) = split(name);
            id == split(toml).0 && listed.executable && !DOCUMENTS.contains(&extension)
        };
        self.files.iter().find(is_beside).map(|(name, _)| name.clone())
    }
}

/// The name and the extension.
fn split(name: &str) -> (&str, &str) {
    name.rsplit_once('.').unwrap_or((name, ""))
}

fn is_ignored(name: &str) -> bool {
    name.starts_with(['.', '#']) || IGNORED_ENDS.iter().any(|end| name.ends_with(end))
}
