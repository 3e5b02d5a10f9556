//! `cargo xtask bench [--rounds N] [--seconds S] [--tasks N] [--only SECTION] [--quick]`: measures `a2ad` against
//! other servers, and against itself over other bindings, with fuller stores and with webhooks.
//!
//! One run consists of interleaved rounds: in each round every contender is started fresh on a loopback port,
//! warmed up, measured in every cell by the same load and stopped; then `a2ad` alone is measured over each binding,
//! with stores of several sizes, and with webhooks. Only ratios taken within a round can be compared, with their
//! spread over the rounds; absolute rates depend on the machine. The contenders, the load generator and the receiver
//! of push notifications are the workspace `bench/`. Nothing is skipped: a contender that cannot be built or started
//! is an error. A quick run (`--quick`) shows that everything works, a run of one section (`--only beside`,
//! `bindings`, `full-store`, `streams`, `push`, `keys`, `backends`, `credentials`) measures one thing; both only
//! print. A full run is written to `BENCHMARKS.md`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool prints to the terminal")]

mod backends;
mod beside;
mod bindings;
mod contender;
mod credentials;
mod dirs;
mod figures;
mod full_store;
mod keys;
mod plan;
mod push;
mod server;
mod streams;

use std::fmt::Write as _;
use std::fs;
use std::process;

use anyhow::{Context, Result, ensure};

use self::beside::Beside;
use self::bindings::Bindings;
use self::contender::Contender;
use self::dirs::BenchDirs;
use self::full_store::FullStore;
use self::plan::{Plan, Section};
use self::push::Push;
use self::streams::{Fanout, Idle};

pub(crate) fn run(args: Vec<String>) -> Result<()> {
    let plan = Plan::from_args(args)?;
    let dirs = BenchDirs::build()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let results = runtime.block_on(Results::measure(&plan, &dirs));
    dirs.clear()?;
    let results = results?;
    let document = results.document(&plan, &dirs)?;
    println!("{document}");
    let failed = results.failed_calls();
    ensure!(failed == 0, "{failed} calls failed, so these figures are not valid; nothing was written");
    if plan.recorded {
        fs::write(dirs.root.join("BENCHMARKS.md"), document).context("cannot write BENCHMARKS.md")?;
    }
    Ok(())
}

/// The measurements of one run; `None` for sections that were not requested.
#[derive(Default)]
struct Results {
    beside: Option<Beside>,
    bindings: Option<Bindings>,
    full_store: Option<FullStore>,
    streams: Option<(Idle, Fanout)>,
    push: Option<Push>,
    /// The table printed by the comparison of key indexes.
    keys: Option<String>,
    /// The table printed by the comparison of tools.
    backends: Option<String>,
    /// The table printed by the measurement of credentials.
    credentials: Option<String>,
}

impl Results {
    async fn measure(plan: &Plan, dirs: &BenchDirs) -> Result<Self> {
        let mut results = Self::default();
        if plan.includes(Section::Beside) {
            results.beside = Some(Beside::measure(plan, dirs).await?);
        }
        if plan.includes(Section::Bindings) {
            results.bindings = Some(Bindings::measure(plan, dirs).await?);
        }
        if plan.includes(Section::FullStore) {
            results.full_store = Some(FullStore::measure(plan, dirs).await?);
        }
        if plan.includes(Section::Streams) {
            let idle = Idle::measure(plan, dirs).await?;
            results.streams = Some((idle, Fanout::measure(plan, dirs).await?));
        }
        if plan.includes(Section::Push) {
            results.push = Some(Push::measure(plan, dirs).await?);
        }
        if plan.includes(Section::Keys) {
            results.keys = Some(keys::measure(plan, dirs).await?);
        }
        if plan.includes(Section::Backends) {
            results.backends = Some(backends::measure(plan, dirs).await?);
        }
        if plan.includes(Section::Credentials) {
            results.credentials = Some(credentials::measure(plan, dirs).await?);
        }
        Ok(results)
    }

    fn failed_calls(&self) -> u64 {
        self.beside.as_ref().map_or(0, Beside::failed_calls)
            + self.bindings.as_ref().map_or(0, Bindings::failed_calls)
            + self.full_store.as_ref().map_or(0, FullStore::failed_calls)
            + self.push.as_ref().map_or(0, Push::failed_calls)
    }

    /// The complete text of `BENCHMARKS.md`.
    fn document(&self, plan: &Plan, dirs: &BenchDirs) -> Result<String> {
        let mut text = String::from("# Benchmarks\n\n");
        writeln!(text, "Written by `{}`; not edited by hand.", plan.command)?;
        writeln!(
            text,
            "One run of {} interleaved rounds, {} s a cell; every contender is started fresh in every round; server and\n\
             load share the machine. Echo agent, A2A 1.0 over JSON-RPC unless stated otherwise, 200 bytes of text, keep-alive\n\
             connections on loopback, every answer checked. The `messageId` of every call is a random UUID v4, which\n\
             `a2ad` takes for an idempotency key: every send looks for its key among all stored ones and keeps it. Rates\n\
             belong to the machine; the ratios, taken within a round, are what can be compared.\n",
            plan.rounds, plan.seconds
        )?;
        writeln!(text, "Machine: {}.\n", machine()?)?;
        if let Some(beside) = &self.beside {
            for contender in Contender::ALL {
                writeln!(text, "- `{}`: {}.", contender.name(), contender.description())?;
            }
            writeln!(text, "\nThe SDK is `a2a-server-lf` {}.\n", locked_version(dirs, "a2a-server-lf")?)?;
            beside.describe(&mut text)?;
        }
        if let Some(bindings) = &self.bindings {
            bindings.describe(&mut text)?;
        }
        if let Some(full_store) = &self.full_store {
            full_store.describe(&mut text)?;
        }
        if let Some((idle, fanout)) = &self.streams {
            idle.describe(&mut text)?;
            fanout.describe(&mut text)?;
        }
        if let Some(push) = &self.push {
            push.describe(&mut text)?;
        }
        if let Some(keys) = &self.keys {
            keys::describe(&mut text, keys)?;
        }
        if let Some(backends) = &self.backends {
            backends::describe(&mut text, backends)?;
        }
        if let Some(credentials) = &self.credentials {
            credentials::describe(&mut text, credentials)?;
        }
        Ok(text)
    }
}

fn machine() -> Result<String> {
    let cores = std::thread::available_parallelism()?;
    let kernel =
        fs::read_to_string("/proc/sys/kernel/osrelease").context("cannot read the kernel's release")?;
    let cpus = fs::read_to_string("/proc/cpuinfo").context("cannot read the processor model")?;
    let cpu = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cpu = cpu.map_or("unnamed processor", |(_, model)| model);
    let rustc =
        process::Command::new("rustc").arg("--version").output().context("cannot run rustc --version")?;
    let rustc = String::from_utf8(rustc.stdout)?;
    Ok(format!("{cores} cores of {cpu}, Linux {}, {}", kernel.trim(), rustc.trim()))
}

fn locked_version(dirs: &BenchDirs, package: &str) -> Result<String> {
    let lock =
        fs::read_to_string(dirs.root.join("bench/Cargo.lock")).context("cannot read bench/Cargo.lock")?;
    let (_, rest) = lock.split_once(&format!("name = \"{package}\"\nversion = \"")).context("not locked")?;
    Ok(rest.split('"').next().unwrap_or_default().to_owned())
}
