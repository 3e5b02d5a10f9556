//! S0: fold.run. Skills called with bare arguments in the words of the first draft.

use std::time::Duration;

use super::{
    Checked, Item, Seed,
    Step::{Bindings, Guardrails, Orchestration, Tools},
    Trouble,
    door::{Door, ends_well, fresh, states, text},
    fixture::Fixture,
    json::Json,
    not_yet, wire, wrong,
};

pub(super) const SEED: Seed = Seed { name: "S0", items: ITEMS };

const ITEMS: &[Item] = &[
    not_yet(1, "one tool in the file is enough for a card and an endpoint", Tools),
    not_yet(2, "the host names the tenant, and each has its own card", Bindings),
    not_yet(3, "the tenant's card is at /.well-known/agent.json for everybody", Bindings),
    not_yet(4, "skills on the card come and go with the tools", Tools),
    not_yet(5, "the card's name is brand and tenant", Bindings),
    not_yet(6, "the description says how many tools there are", Tools),
    not_yet(7, "the card's url is the tenant's origin", Bindings),
    not_yet(8, "the card's version is 0.1.0 unless it is said", Tools),
    not_yet(9, "a card of tools says that it streams", Tools),
    not_yet(10, "a card of tools says that it does not push", Tools),
    not_yet(11, "each tool is a skill with its name and description", Tools),
    not_yet(12, "a tool's skill takes and gives application/json", Tools),
    not_yet(13, "a card of tools takes and gives application/json", Tools),
    wire!(14, "POST /_a2a/ takes JSON-RPC, with and without the last slash", both_paths),
    wire!(15, "a named skill runs with the message as its arguments, unchanged", exact_arguments),
    not_yet(16, "a tenant may let anybody in", Bindings),
    wire!(17, "the answer has the request's id, and a string stays a string", same_id),
    wire!(18, "the result is a task: an id that begins with task_, a status, artifacts", result_is_a_task),
    wire!(19, "what is done at once is completed in the same answer", completed_at_once),
    wire!(20, "the artifact's name is the skill's with -result", artifact_name),
    wire!(21, "the artifact is one text part: the result as JSON", result_as_text),
    wire!(22, "tasks/get gives status and artifacts of an earlier task", earlier_task),
    wire!(23, "tasks/cancel of a working task makes it canceled and stops the work", cancel_stops),
    wire!(24, "a submitted task can be cancelled, one that is over cannot", cancel_where_it_can),
    wire!(25, "submitted, working, completed, failed and canceled can all be reached", all_states),
    wire!(26, "a task that waits for its turn is submitted", waits_its_turn),
    wire!(27, "a completed task has artifacts", completed_has_artifacts),
    wire!(28, "a skill's error makes the task failed", error_fails),
    wire!(29, "a finished task is gone when its time is over, which is a day unless it is said", forgotten),
    wire!(30, "send, sendSubscribe, get and cancel are served", four_methods),
    wire!(31, "tasks/sendSubscribe streams statuses and artifacts while the skill runs", streams),
    wire!(32, "a malformed request is -32600", malformed),
    wire!(33, "an unknown method is -32601", unknown_method),
    wire!(34, "an unknown skill is -32602", unknown_skill),
    wire!(35, "a crash is -32603", crash),
    not_yet(36, "an active pipeline is a skill on the card", Orchestration),
    not_yet(37, "only active pipelines are", Orchestration),
    not_yet(38, "a pipeline runs by its skill", Orchestration),
    not_yet(39, "steps, mappings, parallel groups and run history of pipelines", Orchestration),
    not_yet(40, "guardrails check what goes in", Guardrails),
    not_yet(41, "guardrails check what comes out", Guardrails),
    not_yet(42, "what is blocked is an error and does not run", Guardrails),
    not_yet(43, "every kind of check, target and action of guardrails", Guardrails),
    not_yet(44, "one function by MCP, A2A and plain HTTP", Tools),
    not_yet(45, "the three doors give the same result and one trail", Tools),
    not_yet(46, "a function's stream passes through unbuffered", Tools),
];

