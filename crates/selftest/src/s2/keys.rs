//! API keys: how they are made, listed and revoked, and what a caller without a valid one gets.

use aws_lc_rs::digest::{SHA256, digest};

use crate::{
    CheckResult,
    credentials::{KEY_PREFIX, key_id},
    fixture::Fixture,
    json::ValueChecks as _,
    mismatch,
};

/// The most keys of an agent.
const MAX_KEYS: usize = 20;

pub(super) async fn prefix(at: &Fixture) -> CheckResult {
    let server = at.credentials().await?;
    let (one, two) = (server.new_key("keyed").await?, server.new_key("keyed").await?);
    for key in [&one, &two] {
        if !key.starts_with(KEY_PREFIX) {
            return Err(mismatch(format!("a key that begins with {KEY_PREFIX}"), key));
        }
        let client = server.agent("keyed", "echo");
        client.with_key(key).hello().await?.is("result.kind", "message")?;
        client.with_bearer(key).hello().await?.is("result.kind", "message")?;
    }
    if one == two {
        return Err(mismatch("different keys", one));
    }
    let default = at.new_key_of_main("keyed").await?;
    if default.starts_with("a2ad_") { Ok(()) } else { Err(mismatch("a key that begins with a2ad_", default)) }
}

/// Neither a list nor anything that the server has written contains the secret of a key; the store has its digest.
pub(super) async fn shown_once(at: &Fixture) -> CheckResult {
    let at = at.credentials().await?;
    let key = at.new_key("keyed").await?;
    at.agent("keyed", "echo").with_key(&key).hello().await?.has_status(200)?;
    let id = key_id(&key)?;
    let secret = key.rsplit_once('_').map_or("", |(_, secret)| secret);
    let lists = [
        at.run(&["keys", "ls", "keyed"]).await?.stdout,
        at.run(&["keys", "ls", "keyed", "--json"]).await?.stdout,
        at.console("GET", "/console/api/keys?agent=keyed", "").await?.to_string(),
    ];
    for list in lists {
        let is_masked = list.contains(id) && list.contains(KEY_PREFIX) && !list.contains(secret);
        if !is_masked {
            return Err(mismatch(format!("a list with the masked key {KEY_PREFIX}{id}"), list));
        }
    }
    let hash = digest(&SHA256, key.as_bytes());
    let hex: String = hash.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let mut has_digest = false;
    for (name, content) in at.written()? {
        if contains(&content, secret.as_bytes()) {
            return Err(mismatch("a key that is not stored", format!("{name} contains it")));
        }
        has_digest |= contains(&content, hash.as_ref()) || contains(&content, hex.as_bytes());
    }
    if has_digest { Ok(()) } else { Err(mismatch("the digest of the key in the store", "no such file")) }
}

fn contains(content: &[u8], text: &[u8]) -> bool {
    content.windows(text.len()).any(|window| window == text)
}

pub(super) async fn at_most_20(at: &Fixture) -> CheckResult {
    let at = at.credentials().await?;
    let client = at.agent("full", "echo");
    let mut keys = Vec::new();
    for _ in 0..MAX_KEYS {
        let made = at.post_key("full").await?;
        made.has_status(201)?;
        keys.push(made.non_empty("key")?.to_owned());
    }
    for key in [&keys[0], &keys[MAX_KEYS - 1]] {
        client.with_key(key).hello().await?.has_state("completed")?;
    }
    let refused = at.post_key("full").await?;
    let is_clear = (400..500).contains(&refused.status()) && refused.to_string().contains("20");
    refused.ensure(is_clear, "a refusal that names the limit of 20 keys")?;
    let refused = at.run(&["keys", "new", "full"]).await?;
    if refused.succeeded || !refused.stdout.is_empty() || !refused.stderr.contains("20") {
        let got = format!("{}{}", refused.stdout, refused.stderr);
        return Err(mismatch("a refusal that names the limit of 20 keys", got));
    }
    // A key that is revoked makes room for another one, and is refused from then on.
    at.revoke(&keys[0]).await?;
    let another = at.new_key("full").await?;
    client.with_key(&another).hello().await?.has_state("completed")?;
    client.with_key(&keys[0]).hello().await?.has_status(401)
}

