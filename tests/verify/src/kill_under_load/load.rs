//! The load of kill_under_load: clients that send, stream and cancel without pause, and record what they receive.
//!
//! A client that lost its connection waits for the next boot and first finishes what it had begun: it subscribes
//! again to the task it was following and cancels the task it had asked to be held. Deliberately not here: when the
//! server is killed (`kill_under_load.rs`), and whether the responses are right (`checker.rs`).

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{oneshot, watch};
use tokio::time::sleep;
use uuid::Uuid;

use super::history::{Fact, History, Operation};
use crate::random::Random;
use crate::rpc::{
    Caller, Failure, Frames, TASK_NOT_CANCELABLE, TASK_NOT_FOUND, UNSUPPORTED_OPERATION, message,
};
use crate::step_reports::ReportFile;
use crate::view::{View, digest};
use crate::writer::Document;

const POSTPONED_PAUSE: Duration = Duration::from_millis(10);

/// The state of the server as the clients know it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    Up {
        boot: u64,
        address: SocketAddr,
    },
    /// About to be killed, killed, or starting.
    Down,
    /// The clients must stop; there is no further boot for them.
    Over,
}

pub(crate) struct Client {
    random: Random,
    stages: watch::Receiver<Stage>,
    history: Arc<History>,
    /// Where the steps of `journal-writer` are reported; without it the agent is not called.
    reports: Option<Arc<ReportFile>>,
    unfinished: Option<Unfinished>,
}

/// An operation that a client must finish, also after a restart.
#[derive(Clone)]
enum Unfinished {
    Held { task: String },
    Followed { agent: &'static str, task: String },
}

impl Client {
    pub(crate) fn new(
        random: Random,
        stages: watch::Receiver<Stage>,
        history: Arc<History>,
        reports: Option<Arc<ReportFile>>,
    ) -> Self {
        Self { random, stages, history, reports, unfinished: None }
    }

    /// Runs operations in every boot until the campaign ends.
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

    /// Runs one operation, or the rest of one. Returns whether the connection can be used further.
    async fn step(&mut self, caller: &mut Caller, up: Stage) -> bool {
        let done = match self.unfinished.clone() {
            Some(unfinished) => self.resume(caller, unfinished).await,
            None => self.begin(caller).await,
        };
        match done {
            Ok(()) => self.unfinished = None,
            Err(Failure::Cut(_)) => {
                // The stage is changed before the kill, so the server itself closed the connection if the stage is
                // unchanged.
                let killed = *self.stages.borrow() != up;
                self.history.record(if killed { Fact::Cut } else { Fact::CutByLivingServer });
                return false;
            }
            Err(failure) if failure.is_retryable() => {
                sleep(POSTPONED_PAUSE).await;
            }
            Err(failure) => {
                self.unfinished = None;
                self.history.record(Fact::Refused { what: failure.to_string() });
                return *self.stages.borrow() == up;
            }
        }
        true
    }

    async fn begin(&mut self, caller: &mut Caller) -> Result<(), Failure> {
        let operation = match self.random.within(0..=99) {
            0..=34 => Operation::Send,
            35..=59 => Operation::SendImmediate,
            60..=69 => Operation::Stream,
            70..=77 => Operation::Write,
            78..=84 if self.reports.is_some() => Operation::Journal,
            78..=84 => Operation::Write,
            _ => Operation::Cancel,
        };
        let call = self.random.uuid();
        let document = Document { sections: self.random.within(3..=8), delay_millis: 20 };
        let text = match operation {
            Operation::Write => document.text(),
            Operation::Journal => {
                self.reports.as_ref().map(|reports| reports.request(document)).unwrap_or_default()
            }
            Operation::Cancel => format!("hold {call}"),
            Operation::Send | Operation::SendImmediate | Operation::Stream => format!("echo {call}"),
        };
        self.history.record(Fact::Called { call, operation, text: text.clone() });
        match operation {
            Operation::Send => self.send(caller, call, &text).await,
            Operation::SendImmediate => self.send_immediate(caller, call, &text).await.map(drop),
            Operation::Stream => self.stream(caller, operation.agent(), call, &text).await,
            Operation::Write | Operation::Journal if self.random.within(0..=1) == 0 => {
                self.stream(caller, operation.agent(), call, &text).await
            }
            Operation::Write | Operation::Journal => {
                self.stream_watched(caller, operation.agent(), call, &text).await
            }
            Operation::Cancel => {
                let task = self.send_immediate(caller, call, &text).await?;
                self.unfinished = Some(Unfinished::Held { task: task.clone() });
                sleep(Duration::from_millis(self.random.within(0..=20))).await;
                cancel(caller, &self.history, &task).await
            }
        }
    }

    async fn resume(&mut self, caller: &mut Caller, unfinished: Unfinished) -> Result<(), Failure> {
        match unfinished {
            Unfinished::Held { task } => cancel(caller, &self.history, &task).await,
            Unfinished::Followed { agent, task } => {
                subscribe(caller, &self.history, self.random.uuid(), agent, &task).await
            }
        }
    }

    async fn send(&mut self, caller: &mut Caller, call: Uuid, text: &str) -> Result<(), Failure> {
        let response = caller.call("echo", "SendMessage", message(call, text, false)).await?;
        let view = self.accept(call, &response)?;
        end(&self.history, &view)
    }

