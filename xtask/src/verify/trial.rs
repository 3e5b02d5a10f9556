//! What the rows of the matrix have in common: options as typed, a program and an empty place for its store, one
//! line of JSON as the result, and the verdict.
//!
//! A row that is one size, one seed and one program is a [`Trial`]; it only says what it does with them. T-R1
//! has a control and a report of its own and uses the pieces. Deliberately not here: what a row proves.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use super::random::fresh_seed;
use crate::{room, server};

const FINDINGS_SHOWN: usize = 20;

/// One run of a row.
pub(crate) struct Trial {
    id: &'static str,
    /// How much is done, in the unit of the row.
    pub(crate) size: u64,
    pub(crate) seed: u64,
    /// A program built elsewhere; without it, the one of the test profile is built.
    program: Option<PathBuf>,
}

/// What a run saw.
pub(crate) struct Seen {
    /// What was looked at: an object. A verdict of nothing found is worth that much.
    pub(crate) figures: Value,
    /// What should not be, each in a sentence.
    pub(crate) findings: Vec<String>,
}

/// The program under test and the place of its store, for as long as the run takes.
pub(crate) struct Stand {
    pub(crate) program: PathBuf,
    pub(crate) store: PathBuf,
}

impl Trial {
    /// Reads `<size> N`, `--seed S` and `--binary PATH`.
    pub(crate) fn parse(id: &'static str, size: &str, usual: u64, args: &[String]) -> Result<Self> {
        let mut trial = Self { id, size: usual, seed: fresh_seed(), program: None };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--seed" => trial.seed = number(arg, args.next())?,
                "--binary" => trial.program = Some(args.next().context("--binary wants a path")?.into()),
                name if name == size => trial.size = number(arg, args.next())?,
                _ => bail!("{id} does not know {arg}; it takes [{size} N] [--seed S] [--binary PATH]"),
            }
        }
        ensure!(trial.size > 0, "{size} wants at least 1");
        Ok(trial)
    }

    /// Runs `work` on a runtime of its own, prints and keeps the result, and returns the verdict.
    pub(crate) fn run(&self, work: impl AsyncFnOnce(&Stand) -> Result<Seen>) -> Result<()> {
        eprintln!("{}: seed {}, size {}", self.id, self.seed, self.size);
        let program = match &self.program {
            Some(program) => std::path::absolute(program)?,
            None => server::build()?,
        };
        let place = fresh_place(self.id, self.seed)?;
        let stand = Stand { program, store: place.join("store.db") };
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let started = Instant::now();
        let verdict = runtime.block_on(work(&stand)).and_then(|seen| self.publish(&seen, started));
        match &verdict {
            Ok(()) => fs::remove_dir_all(&place).context("cannot clear the place of the store")?,
            Err(_) => {
                let log = fs::read(stand.store.with_extension("log")).unwrap_or_default();
                eprintln!(
                    "the end of the server's log:\n{}",
                    server::last_words(&String::from_utf8_lossy(&log))
                );
                let free = room::free(&place).map_or_else(|error| error.to_string(), room::shown);
                let place = place.display();
                eprintln!(
                    "{}: the store and the server's log are kept in {place}, on a disk with {free} free",
                    self.id
                );
            }
        }
        verdict
    }

    fn publish(&self, seen: &Seen, started: Instant) -> Result<()> {
        for finding in seen.findings.iter().take(FINDINGS_SHOWN) {
            eprintln!("{finding}");
        }
        let hidden = seen.findings.len().saturating_sub(FINDINGS_SHOWN);
        if hidden > 0 {
            eprintln!("and {hidden} more");
        }
        let mut line = seen.figures.clone();
        line["id"] = self.id.into();
        line["seed"] = self.seed.into();
        line["findings"] = seen.findings.len().into();
        line["elapsed_ms"] = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX).into();
        line["passed"] = seen.findings.is_empty().into();
        println!("{line}");
        let kept = server::target()?.join("verify").join(format!("{}.json", self.id));
        fs::write(kept, format!("{line}\n")).context("cannot keep the result")?;
        ensure!(seen.findings.is_empty(), "{} failed with seed {}", self.id, self.seed);
        Ok(())
    }
}

/// An empty directory for the store and the server's log; what an earlier run of the same seed left is cleared.
pub(crate) fn fresh_place(name: &str, seed: u64) -> Result<PathBuf> {
    let place = server::target()?.join("verify").join(format!("{name}-{seed}"));
    clear(&place)?;
    fs::create_dir_all(&place).context("cannot make a place for the store")?;
    Ok(place)
}

fn clear(place: &Path) -> Result<()> {
    if place.exists() {
        fs::remove_dir_all(place).context("cannot clear the place of the store")?;
    }
    Ok(())
}

fn number<T: FromStr>(name: &str, value: Option<&String>) -> Result<T> {
    value.and_then(|value| value.parse().ok()).with_context(|| format!("{name} wants a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Trial> {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Trial::parse("T-X", "--sends", 7, &args)
    }

    #[test]
    fn options_are_read_and_defaults_hold() {
        let trial = parse("--sends 3 --seed 9 --binary x").unwrap();
        assert_eq!((trial.size, trial.seed, trial.program), (3, 9, Some("x".into())));
        assert_eq!(parse("").unwrap().size, 7);
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        for (line, name) in [("--races 3", "--races"), ("--sends", "--sends"), ("--seed x", "--seed")] {
            let refused = parse(line).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(refused.contains(name), "{line}");
        }
        assert!(parse("--sends 0").is_err());
    }
}
