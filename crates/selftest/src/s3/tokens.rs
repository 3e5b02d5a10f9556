//! Bearer tokens: those signed with a shared secret, and the static one.

use serde_json::{Value, json};

use crate::{
    CheckResult,
    credentials::{
        AUDIENCE, BEARER, CredentialServer, FOREIGN_SECRET, ORG, ORG_SECRET, ORG_WITH_SERVER_SECRET, SECRET,
        token_of, token_with,
    },
    fixture::Fixture,
    json::ValueChecks as _,
    mismatch,
    test_client::TestClient,
    token::{base64url, hs256, now, unsigned},
};

/// Checks that the default agent accepts a token.
async fn accepted(at: &CredentialServer, token: &str) -> CheckResult {
    at.native("echo").with_bearer(token).hello().await?.has_state("completed")?;
    Ok(())
}

/// Checks that the default agent does not accept a token; `why` names it.
async fn refused(at: &CredentialServer, why: &str, token: &str) -> CheckResult {
    let response = at.native("echo").with_bearer(token).hello().await?;
    let is_challenged = response.header("www-authenticate").is_some_and(|text| text.contains("Bearer"));
    if response.status() == 401 && is_challenged && response.find("result").is_none() {
        return Ok(());
    }
    Err(mismatch(format!("401 for a token {why}"), response))
}

/// Tokens whose signature does not prove anything.
fn forged() -> Vec<(&'static str, String)> {
    let valid = token_of("ada");
    let (content, signature) = valid.rsplit_once('.').unwrap_or_default();
    let claims = base64url(json!({ "sub": "admin", "exp": now() + 300 }).to_string().as_bytes());
    let header = content.split('.').next().unwrap_or_default();
    vec![
        ("of another secret", hs256(FOREIGN_SECRET, &json!({}))),
        ("of an empty secret", hs256("", &json!({}))),
        ("without a signature", unsigned(&json!({}))),
        ("with an empty signature", format!("{content}.")),
        ("with other claims", format!("{header}.{claims}.{signature}")),
        ("with half a signature", format!("{content}.{}", &signature[..signature.len() / 2])),
        ("that is no token", "a.b.c".into()),
        ("of two parts", content.into()),
    ]
}

pub(super) async fn signed(at: &Fixture) -> CheckResult {
    let at = at.credentials().await?;
    accepted(at, &token_of("ada")).await?;
    for (why, token) in forged() {
        refused(at, why, &token).await?;
    }
    let missing = at.native("echo").hello().await?;
    missing.has_status(401)?;
    missing.at("error.code")?;
    // The caller is who the token names: another one does not see its tasks.
    let [ada, bob] = ["ada", "bob"].map(|user| at.native("echo").with_bearer(&token_of(user)));
    let sent = ada.hello().await?;
    let task = sent.non_empty("result.id")?;
    ada.get(task).await?.is("result.id", task)?;
    bob.get(task).await?.has_error_code(-32001)?;
    Ok(())
}

pub(super) async fn static_token(at: &Fixture) -> CheckResult {
    let at = at.credentials().await?;
    accepted(at, BEARER).await?;
    for (why, wrong) in [
        ("that is shorter", &BEARER[1..]),
        ("that is longer", &format!("{BEARER}0")),
        ("in upper case", &BEARER.to_uppercase()),
        ("that is the variable's name", "SELFTEST_BEARER"),
        ("that is the secret", SECRET),
    ] {
        refused(at, why, wrong).await?;
    }
    Ok(())
}

/// At the same agent, and only where both are listed.
pub(super) async fn both(at: &Fixture) -> CheckResult {
    let at = at.credentials().await?;
    for token in [BEARER, &token_of("ada"), BEARER] {
        accepted(at, token).await?;
    }
    refused(at, "of another secret", &hs256(FOREIGN_SECRET, &json!({}))).await?;
    let signed_only = at.agent("signed", "echo");
    signed_only.with_bearer(&token_of("ada")).hello().await?.has_state("completed")?;
    signed_only.with_bearer(BEARER).hello().await?.has_status(401)?;
    // The two are different callers.
    let sent = at.native("echo").with_bearer(BEARER).hello().await?;
    let task = sent.non_empty("result.id")?;
    at.native("echo").with_bearer(&token_of("ada")).get(task).await?.has_error_code(-32001)?;
    Ok(())
}

