//! The HTTP+JSON binding in both generations: every operation gets some hundred requests that are invalid in one
//! respect each, in the path, the query, the body or the headers.
//!
//! `rest/operations.rs` describes the operations by the same fields as the JSON-RPC methods; the other files
//! generate the requests. Deliberately not here: bytes that are not HTTP, which are answered before a binding is
//! chosen.

mod bodies;
mod case;
mod checker;
mod operations;
mod paths;
mod queries;
mod versions;

use std::collections::HashSet;
use std::net::SocketAddr;

use anyhow::Result;
use tokio::task::JoinSet;

use self::case::Case;
use self::operations::{OPERATIONS, Operation};
use super::checker::Received;
use super::{CaseResult, Session, WORKERS, replaced};
use crate::http::{self, Connection};

/// The name of a webhook configuration.
const CONFIG: &str = "c-1";

/// Tests every operation at its paths.
pub(super) async fn examine(session: &mut Session<'_>) -> Result<()> {
    for operation in OPERATIONS {
        examine_one(session, operation).await?;
    }
    Ok(())
}

/// Invalid requests first, after which nothing may be stored; then a valid one and the unusual ones, which are
/// served.
async fn examine_one(session: &mut Session<'_>, operation: &'static Operation) -> Result<()> {
    let good = Case::accepted(operation, "a valid request", "it is valid");
    let made = [
        paths::cases(operation),
        queries::cases(operation),
        bodies::cases(operation),
        versions::cases(operation),
    ];
    let mut known = HashSet::new();
    let cases = [good].into_iter().chain(made.into_iter().flatten());
    let (refused, accepted): (Vec<Case>, Vec<Case>) =
        cases.filter(|case| known.insert(case.key())).partition(Case::is_refused);
    let label = operation.label();
    session.count(&label, refused.len(), accepted.len());
    let before = session.total().await?;
    send_cases(session, operation, refused).await?;
    session.check_total(&label, before).await?;
    send_cases(session, operation, accepted).await
}

async fn send_cases(
    session: &mut Session<'_>,
    operation: &'static Operation,
    cases: Vec<Case>,
) -> Result<()> {
    let mut workers = JoinSet::new();
    let share = cases.len().div_ceil(WORKERS).max(1);
    let label = operation.label();
    for (worker, share) in cases.chunks(share).enumerate() {
        let name: String = label.chars().filter(char::is_ascii_alphanumeric).collect();
        let worker = Worker {
            operation,
            address: session.server.address,
            task: session.task.clone(),
            name: format!("rest-{name}-{worker}"),
            connection: None,
            sent: 0,
        };
        workers.spawn(worker.send_cases(share.to_vec()));
    }
    while let Some(results) = workers.join_next().await {
        for result in results? {
            session.note(&label, result);
        }
    }
    Ok(())
}

/// Sends one case after another over one connection, as long as it lasts.
struct Worker {
    operation: &'static Operation,
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
        let escaped: String = self.task.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let placeholders =
            [("$TASK", self.task.as_str()), ("$CONFIG", CONFIG), ("$ESCAPED", &escaped), ("$NEW", &new)];
        let mut target = case.target.clone();
        let mut body = case.body.clone();
        for (placeholder, text) in placeholders {
            target = target.replace(placeholder, text);
            body = replaced(&body, placeholder, text);
        }
        let response = self.exchange(case, &target, &body).await?;
        let content_type = response.headers.get("content-type").unwrap_or_default();
        let received = Received { status: response.status, content_type, body: &response.body };
        Ok(checker::fault(self.operation, case, &received, response.headers.get("allow")))
    }

    /// Reconnects if needed: a server may close the connection after responding to a body it has not read.
    async fn exchange(&mut self, case: &Case, target: &str, body: &[u8]) -> Result<http::Response> {
        if let Some(mut connection) = self.connection.take() {
            match send(&mut connection, case, target, body).await {
                Ok(response) => {
                    self.connection = Some(connection);
                    return Ok(response);
                }
                Err(http::Error::Cut(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let mut connection = Connection::open(self.address).await?;
        let response = send(&mut connection, case, target, body).await?;
        self.connection = Some(connection);
        Ok(response)
    }
}

async fn send(
    connection: &mut Connection,
    case: &Case,
    target: &str,
    body: &[u8],
) -> Result<http::Response, http::Error> {
    let named = |name, value: Option<&'static str>| value.map(|value| (name, value));
    let version = case.version.as_deref().map(|version| ("A2A-Version", version));
    let headers: Vec<(&str, &str)> = [
        version,
        named("Content-Type", case.content_type.filter(|_| !body.is_empty())),
        named("Content-Encoding", case.encoding),
        named("Accept", case.accept),
    ]
    .into_iter()
    .flatten()
    .collect();
    connection.exchange(&case.verb, target, &headers, body).await
}
