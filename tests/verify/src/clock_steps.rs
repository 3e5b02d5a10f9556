//! clock_steps: the system clock is set a day ahead and corrected later, while the server runs and across a restart.
//! Time must go on after the correction, no task that is kept for a day may be purged, and work that was queued under
//! the wrong clock must run at once.
//!
//! The clock is that of libfaketime, which reads its offset from a file, so the step happens in the running process;
//! the monotonic clock stays real. Deliberately not here: what the retention time does after minutes, which unit tests of
//! the engine check with a clock of their own.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use testkit::json::{is_terminal, state, task_id};
use tokio::time::sleep;

use super::package;
use super::random::Random;
use super::rpc::{Caller, message};
use super::trial::{ProofResult, Setup, Trial, stop};
use super::writer::{self, Document};
use crate::server::{Launch, Server};

pub(crate) const OPTIONS: &str = "[--tasks N] [--seed S] [--binary PATH]";

/// How far ahead the wrong clock is: more than the retention of a day.
const WRONG: &str = "+25h";
const RIGHT: &str = "+0";
/// How long the server is observed with the wrong clock and after its correction: several rounds of the purger.
const OBSERVED: Duration = Duration::from_secs(3);
/// How long work that is due may take to end.
const RUN_LIMIT: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(50);
/// Length of the date in a status time.
const DATE: usize = "2026-01-01".len();
/// Runs for less than a second.
const DOCUMENT: Document = Document { sections: 3, delay_millis: 200 };
/// Where the packages of Debian and others install the library.
const LIBRARIES: &[&str] = &[
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
    "/usr/lib64/faketime/libfaketimeMT.so.1",
    "/usr/local/lib/faketime/libfaketimeMT.so.1",
];
/// One run at a time, so that tasks queue; a short key retention, so that the purger runs four times a second.
const CONFIG: &str = "[limits]\nconcurrent = 1\n\n[store.retention]\nkeys = \"5s\"\n";

pub(crate) fn run(args: &[String]) -> Result<()> {
    let trial = Trial::parse("clock_steps", "--tasks", 20, args)?;
    trial.run(async |setup| ClockSteps::new(&trial, setup)?.run().await)
}

/// The library, if it is installed.
fn library() -> Option<&'static Path> {
    LIBRARIES.iter().map(Path::new).find(|path| path.exists())
}

/// The clock of the server under test.
struct FakeClock(PathBuf);

impl FakeClock {
    /// Sets the clock to the real time plus an offset such as `+25h`.
    fn set(&self, offset: &str) -> Result<()> {
        // Replaced in one step, so that the server never reads half a line.
        let next = self.0.with_extension("next");
        fs::write(&next, format!("{offset}\n"))?;
        fs::rename(&next, &self.0).context("cannot set the clock")
    }
}

struct ClockSteps<'a> {
    setup: &'a Setup,
    clock: FakeClock,
    launch: Launch,
    random: Random,
    tasks: u64,
    findings: Vec<String>,
}

impl<'a> ClockSteps<'a> {
    fn new(trial: &Trial, setup: &'a Setup) -> Result<Self> {
        package::ensure_installed("faketime", || library().is_some())?;
        let library = library().context("libfaketime is not in a directory where packages install it")?;
        let file = setup.store.with_extension("clock");
        let mut launch = Launch::with_config(&setup.store, CONFIG)?;
        launch.variables = vec![
            ("LD_PRELOAD".into(), library.into()),
            ("FAKETIME_TIMESTAMP_FILE".into(), file.clone().into()),
            ("FAKETIME_NO_CACHE".into(), "1".into()),
            ("FAKETIME_DONT_FAKE_MONOTONIC".into(), "1".into()),
            ("DONT_FAKE_MONOTONIC".into(), "1".into()),
        ];
        let clock = FakeClock(file);
        clock.set(RIGHT)?;
        let random = Random::new(trial.seed);
        Ok(Self { setup, clock, launch, random, tasks: trial.size, findings: Vec::new() })
    }

