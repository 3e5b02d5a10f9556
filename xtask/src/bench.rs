//! `cargo xtask bench [--rounds N] [--seconds S] [--tasks N] [--only SECTION] [--quick]`: how fast `a2ad` is, beside
//! other servers and beside itself.
//!
//! One run, interleaved rounds: in each round every contender is started fresh on a loopback port, warmed up,
//! measured in every cell by the same load and stopped again; then the same for `a2ad` alone over each binding, and
//! with stores of several sizes. What counts are ratios taken within a round, with their spread over the rounds; rates belong to
//! the machine. The contenders and the load are the workspace `bench/`; nothing is skipped, a contender that
//! cannot be built or started is an error. A quick run shows that everything works, and a run of one section
//! (`beside`, `bindings`, `full-store`, `streams`, `keys`) answers one question; both are printed only. A full one is
//! written to `BENCHMARKS.md`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a task runner talks to a terminal")]

mod beside;
mod bindings;
mod contender;
mod figures;
mod full_store;
mod keys;
mod places;
mod plan;
mod server;
mod streams;

use std::fmt::Write as _;
use std::fs;
use std::process;

use anyhow::{Context, Result, ensure};

use self::beside::Beside;
use self::bindings::Bindings;
use self::contender::Contender;
use self::full_store::FullStore;
use self::places::Places;
use self::plan::{Plan, Section};
use self::streams::{Fanout, Idle};

/// Runs the benchmark.
pub(crate) fn run(args: Vec<String>) -> Result<()> {
    let plan = Plan::from_args(args)?;
    let places = Places::build()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let results = runtime.block_on(Results::measure(&plan, &places));
    places.clear()?;
    let results = results?;
    let document = results.document(&plan, &places)?;
    println!("{document}");
    let failed = results.failed_calls();
    ensure!(failed == 0, "{failed} calls failed, so these figures prove nothing; nothing was written");
    if plan.recorded {
        fs::write(places.root.join("BENCHMARKS.md"), document).context("cannot write BENCHMARKS.md")?;
    }
    Ok(())
}

/// Everything one run found out; what was not wanted is not there.
#[derive(Default)]
struct Results {
    beside: Option<Beside>,
    bindings: Option<Bindings>,
    full_store: Option<FullStore>,
    streams: Option<(Idle, Fanout)>,
    /// The table that the comparison of key indexes prints.
    keys: Option<String>,
}

impl Results {
    async fn measure(plan: &Plan, places: &Places) -> Result<Self> {
        let mut results = Self::default();
        if plan.wants(Section::Beside) {
            results.beside = Some(Beside::measure(plan, places).await?);
        }
        if plan.wants(Section::Bindings) {
            results.bindings = Some(Bindings::measure(plan, places).await?);
        }
        if plan.wants(Section::FullStore) {
            results.full_store = Some(FullStore::measure(plan, places).await?);
        }
        if plan.wants(Section::Streams) {
            let idle = Idle::measure(plan, places).await?;
            results.streams = Some((idle, Fanout::measure(plan, places).await?));
        }
        if plan.wants(Section::Keys) {
            results.keys = Some(keys::measure(plan, places).await?);
        }
        Ok(results)
    }

    fn failed_calls(&self) -> u64 {
        self.beside.as_ref().map_or(0, Beside::failed_calls)
            + self.bindings.as_ref().map_or(0, Bindings::failed_calls)
            + self.full_store.as_ref().map_or(0, FullStore::failed_calls)
    }

    /// The whole of `BENCHMARKS.md`.
    fn document(&self, plan: &Plan, places: &Places) -> Result<String> {
        let mut text = String::from("# Benchmarks\n\n");
        writeln!(text, "Written by `{}`; not edited by hand.", plan.command)?;
        writeln!(
            text,
            "One run of {} interleaved rounds, {} s a cell; every contender is started fresh in every round; server and\n\
             load share the machine. Echo agent, A2A 1.0 over JSON-RPC unless said otherwise, 200 bytes of text, keep-alive\n\
             connections on loopback, every answer checked. The `messageId` of every call is a random UUID v4, which\n\
             `a2ad` takes for an idempotency key: every send looks for its key among all stored ones and keeps it. Rates\n\
             belong to the machine; the ratios, taken within a round, are what can be compared.\n",
            plan.rounds, plan.seconds
        )?;
        writeln!(text, "Machine: {}.\n", machine()?)?;
        if let Some(beside) = &self.beside {
            for contender in Contender::ALL {
                writeln!(text, "- `{}`: {}.", contender.name(), contender.what())?;
            }
            writeln!(text, "\nThe SDK is `a2a-server-lf` {}.\n", locked_version(places, "a2a-server-lf")?)?;
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
        if let Some(keys) = &self.keys {
            keys::describe(&mut text, keys)?;
        }
        Ok(text)
    }
}

fn machine() -> Result<String> {
    let cores = std::thread::available_parallelism()?;
    let kernel =
        fs::read_to_string("/proc/sys/kernel/osrelease").context("cannot read the kernel's release")?;
    let cpus = fs::read_to_string("/proc/cpuinfo").context("cannot read what the processor is")?;
    let cpu = cpus.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cpu = cpu.map_or("unnamed processor", |(_, model)| model);
    let rustc = process::Command::new("rustc")
        .arg("--version")
        .output()
        .context("cannot ask rustc for its version")?;
    let rustc = String::from_utf8(rustc.stdout)?;
    Ok(format!("{cores} cores of {cpu}, Linux {}, {}", kernel.trim(), rustc.trim()))
}

fn locked_version(places: &Places, package: &str) -> Result<String> {
    let lock =
        fs::read_to_string(places.root.join("bench/Cargo.lock")).context("cannot read bench/Cargo.lock")?;
    let (_, rest) = lock.split_once(&format!("name = \"{package}\"\nversion = \"")).context("not locked")?;
    Ok(rest.split('"').next().unwrap_or_default().to_owned())
}