/// Also where both agents have keys of the same owner.
pub(super) async fn one_agent(at: &Fixture) -> CheckResult {
    let at = at.credentials().await?;
    let agents = ["keyed", "other", "neutral"];
    let mut keys = Vec::new();
    for agent in agents {
        keys.push(at.new_key_of("owner-of-several", agent).await?);
    }
    for (agent, own) in agents.iter().zip(&keys) {
        let client = at.agent(agent, "echo");
        client.with_key(own).hello().await?.at("result")?;
        for key in keys.iter().filter(|key| *key != own) {
            for client in [client.with_key(key), client.with_bearer(key)] {
                let response = client.hello().await?;
                response.has_status(403)?;
                response.at("error.code")?;
            }
        }
    }
    let list = at.run(&["keys", "ls", "keyed", "--json"]).await?.stdout;
    let shows_scope = list.contains("a2a-agent:keyed") && !list.contains("a2a-agent:other");
    if shows_scope { Ok(()) } else { Err(mismatch("keys with the scope a2a-agent:keyed", list)) }
}

/// The card names the header, and a key counts in that header only.
pub(super) async fn header(at: &Fixture) -> CheckResult {
    let at = at.credentials().await?;
    let card = at.card("keyed", super::CARD).await?;
    card.is("securitySchemes.ApiKey.type", "apiKey")?;
    card.is("securitySchemes.ApiKey.in", "header")?;
    card.is("securitySchemes.ApiKey.name", "X-Api-Key")?;
    card.is_json("security", r#"[{"ApiKey":[]}]"#)?;
    let (client, key) = (at.agent("keyed", "echo"), at.new_key("keyed").await?);
    client.with_header("X-Api-Key", &key).hello().await?.is("result.kind", "message")?;
    for name in ["Api-Key", "X-ApiKey", "X-Api-Key-Id"] {
        client.with_header(name, &key).hello().await?.has_status(403)?;
    }
    Ok(())
}

pub(super) async fn required(at: &Fixture) -> CheckResult {
    let at = at.credentials().await?;
    for agent in ["keyed", "other", "narrow", "chat"] {
        let client = at.agent(agent, "echo");
        client.hello().await?.has_status(403)?;
        client.call("message/stream", "{}").await?.has_status(403)?;
        client.call("tasks/get", "{}").await?.has_status(403)?;
        // Refused before the body is looked into.
        client.post("{").await?.has_status(403)?;
        client.post_as("text/plain", "hello").await?.has_status(403)?;
    }
    let key = at.new_key("keyed").await?;
    at.agent("keyed", "echo").with_key(&key).hello().await?.is("result.kind", "message")
}

pub(super) async fn forbidden(at: &Fixture) -> CheckResult {
    let at = at.credentials().await?;
    let client = at.agent("keyed", "echo");
    let (key, foreign) = (at.new_key("keyed").await?, at.new_key("other").await?);
    let revoked = at.new_key("keyed").await?;
    client.with_key(&revoked).hello().await?.has_status(200)?;
    at.revoke(&revoked).await?;
    let (shorter, longer) = (&key[..key.len() - 1], format!("{key}a"));
    // The id of a valid key with the secret of another one.
    let mixed = format!("{}{}", &key[..key.len() - 20], &foreign[foreign.len() - 20..]);
    let unknown = format!("{KEY_PREFIX}aaaaaaaaaaaa_{}", "a".repeat(52));
    for wrong in [shorter, &longer, &mixed, &unknown, &key.to_uppercase(), &revoked, &foreign, "x"] {
        for client in [client.with_key(wrong), client.with_bearer(wrong)] {
            let response = client.hello().await?;
            response.has_status(403)?;
            response.at("error.code")?;
            response
                .ensure(!response.to_string().contains(wrong) || wrong == "x", "no key in the response")?;
        }
    }
    client.with_key(&key).with_key(&key).hello().await?.has_status(403)?;
    client.with_key(&key).with_bearer(&key).hello().await?.has_status(403)?;
    client.with_key(&key).hello().await?.has_status(200)
}

pub(super) async fn unauthenticated(at: &Fixture) -> CheckResult {
    let at = at.credentials().await?;
    for client in [at.agent("keyed", "echo"), at.agent("keyed", "echo").with_key("wrong")] {
        let response = client.hello().await?;
        response.has_error_code(-32010)?;
        response.is("jsonrpc", "2.0")?;
        response.non_empty("error.message")?;
        response.lacks("result")?;
    }
    // The code does not depend on the profile.
    at.agent("neutral", "echo").hello().await?.has_error_code(-32010)?;
    Ok(())
}
