//! T-S8: bad input. Every operation of every generation and binding gets some hundred requests that are wrong in one
//! respect each, and says which, in the form its clients read. Nothing is stored, nothing breaks, and good requests are
//! served afterwards as before.
//!
//! The requests are made, not listed: `methods.rs` describes the methods of JSON-RPC, `values.rs` knows what is wrong
//! for a kind of member, `params.rs` puts the two together, `envelope.rs` adds what is wrong around the parameters,
//! `judge.rs` reads the answers and `log.rs` the server's log. `rest.rs` does the same for HTTP+JSON with paths and
//! queries beside it, `grpc.rs` for the messages of protobuf. What looks wrong and is right by a ruling is asked too
//! and must be served. Deliberately not here: input that is merely large (T-D4), and what is no HTTP, which is answered
//! before there is a binding.

mod broken;
mod case;
mod door;
mod envelope;
mod grpc;
mod judge;
mod log;
mod methods;
mod params;
mod rest;
mod schema;
mod values;

use std::collections::HashSet;
use std::fs;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;
use tokio::time::timeout;

use self::case::{Case, Version};
use self::judge::Told;
use self::methods::{Dialect, METHODS, Method};
use super::bombs::raw;
use super::extras::{Extras, Pace};
use super::kill::load::message;
use super::random::Random;
use super::rpc::Caller;
use super::trial::{Seen, Stand, Trial};
use crate::http::Connection;
use crate::server::Server;

pub(crate) const OPTIONS: &str = "[--least N] [--seed S] [--binary PATH] [--relaxed]";

const AGENT: &str = "echo";
/// What the requests are counted under that come to no operation.
const DOOR: &str = "door";
/// Malformed requests for each method.
const LEAST: u64 = 300;
/// Requests under way at a time.
const LANES: usize = 4;
const ANSWER_GOAL: Duration = Duration::from_millis(50);
const ANSWER_LIMIT: Duration = Duration::from_secs(10);
const STOP_LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut extras = Extras::of(args);
    let pace = extras.pace();
    let trial = Trial::parse("T-S8", "--least", LEAST, &extras.rest())?;
    trial.run(async |stand| Clinic::open(&trial, pace, stand).await?.examine().await)
}

/// A server, a task that must stay as it is, and what was seen.
struct Clinic<'a> {
    stand: &'a Stand,
    server: Server,
    least: u64,
    limit: Duration,
    task: String,
    findings: Vec<String>,
    took: Vec<Duration>,
    counts: Map<String, Value>,
}

/// One case answered.
struct Answered {
    fault: Option<String>,
    took: Duration,
}

impl Answered {
    /// What asking a case of this name found, in the time an answer may take.
    async fn of(name: &str, asking: impl Future<Output = Result<Option<String>>>) -> Self {
        let started = Instant::now();
        let fault = match timeout(ANSWER_LIMIT, asking).await {
            Ok(Ok(fault)) => fault,
            Ok(Err(error)) => Some(format!("no answer: {error:#}")),
            Err(_) => Some(format!("no answer within {ANSWER_LIMIT:?}")),
        };
        Self { fault: fault.map(|fault| format!("{name}: {fault}")), took: started.elapsed() }
    }
}

impl<'a> Clinic<'a> {
    async fn open(trial: &Trial, pace: Pace, stand: &'a Stand) -> Result<Self> {
        let server = Server::start(&stand.program, &stand.store).await?;
        let params = message(Random::new(trial.seed).uuid(), "stay as you are", false);
        let sent = Caller::new(server.address).call(AGENT, "SendMessage", params).await?;
        let task = sent["task"]["id"].as_str().context("a send was answered without a task")?.to_owned();
        Ok(Self {
            stand,
            server,
            least: trial.size,
            limit: pace.limit(ANSWER_GOAL),
            task,
            findings: Vec::new(),
            took: Vec::new(),
            counts: Map::new(),
        })
    }

