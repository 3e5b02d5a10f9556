//! `a2ad-verify NAME`: runs one proof against the real program and prints the result as one line of JSON.
//! `cargo xtask verify NAME` builds the program and passes its path.
//!
//! Each proof is one module of the same name. It parses its own options, which set its size, prints its seed and
//! figures, and fails on any violation. `docs/test-matrix.md` lists all proofs. Deliberately not here: tests that start
//! no process, and the official conformance kit, which `cargo xtask verify tck` runs.
#![allow(
    clippy::disallowed_types,
    reason = "the test driver inspects responses as JSON values; it needs no exact numbers"
)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "data to stdout, messages to stderr")]

mod backup_under_load;
mod cancel_races;
mod clock_steps;
mod disk_faults;
mod duplicate_sends;
mod extra_options;
mod fair_limits;
mod fill;
mod filled_store;
mod http2_floods;
mod key_timing;
mod kill_under_load;
mod long_turns;
mod malformed_requests;
mod many_keys;
mod many_owners;
mod many_skills;
mod mcp_crosstalk;
mod overload;
mod package;
mod poison_tasks;
mod random;
mod recovery_time;
mod reference_model;
mod reload_under_load;
mod request_bombs;
mod retention_under_load;
mod slow_readers;
mod step_reports;
mod stream_resume;
mod stuck_sockets;
mod trial;
mod view;
mod webhook_kills;
mod webhook_outage;
mod webhooks;
mod writer;

use std::process::ExitCode;

use anyhow::{Result, bail};
use testkit::{http1 as http, process as server, rpc};

/// One proof and how it is run.
struct Proof {
    name: &'static str,
    proves: &'static str,
    options: &'static str,
    run: fn(&[String]) -> Result<()>,
}

/// The table of the proofs, each with the name of its module.
macro_rules! proofs {
    ($($name:ident: $proves:literal,)*) => {
        const PROOFS: &[Proof] = &[$(
            Proof { name: stringify!($name), proves: $proves, options: $name::OPTIONS, run: $name::run },
        )*];
    };
}

proofs! {
    kill_under_load: "SIGKILL under load loses no acknowledged task, duplicates nothing and leaves no gap in streams",
    backup_under_load: "a backup made under load and restored elsewhere has every task acknowledged before it began, whole",
    disk_faults: "a disk that fails, is full or becomes read-only stops the server, and nothing acknowledged is lost",
    clock_steps: "a clock that is set a day ahead and corrected later purges no task, delays no work and does not stop time",
    recovery_time: "after SIGKILL a server with a full store is ready within 2 s, and interrupted tasks end within 5 s",
    duplicate_sends: "an idempotency key sent many times concurrently creates one task, also when connections are reset",
    cancel_races: "when cancel and completion race, a task has one terminal state and all clients see the same one",
    stream_resume: "a stream that is cut and resumed misses and repeats no event, also across SIGKILL",
    webhook_kills: "SIGKILL while notifications are sent loses none, and repeats only those that were in flight, unchanged",
    webhook_outage: "receivers that are down for an hour or fail get every notification in order, and dead letters are only those that must be",
    poison_tasks: "a task that crashes the process fails after 3 crashes, and every other task completes",
    long_turns: "documents with a checkpoint and a journaled step in each section complete through SIGKILL, and no finished step runs again",
    retention_under_load: "expired tasks are purged under load: open tasks stay, files do not grow, latency stays within 2x",
    many_keys: "with ten million stored idempotency keys a send costs at most 20% more than with none, and memory stays bounded",
    many_owners: "with a million owners of tasks, lists are as fast as with one, and the tasks of all owners are purged",
    many_skills: "an agent with 15,000 skills starts within 10 s, sends its card at 1 GB/s, is searched in 5 ms and chooses skills in 2 ms",
    overload: "beside more work than slots, queued tasks start in order, other agents are served, and hanging tasks stop nothing",
    fair_limits: "a caller that floods the server is refused, and nine others are served as if they were alone",
    reference_model: "random calls are answered as a reference model predicts",
    request_bombs: "requests that are cheap to send and expensive to parse are refused quickly and in little memory",
    slow_readers: "clients that read too slowly are disconnected, memory stays bounded, other clients are served as before",
    stuck_sockets: "10,000 connections that never finish what they begin are closed within 15 s, other clients are served as before",
    http2_floods: "HTTP/2 connections that flood the server with frames are ended or leave it idle, other clients are served",
    reload_under_load: "a configuration that is rewritten a thousand times under load fails no call",
    mcp_crosstalk: "an MCP server that answers late, twice, out of order and under other ids gives no call what belongs to another",
    key_timing: "the time to reject an API key does not depend on where it differs from a valid one",
    malformed_requests: "every operation of every protocol version and binding refuses malformed requests and names the faulty field",
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("a2ad-verify: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the proof named by the first argument with the rest as its options.
fn run(args: &[String]) -> Result<()> {
    let Some((name, options)) = args.split_first() else {
        bail!("name the proof to run\n{}", table());
    };
    if name == mcp_crosstalk::COMMAND {
        return mcp_crosstalk::serve(options);
    }
    if name == malformed_requests::COMMAND {
        return malformed_requests::serve(options);
    }
    match PROOFS.iter().find(|proof| proof.name == name) {
        Some(proof) => (proof.run)(options),
        None => bail!("there is no proof {name}\n{}", table()),
    }
}

fn table() -> String {
    let line = |proof: &Proof| {
        format!("  cargo xtask verify {} {}\n      {}\n", proof.name, proof.options, proof.proves)
    };
    PROOFS.iter().map(line).collect()
}
