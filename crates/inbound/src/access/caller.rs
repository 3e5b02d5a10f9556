//! Who sends a request, and with which agent that counts.
//!
//! The credentials of a request are verified in [`auth`](crate::auth). An application that mounts the router can identify
//! callers itself: it puts a [`Caller`] and a [`Peer`] into the extensions of the request.

use std::{
    net::{IpAddr, SocketAddr},
    sync::Arc,
};

use axum::extract::ConnectInfo;
use engine::{AgentSettings, ApiKey, AuthMethod, EndUser, RegisteredAgent, Scope, ScopeParts};
use http::Extensions;
use protocol::{Error, ErrorKind, Timestamp};

use crate::access::auth::{
    Subject,
    schemes::{self, PresentedToken},
};

/// The principal of callers without a credential.
const ANONYMOUS: &str = "anonymous";
static ANONYMOUS_CALLER: Identity = Identity::Anonymous;

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
    proof: Proof,
}

/// How a caller was identified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// By the application that mounts the router.
    Application,
    ApiKey(Arc<ApiKey>),
    /// By a JSON Web Token.
    Token(Subject),
    StaticToken,
    /// By a client certificate.
    Certificate,
}

impl Caller {
    /// A caller with this name, which no other caller of the application may have. `anonymous` is the caller without a
    /// credential.
    pub fn new(principal: impl Into<Arc<str>>) -> Self {
        Self { principal: principal.into(), end_user: "".into(), proof: Proof::Application }
    }

    /// The person on whose behalf the caller acts.
    #[must_use]
    pub fn with_end_user(self, end_user: impl Into<Arc<str>>) -> Self {
        Self { end_user: end_user.into(), ..self }
    }

    /// The name of the caller.
    pub(crate) fn principal(&self) -> &Arc<str> {
        &self.principal
    }

    /// The caller with an API key.
    pub(crate) fn with_api_key(key: Arc<ApiKey>) -> Self {
        let principal = key.principal();
        Self { proof: Proof::ApiKey(key), ..Self::new(principal) }
    }

    /// The caller that a token identifies.
    pub(crate) fn with_token(subject: Subject) -> Self {
        let principal = Arc::clone(&subject.name);
        Self { proof: Proof::Token(subject), ..Self::new(principal) }
    }

    /// The caller that a verified client certificate names.
    pub(crate) fn with_certificate(principal: Arc<str>) -> Self {
        Self { proof: Proof::Certificate, ..Self::new(principal) }
    }

    /// The caller with the static token.
    pub(crate) fn with_static_token() -> Self {
        Self { proof: Proof::StaticToken, ..Self::new("bearer") }
    }

    pub(crate) fn proof(&self) -> &Proof {
        &self.proof
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
#[derive(Clone, Debug, PartialEq, Eq)]
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

    /// The last moment of a token that identifies the caller. Certificates belong to the connection.
    pub(crate) fn expires(&self) -> Option<Timestamp> {
        match self {
            Self::Known(Caller { proof: Proof::Token(subject), .. }) => Some(subject.expires),
            Self::Known(_) | Self::Anonymous => None,
        }
    }

    /// Whether the client certificate of the connection identifies the caller.
    pub(crate) fn has_certificate(&self) -> bool {
        matches!(self, Self::Known(Caller { proof: Proof::Certificate, .. }))
    }

    /// Who this is for an agent; an error if the agent does not accept it.
    pub(crate) fn with_agent(&self, settings: &AgentSettings, agent: &str) -> Result<&Self, Error> {
        let methods = settings.auth;
        if methods.is_unconfigured() {
            let text =
                "this server requires authentication, and none is configured; its operator has to set [auth]";
            return Err(Error::new(ErrorKind::Unavailable, text));
        }
        let method = match self {
            Self::Anonymous if methods.permit_anonymous() => return Ok(self),
            Self::Anonymous => {
                let text = format!("agent {agent:?} requires a credential");
                return Err(credential_required(settings, PresentedToken::NoToken, text));
            }
            Self::Known(caller) => match &caller.proof {
                Proof::Application => return Ok(self),
                _ if !methods.verify_credentials() && methods.permit_anonymous() => {
                    return Ok(&Self::Anonymous);
                }
                Proof::ApiKey(key) if key.agent != agent => {
                    let text = format!("this API key is not for agent {agent:?}; a key is for one agent");
                    return Err(Error::new(ErrorKind::PermissionDenied, text));
                }
                Proof::ApiKey(_) => AuthMethod::ApiKey,
                // Clients send it to every server that asks, so where it does not count it is no wrong credential.
                Proof::Certificate if !methods.contains(AuthMethod::Mtls) => {
                    return ANONYMOUS_CALLER.with_agent(settings, agent);
                }
                Proof::Certificate => AuthMethod::Mtls,
                Proof::Token(subject) => subject.method,
                Proof::StaticToken => AuthMethod::Bearer,
            },
        };
        if methods.contains(method) {
            return Ok(self);
        }
        let presented =
            if method == AuthMethod::ApiKey { PresentedToken::NoToken } else { PresentedToken::Token };
        let text = format!("agent {agent:?} does not accept this kind of credential");
        Err(credential_required(settings, presented, text))
    }

    /// The owner of the tasks of this caller and end user with an agent that accepts both.
    pub(crate) fn scope(&self, tenant: &str, agent: &RegisteredAgent, end_user: Option<&Arc<str>>) -> Scope {
        let of_caller = match self {
            Self::Anonymous => "",
            Self::Known(caller) => &caller.end_user,
        };
        let end_user = match (agent.settings().end_user, end_user) {
            (EndUser::Required, Some(end_user)) => end_user,
            (EndUser::Required | EndUser::Off, _) => of_caller,
        };
        match self {
            Self::Anonymous if end_user.is_empty() => agent.anonymous_scope().clone(),
            Self::Anonymous => scope(tenant, ANONYMOUS, agent, end_user),
            Self::Known(caller) => scope(tenant, &caller.principal, agent, end_user),
        }
    }
}

fn scope(tenant: &str, principal: &str, agent: &RegisteredAgent, end_user: &str) -> Scope {
    Scope::new(ScopeParts {
        tenant: tenant.into(),
        principal: principal.into(),
        agent: agent.info().id.clone(),
        end_user: end_user.into(),
    })
}

/// Checks that the end user is known where the agent requires that. An application that has identified the caller has
/// identified the end user too.
pub(crate) fn check_end_user(
    identity: &Identity,
    settings: &AgentSettings,
    end_user: Option<&Arc<str>>,
) -> Result<(), Error> {
    let by_application = matches!(identity, Identity::Known(caller) if caller.proof == Proof::Application && !caller.end_user.is_empty());
    match settings.end_user {
        EndUser::Required if end_user.is_none() && !by_application => {
            let text = "this agent requires the token of the end user in the header X-End-User-Token";
            Err(schemes::with_end_user_challenge(Error::new(ErrorKind::Unauthenticated, text)))
        }
        EndUser::Required | EndUser::Off => Ok(()),
    }
}

/// The error for a caller without a credential that the agent accepts.
pub(crate) fn credential_required(
    settings: &AgentSettings,
    presented: PresentedToken,
    text: impl Into<String>,
) -> Error {
    schemes::with_challenge(settings, presented, Error::new(ErrorKind::Unauthenticated, text))
}