    async fn run(mut self) -> Result<ProofResult> {
        let server = self.start().await?;
        let mut caller = Caller::new(server.address);
        let mut finished = Vec::new();
        let mut real = String::new();
        for _ in 0..self.tasks {
            let task = self.echo(&mut caller).await?;
            real = stamp(&task)?;
            finished.push(id(&task)?);
        }
        self.clock.set(WRONG)?;
        let wrong = stamp(&self.echo(&mut caller).await?)?;
        ensure!(
            wrong.get(..DATE) > real.get(..DATE),
            "clock_steps proves nothing: the server's clock does not follow libfaketime ({real}, then {wrong})"
        );
        let stamps = Stamps { real, wrong };
        sleep(OBSERVED).await;
        self.check_kept(&mut caller, &finished, "while the clock was ahead").await?;

        let mut queued = self.queue(&mut caller).await?;
        self.clock.set(RIGHT)?;
        let mut ended_after = vec![self.check_ends(&mut caller, &queued, "after the correction").await?];
        self.check_time(&mut caller, &stamps, "after the correction").await?;
        sleep(OBSERVED).await;
        self.check_kept(&mut caller, &finished, "after the correction").await?;

        self.clock.set(WRONG)?;
        stop(server, &mut self.findings).await?;
        let server = self.start().await?;
        let mut caller = Caller::new(server.address);
        sleep(OBSERVED).await;
        self.check_kept(&mut caller, &finished, "after a restart while the clock was ahead").await?;
        let left = self.queue(&mut caller).await?;
        stop(server, &mut self.findings).await?;

        self.clock.set(RIGHT)?;
        let server = self.start().await?;
        let mut caller = Caller::new(server.address);
        ended_after.push(self.check_ends(&mut caller, &left, "after a restart with the right clock").await?);
        self.check_time(&mut caller, &stamps, "after a restart with the right clock").await?;
        self.check_kept(&mut caller, &finished, "after a restart with the right clock").await?;
        stop(server, &mut self.findings).await?;

        queued.extend(left);
        let figures = json!({
            "finished": finished.len(),
            "queued": queued.len(),
            "queued_ended_ms": ended_after.iter().map(Duration::as_millis).collect::<Vec<_>>(),
        });
        Ok(ProofResult { figures, findings: self.findings })
    }

    async fn start(&self) -> Result<Server> {
        Ok(Server::start_with(&self.launch, &self.setup.program, &self.setup.store).await?)
    }

    /// Sends a message to `echo` and returns its finished task.
    async fn echo(&mut self, caller: &mut Caller) -> Result<Value> {
        let call = self.random.uuid();
        let reply = caller.call("echo", "SendMessage", message(call, &format!("echo {call}"), false)).await?;
        Ok(reply["task"].clone())
    }

    /// Begins a document and two that wait for the slot it holds.
    async fn queue(&mut self, caller: &mut Caller) -> Result<Vec<String>> {
        let mut tasks = Vec::new();
        for _ in 0..3 {
            let request = message(self.random.uuid(), &DOCUMENT.text(), true);
            let reply = caller.call(writer::AGENT, "SendMessage", request).await?;
            tasks.push(id(&reply["task"])?);
        }
        Ok(tasks)
    }

    /// No finished task may be gone: all are kept for a day.
    async fn check_kept(&mut self, caller: &mut Caller, finished: &[String], when: &str) -> Result<()> {
        let mut gone = 0;
        for task in finished {
            gone += usize::from(caller.get("echo", task).await?.is_none());
        }
        if gone > 0 {
            self.findings
                .push(format!("purged: {gone} of {} finished tasks were gone {when}", finished.len()));
        }
        Ok(())
    }

    /// A new task must have the time of the right clock.
    async fn check_time(&mut self, caller: &mut Caller, stamps: &Stamps, when: &str) -> Result<()> {
        let now = stamp(&self.echo(caller).await?)?;
        if now < stamps.real || now >= stamps.wrong {
            self.findings.push(format!("wrong time: a task {when} ended at {now}, after {}", stamps.real));
        }
        Ok(())
    }

    /// Queued documents must complete soon; returns how long it took.
    async fn check_ends(&mut self, caller: &mut Caller, queued: &[String], when: &str) -> Result<Duration> {
        let started = Instant::now();
        for id in queued {
            loop {
                let task = caller.get(writer::AGENT, id).await?.unwrap_or_default();
                if is_terminal(state(&task)) {
                    self.findings.extend(DOCUMENT.fault_in(&task).map(|fault| format!("{id} {fault}")));
                    break;
                }
                if started.elapsed() > RUN_LIMIT {
                    let state = state(&task);
                    self.findings.push(format!("queued: {id} was {state} {RUN_LIMIT:?} {when}"));
                    break;
                }
                sleep(POLL).await;
            }
        }
        Ok(started.elapsed())
    }
}

/// Status times of tasks that ended by the right clock and by the wrong one.
struct Stamps {
    real: String,
    wrong: String,
}

/// The status time of a task: RFC 3339 in UTC, so that earlier times are less than later ones.
fn stamp(task: &Value) -> Result<String> {
    let stamp = task["status"]["timestamp"].as_str();
    stamp.map(str::to_owned).with_context(|| format!("the task has no status time: {task}"))
}

fn id(task: &Value) -> Result<String> {
    task_id(task).map_err(anyhow::Error::msg)
}
