//! S4: the profile `agentos` (AgentOS). The draft with the spelling `cancelled` and the whole history in responses.

use super::{
    Check, CheckError, CheckResult, agents,
    fixture::{Fixture, MANY_SKILLS},
    http::Response,
    json::{ValueChecks as _, quote},
    mismatch,
    test_client::{request, states, text, unique_id},
    wire,
};

/// The checks, by the number of their requirement.
pub(crate) const CHECKS: &[(u16, Check)] = &[
    (2, agents!(json_rpc)),
    (3, wire!(card_path)),
    (4, agents!(life_cycle)),
    (5, agents!(several_turns, on [Builtin, Mcp, Command])),
    (6, wire!(many_skills)),
    (7, wire!(card_members)),
    (17, agents!(six_states, on [Builtin, Mcp, Command])),
    (18, agents!(messages_and_parts, until 17 [Mcp, Http, Command])),
    (19, agents!(send_returns_task)),
    (20, agents!(get_returns_task)),
    (21, agents!(cancel_working)),
    (22, agents!(history, on [Builtin, Mcp, Command])),
    (33, wire!(card_served)),
    (43, agents!(agent_message)),
];

/// How fast it is, is measured by the proof `many_skills`.
async fn many_skills(at: &Fixture) -> CheckResult {
    let program = at.many_skills_server().await?;
    let server = &program.server;
    let card = server.get("/.well-known/agent.json", &[]).await?;
    let skills = card.list("skills")?;
    card.ensure(skills.len() == MANY_SKILLS, "15,000 skills")?;
    let id = skills[MANY_SKILLS * 2 / 3].text("id")?;
    let found = server.get(&format!("/.well-known/agents.json?q={id}"), &[]).await?;
    found.is("agents.0.skillCount", MANY_SKILLS)?;
    found.is("agents.0.skills.0.id", id)?;
    let params =
        format!(r#"{{"id":{},"skill":{},"message":{}}}"#, quote(&unique_id()), quote(id), text("hello"));
    server.post("/", &request("tasks/send", &params)).await?.has_state("completed")?;
    Ok(())
}

async fn json_rpc(at: &Fixture) -> CheckResult {
    let (_, response) = at.agentos("echo").send_text("hello").await?;
    response.is("jsonrpc", "2.0")?;
    response.is("id", 1)?;
    response.has_state("completed")?;
    Ok(())
}

async fn card_path(at: &Fixture) -> CheckResult {
    at.draft_card().await?.non_empty("name")?;
    at.card("agentos", "agent.json").await?.non_empty("name")?;
    Ok(())
}

async fn life_cycle(at: &Fixture) -> CheckResult {
    let (_, events) = at.agentos("echo").events("hello").await?;
    let seen = states(&events);
    if seen != ["submitted", "working", "completed"] {
        return Err(mismatch("submitted, working, completed", seen.join(", ")));
    }
    at.agentos("tck").send_text("a2ad-fail").await?.1.has_state("failed")?;
    Ok(())
}

/// A task with a question, a request for input and the input; returns the task's id and the last response.
async fn conversation(at: &Fixture) -> Result<(String, Response), CheckError> {
    let client = at.agentos("currency");
    let (task, question) = client.send_text("how much is 1 USD?").await?;
    question.has_state("input-required")?;
    let response = client.send(&task, &text("in INR"), "").await?;
    response.has_state("completed")?;
    Ok((task, response))
}

async fn several_turns(at: &Fixture) -> CheckResult {
    let (task, sent) = conversation(at).await?;
    let got = at.agentos("currency").get(&task).await?;
    for response in [sent, got] {
        response.is("result.history.0.parts.0.text", "how much is 1 USD?")?;
        response.is("result.history.1.role", "agent")?;
        response.is("result.history.2.parts.0.text", "in INR")?;
    }
    Ok(())
}

async fn card_members(at: &Fixture) -> CheckResult {
    let card = at.card("agentos", "agent.json").await?;
    card.non_empty("name")?;
    card.non_empty("description")?;
    card.ensure(card.text("url")?.ends_with("/a2a/agentos"), "a url that is the endpoint")?;
    card.is_json("capabilities.tools", r#"["slow-writer"]"#)?;
    card.is("capabilities.streaming", true)?;
    card.is("capabilities.pushNotifications", true)?;
    for skill in card.list("skills")? {
        skill.non_empty("id")?;
        skill.non_empty("name")?;
        skill.non_empty("description")?;
    }
    card.is_json("authentication.schemes", r#"["bearer"]"#)?;
    card.is_json("defaultInputModes", r#"["text"]"#)?;
    card.is_json("defaultOutputModes", r#"["text"]"#)
}

async fn six_states(at: &Fixture) -> CheckResult {
    let (echo, currency) = (at.agentos("echo"), at.agentos("currency"));
    let (_, events) = echo.events("hello").await?;
    let seen = states(&events);
    if seen != ["submitted", "working", "completed"] {
        return Err(mismatch("submitted, working, completed", seen.join(", ")));
    }
    currency.send_text("how much is 1 USD?").await?.1.has_state("input-required")?;
    at.agentos("tck").send_text("a2ad-fail").await?.1.has_state("failed")?;
    let (task, _) = echo.send_async("hold").await?;
    echo.cancel(&task).await?.has_state("cancelled")?;
    echo.get(&task).await?.has_state("cancelled")?;
    Ok(())
}

async fn messages_and_parts(at: &Fixture) -> CheckResult {
    let parts = r#"[{"type":"text","text":"Analyze this"},
        {"type":"file","file":{"name":"q4.csv","mimeType":"text/csv","bytes":"YSxiCg=="}},
        {"type":"data","data":{"priority":"high"}}]"#;
    let message = format!(r#"{{"role":"user","parts":{parts}}}"#);
    let response = at.agentos("echo").send(&unique_id(), &message, "").await?;
    response.is("result.history.0.role", "user")?;
    response.is_json("result.history.0.parts", parts)?;
    response.is_json("result.artifacts.0.parts", parts)?;
    let (_, question) = at.agentos("currency").send_text("how much is 1 USD?").await?;
    question.is("result.status.message.role", "agent")
}

async fn send_returns_task(at: &Fixture) -> CheckResult {
    let (task, session) = (unique_id(), unique_id());
    let more = format!(r#","sessionId":"{session}","metadata":{{"priority":"high"}}"#);
    let response = at.agentos("echo").send(&task, &text("echo"), &more).await?;
    response.is("result.id", &task)?;
    response.is("result.sessionId", &session)?;
    response.has_state("completed")?;
    response.is("result.artifacts.0.parts.0.text", "echo")?;
    // The task belongs to the default agent and can be read at its other paths.
    at.root("echo").get(&task).await?.is("result.id", &task)
}

async fn get_returns_task(at: &Fixture) -> CheckResult {
    let client = at.agentos("echo");
    let (task, sent) = client.send_text("hello").await?;
    let got = client.get(&task).await?;
    got.is("result", sent.at("result")?)?;
    client.get(&unique_id()).await?.has_error_code(-32001)?;
    Ok(())
}

async fn cancel_working(at: &Fixture) -> CheckResult {
    let client = at.agentos("echo");
    let (task, begun) = client.send_async("hold").await?;
    begun.has_state("working")?;
    client.cancel(&task).await?.has_state("cancelled")?;
    client.cancel(&task).await?.has_error_code(-32002)?;
    Ok(())
}

async fn history(at: &Fixture) -> CheckResult {
    let (_, response) = conversation(at).await?;
    let roles: Result<Vec<&str>, CheckError> =
        response.list("result.history")?.iter().map(|message| message.text("role")).collect();
    response.ensure(roles?.starts_with(&["user", "agent", "user"]), "user, agent, user")
}

async fn card_served(at: &Fixture) -> CheckResult {
    let card = at.draft_card().await?;
    let kind = card.header("content-type").unwrap_or_default();
    card.ensure(kind.starts_with("application/json"), "content-type: application/json")?;
    card.non_empty("url")?;
    card.at("capabilities")?;
    card.ensure(card.count("skills") > 0, "skills")
}

async fn agent_message(at: &Fixture) -> CheckResult {
    let (_, response) = at.agentos("echo").send_text("hello").await?;
    response.has_state("completed")?;
    response.is("result.status.message.parts.0.text", "hello")?;
    response.is("result.history.1.parts.0.text", "hello")?;
    response.ensure(response.at("result.createdAt")?.is_u64(), "createdAt in milliseconds")
}
