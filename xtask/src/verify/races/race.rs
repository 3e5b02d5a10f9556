//! One race: a task that is about to end by itself, and a cancel fired around that moment.
//!
//! The moment is counted from the event that says that the last section is being written, so that waiting for a
//! free run or for a busy machine moves the cancel with it. Deliberately not here: who ought to have won.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until};

use super::judge::{Event, Race, Reply};
use crate::verify::random::Random;
use crate::verify::rpc::{Caller, Failure, Frames, TASK_NOT_CANCELABLE};
use crate::verify::view::is_terminal;
use crate::verify::writer::AGENT;

/// The most a cancel is fired before or behind the end.
const MARGIN_MICROS: u64 = 20_000;
/// How long the task writes, in milliseconds; longer than the margin, so that no cancel comes before it begins.
const DELAY_MILLIS: u64 = 25;
/// Between two looks at a task that nobody streams.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
const END_LIMIT: Duration = Duration::from_secs(30);

/// The connections of one lane: one that sends and reads, and one for each cancel.
pub(crate) struct Lane {
    sender: Caller,
    cancelers: [Caller; 2],
}

/// When the cancels of a race are fired, counted from the beginning of the writing, and how many.
#[derive(Clone, Copy)]
struct Shots {
    after: Duration,
    two: bool,
}

impl Lane {
    pub(crate) fn new(address: SocketAddr) -> Self {
        Self { sender: Caller::new(address), cancelers: [Caller::new(address), Caller::new(address)] }
    }

    /// Runs one race to its end.
    pub(crate) async fn race(&mut self, random: &mut Random) -> Result<Race, Failure> {
        let shift = random.within(0..=2 * MARGIN_MICROS);
        let behind = Duration::from_millis(DELAY_MILLIS) + Duration::from_micros(shift);
        let after = behind.saturating_sub(Duration::from_micros(MARGIN_MICROS));
        let shots = Shots { after, two: random.within(0..=4) == 0 };
        let at_once = random.within(0..=2) == 0;
        let parts = json!([{"text": format!("sections=1 delay={DELAY_MILLIS}ms")}]);
        let params = json!({
            "message": {"messageId": random.uuid().to_string(), "role": "ROLE_USER", "parts": parts},
            "configuration": {"returnImmediately": at_once}
        });
        let (task, cancels, streamed) = match at_once {
            true => self.race_unseen(params, shots).await?,
            false => self.race_streamed(params, shots).await?,
        };
        let micros = |micros: u64| i64::try_from(micros).unwrap_or(i64::MAX);
        Ok(Race { task, offset_micros: micros(shift) - micros(MARGIN_MICROS), cancels, streamed })
    }

    async fn race_unseen(&mut self, params: Value, shots: Shots) -> Result<Told, Failure> {
        let answer = self.sender.call(AGENT, "SendMessage", params).await?;
        let begun = Instant::now();
        let task = answer["task"]["id"].as_str().unwrap_or_default().to_owned();
        let replies = shoot(&mut self.cancelers, &task, begun, shots).await?;
        wait_for_end(&mut self.sender, &task).await?;
        Ok((task, replies, None))
    }

    async fn race_streamed(&mut self, params: Value, shots: Shots) -> Result<Told, Failure> {
        let mut frames = self.sender.stream(AGENT, "SendStreamingMessage", params).await?;
        let (tell, told) = oneshot::channel();
        let mut tell = Some(tell);
        let reader = follow(&mut frames, |event| {
            if event.writes
                && let Some(tell) = tell.take()
            {
                // The other half of this race waits for it; when that is gone, so is the race.
                let _ = tell.send((event.task.clone(), Instant::now()));
            }
        });
        let cancelers = &mut self.cancelers;
        let canceler = async {
            let begun = told.await.map_err(|_| Failure::Unusable("no writing before the end".to_owned()));
            let (task, begun) = begun?;
            Ok((shoot(cancelers, &task, begun, shots).await?, task))
        };
        let (events, (replies, task)) = tokio::try_join!(reader, canceler)?;
        Ok((task, replies, Some(events)))
    }
}

/// The task, what the cancels were told, and what the sender's stream showed.
type Told = (String, Vec<Reply>, Option<Vec<Event>>);

async fn shoot(
    cancelers: &mut [Caller; 2],
    task: &str,
    begun: Instant,
    shots: Shots,
) -> Result<Vec<Reply>, Failure> {
    let [first, second] = cancelers;
    sleep_until(begun + shots.after).await;
    if shots.two {
        let (one, other) = tokio::try_join!(cancel(first, task), cancel(second, task))?;
        return Ok(vec![one, other]);
    }
    Ok(vec![cancel(first, task).await?])
}

/// Reads a stream from its first frame to its end; the first frame is a task and no event.
pub(crate) async fn follow(frames: &mut Frames, mut each: impl FnMut(&Event)) -> Result<Vec<Event>, Failure> {
    let Some(first) = frames.next().await? else {
        return Err(Failure::Unusable("a stream without a single frame".to_owned()));
    };
    let task = first.result["task"]["id"].as_str().unwrap_or_default().to_owned();
    let mut events = vec![Event::opening(&task, &first)];
    while let Some(frame) = frames.next().await? {
        let event = Event::of(&task, &frame);
        each(&event);
        events.push(event);
    }
    Ok(events)
}

/// What a cancel is told: the task as it ended, or that it had ended before.
async fn cancel(caller: &mut Caller, task: &str) -> Result<Reply, Failure> {
    match caller.call(AGENT, "CancelTask", json!({"id": task})).await {
        Ok(mut task) => Ok(Reply::Canceled { status: task["status"].take() }),
        Err(Failure::Error { code: TASK_NOT_CANCELABLE, .. }) => Ok(Reply::TooLate),
        Err(failure) => Err(failure),
    }
}

async fn wait_for_end(caller: &mut Caller, task: &str) -> Result<(), Failure> {
    let started = Instant::now();
    while started.elapsed() < END_LIMIT {
        let found = caller.call(AGENT, "GetTask", json!({"id": task})).await?;
        if is_terminal(&state(&found)) {
            return Ok(());
        }
        sleep(LOOK_AGAIN).await;
    }
    Err(Failure::Unusable(format!("task {task} does not end")))
}

fn state(task: &Value) -> String {
    task["status"]["state"].as_str().unwrap_or_default().to_owned()
}
