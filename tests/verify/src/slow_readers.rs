//! slow_readers: clients that read too slowly are disconnected, memory stays bounded, and other clients are served
//! as before.
//!
//! Two kinds at once: readers of a 16 MiB response at one byte a second over HTTP/1.1, and HTTP/2 connections whose
//! streams have a flow-control window of 0. Meanwhile a few clients send messages one after another, and one
//! connection is idle for a minute and then used again, as a proxy would.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testkit::http2::{Channel, full};
use testkit::json::task_id;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpSocket, TcpStream},
    task::JoinSet,
    time::sleep,
};
use uuid::Uuid;

use super::extra_options::{ExtraOptions, TimeLimits};
use super::request_bombs::memory;
use super::rpc::{Caller, message};
use super::trial::{ProofResult, Setup, Trial};
use crate::http::Connection;
use crate::server::Server;

pub(crate) const OPTIONS: &str =
    "[--readers N] [--connections N] [--idle-seconds N] [--seed S] [--binary PATH] [--relaxed]";

/// Size of the text that `echo` returns twice: in the history and in the artifact.
const TEXT_BYTES: usize = 8 << 20;
/// Approximate size of the response to each unread HTTP/2 stream.
const SMALL_TEXT_BYTES: usize = 30 << 10;
const STREAMS: u64 = 128;
const HEALTHY_CLIENTS: usize = 4;
/// The server's limit for a response without progress.
const WRITE_WINDOW: Duration = Duration::from_secs(30);
/// A reader must be disconnected within this time: the write window, the two windows it earned while the kernels' buffers
/// were filled, and some time to detect it.
const CUT_OFF: Duration = Duration::from_secs(105);
/// The server's memory budget for responses, and what a process needs besides.
const MAX_MEMORY: u64 = (1 << 30) + (512 << 20);

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut extras = ExtraOptions::of(args);
    let connections = extras.number("--connections", 50)?;
    let idle = Duration::from_secs(extras.number("--idle-seconds", 60)?);
    let time_limits = extras.time_limits();
    let trial = Trial::parse("slow_readers", "--readers", 1_000, &extras.rest())?;
    trial.run(async |setup| attack(setup, trial.size, connections, idle, time_limits).await)
}

