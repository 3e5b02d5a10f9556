//! The load of T-R1: clients that send, stream and cancel without pause, and write down what they are told.
//!
//! A client that was cut off waits for the next boot and first looks after what it had begun: it subscribes
//! again to a task it was following and cancels the task it had asked to be held. Deliberately not here: when
//! the server dies (`kill.rs`), and whether what was told is right (`judge.rs`).

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::time::sleep;
use uuid::Uuid;

use super::ledger::{Fact, Ledger, Operation};
use crate::verify::random::Random;
use crate::verify::rpc::{Caller, Failure, Frames};
use crate::verify::rpc::{TASK_NOT_CANCELABLE, TASK_NOT_FOUND, UNSUPPORTED_OPERATION};
use crate::verify::view::{View, digest};

const POSTPONED_PAUSE: Duration = Duration::from_millis(10);

/// What the clients know of the server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Up {
        boot: u64,
        address: SocketAddr,
    },
    /// About to be killed, dead, or starting.
    Down,
    /// There will be no further boot for the clients.
    Over,
}

pub(crate) struct Client {
    random: Random,
    stages: watch::Receiver<Stage>,
    ledger: Arc<Ledger>,
    unfinished: Option<Unfinished>,
}

/// What a client has begun and must see through, also after a restart.
#[derive(Clone)]
enum Unfinished {
    Held { task: String },
    Followed { agent: &'static str, task: String },
}

impl Client {
    pub(crate) fn new(random: Random, stages: watch::Receiver<Stage>, ledger: Arc<Ledger>) -> Self {
        Self { random, stages, ledger, unfinished: None }
    }

    /// Works through every boot until the campaign is over.
    pub(crate) async fn run(mut self) {
        let mut last_boot = 0;
        while let Some((boot, address)) = self.next_boot(last_boot).await {
            let up = Stage::Up { boot, address };
            let mut caller = Caller::new(address);
            while self.step(&mut caller, up).await {}
            last_boot = boot;
        }
    }

    async fn next_boot(&mut self, last: u64) -> Option<(u64, SocketAddr)> {
        let is_news = |stage: &Stage| match stage {
            Stage::Up { boot, .. } => *boot > last,
            Stage::Down => false,
            Stage::Over => true,
        };
        match *self.stages.wait_for(is_news).await.ok()? {
            Stage::Up { boot, address } => Some((boot, address)),
            Stage::Down | Stage::Over => None,
        }
    }

    /// One operation, or the rest of one. Says whether the connection still stands.
    async fn step(&mut self, caller: &mut Caller, up: Stage) -> bool {
        let done = match self.unfinished.clone() {
            Some(unfinished) => self.resume(caller, unfinished).await,
            None => self.begin(caller).await,
        };
        match done {
            Ok(()) => self.unfinished = None,
            Err(Failure::Cut(_)) => {
                // The stage is changed before the kill, so a cut under an unchanged stage is the server's own.
                let killed = *self.stages.borrow() != up;
                self.ledger.record(if killed { Fact::Cut } else { Fact::CutByLivingServer });
                return false;
            }
            Err(failure) if failure.is_passing() => {
                self.ledger.record(Fact::Postponed);
                sleep(POSTPONED_PAUSE).await;
            }
            Err(failure) => {
                self.unfinished = None;
                self.ledger.record(Fact::Refused { what: failure.to_string() });
                return *self.stages.borrow() == up;
            }
        }
        true
    }