/// Counts the calls of a function, over several bindings.
pub(super) async fn never_reach_agent(at: &Fixture) -> CheckResult {
    let at = at.credentials().await?;
    let calls = || at.function.calls("/count");
    let before = calls();
    let mut wrong: Vec<String> = forged().into_iter().map(|(_, token)| token).collect();
    wrong.push(token_with(&json!({ "exp": now() - 120 })));
    wrong.push("nonsense".into());
    let native = at.native("count");
    let data = r#"[{"kind":"data","data":{}}]"#;
    for token in &wrong {
        let client = native.with_bearer(token);
        client.message(data, "").await?.has_status(401)?;
        let params = client.message_params(data, "", "");
        client.call("message/stream", &params).await?.has_status(401)?;
        TestClient { path: "/run/count".into(), ..client.clone() }.post("{}").await?.has_status(401)?;
        TestClient { path: "/a2a/rpc".into(), ..client }.message(data, "").await?.has_status(401)?;
    }
    native.message(data, "").await?.has_status(401)?;
    if calls() != before {
        return Err(mismatch("no call of the function", calls() - before));
    }
    native.with_bearer(&token_of("ada")).message(data, "").await?.has_state("completed")?;
    if calls() == before + 1 { Ok(()) } else { Err(mismatch("one call of the function", calls() - before)) }
}

/// The owner of a task shows which secret has verified a token.
pub(super) async fn secret_of_organisation(at: &Fixture) -> CheckResult {
    let at = at.credentials().await?;
    let client = |secret: &str, claims: Value| at.native("echo").with_bearer(&hs256(secret, &claims));
    let own = client(SECRET, json!({}));
    let own_with_org = client(SECRET, json!({ "org_domain": ORG }));
    let of_org = client(ORG_SECRET, json!({ "org_domain": ORG }));
    let sent = own.hello().await?;
    let task = sent.has_state("completed")?.non_empty("result.id")?;
    own_with_org.get(task).await?.is("result.id", task)?;
    of_org.hello().await?.has_state("completed")?;
    of_org.get(task).await?.has_error_code(-32001)?;
    // Both secrets are the same, and the global one is tried first.
    client(SECRET, json!({ "org_domain": ORG_WITH_SERVER_SECRET })).get(task).await?.is("result.id", task)?;
    for (why, claims) in [
        ("of an organisation without its name", json!({})),
        ("of another organisation", json!({ "org_domain": ORG_WITH_SERVER_SECRET })),
        ("of an unknown organisation", json!({ "org_domain": "unknown.example" })),
        ("of an organisation in a list", json!({ "org_domain": [ORG] })),
    ] {
        refused(at, why, &hs256(ORG_SECRET, &claims)).await?;
    }
    refused(at, "of no known secret", &hs256(FOREIGN_SECRET, &json!({ "org_domain": ORG }))).await
}

pub(super) async fn claims(at: &Fixture) -> CheckResult {
    let at = at.credentials().await?;
    for claims in [
        json!({}),
        json!({ "aud": AUDIENCE }),
        json!({ "aud": ["another", AUDIENCE] }),
        json!({ "iss": "mail.example" }),
        json!({ "nbf": now() - 60, "iat": now() - 60 }),
    ] {
        accepted(at, &token_with(&claims)).await?;
    }
    for (why, claims) in [
        ("without exp", json!({ "exp": null })),
        ("that has expired", json!({ "exp": now() - 120 })),
        ("with exp as a text", json!({ "exp": (now() + 300).to_string() })),
        ("with exp 0", json!({ "exp": 0 })),
        ("for later", json!({ "nbf": now() + 600 })),
        ("for another audience", json!({ "aud": "another" })),
        ("with aud as a number", json!({ "aud": 7 })),
        ("with an empty issuer", json!({ "iss": "" })),
        ("with iss as a number", json!({ "iss": 7 })),
        ("in the name of a configured issuer", json!({ "iss": at.issuer.url() })),
    ] {
        refused(at, why, &token_with(&claims)).await?;
    }
    Ok(())
}

pub(super) async fn other_service(at: &Fixture) -> CheckResult {
    let at = at.credentials().await?;
    for audience in
        [json!("https://billing.example"), json!([]), json!(["https://billing.example", "other"]), json!("")]
    {
        refused(at, "for another service", &token_with(&json!({ "aud": audience }))).await?;
    }
    // A part of the audience is not the audience.
    for audience in [&AUDIENCE[..AUDIENCE.len() - 1], &format!("{AUDIENCE}.evil.example")] {
        refused(at, "for a similar audience", &token_with(&json!({ "aud": audience }))).await?;
    }
    accepted(at, &token_with(&json!({ "aud": AUDIENCE }))).await
}
