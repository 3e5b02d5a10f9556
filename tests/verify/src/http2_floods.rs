//! http2_floods: HTTP/2 connections that flood the server with frames or open no window are ended, and other clients are served.
//!
//! Each kind of flood is sent by several connections at once, as fast as the server accepts it, for a few seconds: streams
//! that are reset as soon as they are begun (rapid reset), a head that never ends (CONTINUATION), settings and pings that
//! have to be acknowledged. Then come as many streams as a connection may have, with a window of 0, so that no response can be
//! sent; these connections answer pings, and are ended when the server gives up sending.

use std::{
    fs,
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    task::JoinSet,
    time::{sleep, timeout},
};

use super::extra_options::{ExtraOptions, TimeLimits};
use super::slow_readers::Healthy;
use super::trial::{ProofResult, Setup, Trial};
use crate::server::Server;

pub(crate) const OPTIONS: &str = "[--connections N] [--seconds N] [--seed S] [--binary PATH] [--relaxed]";

/// How long after a flood the server may still be busy with it.
const IDLE_AFTER: Duration = Duration::from_secs(5);
/// The share of one processor that counts as idle.
const MAX_IDLE_LOAD: f64 = 0.1;
/// How long to wait for the server to end a connection.
const END_LIMIT: Duration = Duration::from_secs(60);

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const CONTINUATION: u8 = 9;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flood {
    RapidReset,
    Continuation,
    Settings,
    Pings,
    ZeroWindow,
}

impl Flood {
    const ALL: [Self; 5] =
        [Self::RapidReset, Self::Continuation, Self::Settings, Self::Pings, Self::ZeroWindow];
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut extras = ExtraOptions::of(args);
    let seconds = Duration::from_secs(extras.number("--seconds", 5)?);
    let time_limits = extras.time_limits();
    let trial = Trial::parse("http2_floods", "--connections", 20, &extras.rest())?;
    trial.run(async |setup| attack(setup, trial.size, seconds, time_limits).await)
}

async fn attack(
    setup: &Setup,
    connections: u64,
    seconds: Duration,
    time_limits: TimeLimits,
) -> Result<ProofResult> {
    let server = Server::start(&setup.program, &setup.store).await?;
    let (address, process) = (server.address, server.id().context("the server has ended")?);
    let (mut findings, mut figures) = (Vec::new(), Vec::new());
    for flood in Flood::ALL {
        let healthy = Healthy::start(address);
        let mut running = JoinSet::new();
        for _ in 0..connections {
            running.spawn(send_again(flood, address, seconds));
        }
        let mut sent = Sent::default();
        while let Some(more) = running.join_next().await {
            sent.add(&more??);
        }
        let Sent { connections, frames, ended } = sent;
        let busy = healthy.stop().await?;
        let idle_after = idle_after(process, time_limits.limit(IDLE_AFTER)).await?;
        if ended < connections {
            findings.push(format!("{flood:?}: {ended} of {connections} connections were ended"));
        }
        if busy.failed > 0 {
            findings.push(format!("{flood:?}: {} other calls failed: {:?}", busy.failed, busy.failure));
        }
        if idle_after.is_none() {
            findings.push(format!("{flood:?}: the server was still busy after {IDLE_AFTER:?}"));
        }
        figures.push(json!({
            "flood": format!("{flood:?}"), "connections": connections, "frames": frames, "ended": ended, "other_calls": busy.calls,
            "other_p99_us": busy.p99.as_micros() as u64, "idle_after_ms": idle_after.map(|time| time.as_millis() as u64),
        }));
    }
    server.terminate(Duration::from_secs(60)).await?;
    Ok(ProofResult { figures: json!({ "connections": connections, "floods": figures }), findings })
}

#[derive(Default)]
struct Sent {
    connections: u64,
    frames: u64,
    /// Connections that the server has ended.
    ended: u64,
}

impl Sent {
    fn one(frames: u64, ended: bool) -> Self {
        Self { connections: 1, frames, ended: u64::from(ended) }
    }

    fn add(&mut self, other: &Self) {
        self.connections += other.connections;
        self.frames += other.frames;
        self.ended += other.ended;
    }
}

/// Sends one kind of flood for so long, on a new connection whenever the server has ended the last one.
async fn send_again(flood: Flood, address: SocketAddr, seconds: Duration) -> Result<Sent> {
    let (started, mut sent) = (Instant::now(), Sent::default());
    while started.elapsed() < seconds {
        sent.add(&match flood {
            Flood::ZeroWindow => open_no_window(address).await?,
            _ => send(flood, address, seconds).await?,
        });
    }
    Ok(sent)
}

