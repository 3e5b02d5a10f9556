//! `cargo xtask bench [--rounds N] [--seconds S] [--quick]`: how fast `a2ad` is beside other servers.
//!
//! One run, interleaved rounds: in each round every contender is started fresh on a loopback port, warmed up,
//! measured in every cell by the same load and stopped again. What counts are ratios taken within a round, with
//! their spread over the rounds; rates belong to the machine. The contenders and the load are the workspace
//! `bench/`; nothing is skipped, a contender that cannot be built or started is an error. A quick run shows
//! that everything works and is printed only; a full one is written to `BENCHMARKS.md`.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a task runner talks to a terminal")]

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{self, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};

/// What is measured: the load's mode and its number of connections.
const CELLS: [(&str, usize); 5] = [("send", 1), ("send", 16), ("send", 64), ("send", 256), ("stream", 64)];
const WARM_UP_SECONDS: f64 = 0.5;
const START_LIMIT: Duration = Duration::from_secs(10);

/// Runs the benchmark.
pub(crate) fn run(args: Vec<String>) -> Result<()> {
    let plan = Plan::from_args(args)?;
    let places = Places::build()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let results = runtime.block_on(measure(&plan, &places))?;
    let document = document(&plan, &places, &results)?;
    println!("{document}");
    let failed = results.failed_calls();
    ensure!(failed == 0, "{failed} calls failed, so these figures prove nothing; nothing was written");
    if plan.recorded {
        fs::write(places.root.join("BENCHMARKS.md"), document).context("cannot write BENCHMARKS.md")?;
    }
    Ok(())
}

/// How much is measured.
struct Plan {
    rounds: usize,
    seconds: f64,
    /// After how many tasks the memory is looked at.
    tasks: [u64; 2],
    recorded: bool,
    /// The command line that asks for this plan.
    command: String,
}

impl Plan {
    fn from_args(args: Vec<String>) -> Result<Self> {
        let command = ["cargo xtask bench"].into_iter().chain(args.iter().map(String::as_str));
        let command = command.collect::<Vec<_>>().join(" ");
        let mut plan = Self { rounds: 5, seconds: 3.0, tasks: [20_000, 200_000], recorded: true, command };
        if args.iter().any(|arg| arg == "--quick") {
            plan = Self { rounds: 2, seconds: 0.5, tasks: [2_000, 20_000], recorded: false, ..plan };
        }
        let mut args = args.into_iter().filter(|arg| arg != "--quick");
        while let Some(flag) = args.next() {
            let value = args.next().with_context(|| format!("{flag} needs a value"))?;
            match flag.as_str() {
                "--rounds" => plan.rounds = value.parse().context("--rounds takes a whole number")?,
                "--seconds" => plan.seconds = value.parse().context("--seconds takes a number")?,
                _ => bail!("unknown argument {flag}; known are --rounds N, --seconds S and --quick"),
            }
        }
        ensure!(plan.rounds > 0 && plan.seconds > 0.0, "rounds and seconds must be more than nothing");
        Ok(plan)
    }
}

/// Where the sources, the built programs and the scratch files are.
struct Places {
    root: PathBuf,
    a2ad: PathBuf,
    /// The folder of the programs of `bench/`.
    bench: PathBuf,
    /// On the same disk as the build, since a sync in a memory file system costs nothing.
    scratch: PathBuf,
}

impl Places {
    fn build() -> Result<Self> {
        let root =
            Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("xtask stands in the repository")?;
        cargo(root, &["build", "--release", "-p", "a2ad"])?;
        cargo(root, &["build", "--release", "--manifest-path", "bench/Cargo.toml"])?;
        let target =
            |default: &str| root.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or(default.into()));
        Ok(Self {
            root: root.to_owned(),
            a2ad: target("target").join("release/a2ad"),
            bench: target("bench/target").join("release"),
            scratch: target("target").join("bench-scratch"),
        })
    }

    /// A new, empty folder for one server.
    fn fresh_folder(&self) -> Result<PathBuf> {
        if self.scratch.exists() {
            fs::remove_dir_all(&self.scratch).context("cannot clear the scratch folder")?;
        }
        fs::create_dir_all(&self.scratch).context("cannot make the scratch folder")?;
        Ok(self.scratch.clone())
    }
}

