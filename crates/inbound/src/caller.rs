//! Who sends a request.
//!
//! No credential can be checked yet, so every request of our own listener is anonymous. For that reason the command line
//! refuses to listen on addresses other than loopback. An application that mounts the router can identify callers
//! itself: it puts a [`Caller`] and a [`Peer`] into the extensions of the request.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use axum::extract::ConnectInfo;
use engine::{AgentSettings, DEFAULT_TENANT, Scope, ScopeParts};
use http::Extensions;
use protocol::{Error, ErrorKind, error::excerpt, model::SecurityScheme};

use crate::respond;

/// The principal of callers without a credential.
const ANONYMOUS: &str = "anonymous";

/// The caller of a request, as an application that mounts the router has identified it.
///
/// Callers with different principals or end users do not see each other's tasks. With axum, a middleware of the
/// application puts the caller into the request:
///
/// ```
/// # use a2ad_inbound::Caller;
/// # use axum::{extract::Request, middleware::Next, response::Response};
/// async fn identify(mut req: Request, next: Next) -> Response {
///     // The application's own session, token or certificate.
///     req.extensions_mut().insert(Caller::new("alice"));
///     next.run(req).await
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    principal: Arc<str>,
    end_user: Arc<str>,
}

impl Caller {
    /// A caller with this name, which no other caller of the application may have. `anonymous` is the caller without a
    /// credential.
    pub fn new(principal: impl Into<Arc<str>>) -> Self {
        Self { principal: principal.into(), end_user: "".into() }
    }

    /// The person on whose behalf the caller acts.
    #[must_use]
    pub fn with_end_user(self, end_user: impl Into<Arc<str>>) -> Self {
        Self { end_user: end_user.into(), ..self }
    }

    /// The owner of this caller's tasks with an agent.
    fn scope(&self, tenant: &str, agent: &str) -> Scope {
        Scope::new(ScopeParts {
            tenant: tenant.into(),
            principal: self.principal.as_ref().into(),
            agent: agent.into(),
            end_user: self.end_user.as_ref().into(),
        })
    }
}

/// The network address of a request's sender, from an application that mounts the router. Without it, the address of
/// axum's `ConnectInfo<SocketAddr>` is used.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub IpAddr);

impl Peer {
    pub(crate) fn of(extensions: &Extensions) -> Option<IpAddr> {
        let own = extensions.get::<Self>().map(|peer| peer.0);
        own.or_else(|| extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip()))
    }
}

/// The result of authentication.
#[derive(Clone, Debug)]
pub(crate) enum Identity {
    /// No credential.
    Anonymous,
    Known(Caller),
}

impl Identity {
    pub(crate) fn of(extensions: &Extensions) -> Self {
        match extensions.get::<Caller>() {
            Some(caller) if &*caller.principal != ANONYMOUS => Self::Known(caller.clone()),
            Some(_) | None => Self::Anonymous,
        }
    }

    pub(crate) fn is_anonymous(&self) -> bool {
        matches!(self, Self::Anonymous)
    }

    /// The owner of the caller's tasks with an agent.
    pub(crate) fn scope(&self, tenant: &str, agent: &str) -> Scope {
        match self {
            Self::Anonymous => Scope::anonymous(tenant, agent),
            Self::Known(caller) => caller.scope(tenant, agent),
        }
    }
}

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
