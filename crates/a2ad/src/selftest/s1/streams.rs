//! Methods that answer with events.

use crate::selftest::{
    Checked,
    door::{ends_well, fresh, request, states, text, text_part},
    fixture::Fixture,
    http::Event,
    json::quote,
    wrong,
};

pub(super) async fn answers(at: &Fixture) -> Checked {
    let (task, events) = at.root("slow-writer")?.events("the sea sections=2 delay=1ms").await?;
    let (mut statuses, mut artifacts) = (0, 0);
    for Event { data, .. } in &events {
        data.is("jsonrpc", "2.0")?;
        data.is("id", 1)?;
        data.is("result.id", &task)?;
        match (data.find("result.status"), data.find("result.artifact")) {
            (Some(_), None) => statuses += 1,
            (None, Some(_)) => artifacts += 1,
            _ => return Err(wrong("either a status or an artifact", data)),
        }
    }
    let enough = statuses >= 3 && artifacts == 2;
    if enough { Ok(()) } else { Err(wrong("statuses and two artifacts", format!("{statuses}, {artifacts}"))) }
}

pub(super) async fn status_members(at: &Fixture) -> Checked {
    let (task, events) = at.root("echo")?.events("hello").await?;
    for Event { data, .. } in events.iter().filter(|event| event.data.find("result.status").is_some()) {
        data.is("result.id", &task)?;
        data.is_timestamp("result.status.timestamp")?;
        let last = data.is("result.status.state", "completed").is_ok();
        data.is("result.final", last)?;
        let known = ["id", "status", "final", "metadata"];
        let strange = data.at("result")?.names().into_iter().find(|name| !known.contains(name));
        data.must(strange.is_none(), "no member that a status event has not got")?;
    }
    ends_well(&events)
}

pub(super) async fn chunks(at: &Fixture) -> Checked {
    let (_, events) = at.root("slow-writer")?.events("the sea sections=3 delay=1ms").await?;
    let chunks: Vec<_> = events.iter().filter_map(|event| event.data.find("result.artifact")).collect();
    if chunks.len() != 3 {
        return Err(wrong("three chunks", chunks.len()));
    }
    for (chunk, (append, last)) in chunks.into_iter().zip([(false, false), (true, false), (true, true)]) {
        chunk.is("index", 0)?;
        chunk.is("append", append)?;
        chunk.is("lastChunk", last)?;
    }
    Ok(())
}

pub(super) async fn finals(at: &Fixture) -> Checked {
    for (skill, said, state) in [
        ("echo", "hello", "completed"),
        ("currency", "how much is 1 USD?", "input-required"),
        ("tck", "a2ad-fail", "failed"),
    ] {
        let (_, events) = at.root(skill)?.events(said).await?;
        ends_well(&events)?;
        let seen = states(&events);
        if seen.last() != Some(&state) {
            return Err(wrong(format!("{state} in the end"), seen.join(", ")));
        }
    }
    Ok(())
}

pub(super) async fn whole_afterwards(at: &Fixture) -> Checked {
    let door = at.root("slow-writer")?;
    let (task, events) = door.events("the sea sections=3 delay=1ms").await?;
    let chunks = events.iter().filter_map(|event| event.data.find("result.artifact"));
    let streamed: Vec<_> = chunks.filter_map(|chunk| chunk.text("parts.0.text").ok()).collect();
    let got = door.get(&task).await?;
    got.must(got.count("result.artifacts") == 1, "one artifact")?;
    let parts = got.list("result.artifacts.0.parts")?;
    let whole: Vec<_> = parts.iter().filter_map(|part| part.text("text").ok()).collect();
    got.must(whole.concat() == streamed.concat() && streamed.len() == 3, "all that was streamed")
}