fn cargo(root: &Path, args: &[&str]) -> Result<()> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let status =
        process::Command::new(cargo).args(args).current_dir(root).status().context("cannot start cargo")?;
    ensure!(status.success(), "cargo {} failed", args.join(" "));
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Contender {
    BareAxum,
    BareDurable,
    OfficialSdk,
    A2ad,
}

impl Contender {
    const ALL: [Self; 4] = [Self::BareAxum, Self::BareDurable, Self::OfficialSdk, Self::A2ad];

    fn name(self) -> &'static str {
        match self {
            Self::BareAxum => "bare-axum",
            Self::BareDurable => "bare-durable",
            Self::OfficialSdk => "official-sdk",
            Self::A2ad => "a2ad",
        }
    }

    fn what(self) -> &'static str {
        match self {
            Self::BareAxum => {
                "axum alone: parses the body, answers a task of the same shape and size, keeps nothing. \
                 The ceiling of this HTTP stack"
            }
            Self::BareDurable => {
                "the same with 1.6 KB appended per call and a shared `fdatasync` before every answer. \
                 The ceiling of a durable server on this stack and disk"
            }
            Self::OfficialSdk => {
                "an echo agent on the official Rust SDK, in memory, put together as in its own example, hence \
                 without `TCP_NODELAY`; its streams have no task at the head and so three events, not four"
            }
            Self::A2ad => "this program with its default settings: every task on disk before it is answered",
        }
    }

    /// Where its echo agent is called.
    fn path(self) -> &'static str {
        if self == Self::A2ad { "/a2a/echo" } else { "/" }
    }

    fn command(self, places: &Places, address: SocketAddr, folder: &Path) -> Command {
        let listen = ["--listen".to_owned(), address.to_string()];
        let mut command = match self {
            Self::A2ad => Command::new(&places.a2ad),
            _ => Command::new(places.bench.join(self.name())),
        };
        match self {
            Self::BareAxum | Self::OfficialSdk => command.args(listen),
            Self::BareDurable => command.args(listen).arg("--dir").arg(folder),
            Self::A2ad => command.arg("serve").args(listen).arg("--store").arg(folder.join("a2ad.db")),
        };
        command
    }
}

/// A contender at work; it ends with this value.
struct Server {
    contender: Contender,
    child: Child,
    address: SocketAddr,
}

impl Server {
    /// Starts `contender` with an empty folder and waits until it answers.
    async fn start(places: &Places, contender: Contender) -> Result<Self> {
        let folder = places.fresh_folder()?;
        let address = free_address()?;
        let log = folder.join("log");
        let child = contender
            .command(places, address, &folder)
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(fs::File::create(&log)?)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("cannot start {}", contender.name()))?;
        let mut server = Self { contender, child, address };
        let ready = tokio::time::timeout(START_LIMIT, server.ready()).await;
        ready.context("it does not answer").flatten().with_context(|| {
            format!("{} did not start: {}", contender.name(), fs::read_to_string(&log).unwrap_or_default())
        })?;
        Ok(server)
    }

    async fn ready(&mut self) -> Result<()> {
        while !self.answers().await {
            if let Some(status) = self.child.try_wait()? {
                bail!("it ended with {status}");
            }
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Ok(())
    }

    async fn answers(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(self.address).await else { return false };
        if self.contender != Contender::A2ad {
            return true;
        }
        let request = format!("GET /healthz HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\r\n", self.address);
        let mut answer = String::new();
        stream.write_all(request.as_bytes()).await.is_ok()
            && stream.read_to_string(&mut answer).await.is_ok()
            && answer.starts_with("HTTP/1.1 200")
    }

    /// Calls the server from `connections` connections until `limit`, a flag of the load and its value.
    async fn load(
        &self,
        places: &Places,
        (mode, connections): (&str, usize),
        limit: [&str; 2],
    ) -> Result<Sample> {
        let child = Command::new(places.bench.join("load"))
            .args([mode, "--address", &self.address.to_string(), "--path", self.contender.path()])
            .args(["--connections", &connections.to_string()])
            .args(limit)
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start the load")?;
        let output = child.wait_with_output().await?;
        ensure!(output.status.success(), "the load on {} failed", self.contender.name());
        Sample::decode(&output.stdout)
            .with_context(|| format!("{} at {mode}, {connections}", self.contender.name()))
    }

    /// What it has resident, in KiB.
    fn resident(&self) -> Result<u64> {
        let pid = self.child.id().context("it has ended")?;
        let status =
            fs::read_to_string(format!("/proc/{pid}/status")).context("cannot read its memory use")?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).context("no VmRSS")?;
        Ok(line.trim().trim_end_matches(" kB").parse()?)
    }

    async fn stop(mut self) -> Result<()> {
        self.child.kill().await.with_context(|| format!("cannot stop {}", self.contender.name()))
    }
}

