//! reload_under_load: the configuration file is rewritten again and again while clients call skills that every version of it
//! has. No call may fail, whether its skill is built in, a command, or a tool of an MCP server that stays or is
//! replaced.
//!
//! Some versions are only saved, most are followed by SIGHUP; some are preceded by one that is not valid. Files come and go in
//! the skills folder meanwhile.

mod clients;

use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Result, bail, ensure};
use serde_json::{Value, json};

use super::extra_options::{ExtraOptions, TimeLimits};
use super::random::Random;
use super::trial::{ProofResult, Setup, Trial, stop};
use crate::http::Connection;
use crate::server::{Launch, Server, Signal};
use clients::Clients;

pub(crate) const OPTIONS: &str = "[--reloads N] [--seed S] [--binary PATH] [--relaxed]";

/// One in so many versions is noticed without a signal; one in so many has a file in the skills folder.
const SAVED_ONLY: u64 = 10;
/// One in so many versions follows one that is not valid.
const INVALID: u64 = 25;
/// One in so many versions replaces an MCP server.
const REPLACED: u64 = 20;
/// A saved file is used within this time.
const GOAL: Duration = Duration::from_secs(1);
/// How long anything may take before the proof gives up.
const LIMIT: Duration = Duration::from_secs(30);

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut extras = ExtraOptions::of(args);
    let limits = extras.time_limits();
    let trial = Trial::parse("reload_under_load", "--reloads", 1_000, &extras.rest())?;
    trial.run(async |setup| campaign(&trial, setup, limits).await)
}

async fn campaign(trial: &Trial, setup: &Setup, limits: TimeLimits) -> Result<ProofResult> {
    let files = Files::new(setup)?;
    let mut launch = Launch::with_config(&setup.store, &files.config(0))?;
    // Lines of calls would be most of the log.
    launch.variables.push(("A2AD_LOG".into(), "warn,a2ad::banner=info".into()));
    let server = Server::start_with(&launch, &setup.program, &setup.store).await?;
    let mut card = Card { connection: Connection::open(server.address).await? };
    let clients = Clients::start(server.address, &mut Random::new(trial.seed));
    let memory = resident(&server)?;
    let mut times = Times::default();
    for version in 1..=trial.size {
        reload(&files, &server, &mut card, version, &mut times).await?;
    }
    let called = clients.end().await;
    let mut findings = called.findings.clone();
    findings.extend(times.findings(limits));
    findings.extend(files.findings(trial.size).await?);
    for (kind, count) in &called.completed {
        if *count == 0 {
            findings.push(format!("nothing is proved: no call of {kind} has ended"));
        }
    }
    let figures = json!({
        "reloads": trial.size,
        "completed": called.completed,
        "failed": called.findings.len(),
        "sighup_ms": Times::figures(&mut times.signal),
        "saved_ms": Times::figures(&mut times.saved),
        "folder_ms": Times::figures(&mut times.folder),
        "resident_kib": [memory, resident(&server)?],
    });
    stop(server, &mut findings).await?;
    Ok(ProofResult { figures, findings })
}

/// Brings the server to the next version, and waits until its card shows it.
async fn reload(
    files: &Files,
    server: &Server,
    card: &mut Card,
    version: u64,
    times: &mut Times,
) -> Result<()> {
    if version.is_multiple_of(INVALID) {
        files.save(version, "[skills.steady]\nbuiltin = \"no such agent\"\n")?;
        server.signal(Signal::HUP)?;
        let invalid = usize::try_from(version / INVALID)?;
        let reported = || server.log().matches("was not reloaded").count() >= invalid;
        wait("an invalid file was not reported", async || Ok(reported())).await?;
    }
    let saved_only = version.is_multiple_of(SAVED_ONLY);
    files.save(version, &files.config(version))?;
    if !saved_only {
        server.signal(Signal::HUP)?;
    }
    let shown = description(version);
    let time = wait("a version is not used", async || card.shows(&shown, true).await).await?;
    if saved_only { &mut times.saved } else { &mut times.signal }.push(time);
    if saved_only {
        let (name, shown) = (format!("guest-{version}.sh"), format!("\"guest-{version}\""));
        files.put(&name)?;
        times.folder.push(wait("a file is no skill", async || card.shows(&shown, true).await).await?);
        fs::remove_file(files.folder.join(&name))?;
        times.folder.push(wait("a skill stays", async || card.shows(&shown, false).await).await?);
    }
    Ok(())
}

