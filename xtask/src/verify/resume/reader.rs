//! The reader of one task in T-R11: makes it, follows it, cuts its own stream a few times and resumes.
//!
//! Deliberately not here: what the frames ought to be (`track.rs`) and what is asked once the task has ended
//! (`ended.rs`).

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::sleep;

use super::ended;
use super::track::Track;
use crate::verify::kill::load::{Stage, message};
use crate::verify::random::Random;
use crate::verify::rpc::{Caller, Failure, Frame, Frames, UNSUPPORTED_OPERATION};
use crate::verify::view::is_terminal;
use crate::verify::writer::{AGENT, Piece, status_text};

const POSTPONED_PAUSE: Duration = Duration::from_millis(10);
const LOOK_PAUSE: Duration = Duration::from_millis(50);
/// A task may be given up as poisoned at its third process death and not before.
const DEATHS_TO_FAIL: u64 = 3;
/// Between two cuts, in events: ten cuts fit into one task.
const EVENTS_BETWEEN_CUTS: std::ops::RangeInclusive<u64> = 0..=8;

pub(crate) struct Reader {
    piece: Piece,
    random: Random,
    stages: watch::Receiver<Stage>,
    /// How often the reader still cuts its stream.
    cuts_left: u64,
    /// The boot the task was made in, and the last one that was called.
    first_boot: u64,
    last_boot: u64,
    followed: Followed,
}

/// What a reader has seen.
#[derive(Default)]
pub(crate) struct Followed {
    pub(crate) events: u64,
    pub(crate) cuts: u64,
    pub(crate) cuts_by_kill: u64,
    pub(crate) resumed: u64,
    /// Resumed although the task had ended.
    pub(crate) resumed_finished: u64,
    pub(crate) gaps_flagged: u64,
    pub(crate) given_up: bool,
    pub(crate) findings: Vec<String>,
}

/// A stream and the boot it was opened in.
struct Opened {
    frames: Frames,
    up: Stage,
}

/// Where and when the reader takes a stream up again.
enum Pause {
    None,
    Short,
    UntilFinished,
}

impl Reader {
    pub(crate) fn new(piece: Piece, mut random: Random, stages: watch::Receiver<Stage>) -> Self {
        let cuts_left = random.within(1..=10);
        Self { piece, random, stages, cuts_left, first_boot: 0, last_boot: 0, followed: Followed::default() }
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
        let (asked, found) = loop {
            let (up, mut caller) = self.next_up().await?;
            match ended::ask(&mut caller, &mut track).await {
                Ok(answered) => break answered,
                Err(failure) => self.forgive(up, failure).await?,
            }
        };
        self.followed.gaps_flagged += asked.gaps_flagged;
        track.findings.extend(asked.findings);
        self.judge_end(&mut track, &found);
        self.followed.events = track.events();
        self.followed.findings.append(&mut track.findings);
        Ok(())
    }

    /// Makes the task. When the first frame does not come through, the same message is sent again.
    async fn begin(&mut self) -> Result<(Track, Opened), String> {
        let params = message(self.random.uuid(), &self.piece.text(), false);
        loop {
            let (up, mut caller) = self.next_up().await?;
            match open(&mut caller, &[], "SendStreamingMessage", params.clone()).await {
                Ok((frames, first)) => {
                    self.first_boot = self.last_boot;
                    return Ok((Track::begin(&first)?, Opened { frames, up }));
                }
                Err(failure) => self.forgive(up, failure).await?,
            }
        }
    }

    /// Follows the stream to its end, to a cut of its own, or to the server's death.
    async fn read(&mut self, track: &mut Track, stream: Opened) -> Result<(), String> {
        let Opened { mut frames, up } = stream;
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
                        track.find("refused", "a living server cut the stream");
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
                    sleep(LOOK_PAUSE).await;
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
                Ok(task) => return Ok(is_terminal(task["status"]["state"].as_str().unwrap_or_default())),
                Err(failure) => self.forgive(up, failure).await?,
            }
        }
    }

    /// Takes the stream up again: where it was cut or, now and then, further back; sometimes after having asked
    /// for what is not there. Nothing when it is refused.
    async fn resume(&mut self, track: &mut Track) -> Result<Option<Opened>, String> {
        if self.random.within(0..=9) == 0 {
            self.ask_beyond(track).await?;
        }
        let from = match self.random.within(0..=3) {
            0 => self.random.within(0..=track.newest()),
            _ => track.newest(),
        };
        self.followed.resumed += 1;
        let number = from.to_string();
        loop {
            let (up, mut caller) = self.next_up().await?;
            let (headers, params) = ([("Last-Event-ID", number.as_str())], json!({"id": track.task}));
            match open(&mut caller, &headers, "SubscribeToTask", params).await {
                Ok((frames, first)) => {
                    track.resume(from, &first);
                    return Ok(Some(Opened { frames, up }));
                }
                Err(failure @ Failure::Error { code: UNSUPPORTED_OPERATION, .. }) => {
                    track.find("missing", &format!("resumed from {from}, before the end: {failure}"));
                    return Ok(None);
                }
                Err(failure) => self.forgive(up, failure).await?,
            }
        }
    }

    async fn ask_beyond(&mut self, track: &mut Track) -> Result<(), String> {
        loop {
            let (up, mut caller) = self.next_up().await?;
            match ended::ask_beyond(&mut caller, &track.task, track.newest()).await {
                Ok((asked, _)) => {
                    self.followed.gaps_flagged += asked.gaps_flagged;
                    track.findings.extend(asked.findings);
                    return Ok(());
                }
                Err(failure) => self.forgive(up, failure).await?,
            }
        }
    }

    /// Compares the end as shown with the task as read, and with what was asked for.
    fn judge_end(&mut self, track: &mut Track, found: &Value) {
        let read = crate::verify::view::View::of(found).ok().and_then(|view| view.outcome());
        if track.outcome() != read {
            track.find("wrong", &format!("shown as {:?}, read as {read:?}", track.outcome()));
        }
        let deaths = self.last_boot - self.first_boot;
        if deaths >= DEATHS_TO_FAIL && status_text(found).contains("poisoned") {
            self.followed.given_up = true;
        } else if let Some(fault) = self.piece.fault_in(found) {
            track.find("wrong", &fault);
        }
    }

    /// Waits until the server is up, and whom to call then.
    async fn next_up(&mut self) -> Result<(Stage, Caller), String> {
        let stage = self.stages.wait_for(|stage| matches!(stage, Stage::Up { .. })).await;
        match *stage.map_err(|_| "the campaign ended under its readers".to_owned())? {
            up @ Stage::Up { boot, address } => {
                self.last_boot = boot;
                Ok((up, Caller::new(address)))
            }
            Stage::Down | Stage::Over => Err("the campaign is over".to_owned()),
        }
    }

    /// A call that failed because the server died, or asked for a moment, is made again.
    async fn forgive(&self, up: Stage, failure: Failure) -> Result<(), String> {
        match failure {
            Failure::Cut(_) if *self.stages.borrow() != up => Ok(()),
            failure if failure.is_passing() => {
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
    let first = frames.next().await?;
    Ok((frames, first.ok_or_else(|| Failure::Unusable("a stream without a single frame".to_owned()))?))
}
