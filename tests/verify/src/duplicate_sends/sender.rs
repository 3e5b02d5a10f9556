//! Sends the copies over many connections at once and passes the responses to the checker.
//!
//! Each response is checked as any client would: it names a task that contains the sender's own text, and one that
//! was waited for has settled. A stream is read from the status its message caused to its end, without a gap.
//! Deliberately not here: what the responses for one key must have in common (`checker.rs`).

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use testkit::json::is_terminal;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use super::checker::{Checker, Response, Verdict};
use super::plan::{Key, Mode, Plan, Send};
use crate::rpc::{Caller, Failure, Frames, INVALID_PARAMS};
use crate::view::{View, text_digest};

const SENDERS: usize = 64;

/// The state shared by all senders.
pub(crate) struct SendState {
    pub(crate) plan: Plan,
    /// The tasks that wait for input, by index.
    pub(crate) waiting: Vec<String>,
    pub(crate) checker: Mutex<Checker>,
    /// The server's address; `None` while it is being killed and restarted.
    pub(crate) address: watch::Sender<Option<SocketAddr>>,
    /// Connections lost because the server was killed.
    pub(crate) cuts: AtomicU64,
    /// Sends refused because the server was temporarily unavailable; they count as lost.
    pub(crate) postponed: AtomicU64,
    clock: AtomicU64,
}

/// Some sends, handed out one by one.
struct Batch {
    sends: Vec<Send>,
    next: AtomicUsize,
    half: Notify,
}

impl SendState {
    pub(crate) fn new(plan: Plan, waiting: Vec<String>, address: SocketAddr) -> Self {
        let checker = Mutex::new(Checker::new(plan.keys.len()));
        let address = watch::Sender::new(Some(address));
        let [cuts, postponed, clock] = [(); 3].map(|()| AtomicU64::new(0));
        Self { plan, waiting, checker, address, cuts, postponed, clock }
    }

    /// Sends them all; runs `halfway` concurrently, once half of them have been handed out.
    pub(crate) async fn send_all<T>(
        self: &Arc<Self>,
        sends: Vec<Send>,
        halfway: impl Future<Output = T>,
    ) -> T {
        let batch = Arc::new(Batch { sends, next: AtomicUsize::new(0), half: Notify::new() });
        let mut senders = JoinSet::new();
        for _ in 0..SENDERS {
            senders.spawn(Arc::clone(self).work(Arc::clone(&batch)));
        }
        batch.half.notified().await;
        let done = halfway.await;
        while let Some(ended) = senders.join_next().await {
            ended.expect("a sender neither panics nor is cancelled");
        }
        done
    }

    pub(crate) fn checker(&self) -> MutexGuard<'_, Checker> {
        self.checker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn work(self: Arc<Self>, batch: Arc<Batch>) {
        let mut addresses = self.address.subscribe();
        let mut known: Option<(SocketAddr, Caller)> = None;
        while let Some(send) = batch.take() {
            let Ok(address) = addresses.wait_for(Option::is_some).await.map(|address| *address) else {
                return;
            };
            let address = address.expect("waited for just above");
            let (_, caller) = match known.take() {
                Some(connection) if connection.0 == address => known.insert(connection),
                _ => known.insert((address, Caller::new(address))),
            };
            self.send(caller, address, send).await;
        }
    }

    async fn send(&self, caller: &mut Caller, address: SocketAddr, send: Send) {
        let sent = self.clock.fetch_add(1, Ordering::Relaxed);
        let mut first_seq = None;
        let verdict = match self.send_copy(caller, address, send, &mut first_seq).await {
            Ok(verdict) => verdict,
            Err(Failure::Error { code: INVALID_PARAMS, reason, .. }) if reason == "MESSAGE_ID_REUSED" => {
                Verdict::Reused
            }
            Err(Failure::Cut(_)) => {
                self.cut(address, send);
                Verdict::Lost
            }
            Err(failure) if failure.is_retryable() => {
                self.postponed.fetch_add(1, Ordering::Relaxed);
                Verdict::Lost
            }
            Err(failure) => {
                self.checker().add_finding(format!("key {}, {:?}: {failure}", send.key, send.mode));
                Verdict::Lost
            }
        };
        let received = self.clock.fetch_add(1, Ordering::Relaxed);
        self.checker()
            .add_response(send.key, Response { text: send.text, sent, received, first_seq, verdict });
    }

