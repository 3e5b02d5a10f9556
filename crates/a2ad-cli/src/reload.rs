//! Follows changes while the server runs: a saved configuration file, SIGHUP, files of the skills folder, and the tools of MCP
//! servers. Each becomes a new catalog, which the server swaps in; a run keeps the one it began with. The rate limits and the
//! secrets of organisations are swapped in with it, and so are the addresses that peers may choose, in the dialler that
//! everything shares.
//!
//! A configuration that is not valid, or that names a document which cannot be fetched, changes nothing: the one in use
//! stays, and the log has the problems with file and line. Keys that take effect at a start only are reported when
//! they have changed.

mod watch;

use std::{convert::Infallible, sync::Arc};

use a2ad::internal::{
    AuditLog, ReloadedSettings,
    assembly::{Backends, Fetch, Reports, missing_tools},
};
use engine::Clock;
use inbound::{Audit as _, AuditEntry};
use outbound::dial::DialPolicy;
use tokio::{
    signal::unix::{Signal, SignalKind, signal},
    sync::mpsc,
    task::block_in_place,
};
use tokio_util::sync::CancellationToken;

pub(crate) use watch::Watch;

use crate::config::{
    self, Config, ConfigFile, FolderReport, ListenCheck, Listing, Source, StartReport, StartValues,
};

/// Where the configuration comes from, at every load.
pub(crate) struct Origin {
    /// The file; it may not exist yet.
    pub(crate) file: ConfigFile,
    /// `--listen`
    pub(crate) listen: Option<String>,
    /// `--store`
    pub(crate) store: Option<String>,
}

/// A configuration and the file it was read from.
pub(crate) struct LoadedConfig {
    pub(crate) config: Config,
    /// `None` if there was no file.
    text: Option<String>,
}

impl LoadedConfig {
    pub(crate) fn has_file(&self) -> bool {
        self.text.is_some()
    }
}

impl Origin {
    /// Reads the file and the environment.
    pub(crate) fn load(&self) -> Result<LoadedConfig, config::Error> {
        self.load_again(None, None)
    }

    /// The same beside the configuration in use.
    fn load_again(
        &self,
        in_use: Option<&LoadedConfig>,
        listing: Option<&Listing>,
    ) -> Result<LoadedConfig, config::Error> {
        // A file that was used and is gone is an error, not a reason to run the demo.
        let was_used = in_use.is_some_and(|loaded| loaded.text.is_some());
        let is_used = was_used || self.file.is_used();
        let text = is_used.then(|| config::read_file(&self.file)).transpose()?;
        let config = self.parse(text.as_deref(), in_use.map(|loaded| &loaded.config), listing)?;
        Ok(LoadedConfig { config, text })
    }

    fn parse(
        &self,
        text: Option<&str>,
        in_use: Option<&Config>,
        listing: Option<&Listing>,
    ) -> Result<Config, config::Error> {
        let source = Source {
            file: text.map(|_| &self.file),
            variables: config::environment(),
            listen: self.listen.as_deref(),
            store: self.store.as_deref(),
            in_use,
            listing,
        };
        config::load_text(text.unwrap_or_default(), source, ListenCheck::Checked)
    }
}

/// Why a configuration is loaded again.
enum Cause {
    Signal,
    Saved,
    /// With the files that are complete.
    Folder(Listing),
}

/// Keeps the catalog of a server up to date.
pub(crate) struct Reloader {
    origin: Origin,
    loaded: LoadedConfig,
    /// Of the configuration that the server was started with.
    start_values: StartValues,
    backends: Backends,
    watch: Watch,
    hangup: Option<Signal>,
    reloads: mpsc::Sender<ReloadedSettings>,
    audit: Option<Arc<AuditLog>>,
    reports: Arc<Reports>,
    /// Of the configuration that the server was started with.
    start_report: StartReport,
}

impl Reloader {
    /// `watch` has seen the file before it was loaded.
    pub(crate) fn new(
        origin: Origin,
        loaded: LoadedConfig,
        backends: Backends,
        watch: Watch,
        hangup: Option<Signal>,
        reloads: mpsc::Sender<ReloadedSettings>,
    ) -> Self {
        let start_values = loaded.config.start_values.clone();
        let start_report = StartReport::of(&loaded.config.report.0);
        let (audit, reports) = (None, Arc::default());
        let reloader = Self {
            origin,
            loaded,
            start_values,
            backends,
            watch,
            hangup,
            reloads,
            audit,
            reports,
            start_report,
        };
        reloader.report();
        reloader
    }

    /// What operators see.
    pub(crate) fn reports(&self) -> Arc<Reports> {
        Arc::clone(&self.reports)
    }

    fn report(&self) {
        let config = self.start_report.in_use(self.loaded.config.report.0.clone());
        self.reports.set(&self.backends, self.loaded.config.definitions(), config);
    }

    /// Records every reload there.
    pub(crate) fn with_audit(self, audit: Option<Arc<AuditLog>>) -> Self {
        Self { audit, ..self }
    }

    /// Runs until it is stopped; returns what is running then.
    pub(crate) async fn run(mut self, stopped: CancellationToken) -> Backends {
        tokio::select! {
            () = stopped.cancelled() => {}
            never = self.follow() => match never {},
        }
        self.backends
    }

    async fn follow(&mut self) -> Infallible {
        loop {
            let cause = tokio::select! {
                () = self.backends.changed() => None,
                () = next(&mut self.hangup) => Some(Cause::Signal),
                change = self.watch.changed() => Some(change),
            };
            match cause {
                Some(cause) => self.reload(cause).await,
                None => self.publish().await,
            }
        }
    }

