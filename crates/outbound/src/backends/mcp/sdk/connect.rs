//! Opens a connection: the newest revision first, then the handshake of older ones.

use std::{sync::Arc, time::Duration};

use rmcp::{
    Peer, RoleClient, ServiceError,
    model::{ProtocolVersion, ServerPeerInfo, SubscriptionFilter},
    service::{ClientInitializeError, ClientLifecycleMode, serve_client_with_lifecycle_and_ct},
    transport::Transport,
};
use tokio::sync::{Notify, mpsc};
use tokio_util::sync::CancellationToken;

use super::{
    ConnectError, Connection, Options,
    handler::{Handler, Routes},
    http, send_cancellations,
};

/// Maximum time for the messages that open a connection; `npx` may download the server first.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(60);
/// Maximum length of an error of the library, in characters; it may contain a whole message of the server.
const MAX_ERROR: usize = 300;
/// Time between attempts to subscribe to changes of the tools.
const LISTEN_INTERVAL: Duration = Duration::from_secs(5);

pub(super) async fn connect<T>(transport: T, options: &Options) -> Result<Connection, ConnectError>
where
    T: Transport<RoleClient> + 'static,
{
    let (routes, shutdown) = (Arc::<Routes>::default(), CancellationToken::new());
    let handler = Handler {
        routes: Arc::clone(&routes),
        tools_changed: Arc::clone(&options.tools_changed),
        elicitation: options.elicitation,
        shutdown: shutdown.clone(),
    };
    let served = serve_client_with_lifecycle_and_ct(handler, transport, lifecycle(), shutdown.clone());
    let service = match tokio::time::timeout(CONNECT_TIMEOUT, served).await {
        Ok(Ok(service)) => service,
        Ok(Err(error)) => return Err(connect_error(&error)),
        Err(_) => return Err(ConnectError::Failed("it did not answer the handshake in time".into())),
    };
    let peer = service.peer().clone();
    let older = peer.peer_info().is_none_or(|info| info.protocol_version.has_initialize());
    let server_asks = options.elicitation && older;
    routes.set_exclusive(server_asks);
    let closed = CancellationToken::new();
    let ended = closed.clone().drop_guard();
    options.tasks.spawn(async move {
        let _ = service.waiting().await;
        drop(ended);
    });
    let (cancellations, cancelled) = mpsc::unbounded_channel();
    options.tasks.spawn(send_cancellations(cancelled, closed.clone()));
    if peer.peer_info().is_some_and(|info| must_listen(&info)) {
        options.tasks.spawn(watch_tools(peer.clone(), Arc::clone(&options.tools_changed), closed.clone()));
    }
    Ok(Connection { peer, routes, cancellations, shutdown, closed, server_asks })
}

/// Servers that do not know `server/discover` get the handshake of older revisions.
fn lifecycle() -> ClientLifecycleMode {
    ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::LATEST],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    }
}

fn connect_error(error: &ClientInitializeError) -> ConnectError {
    match error.auth_challenge() {
        Some(challenge) => ConnectError::Auth { challenge: challenge.to_owned() },
        None => ConnectError::Failed(in_words(error).chars().take(MAX_ERROR).collect()),
    }
}

/// What the server has done instead of the handshake.
fn in_words(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::ExpectedInitResponse(_)
        | ClientInitializeError::ExpectedInitResult(_)
        | ClientInitializeError::ConflictInitResponseId(..)
        | ClientInitializeError::UncorrelatedErrorResponse { .. } => {
            "it answered the handshake of MCP with another message".into()
        }
        ClientInitializeError::ConnectionClosed(_) => {
            "it closed the connection during the handshake of MCP".into()
        }
        ClientInitializeError::TransportError { error, .. } => http::error_in_words(&*error.error),
        ClientInitializeError::JsonRpcError(error) => {
            format!("it answered the handshake of MCP with the error {}: {}", error.code.0, error.message)
        }
        ClientInitializeError::NoCompatibleProtocolVersion { server_supported, .. } => {
            let theirs: Vec<String> = server_supported.iter().map(ToString::to_string).collect();
            format!("it supports other revisions of MCP only: {}", theirs.join(", "))
        }
        ClientInitializeError::LegacyFallbackFailed { fallback, .. } => in_words(fallback),
        other => other.to_string(),
    }
}

/// Newer revisions report changes of the tools only to those that listen.
fn must_listen(info: &ServerPeerInfo) -> bool {
    let reports = info.capabilities.tools.as_ref().and_then(|tools| tools.list_changed);
    !info.protocol_version.has_initialize() && reports.unwrap_or_default()
}

/// Listens until the connection ends. A subscription ends when the server restarts behind the same URL, so the tools
/// may have changed then.
async fn watch_tools(peer: Peer<RoleClient>, changed: Arc<Notify>, closed: CancellationToken) {
    let listen = async || {
        let filter = SubscriptionFilter::builder().tools_list_changed().build();
        let mut subscription = peer.listen(filter).await?;
        changed.notify_one();
        while subscription.next().await?.is_some() {
            changed.notify_one();
        }
        Ok::<_, ServiceError>(())
    };
    let repeat = async {
        loop {
            let ended = listen().await;
            let reason = ended.err().map(|error| error.to_string());
            tracing::debug!(reason, "an MCP server no longer reports changes of its tools");
            tokio::time::sleep(LISTEN_INTERVAL).await;
        }
    };
    tokio::select! {
        () = repeat => {}
        () = closed.cancelled() => {}
    }
}
