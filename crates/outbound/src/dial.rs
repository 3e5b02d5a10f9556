//! The one way out of the process: every HTTP request that a backend sends goes through [`Dialer`].
//!
//! A URL of the operator may be local. A URL that a peer chose passes [`guard`] when the request is sent, and every
//! address of its host passes it when a connection is opened; the connection goes to an address that was checked.
//! Requests for peers and for the operator never share a connection. Redirects are not followed, proxies of the
//! environment are not used, cookies are not kept, bodies are not decompressed. Timeouts but that for opening a
//! connection are the caller's.

pub mod address;
mod connect;
pub mod guard;
mod stream;
mod tls;

use std::{error::Error, fmt, io, net::IpAddr, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response, Uri, uri::PathAndQuery};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_util::{
    client::legacy::{self, Client},
    rt::{TokioExecutor, TokioTimer},
};
use ipnet::IpNet;
use url::{Position, Url};

use self::{
    connect::{Connector, Shared},
    guard::{Forbidden, Target},
    tls::Tls,
};

/// How long an unused connection stays open. A name is resolved anew for each connection.
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

/// Which addresses a peer may choose.
#[derive(Clone, Debug, Default)]
pub struct DialPolicy {
    /// Addresses that are allowed although they are not public. The rules for ports and for names such as `localhost`
    /// do not apply to them either.
    pub allow: Vec<IpNet>,
    /// Whether `http` is allowed beside `https`.
    pub allow_http: bool,
    /// The addresses on which this server listens: a peer may not choose them, also if `allow` contains them.
    pub own_addresses: Vec<SocketAddr>,
}

/// Finds the addresses of a name.
pub trait Resolve: Send + Sync + 'static {
    /// All addresses of the name.
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>>;
}

/// Sends requests. Cheap to clone; clones share their connections.
#[derive(Clone)]
pub struct Dialer {
    operator: Pool,
    peer: Pool,
    shared: Arc<Shared>,
}

type Pool = Client<Connector, Full<Bytes>>;

/// Builds a [`Dialer`].
#[derive(Default)]
pub struct Builder {
    policy: DialPolicy,
    resolver: Option<Box<dyn Resolve>>,
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

    /// Sends a request with an absolute URL, and returns the head of the response and its body, unread. Redirects are
    /// not followed. There is no timeout but that for opening the connection. Dropping the future or the body closes
    /// the connection (HTTP/1.1) or resets the stream (HTTP/2).
    ///
    /// # Errors
    ///
    /// See [`DialError`]. A response with an error status is not an error.
    pub async fn send(
        &self,
        mut request: Request<Full<Bytes>>,
        source: UrlSource,
    ) -> Result<Response<Incoming>, DialError> {
        let url = guard::parse(&request.uri().to_string()).map_err(DialError::Forbidden)?;
        let sent = self.prepare(&mut request, &url, source);
        let result = match sent {
            Err(problem) => Err(DialError::Forbidden(problem)),
            Ok(pool) => pool.request(request).await.map_err(DialError::from_client),
        };
        result.inspect_err(|error| error.log(&url[..Position::BeforePath], source))
    }

    /// Checks the URL of a request and gives it the form in which it was checked.
    fn prepare(
        &self,
        request: &mut Request<Full<Bytes>>,
        url: &Url,
        source: UrlSource,
    ) -> Result<&Pool, Forbidden> {
        let pool = match source {
            UrlSource::Operator => &self.operator,
            UrlSource::Peer => {
                Target::from_peer(url, &self.shared.policy)?;
                &self.peer
            }
        };
        *request.uri_mut() = with_origin_of(url, request.uri().path_and_query())?;
        Ok(pool)
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
        if !error.is_connect() {
            return Self::Lost(error.into());
        }
        let mut cause: Option<&(dyn Error + 'static)> = Some(&error);
        while let Some(current) = cause {
            if let Some(problem) = current.downcast_ref::<Forbidden>() {
                return Self::Forbidden(*problem);
            }
            cause = current.source();
        }
        Self::Unreachable(error.into())
    }

    fn log(&self, origin: &str, source: UrlSource) {
        match self {
            Self::Forbidden(problem) => {
                tracing::warn!(origin, ?source, %problem, "outgoing request rejected");
            }
            Self::Unreachable(error) | Self::Lost(error) => {
                tracing::debug!(origin, ?source, ?error, "outgoing request failed");
            }
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
        Self { resolver: Some(Box::new(resolver)), ..self }
    }

    /// TLS settings; the default trusts the platform's root certificates.
    #[must_use]
    pub fn tls(self, config: rustls::ClientConfig) -> Self {
        Self { tls: Tls::with(config), ..self }
    }

    /// The dialler. It opens no connection before the first request.
    pub fn build(self) -> Dialer {
        let Self { policy, resolver, tls } = self;
        let resolver = resolver.unwrap_or_else(|| Box::new(SystemResolver));
        let shared = Arc::new(Shared { policy, resolver, tls });
        let pool = |source| {
            let connector = Connector { source, shared: Arc::clone(&shared) };
            let mut client = Client::builder(TokioExecutor::new());
            client.timer(TokioTimer::new()).pool_timer(TokioTimer::new());
            client.pool_idle_timeout(IDLE_TIMEOUT).pool_max_idle_per_host(MAX_IDLE).build(connector)
        };
        Dialer { operator: pool(UrlSource::Operator), peer: pool(UrlSource::Peer), shared }
    }
}

struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        Box::pin(async move {
            let found = tokio::net::lookup_host((name, 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}
