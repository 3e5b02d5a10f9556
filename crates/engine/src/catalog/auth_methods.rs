//! Which kinds of credentials an agent accepts.

use std::fmt::{self, Debug, Formatter};

/// A kind of credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthMethod {
    /// None: the caller is the principal `anonymous`.
    Anonymous,
    /// An API key of the agent.
    ApiKey,
    /// A token signed with a shared secret.
    Jwt,
    /// A token signed by a configured issuer.
    Oidc,
    /// The static token of the server.
    Bearer,
    /// A client certificate.
    Mtls,
}

/// A set of [`AuthMethod`]s; any one of them suffices. Callers that the application has identified are accepted with
/// every set.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct AuthMethods(u8);

impl AuthMethod {
    const ALL: [Self; 6] = [Self::Anonymous, Self::ApiKey, Self::Jwt, Self::Oidc, Self::Bearer, Self::Mtls];

    const fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl AuthMethods {
    /// No method: only callers that the application has identified.
    pub const NONE: Self = Self(0);
    /// Calls have to be authenticated and no method is configured: every call is unavailable.
    pub const UNCONFIGURED: Self = Self(1 << 7);
    /// Calls without a credential only.
    pub const ANONYMOUS: Self = Self(AuthMethod::Anonymous.bit());

    /// Whether the set contains a method.
    pub const fn contains(self, method: AuthMethod) -> bool {
        self.0 & method.bit() != 0
    }

    /// The set with one more method.
    #[must_use]
    pub const fn with(self, method: AuthMethod) -> Self {
        Self(self.0 | method.bit())
    }

    /// Whether it is [`UNCONFIGURED`](Self::UNCONFIGURED).
    pub const fn is_unconfigured(self) -> bool {
        self.0 == Self::UNCONFIGURED.0
    }

    /// Whether calls without a credential are permitted.
    pub const fn permit_anonymous(self) -> bool {
        self.contains(AuthMethod::Anonymous)
    }

    /// Whether there is a method for which a credential has to be verified.
    pub const fn verify_credentials(self) -> bool {
        self.0 & !(AuthMethod::Anonymous.bit() | Self::UNCONFIGURED.0) != 0
    }

    /// The methods, in the order of [`AuthMethod`].
    pub fn iter(self) -> impl Iterator<Item = AuthMethod> {
        AuthMethod::ALL.into_iter().filter(move |method| self.contains(*method))
    }
}

impl Default for AuthMethods {
    /// Calls without a credential.
    fn default() -> Self {
        Self::ANONYMOUS
    }
}

impl FromIterator<AuthMethod> for AuthMethods {
    fn from_iter<T: IntoIterator<Item = AuthMethod>>(methods: T) -> Self {
        methods.into_iter().fold(Self::NONE, Self::with)
    }
}

impl Debug for AuthMethods {
    fn fmt(&self, out: &mut Formatter<'_>) -> fmt::Result {
        out.debug_set().entries(self.iter()).finish()
    }
}
