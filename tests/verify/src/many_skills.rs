//! many_skills: an agent with 15,000 skills starts, shows its card, is searched and chooses skills as fast as it has to.
//!
//! The skills are operations of OpenAPI documents that are generated here, each with its own combination of verb, noun
//! and area. Every operation has a required argument, so a message that chooses one is answered with the question for
//! it: that shows the choice, and nothing outside the server is called. The card is read with a plain socket, because a
//! parser would be slower than the server. The first search after the start, and the first search and the first choice
//! after reloads, are measured too: what they need is prepared before. A message waits for the disk too, so there are
//! several reloads.

use std::{
    fs,
    net::SocketAddr,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};
use uuid::Uuid;

use super::{
    extra_options::{ExtraOptions, TimeLimits},
    random::Random,
    request_bombs::memory,
    trial::{ProofResult, Setup, Trial},
};
use crate::{
    http::Connection,
    server::{Launch, Server},
};

pub(crate) const OPTIONS: &str = "[--skills N] [--calls N] [--relaxed] [--seed S] [--binary PATH]";

/// At most so many operations are in one document.
const PER_DOCUMENT: usize = 5_000;
/// Bytes of the card that are read for the measurement.
const CARD_BYTES: u64 = 2 << 30;

const START_GOAL: Duration = Duration::from_secs(10);
const SEARCH_GOAL: Duration = Duration::from_millis(5);
/// What choosing a skill may add to the median time of a call.
const ROUTING_GOAL: Duration = Duration::from_millis(2);
/// Each is followed by a first search and a first choice.
const RELOADS: usize = 5;
/// How long a new configuration may take to be used.
const RELOAD_LIMIT: Duration = Duration::from_secs(60);
const CARD_GOAL: f64 = 1e9;
/// Of a server in a development build, on a machine with other work.
const RELAXED_CARD_GOAL: f64 = 5e7;

const VERBS: &[&str] = &[
    "archive", "approve", "assign", "cancel", "clone", "close", "count", "create", "delete", "describe",
    "export", "import", "list", "lock", "merge", "publish", "rename", "restore", "schedule", "update",
];
#[rustfmt::skip]
const NOUNS: &[&str] = &[
    "account", "address", "alarm", "badge", "budget", "calendar", "campaign", "cart", "certificate", "channel",
    "claim", "contract", "coupon", "course", "credit", "customer", "dataset", "device", "document", "domain",
    "employee", "event", "expense", "feature", "folder", "forecast", "holiday", "image", "invoice", "journal",
    "license", "mailbox", "meeting", "model", "order", "parcel", "payment", "permit", "policy", "pool", "product",
    "quote", "recipe", "refund", "report", "review", "route", "ticket", "vehicle", "voucher",
];
#[rustfmt::skip]
const AREAS: &[&str] = &[
    "banking", "billing", "catering", "education", "energy", "farming", "fleet", "gaming", "health", "housing",
    "insurance", "legal", "logistics", "marketing", "media", "mining", "payroll", "retail", "security", "tourism",
];

/// One generated skill.
#[derive(Clone, Copy)]
struct Skill {
    verb: &'static str,
    noun: &'static str,
    area: &'static str,
}

impl Skill {
    /// Numbers below 20,000 give different skills.
    fn numbered(number: usize) -> Self {
        let (verb, rest) = (VERBS[number % VERBS.len()], number / VERBS.len());
        Self { verb, noun: NOUNS[rest % NOUNS.len()], area: AREAS[rest / NOUNS.len() % AREAS.len()] }
    }

    fn id(self) -> String {
        format!("{}_{}_{}", self.area, self.verb, self.noun)
    }

    fn message(self) -> String {
        format!("please {} the {} in {}", self.verb, self.noun, self.area)
    }

