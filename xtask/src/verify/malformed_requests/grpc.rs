//! gRPC: every method of both services, over a few connections.
//!
//! The requests are generated from tables: `methods.rs` lists the methods, `schema.rs` describes their messages,
//! `values.rs` and `any.rs` have invalid values for each kind of field, `unusual.rs` the unusual valid ones,
//! `messages.rs` combines them, `around.rs` adds what is invalid outside a message and `metadata.rs` what is
//! invalid in the metadata. Everything is encoded by hand (`wire.rs`), so that requests no library would produce
//! can be sent too.

mod any;
mod around;
mod case;
mod channel;
mod checker;
mod messages;
mod metadata;
mod methods;
mod schema;
mod unusual;
mod values;
mod wire;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use tokio::task::JoinSet;

use self::case::{Case, Expected, framed};
use self::channel::{Channel, ChannelHandle};
use self::methods::{METHODS, Method};
use self::schema::NEW;
use super::{AGENT, CaseResult, Session, WORKERS};

/// Number of connections, which the workers share.
const CONNECTIONS: usize = 2;

/// Tests every method of both services.
pub(super) async fn examine(session: &mut Session<'_>) -> Result<()> {
    let mut channels = Vec::new();
    for _ in 0..CONNECTIONS {
        channels.push(Channel::open(session.server.address).await?);
    }
    let names = Arc::new(AtomicU64::new(0));
    for method in METHODS {
        let ward = MethodRun { method, channels: &channels, names: Arc::clone(&names) };
        ward.examine(session).await?;
    }
    Ok(())
}

/// One method and the connections to it.
struct MethodRun<'a> {
    method: &'static Method,
    channels: &'a [Channel],
    /// Number of names used so far.
    names: Arc<AtomicU64>,
}

impl MethodRun<'_> {
    /// Invalid requests first, after which nothing may be stored; then a valid one and the unusual ones, which are
    /// served.
    async fn examine(self, session: &mut Session<'_>) -> Result<()> {
        let good = good(self.method, &session.task);
        let (mut accepted, mut refused) = (vec![good.clone()], Vec::new());
        let mut known = HashSet::new();
        let about = messages::cases(self.method, &good, &session.task);
        for case in about.into_iter().chain(around::cases(self.method, &good)) {
            if known.insert(case.key()) {
                if case.is_refused() { refused.push(case) } else { accepted.push(case) }
            }
        }
        let label = self.label();
        session.count(&label, refused.len(), accepted.len());
        let before = session.total().await?;
        self.send_cases(session, refused).await?;
        session.check_total(&label, before).await?;
        self.send_cases(session, accepted).await
    }

    async fn send_cases(&self, session: &mut Session<'_>, cases: Vec<Case>) -> Result<()> {
        let mut workers = JoinSet::new();
        let share = cases.len().div_ceil(WORKERS).max(1);
        let label = self.label();
        for (share, channel) in cases.chunks(share).zip(self.channels.iter().cycle()) {
            let worker =
                Worker { method: self.method, handle: channel.handle(), names: Arc::clone(&self.names) };
            workers.spawn(worker.send_cases(share.to_vec()));
        }
        while let Some(results) = workers.join_next().await {
            for result in results? {
                session.note(&label, result);
            }
        }
        Ok(())
    }

    fn label(&self) -> String {
        format!("grpc {} {}", self.method.service.version(), self.method.name)
    }
}

fn good(method: &Method, task: &str) -> Case {
    let text = |text: &str| text.as_bytes().to_vec();
    Case {
        name: "a valid request".to_owned(),
        verb: "POST",
        path: format!("/{}/{}", method.service.name(), method.name),
        headers: vec![
            ("content-type", text("application/grpc")),
            ("te", text("trailers")),
            ("a2a-version", text(method.service.version())),
            ("a2a-agent", text(AGENT)),
        ],
        body: framed(&schema::message(method.fields, task)),
        expected: Expected::Accepted("it is valid"),
    }
}

/// Sends one case after another.
struct Worker {
    method: &'static Method,
    handle: ChannelHandle,
    names: Arc<AtomicU64>,
}

impl Worker {
    async fn send_cases(mut self, cases: Vec<Case>) -> Vec<CaseResult> {
        let mut results = Vec::with_capacity(cases.len());
        for case in cases {
            let body = self.with_new_names(&case.body);
            let exchange =
                async { Ok(checker::fault(&case, self.method, &self.handle.call(&case, body).await?)) };
            results.push(CaseResult::of(&case.name, exchange).await);
        }
        results
    }

    /// The body with unused names in place of the placeholders, which have the same length.
    fn with_new_names(&self, body: &[u8]) -> Vec<u8> {
        let mut body = body.to_vec();
        let number = self.names.fetch_add(1, Ordering::Relaxed);
        let name = format!("new-{number:010}");
        let mut at = 0;
        while let Some(found) = body
            .get(at..)
            .and_then(|rest| rest.windows(NEW.len()).position(|window| window == NEW.as_bytes()))
        {
            body[at + found..at + found + NEW.len()].copy_from_slice(name.as_bytes());
            at += found + NEW.len();
        }
        body
    }
}
