//! One phase: starts runs, ends them, and checks what their agents and their logs show.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use engine::{Call, CallResponse, Frame, Resume, Scope, StreamItem, log::Kind};
use protocol::{
    CancelTask, Message, Operation, Part, Reply, Role, SendMessage, SubscribeToTask, TaskId, TaskState,
    dialect::v1::task::state_name,
};
use tokio::time::{sleep, timeout};

use super::super::random::Random;
use super::super::trial::in_parallel;
use super::chatty::{RunReport, STOPPED};
use super::{AGENT, Host};

/// Longer than an agent may take to stop.
const REPORT_LIMIT: Duration = Duration::from_secs(20);

pub(super) struct Phase {
    name: &'static str,
    host: Host,
    /// The reports of the ended runs, by task.
    reports: BTreeMap<TaskId, Option<RunReport>>,
    findings: Vec<String>,
}

impl Phase {
    pub(super) fn new(name: &'static str, host: Host) -> Self {
        Self { name, host, reports: BTreeMap::new(), findings: Vec::new() }
    }

    pub(super) fn host(&self) -> &Host {
        &self.host
    }

    /// Tasks of an earlier phase run again.
    pub(super) fn expect(&mut self, tasks: &[TaskId]) {
        self.reports.extend(tasks.iter().map(|task| (task.clone(), None)));
    }

    /// Starts runs and returns their tasks.
    pub(super) async fn start(&mut self, count: u64, random: &mut Random) -> Result<Vec<TaskId>> {
        let begun = self.host.agent.started();
        let ids: Vec<_> = (0..count).map(|_| random.uuid().to_string()).collect();
        let engine = &self.host.engine;
        let sends = in_parallel(ids.into_iter().map(|id| {
            let message = Message::new(id, Role::User, vec![Part::text("chat")]);
            let send = SendMessage { return_immediately: true, ..SendMessage::new(message) };
            let engine = engine.clone();
            async move { engine.call(Call::new(scope()), Operation::SendMessage(send)).await }
        }));
        let mut tasks = Vec::new();
        for sent in sends.await {
            match sent? {
                CallResponse::Reply(Reply::SentTask(task)) => tasks.push(task.id),
                _ => bail!("{}: a message was not answered with a task", self.name),
            }
        }
        self.expect(&tasks);
        self.until_running(begun + count).await?;
        Ok(tasks)
    }

    /// Waits until so many runs of this engine have begun.
    pub(super) async fn until_running(&self, count: u64) -> Result<()> {
        let running = async {
            while self.host.agent.started() < count {
                sleep(Duration::from_millis(1)).await;
            }
        };
        ensure!(timeout(REPORT_LIMIT, running).await.is_ok(), "{}: runs do not begin", self.name);
        Ok(())
    }

    /// Cancels the tasks at the same time, each at a random moment.
    pub(super) async fn cancel(&mut self, tasks: &[TaskId], random: &mut Random) {
        let engine = &self.host.engine;
        let cancels = tasks.iter().map(|task| {
            let (engine, id) = (engine.clone(), task.clone());
            let delay = Duration::from_micros(random.within(0..=20_000));
            async move {
                sleep(delay).await;
                let cancel = CancelTask { id: id.clone(), metadata: None, tenant: None };
                match engine.call(Call::new(scope()), Operation::CancelTask(cancel)).await {
                    Ok(CallResponse::Reply(Reply::Task(task)))
                        if task.status.state == TaskState::Canceled =>
                    {
                        None
                    }
                    Ok(_) => Some(format!("task {id}: the cancel was answered with another state")),
                    Err(error) => Some(format!("task {id}: the cancel failed: {error}")),
                }
            }
        });
        let failed = in_parallel(cancels).await;
        self.findings.extend(failed.into_iter().flatten());
    }

