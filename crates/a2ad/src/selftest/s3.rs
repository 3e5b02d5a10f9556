//! S3: agent-native. 0.3 whose parts are tagged the draft's way too, and work that outlives everything.

use super::{
    Checked, Item, Seed,
    Step::{Client, Identity, Tools},
    Trouble,
    crash::SECTIONS,
    door::{Door, ends_well, fresh, states, text_part},
    fixture::Fixture,
    http::{Answer, Server},
    json::quote,
    not_yet, wire, wrong,
};

mod embedded;

pub(super) const SEED: Seed = Seed { name: "S3", items: ITEMS };

const ITEMS: &[Item] = &[
    wire!(1, "the card is at /.well-known/agent-card.json for everybody, also in production", public_card),
    wire!(2, "POST /_agent-native/a2a takes JSON-RPC", main_path),
    not_yet(3, "_process-task takes signed requests only", Identity),
    wire!(4, "POST /a2a works as well", old_path),
    not_yet(5, "_process-task is not swallowed by the path above it", Identity),
    wire!(6, "anything but GET at the card is 405", card_is_read),
    wire!(7, "the card has every member of the house", card_members),
    not_yet(8, "the card names the schemes that are configured", Identity),
    not_yet(9, "skills of users and organisations are not on the public card", Tools),
    not_yet(10, "the operator's own tools are", Tools),
    not_yet(11, "nobody learns of tenants from a public answer", Identity),
    not_yet(12, "a known caller sees more", Identity),
    wire!(13, "message/send waits and gives the completed task", waits),
    wire!(14, "with async it answers at once, working", at_once),
    wire!(15, "async counts at the top only, not in the metadata", top_flag_only),
    wire!(16, "contextId may be given", context_given),
    wire!(17, "message/stream streams the task", streams),
    wire!(18, "message/stream is -32601 where streaming is off", stream_off),
    wire!(19, "tasks/get asks for a task until it is done", polls),
    wire!(20, "tasks/cancel cancels", cancels),
    not_yet(21, "other executions are woken by a signed request", Identity),
    not_yet(22, "such a signature is good for one task and five minutes", Identity),
    wire!(23, "text, data and file parts have their type", typed_parts),
    wire!(24, "what was accepted runs although the process is killed before it begins", survives_kill),
    not_yet(25, "a client library with card, send, stream and wait", Client),
    not_yet(26, "the task's text is in its status", Client),
    not_yet(27, "callAgent gives text for text", Client),
    not_yet(28, "callAgent polls unless told otherwise", Client),
    not_yet(29, "callAgent signs for a user", Client),
    not_yet(30, "the client falls back to /a2a", Client),
    not_yet(31, "the client prefers the card's url", Client),
    not_yet(32, "the client polls with back-off and a deadline", Client),
    wire!(33, "each message makes a task; six states can be reached", six_states),
    wire!(34, "an agent that breaks makes the task failed", breaks),
    wire!(35, "an agent may ask: input-required", asks),
    wire!(36, "tasks are kept and readable after a restart", after_restart),
    not_yet(37, "A2A_SECRET: tokens are verified before anything runs", Identity),
    not_yet(38, "a static bearer by the name of a variable", Identity),
    not_yet(39, "both at once", Identity),
    not_yet(40, "no credentials in development: one warning", Identity),
    not_yet(41, "no credentials in production: 503 and nothing runs", Identity),
    not_yet(42, "production is known by the provider's flags", Identity),
    not_yet(43, "_process-task without a secret in production is 503", Identity),
    not_yet(44, "a bad token never reaches an agent", Identity),
    not_yet(45, "the global secret, then the organisation's", Identity),
    not_yet(46, "aud and iss count when they are there, exp always", Identity),
    not_yet(47, "a token for another service is refused", Identity),
    not_yet(48, "JWT is on the card only where it can be used", Identity),
    not_yet(49, "a hand-over to a remote agent is a row of its own", Client),
    not_yet(50, "it is asked for until it can be delivered", Client),
    not_yet(51, "ten minutes or six attempts, then a clear error", Client),
    not_yet(52, "rows of a dead process are taken up once", Client),
    not_yet(53, "tasks that came by webhook have three attempts", Client),
    not_yet(54, "every app of a workspace is a peer", Client),
    not_yet(55, "one secret for all of them", Client),
    not_yet(56, "/apps/{id} on the same origin", Client),
    not_yet(57, "outbound tokens say who asks", Client),
    not_yet(58, "discovery walks the workspace", Client),
    not_yet(59, "others still use bearer keys", Client),
    wire!(60, "kept first, answered then, worked on afterwards", kept_first),
    wire!(61, "the work does not hang on the connection that asked for it", detached),
    wire!(62, "work that was claimed and not finished is taken up again", taken_up),
    not_yet(63, "an @-mention is a call", Client),
    not_yet(64, "local agents run in the process", Client),
    not_yet(65, "a message goes to the app that suits it best", Client),
    not_yet(66, "adapters answer in the same thread", Client),
    not_yet(67, "one agent asks another and gets text", Client),
    wire!(68, "one call mounts it into another HTTP app", embedded::mounted),
];

