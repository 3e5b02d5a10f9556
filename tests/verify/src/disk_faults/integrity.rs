//! SQLite's own integrity check of a store whose server has stopped, run with Python where it is installed.

use std::path::Path;
use std::process::Command;

const CHECK: &str = "import sqlite3, sys; \
                     print(sqlite3.connect(sys.argv[1]).execute('PRAGMA integrity_check').fetchone()[0])";

pub(crate) enum IntegrityCheck {
    Passed,
    Damaged(String),
    /// Python or its SQLite module is not installed.
    Unavailable,
}

pub(crate) fn check(store: &Path) -> IntegrityCheck {
    let output = Command::new("python3").args(["-c", CHECK]).arg(store).output();
    match output {
        Ok(output) if output.status.success() => match String::from_utf8_lossy(&output.stdout).trim() {
            "ok" => IntegrityCheck::Passed,
            damage => IntegrityCheck::Damaged(damage.to_owned()),
        },
        Ok(output) if String::from_utf8_lossy(&output.stderr).contains("sqlite3.") => {
            IntegrityCheck::Damaged(String::from_utf8_lossy(&output.stderr).trim().to_owned())
        }
        _ => IntegrityCheck::Unavailable,
    }
}