async fn attack(
    setup: &Setup,
    readers: u64,
    connections: u64,
    idle: Duration,
    time_limits: TimeLimits,
) -> Result<ProofResult> {
    let server = Server::start(&setup.program, &setup.store).await?;
    let (address, process) = (server.address, server.id().context("the server has ended")?);
    let (large, small) = (task_of(address, TEXT_BYTES).await?, task_of(address, SMALL_TEXT_BYTES).await?);
    let mut idle_connection = JoinSet::new();
    idle_connection.spawn(reuse_after(address, idle));
    let calm = Healthy::start(address).run_for(Duration::from_secs(3)).await?;
    let before = memory::read(process)?.now;

    let started = Instant::now();
    let healthy = Healthy::start(address);
    let peak = Peak::start(process);
    let mut slow = JoinSet::new();
    for _ in 0..readers {
        slow.spawn(read_slowly(address, large.clone()));
    }
    let mut unread = JoinSet::new();
    for _ in 0..connections {
        unread.spawn(leave_unread(address, small.clone()));
    }
    let mut outcomes = Outcomes::default();
    while let Some(outcome) = slow.join_next().await {
        outcomes.count(outcome??);
    }
    let mut reset = 0;
    while let Some(streams) = unread.join_next().await {
        reset += streams??;
    }
    let all_cut_off = started.elapsed();
    let busy = healthy.stop().await?;
    let peak = peak.stop().await?;
    let reused = idle_connection.join_next().await.context("the idle connection is gone")???;
    // Freed memory is returned to the system with a delay.
    sleep(Duration::from_secs(3)).await;
    let after = memory::read(process)?.now;
    server.terminate(Duration::from_secs(60)).await?;

    let mut findings = Vec::new();
    let mut expect = |holds: bool, finding: String| {
        if !holds {
            findings.push(finding);
        }
    };
    expect(
        outcomes.completed == 0,
        format!("{} slow readers received the whole response", outcomes.completed),
    );
    expect(outcomes.cut_off + outcomes.shed == readers, format!("{outcomes:?} of {readers} readers"));
    expect(
        reset == connections * STREAMS,
        format!("{reset} of {} streams were reset", connections * STREAMS),
    );
    expect(
        all_cut_off <= time_limits.limit(CUT_OFF),
        format!("the last reader was disconnected after {all_cut_off:?}"),
    );
    expect(peak <= MAX_MEMORY, format!("the resident memory reached {} MiB", peak >> 20));
    expect(busy.failed == 0, format!("{} healthy calls failed: {:?}", busy.failed, busy.failure));
    let harmless = time_limits.limit(calm.p99.max(Duration::from_millis(2)) * 4);
    expect(busy.p99 <= harmless, format!("p99 of healthy calls went from {:?} to {:?}", calm.p99, busy.p99));
    expect(reused, format!("a connection that was idle for {idle:?} was closed"));
    let figures = json!({
        "readers": readers, "cut_off": outcomes.cut_off, "shed": outcomes.shed,
        "streams": connections * STREAMS, "streams_reset": reset,
        "all_cut_off_ms": millis(all_cut_off),
        "resident_before_mib": before >> 20, "resident_peak_mib": peak >> 20, "resident_after_mib": after >> 20,
        "healthy_calls": busy.calls,
        "healthy_p99_before_us": micros(calm.p99), "healthy_p99_during_us": micros(busy.p99),
    });
    Ok(ProofResult { figures, findings })
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Creates a completed task of `echo` with a text of this size.
async fn task_of(address: SocketAddr, bytes: usize) -> Result<String> {
    let mut caller = Caller::new(address);
    let params = message(Uuid::new_v4(), &"x".repeat(bytes), false);
    let sent = caller.call("echo", "SendMessage", params).await?;
    task_id(&sent["task"]).map_err(anyhow::Error::msg)
}

fn get_task(id: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": { "id": id } }).to_string()
}

#[derive(Clone, Copy)]
enum Outcome {
    /// The server closed the connection in the middle of the response.
    CutOff,
    /// The server answered 503 because its response budget was used up.
    Shed,
    Completed,
}

#[derive(Debug, Default)]
struct Outcomes {
    cut_off: u64,
    shed: u64,
    completed: u64,
}

impl Outcomes {
    fn count(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::CutOff => self.cut_off += 1,
            Outcome::Shed => self.shed += 1,
            Outcome::Completed => self.completed += 1,
        }
    }
}

/// Requests a task and reads the response at one byte a second.
#[expect(clippy::disallowed_methods, reason = "a client with a small receive buffer of its own")]
async fn read_slowly(address: SocketAddr, id: String) -> Result<Outcome> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(4 << 10)?;
    let mut stream = socket.connect(address).await?;
    let body = get_task(&id);
    let head =
        format!("POST /a2a/echo HTTP/1.1\r\nhost: {address}\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).await?;
    let mut first = [0; 12];
    if stream.read_exact(&mut first).await.is_err() {
        return Ok(Outcome::CutOff);
    }
    if first.ends_with(b"503") {
        return Ok(Outcome::Shed);
    }
    ensure!(first.ends_with(b"200"), "the response begins with {}", String::from_utf8_lossy(&first));
    let length = 2 * TEXT_BYTES;
    for _ in 0..length {
        if is_cut_off(&stream).await {
            return Ok(Outcome::CutOff);
        }
        if !matches!(stream.read(&mut [0; 1]).await, Ok(1)) {
            return Ok(Outcome::CutOff);
        }
        sleep(Duration::from_secs(1)).await;
    }
    Ok(Outcome::Completed)
}

/// Whether the server has reset or closed the connection. Found by polling for errors, since the bytes already
/// received would take hours to read at this rate.
async fn is_cut_off(stream: &TcpStream) -> bool {
    let ready =
        tokio::time::timeout(Duration::from_millis(1), stream.ready(tokio::io::Interest::ERROR)).await;
    matches!(ready, Ok(Ok(ready)) if ready.is_error()) || matches!(stream.take_error(), Ok(Some(_)) | Err(_))
}

