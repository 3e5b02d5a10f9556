//! `a2ad` with an empty, a medium and a full store: calls, start times, memory.
//!
//! Each store is filled once over JSON-RPC and its server shut down gracefully. In every round each store is
//! copied, and the copy is synced to disk before it is measured, so that no measurement includes the writes of
//! another copy. Reads come before sends, because sends enlarge the store.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::contender::Contender;
use super::dirs::BenchDirs;
use super::figures::{Sample, median, ratios, spread, thousands, write_calls};
use super::plan::Plan;
use super::server::{Cell, Limit, Server};

/// Tasks in an "empty" store, so that there is something to get and a page to list.
const EMPTY: u64 = 1_000;
const SEND: Cell = Cell { mode: "send", connections: 64 };
const CELLS: [Cell; 5] = [
    Cell { mode: "get", connections: 64 },
    Cell { mode: "list", connections: 1 },
    Cell { mode: "walk", connections: 1 },
    Cell { mode: "list-since", connections: 1 },
    SEND,
];
/// The caches of the store are filled by gets and by lists.
const WARM_UP: [(Cell, Limit); 2] = [
    (Cell { mode: "get", connections: 16 }, Limit::Seconds(0.5)),
    (Cell { mode: "list-since", connections: 1 }, Limit::Seconds(1.5)),
];

/// The files of a closed store; the WAL exists only if it was not checkpointed.
const DATA: [&str; 2] = ["a2ad.db", "a2ad.db-wal"];
/// File with the ids of some of its tasks.
const IDS: &str = "ids";

/// The measurements. Stores are identified by their index in `stores`, the empty one first.
pub(super) struct FullStore {
    stores: Vec<Store>,
    /// One sample a round, by cell and store.
    samples: BTreeMap<(usize, usize), Vec<Sample>>,
    /// One start a round in milliseconds, by store.
    clean_starts: BTreeMap<usize, Vec<f64>>,
    starts_after_kill: BTreeMap<usize, Vec<f64>>,
}

struct Store {
    tasks: u64,
    folder: PathBuf,
    bytes: u64,
    /// Resident memory, in KiB, of the process that filled it, at the end.
    resident: u64,
}

impl FullStore {
    pub(super) async fn measure(plan: &Plan, dirs: &BenchDirs) -> Result<Self> {
        let mut results = Self {
            stores: Vec::new(),
            samples: BTreeMap::new(),
            clean_starts: BTreeMap::new(),
            starts_after_kill: BTreeMap::new(),
        };
        for tasks in [EMPTY, plan.tasks / 10, plan.tasks] {
            results.stores.push(Store::fill(dirs, tasks).await?);
        }
        for round in 0..plan.rounds {
            for index in 0..results.stores.len() {
                // Rotated, so that no store is always measured after the same other one.
                let number = (index + round) % results.stores.len();
                let tasks = thousands(results.stores[number].tasks as f64);
                eprintln!("round {} of {}: {tasks} stored tasks", round + 1, plan.rounds);
                results.measure_store(plan, dirs, number).await?;
            }
        }
        for store in &results.stores {
            fs::remove_dir_all(&store.folder).context("cannot remove a store")?;
        }
        Ok(results)
    }

    async fn measure_store(&mut self, plan: &Plan, dirs: &BenchDirs, number: usize) -> Result<()> {
        let folder = dirs.fresh_folder("round")?;
        copy(&self.stores[number].folder, &folder)?;
        let ids = folder.join(IDS);
        let server = Server::start(dirs, Contender::A2ad, &folder, None).await?;
        self.clean_starts.entry(number).or_default().push(millis(server.ready_after));
        for (cell, limit) in WARM_UP {
            server.load(dirs, cell, limit, Some(&ids)).await?;
        }
        for (cell_number, cell) in CELLS.into_iter().enumerate() {
            let ids = matches!(cell.mode, "get" | "list-since").then_some(ids.as_path());
            let sample = server.load(dirs, cell, Limit::Seconds(plan.seconds), ids).await?;
            self.samples.entry((cell_number, number)).or_default().push(sample);
        }
        server.kill_under_load(dirs, SEND).await?;
        let server = Server::start(dirs, Contender::A2ad, &folder, None).await?;
        self.starts_after_kill.entry(number).or_default().push(millis(server.ready_after));
        server.kill().await
    }

    pub(super) fn failed_calls(&self) -> u64 {
        self.samples.values().flatten().map(|sample| sample.errors).sum()
    }

