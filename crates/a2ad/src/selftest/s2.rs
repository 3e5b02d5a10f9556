//! S2: Pinkfish. One synchronous method of 0.3 that answers with messages.

use super::{
    Checked, Item, Seed,
    Step::{Console, Guardrails, Identity},
    Trouble,
    door::{Door, ends_well, request, text_part},
    fixture::Fixture,
    http::{Answer, Server},
    json::{Json, quote},
    not_yet, wire, wrong,
};

mod endpoint;

pub(super) const SEED: Seed = Seed { name: "S2", items: ITEMS };

const ITEMS: &[Item] = &[
    wire!(1, "protocol 0.3.0 over JSON-RPC 2.0", protocol),
    not_yet(2, "an agent is switched on and off while the server runs", Identity),
    not_yet(3, "plain text in and out by a key of the agent", Identity),
    not_yet(4, "an agent's keys have a prefix", Identity),
    not_yet(5, "a key is shown once, and only its hash is kept", Identity),
    not_yet(6, "an agent has at most 20 keys", Identity),
    not_yet(7, "a key is good for exactly one agent", Identity),
    not_yet(8, "only allowed skills are on the card and can be called", Identity),
    not_yet(9, "tools are approved by themselves, or the agent pauses", Guardrails),
    not_yet(10, "end users are known by a token of their own", Identity),
    wire!(11, "each agent's card is public, unless the agent is switched off", public_card),
    wire!(12, "the card has every member of the house", card_members),
    not_yet(13, "the scheme ApiKey is really the header X-Api-Key", Identity),
    wire!(14, "the card's url is the endpoint and works as given", url_works),
    wire!(15, "our client calls the endpoint that the card names and guesses nothing", endpoint::followed),
    wire!(16, "the card may be kept for 60 seconds by anybody", cache_control),
    wire!(17, "the card has an ETag, and who has it gets 304 without a body", not_modified),
    wire!(18, "the ETag changes when the skills do", etag_of_skills),
    wire!(19, "POST /a2a/{agent} with the header X-Api-Key", key_header),
    wire!(20, "message/send with a message of kind, id, role and parts", message_send),
    wire!(21, "parts are text, a file by URI, data", parts),
    wire!(22, "a finished send is answered with a new message of the agent", agent_message),
    wire!(23, "a number as the request's id stays a number", number_id),
    not_yet(24, "a pause for approval or a connection is a task", Guardrails),
    not_yet(25, "the paused task goes on by its contextId", Guardrails),
    wire!(26, "a first message without contextId gets one", new_context),
    wire!(27, "a message in a known context is heard with what was said before", known_context),
    not_yet(28, "a context belongs to its agent", Identity),
    not_yet(29, "a context belongs to its end user", Identity),
    not_yet(30, "a foreign context looks like one that is not there", Identity),
    not_yet(31, "X-Api-Key is required", Identity),
    not_yet(32, "X-Selected-Org chooses the organisation", Identity),
    not_yet(33, "X-End-User-Token is required where it is switched on", Identity),
    wire!(34, "message/stream is -32601 here and streams elsewhere", no_stream),
    wire!(35, "the methods of tasks and push are -32601 here; elsewhere those of tasks are served", no_tasks),
    wire!(36, "the answer comes when the task is over or paused, not before", synchronous),
    wire!(37, "errors of the protocol are HTTP 200", status_200),
    not_yet(38, "a credential that is not good is HTTP 403", Identity),
    not_yet(39, "an agent that is missing or switched off is HTTP 404", Identity),
    wire!(40, "invalid JSON is -32700", invalid_json),
    wire!(41, "another jsonrpc than 2.0 is -32600", other_jsonrpc),
    wire!(42, "an unknown method is -32601", unknown_method),
    wire!(43, "no parts are -32602", no_parts),
    wire!(44, "a run that failed is -32603", failed_run),
    not_yet(45, "no credential is -32010", Identity),
    not_yet(46, "a switched off agent is -32011", Identity),
    not_yet(47, "too many calls are -32012", Identity),
    not_yet(48, "how many calls a key may make is configured", Identity),
    not_yet(49, "the console has a tab for all of this", Console),
];

