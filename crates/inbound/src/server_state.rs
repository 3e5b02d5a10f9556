//! The options of the server, and the state that all requests share.

use std::{
    sync::{
        Arc, Once, OnceLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use engine::Engine;
use ipnet::IpNet;
use protocol::{ErrorTable, Timestamp};
use tokio_util::task::TaskTracker;

use crate::{
    access::{
        access_watch::AccessCheck,
        audit::Audit,
        auth::{ApiKeyOptions, AuthOptions, Authenticator, OperatorVerifier, TaskTokens},
        open_streams::OpenStreams,
        rate_limit::{RateLimiters, RateLimits},
    },
    addresses::{
        cross_origin::{CorsOrigin, OriginPolicy},
        host::{AllowedHost, HostPolicy, MountedHosts},
        origin::Origins,
    },
    bindings::grpc::TonicServices,
    documents::{card::CardOptions, published_keys::PublishKeys, ready::Ready},
    metrics::ServerMetrics,
    operator_reports::OperatorReports,
    request::version::AcceptedVersions,
    routes::{self, OperatorApi},
    tls::{self, ServerTls},
};

/// Configuration of the server's endpoints.
#[derive(Clone, Debug)]
pub struct ServerOptions {
    /// Limit of a request body and of a gRPC message.
    pub max_body_bytes: usize,
    /// Which protocol versions are accepted.
    pub accepted_versions: AcceptedVersions,
    /// The edition of the status table used by HTTP+JSON and gRPC.
    pub errors: ErrorTable,
    /// How cards are served.
    pub card: CardOptions,
    /// Interval after which an idle event stream sends a comment, and a response to a blocking send a space.
    pub keep_alive: Duration,
    /// Scheme and host as clients see them, if they differ from the request's.
    pub public_url: Option<String>,
    /// Networks of proxies whose forwarding headers are trusted.
    pub trusted_proxies: Vec<IpNet>,
    /// Hosts that requests may name, beside that of `public_url` and those of the listener.
    pub allowed_hosts: Vec<AllowedHost>,
    /// The hosts of a mounted router where none are configured.
    pub mounted_hosts: MountedHosts,
    /// Origins whose web pages may call.
    pub cors_origins: Vec<CorsOrigin>,
    /// Which credentials can be verified.
    pub auth: AuthOptions,
    /// How often callers may call.
    pub rate_limits: RateLimits,
    /// Who keeps the audit log; `None`: nobody.
    pub audit: Option<Arc<dyn Audit>>,
    /// Who has the public keys of the server; `None`: nobody, and none are served.
    pub published_keys: Option<Arc<dyn PublishKeys>>,
    /// Who reports about backends and configuration; `None`: nobody.
    pub reports: Option<Arc<dyn OperatorReports>>,
}

impl Default for ServerOptions {
    /// Bodies up to 16 MiB, every version, and no rate limits.
    fn default() -> Self {
        Self {
            max_body_bytes: 16 << 20,
            accepted_versions: AcceptedVersions::default(),
            errors: ErrorTable::default(),
            card: CardOptions::default(),
            keep_alive: Duration::from_secs(3),
            public_url: None,
            trusted_proxies: Vec::new(),
            allowed_hosts: Vec::new(),
            mounted_hosts: MountedHosts::default(),
            cors_origins: Vec::new(),
            auth: AuthOptions::default(),
            rate_limits: RateLimits::default(),
            audit: None,
            published_keys: None,
            reports: None,
        }
    }
}

/// What every request needs; built once from [`ServerOptions`].
pub(crate) struct ServerState {
    pub(crate) engine: Engine,
    pub(crate) auth: Arc<Authenticator>,
    pub(crate) access: Arc<AccessCheck>,
    /// TLS of the listeners; unset without a listener of ours.
    pub(crate) tls: Arc<OnceLock<Vec<Arc<ServerTls>>>>,
    pub(crate) task_tokens: TaskTokens,
    /// `None`: the operators' API is not served.
    pub(crate) operators: Option<OperatorVerifier>,
    pub(crate) api_keys: ApiKeyOptions,
    pub(crate) audit: Option<Arc<dyn Audit>>,
    pub(crate) published_keys: Option<Arc<dyn PublishKeys>>,
    pub(crate) reports: Option<Arc<dyn OperatorReports>>,
    /// Calls of operators, which go on if their sender disconnects.
    pub(crate) operator_calls: TaskTracker,
    pub(crate) max_body_bytes: usize,
    pub(crate) accepted_versions: AcceptedVersions,
    pub(crate) errors: ErrorTable,
    pub(crate) card: CardOptions,
    pub(crate) keep_alive: Duration,
    pub(crate) rates: ArcSwap<RateLimiters>,
    pub(crate) streams: Arc<OpenStreams>,
    pub(crate) origins: Origins,
    pub(crate) hosts: HostPolicy,
    /// Says once which hosts a mounted router has.
    pub(crate) hosts_hint: Once,
    pub(crate) callers: OriginPolicy,
    pub(crate) ready: Ready,
    pub(crate) counters: RequestCounters,
    pub(crate) metrics: Arc<ServerMetrics>,
    pub(crate) started_at: Timestamp,
    pub(crate) tonic_services: TonicServices,
    #[cfg(feature = "mcp")]
    pub(crate) mcp: crate::bindings::mcp::McpEndpoint,
}

impl ServerState {
    pub(crate) fn new(engine: Engine, options: ServerOptions, ready: Ready) -> Self {
        let ServerOptions {
            max_body_bytes,
            accepted_versions,
            errors,
            card,
            keep_alive,
            public_url,
            trusted_proxies,
            allowed_hosts,
            mounted_hosts,
            cors_origins,
            auth,
            rate_limits,
            audit,
            published_keys,
            reports,
        } = options;
        let api_keys = Arc::clone(engine.api_keys());
        let started_at = engine.clock().now();
        let authenticator = Arc::new(Authenticator::new(&auth, api_keys, engine.clock().clone()));
        let verifier = Arc::clone(&authenticator);
        let tls = Arc::<OnceLock<Vec<Arc<ServerTls>>>>::default();
        let listeners = Arc::clone(&tls);
        engine.set_revoked_principals(Box::new(move |principal| {
            verifier.has_unknown_authority(principal)
                || listeners.get().is_some_and(|all| tls::is_revoked_name(all, principal))
        }));
        let access = AccessCheck {
            auth: Arc::clone(&authenticator),
            catalog: engine.catalog().clone(),
            changes: engine.access_changes().clone(),
            clock: engine.clock().clone(),
        };
        Self {
            task_tokens: TaskTokens::new(&auth),
            operators: auth.admin_token.as_ref().map(OperatorVerifier::new),
            auth: authenticator,
            access: Arc::new(access),
            tls,
            api_keys: auth.api_keys,
            rates: ArcSwap::from_pointee(RateLimiters::new(rate_limits, engine.clock())),
            streams: Arc::default(),
            audit,
            published_keys,
            reports,
            operator_calls: TaskTracker::new(),
            engine,
            max_body_bytes,
            accepted_versions,
            errors,
            card,
            keep_alive,
            hosts: HostPolicy::new(public_url.as_deref(), allowed_hosts, mounted_hosts),
            hosts_hint: Once::new(),
            callers: OriginPolicy::new(public_url.as_deref(), cors_origins),
            origins: Origins { public_url, trusted_proxies },
            counters: RequestCounters::default(),
            metrics: Arc::default(),
            started_at,
            tonic_services: TonicServices::new(&ready),
            #[cfg(feature = "mcp")]
            mcp: crate::bindings::mcp::McpEndpoint::default(),
            ready,
        }
    }
}

impl ServerState {
    /// Whether there is an API for operators.
    pub(crate) fn operator_api(&self) -> OperatorApi {
        if self.operators.is_some() { OperatorApi::Served } else { OperatorApi::Unserved }
    }
}

/// How many requests each row of the route table has had.
#[derive(Debug)]
pub(crate) struct RequestCounters([AtomicU64; routes::ROWS + 1]);

impl Default for RequestCounters {
    fn default() -> Self {
        Self([const { AtomicU64::new(0) }; routes::ROWS + 1])
    }
}

impl RequestCounters {
    /// Counts a request; the number is that of its row.
    pub(crate) fn count(&self, number: usize) {
        self.0[number].fetch_add(1, Ordering::Relaxed);
    }

    /// The number of each row with its requests.
    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, u64)> {
        self.0.iter().map(|count| count.load(Ordering::Relaxed)).enumerate()
    }

    #[cfg(test)]
    pub(crate) fn of(&self, number: usize) -> u64 {
        self.0[number].load(Ordering::Relaxed)
    }
}
