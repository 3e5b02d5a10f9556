//! The free-space limit (`limits.min_free_disk`) on a small tmpfs: before the disk is full, messages are refused, reads and
//! cancellations are answered, and tasks are purged; a start with little space left succeeds at the first try.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::disk::Privileges;
use super::mount::Mount;
use crate::http;
use crate::random::Random;
use crate::rpc::{Caller, Failure, message};
use crate::server::{Launch, Server};

const DISK_KIB: u64 = 64 << 10;
const MIN_FREE: &str = "32MiB";
/// What is left for the second start.
const LEFT_KIB: u64 = 4 << 10;
/// Each message is stored about twice: as a message and as an artifact.
const MESSAGE_BYTES: usize = 64 << 10;
/// Far more than fit on the disk.
const MAX_MESSAGES: usize = 1_000;
const LIMIT: Duration = Duration::from_secs(30);
const CONFIG: &str = "[store]\nretention = { max_age = \"1s\" }\n";
const BEGUN: &str = "little disk space is left";
const ENDED: &str = "there is enough disk space again";

/// Runs the case; `None` if no tmpfs can be mounted.
pub(super) async fn run(
    program: &Path,
    dir: &Path,
    privileges: Privileges,
    random: &mut Random,
    findings: &mut Vec<String>,
) -> Result<Option<Value>> {
    let at = dir.join("watermark");
    let size = format!("size={DISK_KIB}k");
    let mounted = match privileges {
        Privileges::All => Mount::make(&["-t", "tmpfs", "-o", &size, "a2ad-verify"], &at),
        Privileges::WithoutMounts => Err(anyhow::anyhow!("mounts are disabled")),
    };
    let mount = match mounted {
        Ok(mount) => mount,
        Err(error) => {
            eprintln!("disk_faults: {error:#}; the free-space limit is not tested");
            return Ok(None);
        }
    };
    let store = mount.at.join("store.db");
    let launch = || -> Result<Launch> {
        let config = dir.join("watermark.toml");
        fs::write(&config, CONFIG)?;
        Ok(Launch {
            arguments: vec!["--config".into(), config.into()],
            variables: vec![("A2AD_LIMITS__MIN_FREE_DISK".into(), MIN_FREE.into())],
            log: Some(dir.join("watermark.log")),
            ..Launch::default()
        })
    };
    let server = Server::start_with(&launch()?, program, &store).await?;
    let held = held_task(server.address, random).await?;
    let accepted = fill(server.address, random).await?;
    let free_kib = free_kib(&mount)?;
    // Lines are written some milliseconds later.
    server.wait_for_log(BEGUN).await?;
    check_ready(server.address, findings).await?;
    let state = state_of(server.address, &held).await?;
    if state != "TASK_STATE_WORKING" {
        findings.push(format!("watermark: the held task is {state}"));
    }
    // The rest of the disk is used by somebody else, and the process dies.
    server.kill().await?;
    let used: u64 = mount.query("df", &["-k", "--output=used"])?.parse()?;
    fs::write(mount.at.join("others"), vec![1; ((DISK_KIB - used - LEFT_KIB) << 10) as usize])
        .context("the disk cannot be filled")?;

    let server =
        Server::start_with(&launch()?, program, &store).await.context("a start with little space")?;
    let ready_after = server.ready_after;
    if !is_refused(server.address, random).await? {
        findings.push("watermark: a message was accepted with little space".into());
    }
    let mut caller = Caller::new(server.address);
    if let Err(error) = caller.call("echo", "CancelTask", json!({"id": held})).await {
        findings.push(format!("watermark: a task cannot be cancelled with little space: {error}"));
    }
    wait_until("the tasks are purged", async || {
        Ok(Caller::new(server.address).get("echo", &held).await.map_err(anyhow::Error::from)?.is_none())
    })
    .await?;
    fs::remove_file(mount.at.join("others"))?;
    wait_until("messages are accepted again", async || Ok(!is_refused(server.address, random).await?))
        .await?;
    server.wait_for_log(ENDED).await?;
    let (begun, ended) = (server.log().matches(BEGUN).count(), server.log().matches(ENDED).count());
    if (begun, ended) != (1, 1) {
        findings.push(format!("watermark: {begun} lines say that it begins, {ended} that it ends"));
    }
    crate::trial::stop(server, findings).await?;
    Ok(Some(json!({
        "accepted": accepted,
        "free_kib_when_refused": free_kib,
        "ready_with_little_space_ms": u64::try_from(ready_after.as_millis()).unwrap_or(u64::MAX),
    })))
}

/// Starts a task that works until it is cancelled.
async fn held_task(address: SocketAddr, random: &mut Random) -> Result<String> {
    let sent = Caller::new(address).call("echo", "SendMessage", message(random.uuid(), "hold", true)).await?;
    Ok(sent["task"]["id"].as_str().context("a task")?.to_owned())
}

/// Sends messages until one is refused; returns how many were accepted.
async fn fill(address: SocketAddr, random: &mut Random) -> Result<usize> {
    for sent in 0..MAX_MESSAGES {
        if is_refused(address, random).await? {
            return Ok(sent);
        }
    }
    anyhow::bail!("no message was refused although the disk is full")
}

/// Sends a message; whether it is refused because of the disk, with a time to try again.
async fn is_refused(address: SocketAddr, random: &mut Random) -> Result<bool> {
    let text = "x".repeat(MESSAGE_BYTES);
    match Caller::new(address).call("echo", "SendMessage", message(random.uuid(), &text, false)).await {
        Ok(_) => Ok(false),
        Err(Failure::Error { reason, message, .. }) if reason == "UNAVAILABLE" => {
            ensure!(message.contains("disk space"), "refused for another reason: {message}");
            Ok(true)
        }
        Err(error) => Err(error.into()),
    }
}

async fn check_ready(address: SocketAddr, findings: &mut Vec<String>) -> Result<()> {
    let ready = http::request(address, "GET", "/readyz", &[], &[]).await?;
    if ready.status != 200 || !ready.text().contains("little disk space") {
        findings.push(format!("watermark: /readyz is {} {}", ready.status, ready.text()));
    }
    Ok(())
}

async fn state_of(address: SocketAddr, task: &str) -> Result<String> {
    let found = Caller::new(address).get("echo", task).await?.context("the held task")?;
    Ok(found["status"]["state"].as_str().unwrap_or_default().to_owned())
}

fn free_kib(mount: &Mount) -> Result<u64> {
    Ok(mount.query("df", &["-k", "--output=avail"])?.parse()?)
}

async fn wait_until(what: &str, mut holds: impl AsyncFnMut() -> Result<bool>) -> Result<()> {
    let until = Instant::now() + LIMIT;
    while !holds().await? {
        ensure!(Instant::now() < until, "{what}: not within {LIMIT:?}");
        sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}
