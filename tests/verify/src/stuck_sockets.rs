//! stuck_sockets: connections that never finish what they begin are closed, memory stays bounded, and other clients are
//! served as before.
//!
//! Equal numbers of: connections that send nothing, that send the head or the body of a request byte by byte, that stay
//! idle after a request, that send nothing to a listener with TLS, and that send the beginning of a TLS handshake. Idle
//! connections are not stuck: they have to stay open. Meanwhile a few clients send messages one after another.

use std::{
    fs,
    net::SocketAddr,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use base64::{Engine as _, prelude::BASE64_STANDARD};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
    time::{sleep, timeout},
};

use super::extra_options::{ExtraOptions, TimeLimits};
use super::request_bombs::memory;
use super::slow_readers::{Healthy, Peak};
use super::trial::{ProofResult, Setup, Trial};
use crate::server::{self, Server};

pub(crate) const OPTIONS: &str = "[--sockets N] [--seed S] [--binary PATH] [--relaxed]";

/// A stuck connection has to be closed within this time.
const CLOSED_WITHIN: Duration = Duration::from_secs(15);
/// The p99 latency of the other clients.
const MAX_P99: Duration = Duration::from_millis(50);
/// How much the resident memory of the server may grow.
const MAX_GROWTH: u64 = 200 << 20;
/// How long an idle connection waits: longer than a stuck one lasts.
const IDLE: Duration = Duration::from_secs(12);
/// How long to wait for a connection that is not closed.
const GIVE_UP: Duration = Duration::from_secs(60);
/// The interval of the bytes of a slow client.
const BYTE_INTERVAL: Duration = Duration::from_secs(1);
/// How many connections are opened at once.
const BATCH: usize = 100;
/// Descriptors that are not of connections.
const OTHER_DESCRIPTORS: u64 = 256;

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut extras = ExtraOptions::of(args);
    let time_limits = extras.time_limits();
    let trial = Trial::parse("stuck_sockets", "--sockets", 10_000, &extras.rest())?;
    trial.run(async |setup| attack(setup, trial.size, time_limits).await)
}

async fn attack(setup: &Setup, wanted: u64, time_limits: TimeLimits) -> Result<ProofResult> {
    let sockets = wanted.min(descriptors()?.saturating_sub(OTHER_DESCRIPTORS));
    let server = start(setup).await?;
    let (plain, process) = (server.address, server.id().context("the server has ended")?);
    let secure = address_with_tls(&server.log())?;
    let calm = Healthy::start(plain).run_for(Duration::from_secs(2)).await?;
    let before = memory::read(process)?.now;

    let started = Instant::now();
    let (healthy, peak) = (Healthy::start(plain), Peak::start(process));
    let mut stuck = JoinSet::new();
    for number in 0..sockets {
        let kind = Kind::ALL[number as usize % Kind::ALL.len()];
        stuck.spawn(kind.run(if kind.is_for_tls() { secure } else { plain }));
        if stuck.len() % BATCH == 0 {
            // Not faster than the kernel's queue of connections.
            sleep(Duration::from_millis(10)).await;
        }
    }
    let opened_after = started.elapsed();
    let mut outcomes = Outcomes::default();
    while let Some(outcome) = stuck.join_next().await {
        let (kind, outcome) = outcome?;
        outcomes.count(kind, outcome);
    }
    let busy = healthy.stop().await?;
    let peak = peak.stop().await?;
    server.terminate(Duration::from_secs(60)).await?;

    let mut findings = outcomes.findings(time_limits);
    let mut expect = |holds: bool, finding: String| {
        if !holds {
            findings.push(finding);
        }
    };
    let growth = peak.saturating_sub(before);
    expect(growth <= MAX_GROWTH, format!("the resident memory grew by {} MiB", growth >> 20));
    expect(busy.failed == 0, format!("{} healthy calls failed: {:?}", busy.failed, busy.failure));
    let limit = time_limits.limit(MAX_P99);
    expect(busy.p99 <= limit, format!("the p99 of healthy calls was {:?}", busy.p99));
    let figures = json!({
        "sockets": sockets, "sockets_wanted": wanted, "opened_after_ms": millis(opened_after),
        "stuck_closed": outcomes.closed, "longest_ms": millis(outcomes.longest), "idle_kept": outcomes.kept,
        "resident_before_mib": before >> 20, "resident_peak_mib": peak >> 20,
        "healthy_calls": busy.calls, "healthy_p99_before_us": calm.p99.as_micros() as u64,
        "healthy_p99_during_us": busy.p99.as_micros() as u64,
    });
    Ok(ProofResult { figures, findings })
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// The limit of descriptors, raised to what the system allows.
fn descriptors() -> Result<u64> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
        .context("cannot raise the limit of files")?;
    Ok(maximum.unwrap_or(u64::MAX))
}

/// A server with one address without TLS and one with it.
async fn start(setup: &Setup) -> Result<Server> {
    let folder = setup.store.parent().context("the store has no folder")?;
    certificate(folder)?;
    let config = "[server]\nlisten = [\"127.0.0.1:0\", { address = \"127.0.0.1:0\", tls = { cert = \"server.pem\", key = \
                  \"server.key\" } }]\n";
    fs::write(folder.join("stuck.toml"), config)?;
    let mut command = server::command(&setup.program);
    command.current_dir(folder).args(["--config", "stuck.toml", "--store"]).arg(&setup.store);
    // One line for each of thousands of calls would hide everything else.
    Ok(Server::start_command(command).await?)
}

