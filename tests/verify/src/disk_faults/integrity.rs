//! SQLite's own integrity check of a store whose server has stopped, run with Python where it is installed.

use std::path::Path;
use std::process::Command;

const CHECK: &str = "import sqlite3, sys; \
                     print(sqlite3.connect(sys.argv[1]).execute('PRAGMA integrity_check').fetchone()[0])";

/// What is damaged, if anything; without Python and its SQLite module nothing is checked.
pub(crate) fn damage(store: &Path) -> Option<String> {
    let output = Command::new("python3").args(["-c", CHECK]).arg(store).output().ok()?;
    let [printed, failed] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    match output.status.success() {
        true => Some(printed.trim()).filter(|printed| *printed != "ok").map(str::to_owned),
        false => failed.contains("sqlite3.").then(|| failed.trim().to_owned()),
    }
}
