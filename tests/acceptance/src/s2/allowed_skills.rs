//! An agent whose configuration allows only some of its skills.

use crate::{CheckResult, fixture::Fixture, json::ValueChecks as _, test_client::TestClient};

/// The agent has more skills than the one that is allowed. A response about another one is that about an unknown skill.
pub(super) async fn only_allowed(at: &Fixture) -> CheckResult {
    let (server, path) = (at.private_server().await?, "/a2a/narrow");
    for file in ["agent.json", "agent-card.json"] {
        let card = server.get(&format!("{path}/.well-known/{file}"), &[]).await?;
        card.ensure(card.count("skills") == 1, "one skill")?;
        card.is("skills.0.id", "search")?;
        card.ensure(!card.to_string().contains("echo"), "no other skill")?;
    }
    let client = TestClient::new(server, path, "search");
    client.message(DATA, "").await?.is("result.kind", "message")?;
    let hidden = client.with_skill("echo").hello().await?;
    let unknown = client.with_skill("unknown").hello().await?;
    unknown.has_error_code(-32602)?;
    hidden.is("error", unknown.at("error")?)
}

const DATA: &str = r#"[{"kind":"data","data":{"query":"hello"}}]"#;
