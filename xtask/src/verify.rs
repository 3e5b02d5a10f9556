//! `cargo xtask verify <id>`: proves one row of the test matrix against the real program and says so in one line
//! of JSON.
//!
//! Each row is one file that reads its own options, prints its seed and figures, and fails on any violation.
//! Deliberately not here: tests that need no process of their own; those are `cargo xtask test`.
#![allow(
    clippy::disallowed_types,
    reason = "the harness looks into answers freely; it keeps no exact numbers"
)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "data to stdout, talk to stderr")]

mod kill;
mod lists;
mod random;
mod rpc;
mod trial;
mod view;

use anyhow::{Result, bail};

/// One row of the matrix that can be run.
struct Row {
    id: &'static str,
    proves: &'static str,
    options: &'static str,
    run: fn(&[String]) -> Result<()>,
}

const ROWS: &[Row] = &[Row {
    id: "T-R1",
    proves: "kill -9 under load loses nothing, doubles nothing and leaves no gap",
    options: kill::OPTIONS,
    run: kill::run,
}];

/// Runs the row named by the first argument with the rest as its options.
pub(crate) fn run(args: Vec<String>) -> Result<()> {
    let mut args = args.into_iter();
    let Some(id) = args.next() else {
        bail!("say which row to verify\n{}", table());
    };
    let options: Vec<String> = args.collect();
    match ROWS.iter().find(|row| row.id == id) {
        Some(row) => (row.run)(&options),
        None => bail!("no row {id} can be verified\n{}", table()),
    }
}

fn table() -> String {
    let line = |row: &Row| format!("  cargo xtask verify {} {}\n      {}\n", row.id, row.options, row.proves);
    ROWS.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_row_names_those_there_are() {
        let error = run(vec!["T-X9".to_owned()]).unwrap_err().to_string();
        assert!(error.contains("T-X9") && error.contains("T-R1"), "{error}");
    }
}
