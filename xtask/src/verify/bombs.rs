//! T-D4: bombs. Some hundred requests that cost their sender little: packed bodies, depth, width, lists, texts, numbers
//! and heads without end, bodies beyond the limit. Each is refused soon and in little memory, and the server goes on.
//!
//! `shapes.rs` has the bombs, `packed.rs` those that unfold, `raw.rs` sends them, `memory.rs` asks the kernel what they
//! cost. Memory that the program keeps for later hides what the next bomb takes, so the server is started anew when
//! it has kept much. Deliberately not here: many senders at once, and senders that are slow (T-D1).

mod memory;
mod packed;
pub(super) mod raw;
mod shapes;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use self::raw::{Answer, Body};
use self::shapes::{Bomb, Expected, Framing, bombs};
use super::extras::{Extras, Pace};
use super::kill::load::message;
use super::random::Random;
use super::rpc::Caller;
use super::trial::{Seen, Stand, Trial};
use crate::http::Connection;
use crate::server::Server;

pub(crate) const OPTIONS: &str = "[--shapes N] [--seed S] [--binary PATH] [--relaxed]";

const SHAPES: u64 = 500;
const ANSWER_GOAL: Duration = Duration::from_millis(100);
const MOST_BYTES: u64 = 32 << 20;
/// Kept memory above which the next bomb gets a fresh server.
const KEPT_BYTES: u64 = 8 << 20;
/// A refusal need not repeat what it refuses.
const LONGEST_ANSWER_BYTES: usize = 16 << 10;
const STOP_LIMIT: Duration = Duration::from_secs(60);
const REFUSALS: [i64; 6] = [-32700, -32600, -32601, -32602, -32001, -32009];

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut extras = Extras::of(args);
    let pace = extras.pace();
    let trial = Trial::parse("T-D4", "--shapes", SHAPES, &extras.rest())?;
    trial.run(async |stand| Range::open(&trial, pace, stand).await?.fire().await)
}

/// A server to throw bombs at, and what was seen.
struct Range<'a> {
    stand: &'a Stand,
    server: Server,
    /// What a fresh server holds.
    fresh: u64,
    least: u64,
    limit: Duration,
    random: Random,
    restarts: u64,
    worst: BTreeMap<&'static str, Worst>,
    findings: Vec<String>,
}

/// The dearest of a family.
#[derive(Default)]
struct Worst {
    shapes: u64,
    took: Duration,
    grew: u64,
}

impl<'a> Range<'a> {
    async fn open(trial: &Trial, pace: Pace, stand: &'a Stand) -> Result<Self> {
        let server = Server::start(&stand.program, &stand.store).await?;
        let mut range = Self {
            stand,
            server,
            fresh: 0,
            least: trial.size,
            limit: pace.limit(ANSWER_GOAL),
            random: Random::new(trial.seed),
            restarts: 0,
            worst: BTreeMap::new(),
            findings: Vec::new(),
        };
        range.warm_up().await?;
        Ok(range)
    }

    async fn fire(mut self) -> Result<Seen> {
        let bombs = bombs();
        let count = bombs.len() as u64;
        if count < self.least {
            self.findings.push(format!("{count} shapes are too few"));
        }
        for bomb in bombs {
            self.throw(&bomb).await?;
        }
        self.check_served().await?;
        self.check_log();
        let status = self.server.terminate(STOP_LIMIT).await?;
        if !status.success() {
            self.findings.push(format!("the server answered SIGTERM with {status}"));
        }
        // All of them, where the store is kept: the terminal shows the first ones only.
        fs::write(self.stand.store.with_extension("findings"), self.findings.join("\n"))?;
        let figures = json!({
            "shapes": count,
            "restarts": self.restarts,
            "limit_ms": self.limit.as_millis() as u64,
            "families": self.worst.iter().map(|(name, worst)| (*name, worst.figures())).collect::<BTreeMap<_, _>>(),
        });
        Ok(Seen { figures, findings: self.findings })
    }

