//! What an agent declares about credentials: security schemes and requirements for its card and its OpenAPI document, and
//! the challenge of a response with status 401. Pure.

use engine::{AgentSettings, AuthMethod, EndUser};
use protocol::{
    Error, ErrorKind,
    model::{ApiKeyLocation, SecurityRequirement, SecurityScheme},
};

use super::Issuer;
use crate::response::respond;

/// The name of the scheme for the end user's token.
const END_USER_SCHEME: &str = "endUser";
/// The headers of credentials, as cards and challenges show them.
const API_KEY_HEADER: &str = "X-Api-Key";
const END_USER_HEADER: &str = "X-End-User-Token";
/// The path of an issuer's discovery document (OpenID Connect Discovery 1.0, 4).
const DISCOVERY_PATH: &str = "/.well-known/openid-configuration";

/// What a refused request has presented.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PresentedToken {
    /// No bearer token.
    NoToken,
    /// A bearer token that was not accepted.
    Token,
}

/// The security schemes of an agent that accepts these methods, by name. Issuers are those that the server knows; each
/// is a scheme of its own.
pub fn security_schemes(
    methods: impl IntoIterator<Item = AuthMethod>,
    issuers: &[Issuer],
) -> Vec<(String, SecurityScheme)> {
    methods.into_iter().flat_map(|method| schemes_of(method, issuers)).collect()
}

fn schemes_of(method: AuthMethod, issuers: &[Issuer]) -> Vec<(String, SecurityScheme)> {
    let one = |name: &str, scheme| vec![(name.to_owned(), scheme)];
    match method {
        AuthMethod::Anonymous => Vec::new(),
        AuthMethod::ApiKey => one("ApiKey", header(API_KEY_HEADER)),
        AuthMethod::Jwt => one("jwtBearer", bearer(Some("JWT"))),
        // Without an issuer no token is accepted, and there is no address to show.
        AuthMethod::Oidc if issuers.is_empty() => one("oidc", bearer(Some("JWT"))),
        AuthMethod::Oidc => issuers.iter().enumerate().map(open_id_connect).collect(),
        AuthMethod::Bearer => one("apiKey", bearer(None)),
        AuthMethod::Mtls => one("mtls", SecurityScheme::MutualTls { description: None }),
    }
}

fn header(name: &str) -> SecurityScheme {
    SecurityScheme::ApiKey { description: None, location: ApiKeyLocation::Header, name: name.into() }
}

fn bearer(format: Option<&str>) -> SecurityScheme {
    SecurityScheme::HttpAuth {
        description: None,
        scheme: "Bearer".into(),
        bearer_format: format.map(Into::into),
    }
}

/// `oidc` for the first issuer, then `oidc2` and so on.
fn open_id_connect((index, issuer): (usize, &Issuer)) -> (String, SecurityScheme) {
    let name = if index == 0 { "oidc".to_owned() } else { format!("oidc{}", index + 1) };
    let url = format!("{}{DISCOVERY_PATH}", issuer.issuer.trim_end_matches('/'));
    (name, SecurityScheme::OpenIdConnect { description: None, url })
}

/// All security schemes of an agent.
pub(crate) fn declared(settings: &AgentSettings) -> Vec<(String, SecurityScheme)> {
    let end_user = match settings.end_user {
        EndUser::Off => None,
        EndUser::Required => Some((END_USER_SCHEME.to_owned(), header(END_USER_HEADER))),
    };
    settings.security.iter().cloned().chain(end_user).collect()
}

/// The alternatives by which a caller can identify itself to an agent. Where an end user is required, each of them
/// includes its token.
pub(crate) fn requirements(settings: &AgentSettings) -> Vec<SecurityRequirement> {
    let needs_end_user = settings.end_user == EndUser::Required;
    let end_user = || needs_end_user.then(|| END_USER_SCHEME.to_owned());
    let mut alternatives: Vec<Vec<String>> =
        settings.security.iter().map(|(name, _)| vec![name.clone()]).collect();
    if settings.auth.permit_anonymous() && (needs_end_user || !alternatives.is_empty()) {
        // The empty requirement permits calls without a credential.
        alternatives.push(Vec::new());
    }
    let requirement = |names: Vec<String>| SecurityRequirement {
        schemes: names.into_iter().chain(end_user()).map(|name| (name, Vec::new())).collect(),
    };
    alternatives.into_iter().map(requirement).collect()
}

/// The headers by which a caller can identify itself to an agent, for example commands: their values have the name of a
/// shell variable in the place of the secret. Those of the first alternative; none if no credential is needed.
pub fn example_headers(settings: &AgentSettings) -> Vec<(&str, &'static str)> {
    let caller = match settings.security.first().filter(|_| !settings.auth.permit_anonymous()) {
        Some((_, SecurityScheme::ApiKey { name, .. })) => Some((name.as_str(), "$API_KEY")),
        Some((_, SecurityScheme::MutualTls { .. })) | None => None,
        Some((
            _,
            SecurityScheme::HttpAuth { .. }
            | SecurityScheme::OAuth2 { .. }
            | SecurityScheme::OpenIdConnect { .. },
        )) => Some(("Authorization", "Bearer $TOKEN")),
    };
    let end_user = match settings.end_user {
        EndUser::Off => None,
        EndUser::Required => Some((END_USER_HEADER, "$END_USER_TOKEN")),
    };
    caller.into_iter().chain(end_user).collect()
}

/// Adds the challenge for the agent's security schemes to an error about a missing or invalid credential, unless the
/// error has one or the agent has no schemes.
pub(crate) fn with_challenge(settings: &AgentSettings, presented: PresentedToken, error: Error) -> Error {
    let has_challenge = error.facts.iter().any(|(name, _)| *name == respond::CHALLENGE);
    if error.kind != ErrorKind::Unauthenticated || has_challenge {
        return error;
    }
    match challenge(settings, presented) {
        text if text.is_empty() => error,
        text => error.with(respond::CHALLENGE, text),
    }
}

/// The same for an error about the end user's token: the credential of the caller is not in question.
pub(crate) fn with_end_user_challenge(error: Error) -> Error {
    match error.kind {
        ErrorKind::Unauthenticated => error.with(respond::CHALLENGE, key_challenge(END_USER_HEADER)),
        _ => error,
    }
}

/// The value of `WWW-Authenticate` (RFC 9110 11.6.1; RFC 6750 3 for a token that was not accepted).
fn challenge(settings: &AgentSettings, presented: PresentedToken) -> String {
    let bearer = match presented {
        PresentedToken::NoToken => "Bearer",
        PresentedToken::Token => "Bearer error=\"invalid_token\"",
    };
    let mut challenges: Vec<String> = Vec::new();
    for (_, scheme) in &settings.security {
        let one = match scheme {
            SecurityScheme::HttpAuth { scheme, .. } if scheme.eq_ignore_ascii_case("bearer") => bearer.into(),
            SecurityScheme::HttpAuth { scheme, .. } => scheme.clone(),
            SecurityScheme::ApiKey { name, .. } => key_challenge(name),
            SecurityScheme::OAuth2 { .. } | SecurityScheme::OpenIdConnect { .. } => bearer.into(),
            SecurityScheme::MutualTls { .. } => "Mutual".into(),
        };
        if !challenges.contains(&one) {
            challenges.push(one);
        }
    }
    challenges.join(", ")
}

fn key_challenge(header: &str) -> String {
    format!("ApiKey name=\"{header}\"")
}
