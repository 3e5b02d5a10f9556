//! The reader of one task in stream_resume: creates it, follows it, cuts its own stream a few times and resumes.
//!
//! Deliberately not here: what the frames should be (`track.rs`), and the requests made once the task has ended
//! (`ended.rs`).

use std::time::Duration;

use serde_json::{Value, json};
use testkit::json::{is_terminal, state, status_text};
use tokio::sync::watch;
use tokio::time::sleep;

use super::ended;
use super::track::Track;
use crate::kill_under_load::load::Stage;
use crate::random::Random;
use crate::rpc::{Caller, Failure, Frame, Frames, UNSUPPORTED_OPERATION, message};
use crate::view::View;
use crate::writer::{AGENT, Document};

const POSTPONED_PAUSE: Duration = Duration::from_millis(10);
const POLL: Duration = Duration::from_millis(50);
/// A task may fail as poisoned at its third process crash and not before.
const CRASHES_TO_FAIL: u64 = 3;
/// Events between two cuts: up to ten cuts fit into one task.
const EVENTS_BETWEEN_CUTS: std::ops::RangeInclusive<u64> = 0..=8;

pub(crate) struct Reader {
    document: Document,
    random: Random,
    stages: watch::Receiver<Stage>,
    /// How many more times the reader cuts its stream.
    cuts_left: u64,
    /// The boot in which the task was created, and the last one that was called.
    first_boot: u64,
    last_boot: u64,
    followed: Followed,
}

/// The results of a reader.
#[derive(Default)]
pub(crate) struct Followed {
    pub(crate) cuts: u64,
    pub(crate) cuts_by_kill: u64,
    /// Streams resumed after the task had ended.
    pub(crate) resumed_finished: u64,
    pub(crate) gaps_flagged: u64,
    pub(crate) findings: Vec<String>,
}

/// A stream and the boot in which it was opened.
struct OpenStream {
    frames: Frames,
    up: Stage,
}

/// How long the reader waits before it resumes.
enum Pause {
    None,
    Short,
    UntilFinished,
}

impl Reader {
    pub(crate) fn new(document: Document, mut random: Random, stages: watch::Receiver<Stage>) -> Self {
        let cuts_left = random.within(1..=10);
        Self {
            document,
            random,
            stages,
            cuts_left,
            first_boot: 0,
            last_boot: 0,
            followed: Followed::default(),
        }
    }

    pub(crate) async fn run(mut self) -> Followed {
        if let Err(what) = self.follow_task().await {
            self.followed.findings.push(what);
        }
        self.followed
    }

    async fn follow_task(&mut self) -> Result<(), String> {
        let (mut track, mut stream) = self.begin().await?;
        loop {
            self.read(&mut track, stream).await?;
            if track.outcome().is_some() {
                break;
            }
            self.wait_before_resuming(&track).await?;
            stream = match self.resume(&mut track).await? {
                Some(stream) => stream,
                None => break,
            };
        }
        let (checks, found) = loop {
            let (up, mut caller) = self.next_up().await?;
            match ended::check_ended(&mut caller, &mut track).await {
                Ok(answered) => break answered,
                Err(failure) => self.retry_or_fail(up, failure).await?,
            }
        };
        self.followed.gaps_flagged += checks.gaps_flagged;
        track.findings.extend(checks.findings);
        self.check_end(&mut track, &found);
        self.followed.findings.append(&mut track.findings);
        Ok(())
    }

    /// Creates the task. If the first frame is not received, the same message is sent again.
    async fn begin(&mut self) -> Result<(Track, OpenStream), String> {
        let params = message(self.random.uuid(), &self.document.text(), false);
        loop {
            let (up, mut caller) = self.next_up().await?;
            match open(&mut caller, &[], "SendStreamingMessage", params.clone()).await {
                Ok((frames, first)) => {
                    self.first_boot = self.last_boot;
                    return Ok((Track::begin(&first)?, OpenStream { frames, up }));
                }
                Err(failure) => self.retry_or_fail(up, failure).await?,
            }
        }
    }

    /// Reads the stream to its end, to a cut by the reader, or until the server is killed.
    async fn read(&mut self, track: &mut Track, stream: OpenStream) -> Result<(), String> {
        let OpenStream { mut frames, up } = stream;
        let mut left = match self.cuts_left {
            0 => u64::MAX,
            _ => self.random.within(EVENTS_BETWEEN_CUTS),
        };
        loop {
            if left == 0 && !track.stream_has_ended() {
                self.cuts_left -= 1;
                self.followed.cuts += 1;
                return Ok(());
            }
            match frames.next().await {
                Ok(Some(frame)) => track.follow(&frame),
                Ok(None) => {
                    track.close();
                    return Ok(());
                }
                Err(Failure::Cut(_)) => {
                    self.followed.cuts_by_kill += 1;
                    if *self.stages.borrow() == up {
                        track.add_finding("refused", "a running server closed the stream");
                    }
                    return Ok(());
                }
                Err(failure) => return Err(format!("refused: task {}: {failure}", track.task)),
            }
            left = left.saturating_sub(1);
        }
    }