fn free_address() -> Result<SocketAddr> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr())?)
}

/// One contender in one cell of one round.
#[derive(Clone, Copy)]
struct Sample {
    calls: f64,
    rate: f64,
    p50_ms: f64,
    p99_ms: f64,
    max_ms: f64,
    errors: u64,
}

impl Sample {
    fn decode(line: &[u8]) -> Result<Self> {
        let fields: HashMap<String, f64> =
            serde_json::from_slice(line).context("the load printed no report")?;
        let field =
            |name: &str| fields.get(name).copied().with_context(|| format!("the report has no {name}"));
        let sample = Self {
            calls: field("calls")?,
            rate: field("calls_per_s")?,
            p50_ms: field("p50_ms")?,
            p99_ms: field("p99_ms")?,
            max_ms: field("max_ms")?,
            errors: field("errors")? as u64,
        };
        ensure!(sample.calls > 0.0, "not one call was answered");
        Ok(sample)
    }
}

/// Everything one run found out.
struct Results {
    /// By cell and contender, one sample a round.
    samples: BTreeMap<(usize, Contender), Vec<Sample>>,
    /// What `a2ad` has resident after so many tasks, in KiB.
    resident: Vec<(u64, u64)>,
}

impl Results {
    fn failed_calls(&self) -> u64 {
        self.samples.values().flatten().map(|sample| sample.errors).sum()
    }

    /// How `contender`'s rate compares with `base`'s, round by round.
    fn ratios(&self, cell: usize, contender: Contender, base: Contender) -> Vec<f64> {
        let pairs = self.samples[&(cell, contender)].iter().zip(&self.samples[&(cell, base)]);
        pairs.map(|(sample, base)| sample.rate / base.rate).collect()
    }
}

async fn measure(plan: &Plan, places: &Places) -> Result<Results> {
    let mut samples: BTreeMap<_, Vec<Sample>> = BTreeMap::new();
    let seconds = plan.seconds.to_string();
    for round in 0..plan.rounds {
        let mut order = Contender::ALL;
        // So that none always runs in another's wake.
        order.rotate_left(round % Contender::ALL.len());
        for contender in order {
            eprintln!("round {} of {}: {}", round + 1, plan.rounds, contender.name());
            let server = Server::start(places, contender).await?;
            server.load(places, ("send", 16), ["--seconds", &WARM_UP_SECONDS.to_string()]).await?;
            for (cell, load) in CELLS.into_iter().enumerate() {
                let sample = server.load(places, load, ["--seconds", &seconds]).await?;
                samples.entry((cell, contender)).or_default().push(sample);
            }
            server.stop().await?;
        }
    }
    Ok(Results { samples, resident: measure_memory(plan, places).await? })
}

