//! A second opinion on a store whose server has stopped: SQLite's own check, by way of Python, where that is here.

use std::path::Path;
use std::process::Command;

const CHECK: &str = "import sqlite3, sys; \
                     print(sqlite3.connect(sys.argv[1]).execute('PRAGMA integrity_check').fetchone()[0])";

/// What SQLite says of the file.
pub(crate) enum Opinion {
    Sound,
    Damaged(String),
    /// Nobody is here to ask.
    None,
}

pub(crate) fn check(store: &Path) -> Opinion {
    let asked = Command::new("python3").args(["-c", CHECK]).arg(store).output();
    match asked {
        Ok(output) if output.status.success() => match String::from_utf8_lossy(&output.stdout).trim() {
            "ok" => Opinion::Sound,
            damage => Opinion::Damaged(damage.to_owned()),
        },
        Ok(output) if String::from_utf8_lossy(&output.stderr).contains("sqlite3.") => {
            Opinion::Damaged(String::from_utf8_lossy(&output.stderr).trim().to_owned())
        }
        _ => Opinion::None,
    }
}
