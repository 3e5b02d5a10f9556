//! `a2ad` alone: the same blocking send over each of its bindings, and to an agent that is not `overlap`.
//!
//! Server and load generator share the cores, and the cost of the load differs between HTTP versions. Rates alone
//! would therefore not show what a binding costs the server, so the CPU time per call of both processes is measured
//! too.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use anyhow::Result;

use super::contender::Contender;
use super::dirs::BenchDirs;
use super::figures::{Sample, median, ratios, spread, write_calls};
use super::plan::Plan;
use super::server::{Cell, CpuTimes, Limit, Server};

/// Name of a row and its load, always with 64 calls in progress; the first entry is the base of the ratios.
const BINDINGS: [(&str, Cell); 5] = [
    ("JSON-RPC", Cell { mode: "send", connections: 64 }),
    ("HTTP+JSON", Cell { mode: "send-rest", connections: 64 }),
    ("gRPC, one call at a time on a connection", Cell { mode: "send-grpc", connections: 64 }),
    ("gRPC, eight", Cell { mode: "send-grpc-multiplexed", connections: 8 }),
    ("JSON-RPC, not `overlap`", Cell { mode: "send-skill", connections: 64 }),
];
const WARM_UP: Limit = Limit::Seconds(0.3);

/// The measurements by binding, one a round.
pub(super) struct Bindings(BTreeMap<usize, Vec<Round>>);

struct Round {
    sample: Sample,
    /// CPU time per call in microseconds.
    server_us: f64,
    load_us: f64,
}

impl Bindings {
    pub(super) async fn measure(plan: &Plan, dirs: &BenchDirs) -> Result<Self> {
        let mut rounds: BTreeMap<_, Vec<Round>> = BTreeMap::new();
        for round in 0..plan.rounds {
            let folder = dirs.fresh_folder("round")?;
            let server = Server::start(dirs, Contender::A2ad, &folder, None).await?;
            for (_, cell) in BINDINGS {
                server.load(dirs, cell, WARM_UP, None).await?;
            }
            for index in 0..BINDINGS.len() {
                // Rotated, so that no binding always runs after the same other one.
                let number = (index + round) % BINDINGS.len();
                let (name, cell) = BINDINGS[number];
                eprintln!("round {} of {}: {name}", round + 1, plan.rounds);
                rounds.entry(number).or_default().push(Round::measure(plan, dirs, &server, cell).await?);
            }
            server.kill().await?;
        }
        Ok(Self(rounds))
    }

    pub(super) fn failed_calls(&self) -> u64 {
        self.0.values().flatten().map(|round| round.sample.errors).sum()
    }

    pub(super) fn describe(&self, text: &mut String) -> Result<()> {
        writeln!(
            text,
            "\n## Bindings\n\n\
             `a2ad` alone: blocking sends over each binding of one server, in turns, with 64 in progress; JSON-RPC and\n\
             HTTP+JSON over HTTP/1.1, gRPC over HTTP/2 from 64 connections with one call at a time and from 8 connections\n\
             with eight, as the clients of gRPC share a connection. The last row is an agent that answers at once but may not\n\
             run before its task is on disk (the skill `echo` of `demo`): two commits a call, where `echo` alone needs one. The processor time of\n\
             the server, with all it does in the background, and that of the load are divided by the calls; both run on\n\
             the same cores, so what either spends the other lacks. Ratios are to JSON-RPC in the same round.\n"
        )?;
        text.push_str("| binding | calls/s | p50 ms | p99 ms | max ms | calls/s × JSON-RPC ");
        text.push_str("| server µs/call | µs/call × JSON-RPC | load µs/call |\n");
        text.push_str("|---|--:|--:|--:|--:|--:|--:|--:|--:|\n");
        for (number, (name, _)) in BINDINGS.into_iter().enumerate() {
            let rounds = &self.0[&number];
            write!(text, "| {name} ")?;
            write_calls(text, &rounds.iter().map(|round| round.sample).collect::<Vec<_>>())?;
            let server = median(rounds.iter().map(|round| round.server_us).collect());
            let load = median(rounds.iter().map(|round| round.load_us).collect());
            let of_rate = self.ratio(number, |round| round.sample.rate);
            let of_time = self.ratio(number, |round| round.server_us);
            writeln!(text, "| {of_rate} | {server:.1} | {of_time} | {load:.1} |")?;
        }
        Ok(())
    }

    fn ratio(&self, number: usize, field: fn(&Round) -> f64) -> String {
        if number == 0 {
            return "1".to_owned();
        }
        spread(ratios(&self.0[&number], &self.0[&0], field))
    }
}

impl Round {
    async fn measure(plan: &Plan, dirs: &BenchDirs, server: &Server, cell: Cell) -> Result<Self> {
        // The load is the only child process that ends in this time.
        let (server_before, load_before) = (server.cpu_time()?, CpuTimes::of("self")?.children);
        let sample = server.load(dirs, cell, Limit::Seconds(plan.seconds), None).await?;
        let (server_spent, load_spent) =
            (server.cpu_time()? - server_before, CpuTimes::of("self")?.children - load_before);
        let micros_a_call = |time: Duration| time.as_secs_f64() * 1e6 / sample.calls;
        Ok(Self { sample, server_us: micros_a_call(server_spent), load_us: micros_a_call(load_spent) })
    }
}