/// Asks for responses that cannot be sent, and answers pings until the server ends the connection.
#[expect(clippy::disallowed_methods, reason = "a client that does not behave")]
async fn open_no_window(address: SocketAddr) -> Result<Sent> {
    let mut stream = TcpStream::connect(address).await?;
    let window = frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0]);
    stream.write_all(&[PREFACE, &window, &batch(Flood::ZeroWindow, 0, address)].concat()).await?;
    let answered = timeout(END_LIMIT, async {
        let mut header = [0; 9];
        while stream.read_exact(&mut header).await.is_ok() {
            let [high, middle, low, kind, flags, ..] = header;
            let mut payload = vec![0; u32::from_be_bytes([0, high, middle, low]) as usize];
            let read = stream.read_exact(&mut payload).await;
            if kind == PING && flags & ACK == 0 && read.is_ok() {
                // A connection that has ended is noticed by the next read.
                let _ = stream.write_all(&frame(PING, ACK, 0, &payload)).await;
            }
        }
    });
    Ok(Sent::one(PER_BATCH, answered.await.is_ok()))
}

/// Sends one kind of flood on one connection for so long, or until the server ends it.
#[expect(clippy::disallowed_methods, reason = "a client that does not behave")]
async fn send(flood: Flood, address: SocketAddr, seconds: Duration) -> Result<Sent> {
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(&[PREFACE, &frame(SETTINGS, 0, 0, &[])].concat()).await?;
    let (mut reading, mut writing) = stream.into_split();
    let write = async {
        let (mut frames, started) = (0, Instant::now());
        for number in 0.. {
            let bytes = batch(flood, number, address);
            if started.elapsed() > seconds || writing.write_all(&bytes).await.is_err() {
                break;
            }
            frames += PER_BATCH;
        }
        frames
    };
    let read = async {
        let mut buffer = vec![0; 64 << 10];
        while reading.read(&mut buffer).await.is_ok_and(|bytes| bytes > 0) {}
    };
    let (mut read, mut write) = (std::pin::pin!(read), std::pin::pin!(write));
    tokio::select! {
        // The server has ended the connection, which may also end a write.
        () = &mut read => Ok(Sent::one(timeout(seconds, write).await.unwrap_or(0), true)),
        frames = &mut write => Ok(Sent::one(frames, timeout(END_LIMIT, read).await.is_ok())),
    }
}

/// Frames in each write.
const PER_BATCH: u64 = 100;

/// The next frames of a flood.
fn batch(flood: Flood, number: u64, address: SocketAddr) -> Vec<u8> {
    let mut bytes = Vec::new();
    for at in 0..PER_BATCH {
        let stream = u32::try_from((number * PER_BATCH + at) * 2 + 1).unwrap_or(u32::MAX) & 0x7fff_ffff;
        match flood {
            Flood::RapidReset => {
                bytes.extend(frame(HEADERS, END_STREAM | END_HEADERS, stream, &head(address)));
                bytes.extend(frame(RST_STREAM, 0, stream, &8_u32.to_be_bytes()));
            }
            Flood::Continuation if number == 0 && at == 0 => {
                bytes.extend(frame(HEADERS, END_STREAM, 1, &head(address)));
            }
            Flood::Continuation => bytes.extend(frame(CONTINUATION, 0, 1, &field("x-flood", "x"))),
            Flood::Settings => bytes.extend(frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 100])),
            Flood::Pings => bytes.extend(frame(PING, 0, 0, &[0; 8])),
            Flood::ZeroWindow => {
                bytes.extend(frame(HEADERS, END_STREAM | END_HEADERS, stream, &head(address)));
            }
        }
    }
    bytes
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or_default().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// The head of a request for the page at `/`, in HPACK.
fn head(address: SocketAddr) -> Vec<u8> {
    // GET, http and / are in the static table.
    [&[0x82, 0x86, 0x84][..], &field(":authority", &address.to_string())].concat()
}

/// A header field without indexing and without compression.
fn field(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| [&[text.len() as u8], text.as_bytes()].concat();
    [vec![0], text(name), text(value)].concat()
}

/// How long after now the process is idle; `None` if it is not within the limit.
async fn idle_after(process: u32, limit: Duration) -> Result<Option<Duration>> {
    const SAMPLE: Duration = Duration::from_millis(500);
    let started = Instant::now();
    while started.elapsed() <= limit {
        let before = (Instant::now(), processor_time(process)?);
        sleep(SAMPLE).await;
        let used = processor_time(process)?.saturating_sub(before.1);
        if used.as_secs_f64() <= before.0.elapsed().as_secs_f64() * MAX_IDLE_LOAD {
            return Ok(Some(started.elapsed()));
        }
    }
    Ok(None)
}

/// The processor time of a process, in ticks of 10 ms.
fn processor_time(process: u32) -> Result<Duration> {
    let text = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name in parentheses may contain spaces.
    let (_, rest) = text.rsplit_once(')').context("no name in /proc/PID/stat")?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let ticks: u64 =
        fields.get(11..13).context("too few fields")?.iter().flat_map(|field| field.parse::<u64>()).sum();
    Ok(Duration::from_millis(ticks * 10))
}
