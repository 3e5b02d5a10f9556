//! request_bombs: some hundred requests that cost their sender little and would be expensive to process: compressed
//! bodies; very deep, wide or long JSON; long numbers and headers; bodies beyond the size limit. Each must be
//! refused quickly and in little memory, and the server must go on serving.
//!
//! `shapes.rs` has the bombs, `compressed.rs` the compressed ones, `raw.rs` sends them, `memory.rs` reads from the
//! kernel what they cost. Memory that the allocator keeps would hide the cost of the next bomb, so the server is
//! restarted when it has kept much. Deliberately not here: many senders at once, and slow senders.

mod compressed;
pub(super) mod memory;
pub(super) mod raw;
mod shapes;

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use self::raw::{Body, Response};
use self::shapes::{Bomb, Expected, Framing, bombs};
use super::extra_options::{ExtraOptions, TimeLimits};
use super::random::Random;
use super::rpc::{Caller, message};
use super::trial::{ProofResult, Setup, Trial, stop};
use crate::http::{self, Connection};
use crate::server::Server;

pub(crate) const OPTIONS: &str = "[--shapes N] [--seed S] [--binary PATH] [--relaxed]";

const SHAPES: u64 = 500;
const RESPONSE_GOAL: Duration = Duration::from_millis(100);
const MAX_GROWTH_BYTES: u64 = 32 << 20;
/// Retained memory above which the next bomb gets a fresh server.
const KEPT_BYTES: u64 = 8 << 20;
/// A refusal does not have to repeat the request.
const MAX_REFUSAL_BYTES: usize = 16 << 10;
const REFUSALS: [i64; 6] = [-32700, -32600, -32601, -32602, -32001, -32009];

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut extras = ExtraOptions::of(args);
    let time_limits = extras.time_limits();
    let trial = Trial::parse("request_bombs", "--shapes", SHAPES, &extras.rest())?;
    trial.run(async |setup| BombRun::open(&trial, time_limits, setup).await?.run().await)
}

/// The server under attack and the results.
struct BombRun<'a> {
    setup: &'a Setup,
    server: Server,
    /// Resident memory of a fresh server.
    fresh: u64,
    least: u64,
    limit: Duration,
    random: Random,
    restarts: u64,
    worst: BTreeMap<&'static str, Worst>,
    findings: Vec<String>,
}

/// The highest costs of a family of bombs.
#[derive(Default)]
struct Worst {
    shapes: u64,
    took: Duration,
    grew: u64,
}

impl<'a> BombRun<'a> {
    async fn open(trial: &Trial, time_limits: TimeLimits, setup: &'a Setup) -> Result<Self> {
        let server = Server::start(&setup.program, &setup.store).await?;
        let mut range = Self {
            setup,
            server,
            fresh: 0,
            least: trial.size,
            limit: time_limits.limit(RESPONSE_GOAL),
            random: Random::new(trial.seed),
            restarts: 0,
            worst: BTreeMap::new(),
            findings: Vec::new(),
        };
        range.warm_up().await?;
        Ok(range)
    }

    async fn run(mut self) -> Result<ProofResult> {
        let bombs = bombs();
        let count = bombs.len() as u64;
        if count < self.least {
            self.findings.push(format!("only {count} shapes"));
        }
        for bomb in bombs {
            self.send_bomb(&bomb).await?;
        }
        self.check_served().await?;
        self.check_log();
        stop(self.server, &mut self.findings).await?;
        // The complete list is saved next to the store; the terminal shows only the first ones.
        fs::write(self.setup.store.with_extension("findings"), self.findings.join("\n"))?;
        let figures = json!({
            "shapes": count,
            "restarts": self.restarts,
            "limit_ms": self.limit.as_millis() as u64,
            "families": self.worst.iter().map(|(name, worst)| (*name, worst.figures())).collect::<BTreeMap<_, _>>(),
        });
        Ok(ProofResult { figures, findings: self.findings })
    }

    async fn send_bomb(&mut self, bomb: &Bomb) -> Result<()> {
        let process = self.server.id().context("the server has ended")?;
        if !memory::reset_peak(process) {
            bail!("this kernel cannot reset the memory peak of a process");
        }
        let before = memory::read(process)?.now;
        let (head, body) = written(bomb);
        let response = raw::exchange(self.server.address, &head, &body).await;
        let grew = memory::read(process)?.peak.saturating_sub(before);
        let took = response.as_ref().map_or(Duration::ZERO, |response| response.after);
        if let Some(fault) = fault(bomb, response) {
            self.findings.push(format!("{} {}: {fault}", bomb.family, bomb.name));
        }
        if took > self.limit + transfer(body.len()) {
            self.findings.push(format!("{} {}: response after {took:?}", bomb.family, bomb.name));
        }
        if grew > MAX_GROWTH_BYTES {
            self.findings.push(format!("{} {}: used {} MiB", bomb.family, bomb.name, grew >> 20));
        }
        self.worst.entry(bomb.family).or_default().add(took, grew);
        self.check_alive(bomb).await?;
        if memory::read(process)?.now > self.fresh + KEPT_BYTES {
            self.restart().await?;
        }
        Ok(())
    }

