//! Rate limits: what a caller gets that calls too often, and that the rate is configured for each key.

use super::{
    CheckError, CheckResult,
    credentials::{Output, run},
    fixture::Fixture,
    http::{Response, Server},
    json::ValueChecks as _,
    mismatch,
    server_process::{Plan, ServerProcess},
    test_client::TestClient,
};

/// A server whose callers may call seldom.
pub(crate) struct LimitedServer {
    pub(crate) plan: Plan,
    pub(crate) process: ServerProcess,
}

impl LimitedServer {
    fn server(&self) -> &Server {
        &self.process.server
    }

    async fn new_key(&self, agent: &str) -> Result<String, CheckError> {
        let store = self.plan.store();
        run(&self.plan, &["keys", "new", agent, "--store", &store.to_string_lossy()])
            .await
            .and_then(Output::key)
    }

    /// A client with a new key of an agent at this path.
    async fn client(&self, path: &str, agent: &str) -> Result<TestClient, CheckError> {
        Ok(TestClient::new(self.server(), path, "echo").with_key(&self.new_key(agent).await?))
    }
}

/// The call after the last permitted one is refused: 429, -32012 and when to try again.
pub(crate) async fn refusal(at: &Fixture) -> CheckResult {
    let server = at.limited_server("rate-limit", "3/h").await?;
    let client = server.client("/a2a/keyed", "keyed").await?;
    for _ in 0..3 {
        client.hello().await?.is("result.kind", "message")?;
    }
    is_refused(&client.hello().await?, 1_200)
}

/// Another rate holds for each key, and the default is shown.
pub(crate) async fn per_key(at: &Fixture) -> CheckResult {
    let server = at.limited_server("rate-per-key", "1/h").await?;
    let (first, second) =
        (server.client("/a2a/keyed", "keyed").await?, server.client("/a2a/keyed", "keyed").await?);
    for client in [first, second] {
        client.hello().await?.is("result.kind", "message")?;
        is_refused(&client.hello().await?, 3_600)?;
    }
    at.effective_config().await?.is("limits.rate.per_key", "600/min")
}

/// The endpoint of the profile `agentos`.
pub(crate) async fn rpc(at: &Fixture) -> CheckResult {
    let server = at.limited_server("rate-of-rpc", "2/min").await?;
    let client = server.client("/a2a/rpc", "main").await?;
    for _ in 0..2 {
        client.send_text("hello").await?.1.has_state("completed")?;
    }
    is_refused(&client.send_text("hello").await?.1, 30)
}

fn is_refused(response: &Response, most_seconds: u64) -> CheckResult {
    response.has_status(429)?;
    response.has_error_code(-32_012)?;
    let seconds = response.header("retry-after").and_then(|value| value.parse::<u64>().ok());
    match seconds {
        Some(seconds) if (1..=most_seconds).contains(&seconds) => Ok(()),
        _ => Err(mismatch(
            format!("Retry-After from 1 to {most_seconds}"),
            response.header("retry-after").unwrap_or("no such header"),
        )),
    }
}
