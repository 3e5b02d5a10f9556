//! Methods that answer at once.

use crate::selftest::{
    Checked,
    door::{Door, fresh, request, text},
    fixture::Fixture,
    http::Answer,
    json::{Json, quote},
    schema::Strangers,
    wrong,
};

pub(super) async fn transport(at: &Fixture) -> Checked {
    let door = at.root("echo")?;
    let (_, answer) = door.say("hello").await?;
    answer.has_status(200)?;
    answer.is("jsonrpc", "2.0")?;
    let kind = answer.header("content-type").unwrap_or_default();
    answer.must(kind.starts_with("application/json"), "content-type: application/json")?;
    // A stream that is none of server-sent events is refused by the reader.
    let (_, events) = door.events("hello").await?;
    for event in &events {
        event.data.is("jsonrpc", "2.0")?;
        event.data.is("id", 1)?;
    }
    if events.is_empty() { Err(wrong("events", "none")) } else { Ok(()) }
}

pub(super) async fn send_wants(at: &Fixture) -> Checked {
    let door = at.root("echo")?;
    let hello = text("hello");
    for params in [
        "{}".to_owned(),
        format!(r#"{{"message":{hello}}}"#),
        format!(r#"{{"id":{}}}"#, quote(&fresh())),
        format!(r#"{{"id":"","message":{hello}}}"#),
        format!(r#"{{"id":{},"message":"hello"}}"#, quote(&fresh())),
    ] {
        door.call("tasks/send", &params).await?.fails(-32602)?;
    }
    let more = r#","historyLength":1,"metadata":{}"#;
    door.send(&fresh(), &hello, more).await?.state("completed")?;
    Ok(())
}

pub(super) async fn send_stages(at: &Fixture) -> Checked {
    let door = at.root("currency")?;
    let (task, started) = door.say("how much is 1 USD?").await?;
    started.state("input-required")?;
    let resumed = door.send(&task, &text("in INR"), "").await?;
    resumed.state("completed")?;
    resumed.is("result.sessionId", started.at("result.sessionId")?)?;
    let reopened = door.send(&task, &text("how much is 1 USD?"), "").await?;
    reopened.is("result.id", &task)?;
    let again = door.send(&task, &text("10 EUR in JPY"), "").await?;
    again.state("completed")?;
    again.is("result.id", &task)
}

pub(super) async fn send_answers(at: &Fixture) -> Checked {
    let door = at.root("echo")?;
    let task = fresh();
    let params = door.params(&task, &text("hello"), "");
    let body = format!(r#"{{"jsonrpc":"2.0","id":"req-7","method":"tasks/send","params":{params}}}"#);
    let answer = door.post(&body).await?;
    answer.is("id", "req-7")?;
    answer.is("result.id", &task)?;
    answer.state("completed")?;
    Ok(())
}

pub(super) async fn get_gives(at: &Fixture) -> Checked {
    let door = at.root("echo")?;
    let (task, sent) = door.say("hello").await?;
    let params = format!(r#"{{"id":{},"historyLength":0,"metadata":{{}}}}"#, quote(&task));
    let got = door.call("tasks/get", &params).await?;
    got.is("result.id", &task)?;
    got.is("result.artifacts", sent.at("result.artifacts")?)
}

pub(super) async fn history_length(at: &Fixture) -> Checked {
    let door = at.root("approver")?;
    let (task, asked) = door.say("delete the old backups").await?;
    asked.lacks("result.history")?;
    let done = door.send(&task, &text("approve"), r#","historyLength":9"#).await?;
    done.state("completed")?;
    let said = |message: &Json| message.text("parts.0.text").map(str::to_owned);
    let whole: Vec<String> = done.list("result.history")?.iter().map(said).collect::<Result<_, _>>()?;
    let begins = whole.first().is_some_and(|first| first == "delete the old backups");
    done.must(begins && whole.len() == 4 && whole[2] == "approve", "request, question, answer, last word")?;
    for (length, expected) in [("0", &whole[4..]), ("2", &whole[2..]), ("3", &whole[1..]), ("50", &whole[..])]
    {
        let params = format!(r#"{{"id":{},"historyLength":{length}}}"#, quote(&task));
        let got = door.call("tasks/get", &params).await?;
        let history: Vec<String> = match got.find("result.history") {
            Some(_) => got.list("result.history")?.iter().map(said).collect::<Result<_, _>>()?,
            None => Vec::new(),
        };
        got.must(history == expected, &format!("the last {length} messages in order"))?;
    }
    door.get(&task).await?.lacks("result.history")?;
    // Cancelling is not asking for it either.
    let (held, begun) = at.root("echo")?.begin("hold").await?;
    begun.lacks("result.history")?;
    door.cancel(&held).await?.lacks("result.history")
}

pub(super) async fn past_retention(at: &Fixture) -> Checked {
    let door = at.agent("brief", "echo")?;
    let (task, _) = door.say("hello").await?;
    let gone = door.until(&task, "an error", |answer| answer.find("error").is_some()).await?;
    gone.fails(-32001)?;
    Ok(())
}

pub(super) async fn cancel_gives(at: &Fixture) -> Checked {
    let door = at.root("echo")?;
    let (task, begun) = door.begin("hold").await?;
    begun.state("working")?;
    let params = format!(r#"{{"id":{},"metadata":{{"why":"enough"}}}}"#, quote(&task));
    let canceled = door.call("tasks/cancel", &params).await?;
    canceled.is("result.id", &task)?;
    canceled.state("canceled")?;
    door.get(&task).await?.state("canceled")?;
    Ok(())
}

pub(super) async fn cancel_refused(at: &Fixture) -> Checked {
    let door = at.root("echo")?;
    let (task, _) = door.say("hello").await?;
    door.cancel(&task).await?.fails(-32002)?;
    door.get(&task).await?.state("completed")?;
    Ok(())
}

pub(super) async fn two_turns(at: &Fixture) -> Checked {
    let door = at.root("approver")?;
    let (task, session) = (fresh(), fresh());
    let more = format!(r#","sessionId":{}"#, quote(&session));
    let asked = door.send(&task, &text("request a new phone for me"), &more).await?;
    asked.state("input-required")?;
    asked.is("result.status.message.role", "agent")?;
    let question = asked.text("result.status.message.parts.0.text")?;
    asked.must(question.contains("approve"), "a message that says what to do")?;
    let done = door.send(&task, &text("approve"), &more).await?;
    done.state("completed")?;
    done.is("result.id", &task)?;
    done.is("result.sessionId", &session)?;
    done.filled("result.artifacts.0.name")?;
    done.filled("result.artifacts.0.parts.0.text")?;
    Ok(())
}

pub(super) async fn structured_question(at: &Fixture) -> Checked {
    let (_, asked) = at.root("approver")?.say("login to the archive").await?;
    asked.state("input-required")?;
    asked.must(asked.count("result.status.message.parts") == 2, "two parts")?;
    asked.is("result.status.message.parts.0.type", "text")?;
    asked.filled("result.status.message.parts.0.text")?;
    asked.is("result.status.message.parts.1.type", "data")?;
    asked.at("result.status.message.parts.1.data")?;
    Ok(())
}

pub(super) async fn with_a_file(at: &Fixture) -> Checked {
    let door = at.root("reminder")?;
    let task = fresh();
    let message = r#"{"role":"user","parts":[{"type":"text","text":"this paper in=300ms"},
        {"type":"file","file":{"mimeType":"application/pdf","bytes":"JVBERi0xLjcKJeLjz9MK"}}]}"#;
    door.send(&task, message, r#","async":true"#).await?.state("working")?;
    let word = |answer: &Answer| {
        answer.state("working").is_ok() && answer.filled("result.status.message.parts.0.text").is_ok()
    };
    door.until(&task, "working, with a word about it", word).await?;
    let done = door.until_state(&task, "completed").await?;
    done.is("result.artifacts.0.parts.1.file.bytes", "JVBERi0xLjcKJeLjz9MK")
}

/// Members that the schema does not name fail: a wrong name would pass for a stranger.
pub(super) async fn valid_answers(at: &Fixture) -> Checked {
    let valid = |name: &str, answer: &Json| answer.is_valid(name, Strangers::Fail);
    let (echo, approver, writer) = (at.root("echo")?, at.root("approver")?, at.root("slow-writer")?);
    let parts = r#"{"role":"user","parts":[{"type":"text","text":"hello","metadata":{"a":1}},
        {"type":"file","file":{"name":"a","uri":"https://files.example/a"}},{"type":"data","data":{"k":[]}}]}"#;
    let task = fresh();
    let sent = echo.send(&task, parts, r#","historyLength":9"#).await?;
    valid("SendTaskResponse", &sent)?;
    let params = format!(r#"{{"id":{},"historyLength":9}}"#, quote(&task));
    let got = echo.call("tasks/get", &params).await?;
    valid("GetTaskResponse", &got)?;
    valid("CancelTaskResponse", &echo.cancel(&task).await?.clone())?;
    valid("SendTaskResponse", &approver.say("login").await?.1)?;
    let (held, begun) = echo.begin("hold").await?;
    valid("SendTaskResponse", &begun)?;
    valid("CancelTaskResponse", &echo.cancel(&held).await?.clone())?;
    valid("GetTaskResponse", &at.fold("echo")?.get(&fresh()).await?.clone())?;
    for door in [echo, approver, writer] {
        for event in door.events("delete it sections=2 delay=1ms").await?.1 {
            valid("SendTaskStreamingResponse", &event.data)?;
        }
    }
    let config = format!(
        r#"{{"id":{},"pushNotificationConfig":{{"url":"https://hooks.example/","token":"t"}}}}"#,
        quote(&task)
    );
    let door = at.root("echo")?;
    valid(
        "SetTaskPushNotificationResponse",
        &door.call("tasks/pushNotification/set", &config).await?.clone(),
    )?;
    valid(
        "GetTaskPushNotificationResponse",
        &door.call("tasks/pushNotification/get", &params).await?.clone(),
    )?;
    for door in at.agents(&["fold", "pinkfish", "terse"], "echo")? {
        valid_at(&door, Strangers::Fail).await?;
    }
    for door in at.agents(&["fold", "terse"], "echo")? {
        for event in door.events("hello").await?.1 {
            valid("SendTaskStreamingResponse", &event.data)?;
        }
    }
    // Their parts have a `kind` beside their `type`.
    for door in at.agents(&["agent-native", "quiet"], "echo")? {
        valid_at(&door, Strangers::Pass).await?;
    }
    Ok(())
}

/// Whatever the house of an agent answers others with: who speaks the draft is given the whole task.
async fn valid_at(door: &Door, strangers: Strangers) -> Checked {
    let (task, sent) = door.say("hello").await?;
    sent.is_valid("SendTaskResponse", strangers)?;
    sent.is("result.id", &task)?;
    sent.state("completed")?;
    sent.is_timestamp("result.status.timestamp")?;
    sent.is("result.artifacts.0.parts.0.text", "hello")?;
    let (_, asked) = door.by("approver").say("delete it").await?;
    asked.is_valid("SendTaskResponse", strangers)?;
    asked.state("input-required")?;
    door.get(&task).await?.is_valid("GetTaskResponse", strangers)?;
    door.cancel(&task).await?.is_valid("CancelTaskResponse", strangers)
}

pub(super) async fn ids(at: &Fixture) -> Checked {
    let door = at.root("echo")?;
    for id in ["7", "-1", r#""seven""#, r#""""#, "null"] {
        let params = door.params(&fresh(), &text("hello"), "");
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tasks/send","params":{params}}}"#);
        let answer = door.post(&body).await?;
        answer.reads("id", id)?;
        answer.state("completed")?;
    }
    Ok(())
}

pub(super) async fn session_is_text(at: &Fixture) -> Checked {
    let door = at.root("echo")?;
    for session in ["7", "{}", "[\"a\"]"] {
        let more = format!(r#","sessionId":{session}"#);
        door.send(&fresh(), &text("hello"), &more).await?.fails(-32602)?;
    }
    let params = door.params(&fresh(), &text("hello"), r#","sessionId":"a""#);
    door.post(&request("tasks/send", &params)).await?.is("result.sessionId", "a")
}

/// What is not in the schema does no harm, and one such member counts: which modes the client takes.
pub(super) async fn output_modes(at: &Fixture) -> Checked {
    let (writer, plotter) = (at.root("slow-writer")?, at.root("plotter")?);
    let said = |more: &str| format!(r#","pet":{{"name":"Rex"}},"colour":null{more}"#);
    let sea = text("the sea sections=1 delay=1ms");
    for modes in
        ["", r#","acceptedOutputModes":["text"]"#, r#","acceptedOutputModes":["image/png","text/plain"]"#]
    {
        writer.send(&fresh(), &sea, &said(modes)).await?.state("completed")?;
    }
    let image = r#","acceptedOutputModes":["image/svg+xml"]"#;
    writer.send(&fresh(), &sea, &said(image)).await?.fails(-32005)?;
    let drawn = plotter.send(&fresh(), &text("3 1 2 as svg"), &said(image)).await?;
    drawn.is("result.artifacts.0.parts.0.file.mimeType", "image/svg+xml")
}