/// Waits until something has happened; returns how long that took.
async fn wait(what: &str, mut happened: impl AsyncFnMut() -> Result<bool>) -> Result<Duration> {
    let started = Instant::now();
    while !happened().await? {
        ensure!(started.elapsed() < LIMIT, "{what} after {LIMIT:?}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    Ok(started.elapsed())
}

fn description(version: u64) -> String {
    format!("\"version {version} of the file\"")
}

/// The public card, read over one connection.
struct Card {
    connection: Connection,
}

impl Card {
    /// Whether a text is on the card, or is not.
    async fn shows(&mut self, text: &str, shown: bool) -> Result<bool> {
        let response = self.connection.get("/.well-known/agent-card.json").await?;
        if response.status != 200 {
            bail!("the card has the status {}", response.status);
        }
        Ok(response.text().contains(text) == shown)
    }
}

/// The files of the server.
struct Files {
    config: PathBuf,
    folder: PathBuf,
}

impl Files {
    fn new(setup: &Setup) -> Result<Self> {
        let folder = setup.store.with_file_name("skills");
        fs::create_dir_all(&folder)?;
        Ok(Self { config: setup.store.with_extension("toml"), folder })
    }

    /// A version of the file. What clients call is in all of them.
    fn config(&self, version: u64) -> String {
        let now_and_then = if version % 2 == 1 { "[skills.guest]\nbuiltin = \"currency\"\n" } else { "" };
        let description = description(version);
        let replaced = format!("replaced also-{}", version / REPLACED);
        format!(
            "[server]\nskills_dir = \"skills\"\n[skills.steady]\nbuiltin = \"echo\"\ndescription = {description}\n\
             [skills.writer]\nbuiltin = \"slow-writer\"\n[skills.cat]\ncommand = {{ argv = [\"cat\"] }}\n{now_and_then}{}{}",
            self.mcp("kept", "kept"),
            self.mcp("other", &replaced)
        )
    }

    /// An MCP server that adds a line with its process id to a file when it starts.
    fn mcp(&self, name: &str, tools: &str) -> String {
        const SERVER: &str =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../crates/a2ad-cli/tests/tool_server.py");
        let script = format!("echo $$ >> {}; exec python3 -S {SERVER} {tools}", self.pids(name).display());
        format!(
            "[mcp.{name}]\ncommand = [\"sh\", \"-c\", {script:?}]\nelicitation = false\npool = {{ max = 1 }}\n"
        )
    }

    fn pids(&self, name: &str) -> PathBuf {
        self.config.with_file_name(format!("{name}.pids"))
    }

    /// Writes a version in place, or replaces the file.
    fn save(&self, version: u64, text: &str) -> Result<()> {
        if version.is_multiple_of(2) {
            return Ok(fs::write(&self.config, text)?);
        }
        let new = self.config.with_extension("new");
        fs::write(&new, text)?;
        Ok(fs::rename(new, &self.config)?)
    }

    /// Puts an executable into the folder.
    fn put(&self, name: &str) -> Result<()> {
        let new = self.folder.join(".new");
        fs::write(&new, "#!/bin/sh\ncat\n")?;
        fs::set_permissions(&new, fs::Permissions::from_mode(0o755))?;
        Ok(fs::rename(new, self.folder.join(name))?)
    }

    /// MCP servers that were started without need, or still run.
    async fn findings(&self, versions: u64) -> Result<Vec<String>> {
        let mut findings = Vec::new();
        for (name, starts) in [("kept", 1), ("other", 1 + versions / REPLACED)] {
            let pids = fs::read_to_string(self.pids(name))?;
            let started = pids.lines().count() as u64;
            if started != starts {
                findings.push(format!("the MCP server {name} was started {started} times, not {starts}"));
            }
            let running = || pids.lines().filter(|pid| Path::new("/proc").join(pid).exists()).count();
            if wait("stopping", async || Ok(running() == 1)).await.is_err() {
                findings.push(format!("{} processes of the MCP server {name} are running", running()));
            }
        }
        Ok(findings)
    }
}

/// How long it took until a change was on the card.
#[derive(Default)]
struct Times {
    signal: Vec<Duration>,
    saved: Vec<Duration>,
    folder: Vec<Duration>,
}

impl Times {
    fn findings(&self, limits: TimeLimits) -> impl Iterator<Item = String> {
        let late = |time: &&Duration| **time > limits.limit(GOAL);
        let late = self.signal.iter().chain(&self.saved).chain(&self.folder).filter(late);
        late.map(|time| format!("a change was used after {time:?}")).collect::<Vec<_>>().into_iter()
    }

    /// Median and maximum, in milliseconds.
    fn figures(times: &mut [Duration]) -> Value {
        times.sort_unstable();
        let millis = |time: Option<&Duration>| time.map(|time| (time.as_secs_f64() * 1e4).round() / 10.0);
        json!({"median": millis(times.get(times.len() / 2)), "max": millis(times.last())})
    }
}

/// The resident memory of the server, in KiB.
fn resident(server: &Server) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", server.id().unwrap_or_default()))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let number = line.and_then(|line| line.trim().trim_end_matches("kB").trim().parse().ok());
    Ok(number.unwrap_or_default())
}
