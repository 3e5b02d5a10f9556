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
use crate::verify::rpc::{Caller, Failure, Frames, UNSUPPORTED_OPERATION};
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
    first_boot: u64,
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

/// Where and when the reader takes a stream up again.
enum Pause {
    None,
    Short,
    UntilFinished,
}

impl Reader {
    pub(crate) fn new(piece: Piece, mut random: Random, stages: watch::Receiver<Stage>) -> Self {
        let cuts_left = random.within(1..=10);
        Self { piece, random, stages, cuts_left, first_boot: 0, followed: Followed::default() }
    }

    pub(crate) async fn run(mut self) -> Followed {
        if let Err(what) = self.follow_task().await {
            self.followed.findings.push(what);
        }
        self.followed
    }

    async fn follow_task(&mut self) -> Result<(), String> {
        let (mut track, mut frames) = self.begin().await?;
        loop {
            self.read(&mut track, frames).await?;
            if track.outcome().is_some() {
                break;
            }
            self.wait_before_resuming(&track).await?;
            frames = match self.resume(&mut track).await? {
                Some(frames) => frames,
                None => break,
            };
        }
        let (asked, found) = self.persist(async |caller| ended::ask(caller, &mut track).await).await?;
        self.followed.gaps_flagged += asked.gaps_flagged;
        track.findings.extend(asked.findings);
        self.judge_end(&mut track, &found);
        self.followed.events = track.events();
        self.followed.findings.append(&mut track.findings);
        Ok(())
    }

    /// Makes the task. When the first frame does not come through, the same message is sent again.
    async fn begin(&mut self) -> Result<(Track, Frames), String> {
        let params = message(self.random.uuid(), &self.piece.text(), false);
        let (frames, first) = self
            .persist(async |caller| {
                let mut frames = caller.stream(AGENT, "SendStreamingMessage", params.clone()).await?;
                let first = frames.next().await?;
                Ok((frames, first.ok_or_else(|| Failure::Unusable("a stream without a frame".to_owned()))?))
            })
            .await?;
        self.first_boot = self.boot();
        Ok((Track::begin(&first)?, frames))
    }

    /// Follows the stream to its end, to a cut of its own, or to the server's death.
    async fn read(&mut self, track: &mut Track, mut frames: Frames) -> Result<(), String> {
        let up = *self.stages.borrow();
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
                Err(Failure::Cut) => {
                    self.followed.cuts_by_kill += 1;
                    if *self.stages.borrow() == up {
                        track.find("refused", "a living server cut the stream".to_owned());
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
                let params = json!({"id": track.task});
                loop {
                    let task = self
                        .persist(async |caller| caller.call(AGENT, "GetTask", params.clone()).await)
                        .await?;
                    if is_terminal(task["status"]["state"].as_str().unwrap_or_default()) {
                        self.followed.resumed_finished += 1;
                        return Ok(());
                    }
                    sleep(LOOK_PAUSE).await;
                }
            }
        }
    }

    /// Takes the stream up again: where it was cut or, now and then, further back; sometimes after having asked
    /// for what is not there.
    async fn resume(&mut self, track: &mut Track) -> Result<Option<Frames>, String> {
        if self.random.within(0..=9) == 0 {
            let (task, newest) = (track.task.clone(), track.newest());
            let (asked, _) =
                self.persist(async |caller| ended::ask_beyond(caller, &task, newest).await).await?;
            self.followed.gaps_flagged += asked.gaps_flagged;
            track.findings.extend(asked.findings);
        }
        let from = match self.random.within(0..=3) {
            0 => self.random.within(0..=track.newest()),
            _ => track.newest(),
        };
        let (number, params) = (from.to_string(), json!({"id": track.task}));
        let resumed = self
            .persist(async |caller| {
                let headers = [("Last-Event-ID", number.as_str())];
                let subscribed = caller.stream_with(&headers, AGENT, "SubscribeToTask", params.clone()).await;
                match subscribed {
                    Ok(mut frames) => Ok(frames.next().await?.map(|first| (frames, first))),
                    Err(Failure::Error { code: UNSUPPORTED_OPERATION, .. }) => Ok(None),
                    Err(failure) => Err(failure),
                }
            })
            .await?;
        self.followed.resumed += 1;
        let Some((frames, first)) = resumed else {
            track.find("missing", format!("resumed from {from}: refused or empty, the end was not shown"));
            return Ok(None);
        };
        track.resume(from, &first);
        Ok(Some(frames))
    }

    /// Compares the end as shown with the task as read, and with what was asked for.
    fn judge_end(&mut self, track: &mut Track, found: &Value) {
        let read = crate::verify::view::View::of(found).ok().and_then(|view| view.outcome());
        if track.outcome() != read {
            track.find("wrong", format!("shown as {:?}, read as {read:?}", track.outcome()));
        }
        let deaths = self.boot() - self.first_boot;
        if deaths >= DEATHS_TO_FAIL && status_text(found).contains("poisoned") {
            self.followed.given_up = true;
        } else if let Some(fault) = self.piece.fault_in(found) {
            track.find("wrong", fault);
        }
    }

    fn boot(&self) -> u64 {
        match *self.stages.borrow() {
            Stage::Up { boot, .. } => boot,
            Stage::Down | Stage::Over => self.first_boot,
        }
    }

    /// Does `work` until it is done, waiting for the next boot whenever the server dies under it.
    async fn persist<T>(
        &mut self,
        mut work: impl AsyncFnMut(&mut Caller) -> Result<T, Failure>,
    ) -> Result<T, String> {
        loop {
            let stage = self.stages.wait_for(|stage| matches!(stage, Stage::Up { .. })).await;
            let up = *stage.map_err(|_| "the campaign ended under its readers".to_owned())?;
            let Stage::Up { address, .. } = up else { continue };
            match work(&mut Caller::new(address)).await {
                Ok(done) => return Ok(done),
                Err(Failure::Cut) if *self.stages.borrow() != up => {}
                Err(failure) if failure.is_passing() => sleep(POSTPONED_PAUSE).await,
                Err(failure) => return Err(format!("refused: {failure}")),
            }
        }
    }
}