    fn operation(self) -> Value {
        let Self { verb, noun, area } = self;
        json!({ "post": {
            "operationId": self.id(),
            "summary": format!("Can {verb} one {noun} of the department for {area}"),
            "description": format!("The {noun} must exist. The change is visible to everyone in {area} at once."),
            "tags": [area],
            "parameters": [
                { "name": format!("{noun}_id"), "in": "query", "required": true, "schema": { "type": "integer" } },
                { "name": "dry_run", "in": "query", "schema": { "type": "boolean" } },
            ],
            "responses": { "200": { "description": "done" } },
        } })
    }
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut extras = ExtraOptions::of(args);
    let (limits, calls) = (extras.time_limits(), extras.number("--calls", 2_000)? as usize);
    let trial = Trial::parse("many_skills", "--skills", 15_000, &extras.rest())?;
    let most = VERBS.len() * NOUNS.len() * AREAS.len();
    ensure!(trial.size as usize <= most, "--skills must be at most {most}");
    trial.run(async |setup| {
        Proof { skills: trial.size as usize, calls, limits, random: Random::new(trial.seed) }.run(setup).await
    })
}

struct Proof {
    skills: usize,
    /// Searches, and messages.
    calls: usize,
    limits: TimeLimits,
    random: Random,
}

impl Proof {
    async fn run(mut self, setup: &Setup) -> Result<ProofResult> {
        let configuration = self.configuration(&setup.store)?;
        let launch = Launch::with_config(&setup.store, &configuration)?;
        let server = Server::start_with(&launch, &setup.program, &setup.store).await?;
        let (mut findings, limits) = (Vec::new(), self.limits);
        let mut check = |name: &str, time: Duration, goal: Duration| {
            if time > limits.limit(goal) {
                findings.push(format!("{name} took {time:?}, more than {goal:?}"));
            }
        };
        check("the start", server.ready_after, START_GOAL);
        let card = self.card(server.address).await?;
        let address = server.address;
        let search = Times::of(self.search(address, self.calls).await?)?;
        check("the first search", search.first, SEARCH_GOAL);
        check("the 99th of 100 searches", search.p99, SEARCH_GOAL);
        let named = Times::of(self.named(address, self.calls).await?)?;
        let routed = Times::of(self.routed(address, self.calls).await?)?;
        check("choosing a skill", routed.p50.saturating_sub(named.p50), ROUTING_GOAL);
        let resident = memory::read(server.id().context("the server has ended")?)?;
        let reloaded = self.reloads(&setup.store, address, configuration).await?;
        check("the first search after a reload", reloaded.search, SEARCH_GOAL);
        check(
            "choosing the first skill after a reload",
            reloaded.routed.saturating_sub(named.p50),
            SEARCH_GOAL,
        );
        let card_goal = if self.limits.is_strict() { CARD_GOAL } else { RELAXED_CARD_GOAL };
        if card.bytes_per_second < card_goal {
            findings.push(format!("the card was sent at {:.0} bytes a second", card.bytes_per_second));
        }
        let figures = json!({
            "skills": self.skills,
            "start_ms": millis(server.ready_after),
            "card_bytes": card.bytes, "card_first_ms": millis(card.first),
            "card_mb_per_second": (card.bytes_per_second / 1e6).round(),
            "search_first_ms": millis(search.first), "search_p50_ms": millis(search.p50), "search_p99_ms": millis(search.p99),
            "named_p50_ms": millis(named.p50), "named_p99_ms": millis(named.p99),
            "routed_first_ms": millis(routed.first), "routed_p50_ms": millis(routed.p50), "routed_p99_ms": millis(routed.p99),
            "reloaded_search_first_ms": millis(reloaded.search), "reloaded_routed_first_ms": millis(reloaded.routed),
            "resident_mib": resident.now >> 20, "resident_peak_mib": resident.peak >> 20,
        });
        server.terminate(Duration::from_secs(60)).await?;
        Ok(ProofResult { figures, findings })
    }