pub(super) async fn resubscribe(at: &Fixture) -> Checked {
    let door = at.root("slow-writer")?;
    let task = fresh();
    let params = door.params(&task, &text("the sea sections=5 delay=60ms"), "");
    let mut events = door.stream("tasks/sendSubscribe", &params).await?;
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
    // Without a word about what was seen: the rest comes behind what there is.
    let rest = door.stream("tasks/resubscribe", &params).await?.all().await?;
    ends_well(&rest)?;
    if states(&rest).last() != Some(&"completed") {
        return Err(wrong("completed in the end", states(&rest).join(", ")));
    }
    // With the number of the last event seen: exactly what was missed.
    let seen = seen.ok_or_else(|| wrong("an event with a number", "none"))?;
    let missed =
        door.stream_with(&[("last-event-id", &seen)], "tasks/resubscribe", &params).await?.all().await?;
    ends_well(&missed)?;
    let chunks = missed.iter().filter(|event| event.data.find("result.artifact").is_some()).count();
    if chunks == 4 { Ok(()) } else { Err(wrong("the four sections that were missed", chunks)) }
}

pub(super) async fn bare_request(at: &Fixture) -> Checked {
    let door = at.root("echo")?;
    let params = door.params(&fresh(), &text("hello"), "");
    let body = format!(r#"{{"method":"tasks/sendSubscribe","params":{params}}}"#);
    let events = door.streaming()?.stream(&door.path, &[], &body).await?.all().await?;
    ends_well(&events)?;
    let params = door.params(&fresh(), &text("hello"), "");
    door.post(&format!(r#"{{"method":"tasks/send","params":{params}}}"#)).await?.state("completed")?;
    Ok(())
}

/// A client that does not read falls behind; its task is done and forgotten before it reads on. What is left of the
/// stream is the error.
pub(super) async fn error_event(at: &Fixture) -> Checked {
    let door = at.agent("brief", "slow-writer")?;
    let task = fresh();
    // More than all buffers between the two ends hold.
    let said = format!("{} sections=150 delay=0ms", "x".repeat(60_000));
    let body = request("tasks/sendSubscribe", &door.params(&task, &text(&said), ""));
    let mut events = door.server.stream_into(Some(4_096), &door.path, &[], &body).await?;
    events.next().await?;
    door.until(&task, "a forgotten task", |answer| answer.fails(-32001).is_ok()).await?;
    let mut last = None;
    while let Some(event) = events.next().await? {
        last = Some(event.data);
    }
    let last = last.ok_or_else(|| wrong("an event", "none"))?;
    last.is("jsonrpc", "2.0")?;
    last.is("id", 1)?;
    last.is("error.code", -32001)
}

/// The log of a task is read from its first event, also when the task is over.
pub(super) async fn past_statuses(at: &Fixture) -> Checked {
    let card = at.card("agent-native", "agent-card.json").await?;
    card.is("capabilities.stateTransitionHistory", true)?;
    let door = at.agent("agent-native", "currency")?;
    let asked = door.message(&text_part("how much is 1 USD?"), "").await?;
    asked.state("input-required")?;
    let task = asked.filled("result.id")?;
    let within = format!(r#","taskId":{}"#, quote(task));
    let params = door.message_params(&text_part("in INR"), &within, "");
    door.call("message/send", &params).await?.state("completed")?;
    let params = format!(r#"{{"id":{}}}"#, quote(task));
    let events =
        door.stream_with(&[("last-event-id", "0")], "tasks/resubscribe", &params).await?.all().await?;
    let statuses: Vec<_> =
        events.iter().filter(|event| event.data.is("result.kind", "status-update").is_ok()).collect();
    for status in &statuses {
        status.data.is_timestamp("result.status.timestamp")?;
    }
    let mut seen: Vec<&str> =
        statuses.iter().filter_map(|status| status.data.text("result.status.state").ok()).collect();
    seen.dedup();
    if seen == ["submitted", "working", "input-required", "working", "completed"] {
        return Ok(());
    }
    Err(wrong("submitted, working, input-required, working, completed", seen.join(", ")))
}
