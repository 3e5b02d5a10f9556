//! Which credentials a server of the library verifies.

use std::fmt::{self, Debug, Formatter};
#[cfg(feature = "backends")]
use std::sync::Arc;

use inbound::{ApiKeyOptions, AuthMethod, AuthOptions, CallerNames, Issuer, NamedSecret};
#[cfg(feature = "backends")]
use outbound::dial::{DialPolicy, Dialer};
use protocol::model::Secret;

#[cfg(feature = "backends")]
use crate::issuer_keys::IssuerKeyFetcher;
use crate::listeners::ListenAddress;

/// Which credentials a server verifies, for [`Builder::auth`](super::Builder::auth). Which of them an agent accepts is set
/// with [`Card::auth`](super::Card::auth).
///
/// ```
/// use a2ad::{Card, Server, agents::Echo, server::{Auth, AuthMethod}};
///
/// # #[tokio::main]
/// # async fn main() -> a2ad::Result<()> {
/// # let (secret, token) = ("a secret of at least 16 bytes", "0123456789abcdef");
/// // `secret` and `token` come from the environment, a file or a vault.
/// let auth = Auth::new().secret("A2A_SECRET", secret).bearer(token);
/// let server = Server::builder()
///     .auth(auth)
///     // Accepts what the server verifies: tokens signed with the secret, and the static token.
///     .agent("echo", Echo)
///     // Accepts its own API keys only.
///     .agent(Card::new("private").auth([AuthMethod::ApiKey]), Echo)
///     // Accepts everybody.
///     .agent(Card::new("open").anonymous(true), Echo)
///     .build()?;
/// # drop(server);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Default)]
pub struct Auth(AuthOptions);

impl Auth {
    /// Verifies API keys only, which are in the store.
    pub fn new() -> Self {
        Self::default()
    }

    /// The secret of HS256 tokens, at least 16 bytes. Its name is a part of the principal of their callers and may be
    /// shown; changing it gives every caller a new identity.
    #[must_use]
    pub fn secret(mut self, name: impl Into<String>, secret: impl Into<String>) -> Self {
        self.0.secret = Some(NamedSecret { name: name.into(), secret: Secret::new(secret) });
        self
    }

    /// The secret of HS256 tokens of one organisation: those whose claim `org_domain` has this value.
    #[must_use]
    pub fn org_secret(mut self, domain: impl Into<String>, secret: impl Into<String>) -> Self {
        self.0.org_secrets.insert(domain.into(), Secret::new(secret));
        self
    }

    /// What the audience of an HS256 token may be, if the token has one; can be repeated. Default: that of
    /// [`Builder::public_url`](super::Builder::public_url), else the address of [`Builder::serve`](super::Builder::serve).
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.0.audiences.push(audience.into());
        self
    }

    /// Accepts HS256 tokens without `sub`, which are refused otherwise. All such tokens of one secret are the same caller.
    #[must_use]
    pub fn allow_anonymous_tokens(mut self) -> Self {
        self.0.allow_anonymous_tokens = true;
        self
    }

    /// A static token, at least 16 bytes of ASCII. All callers that have it are the same caller.
    #[must_use]
    pub fn bearer(mut self, token: impl Into<String>) -> Self {
        self.0.bearer = Some(Secret::new(token));
        self
    }

    /// An issuer of tokens with a public key (OpenID Connect), and the audience that its tokens must have. Its keys are
    /// found by its discovery document. Needs the feature `backends`, which can open connections.
    #[cfg(feature = "backends")]
    #[must_use]
    pub fn issuer(self, issuer: impl Into<String>, audience: impl Into<String>) -> Self {
        self.with_issuer(Issuer { issuer: issuer.into(), audience: audience.into(), jwks_uri: None })
    }

    /// The same with the address of the keys, where the issuer has no discovery document.
    #[cfg(feature = "backends")]
    #[must_use]
    pub fn issuer_with_keys(
        self,
        issuer: impl Into<String>,
        audience: impl Into<String>,
        jwks_uri: impl Into<String>,
    ) -> Self {
        let jwks_uri = Some(jwks_uri.into());
        self.with_issuer(Issuer { issuer: issuer.into(), audience: audience.into(), jwks_uri })
    }

    #[cfg(feature = "backends")]
    fn with_issuer(mut self, issuer: Issuer) -> Self {
        self.0.issuers.push(issuer);
        self
    }

    /// How API keys begin, and how many valid ones an agent may have; default: `a2ad_` and 20.
    #[must_use]
    pub fn api_keys(mut self, prefix: impl Into<String>, max_per_agent: usize) -> Self {
        self.0.api_keys = ApiKeyOptions { prefix: prefix.into(), max_per_agent };
        self
    }

    /// What is wrong with the first invalid value: its name or text, and the problem.
    pub(super) fn invalid(&self) -> Option<(String, &'static str)> {
        self.0.invalid()
    }

    /// The methods of an agent that lists none; empty if nothing is configured.
    pub(super) fn methods(&self) -> Vec<AuthMethod> {
        self.0.configured_methods()
    }

    /// Whether an address of the server verifies client certificates.
    pub(super) fn set_client_certificates(&mut self, verified: bool) {
        self.0.client_certificates = verified;
    }

    pub(super) fn issuers(&self) -> &[Issuer] {
        &self.0.issuers
    }

    /// Why no credential of a method can be verified, as the end of a sentence.
    pub(super) fn missing(&self, method: AuthMethod) -> Option<&'static str> {
        let missing = match method {
            AuthMethod::Anonymous | AuthMethod::ApiKey => return None,
            AuthMethod::Jwt => "accepts tokens of a shared secret, and Auth has none",
            AuthMethod::Oidc => "accepts tokens of issuers, and Auth has none",
            AuthMethod::Bearer => "accepts a static token, and Auth has none",
            AuthMethod::Mtls => {
                "accepts client certificates, and no address of Builder::serve_on verifies them; set TlsFiles::client_ca"
            }
        };
        (!self.0.can_verify(method)).then_some(missing)
    }

    /// The options of a server that listens on these addresses; these audiences are used unless some are set.
    pub(super) fn into_options(self, audiences: Vec<String>, addresses: &[ListenAddress]) -> AuthOptions {
        let own = self.0.audiences;
        AuthOptions {
            audiences: if own.is_empty() { audiences } else { own },
            #[cfg(feature = "backends")]
            fetch: Some(Arc::new(key_fetcher(addresses))),
            caller_names: if addresses.is_empty() {
                CallerNames::Application
            } else {
                CallerNames::Credentials
            },
            ..self.0
        }
    }
}

/// Fetches the keys of issuers. A URL that a discovery document names may not be that of the server itself.
#[cfg(feature = "backends")]
fn key_fetcher(addresses: &[ListenAddress]) -> IssuerKeyFetcher {
    let own_addresses = addresses.iter().map(|listener| listener.address).collect();
    let policy = DialPolicy { own_addresses, ..DialPolicy::default() };
    IssuerKeyFetcher::new(Dialer::builder().policy(policy).build())
}

/// Names and counts only.
impl Debug for Auth {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}