    async fn reload(&mut self, cause: Cause) {
        let (listing, fetch) = match &cause {
            Cause::Signal => (None, Fetch::All),
            Cause::Saved => (self.listing(), Fetch::Changed),
            Cause::Folder(listing) => (Some(listing.clone()), Fetch::Changed),
        };
        if let Cause::Signal = cause {
            self.watch.look();
            block_in_place(|| self.reload_tls());
        }
        let mut loaded = block_in_place(|| self.origin.load_again(Some(&self.loaded), listing.as_ref()));
        if let (Err(error), Cause::Folder(listing)) = (&loaded, &cause) {
            // The folder changes independently of a file that is being edited.
            tracing::warn!(%error, "the configuration file is not valid; the skills folder is read with the one in use");
            let LoadedConfig { config, text } = &self.loaded;
            let config = block_in_place(|| self.origin.parse(text.as_deref(), Some(config), Some(listing)));
            loaded = config.map(|config| LoadedConfig { config, text: text.clone() });
        }
        let applied = match loaded {
            Ok(loaded) => self.apply(loaded, fetch).await,
            Err(error) => Err(error.into()),
        };
        self.record(applied.is_err().then_some("INVALID_CONFIGURATION")).await;
        if let Err(error) = applied {
            if let Cause::Folder(listing) = cause {
                self.watch.reject(listing);
            }
            tracing::error!(%error, "the configuration was not reloaded; the one in use stays in use");
        }
    }

    /// Reads the files of TLS again, whether they have changed or not.
    fn reload_tls(&self) {
        let now = Clock::system().now();
        for tls in self.loaded.config.server.all_tls() {
            tls.reload(now);
        }
    }

    /// Records in the audit log that the configuration was reloaded, or why not.
    async fn record(&self, refused: Option<&str>) {
        if let Some(audit) = &self.audit {
            let entry = AuditEntry::done(Clock::system().now(), "server", "configuration.reload");
            audit.record(AuditEntry { refused: refused.map(str::to_owned), ..entry }).await;
        }
    }

    async fn apply(&mut self, new: LoadedConfig, fetch: Fetch) -> anyhow::Result<()> {
        self.backends.update(&self.loaded.config.backends, &new.config.backends, fetch).await?;
        for key in self.start_values.changed(&new.config.start_values) {
            tracing::warn!(key, "the value has changed; it takes effect at the next start");
        }
        report_skipped(new.config.folder.as_ref(), self.loaded.config.folder.as_ref());
        warn_of_auth(&new.config, &self.loaded.config);
        apply_dial_policy(&new.config, &self.loaded.config);
        self.loaded = new;
        self.watch.set_folder(self.loaded.config.folder.as_ref().map(|folder| folder.listing.clone()));
        self.publish().await;
        tracing::info!(agents = self.loaded.config.agents.len(), "the configuration was reloaded");
        Ok(())
    }

    /// Sends the catalog of the configuration with the tools that are known.
    async fn publish(&self) {
        warn_of_missing_tools(&self.loaded.config, &self.backends);
        let catalog = block_in_place(|| self.loaded.config.catalog(|agent| agent.registered(&self.backends)));
        let rate_limits = Some(self.loaded.config.rate_limits);
        self.report();
        // The server that would use it has stopped.
        let org_secrets = Some(self.loaded.config.auth.org_secrets.clone());
        let _ = self.reloads.send(ReloadedSettings { catalog, rate_limits, org_secrets }).await;
    }

    fn listing(&self) -> Option<Listing> {
        self.loaded.config.folder.as_ref().map(|folder| folder.listing.clone())
    }
}

/// Logs the files of the skills folder that are not used, except those that were reported before.
pub(crate) fn report_skipped(folder: Option<&FolderReport>, before: Option<&FolderReport>) {
    let known = before.map(|before| before.skipped.as_slice()).unwrap_or_default();
    for line in folder.iter().flat_map(|folder| &folder.skipped).filter(|line| !known.contains(line)) {
        tracing::warn!("a file of the skills folder is not used: {line}");
    }
}

/// Logs the warnings about who may call, except those that were logged before.
fn warn_of_auth(new: &Config, before: &Config) {
    let known = before.warnings();
    for warning in new.warnings().into_iter().filter(|warning| !known.contains(warning)) {
        tracing::warn!("{warning}");
    }
}

/// Changes which addresses peers may choose, for webhooks and everything else that has the dialler.
fn apply_dial_policy(new: &Config, before: &Config) {
    if new.dial_policy == before.dial_policy {
        return;
    }
    let DialPolicy { allow, allow_http, own_addresses: _ } = new.dial_policy.clone();
    let networks = allow.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    tracing::info!(networks, allow_http, "which addresses peers may choose has changed");
    new.backends.dialer.update_policy(|policy| (policy.allow, policy.allow_http) = (allow, allow_http));
}

pub(crate) fn warn_of_missing_tools(config: &Config, backends: &Backends) {
    for missing in missing_tools(config.definitions(), backends) {
        tracing::warn!("{missing}");
    }
}

/// SIGHUP. From this call on, it does not end the process.
pub(crate) fn hangup() -> Option<Signal> {
    let signal = signal(SignalKind::hangup());
    signal.inspect_err(|error| tracing::warn!(%error, "cannot handle SIGHUP")).ok()
}

/// Resolves at the next signal. Cancel safe.
async fn next(signal: &mut Option<Signal>) {
    let received = match signal {
        Some(signal) => signal.recv().await,
        None => None,
    };
    if received.is_none() {
        std::future::pending().await
    }
}
