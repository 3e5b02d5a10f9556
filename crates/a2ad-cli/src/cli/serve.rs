//! `a2ad serve`, the default command: serves the agents of a configuration until a signal arrives.

mod starting;

use std::{path::PathBuf, sync::Arc};

use a2ad::server::PushOptions;
use a2ad::{
    ServeError,
    internal::{AuditLog, AuditOptions, ListenAddress, Listeners, Settings, assembly::Backends, serve},
};
use clap::Args;
use engine::Clock;
use inbound::Audit;
use tokio::{sync::mpsc, task::JoinSet};
use tokio_util::sync::CancellationToken;

use crate::cli::runtime;

use crate::cli::variables;

use crate::cli::warn;

use crate::cli::warnings;
use crate::{
    config::{Config, ConfigFile},
    logging,
    reload::{LoadedConfig, Origin, Reloader, Watch, hangup, report_skipped, warn_of_missing_tools},
};

#[derive(Debug, Args)]
pub(super) struct ServeFlags {
    /// Configuration file [default: ./a2ad.toml if it exists, else the built-in demo; env: A2AD_CONFIG].
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address to listen on, or several with commas between them [default: 127.0.0.1:4242, env: A2AD_LISTEN].
    #[arg(long, value_name = "ADDR")]
    listen: Option<String>,
    /// Database file [default: ./a2ad.db, env: A2AD_STORE].
    #[arg(long, value_name = "PATH")]
    store: Option<String>,
}

pub(super) fn run(flags: ServeFlags) -> anyhow::Result<()> {
    let variables = variables();
    let warnings = warnings(&variables);
    let file = ConfigFile::choose(flags.config.as_deref(), &variables);
    let watch = Watch::new(file.path.clone());
    let origin = Origin { file, listen: flags.listen, store: flags.store };
    let loaded = logging::before_start(|| origin.load()).inspect_err(|_| warn(&warnings))?;
    // Dropped last on every path: dropping it writes the queued lines.
    let _log = logging::start(&warnings, loaded.config.otlp.as_deref())?;
    let networks = &loaded.config.dial_policy.allow;
    if !networks.is_empty() {
        let networks = networks.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        tracing::info!(networks, "peers may choose addresses in these networks");
    }
    if let Some(variable) = loaded.config.server.mode.decided_by {
        tracing::info!(variable, "this is production: a hosting provider has set the environment variable");
    }
    let runtime = runtime()?;
    let served = runtime.block_on(serve_with_backends(origin, loaded, watch));
    let store_failed =
        |error: &anyhow::Error| matches!(error.downcast_ref(), Some(ServeError::StoreFailed(_)));
    if served.as_ref().is_err_and(store_failed) {
        // Running work can no longer be stored; waiting for it would only delay the restart.
        runtime.shutdown_background();
    }
    served
}

/// Starts the backends, serves and reloads until the server is stopped, then ends the backends' processes.
async fn serve_with_backends(origin: Origin, loaded: LoadedConfig, mut watch: Watch) -> anyhow::Result<()> {
    let hangup = hangup();
    let config = &loaded.config;
    let listeners = Listeners::bind(config.server.listen.clone(), &config.unprotected()).await?;
    let backends = starting::answer_until(Backends::start(&config.backends), &listeners.sockets).await?;
    warn_of_missing_tools(config, &backends);
    report_skipped(config.folder.as_ref(), None);
    watch.set_folder(config.folder.as_ref().map(|folder| folder.listing.clone()));
    let audit = config.audit.clone().map(open_audit).transpose()?;
    let (sender, reloads) = mpsc::channel(1);
    let file = loaded.has_file().then(|| origin.file.path.clone());
    let warnings = config.warnings();
    let mut settings = Settings {
        reloads: Some(reloads),
        warnings,
        ..settings(config, &backends, file, &listeners.addresses)
    };
    settings.server_options.audit = audit.clone().map(|audit| -> Arc<dyn Audit> { audit });
    let stopped = CancellationToken::new();
    // A task of its own: loading a large configuration must not keep the server from its connections.
    let reloader = Reloader::new(origin, loaded, backends, watch, hangup, sender).with_audit(audit);
    settings.server_options.reports = Some(reloader.reports());
    let reloader = reloader.run(stopped.clone());
    let mut tasks = JoinSet::new();
    tasks.spawn(reloader);
    let served = serve(listeners, settings).await;
    stopped.cancel();
    if let Some(Ok(backends)) = tasks.join_next().await {
        backends.stop().await;
    }
    Ok(served?)
}

fn open_audit(options: AuditOptions) -> Result<Arc<AuditLog>, ServeError> {
    let path = options.file.clone();
    let opened = AuditLog::open(options, Clock::system());
    opened.map(Arc::new).map_err(|reason| ServeError::Audit { path, reason })
}

/// The settings of the server that this configuration describes, at its addresses.
fn settings(
    config: &Config,
    backends: &Backends,
    file: Option<PathBuf>,
    addresses: &[ListenAddress],
) -> Settings {
    Settings {
        config: file,
        store: config.store.url.clone(),
        catalog: config.catalog(|agent| agent.registered(backends)),
        limits: config.limits,
        server_options: config.server_options(addresses),
        drain_delay: config.server.drain_delay,
        push: PushOptions { policy: config.push.clone(), dialer: config.backends.dialer.clone() },
        ..Settings::default()
    }
}
