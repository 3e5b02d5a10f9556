//! Authentication: turns a request's credential into the caller's scope.
//!
//! No credential can be checked yet, so every caller is the anonymous principal of the default tenant. For that reason
//! the command line refuses to listen on addresses other than loopback.

use engine::{AgentSettings, DEFAULT_TENANT, Scope};
use protocol::{Error, ErrorKind, error::excerpt, model::SecurityScheme};

use crate::respond;

/// Rejects every tenant but the default one.
pub(crate) fn check_tenant(tenant: Option<&str>) -> Result<(), Error> {
    match tenant {
        None | Some("" | DEFAULT_TENANT) => Ok(()),
        Some(tenant) => {
            let shown = excerpt(tenant);
            let text = format!("unknown tenant {shown:?}; omit it");
            Err(Error::new(ErrorKind::AgentDisabled, text))
        }
    }
}

/// The scope of a caller without a credential.
pub(crate) fn anonymous(agent: &str) -> Scope {
    Scope::anonymous(DEFAULT_TENANT, agent)
}

/// The error for a caller without a credential. It includes the challenge for the agent's security schemes, if there are
/// any.
pub(crate) fn credential_required(settings: &AgentSettings, text: impl Into<String>) -> Error {
    let error = Error::new(ErrorKind::Unauthenticated, text);
    let challenge = challenge(settings);
    if challenge.is_empty() { error } else { error.with(respond::CHALLENGE, challenge) }
}

/// The value of `WWW-Authenticate` (RFC 9110 11.6.1).
fn challenge(settings: &AgentSettings) -> String {
    let one = |scheme: &SecurityScheme| match scheme {
        SecurityScheme::HttpAuth { scheme, .. } => scheme.clone(),
        SecurityScheme::ApiKey { name, .. } => format!("ApiKey name=\"{name}\""),
        SecurityScheme::OAuth2 { .. } | SecurityScheme::OpenIdConnect { .. } => "Bearer".into(),
        SecurityScheme::MutualTls { .. } => "Mutual".into(),
    };
    let mut challenges: Vec<String> = settings.security.iter().map(|(_, scheme)| one(scheme)).collect();
    challenges.dedup();
    challenges.join(", ")
}