    async fn send_immediate(
        &mut self,
        caller: &mut Caller,
        call: Uuid,
        text: &str,
    ) -> Result<String, Failure> {
        let response = caller.call("echo", "SendMessage", message(call, text, true)).await?;
        Ok(self.accept(call, &response)?.task)
    }

    fn accept(&self, call: Uuid, response: &Value) -> Result<View, Failure> {
        let view = View::of(&response["task"]).map_err(Failure::Unusable)?;
        self.history.record(Fact::Accepted { call, task: view.task.clone() });
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
        let (history, unfinished) = (&self.history, &mut self.unfinished);
        follow(&mut frames, history, self.random.uuid(), |task| {
            history.record(Fact::Accepted { call, task: task.to_owned() });
            *unfinished = Some(Unfinished::Followed { agent, task: task.to_owned() });
        })
        .await
    }

    /// A stream with a second subscriber, so that the same events are read twice.
    async fn stream_watched(
        &mut self,
        caller: &mut Caller,
        agent: &'static str,
        call: Uuid,
        text: &str,
    ) -> Result<(), Failure> {
        let mut frames = caller.stream(agent, "SendStreamingMessage", message(call, text, false)).await?;
        let (task_sender, task_receiver) = oneshot::channel();
        let (first, second) = (self.random.uuid(), self.random.uuid());
        let (history, unfinished) = (&self.history, &mut self.unfinished);
        let sender = follow(&mut frames, history, first, |task| {
            history.record(Fact::Accepted { call, task: task.to_owned() });
            *unfinished = Some(Unfinished::Followed { agent, task: task.to_owned() });
            // The second subscriber may have given up; the sender continues without it.
            let _ = task_sender.send(task.to_owned());
        });
        let watcher = async {
            match task_receiver.await {
                Ok(task) => subscribe(caller, history, second, agent, &task).await,
                Err(_) => Ok(()),
            }
        };
        let (sender, watcher) = tokio::join!(sender, watcher);
        sender.and(watcher)
    }
}

/// Cancels a held task. If it had already ended, by an earlier cancel whose response was lost or as poisoned, its
/// end is read instead.
pub(crate) async fn cancel(caller: &mut Caller, history: &History, task: &str) -> Result<(), Failure> {
    match caller.call("echo", "CancelTask", json!({"id": task})).await {
        Ok(canceled) => end(history, &View::of(&canceled).map_err(Failure::Unusable)?),
        Err(Failure::Error { code: TASK_NOT_CANCELABLE, .. }) => {
            read_end(caller, history, "echo", task).await
        }
        Err(failure) => missing(history, task, failure),
    }
}

async fn subscribe(
    caller: &mut Caller,
    history: &History,
    stream: Uuid,
    agent: &str,
    task: &str,
) -> Result<(), Failure> {
    history.record(Fact::Subscribing { stream, task: task.to_owned() });
    match caller.stream(agent, "SubscribeToTask", json!({"id": task})).await {
        Ok(mut frames) => follow(&mut frames, history, stream, |_| {}).await,
        Err(Failure::Error { code: UNSUPPORTED_OPERATION, .. }) => {
            read_end(caller, history, agent, task).await
        }
        Err(failure) => missing(history, task, failure),
    }
}

/// Records a stream from its first frame to its end; `opened` is called with the task id once it is known.
async fn follow(
    frames: &mut Frames,
    history: &History,
    stream: Uuid,
    opened: impl FnOnce(&str),
) -> Result<(), Failure> {
    let first = frames.first().await?;
    let mut view = View::of(&first.result["task"]).map_err(Failure::Unusable)?;
    opened(&view.task);
    history.record(Fact::Opened { stream, task: view.task.clone(), seq: first.seq });
    while let Some(frame) = frames.next().await? {
        view.apply(&frame.result).map_err(Failure::Unusable)?;
        // Only a status ends a task; an artifact after the end is left to the checker.
        let ends = frame.result.get("statusUpdate").and_then(|_| view.outcome());
        history.record(Fact::Followed {
            stream,
            task: view.task.clone(),
            seq: frame.seq,
            digest: digest(&frame.result),
            ends: ends.is_some(),
        });
        if let Some(outcome) = ends {
            history.record(Fact::Ended { task: view.task.clone(), outcome });
        }
    }
    if view.outcome().is_none() {
        history.record(Fact::ClosedEarly { task: view.task });
    }
    Ok(())
}

async fn read_end(caller: &mut Caller, history: &History, agent: &str, task: &str) -> Result<(), Failure> {
    match caller.call(agent, "GetTask", json!({"id": task})).await {
        Ok(found) => end(history, &View::of(&found).map_err(Failure::Unusable)?),
        Err(failure) => missing(history, task, failure),
    }
}

fn end(history: &History, view: &View) -> Result<(), Failure> {
    let outcome = view.outcome().ok_or_else(|| {
        Failure::Unusable(format!("task {} is {} and should have ended", view.task, view.state()))
    })?;
    history.record(Fact::Ended { task: view.task.clone(), outcome });
    Ok(())
}

/// An unknown task that was returned before is recorded as a fact; any other failure is returned.
fn missing(history: &History, task: &str, failure: Failure) -> Result<(), Failure> {
    match failure {
        Failure::Error { code: TASK_NOT_FOUND, .. } => {
            history.record(Fact::Missing { task: task.to_owned() });
            Ok(())
        }
        failure => Err(failure),
    }
}
