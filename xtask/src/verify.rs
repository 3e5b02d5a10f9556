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

mod bombs;
mod extras;
mod faults;
mod fill;
mod kill;
mod lists;
mod malformed;
mod model;
mod poison;
mod races;
mod random;
mod recovery;
mod resume;
mod retention;
mod rpc;
mod slow_readers;
mod storm;
mod tck;
mod trial;
mod view;
mod writer;

use anyhow::{Result, bail};

/// One row of the matrix that can be run.
struct Row {
    id: &'static str,
    proves: &'static str,
    options: &'static str,
    run: fn(&[String]) -> Result<()>,
}

const ROWS: &[Row] = &[
    Row {
        id: "T-R1",
        proves: "kill -9 under load loses nothing, doubles nothing and leaves no gap",
        options: kill::OPTIONS,
        run: kill::run,
    },
    Row {
        id: "T-R7",
        proves: "a disk that fails, fills up or turns read-only stops the server, and nothing acknowledged is lost",
        options: faults::OPTIONS,
        run: faults::run,
    },
    Row {
        id: "T-R8",
        proves: "a store full of tasks is served again soon after kill -9, and what was at work ends soon",
        options: recovery::OPTIONS,
        run: recovery::run,
    },
    Row {
        id: "T-R9",
        proves: "a key sent many times at once makes one task, whatever is cut off",
        options: storm::OPTIONS,
        run: storm::run,
    },
    Row {
        id: "T-R10",
        proves: "a cancel and an end that meet leave one ending, and everybody is told the same",
        options: races::OPTIONS,
        run: races::run,
    },
    Row {
        id: "T-R11",
        proves: "a stream that is cut and resumed misses nothing and repeats nothing, also across kill -9",
        options: resume::OPTIONS,
        run: resume::run,
    },
    Row {
        id: "T-R14",
        proves: "a task that kills the process is given up, and every other task ends well",
        options: poison::OPTIONS,
        run: poison::run,
    },
    Row {
        id: "T-R16",
        proves: "tasks expire under load: gone, nothing else touched, no growth, live calls hardly slower",
        options: retention::OPTIONS,
        run: retention::run,
    },
    Row {
        id: "T-R20",
        proves: "random calls are answered as a reference of a few hundred lines says",
        options: model::OPTIONS,
        run: model::run,
    },
    Row {
        id: "T-D4",
        proves: "a request that is cheap to send and dear to read is refused soon and in little memory",
        options: bombs::OPTIONS,
        run: bombs::run,
    },
    Row {
        id: "slow-readers",
        proves: "clients that read too slowly are cut off, memory stays bounded, everybody else is served as before",
        options: slow_readers::OPTIONS,
        run: slow_readers::run,
    },
    Row {
        id: "T-S8",
        proves: "a malformed request is refused by the name of what is wrong, by every operation of every generation and binding",
        options: malformed::OPTIONS,
        run: malformed::run,
    },
    Row {
        id: "tck",
        proves: "the community's conformance kit passes, each test in at least one mode",
        options: tck::OPTIONS,
        run: tck::run,
    },
];

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
