//! A store that no server has open: its operators' API in memory, on an engine that only carries out their calls.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use a2ad::internal::{AuditLog, AuditOptions, default_audit_file};
use bytes::Bytes;
use engine::{
    AgentInfo, AgentSettings, AuthMethod, AuthMethods, Catalog, Clock, DynAgent, Engine, Feed,
    RegisteredAgent, agent_fn, random_text,
};
use http::{Request, Response};
use http_body_util::{BodyExt as _, Full};
use inbound::{Audit, AuthOptions, HttpService, Ready, ServerOptions};
use protocol::model::Secret;
use store::{OpenError, Sqlite, SqliteOptions};

use crate::{
    cli::failure::{Failure, code},
    config::{AgentView, OperatorView},
};

/// An open store.
pub(super) struct OpenStore {
    store: Sqlite,
    feed: Feed,
    clock: Clock,
    path: PathBuf,
}

/// The operators' API of a store, and the token for it. The token is made for this process, so that no file is needed.
pub(super) struct StoppedStore {
    service: HttpService,
    pub(super) token: Secret,
    pub(super) path: PathBuf,
}

impl OpenStore {
    /// Opens the store; creates it if there is none.
    pub(super) fn open(path: &Path) -> Result<Self, OpenError> {
        let (feed, clock) = (Feed::default(), Clock::system());
        let store = Sqlite::open(&SqliteOptions::at(path), feed.clone(), &clock)?;
        Ok(Self { store, feed, clock, path: path.to_owned() })
    }

    /// Starts the API inside a runtime; `None` if it is not known which configuration the server has.
    pub(super) fn serve(self, config: Option<OperatorView>) -> Result<StoppedStore, Failure> {
        let Self { store, feed, clock, path } = self;
        let token = Secret::new(random_text(52));
        let api_keys = config.as_ref().map(|config| config.api_keys.clone()).unwrap_or_default();
        let server_options = ServerOptions {
            auth: AuthOptions { admin_token: Some(token.clone()), api_keys, ..AuthOptions::default() },
            audit: open_audit(&path, config.as_ref(), &clock)?,
            ..ServerOptions::default()
        };
        let engine = Engine::for_operators(Arc::new(store), feed, catalog(config), clock);
        let service = HttpService::new(engine, server_options, Ready::default());
        Ok(StoppedStore { service, token, path })
    }
}

impl StoppedStore {
    pub(super) async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Bytes>, Failure> {
        let (head, body) = self.service.clone().handle(request).await.into_parts();
        let body = body.collect().await.map_err(|error| Failure::new(code::ERROR, error.to_string()))?;
        Ok(Response::from_parts(head, body.to_bytes()))
    }
}

/// The audit log of the store; `None` if the configuration has none.
fn open_audit(
    store: &Path,
    config: Option<&OperatorView>,
    clock: &Clock,
) -> Result<Option<Arc<dyn Audit>>, Failure> {
    let options = match config {
        Some(OperatorView { audit: None, .. }) => return Ok(None),
        // A file that the configuration names is used whatever the store is.
        Some(OperatorView { audit: Some(audit), store, .. }) if audit.file != default_audit_file(store) => {
            audit.clone()
        }
        Some(_) | None => AuditOptions::at(default_audit_file(store)),
    };
    let path = options.file.clone();
    let log = AuditLog::open(options, clock.clone()).map_err(|error| {
        let text = format!("the audit log {} cannot be opened: {error}", path.display());
        Failure::new(code::ERROR, text)
    })?;
    Ok(Some(Arc::new(log)))
}

/// The agents of the configuration, which no call reaches. Empty if it is not known: then any agent is accepted.
fn catalog(config: Option<OperatorView>) -> Catalog {
    match config {
        Some(config) => Catalog::new(config.default_agent, config.agents.into_iter().map(registered)),
        None => Catalog::new("", []),
    }
}

fn registered(agent: AgentView) -> RegisteredAgent {
    let AgentView { id, name, enabled, accepts_api_keys } = agent;
    let auth = if accepts_api_keys { AuthMethods::NONE.with(AuthMethod::ApiKey) } else { AuthMethods::NONE };
    let info = AgentInfo {
        name: name.unwrap_or_else(|| id.clone()),
        id,
        description: String::new(),
        version: String::new(),
        input_modes: Vec::new(),
        output_modes: Vec::new(),
    };
    RegisteredAgent::new(info, DynAgent::new(agent_fn(|_| async {}))).with_settings(AgentSettings {
        enabled,
        auth,
        ..AgentSettings::default()
    })
}