/// The parameters of a call with bare arguments, without an id of the client's.
fn arguments(skill: &str, arguments: &str) -> String {
    format!(r#"{{"skill":"{skill}","message":{arguments}}}"#)
}

const CITY: &str = r#"{"city":"San Francisco"}"#;

async fn both_paths(at: &Fixture) -> Checked {
    let fold = at.fold("echo")?;
    for path in ["/_a2a/", "/_a2a"] {
        let door = Door { path: path.into(), ..fold.clone() };
        let answer = door.call("tasks/send", &arguments("echo", CITY)).await?;
        answer.has_status(200)?;
        answer.is("jsonrpc", "2.0")?;
        answer.state("completed")?;
        let kind = answer.header("content-type").unwrap_or_default();
        answer.must(kind.starts_with("application/json"), "content-type: application/json")?;
    }
    Ok(())
}

async fn exact_arguments(at: &Fixture) -> Checked {
    let given =
        r#"{"city":"San Francisco","n":1.50,"big":12345678901234567890,"deep":[{"a":null}],"é":"\u0041"}"#;
    let answer = at.fold("echo")?.call("tasks/send", &arguments("echo", given)).await?;
    let got = answer.text("result.artifacts.0.parts.0.text")?;
    let (given, got) = (Json::parse(given)?, Json::parse(got)?);
    if given == got { Ok(()) } else { Err(wrong(given, got)) }
}

async fn same_id(at: &Fixture) -> Checked {
    let fold = at.fold("echo")?;
    for id in [r#""1""#, r#""a-b""#, "1", "-7"] {
        let params = arguments("echo", CITY);
        let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tasks/send","params":{params}}}"#);
        fold.post(&body).await?.reads("id", id)?;
    }
    Ok(())
}

async fn result_is_a_task(at: &Fixture) -> Checked {
    let answer = at.fold("echo")?.call("tasks/send", &arguments("echo", CITY)).await?;
    let id = answer.text("result.id")?;
    answer.must(id.starts_with("task_"), "an id that begins with task_")?;
    answer.filled("result.status.state")?;
    answer.must(answer.count("result.artifacts") > 0, "artifacts")
}

async fn completed_at_once(at: &Fixture) -> Checked {
    at.fold("echo")?.call("tasks/send", &arguments("echo", CITY)).await?.state("completed")?;
    Ok(())
}

/// Whatever agent is behind the skill, and whatever the skill is called.
async fn artifact_name(at: &Fixture) -> Checked {
    let others: &[_] = if at.is_ours() { RESULTS } else { &[] };
    for (skill, said) in [&("echo", "hello")].into_iter().chain(others) {
        let door = at.fold(skill)?;
        let (task, sent) = door.say(said).await?;
        sent.state("completed")?;
        for answer in [sent, door.get(&task).await?] {
            answer.is("result.artifacts.0.name", format!("{skill}-result").as_str())?;
        }
    }
    Ok(())
}

/// Skills of our own server and what each makes something of.
const RESULTS: &[(&str, &str)] = &[
    ("greet", "good day"),
    ("currency", "1 USD in INR"),
    ("slow-writer", "the sea sections=2 delay=1ms"),
    ("adder", "1 + 2"),
    ("plotter", "3 1 2"),
    ("reminder", "stretch in=1ms"),
    ("clerk", "1 USD in INR"),
];

async fn result_as_text(at: &Fixture) -> Checked {
    let answer = at.fold("echo")?.call("tasks/send", &arguments("echo", CITY)).await?;
    answer.must(answer.count("result.artifacts.0.parts") == 1, "one part")?;
    answer.is("result.artifacts.0.parts.0.type", "text")?;
    Json::parse(answer.text("result.artifacts.0.parts.0.text")?)?.is("city", "San Francisco")
}

async fn earlier_task(at: &Fixture) -> Checked {
    let fold = at.fold("echo")?;
    let sent = fold.call("tasks/send", &arguments("echo", CITY)).await?;
    let got = fold.get(sent.text("result.id")?).await?;
    got.is("result.id", sent.at("result.id")?)?;
    got.is("result.status", sent.at("result.status")?)?;
    got.is("result.artifacts", sent.at("result.artifacts")?)
}

async fn cancel_stops(at: &Fixture) -> Checked {
    let writer = at.fold("slow-writer")?;
    let (task, _) = writer.begin("the sea sections=200 delay=20ms").await?;
    writer.until(&task, "a first section", |task| task.count("result.artifacts") > 0).await?;
    writer.cancel(&task).await?.state("canceled")?;
    // A section that was on its way may still have been under the same commit; none is written any more.
    let after = writer.get(&task).await?;
    after.state("canceled")?;
    tokio::time::sleep(Duration::from_millis(120)).await;
    writer.get(&task).await?.is("result", after.at("result")?)
}

/// A task that holds its slot. It may have had to wait for one that was just being left.
async fn held(echo: &Door) -> Result<String, Trouble> {
    let (task, _) = echo.begin("hold").await?;
    echo.until_state(&task, "working").await?;
    Ok(task)
}

async fn cancel_where_it_can(at: &Fixture) -> Checked {
    let narrow = at.narrow().await?;
    let echo = narrow.fold("echo");
    let first = held(&echo).await?;
    let (second, answer) = echo.begin("hold").await?;
    answer.state("submitted")?;
    echo.cancel(&second).await?.state("canceled")?;
    echo.cancel(&first).await?.state("canceled")?;
    echo.cancel(&second).await?.fails(-32002)?;
    let (completed, _) = echo.say("hello").await?;
    echo.cancel(&completed).await?.fails(-32002)?;
    echo.get(&completed).await?.state("completed")?;
    let tck = at.fold("tck")?;
    let (failed, _) = tck.say("a2ad-fail").await?;
    tck.cancel(&failed).await?.fails(-32002)?;
    Ok(())
}

async fn all_states(at: &Fixture) -> Checked {
    let (echo, tck) = (at.fold("echo")?, at.fold("tck")?);
    let (_, events) = echo.events("hello").await?;
    let seen = states(&events);
    if seen != ["submitted", "working", "completed"] {
        return Err(wrong("submitted, working, completed", seen.join(", ")));
    }
    tck.say("a2ad-fail").await?.1.state("failed")?;
    let (task, _) = echo.begin("hold").await?;
    echo.until_state(&task, "working").await?;
    echo.cancel(&task).await?.state("canceled")?;
    Ok(())
}

async fn waits_its_turn(at: &Fixture) -> Checked {
    let narrow = at.narrow().await?;
    let echo = narrow.fold("echo");
    let first = held(&echo).await?;
    let (second, answer) = echo.begin("hello").await?;
    answer.state("submitted")?;
    echo.get(&second).await?.state("submitted")?;
    echo.cancel(&first).await?.state("canceled")?;
    echo.until_state(&second, "completed").await?;
    Ok(())
}

/// One whose agent answers with a bare message among them.
async fn completed_has_artifacts(at: &Fixture) -> Checked {
    for (skill, said) in [("echo", "hello"), ("tck", "tck-message-response"), ("currency", "1 USD in INR")] {
        let door = at.fold(skill)?;
        let (task, sent) = door.say(said).await?;
        sent.state("completed")?;
        for answer in [sent, door.get(&task).await?] {
            answer.must(answer.count("result.artifacts.0.parts") > 0, "an artifact with parts")?;
        }
    }
    Ok(())
}

async fn error_fails(at: &Fixture) -> Checked {
    let tck = at.fold("tck")?;
    let (task, sent) = tck.say("a2ad-fail").await?;
    sent.state("failed")?;
    sent.filled("result.status.message.parts.0.text")?;
    tck.get(&task).await?.state("failed")?;
    Ok(())
}

async fn forgotten(at: &Fixture) -> Checked {
    let brief = at.agent("brief", "echo")?;
    let (task, sent) = brief.say("hello").await?;
    sent.state("completed")?;
    brief.get(&task).await?.state("completed")?;
    brief.until(&task, "-32001", |answer| answer.fails(-32001).is_ok()).await?;
    if !at.is_ours() {
        return Ok(());
    }
    // Where nothing is said of it, a day.
    let described = at.described().await?;
    let main = described.list("agents")?.iter().find(|agent| agent.is("id", "main").is_ok());
    main.ok_or_else(|| wrong("the agent main", &described))?.is("retention.max_age_ms", 24 * 60 * 60 * 1_000)
}

async fn four_methods(at: &Fixture) -> Checked {
    let fold = at.fold("echo")?;
    let (task, sent) = fold.say("hello").await?;
    sent.state("completed")?;
    fold.get(&task).await?.state("completed")?;
    fold.cancel(&task).await?.fails(-32002)?;
    ends_well(&fold.events("hello").await?.1)
}

async fn streams(at: &Fixture) -> Checked {
    let writer = at.fold("slow-writer")?;
    let task = fresh();
    let params = writer.params(&task, &text("the sea sections=2 delay=150ms"), "");
    let mut events = writer.stream("tasks/sendSubscribe", &params).await?;
    let first = events.next().await?.ok_or_else(|| wrong("an event", "none"))?;
    // While the skill runs: the first event is here before the work is over.
    let state = writer.get(&task).await?;
    state.must(state.state("completed").is_err(), "the first event before the end of the work")?;
    let mut all = vec![first];
    all.extend(events.all().await?);
    ends_well(&all)?;
    let artifacts = all.iter().filter(|event| event.data.find("result.artifact").is_some()).count();
    let seen = states(&all);
    if artifacts == 2 && seen.contains(&"working") && seen.last() == Some(&"completed") {
        return Ok(());
    }
    Err(wrong("working, two artifact events, completed", format!("{seen:?}, {artifacts} artifact events")))
}

async fn malformed(at: &Fixture) -> Checked {
    let fold = at.fold("echo")?;
    for body in ["[]", "7", r#"{"jsonrpc":"2.0","id":5}"#, r#"{"jsonrpc":"2.0","id":1,"method":7}"#] {
        fold.post(body).await?.fails(-32600)?;
    }
    Ok(())
}

async fn unknown_method(at: &Fixture) -> Checked {
    at.fold("echo")?.call("tasks/paint", "{}").await?.fails(-32601)?;
    Ok(())
}

async fn unknown_skill(at: &Fixture) -> Checked {
    at.fold("echo")?.call("tasks/send", &arguments("no-such-skill", CITY)).await?.fails(-32602)?;
    Ok(())
}

async fn crash(at: &Fixture) -> Checked {
    let tck = at.fold("tck")?;
    let (task, answer) = tck.say("a2ad-panic").await?;
    answer.fails(-32603)?;
    // The server goes on, and the task has failed.
    tck.get(&task).await?.state("failed")?;
    Ok(())
}
