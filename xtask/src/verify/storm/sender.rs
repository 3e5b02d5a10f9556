//! Sends the copies over many connections at once and has the judge take what comes back.
//!
//! An answer is looked at as any client would: it names a task that has the sender's own text in it, and one that
//! was waited for has settled. A stream is read from the status its message caused to its end, without a gap.
//! Deliberately not here: what the answers of one key must have in common (`judge.rs`).

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use super::judge::{Answer, Judge, Verdict};
use super::plan::{Key, Mode, Plan, Send};
use crate::verify::rpc::{Caller, Failure, Frames, INVALID_PARAMS};
use crate::verify::view::{View, is_terminal, text_digest};

const SENDERS: usize = 64;

/// What all senders share.
pub(crate) struct Storm {
    pub(crate) plan: Plan,
    /// The tasks that wait for input, by number.
    pub(crate) waiting: Vec<String>,
    pub(crate) judge: Mutex<Judge>,
    /// Where the server is; nowhere while it is being killed and started again.
    pub(crate) address: watch::Sender<Option<SocketAddr>>,
    /// Connections that broke because the server was killed.
    pub(crate) cuts: AtomicU64,
    /// Sends that the server had no time for; they count as lost.
    pub(crate) postponed: AtomicU64,
    clock: AtomicU64,
}

/// Some sends, handed out one by one.
struct Batch {
    sends: Vec<Send>,
    next: AtomicUsize,
    half: Notify,
}

impl Storm {
    pub(crate) fn new(plan: Plan, waiting: Vec<String>, address: SocketAddr) -> Self {
        let judge = Mutex::new(Judge::new(plan.keys.len()));
        let address = watch::Sender::new(Some(address));
        let [cuts, postponed, clock] = [(); 3].map(|()| AtomicU64::new(0));
        Self { plan, waiting, judge, address, cuts, postponed, clock }
    }

    /// Sends them all; `halfway` is done while they are sent, once half of them have been taken up.
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

    pub(crate) fn judge(&self) -> MutexGuard<'_, Judge> {
        self.judge.lock().unwrap_or_else(PoisonError::into_inner)
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
                Some(place) if place.0 == address => known.insert(place),
                _ => known.insert((address, Caller::new(address))),
            };
            self.send(caller, address, send).await;
        }
    }

    async fn send(&self, caller: &mut Caller, address: SocketAddr, send: Send) {
        let sent = self.clock.fetch_add(1, Ordering::Relaxed);
        let mut began = None;
        let verdict = match self.ask(caller, address, send, &mut began).await {
            Ok(verdict) => verdict,
            Err(Failure::Error { code: INVALID_PARAMS, reason, .. }) if reason == "MESSAGE_ID_REUSED" => {
                Verdict::Reused
            }
            Err(Failure::Cut(_)) => {
                self.cut(address, send);
                Verdict::Lost
            }
            Err(failure) if failure.is_passing() => {
                self.postponed.fetch_add(1, Ordering::Relaxed);
                Verdict::Lost
            }
            Err(failure) => {
                self.judge().find(format!("key {}, {:?}: {failure}", send.key, send.mode));
                Verdict::Lost
            }
        };
        let came = self.clock.fetch_add(1, Ordering::Relaxed);
        self.judge().take(send.key, Answer { text: send.text, sent, came, began, verdict });
    }

    fn cut(&self, address: SocketAddr, send: Send) {
        // The address is withdrawn before the kill, so a cut while it stands is the server's own.
        if *self.address.borrow() == Some(address) {
            self.judge().find(format!("a living server cut the connection of key {}", send.key));
        }
        self.cuts.fetch_add(1, Ordering::Relaxed);
    }

    /// Sends one copy; a stream also says with which number it `began`.
    async fn ask(
        &self,
        caller: &mut Caller,
        address: SocketAddr,
        send: Send,
        began: &mut Option<u64>,
    ) -> Result<Verdict, Failure> {
        let key = &self.plan.keys[send.key];
        let params = key.params(send, &self.waiting);
        let mut headers: Vec<(&str, &str)> = Vec::new();
        headers.extend(key.header.as_deref().map(|header| ("Idempotency-Key", header)));
        let method = if send.mode == Mode::Stream { "SendStreamingMessage" } else { "SendMessage" };
        if let Some(bytes) = send.reset {
            // Closed by the server when the answer is shorter than that.
            headers.push(("Connection", "close"));
            caller.ask_and_reset(&headers, key.agent(), method, params, bytes).await?;
            return Ok(Verdict::Lost);
        }
        if send.mode == Mode::Stream {
            let mut frames = caller.stream_with(&headers, key.agent(), method, params).await?;
            let replayed = frames.replayed;
            let first = frames.next().await?.ok_or_else(|| unusable("a stream without a single frame"))?;
            *began = first.seq;
            let mut view = View::of(&first.result["task"]).map_err(Failure::Unusable)?;
            match follow(&mut frames, &mut view, first.seq).await {
                Ok(()) => look(key, send, &view)?,
                // Its first frame has told what matters.
                Err(Failure::Cut(_)) => self.cut(address, send),
                Err(failure) => return Err(failure),
            }
            let task = view.task;
            return Ok(Verdict::Accepted { task, replayed });
        }
        let told = caller.call_with(&headers, key.agent(), method, params).await?;
        let view = View::of(&told.result["task"]).map_err(Failure::Unusable)?;
        if send.mode == Mode::Wait {
            look(key, send, &view)?;
        }
        Ok(Verdict::Accepted { task: view.task, replayed: told.replayed })
    }
}

/// Reads a stream to its end, each number one more than the last.
async fn follow(frames: &mut Frames, view: &mut View, first: Option<u64>) -> Result<(), Failure> {
    let mut last = first.ok_or_else(|| unusable("a stream that begins without a number"))?;
    while let Some(frame) = frames.next().await? {
        if frame.seq != Some(last + 1) {
            return Err(unusable(&format!("number {:?} after {last}", frame.seq)));
        }
        last += 1;
        view.apply(&frame.result).map_err(Failure::Unusable)?;
    }
    Ok(())
}

/// What was waited for has settled, and what was to be echoed is the sender's own text.
fn look(key: &Key, send: Send, view: &View) -> Result<(), Failure> {
    let asks_back = key.agent() == "approver" && view.state() == "TASK_STATE_INPUT_REQUIRED";
    if !asks_back && !is_terminal(view.state()) {
        return Err(unusable(&format!("an answer that was waited for, and the task is {}", view.state())));
    }
    let own = text_digest(&key.texts[send.text]);
    match view.outcome() {
        Some(end) if key.agent() != "approver" && end.state != "TASK_STATE_COMPLETED" => {
            Err(unusable(&format!("the task ended {}", end.state)))
        }
        Some(end) if key.agent() == "echo" && end.text != own => {
            Err(unusable(&format!("task {} echoes another text than was sent", view.task)))
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

/// The task a plain send made.
pub(crate) fn task_of(answer: &Value) -> Result<String, Failure> {
    Ok(View::of(&answer["task"]).map_err(Failure::Unusable)?.task)
}

fn unusable(what: &str) -> Failure {
    Failure::Unusable(what.to_owned())
}
