//! stuck_sockets: connections that never finish what they begin are closed, memory stays bounded, and other clients are
//! served as before.
//!
//! Equal numbers of: connections that send nothing, that send the head or the body of a request byte by byte, that stay
//! idle after a request, that send nothing to a listener with TLS, and that send the beginning of a TLS handshake. Then, over
//! HTTP/2, as gRPC uses it, as many connections that send the preface only, the head or the body of a request byte by byte, or
//! nothing after their settings. Idle connections are not stuck: they have to stay open. Meanwhile a few clients send
//! messages one after another.

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
    let mut findings = Vec::new();
    let mut figures = json!({ "sockets": sockets, "sockets_wanted": wanted });
    for round in ROUNDS {
        let result = attack_with(round, &server, sockets, time_limits).await?;
        findings.extend(result.findings.into_iter().map(|finding| format!("{}: {finding}", round.name)));
        figures[round.name] = result.figures;
    }
    server.terminate(Duration::from_secs(60)).await?;
    Ok(ProofResult { figures, findings })
}

/// Opens so many connections of the kinds of a round, and waits until they are closed.
async fn attack_with(
    round: &Round,
    server: &Server,
    sockets: u64,
    time_limits: TimeLimits,
) -> Result<ProofResult> {
    let (plain, process) = (server.address, server.id().context("the server has ended")?);
    let secure = address_with_tls(&server.log())?;
    let calm = Healthy::start(plain).run_for(Duration::from_secs(2)).await?;
    let before = memory::read(process)?.now;

    let started = Instant::now();
    let (healthy, peak) = (Healthy::start(plain), Peak::start(process));
    let mut stuck = JoinSet::new();
    for number in 0..sockets {
        let kind = round.kinds[number as usize % round.kinds.len()];
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
        "opened_after_ms": millis(opened_after),
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
    Http2Silent,
    Http2SlowHead,
    Http2SlowBody,
    Http2Idle,
}

/// Connections that are opened at the same time.
struct Round {
    name: &'static str,
    kinds: &'static [Kind],
}

const ROUNDS: &[Round] = &[
    Round {
        name: "http1_and_tls",
        kinds: &[
            Kind::Silent,
            Kind::SlowHead,
            Kind::SlowBody,
            Kind::Idle,
            Kind::SilentTls,
            Kind::SlowHandshake,
        ],
    },
    Round {
        name: "http2",
        kinds: &[Kind::Http2Silent, Kind::Http2SlowHead, Kind::Http2SlowBody, Kind::Http2Idle],
    },
];

/// What a client of HTTP/2 sends first.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: &[u8] = &[0, 0, 0, 4, 0, 0, 0, 0, 0];
const PING: &[u8] = &[0, 0, 8, 6, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

impl Kind {
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
        let slow_head = format!("GET / HTTP/1.1\r\nhost: {address}\r\nx: {}", "x".repeat(100));
        let post = format!("POST /a2a/echo HTTP/1.1\r\nhost: {address}\r\ncontent-length: 1000\r\n\r\n{{");
        let (at_once, slowly) = match self {
            Self::Silent | Self::SilentTls => (Vec::new(), Vec::new()),
            Self::SlowHead => (Vec::new(), slow_head.into_bytes()),
            Self::SlowBody => (post.into_bytes(), vec![b' '; 100]),
            // The beginning of a record with a handshake of 512 bytes.
            Self::SlowHandshake => (vec![0x16, 3, 1, 2, 0, 1, 0, 1], vec![0; 100]),
            Self::Http2Silent => (PREFACE.to_vec(), Vec::new()),
            Self::Http2SlowHead => {
                // Fields that are in the table of HPACK.
                let head = [&[0, 0, 100, 1, 4, 0, 0, 0, 1][..], &[0x82; 100]].concat();
                ([PREFACE, SETTINGS].concat(), head)
            }
            Self::Http2SlowBody => ([PREFACE, SETTINGS, &grpc_call(address)].concat(), vec![0; 100]),
            Self::Idle => return idle(stream, address).await,
            Self::Http2Idle => return http2_idle(stream).await,
        };
        stream.write_all(&at_once).await?;
        let (mut reading, mut writing) = stream.split();
        let write = async {
            for byte in slowly {
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

/// Sends the settings, waits, and sends a ping.
async fn http2_idle(mut stream: TcpStream) -> Result<Outcome> {
    stream.write_all(&[PREFACE, SETTINGS].concat()).await?;
    sleep(IDLE).await;
    stream.write_all(PING).await?;
    let mut read: Vec<u8> = Vec::new();
    // The answer to the ping is the ping with a flag.
    let answer = [&PING[..4], &[1], &PING[5..]].concat();
    while !read.windows(answer.len()).any(|bytes| bytes == answer) {
        let mut buffer = [0; 4 << 10];
        let more = timeout(GIVE_UP, stream.read(&mut buffer)).await??;
        ensure!(more > 0, "an idle connection of HTTP/2 was closed");
        read.extend(&buffer[..more]);
    }
    Ok(Outcome::Kept)
}

/// The head of a call of gRPC, and the header of a frame whose content is to follow.
fn grpc_call(address: SocketAddr) -> Vec<u8> {
    let text = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
    let field = |name: &str, value: &str| [vec![0], text(name), text(value)].concat();
    // POST and http are in the table of HPACK.
    let head = [
        vec![0x83, 0x86],
        field(":path", "/lf.a2a.v1.A2AService/SendMessage"),
        field(":authority", &address.to_string()),
        field("content-type", "application/grpc"),
        field("te", "trailers"),
    ]
    .concat();
    [&[0, 0, head.len() as u8, 1, 4, 0, 0, 0, 1][..], &head, &[0, 0, 100, 0, 1, 0, 0, 0, 1]].concat()
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