const CARD: &str = "agent-card.json";

async fn said(at: &Fixture, words: &str) -> Result<Answer, Trouble> {
    at.agent("pinkfish", "echo")?.message(&text_part(words), "").await
}

async fn protocol(at: &Fixture) -> Checked {
    at.card("pinkfish", CARD).await?.is("protocolVersion", "0.3.0")?;
    let answer = said(at, "hello").await?;
    answer.is("jsonrpc", "2.0")?;
    let dialect = answer.header("a2ad-dialect").unwrap_or_default();
    answer.must(dialect.starts_with("v03;"), "an answer in 0.3")
}

async fn public_card(at: &Fixture) -> Checked {
    at.card("pinkfish", CARD).await?;
    // The one that wants a key for calls shows its card too.
    at.card("keyed", CARD).await?;
    at.server.get("/a2a/closed/.well-known/agent-card.json", &[]).await?.has_status(404)
}

async fn card_members(at: &Fixture) -> Checked {
    let card = at.card("keyed", CARD).await?;
    card.filled("name")?;
    card.filled("description")?;
    card.is("protocolVersion", "0.3.0")?;
    card.must(card.text("url")?.ends_with("/a2a/keyed"), "a url that is the endpoint")?;
    card.is("preferredTransport", "JSONRPC")?;
    card.at("capabilities")?;
    card.at("securitySchemes.ApiKey")?;
    card.reads("security", r#"[{"ApiKey":[]}]"#)?;
    card.must(card.count("skills") > 0, "skills")?;
    card.reads("defaultInputModes", r#"["text/plain"]"#)?;
    card.reads("defaultOutputModes", r#"["text/plain"]"#)
}

/// The door that a card names.
fn named(card: &Answer, skill: &'static str) -> Result<Door, Trouble> {
    let url = card.text("url")?;
    let rest = url.strip_prefix("http://").and_then(|rest| rest.split_once('/'));
    let (host, path) = rest.ok_or_else(|| wrong("an http URL with a path", url))?;
    Ok(Door::new(&Server::at(host), format!("/{path}"), skill))
}

async fn url_works(at: &Fixture) -> Checked {
    let card = at.card("pinkfish", CARD).await?;
    named(&card, "echo")?.message(&text_part("hello"), "").await?.is("result.kind", "message")?;
    // It is that of the host that was asked, whatever its name.
    let asked =
        at.server.get("/a2a/pinkfish/.well-known/agent-card.json", &[("host", "agents.example:8443")]);
    asked.await?.is("url", "http://agents.example:8443/a2a/pinkfish")
}

async fn cache_control(at: &Fixture) -> Checked {
    let card = at.card("pinkfish", CARD).await?;
    let control = card.header("cache-control").unwrap_or_default();
    let good = control.contains("public") && control.contains("max-age=60");
    if good { Ok(()) } else { Err(wrong("cache-control: public, max-age=60", control)) }
}

async fn not_modified(at: &Fixture) -> Checked {
    let card = at.card("pinkfish", CARD).await?;
    let etag = card.header("etag").ok_or_else(|| wrong("an ETag", &card))?;
    let path = "/a2a/pinkfish/.well-known/agent-card.json";
    let again = at.server.get(path, &[("if-none-match", etag)]).await?;
    again.has_status(304)?;
    again.must(again.body().is_empty(), "no body")?;
    at.server.get(path, &[("if-none-match", "\"another\"")]).await?.has_status(200)
}

/// Two servers have an agent of the same name and address, but for its skills.
async fn etag_of_skills(at: &Fixture) -> Checked {
    at.agent("pinkfish", "echo")?;
    let narrow = at.narrow().await?;
    let ask = async |server: &Server| {
        let host = [("host", "agents.example")];
        let card = server.get("/a2a/pinkfish/.well-known/agent-card.json", &host).await?;
        card.has_status(200)?;
        let etag = card.header("etag").unwrap_or_default().to_owned();
        Ok::<_, Trouble>((etag, card.at("url")?.clone(), card.count("skills")))
    };
    let (one, other) = (ask(&at.server).await?, ask(narrow.server()).await?);
    let holds = one.0 != other.0 && one.1 == other.1 && one.2 != other.2;
    if holds { Ok(()) } else { Err(wrong("another ETag for other skills", format!("{one:?} {other:?}"))) }
}

async fn key_header(at: &Fixture) -> Checked {
    let door = at.agent("pinkfish", "echo")?;
    let body = request("message/send", &door.message_params(&text_part("hello"), "", ""));
    let headers = [("content-type", "application/json"), ("x-api-key", "pf_a2a_0123456789")];
    door.server.ask("POST", &door.path, &headers, &body).await?.is("result.role", "agent")
}

/// The request as the document has it, but for what is said.
async fn message_send(at: &Fixture) -> Checked {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":{"kind":"message",
        "messageId":"11111111-1111-1111-1111-111111111111","role":"user",
        "parts":[{"kind":"text","text":"hello"}]}}}"#;
    let answer = at.agent("pinkfish", "echo")?.post(body).await?;
    answer.has_status(200)?;
    answer.reads("result.parts", r#"[{"kind":"text","text":"hello"}]"#)
}

async fn parts(at: &Fixture) -> Checked {
    let parts = r#"[{"kind":"text","text":"look"},
        {"kind":"file","file":{"uri":"https://files.example/a.pdf","mimeType":"application/pdf"}},
        {"kind":"data","data":{"rows":[1,2.50]}}]"#;
    at.agent("pinkfish", "echo")?.message(parts, "").await?.reads("result.parts", parts)
}

