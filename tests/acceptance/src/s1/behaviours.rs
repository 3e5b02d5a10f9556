//! The ways in which an agent may handle a request, each shown by one built-in agent.

use crate::{CheckResult, fixture::Fixture, json::ValueChecks as _, test_client::text};

pub(super) async fn all(at: &Fixture) -> CheckResult {
    responds(at).await?;
    schedules(at).await?;
    rejects(at).await?;
    negotiates(at).await?;
    asks(at).await?;
    delegates(at).await
}

/// The task is completed in the response.
async fn responds(at: &Fixture) -> CheckResult {
    let (_, response) = at.root("echo").send_text("hello").await?;
    response.has_state("completed")?;
    response.is("result.artifacts.0.parts.0.text", "hello")
}

/// The status announces the time of completion, and the task is completed later.
async fn schedules(at: &Fixture) -> CheckResult {
    let client = at.root("reminder");
    let (task, accepted) = client.send_async("stretch in=300ms").await?;
    accepted.ensure(
        accepted.has_state("working").or(accepted.has_state("submitted")).is_ok(),
        "a task that is not finished",
    )?;
    let is_scheduled = |response: &crate::http::Response| {
        response.text("result.status.message.parts.0.text").is_ok_and(|text| text.starts_with("Scheduled"))
    };
    client.poll_until(&task, "a scheduled status message", is_scheduled).await?.has_state("working")?;
    let done = client.poll_until_state(&task, "completed").await?;
    done.is("result.artifacts.0.parts.0.text", "Remember: stretch")
}

/// The draft has no state `rejected`: the state is `failed`, and the task's metadata holds `rejected`.
async fn rejects(at: &Fixture) -> CheckResult {
    let client = at.root("adder");
    client.send_text("1 + 2 + 39").await?.1.is("result.artifacts.0.parts.0.text", "42")?;
    let (_, response) = client.send_text("sing").await?;
    response.has_state("failed")?;
    response.is("result.metadata.a2ad.state", "rejected")?;
    response.non_empty("result.status.message.parts.0.text")?;
    Ok(())
}

/// The agent offers its output modes, and the client chooses one.
async fn negotiates(at: &Fixture) -> CheckResult {
    let client = at.root("plotter");
    let (task, offered) = client.send_text("3 1 2 as png").await?;
    offered.has_state("input-required")?;
    offered
        .is_json("result.status.message.parts.1.data.offeredModes", r#"["text/plain","image/svg+xml"]"#)?;
    let drawn = client.send(&task, &text("svg"), "").await?;
    drawn.has_state("completed")?;
    drawn.is("result.artifacts.0.parts.0.file.mimeType", "image/svg+xml")
}

async fn asks(at: &Fixture) -> CheckResult {
    let client = at.root("approver");
    let (task, question) = client.send_text("delete the old backups").await?;
    question.has_state("input-required")?;
    client.send(&task, &text("approve"), "").await?.has_state("completed")?;
    Ok(())
}

/// The artifact of another agent becomes part of the called agent's task.
async fn delegates(at: &Fixture) -> CheckResult {
    let (task, response) = at.root("clerk").send_text("10 USD in INR").await?;
    response.is("result.id", &task)?;
    response.has_state("completed")?;
    let artifact = response.text("result.artifacts.0.parts.0.text")?;
    response.ensure(artifact.contains("INR"), "the currency agent's result")?;
    let status = response.text("result.status.message.parts.0.text")?;
    response.ensure(status.contains("currency agent"), "the name of the delegate")
}
