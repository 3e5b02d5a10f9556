//! `a2ad-fuzz [ID] [--inputs N] [--seed S]`: fuzzes one target or all of them, prints one line for each, and exits
//! with an error if there is any finding.

#![allow(clippy::print_stdout, reason = "the report is the output of this program")]

use std::{fmt::Write as _, fs, path::Path};

use a2ad_fuzz::{
    Target,
    run::{Finding, Plan, run},
    targets,
};
use anyhow::{Context as _, Result, bail, ensure};
use clap::Parser;

/// Directory of inputs that caused a finding; later runs try them first.
const CRASHERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/crashers");
/// Limit of the peak memory of the whole process.
const MAX_MEMORY_MIB: u64 = 512;

/// Fuzz the decoders and the task state machine with mutated input.
#[derive(Parser)]
struct Args {
    /// Target to fuzz, such as F-json [default: all targets].
    id: Option<String>,
    /// Number of inputs for each target [default: set per target].
    #[arg(long)]
    inputs: Option<u64>,
    /// Seed of the inputs; the same seed gives the same inputs.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let mut failed = Vec::new();
    for target in chosen(args.id.as_deref())? {
        if !passes(target, args.inputs.unwrap_or(target.inputs), args.seed)? {
            failed.push(target.id);
        }
    }
    ensure!(failed.is_empty(), "findings in {}", failed.join(", "));
    Ok(())
}

fn chosen(id: Option<&str>) -> Result<Vec<&'static Target>> {
    let chosen: Vec<_> = targets().iter().filter(|target| id.is_none_or(|id| target.id == id)).collect();
    if chosen.is_empty() {
        let known: Vec<_> =
            targets().iter().map(|target| format!("  {}  {}", target.id, target.name)).collect();
        bail!("unknown target; known targets:\n{}", known.join("\n"));
    }
    Ok(chosen)
}

fn passes(target: &Target, inputs: u64, seed: u64) -> Result<bool> {
    let known = load_crashers(target.id)?;
    let outcome = run(Plan { known, ..Plan::new(*target, inputs, seed) });
    let memory = peak_memory_mib();
    println!(
        "{}: {} inputs, seed {seed}, {} panics, {} hangs, {:.0}/s, peak {} MiB",
        target.id,
        outcome.inputs,
        outcome.panics,
        outcome.hangs,
        outcome.inputs as f64 / outcome.elapsed.as_secs_f64(),
        memory.map_or("?".to_owned(), |memory| memory.to_string()),
    );
    for finding in &outcome.findings {
        report(target.id, finding)?;
    }
    Ok(outcome.findings.is_empty() && memory.is_none_or(|memory| memory <= MAX_MEMORY_MIB))
}

fn report(id: &str, finding: &Finding) -> Result<()> {
    let name = format!("{id}-{:016x}", hash(&finding.input));
    fs::create_dir_all(CRASHERS).context("cannot create the directory for crashers")?;
    fs::write(Path::new(CRASHERS).join(&name), &finding.input).context("cannot save the input")?;
    println!("  {:?} at {}: {}", finding.kind, finding.location, finding.problem);
    println!("  saved as fuzz/crashers/{name}: {}", hex(&finding.input));
    Ok(())
}

fn load_crashers(id: &str) -> Result<Vec<Vec<u8>>> {
    let Ok(folder) = fs::read_dir(CRASHERS) else { return Ok(Vec::new()) };
    let mut inputs = Vec::new();
    for file in folder {
        let path = file.context("cannot list the crashers")?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.strip_prefix(id).is_some_and(|rest| rest.starts_with('-')) {
            inputs.push(fs::read(&path).context("cannot read a crasher")?);
        }
    }
    inputs.sort_unstable();
    Ok(inputs)
}

/// Names a file after its content (FNV-1a).
fn hash(input: &[u8]) -> u64 {
    input
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The input as hexadecimal digits to copy from a log, truncated where the saved file is more useful.
fn hex(input: &[u8]) -> String {
    let shown = &input[..input.len().min(2_048)];
    let mut text = String::with_capacity(2 * shown.len());
    for byte in shown {
        let _ = write!(text, "{byte:02x}");
    }
    if shown.len() < input.len() {
        let _ = write!(text, "… ({} bytes in total)", input.len());
    }
    text
}

/// Peak memory of this process, where the system reports it.
fn peak_memory_mib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib / 1024)
}
