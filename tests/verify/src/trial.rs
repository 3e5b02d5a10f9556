//! What the proofs have in common: parsing of options, the program and an empty directory for its store, the result
//! as one line of JSON, and the verdict.
//!
//! A proof is a [`Trial`] (one size, one seed and one program) with a function that runs the work. Deliberately not
//! here: what a proof checks.

use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use tokio::task::JoinSet;

use super::random::fresh_seed;
use crate::server::{self, Server};

const FINDINGS_SHOWN: usize = 20;
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// One run of a proof.
pub(crate) struct Trial {
    name: &'static str,
    /// Amount of work, in the unit of the proof.
    pub(crate) size: u64,
    pub(crate) seed: u64,
    /// The path of the program under test.
    program: Option<PathBuf>,
}

/// The result of a run.
pub(crate) struct ProofResult {
    /// A JSON object with what was measured and how much was checked: a run without findings proves only that much.
    pub(crate) figures: Value,
    /// Violations, one sentence each.
    pub(crate) findings: Vec<String>,
}

/// The program under test and the path of its store, valid for one run.
pub(crate) struct Setup {
    pub(crate) program: PathBuf,
    pub(crate) store: PathBuf,
}

impl Trial {
    /// Parses `<size> N`, `--seed S` and `--binary PATH`.
    pub(crate) fn parse(name: &'static str, size: &str, default: u64, args: &[String]) -> Result<Self> {
        let mut trial = Self { name, size: default, seed: fresh_seed(), program: None };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            match arg.as_str() {
                "--seed" => trial.seed = number(arg, args.next())?,
                "--binary" => trial.program = Some(args.next().context("--binary takes a path")?.into()),
                name if name == size => trial.size = number(arg, args.next())?,
                _ => bail!("{name}: unknown argument {arg}; expected [{size} N] [--seed S] [--binary PATH]"),
            }
        }
        ensure!(trial.size > 0, "{size} must be at least 1");
        Ok(trial)
    }

    /// Runs `work` on its own runtime, prints and saves the result, and returns the verdict.
    pub(crate) fn run(&self, work: impl AsyncFnOnce(&Setup) -> Result<ProofResult>) -> Result<()> {
        eprintln!("{}: seed {}, size {}", self.name, self.seed, self.size);
        let program = program(self.program.as_deref())?;
        let dir = fresh_dir(self.name, self.seed)?;
        let setup = Setup { program, store: dir.join("store.db") };
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
        let started = Instant::now();
        let verdict = runtime.block_on(work(&setup)).and_then(|seen| self.publish(&seen, started));
        match &verdict {
            Ok(()) => fs::remove_dir_all(&dir).context("cannot remove the directory of the store")?,
            Err(_) => {
                let log = fs::read(setup.store.with_extension("log")).unwrap_or_default();
                eprintln!(
                    "the end of the server's log:\n{}",
                    server::last_lines(&String::from_utf8_lossy(&log))
                );
                let free = rustix::fs::statvfs(&dir).map_or(0, |disk| (disk.f_bavail * disk.f_frsize) >> 20);
                let dir = dir.display();
                eprintln!(
                    "{}: the store and the server's log are in {dir}, on a disk with {free} MiB free",
                    self.name
                );
            }
        }
        verdict
    }

    fn publish(&self, seen: &ProofResult, started: Instant) -> Result<()> {
        for finding in seen.findings.iter().take(FINDINGS_SHOWN) {
            eprintln!("{finding}");
        }
        let hidden = seen.findings.len().saturating_sub(FINDINGS_SHOWN);
        if hidden > 0 {
            eprintln!("and {hidden} more");
        }
        let mut line = seen.figures.clone();
        line["id"] = self.name.into();
        line["seed"] = self.seed.into();
        line["findings"] = seen.findings.len().into();
        line["elapsed_ms"] = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX).into();
        line["passed"] = seen.findings.is_empty().into();
        println!("{line}");
        let kept = verify_dir()?.join(format!("{}.json", self.name));
        fs::write(kept, format!("{line}\n")).context("cannot save the result")?;
        ensure!(seen.findings.is_empty(), "{} failed with seed {}", self.name, self.seed);
        Ok(())
    }
}

/// Runs all futures concurrently and collects their results.
pub(crate) async fn in_parallel<T: Send + 'static>(
    workers: impl Iterator<Item = impl Future<Output = T> + Send + 'static>,
) -> Vec<T> {
    let workers: JoinSet<T> = workers.collect();
    workers.join_all().await
}

/// Stops the server with SIGTERM; any exit status but success is a finding.
pub(crate) async fn stop(server: Server, findings: &mut Vec<String>) -> Result<()> {
    let status = server.terminate(STOP_LIMIT).await?;
    if !status.success() {
        findings.push(format!("the server exited with {status} on SIGTERM"));
    }
    Ok(())
}

/// The absolute path of the program under test.
fn program(given: Option<&Path>) -> Result<PathBuf> {
    let given =
        given.context("--binary PATH is missing; `cargo xtask verify` builds the program and passes it")?;
    Ok(std::path::absolute(given)?)
}

/// The directory for stores and results, in the target directory that holds this program.
fn verify_dir() -> Result<PathBuf> {
    let this = std::env::current_exe().context("cannot find the target directory")?;
    Ok(this.ancestors().nth(2).context("the program is not in a target directory")?.join("verify"))
}

/// An empty directory for the store and the server's log; removes what an earlier run with the same seed left.
fn fresh_dir(name: &str, seed: u64) -> Result<PathBuf> {
    let dir = verify_dir()?.join(format!("{name}-{seed}"));
    clear(&dir)?;
    fs::create_dir_all(&dir).context("cannot create the directory of the store")?;
    Ok(dir)
}

fn clear(dir: &Path) -> Result<()> {
    if dir.exists() {
        fs::remove_dir_all(dir).context("cannot remove the directory of the store")?;
    }
    Ok(())
}

fn number<T: FromStr>(name: &str, value: Option<&String>) -> Result<T> {
    value.and_then(|value| value.parse().ok()).with_context(|| format!("{name} takes a number"))
}
