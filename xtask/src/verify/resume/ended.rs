//! What a reader of T-R11 asks of the log as a whole: all of it again, nothing more, and what was never in it.

use serde_json::{Value, json};

use super::track::Track;
use crate::verify::rpc::{Caller, Failure, Frame, Frames, UNSUPPORTED_OPERATION};
use crate::verify::view::{View, is_terminal};
use crate::verify::writer::AGENT;

/// What came of asking.
#[derive(Default)]
pub(crate) struct Asked {
    pub(crate) gaps_flagged: u64,
    pub(crate) findings: Vec<String>,
}

/// Asks everything that a finished task must answer, and reads the task itself.
pub(crate) async fn ask(caller: &mut Caller, track: &mut Track) -> Result<(Asked, Value), Failure> {
    replay(caller, track).await?;
    let (newest, task) = (track.newest(), track.task.as_str());
    let found = caller.call(AGENT, "GetTask", json!({"id": task})).await?;
    let mut asked = Asked::default();
    for (what, headers) in
        [("k = N", vec![("Last-Event-ID", newest.to_string())]), ("no Last-Event-ID", Vec::new())]
    {
        match subscribe(caller, task, &headers).await {
            Err(Failure::Error { code: UNSUPPORTED_OPERATION, .. }) => {}
            Err(cut @ Failure::Cut(_)) => return Err(cut),
            Err(failure) => asked.findings.push(format!("form: task {task}: ended, {what}: {failure}")),
            Ok(_) => asked.findings.push(format!("form: task {task}: ended, {what}: a stream is opened")),
        }
    }
    let (beyond, frames) = ask_beyond(caller, task, newest).await?;
    asked.gaps_flagged += beyond.gaps_flagged;
    asked.findings.extend(beyond.findings);
    if let Some(mut frames) = frames
        && frames.next().await?.is_some()
    {
        asked.findings.push(format!("repeated: task {task}: events behind the snapshot of a finished task"));
    }
    Ok((asked, found))
}

/// Asks for what is not in the log, or is no number at all: the whole task must come, flagged, unless it has
/// ended and is not streamed any more. The stream it comes with is handed back.
pub(crate) async fn ask_beyond(
    caller: &mut Caller,
    task: &str,
    newest: u64,
) -> Result<(Asked, Option<Frames>), Failure> {
    let mut asked = Asked::default();
    let mut last = None;
    for beyond in [(newest + 1_000_000).to_string(), "a-7".to_owned()] {
        let headers = [("Last-Event-ID", beyond.clone())];
        let mut frames = match subscribe(caller, task, &headers).await {
            Ok(frames) => frames,
            Err(Failure::Error { code: UNSUPPORTED_OPERATION, .. }) if has_ended(caller, task).await? => {
                continue;
            }
            Err(failure @ Failure::Error { .. }) if !failure.is_passing() => {
                asked.findings.push(format!("gap: task {task}: resumed from {beyond}: {failure}"));
                continue;
            }
            Err(failure) => return Err(failure),
        };
        let fault = match frames.next().await? {
            Some(first) => fault_in_gap(&first, newest),
            None => Some("an empty stream".to_owned()),
        };
        match fault {
            Some(fault) => asked.findings.push(format!("gap: task {task}: resumed from {beyond}: {fault}")),
            None => asked.gaps_flagged += 1,
        }
        last = Some(frames);
    }
    Ok((asked, last))
}

/// Has the whole log replayed: every number from 1, each with the content it had.
async fn replay(caller: &mut Caller, track: &mut Track) -> Result<(), Failure> {
    let headers = [("Last-Event-ID", "0".to_owned())];
    let mut frames = subscribe(caller, &track.task, &headers).await?;
    match frames.next().await? {
        Some(first) => track.resume(0, &first),
        None => track.find("missing", "resumed from 0: an empty stream"),
    }
    while let Some(frame) = frames.next().await? {
        track.follow(&frame);
    }
    track.close();
    Ok(())
}

fn fault_in_gap(first: &Frame, newest: u64) -> Option<String> {
    let task = &first.result["task"];
    if task["metadata"]["gap"] != true {
        return Some(format!("no gap is flagged: {}", task["metadata"]));
    }
    if first.seq.is_none_or(|seq| seq < newest) {
        return Some(format!("the snapshot has number {:?} and {newest} was shown before", first.seq));
    }
    // The piece has a section from its third event on, and a whole snapshot shows it.
    let has_artifacts = task["artifacts"].as_array().is_some_and(|artifacts| !artifacts.is_empty());
    if View::of(task).is_err() || (newest > 4 && !has_artifacts) {
        return Some("the snapshot is not whole".to_owned());
    }
    None
}

async fn has_ended(caller: &mut Caller, task: &str) -> Result<bool, Failure> {
    let found = caller.call(AGENT, "GetTask", json!({"id": task})).await?;
    Ok(is_terminal(found["status"]["state"].as_str().unwrap_or_default()))
}

async fn subscribe(caller: &mut Caller, task: &str, headers: &[(&str, String)]) -> Result<Frames, Failure> {
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    caller.stream_with(&headers, AGENT, "SubscribeToTask", json!({"id": task})).await
}
