//! Renames a finished copy, unless something has its name meanwhile.

use std::{fs, io, path::Path};

/// Gives a file or directory a name that nothing has; otherwise the error is [`io::ErrorKind::AlreadyExists`].
pub(super) fn to_new_name(from: &Path, to: &Path) -> io::Result<()> {
    match rename_exclusively(from, to) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            if to.symlink_metadata().is_ok() {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            fs::rename(from, to)
        }
        renamed => renamed,
    }
}

/// One step of the kernel. [`io::ErrorKind::Unsupported`] where the kernel or the file system does not have it.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the standard library has no rename that does not replace")]
fn rename_exclusively(from: &Path, to: &Path) -> io::Result<()> {
    use std::{ffi::CString, os::unix::ffi::OsStrExt as _};

    let [from, to] = [from, to].map(|path| CString::new(path.as_os_str().as_bytes()));
    let (from, to) = (from?, to?);
    // The system call itself: not every C library has the function.
    // SAFETY: both paths end with a zero byte and outlive the call.
    let result = unsafe {
        libc::syscall(
            libc::SYS_renameat2,
            libc::AT_FDCWD,
            from.as_ptr(),
            libc::AT_FDCWD,
            to.as_ptr(),
            libc::RENAME_NOREPLACE,
        )
    };
    if result == 0 {
        return Ok(());
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EINVAL | libc::ENOSYS) => Err(io::ErrorKind::Unsupported.into()),
        _ => Err(error),
    }
}

#[cfg(not(target_os = "linux"))]
fn rename_exclusively(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_is_taken_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let [from, to] = ["from", "to"].map(|name| folder.path().join(name));
        fs::write(&from, "new").unwrap();
        fs::write(&to, "old").unwrap();
        assert_eq!(to_new_name(&from, &to).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&to).unwrap(), b"old");
        fs::remove_file(&to).unwrap();
        to_new_name(&from, &to).unwrap();
        assert_eq!((fs::read(&to).unwrap(), from.exists()), (b"new".to_vec(), false));
    }
}
