//! What the audit log gets: each change by an operator, and each request that is refused because of its credential,
//! its permission, its rate, its host or its origin. Who keeps the log implements [`Audit`]; without one, nothing is kept.
//!
//! An entry never has a secret, and no text of a caller but its verified name: paths are named by their pattern, agents
//! only if they are registered.

use std::{fmt::Debug, net::IpAddr};

use futures_util::future::BoxFuture;
use protocol::{ErrorKind, Timestamp};

use crate::{addresses::network::network, request::exchange::Exchange, response::refusal::Refusal};

/// Keeps an audit log.
pub trait Audit: Debug + Send + Sync + 'static {
    /// Records a change. It is in the file when the future resolves.
    fn record(&self, entry: AuditEntry) -> BoxFuture<'static, ()>;

    /// Records a refusal soon. Never waits for the disk: refusals that follow each other too fast are only counted, and the
    /// last ones may be lost if the process is killed.
    fn refuse(&self, entry: AuditEntry);

    /// The entries after a number, oldest first, each one JSON object: at most `max` of them. If there are none, waits
    /// for one up to `wait`.
    fn read(
        &self,
        after: u64,
        max: usize,
        wait: std::time::Duration,
    ) -> BoxFuture<'static, std::io::Result<Vec<String>>>;
}

/// One entry of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct AuditEntry {
    /// When it happened.
    pub time: Timestamp,
    /// `operator`, the principal of a caller, or `anonymous`.
    pub who: String,
    /// What was done or refused, such as `agent.disable` or `refused.credential`.
    pub action: &'static str,
    /// The pattern of the path.
    pub route: Option<String>,
    /// Id of a registered agent.
    pub agent: Option<String>,
    /// Id of a task.
    pub task: Option<String>,
    /// Id of an API key.
    pub key: Option<String>,
    /// Id of a delivery of a push notification.
    pub delivery: Option<String>,
    /// From where.
    pub peer: Option<IpAddr>,
    /// As in the log of the server.
    pub request_id: Option<u64>,
    /// Why it was not done; `None` if it was done.
    pub refused: Option<String>,
}

impl AuditEntry {
    /// Something that an operator has done, or the server itself.
    pub fn done(time: Timestamp, who: impl Into<String>, action: &'static str) -> Self {
        Self {
            time,
            who: who.into(),
            action,
            route: None,
            agent: None,
            task: None,
            key: None,
            delivery: None,
            peer: None,
            request_id: None,
            refused: None,
        }
    }

    /// What refusals are counted by: the IPv4 address of the sender, or the first address of its IPv6 /64.
    pub fn network(&self) -> Option<IpAddr> {
        self.peer.map(network)
    }
}

/// Records a request that was refused before its body was read.
pub(crate) fn refused(exchange: &Exchange, refusal: &Refusal) {
    let (action, kind) = match refusal {
        Refusal::Head(_, error) => (Some("refused.host_or_origin"), error.kind),
        Refusal::Caller(error) => (action_of(error.kind), error.kind),
        Refusal::Preflight(_) | Refusal::NotFound | Refusal::MethodNotAllowed(_) | Refusal::NotBuilt(_) => {
            return;
        }
    };
    if let Some(action) = action {
        record_refusal(exchange, action, kind);
    }
}

/// Records a call that was refused after its body was read, if its error is about who sends it.
pub(crate) fn refused_call(exchange: &Exchange, kind: ErrorKind) {
    if let Some(action) = action_of(kind) {
        record_refusal(exchange, action, kind);
    }
}

/// The name of a refusal; `None` for errors that are not about who sends the request.
fn action_of(kind: ErrorKind) -> Option<&'static str> {
    match kind {
        ErrorKind::Unauthenticated => Some("refused.credential"),
        ErrorKind::PermissionDenied => Some("refused.permission"),
        ErrorKind::RateLimited => Some("refused.rate"),
        _ => None,
    }
}

fn record_refusal(exchange: &Exchange, action: &'static str, kind: ErrorKind) {
    let Some(audit) = &exchange.server.audit else { return };
    let agent = exchange.endpoint.registered().map(|agent| agent.info().id.clone());
    audit.refuse(AuditEntry {
        route: Some(exchange.row.path.pattern()),
        agent: agent.filter(|_| exchange.row.is_for_agents()),
        peer: exchange.sender.connection.peer,
        request_id: Some(exchange.request_id.number()),
        refused: Some(kind.row().reason.to_owned()),
        ..AuditEntry::done(exchange.now(), exchange.sender.principal(), action)
    });
}
