//! The one way out of the process: every HTTP request that a backend sends goes through [`Dialer`].
//!
//! A URL of the operator may be local. A URL that a peer chose passes [`guard`] when it is registered and again with
//! each request: its host is resolved, every address is checked, and the request uses a connection to one of these
//! addresses. Requests for peers and for the operator never share a connection. Redirects are not followed, proxies of
//! the environment are not used, cookies are not kept, bodies are not decompressed.
//!
//! The policy can change while the process runs. An open connection to an address that is no longer allowed is not used
//! again, because every request to a URL of a peer is checked before it gets a connection.

pub mod address;
mod connect;
mod fetch;
pub mod guard;
mod peer_pools;
mod resolve;
mod tls;
mod transport;

use std::{
    error::Error,
    fmt,
    net::SocketAddr,
    sync::{Arc, PoisonError, RwLock},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Response, Uri, uri::PathAndQuery};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{self, Client},
    rt::{TokioExecutor, TokioTimer},
};
use ipnet::IpNet;
use url::{Position, Url};

pub use self::{fetch::FetchLimits, resolve::Resolve};

use self::{
    connect::{Connector, Destination},
    guard::{Forbidden, Target},
    peer_pools::PeerPools,
    resolve::SystemResolver,
    tls::Tls,
};

/// How long an unused connection stays open.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Maximum number of unused connections to one host.
const MAX_IDLE: usize = 16;

/// Who chose the address of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrlSource {
    /// The operator, in the configuration: it may be local.
    Operator,
    /// A peer, in a message or document: only public addresses, and what `outbound.allow` lists.
    Peer,
}

impl UrlSource {
    fn label(self) -> &'static str {
        match self {
            Self::Operator => "the operator",
            Self::Peer => "a peer",
        }
    }
}

/// Which addresses a peer may choose.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DialPolicy {
    /// Addresses that are allowed although they are not public. The rules for ports and for names such as `localhost`
    /// do not apply to them either.
    pub allow: Vec<IpNet>,
    /// Whether `http` is allowed beside `https`.
    pub allow_http: bool,
    /// The addresses on which this server listens: a peer may not choose them, also if `allow` contains them.
    pub own_addresses: Vec<SocketAddr>,
}

/// Sends requests. Cheap to clone; clones share their connections and their policy.
#[derive(Clone)]
pub struct Dialer {
    operator: Pool,
    peers: Arc<PeerPools>,
    resolver: Arc<dyn Resolve>,
    /// Replaced as a whole: a check or a request uses one version of it.
    policy: Arc<RwLock<Arc<DialPolicy>>>,
}

type Pool = Client<Connector, Full<Bytes>>;

/// Builds a [`Dialer`].
#[derive(Default)]
pub struct Builder {
    policy: DialPolicy,
    resolver: Option<Arc<dyn Resolve>>,
    tls: Tls,
}