    /// Writes the documents. Returns the configuration that refers to them.
    fn configuration(&self, store: &Path) -> Result<String> {
        let mut text = String::new();
        let numbers: Vec<usize> = (0..self.skills).collect();
        for (part, numbers) in numbers.chunks(PER_DOCUMENT).enumerate() {
            let paths: serde_json::Map<String, Value> = numbers
                .iter()
                .map(|number| (format!("/{number}"), Skill::numbered(*number).operation()))
                .collect();
            let document = json!({
                "openapi": "3.1.0",
                "info": { "title": "Departments", "version": "1" },
                "servers": [{ "url": "http://127.0.0.1:9" }],
                "paths": paths,
            });
            let file = store.with_file_name(format!("part{part}.json"));
            fs::write(&file, document.to_string()).context("cannot write a document")?;
            text += &format!("[openapi.part{part}]\nfile = {:?}\n", file.display().to_string());
        }
        Ok(text)
    }

    /// The first search and the first choice of a skill after each of several reloads.
    async fn reloads(
        &mut self,
        store: &Path,
        address: SocketAddr,
        mut configuration: String,
    ) -> Result<AfterReload> {
        let (mut search, mut routed) = (Vec::new(), Vec::new());
        for number in 1..=RELOADS {
            configuration += &format!("[skills.repeat{number}]\nbuiltin = \"echo\"\n");
            fs::write(store.with_extension("toml"), &configuration)?;
            self.wait_for_skills(address, self.skills + number).await?;
            search.extend(self.search(address, 1).await?);
            routed.extend(self.routed(address, 1).await?);
        }
        Ok(AfterReload { search: median(search), routed: routed.into_iter().min().unwrap_or_default() })
    }

    /// Waits until the list of agents counts so many skills. It needs no index.
    async fn wait_for_skills(&self, address: SocketAddr, skills: usize) -> Result<()> {
        let mut connection = Connection::open(address).await?.with_limit(Duration::from_secs(60));
        let started = Instant::now();
        loop {
            let listed: Value = connection.get("/.well-known/agents.json?limit=1").await?.json()?;
            if listed["agents"][0]["skillCount"] == skills {
                return Ok(());
            }
            ensure!(
                started.elapsed() < RELOAD_LIMIT,
                "the new configuration is not used after {RELOAD_LIMIT:?}"
            );
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    fn any_skill(&mut self) -> Skill {
        Skill::numbered(self.random.within(0..=self.skills as u64 - 1) as usize)
    }

    async fn card(&self, address: SocketAddr) -> Result<Card> {
        let mut reader = CardReader::open(address).await?;
        let started = Instant::now();
        let bytes = reader.read().await?;
        let first = started.elapsed();
        let goal = if self.limits.is_strict() { CARD_BYTES } else { CARD_BYTES / 20 };
        let (started, mut total) = (Instant::now(), 0);
        while total < goal {
            total += reader.read().await?;
        }
        Ok(Card { bytes, first, bytes_per_second: total as f64 / started.elapsed().as_secs_f64() })
    }

    /// Searches for skills; the one that is meant must be the first.
    async fn search(&mut self, address: SocketAddr, calls: usize) -> Result<Vec<Duration>> {
        let mut connection = Connection::open(address).await?.with_limit(Duration::from_secs(60));
        let mut times = Vec::new();
        for _ in 0..calls {
            let skill = self.any_skill();
            let path = format!("/.well-known/agents.json?q={}", skill.message().replace(' ', "+"));
            let started = Instant::now();
            let response = connection.get(&path).await?;
            times.push(started.elapsed());
            let found: Value = response.json()?;
            let first = &found["agents"][0]["skills"][0]["id"];
            ensure!(*first == skill.id(), "the search for {} has found {first} first", skill.id());
        }
        Ok(times)
    }

    async fn named(&mut self, address: SocketAddr, calls: usize) -> Result<Vec<Duration>> {
        self.send(address, calls, |skill| json!({ "skillId": skill.id() })).await
    }

    async fn routed(&mut self, address: SocketAddr, calls: usize) -> Result<Vec<Duration>> {
        self.send(address, calls, |_| Value::Null).await
    }

    /// Sends messages that are for one skill each; it must ask for its argument.
    async fn send(
        &mut self,
        address: SocketAddr,
        calls: usize,
        metadata: impl Fn(Skill) -> Value,
    ) -> Result<Vec<Duration>> {
        let mut connection = Connection::open(address).await?.with_limit(Duration::from_secs(60));
        let mut times = Vec::new();
        for _ in 0..calls {
            let skill = self.any_skill();
            let parts = json!([{ "text": skill.message() }]);
            let message =
                json!({ "messageId": Uuid::new_v4().to_string(), "role": "ROLE_USER", "parts": parts });
            let mut params = json!({ "message": message });
            match metadata(skill) {
                Value::Null => {}
                metadata => params["metadata"] = metadata,
            }
            let request =
                json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params }).to_string();
            let started = Instant::now();
            let response = connection.post_json("/", &[("a2a-version", "1.0")], request.as_bytes()).await?;
            times.push(started.elapsed());
            let sent: Value = response.json()?;
            let asked = sent["result"]["task"]["status"]["message"]["parts"][0]["text"].as_str();
            let wanted = format!("{} needs {}_id", skill.id(), skill.noun);
            ensure!(
                asked.is_some_and(|asked| asked.starts_with(&wanted)),
                "expected {wanted}, received {sent}"
            );
        }
        Ok(times)
    }
}