    async fn examine(mut self) -> Result<Seen> {
        let before = self.kept_task().await?;
        for method in METHODS {
            self.method(method).await?;
        }
        self.door().await?;
        rest::examine(&mut self).await?;
        grpc::examine(&mut self).await?;
        if self.kept_task().await? != before {
            self.findings.push("the task that nobody may change has changed".to_owned());
        }
        self.findings.extend(log::faults(&self.server.log()));
        let status = self.server.terminate(STOP_LIMIT).await?;
        if !status.success() {
            self.findings.push(format!("the server answered SIGTERM with {status}"));
        }
        // All of them, where the store is kept: the terminal shows the first ones only.
        fs::write(self.stand.store.with_extension("findings"), self.findings.join("\n"))?;
        let figures = figures(&self.counts, self.took);
        Ok(Seen { figures, findings: self.findings })
    }

    /// Refused requests first, and nothing is stored; then a good one and the odd ones, which are served.
    async fn method(&mut self, method: &'static Method) -> Result<()> {
        let good = case::request(method.name, &schema::params(method.fields, None));
        let mut taken = vec![Case::taken(method, "a good request", good, "nothing is wrong with it")];
        let mut refused = Vec::new();
        let mut known = HashSet::new();
        for case in envelope::cases(method).into_iter().chain(params::cases(method)) {
            if known.insert(case.key()) {
                if case.is_refused() { refused.push(case) } else { taken.push(case) }
            }
        }
        let label = format!("{} {}", method.dialect.name(), method.name);
        self.count(&label, refused.len(), taken.len());
        let before = self.total().await?;
        self.ask(method, refused).await?;
        self.check_total(&label, before).await?;
        self.ask(method, taken).await
    }

    async fn ask(&mut self, method: &'static Method, cases: Vec<Case>) -> Result<()> {
        let mut lanes = JoinSet::new();
        let share = cases.len().div_ceil(LANES).max(1);
        let label = format!("{} {}", method.dialect.name(), method.name);
        for (lane, share) in cases.chunks(share).enumerate() {
            let lane = Lane {
                method,
                address: self.server.address,
                task: self.task.clone(),
                name: format!("{}-{}-{lane}", method.dialect.name(), method.name),
                connection: None,
                asked: 0,
            };
            lanes.spawn(lane.ask(share.to_vec()));
        }
        while let Some(answered) = lanes.join_next().await {
            for answered in answered? {
                self.note(&label, answered);
            }
        }
        Ok(())
    }

    /// Says how many requests an operation gets, which may be too few.
    fn count(&mut self, label: &str, refused: usize, taken: usize) {
        eprintln!("{label:45} {refused:5} refused {taken:4} taken");
        self.counts.insert(label.to_owned(), json!({"refused": refused, "taken": taken}));
        if (refused as u64) < self.least {
            self.findings.push(format!("{label}: {refused} requests are too few"));
        }
    }

    /// Keeps what came of one request.
    fn note(&mut self, label: &str, Answered { fault, took }: Answered) {
        self.findings.extend(fault.map(|fault| format!("{label}: {fault}")));
        if took > self.limit {
            self.findings.push(format!("{label}: an answer took {took:?}"));
        }
        self.took.push(took);
    }

    async fn door(&mut self) -> Result<()> {
        let knocks = door::knocks();
        self.counts.insert(DOOR.to_owned(), json!({"refused": knocks.len(), "taken": 0}));
        for knock in knocks {
            let head = format!(
                "{} {} HTTP/1.1\r\nHost: localhost\r\nA2A-Version: {}\r\nContent-Length: {}\r\n\r\n",
                knock.verb,
                knock.path,
                knock.version,
                knock.body.len()
            );
            let answer =
                raw::exchange(self.server.address, head.as_bytes(), &raw::Body::of(knock.body)).await?;
            let told = Told { status: answer.status, content_type: &answer.content_type, body: &answer.body };
            if let Err(fault) = judge::refused(&knock.expected, &told) {
                let body = String::from_utf8_lossy(&answer.body);
                let line = format!("{} {} of {}", knock.verb, knock.path, knock.version);
                self.findings.push(format!("{line}: {fault}; answered {} {body}", answer.status));
            }
        }
        Ok(())
    }

    async fn kept_task(&self) -> Result<Value> {
        let params = json!({"id": self.task});
        Ok(Caller::new(self.server.address).call(AGENT, "GetTask", params).await?)
    }

