//! Methods that respond with an event stream.

use crate::{
    CheckResult,
    fixture::Fixture,
    http::Event,
    json::{ValueChecks as _, quote},
    mismatch,
    schema::SchemaChecks as _,
    test_client::{ends_with_final, request, states, text, text_part, unique_id},
};

pub(super) async fn events_are_responses(at: &Fixture) -> CheckResult {
    let (task, events) = at.root("slow-writer").events("the sea sections=2 delay=1ms").await?;
    let (mut statuses, mut artifacts) = (0, 0);
    for Event { data, .. } in &events {
        data.is("jsonrpc", "2.0")?;
        data.is("id", 1)?;
        data.is("result.id", &task)?;
        match (data.find("result.status"), data.find("result.artifact")) {
            (Some(_), None) => statuses += 1,
            (None, Some(_)) => artifacts += 1,
            _ => return Err(mismatch("either a status or an artifact", data)),
        }
    }
    let enough = statuses >= 3 && artifacts == 2;
    if enough {
        Ok(())
    } else {
        Err(mismatch("statuses and two artifacts", format!("{statuses}, {artifacts}")))
    }
}

pub(super) async fn status_members(at: &Fixture) -> CheckResult {
    let (task, events) = at.root("echo").events("hello").await?;
    for Event { data, .. } in events.iter().filter(|event| event.data.find("result.status").is_some()) {
        data.is("result.id", &task)?;
        data.is_timestamp("result.status.timestamp")?;
        let last = data.is("result.status.state", "completed").is_ok();
        data.is("result.final", last)?;
        let known = ["id", "status", "final", "metadata"];
        let unknown = data.at("result")?.names().into_iter().find(|name| !known.contains(name));
        data.ensure(unknown.is_none(), "no unknown member of the status event")?;
    }
    ends_with_final(&events)
}

pub(super) async fn chunks(at: &Fixture) -> CheckResult {
    let (_, events) = at.root("slow-writer").events("the sea sections=3 delay=1ms").await?;
    let chunks: Vec<_> = events.iter().filter_map(|event| event.data.find("result.artifact")).collect();
    if chunks.len() != 3 {
        return Err(mismatch("three chunks", chunks.len()));
    }
    for (chunk, (append, last)) in chunks.into_iter().zip([(false, false), (true, false), (true, true)]) {
        chunk.is("index", 0)?;
        chunk.is("append", append)?;
        chunk.is("lastChunk", last)?;
    }
    Ok(())
}

pub(super) async fn final_events(at: &Fixture) -> CheckResult {
    for (skill, input, state) in [
        ("echo", "hello", "completed"),
        ("currency", "how much is 1 USD?", "input-required"),
        ("tck", "a2ad-fail", "failed"),
    ] {
        let (_, events) = at.root(skill).events(input).await?;
        ends_with_final(&events)?;
        let seen = states(&events);
        if seen.last() != Some(&state) {
            return Err(mismatch(format!("{state} as the last state"), seen.join(", ")));
        }
    }
    Ok(())
}

pub(super) async fn artifact_after_stream(at: &Fixture) -> CheckResult {
    let client = at.root("slow-writer");
    let (task, events) = client.events("the sea sections=3 delay=1ms").await?;
    let chunks = events.iter().filter_map(|event| event.data.find("result.artifact"));
    let streamed: Vec<_> = chunks.filter_map(|chunk| chunk.text("parts.0.text").ok()).collect();
    let got = client.get(&task).await?;
    got.ensure(got.count("result.artifacts") == 1, "one artifact")?;
    let parts = got.list("result.artifacts.0.parts")?;
    let whole: Vec<_> = parts.iter().filter_map(|part| part.text("text").ok()).collect();
    got.ensure(whole.concat() == streamed.concat() && streamed.len() == 3, "all streamed sections")
}

