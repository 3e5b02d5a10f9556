//! malformed_requests: every operation of every protocol generation and binding gets some hundred requests that are
//! invalid in one respect each, and must refuse each with an error that names the faulty field, in the format its
//! clients expect. Nothing may be stored, the server must not panic, and valid requests must be served afterwards
//! as before.
//!
//! The requests are generated: `methods.rs` describes the methods of JSON-RPC, `values.rs` has invalid values for
//! each kind of member, `params.rs` combines the two, `envelope.rs` adds what is invalid outside the parameters,
//! `routing.rs` what never reaches a method, `checker.rs` checks the responses and `log.rs` the server's log.
//! `rest.rs` does the same for HTTP+JSON with paths and queries, `grpc.rs` for protobuf messages. Requests that
//! look invalid but are valid by a rule of the protocol are sent too and must be served. Deliberately not here:
//! requests that are merely large (request_bombs), and bytes that are not HTTP, which are answered before a binding
//! is chosen.

mod broken;
mod case;
mod checker;
mod envelope;
mod grpc;
mod log;
mod methods;
mod params;
mod rest;
mod routing;
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
use self::checker::Received;
use self::methods::{Dialect, METHODS, Method};
use super::extra_options::{ExtraOptions, TimeLimits};
use super::kill_under_load::load::message;
use super::random::Random;
use super::request_bombs::raw;
use super::rpc::Caller;
use super::trial::{ProofResult, Setup, Trial};
use crate::http::Connection;
use crate::server::Server;

pub(crate) const OPTIONS: &str = "[--least N] [--seed S] [--binary PATH] [--relaxed]";

const AGENT: &str = "echo";
/// Label in the result for requests that reach no operation.
const ROUTING: &str = "routing";
/// Least number of malformed requests for each method.
const LEAST: u64 = 300;
/// Requests in progress at a time.
const WORKERS: usize = 4;
const RESPONSE_GOAL: Duration = Duration::from_millis(50);
const RESPONSE_LIMIT: Duration = Duration::from_secs(10);
const STOP_LIMIT: Duration = Duration::from_secs(60);

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut extras = ExtraOptions::of(args);
    let time_limits = extras.time_limits();
    let trial = Trial::parse("malformed_requests", "--least", LEAST, &extras.rest())?;
    trial.run(async |setup| Session::open(&trial, time_limits, setup).await?.examine().await)
}

/// The server, a task that must stay unchanged, and the results.
struct Session<'a> {
    setup: &'a Setup,
    server: Server,
    least: u64,
    limit: Duration,
    task: String,
    findings: Vec<String>,
    took: Vec<Duration>,
    counts: Map<String, Value>,
}

struct CaseResult {
    fault: Option<String>,
    took: Duration,
}

impl CaseResult {
    /// Runs one case with the time limit of a response.
    async fn of(name: &str, exchange: impl Future<Output = Result<Option<String>>>) -> Self {
        let started = Instant::now();
        let fault = match timeout(RESPONSE_LIMIT, exchange).await {
            Ok(Ok(fault)) => fault,
            Ok(Err(error)) => Some(format!("no response: {error:#}")),
            Err(_) => Some(format!("no response within {RESPONSE_LIMIT:?}")),
        };
        Self { fault: fault.map(|fault| format!("{name}: {fault}")), took: started.elapsed() }
    }
}

impl<'a> Session<'a> {
    async fn open(trial: &Trial, time_limits: TimeLimits, setup: &'a Setup) -> Result<Self> {
        let server = Server::start(&setup.program, &setup.store).await?;
        let params = message(Random::new(trial.seed).uuid(), "unchanged", false);
        let sent = Caller::new(server.address).call(AGENT, "SendMessage", params).await?;
        let task = sent["task"]["id"].as_str().context("the response to a send has no task")?.to_owned();
        Ok(Self {
            setup,
            server,
            least: trial.size,
            limit: time_limits.limit(RESPONSE_GOAL),
            task,
            findings: Vec::new(),
            took: Vec::new(),
            counts: Map::new(),
        })
    }

