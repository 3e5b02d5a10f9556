//! S4: AgentOS. The first draft with two l and the whole history.

use super::{
    Checked, Item, Seed,
    Step::{Bindings, Client, Identity, Orchestration, Push, Tools},
    Trouble,
    door::{fresh, states, text},
    fixture::Fixture,
    http::Answer,
    not_yet, test, wire, wrong,
};

pub(super) const SEED: Seed = Seed { name: "S4", items: ITEMS };

const ITEMS: &[Item] = &[
    not_yet(1, "instances discover each other and delegate", Client),
    wire!(2, "JSON-RPC 2.0", json_rpc),
    wire!(3, "the card is at /.well-known/agent.json", card_path),
    wire!(4, "submitted, working, then completed or failed", life_cycle),
    wire!(5, "several turns with the history of what was said", several_turns),
    not_yet(6, "a card and a search over 15,000 skills stay fast", Tools),
    wire!(7, "the card has every member of the house", card_members),
    not_yet(8, "discover fetches a card and keeps it", Client),
    not_yet(9, "a second discover asks nobody", Client),
    not_yet(10, "a client lists skills and schemes", Client),
    not_yet(11, "send_task gives the task as it was sent", Client),
    not_yet(12, "a sent task is kept here too", Client),
    not_yet(13, "a plain string is a message", Client),
    not_yet(14, "metadata is carried", Client),
    not_yet(15, "get_task asks the remote, or reads the copy", Client),
    not_yet(16, "cancel_task", Client),
    wire!(17, "six states, of which cancelled has two l", six_states),
    wire!(18, "messages of user and agent; text, file and data parts", messages_and_parts),
    wire!(19, "POST /a2a/rpc tasks/send makes a task of the default agent and gives its answer", sends),
    wire!(20, "tasks/get", gets),
    wire!(21, "tasks/cancel", cancels),
    wire!(22, "the status moves on, and the history has both sides", history),
    not_yet(23, "three agents asked at a time", Client),
    not_yet(24, "polling with back-off and an end", Client),
    not_yet(25, "agent_card makes a card and keeps it", Client),
    not_yet(26, "which is then served", Client),
    not_yet(27, "list_cards gives all cards", Client),
    test(
        28,
        "only so many tasks are kept, and the oldest go first",
        "crates/engine/tests/operations/retention.rs::only_so_many_finished_tasks_are_kept_and_the_oldest_go_first",
    ),
    not_yet(29, "POST /api/a2a/discover", Client),
    not_yet(30, "POST /api/a2a/send", Client),
    not_yet(31, "GET /api/a2a/task", Client),
    not_yet(32, "POST /api/a2a/cancel", Client),
    wire!(33, "GET /.well-known/agent.json", card_served),
    not_yet(34, "GET /api/a2a/cards", Client),
    not_yet(35, "discover and cancel need no Content-Type", Client),
    not_yet(36, "nothing is fetched from inside the network", Push),
    not_yet(37, "tasks need a bearer", Identity),
    not_yet(38, "calls are limited in number", Identity),
    not_yet(39, "cards over HTTPS, their signatures checked", Bindings),
    not_yet(40, "sessions, time-outs, retries and skills in daily use", Client),
    not_yet(41, "together with local agents and MCP", Orchestration),
    not_yet(42, "a sent task remembers where it went", Client),
];

async fn json_rpc(at: &Fixture) -> Checked {
    let (_, answer) = at.agentos("echo")?.say("hello").await?;
    answer.is("jsonrpc", "2.0")?;
    answer.is("id", 1)?;
    answer.state("completed")?;
    Ok(())
}

async fn card_path(at: &Fixture) -> Checked {
    at.old_card().await?.filled("name")?;
    at.card("agentos", "agent.json").await?.filled("name")?;
    Ok(())
}

async fn life_cycle(at: &Fixture) -> Checked {
    let (_, events) = at.agentos("echo")?.events("hello").await?;
    let seen = states(&events);
    if seen != ["submitted", "working", "completed"] {
        return Err(wrong("submitted, working, completed", seen.join(", ")));
    }
    at.agentos("tck")?.say("a2ad-fail").await?.1.state("failed")?;
    Ok(())
}

/// Asks, is asked back, answers; gives the task's id and the last answer.
async fn conversation(at: &Fixture) -> Result<(String, Answer), Trouble> {
    let door = at.agentos("currency")?;
    let (task, question) = door.say("how much is 1 USD?").await?;
    question.state("input-required")?;
    let answer = door.send(&task, &text("in INR"), "").await?;
    answer.state("completed")?;
    Ok((task, answer))
}