fn certificate(folder: &Path) -> Result<()> {
    let rcgen::CertifiedKey { cert, signing_key } =
        rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let pem = |label: &str, der: &[u8]| {
        format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", BASE64_STANDARD.encode(der))
    };
    fs::write(folder.join("server.pem"), pem("CERTIFICATE", cert.der()))?;
    fs::write(folder.join("server.key"), pem("PRIVATE KEY", &signing_key.serialize_der()))?;
    Ok(())
}

fn address_with_tls(log: &str) -> Result<SocketAddr> {
    let (_, rest) = log.split_once("\"other_urls\":\"https://").context("the log has no address with TLS")?;
    Ok(rest.split('"').next().unwrap_or_default().parse()?)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Silent,
    SlowHead,
    SlowBody,
    Idle,
    SilentTls,
    SlowHandshake,
}

impl Kind {
    const ALL: [Self; 6] =
        [Self::Silent, Self::SlowHead, Self::SlowBody, Self::Idle, Self::SilentTls, Self::SlowHandshake];

    fn is_for_tls(self) -> bool {
        matches!(self, Self::SilentTls | Self::SlowHandshake)
    }

    async fn run(self, address: SocketAddr) -> (Self, Result<Outcome>) {
        (self, self.connect(address).await)
    }

    #[expect(clippy::disallowed_methods, reason = "a client that does not behave")]
    async fn connect(self, address: SocketAddr) -> Result<Outcome> {
        let mut stream = TcpStream::connect(address).await?;
        let started = Instant::now();
        let (at_once, slowly) = match self {
            Self::Silent | Self::SilentTls => (String::new(), String::new()),
            Self::SlowHead => {
                (String::new(), format!("GET / HTTP/1.1\r\nhost: {address}\r\nx: {}", "x".repeat(100)))
            }
            Self::SlowBody => {
                let head =
                    format!("POST /a2a/echo HTTP/1.1\r\nhost: {address}\r\ncontent-length: 1000\r\n\r\n{{");
                (head, " ".repeat(100))
            }
            Self::Idle => return idle(stream, address).await,
            // The beginning of a record with a handshake of 512 bytes.
            Self::SlowHandshake => ("\u{16}\u{3}\u{1}\u{2}\0\u{1}\0\u{1}".to_owned(), "\0".repeat(100)),
        };
        stream.write_all(at_once.as_bytes()).await?;
        let (mut reading, mut writing) = stream.split();
        let write = async {
            for byte in slowly.bytes() {
                sleep(BYTE_INTERVAL).await;
                if writing.write_all(&[byte]).await.is_err() {
                    break;
                }
            }
            std::future::pending::<()>().await;
        };
        let read = async {
            let mut buffer = [0; 4 << 10];
            // A response may come first. An end and a reset both close the connection.
            while reading.read(&mut buffer).await.is_ok_and(|bytes| bytes > 0) {}
        };
        let closed = async {
            tokio::select! {
                () = read => {}
                () = write => {}
            }
        };
        match timeout(GIVE_UP, closed).await {
            Ok(()) => Ok(Outcome::Closed(started.elapsed())),
            Err(_) => Ok(Outcome::Open),
        }
    }
}

/// Sends a request, waits, and sends another one.
async fn idle(mut stream: TcpStream, address: SocketAddr) -> Result<Outcome> {
    for wait in [Duration::ZERO, IDLE] {
        sleep(wait).await;
        stream.write_all(format!("GET /healthz HTTP/1.1\r\nhost: {address}\r\n\r\n").as_bytes()).await?;
        let mut buffer = [0; 4 << 10];
        let read = timeout(GIVE_UP, stream.read(&mut buffer)).await??;
        ensure!(buffer[..read].starts_with(b"HTTP/1.1 200"), "an idle connection was closed or refused");
    }
    Ok(Outcome::Kept)
}

enum Outcome {
    Closed(Duration),
    /// Not closed although it is stuck.
    Open,
    /// An idle connection that could be used again.
    Kept,
}

#[derive(Default)]
struct Outcomes {
    closed: u64,
    kept: u64,
    longest: Duration,
    problems: Vec<String>,
}

impl Outcomes {
    fn count(&mut self, kind: Kind, outcome: Result<Outcome>) {
        match outcome {
            Ok(Outcome::Closed(after)) => {
                self.closed += 1;
                self.longest = self.longest.max(after);
            }
            Ok(Outcome::Kept) => self.kept += 1,
            Ok(Outcome::Open) => self.problems.push(format!("{kind:?}: not closed within {GIVE_UP:?}")),
            Err(error) => self.problems.push(format!("{kind:?}: {error:#}")),
        }
    }

    fn findings(&mut self, time_limits: TimeLimits) -> Vec<String> {
        let mut findings = std::mem::take(&mut self.problems);
        let limit = time_limits.limit(CLOSED_WITHIN);
        if self.longest > limit {
            findings.push(format!("a stuck connection was closed after {:?}", self.longest));
        }
        findings
    }
}
