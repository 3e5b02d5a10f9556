//! An agent that is enabled and disabled while the server runs.

use crate::{CheckResult, credentials::CredentialServer, fixture::Fixture, json::ValueChecks as _, mismatch};

const CARD: &str = "/.well-known/agent-card.json";

/// Over the operators' API and with the command line. Each check has its own agent, because they run at the same time.
pub(super) async fn at_run_time(at: &Fixture) -> CheckResult {
    let server = at.credentials().await?;
    let client = server.agent("switched", "echo").with_key(&server.new_key("switched").await?);
    let other = server.agent("keyed", "echo").with_key(&server.new_key("keyed").await?);
    let card = format!("/a2a/switched{CARD}");
    for way in [Way::Api, Way::CommandLine] {
        switch(server, way, "switched", "disable").await?;
        server.server.get(&card, &[]).await?.has_status(404)?;
        let refused = client.hello().await?;
        refused.has_status(404)?;
        refused.has_error_code(-32011)?;
        other.hello().await?.has_status(200)?;
        switch(server, way, "switched", "enable").await?;
        server.server.get(&card, &[]).await?.has_status(200)?;
        client.hello().await?.is("result.kind", "message")?;
    }
    Ok(())
}

/// Also with another profile, where the caller has no credential, and for an agent that does not exist.
pub(super) async fn status_404(at: &Fixture) -> CheckResult {
    let server = at.credentials().await?;
    switch(server, Way::Api, "off", "disable").await?;
    for agent in ["off", "nobody"] {
        let response = server.agent(agent, "echo").hello().await?;
        response.has_status(404)?;
        server.server.get(&format!("/a2a/{agent}{CARD}"), &[]).await?.has_status(404)?;
    }
    at.server.get(&format!("/a2a/closed{CARD}"), &[]).await?.has_status(404)
}

pub(super) async fn error_code(at: &Fixture) -> CheckResult {
    let server = at.credentials().await?;
    switch(server, Way::Api, "off", "disable").await?;
    let client = server.agent("off", "echo").with_key(&server.new_key("off").await?);
    client.hello().await?.has_error_code(-32011)?;
    server.agent("nobody", "echo").hello().await?.has_error_code(-32011)?;
    Ok(())
}

#[derive(Clone, Copy)]
enum Way {
    Api,
    CommandLine,
}

async fn switch(server: &CredentialServer, way: Way, agent: &str, action: &str) -> CheckResult {
    match way {
        Way::Api => {
            let path = format!("/console/api/agents/{agent}/{action}");
            server.console("POST", &path, "").await?.has_status(200)
        }
        Way::CommandLine => {
            let output = server.run(&["agents", action, agent]).await?;
            let is_said = output.stderr.contains("on the running server");
            if output.succeeded && is_said {
                Ok(())
            } else {
                Err(mismatch("a switched agent", output.stderr))
            }
        }
    }
}