async fn several_turns(at: &Fixture) -> Checked {
    let (task, sent) = conversation(at).await?;
    let got = at.agentos("currency")?.get(&task).await?;
    for answer in [sent, got] {
        answer.is("result.history.0.parts.0.text", "how much is 1 USD?")?;
        answer.is("result.history.1.role", "agent")?;
        answer.is("result.history.2.parts.0.text", "in INR")?;
    }
    Ok(())
}

async fn card_members(at: &Fixture) -> Checked {
    let card = at.card("agentos", "agent.json").await?;
    card.filled("name")?;
    card.filled("description")?;
    card.must(card.text("url")?.ends_with("/a2a/agentos"), "a url that is the endpoint")?;
    card.reads("capabilities.tools", r#"["slow-writer"]"#)?;
    card.is("capabilities.streaming", true)?;
    card.is("capabilities.pushNotifications", false)?;
    for skill in card.list("skills")? {
        skill.filled("id")?;
        skill.filled("name")?;
        skill.filled("description")?;
    }
    card.reads("authentication.schemes", r#"["bearer"]"#)?;
    card.reads("defaultInputModes", r#"["text"]"#)?;
    card.reads("defaultOutputModes", r#"["text"]"#)
}

async fn six_states(at: &Fixture) -> Checked {
    let (echo, currency) = (at.agentos("echo")?, at.agentos("currency")?);
    let (_, events) = echo.events("hello").await?;
    let seen = states(&events);
    if seen != ["submitted", "working", "completed"] {
        return Err(wrong("submitted, working, completed", seen.join(", ")));
    }
    currency.say("how much is 1 USD?").await?.1.state("input-required")?;
    at.agentos("tck")?.say("a2ad-fail").await?.1.state("failed")?;
    let (task, _) = echo.begin("hold").await?;
    echo.cancel(&task).await?.state("cancelled")?;
    echo.get(&task).await?.state("cancelled")?;
    Ok(())
}

async fn messages_and_parts(at: &Fixture) -> Checked {
    let parts = r#"[{"type":"text","text":"Analyze this"},
        {"type":"file","file":{"name":"q4.csv","mimeType":"text/csv","bytes":"YSxiCg=="}},
        {"type":"data","data":{"priority":"high"}}]"#;
    let message = format!(r#"{{"role":"user","parts":{parts}}}"#);
    let answer = at.agentos("echo")?.send(&fresh(), &message, "").await?;
    answer.is("result.history.0.role", "user")?;
    answer.reads("result.history.0.parts", parts)?;
    answer.reads("result.artifacts.0.parts", parts)?;
    let (_, asked) = at.agentos("currency")?.say("how much is 1 USD?").await?;
    asked.is("result.status.message.role", "agent")
}

async fn sends(at: &Fixture) -> Checked {
    let (task, session) = (fresh(), fresh());
    let more = format!(r#","sessionId":"{session}","metadata":{{"priority":"high"}}"#);
    let answer = at.agentos("echo")?.send(&task, &text("echo"), &more).await?;
    answer.is("result.id", &task)?;
    answer.is("result.sessionId", &session)?;
    answer.state("completed")?;
    answer.is("result.artifacts.0.parts.0.text", "echo")?;
    // The default agent has it, wherever one asks for it.
    at.root("echo")?.get(&task).await?.is("result.id", &task)
}

async fn gets(at: &Fixture) -> Checked {
    let door = at.agentos("echo")?;
    let (task, sent) = door.say("hello").await?;
    let got = door.get(&task).await?;
    got.is("result", sent.at("result")?)?;
    door.get(&fresh()).await?.fails(-32001)?;
    Ok(())
}

async fn cancels(at: &Fixture) -> Checked {
    let door = at.agentos("echo")?;
    let (task, begun) = door.begin("hold").await?;
    begun.state("working")?;
    door.cancel(&task).await?.state("cancelled")?;
    door.cancel(&task).await?.fails(-32002)?;
    Ok(())
}

async fn history(at: &Fixture) -> Checked {
    let (_, answer) = conversation(at).await?;
    let roles: Result<Vec<&str>, Trouble> =
        answer.list("result.history")?.iter().map(|message| message.text("role")).collect();
    answer.must(roles?.starts_with(&["user", "agent", "user"]), "user, agent, user")
}

async fn card_served(at: &Fixture) -> Checked {
    let card = at.old_card().await?;
    let kind = card.header("content-type").unwrap_or_default();
    card.must(kind.starts_with("application/json"), "content-type: application/json")?;
    card.filled("url")?;
    card.at("capabilities")?;
    card.must(card.count("skills") > 0, "skills")
}