async fn public_card(at: &Fixture) -> Checked {
    everybody_reads_the_card(&at.server).await?;
    if at.is_ours() {
        // Also where calls are refused, and also in production.
        at.agent("keyed", "slow-writer")?.message(&text_part("the sea"), "").await?.has_status(403)?;
        at.card("keyed", "agent-card.json").await?.filled("name")?;
        everybody_reads_the_card(&at.production().await?.server).await?;
    }
    Ok(())
}

/// Whatever credential is sent along, it takes no part.
async fn everybody_reads_the_card(server: &Server) -> Checked {
    for headers in [&[][..], &[("authorization", "Bearer nonsense")][..]] {
        let card = server.get("/.well-known/agent-card.json", headers).await?;
        card.has_status(200)?;
        card.filled("name")?;
    }
    Ok(())
}

async fn main_path(at: &Fixture) -> Checked {
    let answer = at.native("echo")?.message(&text_part("hello"), "").await?;
    answer.has_status(200)?;
    answer.state("completed")?;
    Ok(())
}

async fn old_path(at: &Fixture) -> Checked {
    let door = Door { path: "/a2a".into(), ..at.root("echo")? };
    door.message(&text_part("hello"), "").await?.state("completed")?;
    Ok(())
}

async fn card_is_read(at: &Fixture) -> Checked {
    for verb in ["POST", "PUT", "DELETE"] {
        let answer = at.server.ask(verb, "/.well-known/agent-card.json", &[], "").await?;
        answer.has_status(405)?;
        let allow = answer.header("allow").unwrap_or_default();
        answer.must(allow.contains("GET"), "a header that allows GET")?;
    }
    Ok(())
}

