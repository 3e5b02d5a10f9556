//! slow_resumes: many slow clients resume the stream of a task that is far larger than what the server may hold for
//! one of them, and the server's memory stays bounded.
//!
//! The task has 60 MB in events of 1 MB. Each reader resumes it after its first event and reads 1 KiB a second, which is
//! fast enough not to be disconnected. The server may hold a slice of the log for each reader (R19), as read and as sent.

use std::{
    net::SocketAddr,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpSocket,
    task::JoinSet,
    time::sleep,
};
use uuid::Uuid;

use super::extra_options::ExtraOptions;
use super::request_bombs::memory;
use super::slow_readers::Peak;
use super::trial::{ProofResult, Setup, Trial};
use crate::http::Connection;
use crate::server::Server;

pub(crate) const OPTIONS: &str = "[--readers N] [--seconds N] [--seed S] [--binary PATH]";

/// Each turn of `echo` records this text twice: as a message and as an artifact.
const TEXT_BYTES: usize = 1_000_000;
const TURNS: usize = 30;
/// What a reader takes each second.
const READ_BYTES: usize = 1 << 10;
/// What the server may hold for one reader: a slice of the log, its encoded form, and the buffers of the connection.
const MAX_PER_READER: u64 = 4 << 20;
/// Memory that does not depend on the readers, such as caches that fill meanwhile.
const MAX_OTHER: u64 = 48 << 20;

const STOP_LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut extras = ExtraOptions::of(args);
    let time = Duration::from_secs(extras.number("--seconds", 20)?);
    let trial = Trial::parse("slow_resumes", "--readers", 20, &extras.rest())?;
    trial.run(async |setup| resume(setup, trial.size, time).await)
}

async fn resume(setup: &Setup, readers: u64, time: Duration) -> Result<ProofResult> {
    let server = Server::start(&setup.program, &setup.store).await?;
    let task = large_task(server.address).await?;
    // The memory that the first process needed to make the task must not hide what the readers need.
    server.terminate(STOP_LIMIT).await?;
    let server = Server::start(&setup.program, &setup.store).await?;
    let (address, process) = (server.address, server.id().context("the server has ended")?);
    let before = memory::read(process)?.now;
    let peak = Peak::start(process);
    let mut reading = JoinSet::new();
    for _ in 0..readers {
        reading.spawn(read_slowly(address, task.clone(), time));
    }
    let mut bytes = 0;
    while let Some(read) = reading.join_next().await {
        bytes += read??;
    }
    let peak = peak.stop().await?;
    server.terminate(STOP_LIMIT).await?;

    let allowed = before + MAX_OTHER + readers * MAX_PER_READER;
    let mut findings = Vec::new();
    if peak > allowed {
        findings.push(format!(
            "the resident memory went from {} to {} MiB with {readers} readers",
            before >> 20,
            peak >> 20
        ));
    }
    let figures = json!({
        "readers": readers, "seconds": time.as_secs(), "task_mb": 2 * TURNS * TEXT_BYTES / 1_000_000,
        "bytes_read": bytes,
        "resident_before_mib": before >> 20, "resident_peak_mib": peak >> 20,
        "resident_allowed_mib": allowed >> 20,
    });
    Ok(ProofResult { figures, findings })
}

/// A completed task of many turns. Only the first generation of the protocol reopens a completed task.
async fn large_task(address: SocketAddr) -> Result<String> {
    let id = Uuid::new_v4().to_string();
    let mut connection = Connection::open(address).await?.with_limit(Duration::from_secs(60));
    for turn in 0..TURNS {
        let text = format!("{turn}{}", "x".repeat(TEXT_BYTES));
        let message = json!({ "role": "user", "parts": [{ "type": "text", "text": text }] });
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tasks/send", "params": { "id": id, "message": message } });
        let response = connection.post_json("/a2a/echo", &[], request.to_string().as_bytes()).await?;
        let sent: Value = response.json()?;
        ensure!(sent["result"]["status"]["state"] == "completed", "turn {turn}: {}", sent["error"]);
    }
    Ok(id)
}

/// Resumes the task's stream after its first event and reads it slowly. Returns how many bytes there were.
#[expect(clippy::disallowed_methods, reason = "a client with a small receive buffer of its own")]
async fn read_slowly(address: SocketAddr, id: String, time: Duration) -> Result<usize> {
    let socket = TcpSocket::new_v4()?;
    socket.set_recv_buffer_size(4 << 10)?;
    let mut stream = socket.connect(address).await?;
    let body =
        json!({ "jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": { "id": id } }).to_string();
    let head = format!(
        "POST /a2a/echo HTTP/1.1\r\nhost: {address}\r\na2a-version: 1.0\r\nlast-event-id: 1\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).await?;
    let (started, mut total, mut buffer) = (Instant::now(), 0, [0; READ_BYTES]);
    while started.elapsed() < time {
        let length = stream.read(&mut buffer).await?;
        ensure!(length > 0, "the stream ended after {total} bytes");
        if total == 0 {
            let start = String::from_utf8_lossy(&buffer[..length]).into_owned();
            ensure!(start.starts_with("HTTP/1.1 200"), "the response begins with {start}");
        }
        total += length;
        sleep(Duration::from_secs(1)).await;
    }
    Ok(total)
}
