//! `[auth]`: which credentials the server verifies; and, from it and `server.mode`, which ones an agent accepts that lists
//! none.
//!
//! Secrets are in environment variables, never in the file, and no error contains one.

use std::{collections::BTreeMap, sync::Arc};

use a2ad::internal::{IssuerKeyFetcher, ListenAddress};
use engine::{AuthMethod, AuthMethods};
use inbound::{ApiKeyOptions, AuthOptions, Issuer, NamedSecret, auth_checks};
use outbound::dial::Dialer;
use protocol::model::Secret;

use super::{
    ServerConfig,
    mode::Mode,
    read::{Parsed, Section},
    tree::Item,
    values::{self, text},
};

/// The variable of the shared secret, unless the file names another one.
const DEFAULT_SECRET: &str = "A2A_SECRET";

pub(crate) const AUTH_NAMES: [(&str, AuthMethod); 6] = [
    ("anonymous", AuthMethod::Anonymous),
    ("api-key", AuthMethod::ApiKey),
    ("jwt", AuthMethod::Jwt),
    ("oidc", AuthMethod::Oidc),
    ("bearer", AuthMethod::Bearer),
    ("mtls", AuthMethod::Mtls),
];

/// `[auth]`
#[derive(Clone, Debug)]
pub(crate) struct AuthConfig {
    /// What the audience of a token must be, if it has one; `None`: the address of the server.
    pub(crate) audience: Option<String>,
    /// The secrets of organisations by domain. Which credentials an agent accepts that lists none depends on those of the
    /// start, so that removing the last one opens no agent.
    pub(crate) org_secrets: BTreeMap<String, Secret>,
    /// Everything else, and the secrets of organisations at the start.
    pub(crate) options: AuthOptions,
}

/// Which credentials an agent accepts, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum AgentAuth {
    /// Those that the agent lists.
    Listed(Vec<AuthMethod>),
    /// Those that `[auth]` configures.
    Configured(Vec<AuthMethod>),
    /// Nothing is configured: everybody may call, in development.
    Open,
    /// Nothing is configured: nobody may call, in production.
    Unconfigured,
}

impl AgentAuth {
    /// What the agent accepts, in the order of the file.
    pub(crate) fn list(&self) -> &[AuthMethod] {
        match self {
            Self::Listed(methods) | Self::Configured(methods) => methods,
            Self::Open => &[AuthMethod::Anonymous],
            Self::Unconfigured => &[],
        }
    }

    pub(crate) fn methods(&self) -> AuthMethods {
        match self {
            Self::Listed(_) | Self::Configured(_) | Self::Open => self.list().iter().copied().collect(),
            Self::Unconfigured => AuthMethods::UNCONFIGURED,
        }
    }

    /// What the card declares. In production without authentication, that is what the operator will most likely configure.
    pub(super) fn declared(&self) -> &[AuthMethod] {
        match self {
            Self::Listed(_) | Self::Configured(_) | Self::Open => self.list(),
            Self::Unconfigured => &[AuthMethod::Jwt],
        }
    }
}

impl AuthConfig {
    /// What an agent accepts that lists nothing.
    pub(super) fn of_agents(&self, mode: Mode) -> AgentAuth {
        match (self.options.configured_methods(), mode) {
            (methods, _) if !methods.is_empty() => AgentAuth::Configured(methods),
            (_, Mode::Dev) => AgentAuth::Open,
            (_, Mode::Prod) => AgentAuth::Unconfigured,
        }
    }

    /// The options of a server that listens on these addresses.
    pub(super) fn options(
        &self,
        server: &ServerConfig,
        addresses: &[ListenAddress],
        dialer: &Dialer,
    ) -> AuthOptions {
        let default = || a2ad::internal::audiences(server.public_url.as_deref(), addresses);
        AuthOptions {
            audiences: self.audience.clone().map_or_else(default, |audience| vec![audience]),
            fetch: Some(Arc::new(IssuerKeyFetcher::new(dialer.clone()))),
            ..self.options.clone()
        }
    }

    /// Why no credential of a method can be verified, and what to set; `None` if some can.
    pub(crate) fn missing(&self, method: AuthMethod) -> Option<&'static str> {
        let missing = match method {
            // Without an address that verifies certificates, the configuration is refused.
            AuthMethod::Anonymous | AuthMethod::ApiKey | AuthMethod::Mtls => return None,
            AuthMethod::Jwt => {
                "jwt is listed and no secret is configured; set A2A_SECRET, or auth.org_secrets"
            }
            AuthMethod::Oidc => "oidc is listed and no issuer is configured; set auth.issuers",
            AuthMethod::Bearer => "bearer is listed and no token is configured; set auth.bearer_env",
        };
        (!self.options.can_verify(method)).then_some(missing)
    }
}

pub(super) fn auth(section: &Section<'_>) -> AuthConfig {
    let bearer = |item: &Item| named_secret(item, auth_checks::check_static_token);
    let org_secrets = org_secrets(&section.open("org_secrets"));
    AuthConfig {
        org_secrets: org_secrets.clone(),
        audience: Some(section.value("audience", text)).filter(|audience| !audience.is_empty()),
        options: AuthOptions {
            secret: secret(section),
            org_secrets,
            accepted_issuers: section.list("accepted_issuers", text),
            allow_anonymous_tokens: section.value("allow_anonymous_tokens", Item::boolean),
            bearer: section.value("bearer_env", bearer).map(|found| found.secret),
            issuers: issuers(section),
            api_keys: api_keys(&section.open("api_keys")),
            ..AuthOptions::default()
        },
    }
}