/// The server beside has a default agent in this style.
async fn card_members(at: &Fixture) -> Checked {
    let narrow = at.narrow().await?;
    let card = narrow.server().get("/.well-known/agent-card.json", &[]).await?;
    card.filled("name")?;
    card.filled("description")?;
    card.is("url", &format!("http://{}", narrow.server().host))?;
    card.is("version", "1.0.0")?;
    card.is("protocolVersion", "0.3")?;
    card.is("capabilities.streaming", true)?;
    card.is("capabilities.pushNotifications", false)?;
    card.is("capabilities.stateTransitionHistory", true)?;
    for skill in card.list("skills")? {
        skill.filled("id")?;
        skill.filled("name")?;
        skill.filled("description")?;
        skill.texts("tags")?;
        skill.texts("examples")?;
    }
    card.is("securitySchemes.apiKey.type", "http")?;
    let scheme = card.text("securitySchemes.apiKey.scheme")?;
    card.must(scheme.eq_ignore_ascii_case("bearer"), "the scheme bearer")?;
    // The agent lets callers in without one too, and says so.
    card.reads("security", r#"[{"apiKey":[]},{}]"#)
}

const SLOW: &str = "the sea sections=2 delay=40ms";

async fn waits(at: &Fixture) -> Checked {
    let answer = at.native("slow-writer")?.message(&text_part(SLOW), "").await?;
    answer.is("result.kind", "task")?;
    answer.state("completed")?;
    answer.must(answer.count("result.artifacts.0.parts") == 2, "both sections")
}

/// Sends without waiting; gives the task's id.
async fn begun(door: &Door, text: &str) -> Result<(String, Answer), Trouble> {
    let answer = door.message(&text_part(text), r#","async":true"#).await?;
    Ok((answer.filled("result.id")?.to_owned(), answer))
}

async fn at_once(at: &Fixture) -> Checked {
    let door = at.native("slow-writer")?;
    let (task, answer) = begun(&door, SLOW).await?;
    answer.state("working")?;
    door.until_state(&task, "completed").await?;
    Ok(())
}

async fn top_flag_only(at: &Fixture) -> Checked {
    let door = at.native("slow-writer")?;
    let within = r#","metadata":{"async":true}"#;
    let params = door.message_params(&text_part(SLOW), within, within);
    door.call("message/send", &params).await?.state("completed")?;
    Ok(())
}

async fn context_given(at: &Fixture) -> Checked {
    let door = at.native("echo")?;
    let context = fresh();
    let more = format!(r#","contextId":{}"#, quote(&context));
    for _ in 0..2 {
        door.message(&text_part("hello"), &more).await?.is("result.contextId", &context)?;
    }
    door.message(&text_part("hello"), "").await?.filled("result.contextId")?;
    Ok(())
}

async fn streams(at: &Fixture) -> Checked {
    let door = at.native("slow-writer")?;
    let params = door.message_params(&text_part(SLOW), "", "");
    let events = door.stream("message/stream", &params).await?.all().await?;
    ends_well(&events)?;
    let kinds: Vec<&str> = events.iter().filter_map(|event| event.data.text("result.kind").ok()).collect();
    let has = |kind| kinds.contains(&kind);
    let good = kinds.first() == Some(&"task") && has("status-update") && has("artifact-update");
    let good = good && states(&events).last() == Some(&"completed");
    if good { Ok(()) } else { Err(wrong("task, status-update, artifact-update", kinds.join(", "))) }
}

async fn stream_off(at: &Fixture) -> Checked {
    let door = at.agent("quiet", "echo")?;
    let params = door.message_params(&text_part("hello"), "", "");
    door.call("message/stream", &params).await?.fails(-32601)?;
    door.call("message/send", &params).await?.state("completed")?;
    Ok(())
}

async fn polls(at: &Fixture) -> Checked {
    let door = at.native("slow-writer")?;
    let (task, _) = begun(&door, SLOW).await?;
    let done = door.until_state(&task, "completed").await?;
    done.is("result.kind", "task")?;
    done.must(done.count("result.artifacts.0.parts") == 2, "both sections")
}

async fn cancels(at: &Fixture) -> Checked {
    let door = at.native("echo")?;
    let (task, _) = begun(&door, "hold").await?;
    door.cancel(&task).await?.state("canceled")?;
    door.get(&task).await?.state("canceled")?;
    Ok(())
}

async fn typed_parts(at: &Fixture) -> Checked {
    let parts = r#"[{"type":"text","text":"Show signups"},{"type":"data","data":{"dateRange":"last-30d"}},
        {"type":"file","file":{"name":"report.csv","mimeType":"text/csv","bytes":"YSxiCg=="}}]"#;
    let answer = at.native("echo")?.message(parts, "").await?;
    for (index, kind) in ["text", "data", "file"].into_iter().enumerate() {
        answer.is(&format!("result.artifacts.0.parts.{index}.type"), kind)?;
    }
    answer.is("result.artifacts.0.parts.0.text", "Show signups")?;
    answer.reads("result.artifacts.0.parts.1.data", r#"{"dateRange":"last-30d"}"#)?;
    let file = r#"{"name":"report.csv","mimeType":"text/csv","bytes":"YSxiCg=="}"#;
    answer.reads("result.artifacts.0.parts.2.file", file)
}

async fn survives_kill(at: &Fixture) -> Checked {
    let crash = at.crash().await?;
    let done = crash.door().until_state(&crash.waiting.0, "completed").await?;
    done.is("result.artifacts.0.parts.0.text", "after")
}

async fn six_states(at: &Fixture) -> Checked {
    let (echo, tck) = (at.native("echo")?, at.native("tck")?);
    let (one, two) =
        (echo.message(&text_part("hello"), "").await?, echo.message(&text_part("hello"), "").await?);
    one.must(one.filled("result.id")? != two.filled("result.id")?, "a task for each message")?;
    let params = echo.message_params(&text_part("hello"), "", "");
    let events = echo.stream("message/stream", &params).await?.all().await?;
    let seen = states(&events);
    if seen != ["submitted", "working", "completed"] {
        return Err(wrong("submitted, working, completed", seen.join(", ")));
    }
    tck.message(&text_part("a2ad-fail"), "").await?.state("failed")?;
    tck.message(&text_part("tck-input-required"), "").await?.state("input-required")?;
    let (task, _) = begun(&echo, "hold").await?;
    echo.cancel(&task).await?.state("canceled")?;
    Ok(())
}

async fn breaks(at: &Fixture) -> Checked {
    let tck = at.native("tck")?;
    for text in ["a2ad-fail", "a2ad-panic"] {
        tck.message(&text_part(text), "").await?.state("failed")?;
    }
    Ok(())
}

async fn asks(at: &Fixture) -> Checked {
    let answer = at.native("approver")?.message(&text_part("delete the old backups"), "").await?;
    answer.state("input-required")?;
    answer.filled("result.status.message.parts.0.text")?;
    Ok(())
}

async fn after_restart(at: &Fixture) -> Checked {
    let crash = at.crash().await?;
    let (task, before) = &crash.finished;
    let after = crash.door().get(task).await?;
    after.is("result", before.at("result")?)
}

async fn kept_first(at: &Fixture) -> Checked {
    let crash = at.crash().await?;
    let (task, answer) = &crash.running;
    answer.has_status(200)?;
    answer.must(answer.state("completed").is_err(), "an answer before the end of the work")?;
    answer.lacks("result.artifacts")?;
    // The process that answered is dead; what it answered is there.
    crash.readable.is("result.id", task)?;
    crash.readable.must(crash.readable.state("failed").is_err(), "a task that is not lost")
}

/// The connection is closed with the answer, and a stream's is dropped in the middle.
async fn detached(at: &Fixture) -> Checked {
    let door = at.native("slow-writer")?;
    let (asked, _) = begun(&door, "the sea sections=3 delay=40ms").await?;
    let params = door.message_params(&text_part("the sea sections=3 delay=40ms"), "", "");
    let mut events = door.stream("message/stream", &params).await?;
    let first = events.next().await?.ok_or_else(|| wrong("an event", "none"))?;
    let streamed = first.data.filled("result.id")?.to_owned();
    drop(events);
    for task in [asked, streamed] {
        let done = door.until_state(&task, "completed").await?;
        done.must(done.count("result.artifacts.0.parts") == 3, "all three sections")?;
    }
    Ok(())
}

async fn taken_up(at: &Fixture) -> Checked {
    let crash = at.crash().await?;
    let done = crash.door().until_state(&crash.running.0, "completed").await?;
    // Every section once: neither lost nor doubled.
    let texts: Result<Vec<&str>, Trouble> =
        done.list("result.artifacts.0.parts")?.iter().map(|part| part.text("text")).collect();
    let expected = |number| format!("Section {number} of {SECTIONS}: more about the sea.\n");
    let all: Vec<String> = (1..=SECTIONS).map(expected).collect();
    done.must(texts? == all, "every section once")
}

/// A server that somebody else has made.
fn elsewhere(server: &Server, path: &str) -> Door {
    Door::new(server, path, "echo")
}