/// Opens streams with a window of 0, waits until the server should have reset them, and returns how many it has
/// reset.
async fn leave_unread(address: SocketAddr, id: String) -> Result<u64> {
    let channel = Channel::open_with_window(address, 0).await?;
    let mut responses = JoinSet::new();
    for _ in 0..STREAMS {
        let request = http::Request::post(channel.uri("/a2a/echo")).body(full(get_task(&id)))?;
        let channel = channel.clone();
        responses.spawn(async move { channel.request(request).await });
    }
    let mut unread = Vec::new();
    while let Some(response) = responses.join_next().await {
        let response = response?.context("an HTTP/2 stream received no response head")?;
        ensure!(matches!(response.status, 200 | 503), "status {}", response.status);
        unread.push(response);
    }
    // A client that does not read does not notice a reset, and reading earlier would open the window.
    sleep(WRITE_WINDOW + Duration::from_secs(3)).await;
    let mut reset = 0;
    for mut response in unread {
        // A stream that was not reset in time is not one that was reset.
        reset += u64::from(matches!(response.body().await, Err(testkit::Error::Cut(_))));
    }
    Ok(reset)
}

/// Clients that send small messages one after another.
pub(crate) struct Healthy {
    stopped: Arc<AtomicBool>,
    clients: JoinSet<(Vec<Duration>, Vec<String>)>,
}

pub(crate) struct Latency {
    pub(crate) calls: usize,
    pub(crate) failed: usize,
    pub(crate) failure: Option<String>,
    pub(crate) p99: Duration,
}

impl Healthy {
    pub(crate) fn start(address: SocketAddr) -> Self {
        let stopped = Arc::new(AtomicBool::new(false));
        let mut clients = JoinSet::new();
        for _ in 0..HEALTHY_CLIENTS {
            let stopped = Arc::clone(&stopped);
            clients.spawn(async move {
                let mut caller = Caller::new(address);
                let (mut times, mut failures) = (Vec::new(), Vec::new());
                while !stopped.load(Ordering::Relaxed) {
                    let started = Instant::now();
                    let params = message(Uuid::new_v4(), "hi", false);
                    let answered: Result<Value, _> = caller.call("echo", "SendMessage", params).await;
                    match answered {
                        Ok(_) => times.push(started.elapsed()),
                        Err(failure) => failures.push(format!("{failure:?}")),
                    }
                    sleep(Duration::from_millis(5)).await;
                }
                (times, failures)
            });
        }
        Self { stopped, clients }
    }

    pub(crate) async fn run_for(self, time: Duration) -> Result<Latency> {
        sleep(time).await;
        self.stop().await
    }

    pub(crate) async fn stop(mut self) -> Result<Latency> {
        self.stopped.store(true, Ordering::Relaxed);
        let (mut times, mut failures) = (Vec::new(), Vec::new());
        while let Some(client) = self.clients.join_next().await {
            let (some_times, some_failures) = client?;
            times.extend(some_times);
            failures.extend(some_failures);
        }
        times.sort_unstable();
        let p99 = times.get(times.len() * 99 / 100).copied().context("no healthy call was answered")?;
        Ok(Latency { calls: times.len(), failed: failures.len(), failure: failures.pop(), p99 })
    }
}

/// Samples the peak resident memory of a process.
pub(crate) struct Peak {
    stopped: Arc<AtomicBool>,
    sampler: JoinSet<Result<u64>>,
}

impl Peak {
    pub(crate) fn start(process: u32) -> Self {
        let stopped = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&stopped);
        let mut sampler = JoinSet::new();
        sampler.spawn(async move {
            let mut most = 0;
            while !until.load(Ordering::Relaxed) {
                most = most.max(memory::read(process)?.now);
                sleep(Duration::from_millis(50)).await;
            }
            Ok(most)
        });
        Self { stopped, sampler }
    }

    pub(crate) async fn stop(mut self) -> Result<u64> {
        self.stopped.store(true, Ordering::Relaxed);
        self.sampler.join_next().await.context("the sampler has ended")??
    }
}

/// Whether a connection is still served after it was idle for this long.
async fn reuse_after(address: SocketAddr, idle: Duration) -> Result<bool> {
    let mut connection = Connection::open(address).await.context("cannot connect")?;
    for wait in [Duration::ZERO, idle] {
        sleep(wait).await;
        if !connection.get("/healthz").await.is_ok_and(|response| response.status == 200) {
            return Ok(false);
        }
    }
    Ok(true)
}
