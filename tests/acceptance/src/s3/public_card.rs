//! Which skills are public: those of users and organisations are not.

use crate::{
    CheckResult,
    fixture::Fixture,
    http::{Response, Server},
    json::ValueChecks as _,
    test_client::{TestClient, text_part},
};

/// Skills of a user and of an organisation, which the server has.
const PRIVATE: [&str; 2] = ["mcp__user_5f2c9a_notes", "mcp__org_acme_files"];
/// A skill that the server does not have.
const UNKNOWN: &str = "mcp__user_5f2c9a_unknown";

/// Private skills are on no form of the public card, in no list of skills, and cannot be called; a response about one is
/// that about an unknown skill. This holds also for an agent that has one for callers with a credential.
pub(super) async fn private_skills_hidden(at: &Fixture) -> CheckResult {
    let server = at.private_server().await?;
    for card in cards(server, "main").await?.iter().chain(&cards(server, "members").await?) {
        names_no_private_skill(card)?;
        // The search of the operator is the only tool left.
        card.ensure(card.text("description")?.ends_with("with 1 tool(s)"), "a description with 1 tool(s)")?;
    }
    for path in ["/_agent-native/a2a", "/a2a/main", "/a2a/members"] {
        let unknown = TestClient::new(server, path, UNKNOWN).message(&text_part("hello"), "").await?;
        unknown.has_error_code(-32602)?;
        for skill in PRIVATE {
            let response = TestClient::new(server, path, skill).message(&text_part("hello"), "").await?;
            response.is("error", unknown.at("error")?)?;
        }
        let question = server.post(path, WITHOUT_SKILL).await?;
        question.has_state("input-required")?;
        names_no_private_skill(&question)?;
    }
    let extended = TestClient::new(server, "/a2a/members", "").call(EXTENDED_CARD, "{}").await?;
    extended.at("error")?;
    names_no_private_skill(&extended)
}

const EXTENDED_CARD: &str = "agent/getAuthenticatedExtendedCard";

/// No skill is named, and the text fits none.
const WITHOUT_SKILL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"message/send","params":{"message":
    {"kind":"message","messageId":"m","role":"user","parts":[{"kind":"text","text":"notes and files, please"}]}}}"#;

/// A tool of the operator's own MCP server and a skill of the configuration file.
pub(super) async fn operator_skills_shown(at: &Fixture) -> CheckResult {
    for card in cards(at.private_server().await?, "main").await? {
        for expected in ["search", "echo"] {
            let shown = card.list("skills")?.iter().any(|skill| skill.is("id", expected).is_ok());
            card.ensure(shown, &format!("the skill {expected}"))?;
        }
    }
    Ok(())
}

/// The public card of an agent in all its forms.
async fn cards(server: &Server, agent: &str) -> Result<Vec<Response>, crate::CheckError> {
    let path = |file: &str| format!("/a2a/{agent}/.well-known/{file}");
    let mut cards = vec![server.get(&path("agent.json"), &[]).await?];
    for headers in [&[][..], &[("a2a-version", "0.3")], &[("a2a-version", "1.0")]] {
        cards.push(server.get(&path("agent-card.json"), headers).await?);
    }
    for card in &cards {
        card.has_status(200)?;
    }
    Ok(cards)
}

fn names_no_private_skill(response: &Response) -> CheckResult {
    let text = response.to_string();
    let named = ["mcp__user_", "mcp__org_"].iter().any(|prefix| text.contains(prefix));
    response.ensure(!named, "no skill of a user or an organisation")
}
