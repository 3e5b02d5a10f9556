//! `cargo xtask verify tck PATH`: the community's conformance kit against a fresh server, in every mode it needs.
//!
//! PATH is a checkout of `a2aproject/a2a-tck`; which branch it is, its files tell. The kit's own runner does the testing,
//! in an environment of its own that is made once and kept; a plugin from outside tells what became of each test. A
//! test counts as passed when it passes in at least one mode. Nothing of the kit is kept here.

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
use crate::server::{self, Launch, Server};

pub(crate) const OPTIONS: &str =
    "PATH [--mode NAME] [--bindings jsonrpc,rest,grpc] [--part WORDS] [--binary PATH]";

/// How long the kits wait for an event, and the agent under test by that.
const STREAMING_TIMEOUT: &str = "2.0";
const PART_LIMIT: Duration = Duration::from_secs(900);
const STOP_LIMIT: Duration = Duration::from_secs(60);

/// What is to be run.
struct Plan {
    folder: PathBuf,
    mode: Option<String>,
    bindings: Vec<String>,
    /// Only parts whose name has this in it.
    part: Option<String>,
    program: Option<PathBuf>,
}

/// Runs a kit and fails if a test passes in no mode without a known reason.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let plan = Plan::parse(args)?;
    let kit = Kit::of(&plan.folder)?;
    let modes: Vec<&Mode> = modes::of(kit)
        .iter()
        .filter(|mode| plan.mode.as_deref().is_none_or(|name| name == mode.name))
        .collect();
    let names = || modes::of(kit).iter().map(|mode| mode.name).collect::<Vec<_>>().join(", ");
    ensure!(!modes.is_empty(), "the kit {} has no such mode; there are {}", kit.name(), names());
    let mut parts = kit.parts(&plan.bindings)?;
    parts.retain(|part| plan.part.as_deref().is_none_or(|words| part.name.contains(words)));
    ensure!(!parts.is_empty(), "no part of the kit {} has such a name", kit.name());
    let program = match &plan.program {
        Some(program) => std::path::absolute(program)?,
        None => server::build()?,
    };
    let place = server::target()?.join("tck").join(kit.name());
    fs::create_dir_all(&place).context("cannot make a place for the kit's environment")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let started = Instant::now();
    let mut seen = Vec::new();
    runtime.block_on(async {
        let python = environment(kit, &plan.folder, &place).await?;
        for mode in &modes {
            let stand =
                Stand { kit, folder: &plan.folder, program: &program, place: &place, python: &python };
            seen.push(stand.test(mode, &parts).await.with_context(|| format!("mode {}", mode.name))?);
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
            let mut value = || args.next().cloned().with_context(|| format!("{arg} wants a value"));
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
                other => bail!("tck does not know {other}; it takes {OPTIONS}"),
            }
        }
        ensure!(
            !plan.folder.as_os_str().is_empty(),
            "say where a2aproject/a2a-tck is checked out: tck {OPTIONS}"
        );
        Ok(plan)
    }
}

/// The interpreter of an environment with what the kit runs on, made anew when its list or the machine's Python
/// changes.
async fn environment(kit: Kit, folder: &Path, place: &Path) -> Result<PathBuf> {
    let requirements = kit.requirements(folder)?;
    let list = place.join("requirements.txt");
    fs::write(&list, requirements).context("cannot write the kit's list of packages")?;
    python::environment_with_dependencies(&list, &place.join("environment")).await
}

/// Everything a run needs but its mode.
struct Stand<'a> {
    kit: Kit,
    folder: &'a Path,
    program: &'a Path,
    place: &'a Path,
    python: &'a Path,
}

impl Stand<'_> {
    /// Runs some parts against a fresh server in one mode.
    async fn test(&self, mode: &Mode, parts: &[Part]) -> Result<Outcomes> {
        let store = self.fresh_folder(mode)?.join("a2ad.db");
        let config = server::workspace().join("examples/tck.toml");
        let variables = mode.variables.iter().map(|(name, value)| ((*name).into(), (*value).into()));
        let timeout = ("TCK_STREAMING_TIMEOUT".into(), STREAMING_TIMEOUT.into());
        let launch = Launch {
            arguments: vec!["--config".into(), config.into()],
            variables: variables.chain([timeout]).collect(),
            ..Launch::default()
        };
        let server = Server::start_by(&launch, self.program, &store).await?;
        let mut outcomes = Outcomes::default();
        let words = mode.only.unwrap_or_default();
        for part in parts.iter().filter(|part| part.name.contains(words.0)) {
            eprintln!("{}, mode {}: {}", self.kit.name(), mode.name, part.name);
            // By its name: a kit takes a card that shows the number for one that tells too much.
            let origin = format!("http://localhost:{}", server.address.port());
            let file = self.run(part, &origin, words.1).await?;
            outcomes.add(&part.name, &file)?;
        }
        let log = server.log();
        let panics = log.lines().filter(|line| line.contains("panicked")).count();
        let status = server.terminate(STOP_LIMIT).await?;
        ensure!(status.success(), "the server answered SIGTERM with {status}");
        ensure!(panics == 0, "the server panicked {panics} times:\n{log}");
        Ok(outcomes)
    }

    /// Runs one part and gives the file with what became of its tests. A failure is in there, and not in the status.
    async fn run(&self, part: &Part, origin: &str, only: &str) -> Result<PathBuf> {
        let plugin = self.place.join("plugin");
        fs::create_dir_all(&plugin)?;
        fs::write(plugin.join("a2ad_outcomes.py"), include_str!("tck/outcomes.py"))?;
        let file = self.place.join("outcomes.jsonl");
        if file.exists() {
            fs::remove_file(&file)?;
        }
        let log = fs::File::create(self.place.join("kit.log"))?;
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

    /// A place no earlier run has written to.
    fn fresh_folder(&self, mode: &Mode) -> Result<PathBuf> {
        let folder = self.place.join("store").join(mode.name);
        if folder.exists() {
            fs::remove_dir_all(&folder).context("cannot clear the store of an earlier run")?;
        }
        fs::create_dir_all(&folder)?;
        Ok(folder)
    }
}

/// Prints the table, the failures of each mode and what passes nowhere; fails if that is not known.
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
        let word = match outcome {
            Outcome::Failed => "failed",
            Outcome::ExpectedFailure => "failed as expected",
            Outcome::Skipped | Outcome::Passed => "skipped",
        };
        let known = known::reason(kit, test);
        unknown += usize::from(known.is_none() && *outcome == Outcome::Failed);
        println!("  {word}: {test}\n          {}", known.map_or_else(|| short(why), str::to_owned));
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