    pub(super) fn describe(&self, text: &mut String) -> Result<()> {
        writeln!(
            text,
            "\n## A full store\n\n\
             `a2ad` alone with stores of several sizes, filled over JSON-RPC and copied for every round; reads first,\n\
             then sends, which the empty store does not stay empty under. It has {} tasks to begin with, so that there\n\
             is something to read. `get` asks for tasks picked at random from the whole store, `list` for the first\n\
             page of 50, `walk` for page after page, `list-since` for the first page of the completed tasks since a\n\
             time picked at random from the whole store, whose total is counted up to 5,000. Ratios are to the empty\n\
             store in the same round.\n",
            thousands(EMPTY as f64)
        )?;
        text.push_str("| call, connections | stored tasks | calls/s | p50 ms | p99 ms | max ms ");
        text.push_str("| calls/s × empty | p50 × empty | p99 × empty |\n");
        text.push_str("|---|--:|--:|--:|--:|--:|--:|--:|--:|\n");
        for (cell_number, Cell { mode, connections }) in CELLS.into_iter().enumerate() {
            for number in 0..self.stores.len() {
                write!(text, "| {mode}, {connections} | {} ", self.size(number))?;
                write_calls(text, &self.samples[&(cell_number, number)])?;
                let fields: [fn(&Sample) -> f64; 3] = [|one| one.rate, |one| one.p50_ms, |one| one.p99_ms];
                for field in fields {
                    write!(text, "| {} ", self.ratio(cell_number, number, field))?;
                }
                text.push_str("|\n");
            }
        }
        text.push_str(
            "\nFrom the start of the process to the first `/readyz` that is answered with 200, in milliseconds, median\n\
             and worst; `kill -9` struck in the middle of sends from 64 connections. Pages of the file are in the\n\
             system's cache. Resident is what the process that filled the store had when it had served so many tasks.\n\n",
        );
        text.push_str(
            "| stored tasks | store MiB | start after a clean stop | start after kill -9 | resident MiB |\n",
        );
        text.push_str("|--:|--:|--:|--:|--:|\n");
        for (number, store) in self.stores.iter().enumerate() {
            let megabytes = store.bytes as f64 / f64::from(1 << 20);
            let (clean, killed) = (&self.clean_starts[&number], &self.starts_after_kill[&number]);
            let resident = store.resident as f64 / 1024.0;
            writeln!(
                text,
                "| {} | {megabytes:.0} | {} | {} | {resident:.1} |",
                self.size(number),
                median_and_max(clean),
                median_and_max(killed)
            )?;
        }
        Ok(())
    }

    fn size(&self, number: usize) -> String {
        if number == 0 { "0".to_owned() } else { thousands(self.stores[number].tasks as f64) }
    }

    fn ratio(&self, cell: usize, number: usize, field: fn(&Sample) -> f64) -> String {
        if number == 0 {
            return "1".to_owned();
        }
        spread(ratios(&self.samples[&(cell, number)], &self.samples[&(cell, 0)], field))
    }
}

impl Store {
    async fn fill(dirs: &BenchDirs, tasks: u64) -> Result<Self> {
        eprintln!("a store with {} tasks", thousands(tasks as f64));
        let folder = dirs.fresh_folder(&format!("store-{tasks}"))?;
        let server = Server::start(dirs, Contender::A2ad, &folder, None).await?;
        let sample = server.load(dirs, SEND, Limit::Calls(tasks), Some(&folder.join(IDS))).await?;
        ensure!(sample.errors == 0 && sample.calls as u64 == tasks, "the store could not be filled");
        let resident = server.resident()?;
        server.terminate().await?;
        let mut bytes = 0;
        for name in DATA {
            bytes += fs::metadata(folder.join(name)).map_or(0, |file| file.len());
        }
        Ok(Self { tasks, folder, bytes, resident })
    }
}

/// Copies a store and its id file; both are synced to disk when this returns.
fn copy(from: &Path, to: &Path) -> Result<()> {
    for name in DATA.into_iter().chain([IDS]).filter(|name| from.join(name).exists()) {
        let copy = to.join(name);
        fs::copy(from.join(name), &copy).context("cannot copy a store")?;
        File::options().write(true).open(&copy)?.sync_all().context("cannot sync a copy")?;
    }
    Ok(())
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn median_and_max(starts: &[f64]) -> String {
    let slowest = starts.iter().copied().fold(0.0, f64::max);
    format!("{:.0} ({slowest:.0})", median(starts.to_vec()))
}
