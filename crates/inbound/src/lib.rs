//! The server side of the wire: turns bytes from a socket into an operation by a known caller, and the reply into
//! bytes.
//!
//! [`HttpService`] is the HTTP service with every route, to be mounted anywhere; [`listen`] accepts connections, with the
//! timeouts and caps that a bare accept loop lacks. Nothing here decides about tasks: that is the engine's.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod access;
mod access_log;
mod access_watch;
mod admit;
mod agent_list;
mod audit;
mod auth;
mod authority;
mod bindings;
mod body;
mod caller;
mod card;
mod connection;
mod cross_origin;
mod decoded_request;
mod endpoint;
mod exchange;
mod forwarded;
mod home_page;
mod host;
mod host_and_origin;
pub mod listen;
mod metrics;
mod negotiate;
mod network;
mod open_streams;
mod openapi;
mod operator_reports;
mod origin;
mod published_keys;
mod rate_limit;
mod ready;
mod refusal;
mod reply_form;
mod respond;
mod routes;
mod sender;
mod server_state;
mod service;
mod sse;
pub mod tls;
mod trace;
mod version;

pub use audit::{Audit, AuditEntry};
pub use auth::{
    ApiKeyOptions, AuthOptions, CallerNames, FetchKeys, Issuer, KEY_FETCH_TIMEOUT, KeyFetchError, KeyUrl,
    MAX_KEY_DOCUMENT_BYTES, NamedSecret, example_headers, option_checks as auth_checks, security_schemes,
};
#[doc(hidden)]
pub use auth::{CredentialCheck, TokenCheck};
#[cfg(feature = "mcp")]
pub use bindings::mcp::McpError;
pub use bindings::operators::config_document;
pub use caller::{Caller, Peer};
pub use card::{CardOptions, CardShape};
pub use cross_origin::CorsOrigin;
pub use engine::{
    AgentSettings, AuthForm, AuthMethod, AuthMethods, CardForm, EndUser, ExtendedCard, FailedReply, Profile,
    ReplyForm,
};
pub use host::{AllowedHost, MountedHosts, is_public_url};
pub use ipnet::IpNet;
pub use operator_reports::{
    BackendError, BackendHealth, BackendState, ConfigReport, OperatorReports, Processes, Setting,
    SettingSource, SettingValue,
};
pub use published_keys::PublishKeys;
#[doc(hidden)]
pub use rate_limit::RateCheck;
pub use rate_limit::{Rate, RateLimits};
pub use ready::Ready;
pub use routes::{RouteSet, is_reserved_agent_id};
pub use server_state::ServerOptions;
pub use service::HttpService;
pub use version::AcceptedVersions;