    async fn begin(&mut self, caller: &mut Caller) -> Result<(), Failure> {
        let operation = match self.random.within(0..=99) {
            0..=34 => Operation::Send,
            35..=59 => Operation::SendAtOnce,
            60..=69 => Operation::Stream,
            70..=84 => Operation::Write,
            _ => Operation::Cancel,
        };
        let call = self.random.uuid();
        let text = match operation {
            Operation::Write => format!("sections={} delay=20ms", self.random.within(3..=8)),
            Operation::Cancel => format!("hold {call}"),
            Operation::Send | Operation::SendAtOnce | Operation::Stream => format!("echo {call}"),
        };
        self.ledger.record(Fact::Called { call, operation, text: text.clone() });
        match operation {
            Operation::Send => self.send(caller, call, &text).await,
            Operation::SendAtOnce => self.send_at_once(caller, call, &text).await.map(drop),
            Operation::Stream => self.stream(caller, operation.agent(), call, &text).await,
            Operation::Write if self.random.within(0..=1) == 0 => {
                self.stream(caller, operation.agent(), call, &text).await
            }
            Operation::Write => self.stream_watched(caller, operation.agent(), call, &text).await,
            Operation::Cancel => {
                let task = self.send_at_once(caller, call, &text).await?;
                self.unfinished = Some(Unfinished::Held { task: task.clone() });
                sleep(Duration::from_millis(self.random.within(0..=20))).await;
                cancel(caller, &self.ledger, &task).await
            }
        }
    }

    async fn resume(&mut self, caller: &mut Caller, unfinished: Unfinished) -> Result<(), Failure> {
        match unfinished {
            Unfinished::Held { task } => cancel(caller, &self.ledger, &task).await,
            Unfinished::Followed { agent, task } => {
                subscribe(caller, &self.ledger, self.random.uuid(), agent, &task).await
            }
        }
    }

    async fn send(&mut self, caller: &mut Caller, call: Uuid, text: &str) -> Result<(), Failure> {
        let answer = caller.call("echo", "SendMessage", message(call, text, false)).await?;
        let view = self.accept(call, &answer)?;
        end(&self.ledger, &view)
    }

    async fn send_at_once(&mut self, caller: &mut Caller, call: Uuid, text: &str) -> Result<String, Failure> {
        let answer = caller.call("echo", "SendMessage", message(call, text, true)).await?;
        Ok(self.accept(call, &answer)?.task)
    }

    fn accept(&self, call: Uuid, answer: &Value) -> Result<View, Failure> {
        let view = View::of(&answer["task"]).map_err(Failure::Unusable)?;
        self.ledger.record(Fact::Accepted { call, task: view.task.clone() });
        Ok(view)
    }

    async fn stream(
        &mut self,
        caller: &mut Caller,
        agent: &'static str,
        call: Uuid,
        text: &str,
    ) -> Result<(), Failure> {
        let mut frames = caller.stream(agent, "SendStreamingMessage", message(call, text, false)).await?;
        let (ledger, unfinished) = (&self.ledger, &mut self.unfinished);
        follow(&mut frames, ledger, self.random.uuid(), |task| {
            ledger.record(Fact::Accepted { call, task: task.to_owned() });
            *unfinished = Some(Unfinished::Followed { agent, task: task.to_owned() });
        })
        .await
    }

