//! A store that no server has open.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use a2ad::internal::{AuditLog, AuditOptions, default_audit_file};
use engine::{Clock, Feed, Store, store::StoreError};
use inbound::{Audit as _, AuditEntry};
use store::{OpenError, Sqlite, SqliteOptions};

use super::OPERATOR;
use crate::{
    cli::failure::{Failure, code},
    config::{AgentView, OperatorView},
    nearest,
};

pub(in crate::cli) struct StoppedStore {
    pub(in crate::cli) store: Arc<dyn Store>,
    pub(in crate::cli) clock: Clock,
    /// `None` if it is not known which configuration the server has.
    pub(in crate::cli) config: Option<OperatorView>,
    path: PathBuf,
}

impl StoppedStore {
    /// Opens the store; creates it if there is none.
    pub(super) fn open(path: &Path) -> Result<Self, OpenError> {
        let clock = Clock::system();
        let store = Arc::new(Sqlite::open(&SqliteOptions::at(path), Feed::default(), &clock)?);
        Ok(Self { store, path: path.to_owned(), clock, config: None })
    }

    pub(super) fn with_config(self, config: Option<OperatorView>) -> Self {
        Self { config, ..self }
    }

    pub(in crate::cli) fn path(&self) -> &Path {
        &self.path
    }

    /// Records a change that was made in the store in its audit log.
    pub(in crate::cli) async fn record(&self, change: AuditEntry) -> Result<(), Failure> {
        let options = match &self.config {
            Some(config) if config.audit.is_none() => return Ok(()),
            Some(OperatorView { audit: Some(audit), store, .. })
                if audit.file != default_audit_file(store) =>
            {
                audit.clone()
            }
            Some(_) | None => AuditOptions::at(default_audit_file(&self.path)),
        };
        let path = options.file.clone();
        let opened = AuditLog::open(options, self.clock.clone());
        let log = opened.map_err(|error| {
            let path = path.display();
            Failure::new(
                code::ERROR,
                format!("the change was made, and cannot be recorded in {path}: {error}"),
            )
        })?;
        log.record(change).await;
        Ok(())
    }

    /// The entry of a change by an operator.
    pub(in crate::cli) fn change(&self, action: &'static str) -> AuditEntry {
        AuditEntry::done(self.clock.now(), OPERATOR, action)
    }
}

/// The agent of a configuration with this id; an error if it has none, `None` if the configuration is not known.
pub(in crate::cli) fn find_agent<'a>(
    config: Option<&'a OperatorView>,
    agent: &str,
) -> Result<Option<&'a AgentView>, Failure> {
    let Some(config) = config else { return Ok(None) };
    let found = config.agents.iter().find(|found| found.id == agent);
    found.map(Some).ok_or_else(|| {
        let hint = nearest::hint(agent, config.agents.iter().map(|agent| agent.id.as_str()));
        let text = format!("the configuration has no agent {agent:?}");
        Failure::new(code::NOT_FOUND, text).with_next(hint)
    })
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::new(code::ERROR, error.to_string())
    }
}
