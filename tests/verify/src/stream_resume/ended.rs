//! Requests about the log of an ended task in stream_resume: replay of the whole log, resumption at its end, and
//! resumption from positions that never existed.

use serde_json::{Value, json};
use testkit::json::{is_terminal, state};

use super::track::Track;
use crate::rpc::{Caller, Failure, Frame, Frames, UNSUPPORTED_OPERATION};
use crate::view::View;
use crate::writer::AGENT;

/// The results of these requests.
#[derive(Default)]
pub(crate) struct EndedChecks {
    pub(crate) gaps_flagged: u64,
    pub(crate) findings: Vec<String>,
}

/// Makes all requests about an ended task, and reads the task itself.
pub(crate) async fn check_ended(
    caller: &mut Caller,
    track: &mut Track,
) -> Result<(EndedChecks, Value), Failure> {
    replay(caller, track).await?;
    let (newest, task) = (track.newest(), track.task.as_str());
    let found = caller.call(AGENT, "GetTask", json!({"id": task})).await?;
    let mut checks = EndedChecks::default();
    for (what, headers) in
        [("k = N", vec![("Last-Event-ID", newest.to_string())]), ("no Last-Event-ID", Vec::new())]
    {
        match subscribe(caller, task, &headers).await {
            Err(Failure::Error { code: UNSUPPORTED_OPERATION, .. }) => {}
            Err(cut @ Failure::Cut(_)) => return Err(cut),
            Err(failure) => checks.findings.push(format!("form: task {task}: ended, {what}: {failure}")),
            Ok(_) => checks.findings.push(format!("form: task {task}: ended, {what}: a stream was opened")),
        }
    }
    let (beyond, frames) = resume_beyond_log(caller, task, newest).await?;
    checks.gaps_flagged += beyond.gaps_flagged;
    checks.findings.extend(beyond.findings);
    if let Some(mut frames) = frames
        && frames.next().await?.is_some()
    {
        checks.findings.push(format!("repeated: task {task}: events after the snapshot of a finished task"));
    }
    Ok((checks, found))
}

/// Resumes from a position that is not in the log, or is not a number: the server must send the whole task with the
/// gap flag, unless the task has ended and is no longer streamed. Returns the stream.
pub(crate) async fn resume_beyond_log(
    caller: &mut Caller,
    task: &str,
    newest: u64,
) -> Result<(EndedChecks, Option<Frames>), Failure> {
    let mut checks = EndedChecks::default();
    let mut last = None;
    for beyond in [(newest + 1_000_000).to_string(), "a-7".to_owned()] {
        let headers = [("Last-Event-ID", beyond.clone())];
        let mut frames = match subscribe(caller, task, &headers).await {
            Ok(frames) => frames,
            Err(Failure::Error { code: UNSUPPORTED_OPERATION, .. }) if has_ended(caller, task).await? => {
                continue;
            }
            Err(failure @ Failure::Error { .. }) if !failure.is_retryable() => {
                checks.findings.push(format!("gap: task {task}: resumed from {beyond}: {failure}"));
                continue;
            }
            Err(failure) => return Err(failure),
        };
        let fault = match frames.next().await? {
            Some(first) => fault_in_gap(&first, newest),
            None => Some("the stream is empty".to_owned()),
        };
        match fault {
            Some(fault) => checks.findings.push(format!("gap: task {task}: resumed from {beyond}: {fault}")),
            None => checks.gaps_flagged += 1,
        }
        last = Some(frames);
    }
    Ok((checks, last))
}

/// Replays the whole log: every number from 1, each with the same content as before.
async fn replay(caller: &mut Caller, track: &mut Track) -> Result<(), Failure> {
    let headers = [("Last-Event-ID", "0".to_owned())];
    let mut frames = subscribe(caller, &track.task, &headers).await?;
    match frames.next().await? {
        Some(first) => track.resume(0, &first),
        None => track.add_finding("missing", "resumed from 0: the stream is empty"),
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
        return Some(format!("the gap is not flagged: {}", task["metadata"]));
    }
    if first.seq.is_none_or(|seq| seq < newest) {
        return Some(format!("the snapshot has number {:?}, but {newest} was received before", first.seq));
    }
    // The document has a section from its third event on, which a complete snapshot includes.
    let has_artifacts = task["artifacts"].as_array().is_some_and(|artifacts| !artifacts.is_empty());
    if View::of(task).is_err() || (newest > 4 && !has_artifacts) {
        return Some("the snapshot is incomplete".to_owned());
    }
    None
}

async fn has_ended(caller: &mut Caller, task: &str) -> Result<bool, Failure> {
    let found = caller.call(AGENT, "GetTask", json!({"id": task})).await?;
    Ok(is_terminal(state(&found)))
}

async fn subscribe(caller: &mut Caller, task: &str, headers: &[(&str, String)]) -> Result<Frames, Failure> {
    let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    caller.stream_with(&headers, AGENT, "SubscribeToTask", json!({"id": task})).await
}
