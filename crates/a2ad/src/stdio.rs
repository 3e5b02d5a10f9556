//! MCP over standard input and output: all agents as tools, in this process and without a listener.

use std::time::Duration;

use http::HeaderValue;
use inbound::McpError;
use tokio::{io, sync::mpsc};
use tokio_util::sync::CancellationToken;

use crate::{
    ServeError, Server,
    serve::{ReloadedSettings, Settings, Signals, apply_reloads},
};

/// How long runs may take to end.
const STOP_LIMIT: Duration = Duration::from_secs(6);

/// Why MCP could not be served.
#[derive(Debug, thiserror::Error)]
pub enum StdioError {
    /// The server did not start.
    #[error(transparent)]
    Serve(#[from] ServeError),
    /// What arrives on standard input is not MCP.
    #[error(transparent)]
    Mcp(#[from] McpError),
}

/// Serves until standard input ends or a signal arrives. Tasks are kept in a temporary store. Of the settings, those of
/// listeners are not used; the address is used in the URLs of cards.
pub async fn serve_stdio(settings: Settings) -> Result<(), StdioError> {
    let Settings { listen, catalog, reloads, limits, server_options, .. } = settings;
    let folder = tempfile::Builder::new().prefix("a2ad-").tempdir().map_err(ServeError::TemporaryStore)?;
    let server = Server::open(&folder.path().join("a2ad.db"), catalog, limits, server_options)?;
    let served = serve(&server, &listen.to_string(), reloads).await;
    server.drain(STOP_LIMIT).await;
    served
}

async fn serve(
    server: &Server,
    host: &str,
    reloads: Option<mpsc::Receiver<ReloadedSettings>>,
) -> Result<(), StdioError> {
    let mut signals = Signals::new();
    let host = HeaderValue::from_str(host).unwrap_or(HeaderValue::from_static("localhost"));
    let (service, stop) = (server.service(), CancellationToken::new());
    let current = server.current_catalog();
    let serving = service.serve_mcp(host, io::stdin(), io::stdout(), stop.clone());
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        served = &mut serving => Ok(served?),
        () = signals.next() => {
            stop.cancel();
            Ok(serving.await?)
        }
        failure = server.failed() => Err(failure.into()),
        never = apply_reloads(&current, &service, reloads) => match never {},
    }
}
