//! The agent card: what an agent says about itself, where it is reached and what it asks of its callers.
//!
//! Names follow A2A 4.4. Maps keep the order they came in; their keys are unique. What carries presence in the
//! protocol (`Option<bool>`, the two URLs of the card) keeps it here, because a signature covers it.

use crate::Json;

/// An agent's description of itself.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentCard {
    /// A name for people.
    pub name: String,
    /// What the agent is for.
    pub description: String,
    /// Where it is reached; at least one, the preferred one first.
    pub interfaces: Vec<AgentInterface>,
    /// Who runs it.
    pub provider: Option<AgentProvider>,
    /// The agent's own version, not the protocol's.
    pub version: String,
    /// Where more is written about it; an empty text is not the same as none.
    pub documentation_url: Option<String>,
    /// What it can do beyond answering.
    pub capabilities: AgentCapabilities,
    /// The ways to authenticate, by the names that requirements use.
    pub security_schemes: Vec<(String, SecurityScheme)>,
    /// Alternatives: a caller fulfils one of them.
    pub security_requirements: Vec<SecurityRequirement>,
    /// Media types every skill takes unless it says otherwise.
    pub default_input_modes: Vec<String>,
    /// Media types every skill gives unless it says otherwise.
    pub default_output_modes: Vec<String>,
    /// What it is good at.
    pub skills: Vec<AgentSkill>,
    /// Signatures over the card without this field.
    pub signatures: Vec<AgentCardSignature>,
    /// A picture of it; an empty text is not the same as none.
    pub icon_url: Option<String>,
}

/// One address of an agent and what is spoken there.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentInterface {
    /// An absolute URL, or `host:port` for gRPC.
    pub url: String,
    /// `JSONRPC`, `GRPC`, `HTTP+JSON`, or the URI of a custom binding.
    pub binding: String,
    /// Goes into the `tenant` of every request sent there.
    pub tenant: Option<String>,
    /// The protocol version as the card spells it, with or without a patch number.
    pub version: String,
}

/// Who runs an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentProvider {
    /// The organisation's web site.
    pub url: String,
    /// The organisation's name.
    pub organization: String,
}

/// What an agent can do beyond answering. An absent flag means no.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentCapabilities {
    /// Answers as a stream.
    pub streaming: Option<bool>,
    /// Posts events to webhooks.
    pub push_notifications: Option<bool>,
    /// Extensions of the protocol it speaks.
    pub extensions: Vec<AgentExtension>,
    /// Shows known callers another card.
    pub extended_card: Option<bool>,
}

/// An extension of the protocol that an agent speaks.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentExtension {
    /// Names the extension.
    pub uri: String,
    /// How this agent uses it.
    pub description: Option<String>,
    /// Callers must speak it too.
    pub required: bool,
    /// A JSON object the extension defines.
    pub params: Option<Json>,
}

/// Something an agent is good at.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentSkill {
    /// Names the skill within its card.
    pub id: String,
    /// A name for people.
    pub name: String,
    /// What it does.
    pub description: String,
    /// Keywords to find it by.
    pub tags: Vec<String>,
    /// What one might say to it.
    pub examples: Vec<String>,
    /// Media types it takes; empty means the card's.
    pub input_modes: Vec<String>,
    /// Media types it gives; empty means the card's.
    pub output_modes: Vec<String>,
    /// Alternatives it asks for on its own.
    pub security_requirements: Vec<SecurityRequirement>,
}

/// A JSON Web Signature over a card.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentCardSignature {
    /// The protected header, base64url as signed.
    pub protected: String,
    /// The signature, base64url.
    pub signature: String,
    /// A JSON object with the unprotected header.
    pub header: Option<Json>,
}

/// Schemes to be fulfilled together, each with the scopes it needs. None at all means anyone may call.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SecurityRequirement {
    /// Names from the card's security schemes, with scopes.
    pub schemes: Vec<(String, Vec<String>)>,
}

/// A way to authenticate.
#[derive(Clone, Debug, PartialEq)]
pub enum SecurityScheme {
    /// A key sent along with each request.
    ApiKey {
        /// A sentence about it.
        description: Option<String>,
        /// Where the key goes.
        location: ApiKeyLocation,
        /// The name of the header, parameter or cookie.
        name: String,
    },
    /// An HTTP authentication scheme.
    HttpAuth {
        /// A sentence about it.
        description: Option<String>,
        /// The scheme's name, such as `Bearer`.
        scheme: String,
        /// What a bearer token looks like, such as `JWT`.
        bearer_format: Option<String>,
    },
    /// OAuth 2.0.
    OAuth2 {
        /// A sentence about it.
        description: Option<String>,
        /// How a token is had.
        flow: OAuthFlow,
        /// The authorization server's metadata (RFC 8414).
        metadata_url: Option<String>,
    },
    /// OpenID Connect.
    OpenIdConnect {
        /// A sentence about it.
        description: Option<String>,
        /// The provider's discovery document.
        url: String,
    },
    /// A client certificate.
    MutualTls {
        /// A sentence about it.
        description: Option<String>,
    },
}

/// Where an API key goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiKeyLocation {
    /// The query of the URL.
    Query,
    /// A header.
    Header,
    /// A cookie.
    Cookie,
}

/// How an OAuth 2.0 token is had. Scopes come with a sentence each.
#[derive(Clone, Debug, PartialEq)]
pub enum OAuthFlow {
    /// A person agrees in a browser; the client trades the code for a token.
    AuthorizationCode {
        /// Where the person agrees.
        authorization_url: String,
        /// Where the token is had.
        token_url: String,
        /// Where it is renewed.
        refresh_url: Option<String>,
        /// What may be asked for.
        scopes: Vec<(String, String)>,
        /// The client must use PKCE (RFC 7636).
        pkce_required: bool,
    },
    /// The client speaks for itself.
    ClientCredentials {
        /// Where the token is had.
        token_url: String,
        /// Where it is renewed.
        refresh_url: Option<String>,
        /// What may be asked for.
        scopes: Vec<(String, String)>,
    },
    /// A person agrees and the browser is handed the token; deprecated.
    Implicit {
        /// Where the person agrees.
        authorization_url: Option<String>,
        /// Where the token is renewed.
        refresh_url: Option<String>,
        /// What may be asked for.
        scopes: Vec<(String, String)>,
    },
    /// The client is told the person's password; deprecated.
    Password {
        /// Where the token is had.
        token_url: Option<String>,
        /// Where it is renewed.
        refresh_url: Option<String>,
        /// What may be asked for.
        scopes: Vec<(String, String)>,
    },
    /// A person agrees on another device (RFC 8628).
    DeviceCode {
        /// Where the device gets its code.
        device_authorization_url: String,
        /// Where the token is had.
        token_url: String,
        /// Where it is renewed.
        refresh_url: Option<String>,
        /// What may be asked for.
        scopes: Vec<(String, String)>,
    },
}