    /// Receives the reports of `count` runs: each token fired, and each agent could clean up.
    pub(super) async fn check_stopped(&mut self, count: u64) -> Result<()> {
        for _ in 0..count {
            let report = match timeout(REPORT_LIMIT, self.host.reports.recv()).await {
                Ok(Some(report)) => report,
                _ => bail!("{}: a run has not ended within {REPORT_LIMIT:?}", self.name),
            };
            let task = report.task.clone();
            if !report.token_fired {
                self.find(&task, "the token had not fired when the agent's run was ended");
            }
            if !report.cleaned_up {
                self.find(&task, "the agent was dropped before it had cleaned up");
            }
            match self.reports.insert(task.clone(), Some(report)) {
                Some(None) => {}
                Some(Some(_)) => self.find(&task, "the turn ran twice"),
                None => self.find(&task, "an unknown task ran"),
            }
        }
        Ok(())
    }

    /// In a drain no update is rejected, and the last checkpoints are accepted.
    pub(super) fn check_checkpoints(&mut self) {
        self.check_reports("its last updates were rejected", |report| report.saved && !report.was_rejected);
    }

    /// A run that was drained continues from its last checkpoint, in the same attempt.
    pub(super) fn check_continued(&mut self) {
        self.check_reports("it did not continue in its first attempt from its last checkpoint", |report| {
            report.attempt == 1 && report.began_with.as_deref() == Some(STOPPED)
        });
    }

    fn check_reports(&mut self, problem: &str, holds: impl Fn(&RunReport) -> bool) {
        let failed = self.reports.values().flatten().filter(|report| !holds(report));
        let failed: Vec<TaskId> = failed.map(|report| report.task.clone()).collect();
        for task in failed {
            self.find(&task, problem);
        }
    }

    /// Each log has exactly one terminal event, its last one, with this state.
    pub(super) async fn check_logs(&mut self, expected: &str) -> Result<()> {
        for (task, terminal, last) in self.terminal_events().await? {
            if terminal != [expected] {
                self.find(&task, &format!("its terminal events are {terminal:?}"));
            } else if !last {
                self.find(&task, "an event follows the terminal one");
            }
        }
        Ok(())
    }

    /// No task has ended.
    pub(super) async fn check_open(&mut self) -> Result<()> {
        let tasks: Vec<TaskId> = self.reports.keys().cloned().collect();
        for task in tasks {
            let get = protocol::GetTask { id: task.clone(), history_length: Some(0), tenant: None };
            match self.host.engine.call(Call::new(scope()), Operation::GetTask(get)).await? {
                CallResponse::Reply(Reply::Task(read)) if read.status.state == TaskState::Working => {}
                _ => self.find(&task, "it is not working after the drain"),
            }
        }
        Ok(())
    }

    /// The terminal events of each task, and whether the last entry is one.
    async fn terminal_events(&self) -> Result<Vec<(TaskId, Vec<&'static str>, bool)>> {
        let mut events = Vec::new();
        for task in self.reports.keys() {
            let call = Call { resume: Some(Resume::After(0)), ..Call::new(scope()) };
            let subscribe = SubscribeToTask { id: task.clone(), tenant: None };
            let response = self.host.engine.call(call, Operation::SubscribeToTask(subscribe)).await?;
            let CallResponse::Stream(mut stream) = response else { bail!("task {task}: no stream") };
            let (mut terminal, mut last) = (Vec::new(), false);
            while let StreamItem::Frames(frames) = stream.next().await? {
                for frame in &frames {
                    let Frame::Entry { entry, .. } = frame else { continue };
                    last = false;
                    if let Kind::Status(state) = entry.kind()
                        && state.is_terminal()
                    {
                        terminal.push(state_name(state));
                        last = true;
                    }
                }
            }
            events.push((task.clone(), terminal, last));
        }
        Ok(events)
    }

    /// Ends the engine and returns what was found.
    pub(super) async fn close(self) -> Vec<String> {
        self.host.engine.drain(Duration::ZERO).await;
        self.findings
    }

    fn find(&mut self, task: &TaskId, problem: &str) {
        self.findings.push(format!("{}: task {task}: {problem}", self.name));
    }
}

fn scope() -> Scope {
    Scope::anonymous("default", AGENT)
}