pub(super) async fn resubscribe(at: &Fixture) -> CheckResult {
    let client = at.root("slow-writer");
    let task = unique_id();
    let params = client.params(&task, &text("the sea sections=5 delay=60ms"), "");
    let mut events = client.stream("tasks/sendSubscribe", &params).await?;
    let mut seen = None;
    while let Some(event) = events.next().await? {
        let is_artifact = event.data.find("result.artifact").is_some();
        seen = event.id;
        if is_artifact {
            break;
        }
    }
    drop(events);
    let params = format!(r#"{{"id":{},"metadata":{{}}}}"#, quote(&task));
    // Without Last-Event-ID: the current status, then the remaining events.
    let rest = client.stream("tasks/resubscribe", &params).await?.all().await?;
    ends_with_final(&rest)?;
    if states(&rest).last() != Some(&"completed") {
        return Err(mismatch("completed as the last state", states(&rest).join(", ")));
    }
    // With Last-Event-ID: exactly the missed events.
    let seen = seen.ok_or_else(|| mismatch("an event with an id", "none"))?;
    let missed =
        client.stream_with(&[("last-event-id", &seen)], "tasks/resubscribe", &params).await?.all().await?;
    ends_with_final(&missed)?;
    let chunks = missed.iter().filter(|event| event.data.find("result.artifact").is_some()).count();
    if chunks == 4 { Ok(()) } else { Err(mismatch("the four sections that were missed", chunks)) }
}

/// A client that does not read falls behind, and its task completes and is deleted before it reads on. The stream then
/// ends with an error event.
pub(super) async fn error_event(at: &Fixture) -> CheckResult {
    let client = at.agent("brief", "slow-writer");
    let task = unique_id();
    // More bytes than all buffers between client and server hold.
    let input = format!("{} sections=150 delay=0ms", "x".repeat(60_000));
    let body = request("tasks/sendSubscribe", &client.params(&task, &text(&input), ""));
    let mut events = client.server.stream_into(Some(4_096), &client.path, &[], &body).await?;
    events.next().await?;
    client.poll_until(&task, "a deleted task", |response| response.has_error_code(-32001).is_ok()).await?;
    let mut last = None;
    while let Some(event) = events.next().await? {
        last = Some(event.data);
    }
    let last = last.ok_or_else(|| mismatch("an event", "none"))?;
    last.is("jsonrpc", "2.0")?;
    last.is("id", 1)?;
    last.is("error.code", -32001)
}

/// The event log of a finished task can be read from its first event.
pub(super) async fn status_history(at: &Fixture) -> CheckResult {
    let card = at.card("agent-native", "agent-card.json").await?;
    card.is("capabilities.stateTransitionHistory", true)?;
    let client = at.agent("agent-native", "currency");
    let question = client.message(&text_part("how much is 1 USD?"), "").await?;
    question.has_state("input-required")?;
    let task = question.non_empty("result.id")?;
    let message_members = format!(r#","taskId":{}"#, quote(task));
    let params = client.message_params(&text_part("in INR"), &message_members, "");
    client.call("message/send", &params).await?.has_state("completed")?;
    let params = format!(r#"{{"id":{}}}"#, quote(task));
    let events =
        client.stream_with(&[("last-event-id", "0")], "tasks/resubscribe", &params).await?.all().await?;
    let statuses: Vec<_> =
        events.iter().filter(|event| event.data.is("result.kind", "status-update").is_ok()).collect();
    for status in &statuses {
        status.data.is_timestamp("result.status.timestamp")?;
    }
    let mut seen: Vec<&str> =
        statuses.iter().filter_map(|status| status.data.text("result.status.state").ok()).collect();
    seen.dedup();
    // A tool that asks at once shows no other progress before.
    let may_ask_at_once = !at.is_builtin() && seen == ["submitted", "input-required", "working", "completed"];
    if may_ask_at_once || seen == ["submitted", "working", "input-required", "working", "completed"] {
        return Ok(());
    }
    Err(mismatch("submitted, working, input-required, working, completed", seen.join(", ")))
}
