//! tck: the official conformance kit against a fresh server, in every mode it needs.
//!
//! `cargo xtask verify tck PATH`; PATH is a checkout of `a2aproject/a2a-tck`, whose branch is detected from its
//! files. The kit's own runner runs the tests, in an environment that is installed once and kept; a pytest plugin
//! loaded from here writes the outcome of each test. A test counts as passed when it passes in at least one mode.
//! No part of the kit is copied into this repository.
#![allow(clippy::disallowed_types, reason = "the kit's outcomes are read as JSON values; no numbers matter")]

mod kit;
mod known;
mod modes;
mod outcomes;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::json;
use tokio::process::Command;

use self::kit::{Kit, Part};
use self::modes::Mode;
use self::outcomes::{Outcome, Outcomes};
use crate::interop::python;
use crate::program;
use testkit::process::{Launch, Server};

pub(crate) const OPTIONS: &str =
    "PATH [--mode NAME] [--bindings jsonrpc,rest,grpc] [--part TEXT] [--binary PATH]";

/// How long the kits wait for an event, and therefore the agent under test too.
const STREAMING_TIMEOUT: &str = "2.0";
const PART_LIMIT: Duration = Duration::from_secs(900);
const STOP_LIMIT: Duration = Duration::from_secs(60);

struct Plan {
    folder: PathBuf,
    mode: Option<String>,
    bindings: Vec<String>,
    /// Only parts whose name contains this text.
    part: Option<String>,
    program: Option<PathBuf>,
}

/// Runs a kit; fails if a test passes in no mode without a known reason.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let plan = Plan::parse(args)?;
    let kit = Kit::of(&plan.folder)?;
    let modes: Vec<&Mode> = modes::of(kit)
        .iter()
        .filter(|mode| plan.mode.as_deref().is_none_or(|name| name == mode.name))
        .collect();
    let names = || modes::of(kit).iter().map(|mode| mode.name).collect::<Vec<_>>().join(", ");
    ensure!(!modes.is_empty(), "the kit {} has no such mode; its modes are {}", kit.name(), names());
    let mut parts = kit.parts(&plan.bindings)?;
    parts.retain(|part| plan.part.as_deref().is_none_or(|text| part.name.contains(text)));
    ensure!(!parts.is_empty(), "no part of the kit {} matches --part", kit.name());
    let program = match &plan.program {
        Some(program) => std::path::absolute(program)?,
        None => program::build()?,
    };
    let dir = program::target()?.join("tck").join(kit.name());
    fs::create_dir_all(&dir).context("cannot create the directory of the kit's environment")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let started = Instant::now();
    let mut seen = Vec::new();
    runtime.block_on(async {
        let python = environment(kit, &plan.folder, &dir).await?;
        for mode in &modes {
            let kit_run = KitRun { kit, folder: &plan.folder, program: &program, dir: &dir, python: &python };
            seen.push(kit_run.test(mode, &parts).await.with_context(|| format!("mode {}", mode.name))?);
        }
        anyhow::Ok(())
    })?;
    report(kit, &modes, &parts, &seen, started)
}

impl Plan {
    fn parse(args: &[String]) -> Result<Self> {
        let mut plan =
            Self { folder: PathBuf::new(), mode: None, bindings: Vec::new(), part: None, program: None };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value = || args.next().cloned().with_context(|| format!("{arg} takes a value"));
            match arg.as_str() {
                "--mode" => plan.mode = Some(value()?),
                "--bindings" => {
                    plan.bindings = value()?.split(',').map(|name| name.trim().to_owned()).collect()
                }
                "--part" => plan.part = Some(value()?),
                "--binary" => plan.program = Some(value()?.into()),
                path if !path.starts_with('-') && plan.folder.as_os_str().is_empty() => {
                    plan.folder = std::path::absolute(path)?;
                }
                other => bail!("tck: unknown argument {other}; expected {OPTIONS}"),
            }
        }
        ensure!(
            !plan.folder.as_os_str().is_empty(),
            "the path of a checkout of a2aproject/a2a-tck is missing: tck {OPTIONS}"
        );
        Ok(plan)
    }
}

/// The interpreter of an environment with the kit's dependencies; reinstalled when its list or the machine's Python
/// changes.
async fn environment(kit: Kit, folder: &Path, dir: &Path) -> Result<PathBuf> {
    let requirements = kit.requirements(folder)?;
    let list = dir.join("requirements.txt");
    fs::write(&list, requirements).context("cannot write the kit's list of packages")?;
    python::environment_with_dependencies(&list, &dir.join("environment")).await
}

/// What all runs have in common, without the mode.
struct KitRun<'a> {
    kit: Kit,
    folder: &'a Path,
    program: &'a Path,
    dir: &'a Path,
    python: &'a Path,
}