    /// A stream with a second reader, so that the same numbers are read twice.
    async fn stream_watched(
        &mut self,
        caller: &mut Caller,
        agent: &'static str,
        call: Uuid,
        text: &str,
    ) -> Result<(), Failure> {
        let mut frames = caller.stream(agent, "SendStreamingMessage", message(call, text, false)).await?;
        let (tell, told) = oneshot::channel();
        let (first, second) = (self.random.uuid(), self.random.uuid());
        let (ledger, unfinished) = (&self.ledger, &mut self.unfinished);
        let sender = follow(&mut frames, ledger, first, |task| {
            ledger.record(Fact::Accepted { call, task: task.to_owned() });
            *unfinished = Some(Unfinished::Followed { agent, task: task.to_owned() });
            // The watcher may have given up; the sender goes on without it.
            let _ = tell.send(task.to_owned());
        });
        let watcher = async {
            match told.await {
                Ok(task) => subscribe(caller, ledger, second, agent, &task).await,
                Err(_) => Ok(()),
            }
        };
        let (sender, watcher) = tokio::join!(sender, watcher);
        sender.and(watcher)
    }
}

/// Cancels a held task. When it had ended before, by an earlier cancel whose answer was cut off or because it
/// was given up, what it ended as is read instead.
pub(crate) async fn cancel(caller: &mut Caller, ledger: &Ledger, task: &str) -> Result<(), Failure> {
    match caller.call("echo", "CancelTask", json!({"id": task})).await {
        Ok(canceled) => end(ledger, &View::of(&canceled).map_err(Failure::Unusable)?),
        Err(Failure::Error { code: TASK_NOT_CANCELABLE, .. }) => read_end(caller, ledger, "echo", task).await,
        Err(failure) => missing(ledger, task, failure),
    }
}

async fn subscribe(
    caller: &mut Caller,
    ledger: &Ledger,
    stream: Uuid,
    agent: &str,
    task: &str,
) -> Result<(), Failure> {
    ledger.record(Fact::Subscribing { stream, task: task.to_owned() });
    match caller.stream(agent, "SubscribeToTask", json!({"id": task})).await {
        Ok(mut frames) => follow(&mut frames, ledger, stream, |_| {}).await,
        Err(Failure::Error { code: UNSUPPORTED_OPERATION, .. }) => {
            read_end(caller, ledger, agent, task).await
        }
        Err(failure) => missing(ledger, task, failure),
    }
}

/// Writes down a stream from its first frame to its end; `opened` is told the task once it is known.
async fn follow(
    frames: &mut Frames,
    ledger: &Ledger,
    stream: Uuid,
    opened: impl FnOnce(&str),
) -> Result<(), Failure> {
    let Some(first) = frames.next().await? else {
        return Err(Failure::Unusable("a stream without a single frame".to_owned()));
    };
    let mut view = View::of(&first.result["task"]).map_err(Failure::Unusable)?;
    opened(&view.task);
    ledger.record(Fact::Opened { stream, task: view.task.clone(), seq: first.seq });
    while let Some(frame) = frames.next().await? {
        view.apply(&frame.result).map_err(Failure::Unusable)?;
        // Only a status ends a task; an artifact that follows the end is for the judge to see.
        let ends = frame.result.get("statusUpdate").and_then(|_| view.outcome());
        ledger.record(Fact::Followed {
            stream,
            task: view.task.clone(),
            seq: frame.seq,
            digest: digest(&frame.result),
            ends: ends.is_some(),
        });
        if let Some(outcome) = ends {
            ledger.record(Fact::Ended { task: view.task.clone(), outcome });
        }
    }
    if view.outcome().is_none() {
        ledger.record(Fact::ClosedEarly { task: view.task });
    }
    Ok(())
}

async fn read_end(caller: &mut Caller, ledger: &Ledger, agent: &str, task: &str) -> Result<(), Failure> {
    match caller.call(agent, "GetTask", json!({"id": task})).await {
        Ok(found) => end(ledger, &View::of(&found).map_err(Failure::Unusable)?),
        Err(failure) => missing(ledger, task, failure),
    }
}

fn end(ledger: &Ledger, view: &View) -> Result<(), Failure> {
    let outcome = view.outcome().ok_or_else(|| {
        Failure::Unusable(format!("task {} is {} where it must have ended", view.task, view.state()))
    })?;
    ledger.record(Fact::Ended { task: view.task.clone(), outcome });
    Ok(())
}

/// A task that was given out and is unknown is a fact; any other failure stays one.
fn missing(ledger: &Ledger, task: &str, failure: Failure) -> Result<(), Failure> {
    match failure {
        Failure::Error { code: TASK_NOT_FOUND, .. } => {
            ledger.record(Fact::Missing { task: task.to_owned() });
            Ok(())
        }
        failure => Err(failure),
    }
}

pub(crate) fn message(call: Uuid, text: &str, at_once: bool) -> Value {
    json!({
        "message": {"messageId": call.to_string(), "role": "ROLE_USER", "parts": [{"text": text}]},
        "configuration": {"returnImmediately": at_once}
    })
}
