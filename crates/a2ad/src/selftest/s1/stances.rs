//! What an agent may do with what it is asked: one built-in agent for each.

use crate::selftest::{Checked, door::text, fixture::Fixture};

pub(super) async fn all(at: &Fixture) -> Checked {
    answers(at).await?;
    schedules(at).await?;
    rejects(at).await?;
    negotiates(at).await?;
    asks(at).await?;
    delegates(at).await
}

/// Done in the answer itself.
async fn answers(at: &Fixture) -> Checked {
    let (_, answer) = at.root("echo")?.say("hello").await?;
    answer.state("completed")?;
    answer.is("result.artifacts.0.parts.0.text", "hello")
}

/// Says at once when it will be done, and keeps its word.
async fn schedules(at: &Fixture) -> Checked {
    let door = at.root("reminder")?;
    let (task, promised) = door.begin("stretch in=300ms").await?;
    promised.must(promised.state("working").or(promised.state("submitted")).is_ok(), "a task that waits")?;
    let has_promise = |answer: &crate::selftest::http::Answer| {
        answer.text("result.status.message.parts.0.text").is_ok_and(|text| text.starts_with("Scheduled"))
    };
    door.until(&task, "a promise", has_promise).await?.state("working")?;
    let done = door.until_state(&task, "completed").await?;
    done.is("result.artifacts.0.parts.0.text", "Remember: stretch")
}

/// The draft has no word for it but failed; the task's metadata has the right one.
async fn rejects(at: &Fixture) -> Checked {
    let door = at.root("adder")?;
    door.say("1 + 2 + 39").await?.1.is("result.artifacts.0.parts.0.text", "42")?;
    let (_, answer) = door.say("sing").await?;
    answer.state("failed")?;
    answer.is("result.metadata.a2ad.state", "rejected")?;
    answer.filled("result.status.message.parts.0.text")?;
    Ok(())
}

/// Offers the forms it has, and gives the one that is chosen.
async fn negotiates(at: &Fixture) -> Checked {
    let door = at.root("plotter")?;
    let (task, offered) = door.say("3 1 2 as png").await?;
    offered.state("input-required")?;
    offered.reads("result.status.message.parts.1.data.offeredModes", r#"["text/plain","image/svg+xml"]"#)?;
    let drawn = door.send(&task, &text("svg"), "").await?;
    drawn.state("completed")?;
    drawn.is("result.artifacts.0.parts.0.file.mimeType", "image/svg+xml")
}

async fn asks(at: &Fixture) -> Checked {
    let door = at.root("approver")?;
    let (task, question) = door.say("delete the old backups").await?;
    question.state("input-required")?;
    door.send(&task, &text("approve"), "").await?.state("completed")?;
    Ok(())
}

/// Another agent's artifact, in the task of the one that was asked.
async fn delegates(at: &Fixture) -> Checked {
    let (task, answer) = at.root("clerk")?.say("10 USD in INR").await?;
    answer.is("result.id", &task)?;
    answer.state("completed")?;
    let made = answer.text("result.artifacts.0.parts.0.text")?;
    answer.must(made.contains("INR"), "what the currency agent says")?;
    let signed = answer.text("result.status.message.parts.0.text")?;
    answer.must(signed.contains("currency agent"), "a word about who did it")
}