    fn cut(&self, address: SocketAddr, send: Send) {
        // The address is withdrawn before the kill, so the server itself closed the connection if it is still set.
        if *self.address.borrow() == Some(address) {
            self.checker().add_finding(format!("a running server closed the connection of key {}", send.key));
        }
        self.cuts.fetch_add(1, Ordering::Relaxed);
    }

    /// Sends one copy; for a stream, `first_seq` receives its first event number.
    async fn send_copy(
        &self,
        caller: &mut Caller,
        address: SocketAddr,
        send: Send,
        first_seq: &mut Option<u64>,
    ) -> Result<Verdict, Failure> {
        let key = &self.plan.keys[send.key];
        let params = key.params(send, &self.waiting);
        let mut headers: Vec<(&str, &str)> = Vec::new();
        headers.extend(key.header.as_deref().map(|header| ("Idempotency-Key", header)));
        let method = if send.mode == Mode::Stream { "SendStreamingMessage" } else { "SendMessage" };
        if let Some(bytes) = send.reset {
            // The server closes the connection if the response is shorter than that.
            headers.push(("Connection", "close"));
            caller.call_and_reset(&headers, key.agent(), method, params, bytes).await?;
            return Ok(Verdict::Lost);
        }
        if send.mode == Mode::Stream {
            let mut frames = caller.stream_with(&headers, key.agent(), method, params).await?;
            let replayed = frames.replayed;
            let first = frames.first().await?;
            *first_seq = first.seq;
            let mut view = View::of(&first.result["task"]).map_err(Failure::Unusable)?;
            match follow(&mut frames, &mut view, first.seq).await {
                Ok(()) => check_settled(key, send, &view)?,
                // Its first frame has delivered what is compared.
                Err(Failure::Cut(_)) => self.cut(address, send),
                Err(failure) => return Err(failure),
            }
            let task = view.task;
            return Ok(Verdict::Accepted { task, replayed });
        }
        let reply = caller.call_with(&headers, key.agent(), method, params).await?;
        let view = View::of(&reply.result["task"]).map_err(Failure::Unusable)?;
        if send.mode == Mode::Wait {
            check_settled(key, send, &view)?;
        }
        Ok(Verdict::Accepted { task: view.task, replayed: reply.replayed })
    }
}

/// Reads a stream to its end and checks that the numbers are consecutive.
async fn follow(frames: &mut Frames, view: &mut View, first: Option<u64>) -> Result<(), Failure> {
    let mut last = first.ok_or_else(|| unusable("the first frame of a stream has no number"))?;
    while let Some(frame) = frames.next().await? {
        if frame.seq != Some(last + 1) {
            return Err(unusable(&format!("number {:?} after {last}", frame.seq)));
        }
        last += 1;
        view.apply(&frame.result).map_err(Failure::Unusable)?;
    }
    Ok(())
}

/// Checks that a task that was waited for has settled, and that an echo has the sender's own text.
fn check_settled(key: &Key, send: Send, view: &View) -> Result<(), Failure> {
    let asks_back = key.agent() == "approver" && view.state() == "TASK_STATE_INPUT_REQUIRED";
    if !asks_back && !is_terminal(view.state()) {
        return Err(unusable(&format!("the response was waited for and the task is {}", view.state())));
    }
    let own = text_digest(&key.texts[send.text]);
    match view.outcome() {
        Some(end) if key.agent() != "approver" && end.state != "TASK_STATE_COMPLETED" => {
            Err(unusable(&format!("the task ended {}", end.state)))
        }
        Some(end) if key.agent() == "echo" && end.text != own => {
            Err(unusable(&format!("task {} echoes a text that differs from the one sent", view.task)))
        }
        _ => Ok(()),
    }
}

impl Batch {
    fn take(&self) -> Option<Send> {
        let at = self.next.fetch_add(1, Ordering::Relaxed);
        if at >= self.sends.len() / 2 {
            self.half.notify_one();
        }
        self.sends.get(at).copied()
    }
}

/// The id of the task in a response to a send.
pub(crate) fn task_of(response: &Value) -> Result<String, Failure> {
    Ok(View::of(&response["task"]).map_err(Failure::Unusable)?.task)
}

fn unusable(what: &str) -> Failure {
    Failure::Unusable(what.to_owned())
}
