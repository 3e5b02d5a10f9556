//! What callers with a credential see: the schemes on the public card, and the skills on the extended one.

use crate::{
    CheckResult,
    credentials::{FOREIGN_SECRET, token_of},
    fixture::Fixture,
    json::ValueChecks as _,
    token::hs256,
};

use super::production::{has_jwt_scheme, is_bearer};

const EXTENDED_CARD: &str = "agent/getAuthenticatedExtendedCard";

/// The agent accepts what the server is configured with: a secret and a static token.
pub(super) async fn on_card(at: &Fixture) -> CheckResult {
    let at = at.credentials().await?;
    let card = at.server.get("/.well-known/agent-card.json", &[]).await?;
    card.has_status(200)?;
    card.is("securitySchemes.apiKey.type", "http")?;
    is_bearer(&card, "apiKey")?;
    has_jwt_scheme(&card)?;
    // Each of them suffices, and there is no way without.
    let alternatives = card.list("security")?;
    for scheme in ["apiKey", "jwtBearer"] {
        let has = alternatives.iter().any(|alternative| alternative.names() == [scheme]);
        card.ensure(has, &format!("the requirement {scheme}"))?;
    }
    let is_open = alternatives.iter().any(|alternative| alternative.names().is_empty());
    card.ensure(!is_open, "no calls without a credential")
}

/// The public card does not show the skill, which anonymous callers cannot call either.
pub(super) async fn more_skills(at: &Fixture) -> CheckResult {
    let at = at.credentials().await?;
    let public = at.card("members", "agent-card.json").await?;
    public.ensure(!public.to_string().contains("greet"), "a public card without greet")?;
    let anonymous = at.agent("members", "greet");
    anonymous.hello().await?.has_error_code(-32602)?;
    anonymous.call(EXTENDED_CARD, "{}").await?.has_status(401)?;
    let forged = anonymous.with_bearer(&hs256(FOREIGN_SECRET, &serde_json::json!({})));
    forged.call(EXTENDED_CARD, "{}").await?.has_status(401)?;
    let known = anonymous.with_bearer(&token_of("ada"));
    let extended = known.call(EXTENDED_CARD, "{}").await?;
    for skill in ["echo", "greet"] {
        let shown = extended.list("result.skills")?.iter().any(|shown| shown.is("id", skill).is_ok());
        extended.ensure(shown, &format!("the skill {skill}"))?;
    }
    known.hello().await?.has_state("completed")?;
    Ok(())
}
