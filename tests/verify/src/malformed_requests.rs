//! malformed_requests: every operation of every protocol version and binding gets some hundred requests that are
//! invalid in one respect each, and must refuse each with an error that names the faulty field, in the format its
//! clients expect. Nothing may be stored, the server must not panic, and valid requests must be served afterwards
//! as before.
//!
//! The requests are generated: `methods.rs` describes the members of requests and the methods of JSON-RPC,
//! `errors.rs` the errors in the formats of all bindings, `values.rs` has invalid values for each kind of member,
//! `params.rs` combines them, `envelope.rs` adds what is invalid outside the parameters, `routing.rs` what never
//! reaches a method, `checker.rs` checks the responses and `log.rs` the server's log. `schemas.rs` has values for
//! recursive and doubling schemas. `rest.rs` adds the paths and queries of HTTP+JSON, `grpc.rs` protobuf messages.
//! Deliberately not here: requests that look invalid but are valid by a rule of the protocol (samples in
//! `crates/protocol/tests`), requests that are merely large (request_bombs), arbitrary bytes (`fuzz`), and bytes
//! that are not HTTP, which are answered before a binding is chosen.

mod broken;
mod case;
mod checker;
mod envelope;
mod errors;
mod grpc;
mod log;
mod methods;
mod params;
mod rest;
mod routing;
mod schema;
mod schemas;
mod values;

use std::borrow::Cow;
use std::collections::HashSet;
use std::fs;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};
use tokio::task::JoinSet;
use tokio::time::timeout;

pub(crate) use self::schemas::{COMMAND, serve};

use self::case::{Binding, Case};
use self::checker::Received;
use self::grpc::channel::Channel;
use self::methods::METHODS;
use super::extra_options::{ExtraOptions, TimeLimits};
use super::random::Random;
use super::rpc::{Caller, message};
use super::trial::{ProofResult, Setup, Trial, stop};
use crate::http::{self, Connection};
use crate::server::{Launch, Server};

pub(crate) const OPTIONS: &str = "[--least N] [--seed S] [--binary PATH] [--relaxed]";

const AGENT: &str = "echo";
/// Webhooks are refused for every task, so that what is wrong with them shows before what they do.
const CONFIGURATION: &str = r#"[server]
default_agent = "echo"

[skills.echo]
builtin = "echo"

[agents.echo]
skills = ["echo"]
push = false
"#;
/// The name of a webhook configuration.
const CONFIG: &str = "c-1";
/// Label in the result for requests that reach no operation.
const ROUTING: &str = "routing";
/// Least number of malformed requests for each method.
const LEAST: u64 = 300;
/// Requests in progress at a time.
const WORKERS: usize = 4;
/// Connections for gRPC, which the workers share.
const CHANNELS: usize = 2;
const RESPONSE_GOAL: Duration = Duration::from_millis(50);
const RESPONSE_LIMIT: Duration = Duration::from_secs(10);

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut extras = ExtraOptions::of(args);
    let time_limits = extras.time_limits();
    let trial = Trial::parse("malformed_requests", "--least", LEAST, &extras.rest())?;
    trial.run(async |setup| {
        let mut result = Session::open(&trial, time_limits, setup).await?.examine().await?;
        let limit = time_limits.limit(RESPONSE_GOAL);
        let (figures, findings) = schemas::examine(setup, limit, trial.seed).await?;
        result.figures["schemas"] = figures;
        result.findings.extend(findings);
        Ok(result)
    })
}

/// The server, a task that must stay unchanged, and the results.
struct Session<'a> {
    setup: &'a Setup,
    server: Server,
    least: u64,
    limit: Duration,
    task: String,
    channels: Vec<Channel>,
    /// Number of names used so far.
    names: Arc<AtomicU64>,
    findings: Vec<String>,
    took: Vec<Duration>,
    counts: Map<String, Value>,
}