    /// One valid call, so that one-time allocations are not counted as the cost of a bomb.
    async fn warm_up(&mut self) -> Result<()> {
        self.check_served().await?;
        let process = self.server.id().context("the server has ended")?;
        self.fresh = memory::read(process)?.now;
        Ok(())
    }

    async fn restart(&mut self) -> Result<()> {
        self.check_log();
        self.restarts += 1;
        let store = self.setup.store.with_file_name(format!("store-{}.db", self.restarts));
        let server = Server::start(&self.setup.program, &store).await?;
        std::mem::replace(&mut self.server, server).kill().await?;
        self.warm_up().await
    }

    async fn check_alive(&mut self, bomb: &Bomb) -> Result<()> {
        if let Some(status) = self.server.ended()? {
            bail!(
                "{} {}: the server ended with {status}\n{}",
                bomb.family,
                bomb.name,
                self.server.log_tail()
            );
        }
        let mut connection = Connection::open(self.server.address).await?;
        let response = connection.get("/healthz").await?;
        if response.status != 200 {
            self.findings.push(format!(
                "{} {}: the health check returned {} after it",
                bomb.family, bomb.name, response.status
            ));
        }
        Ok(())
    }

    async fn check_served(&mut self) -> Result<()> {
        let params = message(self.random.uuid(), "be well", false);
        let response = Caller::new(self.server.address).call("echo", "SendMessage", params).await?;
        if response["task"]["status"]["state"] != "TASK_STATE_COMPLETED" {
            self.findings.push(format!("the response to a valid request was {response}"));
        }
        Ok(())
    }

    fn check_log(&mut self) {
        let log = self.server.log();
        for line in
            log.lines().filter(|line| line.contains("panicked") || line.contains("\"level\":\"ERROR\""))
        {
            self.findings.push(format!("the log contains {line}"));
        }
    }
}

impl Worst {
    fn add(&mut self, took: Duration, grew: u64) {
        self.shapes += 1;
        self.took = self.took.max(took);
        self.grew = self.grew.max(grew);
    }

    fn figures(&self) -> Value {
        json!({"shapes": self.shapes, "slowest_ms": self.took.as_millis() as u64, "dearest_mib": self.grew >> 20})
    }
}

/// The time that sending alone may take: the clock starts with the first byte.
fn transfer(bytes: usize) -> Duration {
    const BYTES_PER_MICROSECOND: usize = 200;
    Duration::from_micros((bytes / BYTES_PER_MICROSECOND) as u64)
}

/// The bytes of a bomb.
fn written(bomb: &Bomb) -> (Vec<u8>, Body) {
    let mut head = format!("POST {} HTTP/1.1\r\nHost: localhost\r\n", bomb.path).into_bytes();
    head.extend(&bomb.headers);
    let body = match bomb.framing {
        Framing::Length => {
            head.extend(format!("Content-Length: {}\r\n", bomb.body.len()).bytes());
            bomb.body.clone()
        }
        Framing::Chunked => {
            head.extend(b"Transfer-Encoding: chunked\r\n");
            bomb.body.in_chunks()
        }
        Framing::Declared(length) => {
            head.extend(format!("Content-Length: {length}\r\n").bytes());
            bomb.body.clone()
        }
        Framing::Own => bomb.body.clone(),
    };
    head.extend(b"\r\n");
    (head, body)
}

/// What is wrong with the response, if anything.
fn fault(bomb: &Bomb, response: Result<Response, http::Error>) -> Option<String> {
    let response = match response {
        Ok(response) => response,
        Err(error) => return Some(format!("no response: {error}")),
    };
    let shown = || {
        let body = String::from_utf8_lossy(&response.body[..response.body.len().min(200)]);
        format!("{} {} {}", response.status, response.content_type, body.escape_debug())
    };
    if response.body.len() > MAX_REFUSAL_BYTES {
        return Some(format!("response of {} bytes: {}", response.body.len(), shown()));
    }
    let right = match bomb.expected {
        Expected::Status(status) => response.status == status && is_refusal(&response),
        Expected::Call => response.status == 200 && is_refusal(&response),
        // The request line or the headers are refused by HTTP, without a JSON-RPC body.
        Expected::Head => {
            is_refusal(&response)
                || matches!(response.status, 400 | 413 | 414 | 431) && response.body.is_empty()
        }
    };
    if right { None } else { Some(format!("expected {:?}, got {}", bomb.expected, shown())) }
}

fn is_refusal(response: &Response) -> bool {
    let reply: Value = serde_json::from_slice(&response.body).unwrap_or_default();
    let code = reply["error"]["code"].as_i64();
    response.content_type == "application/json" && code.is_some_and(|code| REFUSALS.contains(&code))
}