    /// Nothing that was refused is stored.
    async fn check_total(&mut self, label: &str, before: u64) -> Result<()> {
        let after = self.total().await?;
        if after != before {
            self.findings.push(format!("{label}: {before} tasks before what was refused, {after} behind it"));
        }
        Ok(())
    }

    async fn total(&self) -> Result<u64> {
        let params = json!({"pageSize": 1, "historyLength": 0});
        let page = Caller::new(self.server.address).call(AGENT, "ListTasks", params).await?;
        page["totalSize"].as_u64().context("a page without a total")
    }
}

/// Asks one case after another over one connection.
struct Lane {
    method: &'static Method,
    address: SocketAddr,
    /// The task that is over.
    task: String,
    /// The beginning of names that nobody has used.
    name: String,
    connection: Option<Connection>,
    asked: usize,
}

impl Lane {
    async fn ask(mut self, cases: Vec<Case>) -> Vec<Answered> {
        let mut answered = Vec::with_capacity(cases.len());
        for case in cases {
            answered.push(Answered::of(&case.name, self.fault(&case)).await);
        }
        answered
    }

    async fn fault(&mut self, case: &Case) -> Result<Option<String>> {
        self.asked += 1;
        let new = format!("{}-{}", self.name, self.asked);
        let body = replaced(&replaced(&case.body, "$TASK", &self.task), "$NEW", &new);
        let path = match &case.version {
            Version::Query(version) => format!("/a2a/{AGENT}?A2A-Version={version}"),
            Version::Header(_) | Version::Absent => format!("/a2a/{AGENT}"),
        };
        let version = match &case.version {
            Version::Header(version) => Some(("A2A-Version", version.as_str())),
            Version::Query(_) | Version::Absent => None,
        };
        let (sound, shape) = (self.method.sound, self.shape(case));
        if let Some(media_type) = case.media_type {
            let version = version.map_or("", |(_, version)| version);
            let head = format!(
                "POST {path} HTTP/1.1\r\nHost: localhost\r\nA2A-Version: {version}\r\n\
                 Content-Type: {media_type}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            let answer = raw::exchange(self.address, head.as_bytes(), &raw::Body::of(body)).await?;
            let told = Told { status: answer.status, content_type: &answer.content_type, body: &answer.body };
            return Ok(judge::fault(case, sound, shape, &told));
        }
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(self.address).await?,
        };
        let answer = connection.post_json(&path, version.as_slice(), &body).await?;
        self.connection = Some(connection);
        let content_type = answer.headers.get("content-type").unwrap_or_default();
        let told = Told { status: answer.status, content_type, body: &answer.body };
        Ok(judge::fault(case, sound, shape, &told))
    }

    /// In whose form a good request is refused: where the two older generations share a name, the task tells.
    fn shape(&self, case: &Case) -> Dialect {
        let shared = matches!(self.method.name, "tasks/get" | "tasks/cancel" | "tasks/resubscribe");
        if shared && case.version == Version::Absent { Dialect::V03 } else { self.method.dialect }
    }
}

fn replaced(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while let Some(at) = rest.windows(from.len()).position(|window| window == from.as_bytes()) {
        out.extend_from_slice(&rest[..at]);
        out.extend_from_slice(to.as_bytes());
        rest = &rest[at + from.len()..];
    }
    out.extend_from_slice(rest);
    out
}

fn figures(counts: &Map<String, Value>, mut took: Vec<Duration>) -> Value {
    took.sort_unstable();
    let at = |part: usize| took.get((took.len() * part / 1000).min(took.len().saturating_sub(1)));
    let millis =
        |took: Option<&Duration>| took.map_or(0.0, |took| (took.as_secs_f64() * 10_000.0).round() / 10.0);
    let sum = |what: &str| counts.values().filter_map(|row| row[what].as_u64()).sum::<u64>();
    json!({
        "refused": sum("refused"),
        "taken": sum("taken"),
        "operations": counts.keys().filter(|label| *label != DOOR).count(),
        "median_ms": millis(at(500)),
        "p99_ms": millis(at(990)),
        "slowest_ms": millis(took.last()),
        "counts": counts,
    })
}