    async fn throw(&mut self, bomb: &Bomb) -> Result<()> {
        let process = self.server.id().context("the server has ended")?;
        if !memory::reset_peak(process) {
            bail!("this kernel does not let a peak of memory begin anew");
        }
        let before = memory::read(process)?.now;
        let (head, body) = written(bomb);
        let answer = raw::exchange(self.server.address, &head, &body).await;
        let grew = memory::read(process)?.peak.saturating_sub(before);
        let took = answer.as_ref().map_or(Duration::ZERO, |answer| answer.after);
        if let Some(fault) = fault(bomb, answer) {
            self.findings.push(format!("{} {}: {fault}", bomb.family, bomb.name));
        }
        if took > self.limit + transfer(body.len()) {
            self.findings.push(format!("{} {}: answered after {took:?}", bomb.family, bomb.name));
        }
        if grew > MOST_BYTES {
            self.findings.push(format!("{} {}: cost {} MiB", bomb.family, bomb.name, grew >> 20));
        }
        self.worst.entry(bomb.family).or_default().add(took, grew);
        self.check_alive(bomb).await?;
        if memory::read(process)?.now > self.fresh + KEPT_BYTES {
            self.restart().await?;
        }
        Ok(())
    }

    /// One good call, so that what every process takes once is not taken for the cost of a bomb.
    async fn warm_up(&mut self) -> Result<()> {
        self.check_served().await?;
        let process = self.server.id().context("the server has ended")?;
        self.fresh = memory::read(process)?.now;
        Ok(())
    }

    async fn restart(&mut self) -> Result<()> {
        self.check_log();
        self.restarts += 1;
        let store = self.stand.store.with_file_name(format!("store-{}.db", self.restarts));
        let server = Server::start(&self.stand.program, &store).await?;
        std::mem::replace(&mut self.server, server).kill().await?;
        self.warm_up().await
    }

    async fn check_alive(&mut self, bomb: &Bomb) -> Result<()> {
        if let Some(status) = self.server.ended()? {
            bail!("{} {}: the server ended by {status}\n{}", bomb.family, bomb.name, self.server.log_tail());
        }
        let mut connection = Connection::open(self.server.address).await?;
        let answer = connection.get("/healthz").await?;
        if answer.status != 200 {
            self.findings
                .push(format!("{} {}: the server is {} behind it", bomb.family, bomb.name, answer.status));
        }
        Ok(())
    }

    async fn check_served(&mut self) -> Result<()> {
        let params = message(self.random.uuid(), "be well", false);
        let answer = Caller::new(self.server.address).call("echo", "SendMessage", params).await?;
        if answer["task"]["status"]["state"] != "TASK_STATE_COMPLETED" {
            self.findings.push(format!("a good request was answered with {answer}"));
        }
        Ok(())
    }

    fn check_log(&mut self) {
        let log = self.server.log();
        for line in
            log.lines().filter(|line| line.contains("panicked") || line.contains("\"level\":\"ERROR\""))
        {
            self.findings.push(format!("the log has {line}"));
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

/// What sending alone may take: the clock runs from the first byte on.
fn transfer(bytes: usize) -> Duration {
    const BYTES_PER_MICROSECOND: usize = 200;
    Duration::from_micros((bytes / BYTES_PER_MICROSECOND) as u64)
}

/// A bomb as bytes.
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

/// What is wrong with the answer, if anything is.
fn fault(bomb: &Bomb, answer: io::Result<Answer>) -> Option<String> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return Some(format!("no answer: {error}")),
    };
    let shown = || {
        let body = String::from_utf8_lossy(&answer.body[..answer.body.len().min(200)]);
        format!("{} {} {}", answer.status, answer.content_type, body.escape_debug())
    };
    if answer.body.len() > LONGEST_ANSWER_BYTES {
        return Some(format!("{} bytes of answer: {}", answer.body.len(), shown()));
    }
    let right = match bomb.expected {
        Expected::Status(status) => answer.status == status && is_refusal(&answer),
        Expected::Call => answer.status == 200 && is_refusal(&answer),
        // Before there is a request, HTTP has no body to tell it with.
        Expected::Head => {
            is_refusal(&answer) || matches!(answer.status, 400 | 413 | 414 | 431) && answer.body.is_empty()
        }
    };
    if right { None } else { Some(format!("wanted {:?}, answered {}", bomb.expected, shown())) }
}

fn is_refusal(answer: &Answer) -> bool {
    let told: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let code = told["error"]["code"].as_i64();
    answer.content_type == "application/json" && code.is_some_and(|code| REFUSALS.contains(&code))
}