impl KitRun<'_> {
    /// Runs some parts against a fresh server in one mode.
    async fn test(&self, mode: &Mode, parts: &[Part]) -> Result<Outcomes> {
        let store = self.fresh_folder(mode)?.join("a2ad.db");
        let config = program::workspace().join("examples/tck.toml");
        let variables = mode.variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let timeout = ("TCK_STREAMING_TIMEOUT".into(), STREAMING_TIMEOUT.into());
        let launch = Launch {
            arguments: vec!["--config".into(), config.into()],
            variables: variables.chain([timeout]).collect(),
            ..Launch::default()
        };
        let server = Server::start_with(&launch, self.program, &store).await?;
        let mut outcomes = Outcomes::default();
        let only = mode.only.unwrap_or_default();
        for part in parts.iter().filter(|part| part.name.contains(only.0)) {
            eprintln!("{}, mode {}: {}", self.kit.name(), mode.name, part.name);
            // With a host name: a kit reports a card that shows an IP address as an information leak.
            let origin = format!("http://localhost:{}", server.address.port());
            let file = self.run(part, &origin, only.1).await?;
            outcomes.add(&part.name, &file)?;
        }
        let log = server.log();
        let panics = log.lines().filter(|line| line.contains("panicked")).count();
        let status = server.terminate(STOP_LIMIT).await?;
        ensure!(status.success(), "the server exited with {status} on SIGTERM");
        ensure!(panics == 0, "the server panicked {panics} times:\n{log}");
        Ok(outcomes)
    }

    /// Runs one part and returns the file with the outcomes of its tests. Test failures are only in that file, not
    /// in the exit status.
    async fn run(&self, part: &Part, origin: &str, only: &str) -> Result<PathBuf> {
        let plugin = self.dir.join("plugin");
        fs::create_dir_all(&plugin)?;
        fs::write(plugin.join("a2ad_outcomes.py"), include_str!("tck/outcomes.py"))?;
        let file = self.dir.join("outcomes.jsonl");
        if file.exists() {
            fs::remove_file(&file)?;
        }
        let log = fs::File::create(self.dir.join("kit.log"))?;
        let options = "-p a2ad_outcomes -p no:cacheprovider";
        let options = if only.is_empty() { options.to_owned() } else { format!("{options} -k '{only}'") };
        let mut command = Command::new(self.python);
        command
            .args(self.kit.command(part, origin))
            .current_dir(self.folder)
            .env("PYTHONPATH", &plugin)
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env("PYTEST_ADDOPTS", options)
            .env("TCK_OUTCOMES", &file)
            .env("TCK_STREAMING_TIMEOUT", STREAMING_TIMEOUT)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .kill_on_drop(true);
        let ended = tokio::time::timeout(PART_LIMIT, command.status()).await;
        ended.map_err(|_| anyhow::anyhow!("the kit did not end within {PART_LIMIT:?}"))??;
        Ok(file)
    }

    /// An empty directory.
    fn fresh_folder(&self, mode: &Mode) -> Result<PathBuf> {
        let folder = self.dir.join("store").join(mode.name);
        if folder.exists() {
            fs::remove_dir_all(&folder).context("cannot clear the store of an earlier run")?;
        }
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }
}

/// Prints the table, the failures of each mode and the tests that pass nowhere; fails if one of those has no known
/// reason.
fn report(kit: Kit, modes: &[&Mode], parts: &[Part], seen: &[Outcomes], started: Instant) -> Result<()> {
    println!("\nTCK {}: passed / failed / failed as expected / skipped", kit.name());
    for (mode, outcomes) in modes.iter().zip(seen) {
        println!("\n{} ({})", mode.name, mode.about);
        for part in parts {
            let row = outcomes.counts(Some(&part.name));
            if row.iter().sum::<usize>() > 0 {
                println!("  {:34} {}", part.name, counts(row));
            }
        }
        if parts.len() > 1 {
            println!("  {:34} {}", "all", counts(outcomes.counts(None)));
        }
        for (test, reason) in outcomes.failures() {
            println!("  failed: {test}\n          {}", short(reason));
        }
    }
    let (passed, never) = outcomes::never_passed(seen);
    println!("\nin at least one mode: {passed} passed, {} did not", never.len());
    let mut unknown = 0;
    for (test, outcome, why) in &never {
        let label = match outcome {
            Outcome::Failed => "failed",
            Outcome::ExpectedFailure => "failed as expected",
            Outcome::Skipped | Outcome::Passed => "skipped",
        };
        let known = known::reason(kit, test);
        unknown += usize::from(known.is_none() && *outcome == Outcome::Failed);
        println!("  {label}: {test}\n          {}", known.map_or_else(|| short(why), str::to_owned));
    }
    let line = json!({
        "id": "tck", "kit": kit.name(), "modes": modes.len(), "passed": passed, "not_passed": never.len(),
        "unknown_failures": unknown, "elapsed_ms": u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
    });
    println!("{line}");
    ensure!(unknown == 0, "{unknown} tests of the kit {} fail in every mode", kit.name());
    Ok(())
}

fn counts([passed, failed, expected, skipped]: [usize; 4]) -> String {
    format!("{passed:>4} / {failed:>3} / {expected:>3} / {skipped:>3}")
}

fn short(reason: &str) -> String {
    let line: String = reason.lines().next().unwrap_or_default().chars().take(200).collect();
    line
}