    async fn examine(mut self) -> Result<ProofResult> {
        let before = self.kept_task().await?;
        for method in METHODS {
            self.method(method).await?;
        }
        self.routing().await?;
        rest::examine(&mut self).await?;
        grpc::examine(&mut self).await?;
        if self.kept_task().await? != before {
            self.findings.push("the task that must stay unchanged has changed".to_owned());
        }
        self.findings.extend(log::faults(&self.server.log()));
        let status = self.server.terminate(STOP_LIMIT).await?;
        if !status.success() {
            self.findings.push(format!("the server exited with {status} on SIGTERM"));
        }
        // The complete list is saved next to the store; the terminal shows only the first ones.
        fs::write(self.setup.store.with_extension("findings"), self.findings.join("\n"))?;
        let figures = figures(&self.counts, self.took);
        Ok(ProofResult { figures, findings: self.findings })
    }

    /// Invalid requests first, after which nothing may be stored; then a valid one and the unusual ones, which are
    /// served.
    async fn method(&mut self, method: &'static Method) -> Result<()> {
        let good = case::request(method.name, &schema::params(method.fields, None));
        let mut accepted = vec![Case::accepted(method, "a valid request", good, "it is valid")];
        let mut refused = Vec::new();
        let mut known = HashSet::new();
        for case in envelope::cases(method).into_iter().chain(params::cases(method)) {
            if known.insert(case.key()) {
                if case.is_refused() { refused.push(case) } else { accepted.push(case) }
            }
        }
        let label = format!("{} {}", method.dialect.name(), method.name);
        self.count(&label, refused.len(), accepted.len());
        let before = self.total().await?;
        self.send_cases(method, refused).await?;
        self.check_total(&label, before).await?;
        self.send_cases(method, accepted).await
    }

    async fn send_cases(&mut self, method: &'static Method, cases: Vec<Case>) -> Result<()> {
        let mut workers = JoinSet::new();
        let share = cases.len().div_ceil(WORKERS).max(1);
        let label = format!("{} {}", method.dialect.name(), method.name);
        for (worker, share) in cases.chunks(share).enumerate() {
            let worker = Worker {
                method,
                address: self.server.address,
                task: self.task.clone(),
                name: format!("{}-{}-{worker}", method.dialect.name(), method.name),
                connection: None,
                sent: 0,
            };
            workers.spawn(worker.send_cases(share.to_vec()));
        }
        while let Some(results) = workers.join_next().await {
            for result in results? {
                self.note(&label, result);
            }
        }
        Ok(())
    }

    /// Records the number of requests of an operation; too few is a finding.
    fn count(&mut self, label: &str, refused: usize, accepted: usize) {
        eprintln!("{label:45} {refused:5} refused {accepted:4} accepted");
        self.counts.insert(label.to_owned(), json!({"refused": refused, "taken": accepted}));
        if (refused as u64) < self.least {
            self.findings.push(format!("{label}: only {refused} requests"));
        }
    }

    /// Records the result of one request.
    fn note(&mut self, label: &str, CaseResult { fault, took }: CaseResult) {
        self.findings.extend(fault.map(|fault| format!("{label}: {fault}")));
        if took > self.limit {
            self.findings.push(format!("{label}: a response took {took:?}"));
        }
        self.took.push(took);
    }