async fn measure_memory(plan: &Plan, places: &Places) -> Result<Vec<(u64, u64)>> {
    eprintln!("memory");
    let server = Server::start(places, Contender::A2ad).await?;
    let mut resident = vec![(0, server.resident()?)];
    let mut done = 0;
    for tasks in plan.tasks {
        let sample = server.load(places, ("send", 64), ["--calls", &(tasks - done).to_string()]).await?;
        ensure!(sample.errors == 0, "{} calls failed while the memory was watched", sample.errors);
        resident.push((tasks, server.resident()?));
        done = tasks;
    }
    server.stop().await?;
    places.fresh_folder()?;
    Ok(resident)
}

/// The whole of `BENCHMARKS.md`.
fn document(plan: &Plan, places: &Places, results: &Results) -> Result<String> {
    let mut text = String::from("# Benchmarks\n\n");
    writeln!(text, "Written by `{}`; not edited by hand.", plan.command)?;
    writeln!(
        text,
        "One run of {} interleaved rounds, {} s a cell; every contender is started fresh in every round; server and\n\
         load share the machine. Echo agent, A2A 1.0 over JSON-RPC, 200 bytes of text, keep-alive connections on\n\
         loopback, a random UUID v4 as `messageId` of every call, every answer checked. Rates belong to the\n\
         machine; the ratios, taken within a round, are what can be compared.\n",
        plan.rounds, plan.seconds
    )?;
    writeln!(text, "Machine: {}.\n", machine()?)?;
    for contender in Contender::ALL {
        writeln!(text, "- `{}`: {}.", contender.name(), contender.what())?;
    }
    writeln!(text, "\nThe SDK is `a2a-server-lf` {}.\n", locked_version(places, "a2a-server-lf")?)?;
    text.push_str("## Calls\n\n");
    text.push_str("Medians over the rounds; in brackets the least and the greatest ratio of a round; ");
    text.push_str("max is the slowest call of all rounds.\n\n");
    text.push_str("| call, connections | contender | calls/s | p50 ms | p99 ms | max ms ");
    text.push_str("| × bare-axum | × official-sdk |\n|---|---|--:|--:|--:|--:|--:|--:|\n");
    for (cell, (mode, connections)) in CELLS.into_iter().enumerate() {
        for contender in Contender::ALL {
            write!(text, "| {mode}, {connections} | {} ", contender.name())?;
            write_row(&mut text, results, cell, contender)?;
        }
    }
    text.push_str("\n## Memory of a2ad\n\n| tasks served | resident MiB |\n|--:|--:|\n");
    for (tasks, kib) in &results.resident {
        writeln!(text, "| {} | {:.1} |", thousands(*tasks as f64), *kib as f64 / 1024.0)?;
    }
    Ok(text)
}

fn write_row(text: &mut String, results: &Results, cell: usize, contender: Contender) -> Result<()> {
    let samples = &results.samples[&(cell, contender)];
    let middle = |field: fn(&Sample) -> f64| median(samples.iter().map(field).collect());
    let failed: u64 = samples.iter().map(|sample| sample.errors).sum();
    let failed = if failed > 0 { format!(" ({failed} failed)") } else { String::new() };
    let slowest = samples.iter().map(|sample| sample.max_ms).fold(0.0, f64::max);
    let (p50, p99) = (middle(|sample| sample.p50_ms), middle(|sample| sample.p99_ms));
    let rate = thousands(middle(|sample| sample.rate));
    let of_bare = spread(results, cell, contender, Contender::BareAxum);
    let of_sdk = spread(results, cell, contender, Contender::OfficialSdk);
    writeln!(text, "| {rate}{failed} | {p50:.2} | {p99:.2} | {slowest:.1} | {of_bare} | {of_sdk} |")?;
    Ok(())
}

fn spread(results: &Results, cell: usize, contender: Contender, base: Contender) -> String {
    if contender == base {
        return "1".to_owned();
    }
    let ratios = results.ratios(cell, contender, base);
    let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let greatest = ratios.iter().copied().fold(0.0, f64::max);
    format!("{:.2} ({least:.2}..{greatest:.2})", median(ratios))
}

fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    (numbers[(numbers.len() - 1) / 2] + numbers[numbers.len() / 2]) / 2.0
}

fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
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
