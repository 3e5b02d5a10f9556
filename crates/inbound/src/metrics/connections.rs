//! Counts connections, and requests by what serves them.

use engine::{
    label_values,
    metrics::{Counter, Gauge},
};

use crate::routes::{GrpcService, Handler};

/// The counters of the connections of all listeners.
#[derive(Debug, Default)]
pub(crate) struct ConnectionMetrics {
    pub(crate) open: Gauge,
    pub(crate) accepted: Counter,
    /// Closed at once, because there were too many.
    pub(crate) refused: Counter,
}

label_values! {
    /// What serves a request.
    pub(crate) enum HandlerLabel {
        JsonRpc = "jsonrpc",
        Rest = "http_json",
        Text = "text",
        Grpc = "grpc",
        GrpcHealth = "grpc_health",
        GrpcReflection = "grpc_reflection",
        Mcp = "mcp",
        Run = "run",
        ProcessTask = "process_task",
        Card = "card",
        OpenApi = "openapi",
        AgentList = "agent_list",
        PublishedKeys = "published_keys",
        Operators = "console",
        HomePage = "home_page",
        Liveness = "liveness",
        Readiness = "readiness",
        Metrics = "metrics",
        Unknown = "unknown",
    }
}

impl From<Handler> for HandlerLabel {
    fn from(handler: Handler) -> Self {
        match handler {
            Handler::JsonRpc(_) => Self::JsonRpc,
            Handler::Rest => Self::Rest,
            Handler::Text => Self::Text,
            Handler::Grpc(GrpcService::A2a(_)) => Self::Grpc,
            Handler::Grpc(GrpcService::Health) => Self::GrpcHealth,
            Handler::Grpc(GrpcService::Reflection | GrpcService::ReflectionAlpha) => Self::GrpcReflection,
            Handler::Mcp => Self::Mcp,
            Handler::Run => Self::Run,
            Handler::ProcessTask => Self::ProcessTask,
            Handler::Card(_) | Handler::ExtendedCard => Self::Card,
            Handler::OpenApi => Self::OpenApi,
            Handler::AgentList => Self::AgentList,
            Handler::PublishedKeys => Self::PublishedKeys,
            Handler::Operators(_) => Self::Operators,
            Handler::HomePage => Self::HomePage,
            Handler::Liveness => Self::Liveness,
            Handler::Readiness => Self::Readiness,
            Handler::Metrics => Self::Metrics,
            Handler::Nothing => Self::Unknown,
        }
    }
}