    async fn routing(&mut self) -> Result<()> {
        let cases = routing::cases();
        self.counts.insert(ROUTING.to_owned(), json!({"refused": cases.len(), "taken": 0}));
        for case in cases {
            let head = format!(
                "{} {} HTTP/1.1\r\nHost: localhost\r\nA2A-Version: {}\r\nContent-Length: {}\r\n\r\n",
                case.verb,
                case.path,
                case.version,
                case.body.len()
            );
            let response =
                raw::exchange(self.server.address, head.as_bytes(), &raw::Body::of(case.body)).await?;
            let received = Received {
                status: response.status,
                content_type: &response.content_type,
                body: &response.body,
            };
            if let Err(fault) = checker::refused(&case.expected, &received) {
                let body = String::from_utf8_lossy(&response.body);
                let line = format!("{} {} of {}", case.verb, case.path, case.version);
                self.findings.push(format!("{line}: {fault}; got {} {body}", response.status));
            }
        }
        Ok(())
    }

    async fn kept_task(&self) -> Result<Value> {
        let params = json!({"id": self.task});
        Ok(Caller::new(self.server.address).call(AGENT, "GetTask", params).await?)
    }

    /// Checks that no refused request has stored a task.
    async fn check_total(&mut self, label: &str, before: u64) -> Result<()> {
        let after = self.total().await?;
        if after != before {
            self.findings
                .push(format!("{label}: {before} tasks before the refused requests, {after} after them"));
        }
        Ok(())
    }

    async fn total(&self) -> Result<u64> {
        let params = json!({"pageSize": 1, "historyLength": 0});
        let page = Caller::new(self.server.address).call(AGENT, "ListTasks", params).await?;
        page["totalSize"].as_u64().context("the page has no total")
    }
}

/// Sends one case after another over one connection.
struct Worker {
    method: &'static Method,
    address: SocketAddr,
    /// A task that has ended.
    task: String,
    /// Prefix of unused names.
    name: String,
    connection: Option<Connection>,
    sent: usize,
}

impl Worker {
    async fn send_cases(mut self, cases: Vec<Case>) -> Vec<CaseResult> {
        let mut results = Vec::with_capacity(cases.len());
        for case in cases {
            results.push(CaseResult::of(&case.name, self.fault(&case)).await);
        }
        results
    }

    async fn fault(&mut self, case: &Case) -> Result<Option<String>> {
        self.sent += 1;
        let new = format!("{}-{}", self.name, self.sent);
        let body = replaced(&replaced(&case.body, "$TASK", &self.task), "$NEW", &new);
        let path = match &case.version {
            Version::Query(version) => format!("/a2a/{AGENT}?A2A-Version={version}"),
            Version::Header(_) | Version::Absent => format!("/a2a/{AGENT}"),
        };
        let version = match &case.version {
            Version::Header(version) => Some(("A2A-Version", version.as_str())),
            Version::Query(_) | Version::Absent => None,
        };
        let (valid_outcome, shape) = (self.method.valid_outcome, self.shape(case));
        if let Some(media_type) = case.media_type {
            let version = version.map_or("", |(_, version)| version);
            let head = format!(
                "POST {path} HTTP/1.1\r\nHost: localhost\r\nA2A-Version: {version}\r\n\
                 Content-Type: {media_type}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            let response = raw::exchange(self.address, head.as_bytes(), &raw::Body::of(body)).await?;
            let received = Received {
                status: response.status,
                content_type: &response.content_type,
                body: &response.body,
            };
            return Ok(checker::fault(case, valid_outcome, shape, &received));
        }
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => Connection::open(self.address).await?,
        };
        let response = connection.post_json(&path, version.as_slice(), &body).await?;
        self.connection = Some(connection);
        let content_type = response.headers.get("content-type").unwrap_or_default();
        let received = Received { status: response.status, content_type, body: &response.body };
        Ok(checker::fault(case, valid_outcome, shape, &received))
    }

    /// The generation whose error format is expected for a valid request that is refused: where draft and 0.3 share
    /// a method name, the task id decides.
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
        "operations": counts.keys().filter(|label| *label != ROUTING).count(),
        "median_ms": millis(at(500)),
        "p99_ms": millis(at(990)),
        "slowest_ms": millis(took.last()),
        "counts": counts,
    })
}
