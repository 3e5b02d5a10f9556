//! The internal route `_process-task`, which starts the work of one task.

use crate::{
    CheckError, CheckResult,
    counted_function::CountedFunction,
    credentials::{BEARER, CredentialServer, FOREIGN_SECRET, SECRET, token_of},
    fixture::Fixture,
    http::{Response, Server},
    json::{ValueChecks as _, quote},
    mismatch,
    test_client::{TestClient, request, text_part},
    token::{now, wake_signature},
};

const PATH: &str = "/_agent-native/a2a/_process-task";
/// The longest lifetime of a signature.
const LIFETIME_SECONDS: i64 = 300;
const NO_ARGUMENTS: &str = r#"[{"kind":"data","data":{}}]"#;

/// Asks the server to start the work of a task, with a bearer token.
async fn wake(server: &Server, task: &str, token: Option<&str>) -> Result<Response, CheckError> {
    let client = TestClient::new(server, PATH, "");
    let client = token.map_or_else(|| client.clone(), |token| client.with_bearer(token));
    client.post(&format!(r#"{{"taskId":{}}}"#, quote(task))).await
}

fn signature(task: &str) -> String {
    wake_signature(SECRET, task, now() + 60)
}

/// A finished task.
async fn finished_task(at: &CredentialServer) -> Result<String, CheckError> {
    let client = at.native("echo").with_bearer(&token_of("ada"));
    let sent = client.hello().await?;
    Ok(sent.has_state("completed")?.non_empty("result.id")?.to_owned())
}

fn is_refused(response: &Response, why: &str) -> CheckResult {
    if matches!(response.status(), 401 | 403) {
        return Ok(());
    }
    Err(mismatch(format!("401 or 403 for a request {why}"), response))
}

fn is_success(response: &Response) -> CheckResult {
    if (200..300).contains(&response.status()) { Ok(()) } else { Err(mismatch("a success", response)) }
}

pub(super) async fn only_signed(at: &Fixture) -> CheckResult {
    let at = at.credentials().await?;
    let task = finished_task(at).await?;
    let valid = signature(&task);
    let (unsigned, _) = valid.rsplit_once('.').unwrap_or_default();
    for (why, token) in [
        ("with a signature of another secret", wake_signature(FOREIGN_SECRET, &task, now() + 60)),
        ("without its signature", format!("{unsigned}.")),
        ("with half a signature", valid[..valid.len() - 32].to_owned()),
        ("with another version", valid.replacen("v1", "v2", 1)),
        ("with the token of a caller", token_of("ada")),
        ("with the static token", BEARER.into()),
        ("with nonsense", "nonsense".into()),
    ] {
        is_refused(&wake(&at.server, &task, Some(&token)).await?, why)?;
    }
    is_refused(&wake(&at.server, &task, None).await?, "without a signature")?;
    is_success(&wake(&at.server, &task, Some(&valid)).await?)
}

/// A JSON-RPC request at this path is not served, whatever credential it has.
pub(super) async fn before_rpc(at: &Fixture) -> CheckResult {
    let at = at.credentials().await?;
    let task = finished_task(at).await?;
    let rpc = TestClient::new(&at.server, PATH, "echo");
    let body = request("message/send", &rpc.message_params(&text_part("hello"), "", ""));
    for token in [token_of("ada"), BEARER.to_owned(), signature(&task)] {
        let response = rpc.with_bearer(&token).post(&body).await?;
        response.ensure((400..500).contains(&response.status()), "a request that is not served")?;
        response.lacks("result")?;
    }
    let woken = wake(&at.server, &task, Some(&signature(&task))).await?;
    is_success(&woken)?;
    woken.lacks("jsonrpc")?;
    // The path above it still serves JSON-RPC.
    let above = at.native("echo").with_bearer(&token_of("ada"));
    above.hello().await?.has_state("completed")?;
    Ok(())
}

/// The task waits for the only run slot of its agent. However often its work is asked for, it runs once.
pub(super) async fn wakes_task(at: &Fixture) -> CheckResult {
    let at = at.credentials().await?;
    let holder = at.agent("single", "echo").with_bearer(&token_of("ada"));
    let held = holder.message(&text_part("hold"), r#","async":true"#).await?;
    let held = held.non_empty("result.id")?;
    let queued = holder.with_skill("queued");
    let sent = queued.message(NO_ARGUMENTS, r#","async":true"#).await?;
    let task = sent.non_empty("result.id")?;
    for _ in 0..3 {
        is_success(&wake(&at.server, task, Some(&signature(task))).await?)?;
    }
    holder.cancel(held).await?.has_state("canceled")?;
    is_success(&wake(&at.server, task, Some(&signature(task))).await?)?;
    queued.poll_until_state(task, "completed").await?;
    is_success(&wake(&at.server, task, Some(&signature(task))).await?)?;
    match at.function.calls("/queued") {
        1 => {}
        calls => return Err(mismatch("one run of the task", calls)),
    }
    let unknown = format!("{}22", &task[..task.len() - 2]);
    let response = wake(&at.server, &unknown, Some(&signature(&unknown))).await?;
    response.ensure(response.status() == 404, "404 for an unknown task")
}

pub(super) async fn one_task_five_minutes(at: &Fixture) -> CheckResult {
    let at = at.credentials().await?;
    let (task, other) = (finished_task(at).await?, finished_task(at).await?);
    for (why, token) in [
        ("for another task", signature(&other)),
        ("that has expired", wake_signature(SECRET, &task, now() - 60)),
        ("with a longer lifetime", wake_signature(SECRET, &task, now() + LIFETIME_SECONDS + 120)),
        ("with a lifetime of years", wake_signature(SECRET, &task, i64::MAX)),
    ] {
        is_refused(&wake(&at.server, &task, Some(&token)).await?, why)?;
    }
    // The expiry is part of what is signed.
    let expired = wake_signature(SECRET, &task, now() - 60);
    let (_, signed) = expired.rsplit_once('.').unwrap_or_default();
    let changed = format!("v1.{}.{signed}", now() + 60);
    is_refused(&wake(&at.server, &task, Some(&changed)).await?, "with a changed expiry")?;
    for lifetime in [5, LIFETIME_SECONDS - 5] {
        let token = wake_signature(SECRET, &task, now() + lifetime);
        is_success(&wake(&at.server, &task, Some(&token)).await?)?;
    }
    Ok(())
}

/// Without a secret, also where callers have another credential.
pub(super) async fn without_secret(at: &Fixture) -> CheckResult {
    let function = CountedFunction::start().await?;
    for (name, environment) in [
        ("no-secret", &[("VERCEL", "1")][..]),
        ("only-static-token", &[("VERCEL", "1"), ("A2AD_AUTH__BEARER_ENV", "TOKEN"), ("TOKEN", BEARER)]),
    ] {
        let program = at.open_server(name, &function, environment).await?;
        let task = "task_00000000000000000000000000";
        for secret in ["", SECRET] {
            let token = wake_signature(secret, task, now() + 60);
            wake(&program.server, task, Some(&token)).await?.has_status(503)?;
        }
        wake(&program.server, task, None).await?.has_status(503)?;
    }
    Ok(())
}
