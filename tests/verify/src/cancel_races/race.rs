//! One race: a task that is about to complete, and a cancel sent around that moment.
//!
//! The moment is counted from the event that reports the writing of the last section, so that waiting for a free
//! run slot or for a busy machine delays the cancel too. Deliberately not here: which side should have won.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::json::{is_terminal, state};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until};

use super::checker::{CancelReply, Event, Race};
use crate::random::Random;
use crate::rpc::{Caller, Failure, Frames, TASK_NOT_CANCELABLE, message};
use crate::writer::AGENT;

/// The longest time between cancel and completion.
const MARGIN_MICROS: u64 = 20_000;
/// How long the task writes, in milliseconds; longer than the margin, so that no cancel comes before the writing
/// begins.
const DELAY_MILLIS: u64 = 25;
/// Interval between two reads of a task that is not streamed.
const POLL: Duration = Duration::from_millis(2);
const END_LIMIT: Duration = Duration::from_secs(30);

/// The connections of one worker: one that sends and reads, and one for each cancel.
pub(crate) struct Worker {
    sender: Caller,
    cancelers: [Caller; 2],
}

/// When the cancels of a race are sent, counted from the begin of the writing, and how many.
#[derive(Clone, Copy)]
struct CancelTiming {
    after: Duration,
    two: bool,
}

impl Worker {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { sender: Caller::new(address), cancelers: [Caller::new(address), Caller::new(address)] }
    }

    pub(crate) async fn race(&mut self, random: &mut Random) -> Result<Race, Failure> {
        let shift = random.within(0..=2 * MARGIN_MICROS);
        let from_writing = Duration::from_millis(DELAY_MILLIS) + Duration::from_micros(shift);
        let after = from_writing.saturating_sub(Duration::from_micros(MARGIN_MICROS));
        let timing = CancelTiming { after, two: random.within(0..=4) == 0 };
        let immediate = random.within(0..=2) == 0;
        let params = message(random.uuid(), &format!("sections=1 delay={DELAY_MILLIS}ms"), immediate);
        let (task, cancels, streamed) = match immediate {
            true => self.race_polled(params, timing).await?,
            false => self.race_streamed(params, timing).await?,
        };
        let micros = |micros: u64| i64::try_from(micros).unwrap_or(i64::MAX);
        Ok(Race { task, offset_micros: micros(shift) - micros(MARGIN_MICROS), cancels, streamed })
    }

    async fn race_polled(&mut self, params: Value, timing: CancelTiming) -> Result<RaceReplies, Failure> {
        let response = self.sender.call(AGENT, "SendMessage", params).await?;
        let begun = Instant::now();
        let task = response["task"]["id"].as_str().unwrap_or_default().to_owned();
        let replies = fire_cancels(&mut self.cancelers, &task, begun, timing).await?;
        wait_for_end(&mut self.sender, &task).await?;
        Ok((task, replies, None))
    }

    async fn race_streamed(&mut self, params: Value, timing: CancelTiming) -> Result<RaceReplies, Failure> {
        let mut frames = self.sender.stream(AGENT, "SendStreamingMessage", params).await?;
        let (task_sender, task_receiver) = oneshot::channel();
        let mut task_sender = Some(task_sender);
        let reader = follow(&mut frames, |event| {
            if event.writes
                && let Some(task_sender) = task_sender.take()
            {
                // The receiver belongs to the other half of this race; if it is gone, the race has failed anyway.
                let _ = task_sender.send((event.task.clone(), Instant::now()));
            }
        });
        let cancelers = &mut self.cancelers;
        let canceler = async {
            let begun = task_receiver
                .await
                .map_err(|_| Failure::Unusable("the task ended without a writing event".to_owned()));
            let (task, begun) = begun?;
            Ok((fire_cancels(cancelers, &task, begun, timing).await?, task))
        };
        let (events, (replies, task)) = tokio::try_join!(reader, canceler)?;
        Ok((task, replies, Some(events)))
    }
}

/// The task, the replies to the cancels, and the events of the sender's stream.
type RaceReplies = (String, Vec<CancelReply>, Option<Vec<Event>>);

async fn fire_cancels(
    cancelers: &mut [Caller; 2],
    task: &str,
    begun: Instant,
    timing: CancelTiming,
) -> Result<Vec<CancelReply>, Failure> {
    let [first, second] = cancelers;
    sleep_until(begun + timing.after).await;
    if timing.two {
        let (one, other) = tokio::try_join!(cancel(first, task), cancel(second, task))?;
        return Ok(vec![one, other]);
    }
    Ok(vec![cancel(first, task).await?])
}

/// Reads a stream from its first frame, which is a task and not an event, to its end.
pub(crate) async fn follow(frames: &mut Frames, mut each: impl FnMut(&Event)) -> Result<Vec<Event>, Failure> {
    let first = frames.first().await?;
    let task = first.result["task"]["id"].as_str().unwrap_or_default().to_owned();
    let mut events = vec![Event::opening(&task, &first)];
    while let Some(frame) = frames.next().await? {
        let event = Event::of(&task, &frame);
        each(&event);
        events.push(event);
    }
    Ok(events)
}

/// Sends a cancel: the reply is the canceled task, or that the task had already ended.
async fn cancel(caller: &mut Caller, task: &str) -> Result<CancelReply, Failure> {
    match caller.call(AGENT, "CancelTask", json!({"id": task})).await {
        Ok(mut task) => Ok(CancelReply::Canceled { status: task["status"].take() }),
        Err(Failure::Error { code: TASK_NOT_CANCELABLE, .. }) => Ok(CancelReply::TooLate),
        Err(failure) => Err(failure),
    }
}

async fn wait_for_end(caller: &mut Caller, task: &str) -> Result<(), Failure> {
    let started = Instant::now();
    while started.elapsed() < END_LIMIT {
        let found = caller.call(AGENT, "GetTask", json!({"id": task})).await?;
        if is_terminal(state(&found)) {
            return Ok(());
        }
        sleep(POLL).await;
    }
    Err(Failure::Unusable(format!("task {task} did not end in time")))
}
