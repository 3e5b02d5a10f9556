//! The agent card: an agent's self-description, its interfaces and its security requirements.
//!
//! Names follow A2A 4.4. Maps keep their input order; their keys are unique. Fields whose presence matters in
//! the protocol (`Option<bool>`, the two URLs of the card) keep it here, because a signature covers it.

use crate::Json;

/// An agent's self-description, as published at its well-known URL.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentCard {
    /// Human-readable name.
    pub name: String,
    /// Human-readable purpose of the agent.
    pub description: String,
    /// Interfaces in order of preference; at least one.
    pub interfaces: Vec<AgentInterface>,
    /// The organisation that operates the agent.
    pub provider: Option<AgentProvider>,
    /// The agent's own version, not the protocol's.
    pub version: String,
    /// Link to documentation; an empty string is distinct from `None`.
    pub documentation_url: Option<String>,
    /// Optional protocol features the agent supports.
    pub capabilities: AgentCapabilities,
    /// Authentication schemes, keyed by the names that requirements refer to.
    pub security_schemes: Vec<(String, SecurityScheme)>,
    /// Alternatives: a caller must satisfy one of them.
    pub security_requirements: Vec<SecurityRequirement>,
    /// Input media types of every skill that does not list its own.
    pub default_input_modes: Vec<String>,
    /// Output media types of every skill that does not list its own.
    pub default_output_modes: Vec<String>,
    /// The skills the agent offers.
    pub skills: Vec<AgentSkill>,
    /// Signatures over the card without this field.
    pub signatures: Vec<AgentCardSignature>,
    /// Link to an icon; an empty string is distinct from `None`.
    pub icon_url: Option<String>,
}

/// One URL of an agent with the binding and protocol version served there.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentInterface {
    /// An absolute URL, or `host:port` for gRPC.
    pub url: String,
    /// `JSONRPC`, `GRPC`, `HTTP+JSON`, or the URI of a custom binding.
    pub binding: String,
    /// The `tenant` to send in every request to this URL.
    pub tenant: Option<String>,
    /// The protocol version as written in the card, with or without a patch number.
    pub version: String,
}

/// The organisation that operates an agent.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentProvider {
    /// The organisation's web site.
    pub url: String,
    /// The organisation's name.
    pub organization: String,
}

/// Optional protocol features an agent supports. An absent flag means unsupported.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentCapabilities {
    /// Supports streaming responses.
    pub streaming: Option<bool>,
    /// Supports push notifications to webhooks.
    pub push_notifications: Option<bool>,
    /// Protocol extensions the agent supports.
    pub extensions: Vec<AgentExtension>,
    /// Serves an extended card to authenticated callers.
    pub extended_card: Option<bool>,
}

/// A protocol extension that an agent supports.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentExtension {
    /// Identifies the extension.
    pub uri: String,
    /// Human-readable note on how this agent uses the extension.
    pub description: Option<String>,
    /// Whether callers must support it too.
    pub required: bool,
    /// Extension-specific parameters, a JSON object.
    pub params: Option<Json>,
}

/// One capability of an agent.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AgentSkill {
    /// Unique within the card.
    pub id: String,
    /// Human-readable name.
    pub name: String,
    /// Human-readable description.
    pub description: String,
    /// Keywords for search.
    pub tags: Vec<String>,
    /// Example prompts.
    pub examples: Vec<String>,
    /// Accepted media types; empty means the card's default.
    pub input_modes: Vec<String>,
    /// Produced media types; empty means the card's default.
    pub output_modes: Vec<String>,
    /// Alternatives that apply to this skill only.
    pub security_requirements: Vec<SecurityRequirement>,
}

/// A JSON Web Signature over a card.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentCardSignature {
    /// The protected header, base64url exactly as signed.
    pub protected: String,
    /// The signature, base64url.
    pub signature: String,
    /// The unprotected header, a JSON object.
    pub header: Option<Json>,
}

/// Schemes that must all be satisfied, each with the scopes it needs. An empty list means no authentication
/// is required.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SecurityRequirement {
    /// Names of the card's security schemes, each with its scopes.
    pub schemes: Vec<(String, Vec<String>)>,
}

/// An authentication scheme.
#[derive(Clone, Debug, PartialEq)]
pub enum SecurityScheme {
    /// An API key sent with each request.
    ApiKey {
        /// Human-readable description.
        description: Option<String>,
        /// Which part of the request carries the key.
        location: ApiKeyLocation,
        /// The name of the header, parameter or cookie.
        name: String,
    },
    /// An HTTP authentication scheme.
    HttpAuth {
        /// Human-readable description.
        description: Option<String>,
        /// The scheme's name, such as `Bearer`.
        scheme: String,
        /// Format of a bearer token, such as `JWT`.
        bearer_format: Option<String>,
    },
    /// OAuth 2.0.
    OAuth2 {
        /// Human-readable description.
        description: Option<String>,
        /// The grant by which a client obtains a token.
        flow: OAuthFlow,
        /// URL of the authorization server's metadata (RFC 8414).
        metadata_url: Option<String>,
    },
    /// OpenID Connect.
    OpenIdConnect {
        /// Human-readable description.
        description: Option<String>,
        /// URL of the provider's discovery document.
        url: String,
    },
    /// Mutual TLS with a client certificate.
    MutualTls {
        /// Human-readable description.
        description: Option<String>,
    },
}

/// The part of a request that carries an API key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApiKeyLocation {
    /// A query parameter.
    Query,
    /// A header.
    Header,
    /// A cookie.
    Cookie,
}

/// The OAuth 2.0 grants. Scopes map each name to a description.
#[derive(Clone, Debug, PartialEq)]
pub enum OAuthFlow {
    /// Authorization code grant: the user consents in a browser, the client exchanges the code for a token.
    AuthorizationCode {
        /// Authorization endpoint.
        authorization_url: String,
        /// Token endpoint.
        token_url: String,
        /// Refresh endpoint, if different.
        refresh_url: Option<String>,
        /// Available scopes with descriptions.
        scopes: Vec<(String, String)>,
        /// The client must use PKCE (RFC 7636).
        pkce_required: bool,
    },
    /// Client credentials grant: the client acts on its own behalf.
    ClientCredentials {
        /// Token endpoint.
        token_url: String,
        /// Refresh endpoint, if different.
        refresh_url: Option<String>,
        /// Available scopes with descriptions.
        scopes: Vec<(String, String)>,
    },
    /// Implicit grant: the browser receives the token directly; deprecated.
    Implicit {
        /// Authorization endpoint.
        authorization_url: Option<String>,
        /// Refresh endpoint, if different.
        refresh_url: Option<String>,
        /// Available scopes with descriptions.
        scopes: Vec<(String, String)>,
    },
    /// Password grant: the client handles the user's password; deprecated.
    Password {
        /// Token endpoint.
        token_url: Option<String>,
        /// Refresh endpoint, if different.
        refresh_url: Option<String>,
        /// Available scopes with descriptions.
        scopes: Vec<(String, String)>,
    },
    /// Device authorization grant: the user consents on another device (RFC 8628).
    DeviceCode {
        /// Device authorization endpoint.
        device_authorization_url: String,
        /// Token endpoint.
        token_url: String,
        /// Refresh endpoint, if different.
        refresh_url: Option<String>,
        /// Available scopes with descriptions.
        scopes: Vec<(String, String)>,
    },
}
