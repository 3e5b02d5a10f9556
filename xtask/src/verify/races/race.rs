//! One race: a task that is about to end by itself, and a cancel fired around that moment.
//!
//! The moment is counted from the event that says that the last section is being written, so that waiting for a
//! free run or for a busy machine moves the cancel with it. Deliberately not here: who ought to have won.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep, sleep_until};

use super::judge::{Event, Race, Reply};
use crate::verify::random::Random;
use crate::verify::rpc::{Caller, Failure, Frames, TASK_NOT_CANCELABLE};
use crate::verify::view::is_terminal;

pub(crate) const AGENT: &str = "slow-writer";

/// The most a cancel is fired before or behind the end.
const MARGIN_MICROS: u64 = 20_000;
/// How long the task writes, in milliseconds; longer than the margin, so that no cancel comes before it begins.
const DELAY_MILLIS: u64 = 25;
/// Between two looks at a task that nobody streams.
const LOOK_AGAIN: Duration = Duration::from_millis(2);
const END_LIMIT: Duration = Duration::from_secs(30);

pub(crate) async fn run(random: &mut Random, callers: &mut [Caller; 3]) -> Result<Race, Failure> {
    let [sender, first, second] = callers;
    let shift = random.within(0..=2 * MARGIN_MICROS);
    let after = Duration::from_millis(DELAY_MILLIS) + Duration::from_micros(shift);
    let after = after.saturating_sub(Duration::from_micros(MARGIN_MICROS));
    let two = random.within(0..=4) == 0;
    let text = format!("sections=1 delay={DELAY_MILLIS}ms");
    let params = |at_once: bool, id: String| {
        json!({
            "message": {"messageId": id, "role": "ROLE_USER", "parts": [{"text": text}]},
            "configuration": {"returnImmediately": at_once}
        })
    };
    let id = random.uuid().to_string();
    let cancels = async |task: &str, moment: Instant| {
        sleep_until(moment).await;
        if two {
            let both = tokio::join!(cancel(first, task), cancel(second, task));
            return Ok(vec![both.0?, both.1?]);
        }
        Ok::<_, Failure>(vec![cancel(first, task).await?])
    };
    let (task, cancels, streamed) = if random.within(0..=2) == 0 {
        let answer = sender.call(AGENT, "SendMessage", params(true, id)).await?;
        let begun = Instant::now();
        let task = answer["task"]["id"].as_str().unwrap_or_default().to_owned();
        let replies = cancels(&task, begun + after).await?;
        wait_for_end(sender, &task).await?;
        (task, replies, None)
    } else {
        let mut frames = sender.stream(AGENT, "SendStreamingMessage", params(false, id)).await?;
        let (tell, told) = oneshot::channel();
        let mut tell = Some(tell);
        let reader = follow(&mut frames, |event| {
            if event.writes
                && let Some(tell) = tell.take()
            {
                // The other half of this race waits for it and cannot be gone.
                let _ = tell.send((event.task.clone(), Instant::now()));
            }
        });
        let canceler = async {
            let (task, begun) =
                told.await.map_err(|_| Failure::Unusable("no writing before the end".to_owned()))?;
            Ok((cancels(&task, begun + after).await?, task))
        };
        let (events, (replies, task)) = tokio::try_join!(reader, canceler)?;
        (task, replies, Some(events))
    };
    let offset_micros =
        i64::try_from(shift).unwrap_or_default() - i64::try_from(MARGIN_MICROS).unwrap_or_default();
    Ok(Race { task, offset_micros, cancels, streamed })
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
        Ok(task) => Ok(Reply::Canceled { state: state(&task), status: task["status"].to_string() }),
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