    async fn wait_before_resuming(&mut self, track: &Track) -> Result<(), String> {
        let pause = match self.random.within(0..=99) {
            0..=49 => Pause::None,
            50..=94 => Pause::Short,
            _ => Pause::UntilFinished,
        };
        match pause {
            Pause::None => Ok(()),
            Pause::Short => {
                sleep(Duration::from_millis(self.random.within(1..=120))).await;
                Ok(())
            }
            Pause::UntilFinished => {
                while !self.has_finished(track).await? {
                    sleep(POLL).await;
                }
                self.followed.resumed_finished += 1;
                Ok(())
            }
        }
    }

    async fn has_finished(&mut self, track: &Track) -> Result<bool, String> {
        loop {
            let (up, mut caller) = self.next_up().await?;
            match caller.call(AGENT, "GetTask", json!({"id": track.task})).await {
                Ok(task) => return Ok(is_terminal(state(&task))),
                Err(failure) => self.retry_or_fail(up, failure).await?,
            }
        }
    }

    /// Resumes the stream where it was cut or, sometimes, from an earlier event; sometimes after a resumption from
    /// a position that does not exist. `None` when it is refused.
    async fn resume(&mut self, track: &mut Track) -> Result<Option<OpenStream>, String> {
        if self.random.within(0..=9) == 0 {
            self.resume_beyond_log(track).await?;
        }
        let from = match self.random.within(0..=3) {
            0 => self.random.within(0..=track.newest()),
            _ => track.newest(),
        };
        let number = from.to_string();
        loop {
            let (up, mut caller) = self.next_up().await?;
            let (headers, params) = ([("Last-Event-ID", number.as_str())], json!({"id": track.task}));
            match open(&mut caller, &headers, "SubscribeToTask", params).await {
                Ok((frames, first)) => {
                    track.resume(from, &first);
                    return Ok(Some(OpenStream { frames, up }));
                }
                Err(failure @ Failure::Error { code: UNSUPPORTED_OPERATION, .. }) => {
                    track.add_finding(
                        "missing",
                        &format!("resumed from {from}, before the end of the log: {failure}"),
                    );
                    return Ok(None);
                }
                Err(failure) => self.retry_or_fail(up, failure).await?,
            }
        }
    }

    async fn resume_beyond_log(&mut self, track: &mut Track) -> Result<(), String> {
        loop {
            let (up, mut caller) = self.next_up().await?;
            match ended::resume_beyond_log(&mut caller, &track.task, track.newest()).await {
                Ok((checks, _)) => {
                    self.followed.gaps_flagged += checks.gaps_flagged;
                    track.findings.extend(checks.findings);
                    return Ok(());
                }
                Err(failure) => self.retry_or_fail(up, failure).await?,
            }
        }
    }

    /// Compares the end as streamed with the task as read, and with the document that was requested.
    fn check_end(&mut self, track: &mut Track, found: &Value) {
        let read = View::of(found).ok().and_then(|view| view.outcome());
        if track.outcome() != read {
            track.add_finding("wrong", &format!("streamed as {:?}, read as {read:?}", track.outcome()));
        }
        let crashes = self.last_boot - self.first_boot;
        let may_be_poisoned = crashes >= CRASHES_TO_FAIL && status_text(found).contains("poisoned");
        if let Some(fault) = self.document.fault_in(found).filter(|_| !may_be_poisoned) {
            track.add_finding("wrong", &fault);
        }
    }

    /// Waits until the server is up and returns a client for it.
    async fn next_up(&mut self) -> Result<(Stage, Caller), String> {
        let stage = self.stages.wait_for(|stage| matches!(stage, Stage::Up { .. })).await;
        match *stage.map_err(|_| "the campaign ended before its readers".to_owned())? {
            up @ Stage::Up { boot, address } => {
                self.last_boot = boot;
                Ok((up, Caller::new(address)))
            }
            Stage::Down | Stage::Over => Err("the campaign is over".to_owned()),
        }
    }

    /// Returns `Ok` if the call may be retried: the server was killed, or is temporarily unavailable.
    async fn retry_or_fail(&self, up: Stage, failure: Failure) -> Result<(), String> {
        match failure {
            Failure::Cut(_) if *self.stages.borrow() != up => Ok(()),
            failure if failure.is_retryable() => {
                sleep(POSTPONED_PAUSE).await;
                Ok(())
            }
            failure => Err(format!("refused: {failure}")),
        }
    }
}

/// Opens a stream and reads its first frame.
async fn open(
    caller: &mut Caller,
    headers: &[(&str, &str)],
    method: &str,
    params: Value,
) -> Result<(Frames, Frame), Failure> {
    let mut frames = caller.stream_with(headers, AGENT, method, params).await?;
    let first = frames.first().await?;
    Ok((frames, first))
}
