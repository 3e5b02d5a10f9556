//! `<store>.keys/`: secrets that belong to a store and are not in its database. Each has a file of its own: one line, or
//! a PEM document.
//!
//! Only the user of the server may read them. Permissions that others have are removed when a file is read, because some
//! systems add them whenever they mount a volume; the caller reports it.

use std::{
    fs::{self, File, Permissions},
    io::{self, Read as _, Write as _},
    os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _},
    path::{Path, PathBuf},
};

use protocol::model::Secret;

use super::file_lock::FILE_MODE;

use super::store_files::StorePath;

/// The end of the folder's name.
pub(crate) const SUFFIX: &str = ".keys";
/// The end of the name of a file that is being written.
pub(crate) const UNFINISHED: &str = ".unfinished";
/// Permissions of the folder.
pub(crate) const FOLDER_MODE: u32 = 0o700;
/// The permissions of everybody but the owner.
const OTHERS: u32 = 0o077;
/// The shortest and longest key of one line.
const MIN_LENGTH: usize = 32;
const MAX_LENGTH: usize = 512;
/// The longest PEM document.
const MAX_DOCUMENT: usize = 16 << 10;

/// What the file of a key contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyForm {
    /// One line of visible characters.
    Line,
    /// A PEM document (RFC 7468).
    Pem,
}

/// The folder with the keys of a store.
#[derive(Clone, Debug)]
pub struct KeyFolder(PathBuf);

/// A key that is in its file.
#[derive(Debug)]
pub struct KeyFile {
    /// The file.
    pub path: PathBuf,
    /// Its text.
    pub key: Secret,
    /// How it was found.
    pub origin: KeyOrigin,
}

/// How a key was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyOrigin {
    /// There was none: it was made.
    Made,
    /// The file had it.
    Found,
    /// The same, and others had permissions for the file or the folder, which were removed.
    FoundExposed,
}

/// Why a key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The file or folder cannot be read or written.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        reason: io::Error,
    },
    /// Others may read or change it, and that cannot be corrected.
    #[error("{} is accessible to other users (mode {mode:o}) and that cannot be changed: {reason}; run chmod go= {}", path.display(), path.display())]
    Exposed {
        /// The file or folder.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
        /// The error of the operating system.
        reason: io::Error,
    },
    /// The file has no key.
    #[error("{} has no key: expected {}; remove the file to get a new key at the next start", path.display(), form.description())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// What it has to contain.
        form: KeyForm,
    },
}

impl KeyForm {
    fn description(self) -> String {
        match self {
            Self::Line => format!("one line of {MIN_LENGTH} to {MAX_LENGTH} visible ASCII characters"),
            Self::Pem => format!("a PEM document of at most {MAX_DOCUMENT} bytes"),
        }
    }

    fn max_length(self) -> usize {
        match self {
            Self::Line => MAX_LENGTH,
            Self::Pem => MAX_DOCUMENT,
        }
    }

    fn matches(self, text: &str) -> bool {
        let is_visible = |byte: u8| byte.is_ascii_graphic();
        match self {
            Self::Line => (MIN_LENGTH..=MAX_LENGTH).contains(&text.len()) && text.bytes().all(is_visible),
            Self::Pem => {
                let is_allowed = |byte: u8| is_visible(byte) || matches!(byte, b' ' | b'\r' | b'\n');
                text.len() <= MAX_DOCUMENT
                    && text.starts_with("-----BEGIN ")
                    && text.contains("\n-----END ")
                    && text.ends_with("-----")
                    && text.bytes().all(is_allowed)
            }
        }
    }
}

impl KeyFileError {
    /// For `map_err`: an error of the operating system with the file that it is about.
    fn file(path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |reason| Self::File { path: path.to_owned(), reason }
    }
}

impl KeyFolder {
    /// The folder of the store at this path.
    pub fn of(store: &Path) -> Self {
        Self(StorePath::of(store).beside(SUFFIX))
    }

    /// The file of a key.
    pub fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    /// Reads a key of one line; `None` if there is no file.
    pub fn read(&self, name: &str) -> Result<Option<KeyFile>, KeyFileError> {
        self.read_form(name, KeyForm::Line)
    }

