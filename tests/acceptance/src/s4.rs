//! S4: the profile `agentos` (AgentOS). The draft with the spelling `cancelled` and the whole history in responses.

use super::{
    CheckError, CheckResult, Group, Item, agents,
    fixture::{Fixture, MANY_SKILLS},
    http::Response,
    json::{ValueChecks as _, quote},
    mismatch, not_yet, test,
    test_client::{request, states, text, unique_id},
    wire,
};

pub(crate) const GROUP: Group = Group { name: "S4", items: ITEMS };

const ITEMS: &[Item] = &[
    not_yet(1, "instances discover each other and delegate tasks", 21),
    agents!(2, "requests and responses are JSON-RPC 2.0", json_rpc),
    wire!(3, "the card is at /.well-known/agent.json", card_path),
    agents!(4, "a task is submitted, then working, then completed or failed", life_cycle),
    agents!(5, "a task with several turns returns the history of all messages", several_turns, on [Builtin, Mcp, Command]),
    wire!(6, "15,000 skills are on the card, can be searched and can be called", many_skills),
    wire!(7, "the card has every member that the profile agentos defines", card_members),
    not_yet(8, "discover fetches a card and caches it", 21),
    not_yet(9, "a second discover uses the cache and sends no request", 21),
    not_yet(10, "a client can list the skills and schemes of a card", 20),
    not_yet(11, "send_task returns the task as the remote agent returned it", 21),
    not_yet(12, "a sent task is also stored locally", 21),
    not_yet(13, "a plain string is accepted as a message", 20),
    not_yet(14, "metadata is forwarded to the remote agent", 21),
    not_yet(15, "get_task asks the remote agent, or reads the local copy", 21),
    not_yet(16, "cancel_task cancels a remote task", 21),
    agents!(17, "six states can be reached, and the state of a canceled task is spelled cancelled", six_states, on [Builtin, Mcp, Command]),
    agents!(18, "messages have the roles user and agent, and parts are text, file and data", messages_and_parts, on [Builtin], until 17 [Mcp, Http, Command]),
    agents!(
        19,
        "POST /a2a/rpc tasks/send creates a task of the default agent and returns its result",
        send_returns_task
    ),
    agents!(20, "tasks/get returns the task, and -32001 for an unknown id", get_returns_task),
    agents!(21, "tasks/cancel cancels a working task, and a second cancel is -32002", cancel_working),
    agents!(22, "the history has the messages of both roles in order", history, on [Builtin, Mcp, Command]),
    not_yet(23, "three agents can be called concurrently", 20),
    not_yet(24, "the client polls with backoff and a deadline", 20),
    not_yet(25, "agent_card creates a card and stores it", 21),
    not_yet(26, "a card created by agent_card is served", 21),
    not_yet(27, "list_cards returns all cards", 21),
    test(
        28,
        "the number of stored tasks is limited, and the oldest finished tasks are deleted first",
        "crates/engine/tests/operations/retention.rs::max_tasks_purges_the_oldest_finished_tasks",
    ),
    not_yet(29, "POST /api/a2a/discover fetches a remote card", 21),
    not_yet(30, "POST /api/a2a/send sends a task to a remote agent", 21),
    not_yet(31, "GET /api/a2a/task returns a remote task", 21),
    not_yet(32, "POST /api/a2a/cancel cancels a remote task", 21),
    wire!(33, "GET /.well-known/agent.json returns url, capabilities and skills as JSON", card_served),
    not_yet(34, "GET /api/a2a/cards lists the stored cards", 21),
    not_yet(35, "discover and cancel need no Content-Type", 21),
    test(
        36,
        "URLs inside the private network are never fetched",
        "crates/a2ad/tests/guard/addresses.rs::forbidden_urls_are_refused",
    ),
    test(
        37,
        "task methods require a bearer token",
        "crates/inbound/tests/socket/access.rs::agent_that_requires_credential_rejects_calls",
    ),
    test(
        38,
        "calls are rate limited",
        "crates/inbound/tests/socket/rate_limits.rs::refusals_have_the_form_of_the_binding_and_dialect",
    ),
    not_yet(39, "cards are fetched over HTTPS and their signatures are verified", 24),
    not_yet(40, "outbound calls support sessions, timeouts, retries and skills", 20),
    not_yet(41, "remote agents work together with local agents and MCP", 22),
    not_yet(42, "a sent task records the remote agent it was sent to", 21),
    agents!(43, "completed tasks have the agent's message in status and history, and createdAt", agent_message, on [], until 17 [Builtin, Mcp, Http, Command]),
    not_yet(
        44,
        "at most 1,000 finished tasks are kept unless configured, and the oldest goes within 5 seconds",
        17,
    ),
    not_yet(45, "GET task without agentUrl asks the agent that the task was sent to", 21),
    not_yet(
        46,
        "cards over plain HTTP from elsewhere are a warning, or a refusal where cards must be verified",
        24,
    ),
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
