//! gRPC: every method of both services, over a few connections.
//!
//! The requests are made from tables: `methods.rs` says which methods there are, `schema.rs` what is in their messages,
//! `values.rs` and `any.rs` what is wrong for a kind of field, `odd.rs` what is not, `messages.rs` puts them together,
//! `around.rs` adds what is wrong around a message and `metadata.rs` what is wrong in the metadata. Everything is written
//! on the wire by hand (`wire.rs`), so that what no library writes can be sent too.

mod any;
mod around;
mod case;
mod channel;
mod judge;
mod messages;
mod metadata;
mod methods;
mod odd;
mod schema;
mod values;
mod wire;

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::Result;
use tokio::task::JoinSet;

use self::case::{Case, Expected, framed};
use self::channel::{Channel, Line};
use self::methods::{METHODS, Method};
use self::schema::NEW;
use super::{AGENT, Answered, Clinic, LANES};

/// Connections, which the lanes share.
const CONNECTIONS: usize = 2;

/// Asks every method of both services.
pub(super) async fn examine(clinic: &mut Clinic<'_>) -> Result<()> {
    let mut channels = Vec::new();
    for _ in 0..CONNECTIONS {
        channels.push(Channel::open(clinic.server.address).await?);
    }
    let names = Arc::new(AtomicU64::new(0));
    for method in METHODS {
        let ward = Ward { method, channels: &channels, names: Arc::clone(&names) };
        ward.examine(clinic).await?;
    }
    Ok(())
}

/// One method and the ways to it.
struct Ward<'a> {
    method: &'static Method,
    channels: &'a [Channel],
    /// How many names have been used.
    names: Arc<AtomicU64>,
}

impl Ward<'_> {
    /// Refused requests first, and nothing is stored; then a good one and the odd ones, which are served.
    async fn examine(self, clinic: &mut Clinic<'_>) -> Result<()> {
        let good = good(self.method, &clinic.task);
        let (mut taken, mut refused) = (vec![good.clone()], Vec::new());
        let mut known = HashSet::new();
        let about = messages::cases(self.method, &good, &clinic.task);
        for case in about.into_iter().chain(around::cases(self.method, &good)) {
            if known.insert(case.key()) {
                if case.is_refused() { refused.push(case) } else { taken.push(case) }
            }
        }
        let label = self.label();
        clinic.count(&label, refused.len(), taken.len());
        let before = clinic.total().await?;
        self.ask(clinic, refused).await?;
        clinic.check_total(&label, before).await?;
        self.ask(clinic, taken).await
    }

    async fn ask(&self, clinic: &mut Clinic<'_>, cases: Vec<Case>) -> Result<()> {
        let mut lanes = JoinSet::new();
        let share = cases.len().div_ceil(LANES).max(1);
        let label = self.label();
        for (share, channel) in cases.chunks(share).zip(self.channels.iter().cycle()) {
            let lane = Lane { method: self.method, line: channel.line(), names: Arc::clone(&self.names) };
            lanes.spawn(lane.ask(share.to_vec()));
        }
        while let Some(answered) = lanes.join_next().await {
            for answered in answered? {
                clinic.note(&label, answered);
            }
        }
        Ok(())
    }

    fn label(&self) -> String {
        format!("grpc {} {}", self.method.service.version(), self.method.name)
    }
}

/// A good request.
fn good(method: &Method, task: &str) -> Case {
    let text = |text: &str| text.as_bytes().to_vec();
    Case {
        name: "a good request".to_owned(),
        verb: "POST",
        path: format!("/{}/{}", method.service.name(), method.name),
        headers: vec![
            ("content-type", text("application/grpc")),
            ("te", text("trailers")),
            ("a2a-version", text(method.service.version())),
            ("a2a-agent", text(AGENT)),
        ],
        body: framed(&schema::message(method.fields, task)),
        expected: Expected::Taken("nothing is wrong with it"),
    }
}

/// Asks one case after another.
struct Lane {
    method: &'static Method,
    line: Line,
    names: Arc<AtomicU64>,
}

impl Lane {
    async fn ask(mut self, cases: Vec<Case>) -> Vec<Answered> {
        let mut answered = Vec::with_capacity(cases.len());
        for case in cases {
            let body = self.with_new_names(&case.body);
            let asking = async { Ok(judge::fault(&case, self.method, &self.line.ask(&case, body).await?)) };
            answered.push(Answered::of(&case.name, asking).await);
        }
        answered
    }

    /// The body with names nobody has used, of the same length as those they stand for.
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
