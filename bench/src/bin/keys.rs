//! `keys [--rows N] [--hour N] [--dir DIR]`: compares index designs for idempotency keys and prints a table.
//!
//! The databases are created in a new directory, by default beside the program, and removed at the end.

use std::fs;
use std::path::{Path, PathBuf};

use a2ad_bench::args::Args;
use a2ad_bench::keys::{Design, Trial};
use anyhow::{Context, Result, ensure};

const ROWS: u64 = 1_000_000;
/// Rows in the first and in the last window of a sufficiently long run.
const WINDOW: u64 = 100_000;
const PIECES_PER_WINDOW: usize = 10;
const HOUR_ROWS: u64 = 250_000;

fn main() -> Result<()> {
    let mut args = Args::from_env()?;
    let rows = args.optional("--rows")?.unwrap_or(ROWS);
    let hour = args.optional("--hour")?.unwrap_or(HOUR_ROWS);
    let folder = match args.optional::<PathBuf>("--dir")? {
        Some(folder) => folder,
        None => std::env::current_exe()?
            .parent()
            .context("the program's directory is unknown; give --dir")?
            .into(),
    };
    args.finish()?;
    ensure!(rows >= 1_280 && hour > 0, "--rows must be at least 1280 and --hour at least 1");
    let scratch = Scratch(folder.join(format!("keys-{}", std::process::id())));
    let designs = [Design::None, Design::Tree, Design::Hours { rows: hour }, Design::Runs];
    let trials =
        designs.iter().zip('a'..).map(|(design, name)| Trial::open(*design, &scratch.0, &name.to_string()));
    let mut trials = trials.collect::<Result<Vec<_>>>()?;
    // Whole batches of 64.
    let piece = (WINDOW.min(rows / 2) / PIECES_PER_WINDOW as u64).next_multiple_of(64);
    let pieces = usize::try_from(rows.div_ceil(piece))?;
    for number in 0..pieces {
        // Rotates the order, so that no design always runs after the same other one.
        let turn = number % trials.len();
        trials.rotate_left(turn);
        for trial in &mut trials {
            trial.add_piece(piece)?;
        }
        trials.rotate_right(turn);
        if (number + 1) % PIECES_PER_WINDOW == 0 {
            eprintln!("{} rows", (number as u64 + 1) * piece);
        }
    }
    print_table(&trials, piece)
}

fn print_table(trials: &[Trial], piece: u64) -> Result<()> {
    let window = thousands((piece * PIECES_PER_WINDOW as u64) as f64);
    println!(
        "| keys | rows/s, first {window} | rows/s, last {window} | × none, first | × none, last | µs to find one |"
    );
    println!("|---|--:|--:|--:|--:|--:|");
    let none = trials[0].rates(PIECES_PER_WINDOW, piece);
    for trial in trials {
        let [first, last] = trial.rates(PIECES_PER_WINDOW, piece);
        let found =
            trial.probe()?.map_or_else(|| "–".to_owned(), |time| format!("{:.1}", time.as_secs_f64() * 1e6));
        let (of_first, of_last) = (first / none[0], last / none[1]);
        let name = trial.design().name();
        let (first, last) = (thousands(first), thousands(last));
        println!("| {name} | {first} | {last} | {of_first:.2} | {of_last:.2} | {found} |");
    }
    Ok(())
}

fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}

/// A directory that is removed when this is dropped.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let Self(path) = self;
        if let Err(error) = remove(path) {
            eprintln!("cannot remove {}: {error}", path.display());
        }
    }
}

fn remove(path: &Path) -> std::io::Result<()> {
    if path.exists() { fs::remove_dir_all(path) } else { Ok(()) }
}
