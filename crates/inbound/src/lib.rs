//! The server side of the wire: turns bytes from a socket into an operation by a known caller, and the reply into
//! bytes.
//!
//! [`HttpService`] is the HTTP service with every route, to be mounted anywhere; [`listen`] accepts connections, with the
//! timeouts and caps that a bare accept loop lacks. Nothing here decides about tasks: that is the engine's.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod access;
mod addresses;
mod admit;
mod bindings;
mod documents;
pub mod listen;
mod metrics;
mod operator_reports;
mod request;
mod response;
mod routes;
mod server_state;
mod service;
pub mod tls;

pub use access::audit::{Audit, AuditEntry};
pub use access::auth::{
    ApiKeyOptions, AuthOptions, CallerNames, FetchKeys, Issuer, KEY_FETCH_TIMEOUT, KeyFetchError, KeyUrl,
    MAX_KEY_DOCUMENT_BYTES, NamedSecret, example_headers, option_checks as auth_checks, security_schemes,
};
#[doc(hidden)]
pub use access::auth::{CredentialCheck, TokenCheck};
pub use access::caller::{Caller, Peer};
#[doc(hidden)]
pub use access::rate_limit::RateCheck;
pub use access::rate_limit::{Rate, RateLimits};
pub use addresses::cross_origin::CorsOrigin;
pub use addresses::host::{AllowedHost, MountedHosts, is_public_url};
#[cfg(feature = "mcp")]
pub use bindings::mcp::McpError;
pub use bindings::operators::config_document;
pub use documents::card::{CardOptions, CardShape};
pub use documents::published_keys::PublishKeys;
pub use documents::ready::Ready;
pub use engine::{
    AgentSettings, AuthForm, AuthMethod, AuthMethods, CardForm, EndUser, ExtendedCard, FailedReply, Profile,
    ReplyForm,
};
pub use ipnet::IpNet;
pub use operator_reports::{
    BackendError, BackendHealth, BackendState, ConfigReport, OperatorReports, Processes, Setting,
    SettingSource, SettingValue,
};
pub use request::version::AcceptedVersions;
pub use routes::{RouteSet, is_reserved_agent_id};
pub use server_state::ServerOptions;
pub use service::HttpService;