async fn agent_message(at: &Fixture) -> Checked {
    let door = at.agent("pinkfish", "echo")?;
    let params = door.message_params(&text_part("hello"), "", "");
    let answer = door.call("message/send", &params).await?;
    answer.is("result.kind", "message")?;
    answer.is("result.role", "agent")?;
    answer.filled("result.contextId")?;
    answer.must(answer.count("result.parts") > 0, "parts")?;
    let sent = Json::parse(&params)?;
    let is_new = answer.filled("result.messageId")? != sent.text("message.messageId")?;
    answer.must(is_new, "a new messageId")
}

async fn number_id(at: &Fixture) -> Checked {
    let door = at.agent("pinkfish", "echo")?;
    let params = door.message_params(&text_part("hello"), "", "");
    let body = format!(r#"{{"jsonrpc":"2.0","id":42,"method":"message/send","params":{params}}}"#);
    door.post(&body).await?.is("id", 42)
}

async fn new_context(at: &Fixture) -> Checked {
    let (one, two) = (said(at, "hello").await?, said(at, "hello").await?);
    let differ = one.filled("result.contextId")? != two.filled("result.contextId")?;
    one.must(differ, "a context of its own for each first message")
}

/// Each message makes sense only to somebody who has heard those before: one that waited for an answer, and ones that
/// were answered in full.
async fn known_context(at: &Fixture) -> Checked {
    let door = at.agent("pinkfish", "currency")?;
    let first = door.message(&text_part("how much is 7 USD?"), "").await?;
    let context = first.filled("result.contextId")?;
    let within = format!(r#","contextId":{}"#, quote(context));
    for (said, expected) in [
        ("in INR, please", ["7 USD", "INR"]),
        ("and in EUR?", ["7 USD", "EUR"]),
        ("and 8 GBP?", ["8 GBP", "EUR"]),
    ] {
        let answer = door.call("message/send", &door.message_params(&text_part(said), &within, "")).await?;
        answer.is("result.kind", "message")?;
        answer.is("result.contextId", context)?;
        let text = answer.text("result.parts.0.text")?;
        answer.must(expected.iter().all(|word| text.contains(word)), &expected.join(" in "))?;
    }
    Ok(())
}

async fn no_stream(at: &Fixture) -> Checked {
    let door = at.agent("pinkfish", "echo")?;
    let params = door.message_params(&text_part("hello"), "", "");
    door.call("message/stream", &params).await?.fails(-32601)?;
    let elsewhere = at.root("echo")?;
    let events = elsewhere.stream("message/stream", &params).await?.all().await?;
    ends_well(&events)
}

async fn no_tasks(at: &Fixture) -> Checked {
    let door = at.agent("pinkfish", "echo")?;
    for method in ["tasks/get", "tasks/cancel", "tasks/resubscribe"] {
        door.call(method, r#"{"id":"x"}"#).await?.fails(-32601)?;
    }
    for method in ["set", "get", "list", "delete"] {
        let params = r#"{"id":"x","taskId":"x","pushNotificationConfigId":"y",
            "pushNotificationConfig":{"url":"https://hooks.example/"}}"#;
        door.call(&format!("tasks/pushNotificationConfig/{method}"), params).await?.fails(-32601)?;
    }
    let elsewhere = at.root("echo")?;
    let sent = elsewhere.message(&text_part("hello"), "").await?;
    let done = sent.text("result.id")?;
    elsewhere.get(done).await?.state("completed")?;
    elsewhere.cancel(done).await?.fails(-32002)?;
    let params = format!(r#"{{"id":{}}}"#, quote(done));
    let rest = elsewhere.stream("tasks/resubscribe", &params).await?.all().await?;
    let last = rest.last().ok_or_else(|| wrong("an event", "none"))?;
    last.data.is("result.status.state", "completed")
}

/// Whatever the client would like: nobody could ask for the task later.
async fn synchronous(at: &Fixture) -> Checked {
    let writer = at.agent("pinkfish", "slow-writer")?;
    for more in ["", r#","configuration":{"blocking":true}"#, r#","configuration":{"blocking":false}"#] {
        let answer = writer.message(&text_part("the sea sections=2 delay=30ms"), more).await?;
        answer.is("result.kind", "message")?;
        answer.must(answer.count("result.parts") == 2, "two sections")?;
    }
    let paused = at.agent("pinkfish", "currency")?.message(&text_part("how much is 1 USD?"), "").await?;
    paused.is("result.kind", "task")?;
    paused.state("input-required")?;
    Ok(())
}

async fn status_200(at: &Fixture) -> Checked {
    let door = at.agent("pinkfish", "echo")?;
    for body in ["{", r#"{"jsonrpc":"1.0","id":1,"method":"message/send"}"#, r#"{"jsonrpc":"2.0","id":1}"#] {
        is_200(&door.post(body).await?)?;
    }
    is_200(&door.call("message/paint", "{}").await?)?;
    is_200(&door.message("[]", "").await?)?;
    is_200(&door.by("tck").message(&text_part("a2ad-fail"), "").await?)
}

fn is_200(error: &Answer) -> Checked {
    error.at("error.code")?;
    error.has_status(200)
}

async fn invalid_json(at: &Fixture) -> Checked {
    at.agent("pinkfish", "echo")?.post(r#"{"jsonrpc":"2.0""#).await?.fails(-32700)?;
    Ok(())
}

async fn other_jsonrpc(at: &Fixture) -> Checked {
    let door = at.agent("pinkfish", "echo")?;
    let params = door.message_params(&text_part("hello"), "", "");
    for version in [r#""jsonrpc":"1.0","#, r#""jsonrpc":2,"#, ""] {
        let body = format!(r#"{{{version}"id":1,"method":"message/send","params":{params}}}"#);
        door.post(&body).await?.fails(-32600)?;
    }
    Ok(())
}

async fn unknown_method(at: &Fixture) -> Checked {
    at.agent("pinkfish", "echo")?.call("message/paint", "{}").await?.fails(-32601)?;
    Ok(())
}

async fn no_parts(at: &Fixture) -> Checked {
    at.agent("pinkfish", "echo")?.message("[]", "").await?.fails(-32602)?;
    Ok(())
}

async fn failed_run(at: &Fixture) -> Checked {
    let door = at.agent("pinkfish", "tck")?;
    for text in ["a2ad-fail", "a2ad-panic"] {
        door.message(&text_part(text), "").await?.fails(-32603)?;
    }
    Ok(())
}
