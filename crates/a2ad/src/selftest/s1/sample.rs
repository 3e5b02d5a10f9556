//! The sample of a currency agent, as its page shows it.

use std::time::Duration;

use crate::selftest::{
    Checked, Trouble,
    door::{Door, fresh, states, text},
    fixture::Fixture,
    http::Answer,
    json::quote,
    program::{ANY_PORT, Program},
    wrong,
};

const QUESTION: &str = "How much is the exchange rate for 1 USD to INR?";
const ANSWER: &str = "The exchange rate for 1 USD to INR is ";

/// The port of the sample. Somebody else may have it for a moment.
const ADDRESS: &str = "127.0.0.1:10000";

/// The sample as it comes, started by its own file. Where somebody else has its port for good, all but the port is
/// checked at another one, and said so.
pub(super) async fn port(at: &Fixture) -> Checked {
    let (program, taken) = match started(at).await? {
        Some(program) => (program, false),
        None => (at.sample(Some(ANY_PORT)).await?, true),
    };
    let door = Door::new(&program.server, "/", "currency");
    let answer = ask(&door, &fresh(), "").await?;
    answer.state("completed")?;
    let text = answer.text("result.artifacts.0.parts.0.text")?;
    answer.must(text.starts_with(ANSWER), "the rate in one sentence")?;
    let host = &program.server.host;
    match taken {
        true => Err(Trouble::ButFor(format!("{ADDRESS} is taken by somebody else; checked at {host}"))),
        false if host == ADDRESS => Ok(()),
        false => Err(wrong(ADDRESS, host)),
    }
}

/// The server of the sample, as soon as nobody else has its port.
async fn started(at: &Fixture) -> Result<Option<Program>, Trouble> {
    for _ in 0..12 {
        match at.sample(None).await {
            Err(Trouble::Wrong { got, .. }) if got.contains(ADDRESS) => {}
            other => return other.map(Some),
        }
        tokio::time::sleep(Duration::from_millis(400)).await;
    }
    Ok(None)
}

/// The page's request: no word about a skill, and an output mode that is not in the schema.
async fn ask(door: &Door, task: &str, more: &str) -> Result<Answer, Trouble> {
    let message = text(QUESTION);
    let task = quote(task);
    let params = format!(r#"{{"id":{task},"acceptedOutputModes":["text"],"message":{message}{more}}}"#);
    door.call("tasks/send", &params).await
}

async fn asked(at: &Fixture, task: &str, more: &str) -> Result<Answer, Trouble> {
    ask(&at.root("currency")?, task, more).await
}

pub(super) async fn complete(at: &Fixture) -> Checked {
    let answer = asked(at, &fresh(), r#","sessionId":"8f01f3d172cd4396a0e535ae8aec6687""#).await?;
    answer.state("completed")?;
    answer.must(answer.count("result.artifacts") == 1, "one artifact")?;
    answer.is("result.artifacts.0.index", 0)?;
    let text = answer.text("result.artifacts.0.parts.0.text")?;
    answer.must(text.starts_with(ANSWER), "the rate in one sentence")?;
    answer.reads("result.history", "[]")
}

pub(super) async fn incomplete(at: &Fixture) -> Checked {
    let door = at.root("currency")?;
    let (task, question) = door.say("how much is 1 USD?").await?;
    question.state("input-required")?;
    let text_of = question.text("result.status.message.parts.0.text")?;
    question.must(text_of.contains("currency"), "a question for the currency")?;
    let answer = door.send(&task, &text("in INR"), "").await?;
    answer.state("completed")?;
    let text_of = answer.text("result.artifacts.0.parts.0.text")?;
    answer.must(text_of.contains("1 USD to INR"), "the rate of 1 USD to INR")
}

pub(super) async fn streamed(at: &Fixture) -> Checked {
    let (_, events) = at.root("currency")?.events("how much is 100 CAD in GBP?").await?;
    let said = |index: usize| {
        events.get(index).and_then(|event| event.data.text("result.status.message.parts.0.text").ok())
    };
    let progress: Vec<&str> = (0..events.len()).filter_map(said).collect();
    let has = |word: &str| progress.iter().any(|text| text.to_lowercase().contains(word));
    if !has("looking up") || !has("processing") {
        return Err(wrong("looking up, processing", progress.join(", ")));
    }
    let artifact = events.iter().position(|event| event.data.find("result.artifact").is_some());
    let behind = artifact.is_some_and(|place| place + 2 == events.len());
    if behind && states(&events).last() == Some(&"completed") {
        return Ok(());
    }
    Err(wrong("the artifact, then completed", states(&events).join(", ")))
}

/// The id belongs to the caller; who has used it before asks again, and a task that waits is answered.
pub(super) async fn short_id(at: &Fixture) -> Checked {
    let answer = asked(at, "129", "").await?;
    answer.is("result.id", "129")?;
    answer.state("completed")?;
    at.root("currency")?.get("129").await?.is("result.id", "129")
}

pub(super) async fn session_made(at: &Fixture) -> Checked {
    asked(at, &fresh(), "").await?.filled("result.sessionId")?;
    Ok(())
}

/// Our own servers start with an empty environment, so there is no key they could use.
pub(super) async fn no_key(at: &Fixture) -> Checked {
    let answer = asked(at, &fresh(), "").await?;
    answer.state("completed")?;
    let text = answer.text("result.artifacts.0.parts.0.text")?;
    answer.must(text.chars().any(|c| c.is_ascii_digit()), "a rate")
}
