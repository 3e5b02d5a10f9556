//! Where the program of a command is.

use std::{
    env, io,
    path::{Path, PathBuf},
};

use rustix::fs::{Access, access};

use super::Launch;

/// The absolute path of a program: searched in the `PATH` that the command gets if its name has no slash, else relative
/// to the working directory of the command.
///
/// # Errors
///
/// There is no such program. The text names it.
pub(super) fn find(name: &str, launch: &Launch) -> io::Result<PathBuf> {
    let Launch { env: listed, cwd, .. } = launch;
    if !name.contains('/') {
        let path = listed.get("PATH").map(Into::into).or_else(|| env::var_os("PATH")).unwrap_or_default();
        let found = env::split_paths(&path).map(|folder| folder.join(name)).find(|path| is_executable(path));
        return match found {
            Some(program) => std::path::absolute(program),
            None => Err(not_found(format!(
                "the program {name:?} was not found in PATH; install it, or write its path"
            ))),
        };
    }
    let program = std::path::absolute(cwd.as_deref().unwrap_or(Path::new("")).join(name))?;
    if is_executable(&program) {
        return Ok(program);
    }
    Err(if program.is_file() {
        let text = format!("the program {name:?} is not executable; set its permission (chmod +x)");
        io::Error::new(io::ErrorKind::PermissionDenied, text)
    } else {
        not_found(format!("the program {name:?} does not exist"))
    })
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}

fn not_found(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_is_found_in_path_or_relative_to_the_working_directory() {
        let here = Launch::default();
        assert!(find("sh", &here).unwrap().is_absolute());
        let in_bin = Launch { cwd: Some("/bin".into()), ..Launch::default() };
        assert_eq!(find("./sh", &in_bin).unwrap(), Path::new("/bin/sh"));
        let error = find("no-such-program", &here).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::NotFound);
        assert!(error.to_string().contains("\"no-such-program\" was not found in PATH"), "{error}");
        let error = find("/etc/passwd", &here).unwrap_err();
        assert!(error.to_string().contains("is not executable"), "{error}");
    }

    #[test]
    fn listed_path_replaces_that_of_the_server() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/bin/sh", folder.path().join("only-here")).unwrap();
        let env = [("PATH".to_owned(), folder.path().to_str().unwrap().to_owned())].into();
        let launch = Launch { env, ..Launch::default() };
        assert_eq!(find("only-here", &launch).unwrap(), folder.path().join("only-here"));
        assert!(find("sh", &launch).is_err());
    }
}
