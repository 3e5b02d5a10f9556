//! A receiver of push notifications, which confirms its URL and keeps what arrives.

use std::{
    collections::HashMap,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde_json::Value;
use tokio::time::{Instant, sleep};

use super::{
    CheckError, json,
    json::ValueChecks as _,
    loopback::{LoopbackServer, Request},
    mismatch,
};

/// A path whose URL the receiver does not confirm.
pub(crate) const UNCONFIRMED: &str = "/unconfirmed";

/// How long a notification may take.
const TIMEOUT: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(20);

/// Receives until this value is dropped.
pub(crate) struct WebhookReceiver {
    server: LoopbackServer,
    requests: Arc<Mutex<Vec<Received>>>,
}

/// A request that arrived.
#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) method: String,
    /// Without the query.
    pub(crate) path: String,
    /// By their names in lower case.
    pub(crate) headers: HashMap<String, String>,
    pub(crate) body: Vec<u8>,
    /// The body, `Value::Null` where it is not JSON.
    pub(crate) json: Value,
}

impl Received {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// Checks the value of a header.
    pub(crate) fn has_header(&self, name: &str, expected: &str) -> Result<(), CheckError> {
        match self.header(name) == expected {
            true => Ok(()),
            false => Err(mismatch(format!("{name}: {expected}"), format!("{:?}", self.headers))),
        }
    }
}

impl WebhookReceiver {
    pub(crate) async fn start() -> Result<Self, CheckError> {
        let requests = Arc::<Mutex<Vec<Received>>>::default();
        let log = Arc::clone(&requests);
        let server = LoopbackServer::start(move |request| respond(request, Arc::clone(&log))).await?;
        Ok(Self { server, requests })
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.server.host)
    }

    /// What arrived at a path so far.
    pub(crate) fn received(&self, path: &str) -> Vec<Received> {
        locked(&self.requests).iter().filter(|request| request.path == path).cloned().collect()
    }

    /// The notifications that arrived at a path so far.
    pub(crate) fn notifications(&self, path: &str) -> Vec<Received> {
        self.received(path).into_iter().filter(|request| request.method == "POST").collect()
    }

    /// Waits for a notification that the draft's task is in this state.
    pub(crate) async fn wait_for_state(&self, path: &str, state: &str) -> Result<Received, CheckError> {
        let is_state =
            |request: &Received| request.method == "POST" && request.json.is("status.state", state).is_ok();
        self.wait_for(path, &format!("a notification of {state}"), is_state).await
    }

    /// Waits for a request.
    pub(crate) async fn wait_for(
        &self,
        path: &str,
        expected: &str,
        holds: impl Fn(&Received) -> bool,
    ) -> Result<Received, CheckError> {
        let deadline = Instant::now() + TIMEOUT;
        loop {
            let received = self.received(path);
            if let Some(found) = received.iter().find(|request| holds(request)) {
                return Ok(found.clone());
            }
            if Instant::now() > deadline {
                let lines: Vec<String> =
                    received.iter().map(|request| format!("{} {}", request.method, request.json)).collect();
                let expected = format!("{expected} at {path} within {} seconds", TIMEOUT.as_secs());
                return Err(mismatch(expected, format!("[{}]", lines.join(", "))));
            }
            sleep(POLL).await;
        }
    }
}

async fn respond(request: Request, log: Arc<Mutex<Vec<Received>>>) -> io::Result<()> {
    let (method, target) = request.line.split_once(' ').unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let token = query.strip_prefix("validationToken=").unwrap_or_default().to_owned();
    let received = Received {
        method: method.to_owned(),
        path: path.to_owned(),
        headers: request.headers.clone(),
        json: json::parse(&String::from_utf8_lossy(&request.body)).unwrap_or(Value::Null),
        body: request.body.clone(),
    };
    let (is_challenge, path) = (received.method == "GET", received.path.clone());
    locked(&log).push(received);
    match path.as_str() {
        UNCONFIRMED if is_challenge => request.respond_with(200, "", "another text").await,
        _ => request.respond_with(200, "", &token).await,
    }
}

fn locked(requests: &Mutex<Vec<Received>>) -> MutexGuard<'_, Vec<Received>> {
    requests.lock().unwrap_or_else(PoisonError::into_inner)
}