/// The shared secret. The variable of the default name may be unset; one that the file names has to be set.
fn secret(section: &Section<'_>) -> Option<NamedSecret> {
    if section.has("secret_env") {
        return section.get("secret_env", |item| named_secret(item, auth_checks::check_secret)).flatten();
    }
    let found = variable(DEFAULT_SECRET).and_then(|value| {
        let Some(value) = value else { return Ok(None) };
        checked(DEFAULT_SECRET, value, auth_checks::check_secret).map(Some)
    });
    found.unwrap_or_else(|problem| {
        section.report("secret_env", problem);
        None
    })
}

/// The value of the variable that a key names; `None` if the key is empty.
fn named_secret(
    item: &Item,
    check: impl Fn(&str) -> Result<(), &'static str>,
) -> Parsed<Option<NamedSecret>> {
    let name = item.text()?;
    if name.is_empty() {
        return Ok(None);
    }
    let unset = || format!("the environment variable {name} is not set; set it before starting");
    let value = variable(name)?.ok_or_else(unset)?;
    checked(name, value, check).map(Some)
}

fn checked(
    name: &str,
    value: String,
    check: impl Fn(&str) -> Result<(), &'static str>,
) -> Parsed<NamedSecret> {
    check(&value).map_err(|problem| format!("the environment variable {name} {problem}"))?;
    Ok(NamedSecret { name: name.to_owned(), secret: Secret::new(value) })
}

/// The value of a variable; `None` if it is unset or empty.
fn variable(name: &str) -> Parsed<Option<String>> {
    match std::env::var(name) {
        Ok(value) => Ok(Some(value).filter(|value| !value.is_empty())),
        Err(std::env::VarError::NotPresent) => Ok(None),
        Err(std::env::VarError::NotUnicode(_)) => {
            Err(format!("the environment variable {name} is not UTF-8 text"))
        }
    }
}

/// `org_secrets = { "acme.example" = { env = "ACME_SECRET" } }`
fn org_secrets(domains: &Section<'_>) -> BTreeMap<String, Secret> {
    let mut known: Vec<String> = Vec::new();
    let secret = |domain: &str| {
        let lower = domain.to_lowercase();
        if known.contains(&lower) {
            let text =
                format!("{domain:?} stands twice, because domains are compared without case; remove one");
            domains.report(domain, text);
        }
        known.push(lower);
        if let Err(problem) = auth_checks::check_org_domain(domain) {
            domains.report(domain, format!("{domain:?} {problem}"));
        }
        let section = domains.open(domain);
        let secret = |item: &Item| {
            let secret = named_secret(item, auth_checks::check_secret)?;
            secret.ok_or_else(|| "expected the name of an environment variable".to_owned())
        };
        let expected = "expected the environment variable with the secret, such as \"ACME_SECRET\"";
        Some((domain.to_owned(), section.required("env", expected, secret)?.secret))
    };
    domains.names().filter_map(secret).collect()
}

/// `issuers = [{ issuer = "https://id.example", audience = "a2ad", jwks_uri = "" }]`
fn issuers(auth: &Section<'_>) -> Vec<Issuer> {
    let mut issuers: Vec<Issuer> = Vec::new();
    for section in auth.tables("issuers") {
        let expected = "expected the issuer, which its tokens name as iss, such as \"https://id.example\"";
        let issuer = section.required("issuer", expected, |item| url(item, auth_checks::check_issuer));
        let expected = "expected the audience that its tokens must have";
        let audience = section.required("audience", expected, |item| match item.text()? {
            "" => Err(expected.to_owned()),
            audience => Ok(audience.to_owned()),
        });
        let jwks_uri = section.value("jwks_uri", |item| match item.text()? {
            "" => Ok(None),
            _ => url(item, auth_checks::check_jwks_uri).map(Some),
        });
        let (Some(issuer), Some(audience)) = (issuer, audience) else { continue };
        if issuers.iter().any(|earlier| earlier.issuer == issuer) {
            section.report("issuer", format!("{issuer:?} is listed twice"));
        }
        issuers.push(Issuer { issuer, audience, jwks_uri });
    }
    issuers
}

fn url(item: &Item, check: impl Fn(&str) -> Result<(), &'static str>) -> Parsed<String> {
    let text = item.text()?;
    check(text).map_err(|problem| format!("{text:?} {problem}"))?;
    Ok(text.to_owned())
}

/// `api_keys = { prefix = "a2ad_", max_per_agent = 20 }`
pub(super) fn api_keys(section: &Section<'_>) -> ApiKeyOptions {
    let prefix = |item: &Item| url(item, auth_checks::check_key_prefix);
    let max = |item: &Item| {
        let count = values::count(item)?;
        auth_checks::check_max_keys(count).map_err(|problem| format!("{count} {problem}"))?;
        Ok(count)
    };
    ApiKeyOptions {
        prefix: section.value("prefix", prefix),
        max_per_agent: section.value("max_per_agent", max),
    }
}

/// `auth` of an agent; `None` if it is absent or invalid.
pub(super) fn listed(agent: &Section<'_>, auth: &AuthOptions) -> Option<AgentAuth> {
    let mut methods = Vec::new();
    let read = agent.each("auth", |item| {
        let method = item.one_of(&AUTH_NAMES)?;
        if method == AuthMethod::Mtls && !auth.can_verify(method) {
            return Err("\"mtls\": no address of the server verifies client certificates; set client_ca in server.tls, or in \
                        tls of an address of server.listen"
                .to_owned());
        }
        if methods.contains(&method) {
            return Err(format!("{:?} is listed twice", item.text()?));
        }
        methods.push(method);
        Ok(())
    });
    read?;
    if methods.is_empty() {
        agent.report("auth", "expected at least one authentication method, such as \"anonymous\"");
    }
    Some(AgentAuth::Listed(methods))
}