struct Card {
    bytes: u64,
    /// The time of the first request, which builds it.
    first: Duration,
    bytes_per_second: f64,
}

/// Requests the card again and again over one connection.
struct CardReader {
    stream: TcpStream,
    request: String,
    buffer: Vec<u8>,
}

impl CardReader {
    #[expect(clippy::disallowed_methods, reason = "a reader that is faster than the server")]
    async fn open(address: SocketAddr) -> Result<Self> {
        let request = format!("GET /.well-known/agent-card.json HTTP/1.1\r\nhost: {address}\r\n\r\n");
        Ok(Self { stream: TcpStream::connect(address).await?, request, buffer: vec![0; 1 << 20] })
    }

    /// Returns the length of the body.
    async fn read(&mut self) -> Result<u64> {
        self.stream.write_all(self.request.as_bytes()).await?;
        let mut length = self.stream.read(&mut self.buffer).await?;
        let end = loop {
            match self.buffer[..length].windows(4).position(|bytes| bytes == b"\r\n\r\n") {
                Some(end) => break end + 4,
                None => length += self.stream.read(&mut self.buffer[length..]).await?,
            }
        };
        let head = String::from_utf8_lossy(&self.buffer[..end]).to_lowercase();
        ensure!(head.starts_with("http/1.1 200"), "the response begins with {head}");
        let field = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let body: u64 = field.context("a card has a content-length")?.parse()?;
        let mut left = body - (length - end) as u64;
        while left > 0 {
            let read = self.stream.read(&mut self.buffer).await? as u64;
            ensure!(read > 0, "the connection ended {left} bytes before the end of the card");
            left -= read;
        }
        Ok(body)
    }
}

/// The first calls after reloads.
struct AfterReload {
    /// The median.
    search: Duration,
    /// The fastest: the others may have waited for the disk.
    routed: Duration,
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// The time of the first call, and of those after it.
struct Times {
    first: Duration,
    p50: Duration,
    p99: Duration,
}

impl Times {
    fn of(mut times: Vec<Duration>) -> Result<Self> {
        ensure!(times.len() > 1, "nothing was measured");
        let first = times.remove(0);
        times.sort_unstable();
        Ok(Self { first, p50: times[times.len() / 2], p99: times[times.len() * 99 / 100] })
    }
}

fn millis(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}