    /// Reads a key of this form; `None` if there is no file.
    pub fn read_form(&self, name: &str, form: KeyForm) -> Result<Option<KeyFile>, KeyFileError> {
        let path = self.path(name);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(KeyFileError::file(&path)(error)),
        };
        let folder = File::open(&self.0).map_err(KeyFileError::file(&self.0))?;
        // Both, also if the first was exposed.
        let was_exposed = close_to_others(&folder, &self.0)? | close_to_others(&file, &path)?;
        let mut text = String::new();
        let limit = (form.max_length() + "\r\n".len() + 1) as u64;
        file.take(limit).read_to_string(&mut text).map_err(KeyFileError::file(&path))?;
        let key = text.trim_end_matches(['\r', '\n']);
        if !form.matches(key) {
            return Err(KeyFileError::Invalid { path, form });
        }
        let origin = if was_exposed { KeyOrigin::FoundExposed } else { KeyOrigin::Found };
        Ok(Some(KeyFile { key: Secret::new(key), path, origin }))
    }

    /// Reads a key of one line. If there is no file, it is written with what `make` returns. Only the process that has the
    /// store open may call this.
    pub fn read_or_make(&self, name: &str, make: impl FnOnce() -> String) -> Result<KeyFile, KeyFileError> {
        self.read_or_make_form(name, KeyForm::Line, make)
    }

    /// The same for a key of this form.
    pub fn read_or_make_form(
        &self,
        name: &str,
        form: KeyForm,
        make: impl FnOnce() -> String,
    ) -> Result<KeyFile, KeyFileError> {
        if let Some(found) = self.read_form(name, form)? {
            return Ok(found);
        }
        let path = self.path(name);
        self.create_folder().map_err(KeyFileError::file(&self.0))?;
        let key = Secret::new(make());
        self.write(name, &key).map_err(KeyFileError::file(&path))?;
        Ok(KeyFile { path, key, origin: KeyOrigin::Made })
    }

    fn create_folder(&self) -> io::Result<()> {
        match fs::DirBuilder::new().mode(FOLDER_MODE).create(&self.0) {
            Ok(()) => sync(self.0.parent().unwrap_or(Path::new("."))),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && self.0.is_dir() => {
                fs::set_permissions(&self.0, Permissions::from_mode(FOLDER_MODE))
            }
            Err(error) => Err(error),
        }
    }

    /// Writes a file that is complete as soon as it has its name.
    fn write(&self, name: &str, key: &Secret) -> io::Result<()> {
        let unfinished = self.path(&format!(".{name}{UNFINISHED}"));
        match fs::remove_file(&unfinished) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = File::options().write(true).create_new(true).mode(FILE_MODE).open(&unfinished)?;
        file.write_all(format!("{}\n", key.expose()).as_bytes())?;
        file.sync_all()?;
        fs::rename(&unfinished, self.path(name))?;
        sync(&self.0)
    }
}

/// Removes the permissions of everybody but the owner; returns whether there were any.
fn close_to_others(file: &File, path: &Path) -> Result<bool, KeyFileError> {
    let mode = file.metadata().map_err(KeyFileError::file(path))?.permissions().mode() & 0o7777;
    if mode & OTHERS == 0 {
        return Ok(false);
    }
    let closed = file.set_permissions(Permissions::from_mode(mode & !OTHERS));
    closed.map_err(|reason| KeyFileError::Exposed { path: path.to_owned(), mode, reason })?;
    Ok(true)
}

fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "0123456789abcdef0123456789abcdef";

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    fn made() -> (tempfile::TempDir, KeyFolder) {
        let folder = tempfile::tempdir().unwrap();
        let keys = KeyFolder::of(&folder.path().join("a2ad.db"));
        assert!(keys.read("admin").unwrap().is_none());
        let made = keys.read_or_make("admin", || KEY.into()).unwrap();
        assert_eq!((made.key.expose(), made.origin), (KEY, KeyOrigin::Made));
        assert_eq!(made.path, keys.path("admin"));
        (folder, keys)
    }

    #[test]
    fn a_key_is_made_once_and_only_its_owner_can_read_it() {
        let (folder, keys) = made();
        assert_eq!((mode(&keys.0), mode(&keys.path("admin"))), (0o700, 0o600));
        let found = keys.read_or_make("admin", || panic!("it exists")).unwrap();
        assert_eq!((found.key.expose(), found.origin), (KEY, KeyOrigin::Found));
        let names = fs::read_dir(&keys.0).unwrap().map(|entry| entry.unwrap().file_name());
        assert_eq!(names.collect::<Vec<_>>(), ["admin"]);
        // Another key in the same folder, after a crash while it was written.
        fs::write(keys.path(".seal.unfinished"), "half").unwrap();
        keys.read_or_make("seal", || KEY.into()).unwrap();
        assert_eq!((mode(&keys.path("seal")), fs::read_dir(&keys.0).unwrap().count()), (0o600, 2));
        assert!(folder.path().join("a2ad.db.keys/seal").exists());
    }

    #[test]
    fn permissions_of_others_are_removed_and_reported() {
        for (folder_mode, file_mode) in [(0o755, 0o600), (0o700, 0o644), (0o2770, 0o660), (0o700, 0o604)] {
            let (_folder, keys) = made();
            fs::set_permissions(&keys.0, Permissions::from_mode(folder_mode)).unwrap();
            fs::set_permissions(keys.path("admin"), Permissions::from_mode(file_mode)).unwrap();
            let found = keys.read("admin").unwrap().unwrap();
            assert_eq!((found.key.expose(), found.origin), (KEY, KeyOrigin::FoundExposed));
            assert_eq!((mode(&keys.0) & 0o777, mode(&keys.path("admin"))), (0o700, 0o600));
            assert_eq!(keys.read("admin").unwrap().unwrap().origin, KeyOrigin::Found);
        }
    }

    #[test]
    fn a_pem_document_is_a_key_of_its_own_form() {
        let (_folder, keys) = made();
        let document = format!("-----BEGIN PRIVATE KEY-----\n{KEY}\n{KEY}\n-----END PRIVATE KEY-----");
        let make = || keys.read_or_make_form("push", KeyForm::Pem, || document.clone()).unwrap();
        assert_eq!(make().origin, KeyOrigin::Made);
        assert_eq!((make().origin, make().key.expose()), (KeyOrigin::Found, document.as_str()));
        assert_eq!(mode(&keys.path("push")), 0o600);
        assert!(matches!(keys.read("push"), Err(KeyFileError::Invalid { form: KeyForm::Line, .. })));
        for text in [KEY, "", "-----BEGIN PRIVATE KEY-----\n", &format!("{document}\u{e9}-----")] {
            fs::write(keys.path("push"), text).unwrap();
            let error = keys.read_form("push", KeyForm::Pem).unwrap_err();
            assert!(error.to_string().contains("expected a PEM document"), "{error}");
        }
    }

    #[test]
    fn a_file_without_a_key_is_reported_and_kept() {
        let (_folder, keys) = made();
        let path = keys.path("admin");
        for text in
            ["", "\n", "short\n", &format!("{KEY} {KEY}\n"), &format!("{KEY}\n\n{KEY}"), &"x".repeat(600)]
        {
            fs::write(&path, text).unwrap();
            let error = keys.read_or_make("admin", || panic!("it exists")).unwrap_err();
            assert!(matches!(error, KeyFileError::Invalid { .. }), "{error}");
            assert!(!error.to_string().contains("0123456789abcdef"), "{error}");
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        for text in [KEY.to_owned(), format!("{KEY}\r\n"), "x".repeat(512)] {
            fs::write(&path, &text).unwrap();
            assert_eq!(keys.read("admin").unwrap().unwrap().key.expose(), text.trim_end());
        }
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(matches!(keys.read("admin"), Err(KeyFileError::File { .. })));
        fs::remove_dir_all(&keys.0).unwrap();
        fs::write(&keys.0, "a file").unwrap();
        let error = keys.read_or_make("admin", || KEY.into()).unwrap_err();
        assert!(error.to_string().contains("a2ad.db.keys"), "{error}");
    }
}