/// Why a request has no response. The text is for a client: it contains no address; the causes are logged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DialError {
    /// The URL or its address is not allowed. Nothing was sent.
    #[error("this address is not allowed")]
    Forbidden(#[source] Forbidden),
    /// No connection could be opened. Nothing was sent.
    #[error("the server cannot be reached")]
    Unreachable(#[source] Box<dyn Error + Send + Sync>),
    /// The connection was lost before the response. The server may have received the request.
    #[error("the server closed the connection without a response")]
    Lost(#[source] Box<dyn Error + Send + Sync>),
    /// There was no complete response within [`FetchLimits::time`].
    #[error("the server did not respond in time")]
    TimedOut,
    /// The caller does not send to these addresses now. Nothing was sent.
    #[error("too many requests go to this address")]
    NotAdmitted,
    /// The response was longer than [`FetchLimits::body`].
    #[error("the response is too large")]
    TooLarge,
}

impl Dialer {
    /// A dialler with the default policy.
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// A dialler with other settings.
    pub fn builder() -> Builder {
        Builder::default()
    }

    /// Checks a URL when a peer registers it: its syntax, and its host if that is an address. A name is resolved and
    /// checked when a request is sent.
    ///
    /// # Errors
    ///
    /// Why the URL is not allowed.
    pub fn check_url(&self, text: &str) -> Result<Url, Forbidden> {
        let policy = self.policy();
        let url = guard::check_url(text, &policy)?;
        let target = Target::of(&url)?;
        if let Some(address) = target.literal() {
            resolve::check_not_own(&target, address, &policy)?;
        }
        Ok(url)
    }

    /// Changes which addresses a peer may choose, also for the clones: from the next check and the next request on.
    pub fn update_policy(&self, change: impl FnOnce(&mut DialPolicy)) {
        let mut policy = self.policy.write().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut policy));
    }

    fn policy(&self) -> Arc<DialPolicy> {
        Arc::clone(&self.policy.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Sends a request with an absolute URL, and returns the head of the response and its body, unread. Redirects are
    /// not followed. The only timeouts are those for resolving the name and for opening the connection; the caller sets
    /// others, and limits the body, or uses [`Dialer::fetch`]. Dropping the future or the body closes the connection (HTTP/1.1) or resets the
    /// stream (HTTP/2).
    ///
    /// # Errors
    ///
    /// See [`DialError`]. A response with an error status is not an error.
    pub async fn send(
        &self,
        request: Request<Full<Bytes>>,
        source: UrlSource,
    ) -> Result<Response<Incoming>, DialError> {
        self.send_over(request, source, |_| true).await
    }

    /// Like [`Dialer::send`] to the URL of a peer, but the caller decides whether anything is sent when the addresses of
    /// the host are known and allowed.
    ///
    /// # Errors
    ///
    /// See [`DialError`]; among them that the caller has refused.
    pub async fn send_admitted(
        &self,
        request: Request<Full<Bytes>>,
        admits: impl FnOnce(&[SocketAddr]) -> bool,
    ) -> Result<Response<Incoming>, DialError> {
        self.send_over(request, UrlSource::Peer, admits).await
    }

    async fn send_over(
        &self,
        mut request: Request<Full<Bytes>>,
        source: UrlSource,
        admits: impl FnOnce(&[SocketAddr]) -> bool,
    ) -> Result<Response<Incoming>, DialError> {
        let url = guard::parse(&request.uri().to_string()).map_err(DialError::Forbidden)?;
        *request.uri_mut() =
            with_origin_of(&url, request.uri().path_and_query()).map_err(DialError::Forbidden)?;
        let result = match self.pool(&url, source, admits).await {
            Ok(pool) => pool.request(request).await.map_err(DialError::from_client),
            Err(error) => Err(error),
        };
        result.inspect_err(|error| error.log(&url[..Position::BeforePath], source))
    }

    /// The connections that a request to this URL may use.
    async fn pool(
        &self,
        url: &Url,
        source: UrlSource,
        admits: impl FnOnce(&[SocketAddr]) -> bool,
    ) -> Result<Pool, DialError> {
        match source {
            UrlSource::Operator => Ok(self.operator.clone()),
            UrlSource::Peer => {
                let policy = self.policy();
                let target = Target::from_peer(url, &policy).map_err(DialError::Forbidden)?;
                let addresses = resolve::checked_addresses(&target, &*self.resolver, &policy).await?;
                if !admits(&addresses) {
                    return Err(DialError::NotAdmitted);
                }
                Ok(self.peers.to(addresses))
            }
        }
    }
}

impl fmt::Debug for Dialer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Dialer").finish_non_exhaustive()
    }
}

impl Default for Dialer {
    fn default() -> Self {
        Self::new()
    }
}

/// Scheme, host and port as they were checked, with path and query as they were sent.
fn with_origin_of(url: &Url, rest: Option<&PathAndQuery>) -> Result<Uri, Forbidden> {
    let rest = rest.map_or("/", PathAndQuery::as_str);
    let authority = &url[Position::BeforeHost..Position::AfterPort];
    let parts = Uri::builder().scheme(url.scheme()).authority(authority).path_and_query(rest);
    parts.build().map_err(|_| Forbidden::NotAUrl)
}

impl DialError {
    fn from_client(error: legacy::Error) -> Self {
        if error.is_connect() { Self::Unreachable(error.into()) } else { Self::Lost(error.into()) }
    }

    fn log(&self, origin: &str, source: UrlSource) {
        match self {
            Self::Forbidden(problem) => {
                tracing::warn!(origin, chosen_by = source.label(), %problem, "outgoing request rejected");
            }
            Self::Unreachable(error) | Self::Lost(error) => {
                tracing::debug!(
                    origin,
                    chosen_by = source.label(),
                    error = crate::backend::with_causes(&**error),
                    "outgoing request failed"
                );
            }
            Self::TimedOut | Self::NotAdmitted | Self::TooLarge => {}
        }
    }
}

impl Builder {
    /// Which addresses a peer may choose.
    #[must_use]
    pub fn policy(self, policy: DialPolicy) -> Self {
        Self { policy, ..self }
    }

    /// Finds the addresses of names; the default is the system.
    #[must_use]
    pub fn resolver(self, resolver: impl Resolve) -> Self {
        Self { resolver: Some(Arc::new(resolver)), ..self }
    }

    /// TLS settings; the default trusts the platform's root certificates.
    #[must_use]
    pub fn tls(self, config: rustls::ClientConfig) -> Self {
        Self { tls: Tls::with(config), ..self }
    }

    /// The dialler. It opens no connection before the first request.
    pub fn build(self) -> Dialer {
        let resolver = self.resolver.unwrap_or_else(|| Arc::new(SystemResolver));
        let tls = Arc::new(self.tls);
        let destination = Destination::ByName(Arc::clone(&resolver));
        Dialer {
            operator: client(Connector { destination, tls: Arc::clone(&tls) }),
            peers: Arc::new(PeerPools::new(tls)),
            resolver,
            policy: Arc::new(RwLock::new(Arc::new(self.policy))),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the one place of this crate that builds an HTTP client")]
fn client(connector: Connector) -> Pool {
    let mut client = Client::builder(TokioExecutor::new());
    client.timer(TokioTimer::new()).pool_timer(TokioTimer::new());
    client.pool_idle_timeout(IDLE_TIMEOUT).pool_max_idle_per_host(MAX_IDLE).build(connector)
}
