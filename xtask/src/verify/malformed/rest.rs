//! The HTTP+JSON binding in both generations: every operation gets some hundred requests that are wrong in one respect
//! each, in the path, the query, the body or beside them.
//!
//! `rest/operations.rs` describes the operations by the same fields as the methods of JSON-RPC; the four files of cases
//! make the requests. Deliberately not here: what is no HTTP, which is answered before there is a binding.

mod bodies;
mod case;
mod judge;
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
use super::judge::Told;
use super::{Answered, Clinic, LANES, replaced};
use crate::http::{self, Connection};

/// The name of a webhook.
const CONFIG: &str = "c-1";

/// Asks every operation at its paths.
pub(super) async fn examine(clinic: &mut Clinic<'_>) -> Result<()> {
    for operation in OPERATIONS {
        examine_one(clinic, operation).await?;
    }
    Ok(())
}

/// Refused requests first, and nothing is stored; then a good one and the odd ones, which are served.
async fn examine_one(clinic: &mut Clinic<'_>, operation: &'static Operation) -> Result<()> {
    let good = Case::taken(operation, "a good request", "nothing is wrong with it");
    let made = [
        paths::cases(operation),
        queries::cases(operation),
        bodies::cases(operation),
        versions::cases(operation),
    ];
    let mut known = HashSet::new();
    let cases = [good].into_iter().chain(made.into_iter().flatten());
    let (refused, taken): (Vec<Case>, Vec<Case>) =
        cases.filter(|case| known.insert(case.key())).partition(Case::is_refused);
    let label = operation.label();
    clinic.count(&label, refused.len(), taken.len());
    let before = clinic.total().await?;
    ask(clinic, operation, refused).await?;
    clinic.check_total(&label, before).await?;
    ask(clinic, operation, taken).await
}

async fn ask(clinic: &mut Clinic<'_>, operation: &'static Operation, cases: Vec<Case>) -> Result<()> {
    let mut lanes = JoinSet::new();
    let share = cases.len().div_ceil(LANES).max(1);
    let label = operation.label();
    for (lane, share) in cases.chunks(share).enumerate() {
        let name: String = label.chars().filter(char::is_ascii_alphanumeric).collect();
        let lane = Lane {
            operation,
            address: clinic.server.address,
            task: clinic.task.clone(),
            name: format!("rest-{name}-{lane}"),
            connection: None,
            asked: 0,
        };
        lanes.spawn(lane.ask(share.to_vec()));
    }
    while let Some(answered) = lanes.join_next().await {
        for answered in answered? {
            clinic.note(&label, answered);
        }
    }
    Ok(())
}

/// Asks one case after another over one connection, as long as it lasts.
struct Lane {
    operation: &'static Operation,
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
        let escaped: String = self.task.bytes().map(|byte| format!("%{byte:02x}")).collect();
        let places =
            [("$TASK", self.task.as_str()), ("$CONFIG", CONFIG), ("$ESCAPED", &escaped), ("$NEW", &new)];
        let mut target = case.target.clone();
        let mut body = case.body.clone();
        for (place, text) in places {
            target = target.replace(place, text);
            body = replaced(&body, place, text);
        }
        let answer = self.exchange(case, &target, &body).await?;
        let content_type = answer.headers.get("content-type").unwrap_or_default();
        let told = Told { status: answer.status, content_type, body: &answer.body };
        Ok(judge::fault(self.operation, case, &told, answer.headers.get("allow")))
    }

    /// A server may hang up behind an answer to a body that it has not read: then the next request begins anew.
    async fn exchange(&mut self, case: &Case, target: &str, body: &[u8]) -> Result<http::Answer> {
        if let Some(mut connection) = self.connection.take() {
            match send(&mut connection, case, target, body).await {
                Ok(answer) => {
                    self.connection = Some(connection);
                    return Ok(answer);
                }
                Err(http::Error::Cut(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let mut connection = Connection::open(self.address).await?;
        let answer = send(&mut connection, case, target, body).await?;
        self.connection = Some(connection);
        Ok(answer)
    }
}

async fn send(
    connection: &mut Connection,
    case: &Case,
    target: &str,
    body: &[u8],
) -> Result<http::Answer, http::Error> {
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
