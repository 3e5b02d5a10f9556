//! The options of authentication.

use std::{
    collections::BTreeMap,
    fmt::{self, Debug, Formatter},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use engine::AuthMethod;
use futures_util::future::BoxFuture;
use protocol::model::Secret;

/// Which credentials the server can verify. Which of them an agent accepts is a setting of the agent.
#[derive(Clone, Default)]
pub struct AuthOptions {
    /// The secret of HS256 tokens.
    pub secret: Option<NamedSecret>,
    /// Secrets of HS256 tokens of organisations, by the value of the claim `org_domain`.
    pub org_secrets: BTreeMap<String, Secret>,
    /// What the audience of an HS256 token may be, if the token has one.
    pub audiences: Vec<String>,
    /// What the issuer of an HS256 token may be, if the token has one; empty: anything.
    pub accepted_issuers: Vec<String>,
    /// Whether HS256 tokens without `sub` are accepted. Those of one secret are the same caller.
    pub allow_anonymous_tokens: bool,
    /// The static token.
    pub bearer: Option<Secret>,
    /// Issuers of tokens with a public key.
    pub issuers: Vec<Issuer>,
    /// Fetches the keys of issuers; without it, their tokens are not accepted.
    pub fetch: Option<Arc<dyn FetchKeys>>,
    /// How API keys are made.
    pub api_keys: ApiKeyOptions,
    /// Whether a listener verifies client certificates.
    pub client_certificates: bool,
    /// The token of operators; without it, their API is not served.
    pub admin_token: Option<Secret>,
    /// Who names callers.
    pub caller_names: CallerNames,
}

/// Who names callers. An application that identifies them itself may use names of the same form as those of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallerNames {
    /// Their credentials do.
    #[default]
    Credentials,
    /// An application in which the server is mounted may do so.
    Application,
}

impl AuthOptions {
    /// Whether credentials of a method can be verified. API keys are in the store, so they always can.
    pub fn can_verify(&self, method: AuthMethod) -> bool {
        match method {
            AuthMethod::Anonymous | AuthMethod::ApiKey => true,
            AuthMethod::Jwt => self.secret.is_some() || !self.org_secrets.is_empty(),
            AuthMethod::Oidc => !self.issuers.is_empty(),
            AuthMethod::Bearer => self.bearer.is_some(),
            AuthMethod::Mtls => self.client_certificates,
        }
    }

    /// The methods of an agent that lists none: those that are configured here.
    pub fn configured_methods(&self) -> Vec<AuthMethod> {
        let methods = [AuthMethod::Jwt, AuthMethod::Oidc, AuthMethod::Bearer, AuthMethod::Mtls];
        methods.into_iter().filter(|method| self.can_verify(*method)).collect()
    }

    /// Whether any token of an end user can be verified.
    pub fn can_verify_end_users(&self) -> bool {
        self.can_verify(AuthMethod::Jwt) || self.can_verify(AuthMethod::Oidc)
    }
}

/// A secret with a name that may be shown.
#[derive(Clone)]
pub struct NamedSecret {
    /// Part of the principal of its callers.
    pub name: String,
    /// The secret.
    pub secret: Secret,
}

/// An issuer of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issuer {
    /// The value of the claim `iss`: a URL.
    pub issuer: String,
    /// What the audience of its tokens must contain.
    pub audience: String,
    /// Where its keys are; `None`: as its discovery document (OpenID Connect Discovery 1.0) states.
    pub jwks_uri: Option<String>,
}

/// How API keys are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKeyOptions {
    /// The beginning of every key.
    pub prefix: String,
    /// The most valid keys of an agent.
    pub max_per_agent: usize,
}

impl Default for ApiKeyOptions {
    fn default() -> Self {
        Self { prefix: "a2ad_".into(), max_per_agent: 20 }
    }
}

/// The largest document with keys of an issuer.
pub const MAX_KEY_DOCUMENT_BYTES: usize = 256 << 10;
/// How long it may take to fetch a document with keys.
pub const KEY_FETCH_TIMEOUT: Duration = Duration::from_secs(5);

/// Fetches documents with the keys of issuers. The crate that opens connections implements it.
pub trait FetchKeys: Send + Sync + 'static {
    /// Sends a GET request and returns the body of a response with status 200, which is at most
    /// [`MAX_KEY_DOCUMENT_BYTES`] long. Redirects are not followed.
    fn fetch(&self, url: KeyUrl) -> BoxFuture<'static, Result<Bytes, KeyFetchError>>;
}

/// The address of a document with keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyUrl {
    /// From the configuration.
    Configured(String),
    /// From the discovery document of an issuer.
    Discovered(String),
}

/// Why a document could not be fetched. The text is for the log.
#[derive(Clone, Debug)]
pub struct KeyFetchError(pub String);

impl fmt::Display for KeyFetchError {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Names and counts only.
impl Debug for AuthOptions {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.debug_struct("AuthOptions")
            .field("secret", &self.secret.as_ref().map(|secret| &secret.name))
            .field("org_secrets", &self.org_secrets.keys())
            .field("audiences", &self.audiences)
            .field("accepted_issuers", &self.accepted_issuers)
            .field("allow_anonymous_tokens", &self.allow_anonymous_tokens)
            .field("bearer", &self.bearer.is_some())
            .field("issuers", &self.issuers)
            .field("api_keys", &self.api_keys)
            .field("client_certificates", &self.client_certificates)
            .field("admin_token", &self.admin_token.is_some())
            .finish_non_exhaustive()
    }
}