/// The requests for one operation.
struct Suite {
    label: String,
    good: Case,
    cases: Vec<Case>,
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
        let launch = Launch::with_config(&setup.store, CONFIGURATION)?;
        let server = Server::start_with(&launch, &setup.program, &setup.store).await?;
        let params = message(Random::new(trial.seed).uuid(), "unchanged", false);
        let sent = Caller::new(server.address).call(AGENT, "SendMessage", params).await?;
        let task = sent["task"]["id"].as_str().context("the response to a send has no task")?.to_owned();
        let mut channels = Vec::new();
        for _ in 0..CHANNELS {
            channels.push(Channel::open(server.address).await?);
        }
        Ok(Self {
            setup,
            server,
            channels,
            names: Arc::default(),
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
        for suite in json_rpc() {
            self.suite(suite).await?;
        }
        self.routing().await?;
        for suite in rest::suites().chain(grpc::suites(&self.task.clone())) {
            self.suite(suite).await?;
        }
        if self.kept_task().await? != before {
            self.findings.push("the task that must stay unchanged has changed".to_owned());
        }
        self.findings.extend(log::faults(&self.server.log()));
        self.channels.clear();
        stop(self.server, &mut self.findings).await?;
        // The complete list is saved next to the store; the terminal shows only the first ones.
        fs::write(self.setup.store.with_extension("findings"), self.findings.join("\n"))?;
        let figures = figures(&self.counts, self.took);
        Ok(ProofResult { figures, findings: self.findings })
    }

    /// Invalid requests first, after which nothing may be stored; then a valid one, which is served.
    async fn suite(&mut self, Suite { label, good, mut cases }: Suite) -> Result<()> {
        let mut known = HashSet::new();
        cases.retain(|case| known.insert(case.key()));
        self.count(&label, cases.len());
        let before = self.total().await?;
        self.send_cases(&label, &cases).await?;
        let after = self.total().await?;
        if after != before {
            self.findings
                .push(format!("{label}: {before} tasks before the refused requests, {after} after them"));
        }
        self.send_cases(&label, &[good]).await
    }

    async fn send_cases(&mut self, label: &str, cases: &[Case]) -> Result<()> {
        let mut workers = JoinSet::new();
        let share = cases.len().div_ceil(WORKERS).max(1);
        for (share, channel) in cases.chunks(share).zip(self.channels.iter().cycle()) {
            let worker = Worker {
                address: self.server.address,
                task: self.task.clone(),
                names: Arc::clone(&self.names),
                connection: None,
                channel: channel.clone(),
            };
            workers.spawn(worker.send_cases(share.to_vec()));
        }
        while let Some(results) = workers.join_next().await {
            for result in results? {
                self.note(label, result);
            }
        }
        Ok(())
    }

    /// Records the number of requests of an operation; too few is a finding.
    fn count(&mut self, label: &str, refused: usize) {
        eprintln!("{label:45} {refused:5} refused");
        self.counts.insert(label.to_owned(), refused.into());
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
        self.counts.insert(ROUTING.to_owned(), cases.len().into());
        self.send_cases(ROUTING, &cases).await
    }

    async fn kept_task(&self) -> Result<Value> {
        let params = json!({"id": self.task});
        Ok(Caller::new(self.server.address).call(AGENT, "GetTask", params).await?)
    }

    async fn total(&self) -> Result<u64> {
        let params = json!({"pageSize": 1, "historyLength": 0});
        let page = Caller::new(self.server.address).call(AGENT, "ListTasks", params).await?;
        page["totalSize"].as_u64().context("the page has no total")
    }
}

/// The requests for every method of JSON-RPC.
fn json_rpc() -> impl Iterator<Item = Suite> {
    METHODS.iter().map(|method| {
        let good = method.good();
        let cases = [envelope::cases(method, &good), params::cases(method, &good)].concat();
        Suite { label: method.label(), good, cases }
    })
}

/// Sends one case after another over one connection, as long as it lasts.
struct Worker {
    address: SocketAddr,
    /// A task that has ended.
    task: String,
    names: Arc<AtomicU64>,
    connection: Option<Connection>,
    channel: Channel,
}

impl Worker {
    async fn send_cases(mut self, cases: Vec<Case>) -> Vec<CaseResult> {
        let mut results = Vec::with_capacity(cases.len());
        for case in cases {
            let case = self.filled(case);
            results.push(CaseResult::of(&case.name, self.fault(&case)).await);
        }
        results
    }

    /// The case with names in place of the placeholders.
    fn filled(&self, mut case: Case) -> Case {
        let new = format!("new-{:010}", self.names.fetch_add(1, Ordering::Relaxed));
        let placeholders =
            [("$TASK", &self.task[..]), ("$CONFIG", CONFIG), ("$NEW", &new), (grpc::NEW, &new)];
        for (placeholder, text) in placeholders {
            case.target = case.target.replace(placeholder, text);
            case.body = replaced(&case.body, placeholder, text);
        }
        case
    }

    async fn fault(&mut self, case: &Case) -> Result<Option<String>> {
        let received = match case.binding {
            Binding::Grpc => grpc::channel::call(&self.channel, case).await?,
            Binding::JsonRpc | Binding::HttpJson => self.exchange(case).await?.into(),
        };
        Ok(checker::fault(case, &received))
    }

    /// Over HTTP+JSON it reconnects if needed: a server may close the connection after responding to a body it has not
    /// read. Over JSON-RPC every body is read, so a connection must stay open.
    async fn exchange(&mut self, case: &Case) -> Result<http::Response> {
        if let Some(mut connection) = self.connection.take() {
            match send(&mut connection, case).await {
                Err(http::Error::Cut(_)) if case.binding == Binding::HttpJson => {}
                response => {
                    let response = response?;
                    self.connection = Some(connection);
                    return Ok(response);
                }
            }
        }
        let mut connection = Connection::open(self.address).await?;
        let response = send(&mut connection, case).await?;
        self.connection = Some(connection);
        Ok(response)
    }
}

impl From<http::Response> for Received {
    fn from(response: http::Response) -> Self {
        let header = |name| response.headers.get(name).map(str::to_owned);
        let (content_type, allow) = (header("content-type").unwrap_or_default(), header("allow"));
        Self { http: response.status, content_type, allow, body: response.body, ..Self::default() }
    }
}

/// Sends a request over HTTP/1.1; the media type is omitted without a body.
async fn send(connection: &mut Connection, case: &Case) -> Result<http::Response, http::Error> {
    let used = |name| name != "content-type" || !case.body.is_empty();
    let headers = case.headers.iter().filter(|header| used(header.0));
    let headers: Vec<(&str, Cow<'_, str>)> =
        headers.map(|(name, value)| (*name, String::from_utf8_lossy(value))).collect();
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, &**value)).collect();
    connection.exchange(case.verb, &case.target, &headers, &case.body).await
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
    json!({
        "refused": counts.values().filter_map(Value::as_u64).sum::<u64>(),
        "operations": counts.keys().filter(|label| *label != ROUTING).count(),
        "median_ms": millis(at(500)),
        "p99_ms": millis(at(990)),
        "slowest_ms": millis(took.last()),
        "counts": counts,
    })
}
